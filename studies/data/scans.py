"""Ultrasonic B-scans of printed polymer blocks, simulated from their physics.

The 123 scans of the paper are not public. These simulated scans are a substitute.

A transducer moves along the top of a block and records its own echoes. The block consists of point
scatterers: the interfaces of the printed layers (many and weak), the back wall (strong) and, in
half of the blocks, pores, whose upper surfaces scatter and which shadow everything below them. The
echo of a scatterer at distance r arrives after 2 r / c. Its amplitude falls with 1 / r, with the
attenuation of the material and with the transducer's directivity. It is a short pulse with a
Gaussian spectrum. Reverberation at the surface and receiver noise are added. The echoes are focused
by delay and sum (synthetic aperture), and the envelope is shown on a logarithmic scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from eblime._types import FloatArray, IntArray

__all__ = ["Block", "Scan", "endless_scans", "scan", "scans"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A printed block and the transducer above it; millimetres and microseconds.

    Examples
    --------
    >>> import numpy as np
    >>> from studies.data.scans import Block, scan
    >>> low = Block(depth=12.0, span=15.0, pixels=64)
    >>> scan(np.random.default_rng(0), defect=True, block=low).image.shape
    (64, 64)
    """

    width: float = 38.4
    depth: float = 24.0  # of the back wall
    layer: float = 0.6  # thickness of a printed layer
    speed: float = 2.2  # of sound in the polymer, mm / us
    frequency: float = 3.5  # MHz
    bandwidth: float = 0.55  # of the pulse, as a share of the frequency
    attenuation: float = 0.22  # dB / mm at the centre frequency, one way
    noise: float = 0.004  # of the receiver, in units of a back-wall scatterer's echo at 1 mm
    elements: int = 64  # positions of the transducer
    pixels: int = 128  # height and width of the image
    span: float = 27.0  # depth that is shown
    decibels: float = 40.0  # range of grey


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scan:
    """A scan and its pores."""

    image: NDArray[np.uint8]  # (pixels, pixels), depth downwards
    defect: NDArray[np.bool_]  # mask of the pores
    pores: FloatArray  # (k, 3) position, depth and radius

    @property
    def has_defect(self) -> bool:
        """Whether there is a pore."""
        return len(self.pores) > 0


def scan(rng: np.random.Generator, *, defect: bool, block: Block | None = None) -> Scan:
    """One scan of a new block; speckle, pores and noise are drawn from `rng`.

    Examples
    --------
    >>> import numpy as np
    >>> from studies.data.scans import scan
    >>> made = scan(np.random.default_rng(0), defect=True)
    >>> made.image.shape, made.has_defect
    ((128, 128), True)
    """
    made = Block() if block is None else block
    pores = _pores(rng, made) if defect else np.empty((0, 3))
    image = block_image(rng, made, pores)
    return Scan(image=image, defect=pore_mask(pores, made), pores=pores)


def scans(count: int = 123, defects: int = 69, seed: int = 0) -> list[Scan]:
    """A set like the paper's: 123 scans, of which 69 have a defect, in random order.

    Examples
    --------
    >>> from studies.data.scans import scans
    >>> sum(made.has_defect for made in scans(count=3, defects=2))
    2
    """
    order = np.random.default_rng(seed).permutation(count)
    return [
        scan(np.random.default_rng([seed, k]), defect=bool(order[k] < defects))
        for k in range(count)
    ]


def endless_scans(seed: int = 0) -> Iterator[Scan]:
    """An endless stream of scans, every second one with a defect; none of them is in `scans`.

    Examples
    --------
    >>> from itertools import islice
    >>> from studies.data.scans import endless_scans
    >>> [made.has_defect for made in islice(endless_scans(), 2)]
    [True, False]
    """
    k = 0
    while True:
        yield scan(np.random.default_rng([1_000_003, seed, k]), defect=k % 2 == 0)
        k += 1


def _pores(rng: np.random.Generator, block: Block) -> FloatArray:
    """One to three pores next to each other, as a printing fault causes them."""
    centre = np.array([rng.uniform(6, block.width - 6), rng.uniform(5, block.depth - 4)])
    count = int(rng.integers(1, 4))
    shift = rng.normal(0, [1.1, 0.5], size=(count, 2))
    radius = rng.uniform(0.6, 1.4, size=count)
    return np.column_stack([centre + shift, radius])


def pore_mask(pores: FloatArray, block: Block) -> NDArray[np.bool_]:
    """Pixels inside a pore."""
    x = (np.arange(block.pixels) + 0.5) * block.width / block.pixels
    z = (np.arange(block.pixels) + 0.5) * block.span / block.pixels
    found = np.zeros((block.pixels, block.pixels), dtype=bool)
    for centre, depth, radius in pores:
        found |= (x[None, :] - centre) ** 2 + (z[:, None] - depth) ** 2 <= radius**2
    return found


def block_image(
    rng: np.random.Generator, block: Block, pores: FloatArray, *, echo: float = 1.0
) -> NDArray[np.uint8]:
    """The scan of a block with these pores, (pixels, pixels); speckle and noise are from `rng`.

    `echo` multiplies the echoes of the pores.
    """
    positions, strengths = _scatterers(rng, block, pores, echo)
    echoes = _echoes(rng, block, positions, strengths)
    return _grey(_focus(echoes, block), block)


def _scatterers(
    rng: np.random.Generator, block: Block, pores: FloatArray, echo: float
) -> tuple[FloatArray, FloatArray]:
    """Positions (m, 2) and strengths (m,) of all scatterers."""
    layers = np.arange(block.layer, block.depth - 0.1, block.layer)
    per_layer = 60
    depth = np.repeat(layers, per_layer) + rng.normal(0, 0.07, layers.size * per_layer)
    weak = np.column_stack([rng.uniform(-3, block.width + 3, depth.size), depth])
    uneven = np.repeat(rng.uniform(0.5, 1.5, layers.size), per_layer)  # layers differ in strength
    weak_strength = 0.04 * uneven * rng.normal(0, 1, depth.size)
    wall_x = np.arange(-3, block.width + 3, 0.12)
    tilt = rng.uniform(-0.008, 0.008)
    wall = np.column_stack([wall_x, block.depth + tilt * (wall_x - block.width / 2)])
    wall_strength = rng.normal(0.55, 0.08, len(wall))
    for x, z, radius in pores:  # there are no scatterers inside a pore
        solid = np.hypot(weak[:, 0] - x, weak[:, 1] - z) > radius
        weak, weak_strength = weak[solid], weak_strength[solid]
    positions, strengths = [weak, wall], [weak_strength, wall_strength]
    for x, z, radius in pores:  # the upper half of a pore's surface
        angle = rng.uniform(0.1 * np.pi, 0.9 * np.pi, 26)
        surface = np.column_stack([x - radius * np.cos(angle), z - radius * np.sin(angle)])
        positions.append(surface)
        strengths.append(echo * rng.normal(0.24, 0.06, len(surface)))
    joined, strength = np.concatenate(positions), np.concatenate(strengths)
    for x, z, radius in pores:  # scatterers below a pore are in its shadow
        aside = np.abs(joined[:, 0] - x)
        top = z - np.sqrt(np.maximum(radius**2 - aside**2, 0))
        below = (aside < radius) & (joined[:, 1] > top + 0.05)
        strength = np.where(below, 0.45 * strength, strength)
    return joined, strength


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Geometry:
    """Which sample of which trace each pixel needs."""

    elements: FloatArray  # (elements,) positions of the transducer
    rate: float  # samples per microsecond
    samples: int  # of a trace
    sample: IntArray  # (pixels, pixels, elements) when the echo of a pixel arrives
    aperture: NDArray[np.float32]  # (pixels, pixels, elements) weight of a trace: apodisation


@lru_cache(maxsize=4)
def _geometry(block: Block) -> _Geometry:
    """The geometry of a block's scans."""
    elements = np.linspace(0, block.width, block.elements)
    rate = 8 * block.frequency
    x = (np.arange(block.pixels) + 0.5) * block.width / block.pixels
    z = (np.arange(block.pixels) + 0.5) * block.span / block.pixels
    across = x[None, :, None] - elements
    distance = np.sqrt(across**2 + z[:, None, None] ** 2)  # (pixels, pixels, elements)
    sample = np.round(2 * distance / block.speed * rate).astype(np.intp)
    aperture = np.clip(1 - (across / (0.45 * z[:, None, None] + 0.8)) ** 2, 0, None)
    return _Geometry(
        elements=elements,
        rate=rate,
        samples=fft.next_fast_len(int(sample.max()) + 64),
        sample=sample,
        aperture=aperture.astype(np.float32),
    )


def _echoes(
    rng: np.random.Generator, block: Block, positions: FloatArray, strengths: FloatArray
) -> NDArray[np.complex64]:
    """The recorded echoes at each position, as analytic signals (elements, samples)."""
    geometry = _geometry(block)
    rate, samples = geometry.rate, geometry.samples
    across = positions[:, 0] - geometry.elements[:, None]
    distance = np.hypot(across, positions[:, 1])
    facing = (positions[:, 1] / distance) ** 2  # directivity: strongest straight below
    loss = 10 ** (-2 * block.attenuation * distance / 20)
    heard = strengths * facing * loss / np.maximum(distance, 1)
    arrival = 2 * distance / block.speed * rate
    first = arrival.astype(np.intp)
    share = arrival - first
    row = np.arange(block.elements)[:, None] * samples
    kept = first < samples - 1
    index = np.where(kept, row + first, 0).ravel()
    weights = np.where(kept, heard, 0.0)
    spikes = np.bincount(index, (weights * (1 - share)).ravel(), block.elements * samples)
    spikes += np.bincount(index + 1, (weights * share).ravel(), block.elements * samples + 1)[
        : block.elements * samples
    ]
    traces: FloatArray = spikes.reshape(block.elements, samples).astype(np.float64)
    ring = np.exp(-np.arange(samples) / (0.9 * rate)) * 0.05  # reverberation below the surface
    traces = traces + ring * rng.normal(0, 1, samples)
    traces = traces + block.noise * rng.normal(0, 1, traces.shape)
    return _filter_pulse(traces, rate, block)


def _filter_pulse(traces: FloatArray, rate: float, block: Block) -> NDArray[np.complex64]:
    """Filter with the pulse's spectrum; only positive frequencies, for an analytic signal."""
    frequency = fft.fftfreq(traces.shape[1], 1 / rate)
    spread = block.bandwidth * block.frequency / 2.355
    pulse = np.exp(-((frequency - block.frequency) ** 2) / (2 * spread**2)) * (frequency > 0)
    heard: Any = fft.ifft(fft.fft(traces, axis=1) * pulse, axis=1)
    return np.asarray(heard, dtype=np.complex64)


def _focus(echoes: NDArray[np.complex64], block: Block) -> FloatArray:
    """Delay and sum: the envelope at every pixel."""
    sample, aperture = _geometry(block).sample, _geometry(block).aperture
    total = np.zeros(sample.shape[:2], dtype=np.complex64)
    for element, trace in enumerate(echoes):
        total += aperture[..., element] * trace[sample[..., element]]
    return np.asarray(np.abs(total) / aperture.sum(axis=2), dtype=np.float64)


def _grey(envelope: FloatArray, block: Block) -> NDArray[np.uint8]:
    """Amplitudes on a logarithmic scale; time gain compensates for most of the attenuation."""
    z = (np.arange(block.pixels) + 0.5) * block.span / block.pixels
    gain = z * 10 ** (1.5 * block.attenuation * z / 20)
    amplified = envelope * gain[:, None]
    level = 20 * np.log10(amplified / np.quantile(amplified, 0.995) + 1e-9)
    return np.round(255 * np.clip(1 + level / block.decibels, 0, 1)).astype(np.uint8)
