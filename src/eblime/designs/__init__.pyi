from eblime.designs.adaptive import Adaptive as Adaptive
from eblime.designs.arrays import orthogonal as orthogonal
from eblime.designs.masks import bernoulli as bernoulli
from eblime.designs.masks import exhaustive as exhaustive
from eblime.designs.masks import leverage as leverage
from eblime.designs.masks import sizes as sizes
