"""A-scans of a plate of two layers: simulated ones with and without a hole, and a network.

A simulated A-scan has the geometry of the real immersion scan in `studies/data/drilled.py`: echoes
of the front, of the interface and of the back, each clipped by the receiver, grain noise in the
second layer, and in half of them the echo of a hole between two of these. The time of that echo is
known. The network is trained on simulated A-scans alone, so that it has seen no real hole.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import io, signal

from eblime._types import FloatArray
from studies.data.drilled import Echo, echo_positions
from studies.data.files import find
from studies.data.networks import cached_network, train_classifier

if TYPE_CHECKING:
    import torch

    from eblime.models.torch import TorchModel

__all__ = [
    "RATE",
    "AScans",
    "Plate",
    "echo_network",
    "hole_probability",
    "plate",
    "simulated_echoes",
]

RATE, SAMPLES = 12.5, 564  # samples per microsecond, and of an A-scan
_FREQUENCY, _CLIP = 2.25, 115.0  # MHz, and the largest value of the receiver
_WALLS = (60.0, 341.0, 535.0)  # front, interface and back, in samples
_TRAINED = 3_000  # A-scans for training


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AScans:
    """Signals and the sample at which the echo of the hole is; NaN without a hole."""

    signals: NDArray[np.float32]  # (n, 564)
    times: FloatArray  # (n,)


def simulated_echoes(rng: np.random.Generator, count: int) -> AScans:
    """A-scans, every second one with the echo of a hole.

    Examples
    --------
    >>> import numpy as np
    >>> from studies.data.echoes import simulated_echoes
    >>> made = simulated_echoes(np.random.default_rng(0), 4)
    >>> made.signals.shape, np.isfinite(made.times).tolist()
    ((4, 564), [True, False, True, False])
    """
    made = [_a_scan(rng, hole=k % 2 == 0) for k in range(count)]
    return AScans(
        signals=np.array([trace for trace, _ in made], dtype=np.float32),
        times=np.array([time for _, time in made]),
    )


def _a_scan(rng: np.random.Generator, *, hole: bool) -> tuple[FloatArray, float]:
    """One A-scan and the time of its hole."""
    t = np.arange(SAMPLES, dtype=np.float64)
    walls = np.array(_WALLS) + rng.normal(0, 3) + rng.normal(0, 2, 3)
    trace = rng.normal(0, rng.uniform(0.3, 1.0), SAMPLES)
    for wall, size in zip(walls, rng.uniform([200, 100, 90], [400, 160, 180]), strict=True):
        trace += _pulse(rng, t - wall, size, ringing=True)
    grain = signal.lfilter(*signal.butter(2, [0.2, 0.6], "band"), rng.normal(0, 1, SAMPLES))
    trace += rng.uniform(2, 8) * grain * np.exp(-(t - walls[1]) / 150) * (t > walls[1])
    for _ in range(rng.integers(0, 6)):  # weak echoes that are not of a hole
        layer = int(rng.random() < 0.75)
        trace += _pulse(
            rng, t - rng.uniform(walls[layer] + 15, walls[layer + 1]), rng.uniform(2, 16)
        )
    time = np.nan
    if hole:
        layer = rng.integers(2)
        time = rng.uniform(walls[layer] + 28, walls[layer + 1] - 22)
        trace += _pulse(rng, t - time, np.exp(rng.uniform(*np.log([25, 180]))))
    return np.clip(trace, -_CLIP, _CLIP), float(time)


def _pulse(
    rng: np.random.Generator, t: FloatArray, size: float, *, ringing: bool = False
) -> FloatArray:
    """An echo: a short pulse, and behind a wall some ringing."""
    turn = 2 * np.pi * _FREQUENCY / RATE * t + rng.uniform(0, 2 * np.pi)
    made = np.exp(-0.5 * (t / rng.uniform(3.0, 5.5)) ** 2)
    if ringing:
        made = made + 0.12 * np.exp(-np.maximum(t, 0) / 9) * (t > 0)
    return np.asarray(size * made * np.cos(turn))


def echo_layers(seed: int = 0) -> torch.nn.Sequential:
    """Four convolutions over time, the maximum of each channel, and a linear layer."""
    import torch

    torch.manual_seed(seed)
    layers: list[Any] = []
    for before, after, stride in ((1, 8, 2), (8, 16, 2), (16, 32, 2), (32, 32, 2)):
        layers += [torch.nn.Conv1d(before, after, 9, stride, padding=4), torch.nn.ReLU()]
    return torch.nn.Sequential(
        *layers, torch.nn.AdaptiveMaxPool1d(1), torch.nn.Flatten(), torch.nn.Linear(32, 2)
    )


@lru_cache(maxsize=1)
def echo_network() -> TorchModel:
    """The network, trained on simulated A-scans in ten seconds and stored in the cache folder."""
    made = simulated_echoes(np.random.default_rng([1, 0]), _TRAINED)

    def train(layers: Any) -> None:
        labels = np.isfinite(made.times).astype(np.int64)
        train_classifier(layers, 2.55 * made.signals, labels, epochs=15, rate=3e-3, mirror=False)

    return cached_network("echoes", made.signals, echo_layers, train)


def hole_probability(signals: NDArray[Any]) -> FloatArray:
    """The network's probability of a hole for each A-scan, (n, 564) -> (n,)."""
    import torch

    scaled = np.ascontiguousarray(signals, dtype=np.float32)[:, None] / 100
    with torch.inference_mode():
        odds = echo_network().module(torch.from_numpy(scaled))
        return np.asarray(torch.softmax(odds, dim=1)[:, 1], dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plate:
    """The real scan: samples x positions along x positions across, and the echoes of its holes."""

    volume: NDArray[np.float32]  # (564, 111, 40)
    holes: list[Echo]  # position along the scan, across it, and sample


@lru_cache(maxsize=1)
def plate() -> Plate:
    """The scan `PlaneScan3D_PlexiAluFBH` of M. H. Skjelvareid's synaptus, with eight holes."""
    stored: Any = io.loadmat(find("ultrasonic/PlaneScan3D_PlexiAluFBH.mat"))
    return Plate(volume=stored["ptxy"].astype(np.float32), holes=echo_positions(stored))
