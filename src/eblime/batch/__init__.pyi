from eblime.batch.results import Run as Run
from eblime.batch.workers import Workers as Workers
