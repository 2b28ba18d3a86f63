"""Images: superpixels as features."""

from eblime.domains.image.scene import IMAGE as IMAGE
from eblime.domains.image.scene import ImageScene as ImageScene
