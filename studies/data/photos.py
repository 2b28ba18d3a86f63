"""Photos of ImageNet's classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eblime._checks import check_choice
from eblime.datasets.imagenet import class_names, efficientnet_lite0
from studies.data.files import find

if TYPE_CHECKING:
    from eblime.models.torch import TorchModel

__all__ = ["PHOTO_SETS", "Photo", "cut_coarsely", "photo_classifier", "photo_set", "read_square"]

_ENDINGS = (".jpg", ".jpeg", ".png")
# name -> (class, folder); without a folder, the sample photo of that class is used
PHOTO_SETS = {
    "french-bulldog": ("French bulldog", "french_bulldog"),
    "broccoli": ("broccoli", "broccoli"),
    "corn": ("corn", None),
    "scuba-diver": ("scuba diver", None),
    "mixed": (None, None),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Photo:
    """A photo of one of the ImageNet classes."""

    name: str
    path: Path
    label: str
    target: int  # number of the class, 0 to 999


def photo_set(name: str) -> list[Photo]:
    """Photos of one of the paper's classes; "mixed" has one photo of each other class."""
    check_choice("name", name, tuple(PHOTO_SETS))
    names = class_names()
    label, folder = PHOTO_SETS[name]
    if folder is not None:
        paths = _files(find(f"photos/{folder}"))
        return [_photo(path, str(label), names) for path in paths]
    samples = [(_label(path), path) for path in _files(find("photos/imagenet"))]
    wanted = {entry for entry, _ in PHOTO_SETS.values() if entry}
    return [
        _photo(path, found, names)
        for found, path in samples
        if (found == label if label else found not in wanted) and found in names
    ]


@lru_cache(maxsize=1)
def photo_classifier() -> TorchModel:
    """The ImageNet classifier, loaded once per process."""
    return efficientnet_lite0()


def read_square(path: Path, size: int = 224) -> NDArray[np.uint8]:
    """Read a photo as the network expects it: shorter side scaled to 256, centre crop of 224.

    With another `size` of the crop, the scale changes in proportion.
    """
    from PIL import Image

    from eblime.domains.image.photo import open_photo

    upright = open_photo(path).convert("RGB")
    short = min(upright.size)
    scale = 256 * size // 224 / short
    wide = [max(size, round(side * scale)) for side in upright.size]
    scaled = upright.resize(wide, Image.Resampling.BICUBIC)
    left, top = (scaled.width - size) // 2, (scaled.height - size) // 2
    return np.asarray(scaled.crop((left, top, left + size, top + size)))


def cut_coarsely(image: NDArray[np.uint8], most: int = 13) -> NDArray[np.intp]:
    """At most `most` SLIC superpixels: few enough to score every mask."""
    from eblime.domains.image.scene import SEGMENTER

    stacked = image if image.ndim == 3 else image[..., None]
    for wanted in range(most + 8, 1, -1):
        labels = SEGMENTER.segment(stacked, ("slic", {"n_segments": wanted, "compactness": 10.0}))
        if labels.max() < most:
            return labels
    raise ValueError(f"`image` cannot be cut into {most} superpixels or fewer.")


def _files(folder: Path) -> list[Path]:
    """The photos of a folder, sorted by name."""
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in _ENDINGS)


def _label(path: Path) -> str:
    """The class in a file name such as `n02108915_French_bulldog.jpg`."""
    return path.stem.split("_", 1)[1].replace("_", " ")


def _photo(path: Path, label: str, names: list[str]) -> Photo:
    """A photo with the number of its class."""
    return Photo(name=path.stem, path=path, label=label, target=names.index(label))
