"""MNIST digits, and a small network trained on them on the spot."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime.datasets.cache import cache_folder, local_folder

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
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "The digits' network needs torch: pip install 'eblime[torch]'."
        ) from error
    from eblime.models.torch import TorchModel

    torch.manual_seed(seed)
    layers = torch.nn.Sequential(
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
    path = cache_folder() / f"mnist-network-{seed}.pt"
    if path.exists():
        layers.load_state_dict(torch.load(path, weights_only=True))
    else:
        _train(layers, seed)
        torch.save(layers.state_dict(), path)
    return TorchModel(layers)


def _train(layers: Any, seed: int) -> None:
    """Adam, batches of 128, three times through the training set."""
    import torch

    train, labels, _, _ = mnist()
    images = torch.from_numpy(train[:, None].astype(np.float32) / 255)
    targets = torch.from_numpy(labels)
    adam = torch.optim.Adam(layers.parameters(), lr=2e-3)
    order = np.random.default_rng(seed)
    for _ in range(3):
        for batch in np.array_split(order.permutation(len(images)), len(images) // 128):
            adam.zero_grad()
            loss = torch.nn.functional.cross_entropy(layers(images[batch]), targets[batch])
            loss.backward()
            adam.step()
