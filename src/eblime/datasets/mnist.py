"""MNIST digits, and a small network trained on them on the spot."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime.datasets.cache import cache_folder, local_folder
from eblime.datasets.networks import kept_network, train_classifier
from eblime.models.torch import import_torch

__all__ = ["digits", "mnist", "network"]

Images = NDArray[np.uint8]


@lru_cache(maxsize=1)
def mnist() -> tuple[Images, NDArray[np.int64], Images, NDArray[np.int64]]:
    """Training images and labels, test images and labels: 20,000 and 5,000 of 28 x 28."""
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
            "Fetching MNIST needs scikit-learn: pip install 'eblime[sklearn]'."
        ) from error
    except Exception as error:
        raise ConnectionError(
            f"MNIST cannot be fetched from OpenML ({error}). Without a network, name a folder that "
            "has mnist/mnist.npz in EBLIME_DATA."
        ) from error
    pixels = images.reshape(-1, 28, 28).astype(np.uint8)
    names_of = labels.astype(np.int64)
    return pixels[:20_000], names_of[:20_000], pixels[60_000:65_000], names_of[60_000:65_000]


def digits(digit: int) -> Images:
    """The test images of one digit that the network gets right."""
    _, _, test, labels = mnist()
    chosen = test[labels == digit]
    right = np.argmax(network()(chosen), axis=1) == digit
    return np.asarray(chosen[right])


@lru_cache(maxsize=1)
def network(seed: int = 0) -> Any:
    """A small convolutional network, trained for three epochs, kept in the cache folder."""
    return kept_network(f"mnist-{seed}", lambda: _layers(seed), lambda made: _train(made, seed))


def _layers(seed: int) -> Any:
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


def _train(layers: Any, seed: int) -> None:
    """Three times through the training set."""
    train, labels, _, _ = mnist()
    train_classifier(layers, train, labels, epochs=3, mirror=False, seed=seed)
