"""MNIST digits, and a small network that is trained on them when it is first used."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eblime.models.torch import TorchModel, import_torch
from studies.data.files import cache_folder, local_folder
from studies.data.networks import cached_network, train_classifier

if TYPE_CHECKING:
    import torch

__all__ = ["digits", "mnist", "network"]

Images = NDArray[np.uint8]


@lru_cache(maxsize=1)
def mnist() -> tuple[Images, NDArray[np.int64], Images, NDArray[np.int64]]:
    """20,000 training images with labels and 5,000 test images with labels, 28 x 28 pixels.

    Examples
    --------
    >>> from studies.data.mnist import mnist
    >>> train, train_labels, test, test_labels = mnist()  # doctest: +SKIP
    >>> train.shape, test.shape  # doctest: +SKIP
    ((20000, 28, 28), (5000, 28, 28))
    """
    folder = local_folder()
    path = None if folder is None else folder / "mnist" / "mnist.npz"
    if path is not None and path.exists():
        with np.load(path, allow_pickle=False) as stored:
            names = ("x_train", "y_train", "x_test", "y_test")
            train, train_labels, test, test_labels = (stored[name] for name in names)
        return train, train_labels.astype(np.int64), test, test_labels.astype(np.int64)
    try:
        from sklearn.datasets import fetch_openml

        images, labels = fetch_openml(
            "mnist_784", version=1, return_X_y=True, as_frame=False, data_home=cache_folder()
        )
    except ImportError as error:
        raise ImportError(
            "Downloading MNIST needs scikit-learn: pip install 'eblime[sklearn]'."
        ) from error
    except Exception as error:
        raise ConnectionError(
            f"MNIST cannot be downloaded from OpenML ({error}). Without a network, set EBLIME_DATA "
            "to a folder that has mnist/mnist.npz."
        ) from error
    pixels = images.reshape(-1, 28, 28).astype(np.uint8)
    classes = labels.astype(np.int64)
    return pixels[:20_000], classes[:20_000], pixels[60_000:65_000], classes[60_000:65_000]


def digits(digit: int) -> Images:
    """The test images of one digit that the network classifies correctly."""
    _, _, test, labels = mnist()
    chosen = test[labels == digit]
    right = np.argmax(network()(chosen), axis=1) == digit
    return np.asarray(chosen[right])


@lru_cache(maxsize=1)
def network(seed: int = 0) -> TorchModel:
    """A small convolutional network, trained for three epochs and stored in the cache folder."""
    return cached_network(
        f"mnist-{seed}",
        mnist()[0],
        lambda: _layers(seed),
        lambda layers: _train(layers, seed),
    )


def _layers(seed: int) -> torch.nn.Sequential:
    """Two convolutions and two linear layers."""
    torch = import_torch()
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 32, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(32 * 49, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 10),
    )


def _train(layers: torch.nn.Module, seed: int) -> None:
    """Train for three epochs."""
    train, labels, _, _ = mnist()
    train_classifier(layers, train, labels, epochs=3, mirror=False, seed=seed)
