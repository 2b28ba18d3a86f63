"""Simulated ultrasonic scans of printed blocks, and a small network that finds their defects.

The network is written in plain NumPy and needs no further package. `studies/data/scans.py`
simulates the scans, and `python -m studies train-ultrasonic` makes the files of the package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import special

LABELS = ["no defect", "with defect"]
_BLOCK = 16  # images at a time, so that the windows of a layer fit into the processor's cache
_LAYERS = 4

Floats = NDArray[np.float32]


def ultrasonic_network() -> ScanNetwork:
    """The five-layer network that detects defects in scans; it is part of the package.

    Examples
    --------
    >>> from eblime.datasets import sample_scans, ultrasonic_network
    >>> images, _ = sample_scans()
    >>> ultrasonic_network()(images)[:, 1].round(1)  # probability of a defect
    array([1., 1., 1., 0.])
    """
    found = _read_asset("ultrasonic.npz")
    return ScanNetwork(
        kernels=[found[f"kernel{k}"] for k in range(_LAYERS)],
        biases=[found[f"bias{k}"] for k in range(_LAYERS)],
        head=found["head"],
        head_bias=found["head_bias"],
    )


def sample_scans() -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Four scans from the package and masks of their defects; the last one has no defect.

    Examples
    --------
    >>> from eblime.datasets import sample_scans
    >>> images, defects = sample_scans()
    >>> images.shape, defects.any(axis=(1, 2)).tolist()
    ((4, 128, 128), [True, True, True, False])
    """
    few = _read_asset("scans.npz")
    return few["images"], few["defects"]


def _read_asset(name: str) -> dict[str, np.ndarray]:
    """The arrays in a file of the package."""
    path = resources.files("eblime.datasets").joinpath("assets", name)
    with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
        return dict(found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ScanNetwork:
    """Class probabilities of grey images: 3 x 3 convolutions, each with ReLU and 2 x 2 max pooling.

    The maximum of each channel goes to a linear layer and a softmax.
    """

    kernels: Sequence[Floats]  # (out, in, 3, 3) each
    biases: Sequence[Floats]  # (out,) each
    head: Floats  # (classes, channels)
    head_bias: Floats  # (classes,)

    scales_uint8: ClassVar[bool] = True

    def __call__(self, batch: np.ndarray) -> NDArray[np.float64]:
        """Probabilities of a batch (n, H, W) of bytes, or of floats in [0, 1].

        Of a batch (n, H, W, 3), as the command line reads photos, the mean of the colours is used.
        """
        if batch.ndim != 3 and not (batch.ndim == 4 and batch.shape[3] == 3):
            raise ValueError(
                "`batch` must hold grey images, shape (n, H, W), or colours, (n, H, W, 3); "
                f"got shape {batch.shape}."
            )
        scale = np.float32(255 if batch.dtype == np.uint8 else 1)
        grey = batch if batch.ndim == 3 else batch.mean(axis=3, dtype=np.float32)
        images = grey.astype(np.float32)[..., None] / scale
        blocks = [self._logits(images[k : k + _BLOCK]) for k in range(0, len(images), _BLOCK)]
        logits = np.concatenate([np.empty((0, len(self.head)), np.float32), *blocks])
        return np.asarray(special.softmax(logits.astype(np.float64), axis=1))

    def _logits(self, images: Floats) -> Floats:
        """Outputs before the softmax, (n, classes), of images (n, H, W, 1)."""
        for kernel, bias in zip(self.kernels, self.biases, strict=True):
            images = _halve(np.maximum(_convolve(images, kernel) + bias, 0))
        return np.asarray(images.max(axis=(1, 2)) @ self.head.T + self.head_bias)


def _convolve(images: Floats, kernel: Floats) -> Floats:
    """Convolve (n, H, W, in) with (out, in, 3, 3), padded with zeros, by one matrix product."""
    n, height, width, _ = images.shape
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = sliding_window_view(padded, (3, 3), axis=(1, 2))  # (n, H, W, in, 3, 3)
    rows = windows.reshape(n * height * width, -1)
    return np.asarray((rows @ kernel.reshape(len(kernel), -1).T).reshape(n, height, width, -1))


def _halve(images: Floats) -> Floats:
    """2 x 2 max pooling; an odd last row or column is left out."""
    n, height, width, channels = images.shape
    even = images[:, : height // 2 * 2, : width // 2 * 2]
    return np.asarray(even.reshape(n, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4)))
