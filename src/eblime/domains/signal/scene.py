"""Signals cut into parts of time and channels, frequency bands or both, and what hides them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft

from eblime import _field_checks as checks
from eblime._checks import as_floats, check_choice, check_count
from eblime._lazy import import_extra
from eblime._types import Columns, FloatArray, IntArray
from eblime.domains import arrays
from eblime.domains.arrays import Labels, Segmentation
from eblime.domains.record import Domain
from eblime.domains.signal.reading import Recording, read_recording
from eblime.protocols import MeanBatch

Hide = str | float | np.ndarray | Callable[[FloatArray], ArrayLike]
HIDES = ("bridge", "mean", "zero", "noise")
_LONGEST = 2000  # points of the copy in which changes are looked for
_UNEVEN = 0.01  # of a step between samples, which bands allow
_SIZES = (16, 64, 256, 1024)
_BATCH_NUMBERS = 1 << 23  # in the largest batch
_MOST_CHANNELS = 1 << 16
_SLOPE = 0.2  # of the narrower band at an edge: where one band fades into the next


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SignalScene(Recording):
    """A signal cut into parts of time and channels, each of them perhaps into frequency bands.

    A cut between two parts is faded over a few samples, in which both have a share. A hidden
    feature shows the same part and band of `hidden`. If that has several signals, the score of a
    mask is the mean over them.
    """

    hidden: FloatArray  # (m, C, T) what hidden features show instead
    parts: Labels  # (C, T) the part of each sample, from 0 on
    bands: Any  # (B, 2) low and high, as in `frequency_unit`; None where parts are features
    fade: int  # samples over which a cut is faded

    domain: ClassVar[str] = "signal"

    @property
    def n_features(self) -> int:
        """Number of features, p: those of a part are its bands, and follow each other."""
        return (int(self.parts.max()) + 1) * (1 if self.bands is None else len(self.bands))

    @property
    def labels(self) -> Labels | None:
        """The feature of each sample, (C, T); None where it has several, of different bands."""
        return self.parts if self.bands is None else None

    @property
    def frequency_unit(self) -> str:
        """Unit of the bands: "Hz", "per day", "cycles per sample"."""
        if self.times is None:
            return "cycles per sample"
        other = f"per {self.unit or 'unit of time'}"
        return {"s": "Hz", "ms": "kHz", "us": "MHz"}.get(self.unit, other)

    @property
    def edges(self) -> FloatArray:
        """When each sample begins, and when the last one ends, (T + 1,)."""
        if self.times is None:
            return np.arange(self.n_samples + 1.0)
        return np.append(self.times, self.times[-1] + 1 / self.rate)

    @property
    def features(self) -> list[str]:
        """Names: `window 120-160`, `0.30-0.40 s, channel x`, `channel x`, `10-20 Hz` or both."""
        whole = int(self.parts.max()) == 0
        parts = [""] if whole else self._part_names()
        if self.bands is None:
            return parts
        bands = [f"{span} {self.frequency_unit}" for span in _spans(self.bands)]
        return bands if whole else [f"{part}, {band}" for part in parts for band in bands]

    def _part_names(self) -> list[str]:
        boxes, sizes = arrays.boxes_of(self.parts), np.bincount(self.parts.ravel()).tolist()
        spans = self.edges[[(time.start, time.stop) for _, time in boxes]]
        if self.start:
            words = _dates(spans, self.start)
        elif self.times is not None:
            words = [f"{span} {self.unit}".rstrip() for span in _spans(spans)]
        else:
            words = [f"window {time.start}-{time.stop}" for _, time in boxes]
        names = []
        for j, ((rows, time), when) in enumerate(zip(boxes, words, strict=True)):
            own, length = self.channels[rows], time.stop - time.start
            parts = [] if length * len(own) == sizes[j] else [f"part {j}"]
            parts += [when] if length < self.n_samples else []
            if len(own) < len(self.channels):
                parts.append(f"channel{f's {own[0]} to' if len(own) > 1 else ''} {own[-1]}")
            names.append(", ".join(parts))
        return names

    def details(self) -> Columns:
        """Begin, end and channels of each feature, and low and high frequency of its band."""
        boxes, edges = arrays.boxes_of(self.parts), self.edges.tolist()
        bands = [(None, None)] if self.bands is None else self.bands.tolist()
        places = {
            "start": [edges[time.start] for _, time in boxes for _ in bands],
            "end": [edges[time.stop] for _, time in boxes for _ in bands],
            "channel": [", ".join(self.channels[rows]) for rows, _ in boxes for _ in bands],
        }
        low, high = ([band[k] for _ in boxes for band in bands] for k in (0, 1))
        frequencies = {"low_frequency": low, "high_frequency": high}
        if self.bands is None:
            return places
        return places | frequencies if len(boxes) > 1 else frequencies

    @property
    def cost(self) -> int:
        """Signals that the model is asked about for one mask."""
        return len(self.hidden)

    @property
    def sizes(self) -> Sequence[int]:
        """Batch sizes worth trying, increasing."""
        numbers = self.hidden.size
        return tuple(size for size in _SIZES if size * numbers <= _BATCH_NUMBERS) or (1,)

    def inputs(self, masks: FloatArray) -> FloatArray | MeanBatch:
        """One signal (C, T) per mask; several whose mean score counts, if `hidden` has several."""
        shown = masks > 0.5
        if self.cost == 1:
            return self._render(shown, 0)
        every = np.stack([self._render(shown, k) for k in range(self.cost)], axis=1)
        sizes = np.where(shown.all(axis=1), 1, self.cost)  # the signal itself is asked once
        wanted = np.arange(self.cost) < sizes[:, None]
        return MeanBatch(inputs=every[wanted], sizes=sizes)

    def _render(self, shown: NDArray[np.bool_], k: int) -> FloatArray:
        """The signal minus what its hidden features take away; exact if all are shown.

        Hidden features show the k-th of the hidden signals.
        """
        gone, taken = (~shown).astype(np.float64), _taken(self, k)
        if gone.shape[1] == len(taken):  # one part: its bands are the features
            lost = gone @ taken
        else:
            labels, columns, others, shares = _fades(self)
            for b, own in enumerate(taken):
                band = gone[:, b :: len(taken)]  # of each part
                share = band.take(labels, axis=1)
                share[:, columns] *= 1 - shares
                share[:, columns] += band.take(others, axis=1) * shares
                share *= own
                lost = np.add(lost, share, out=lost) if b else share
        np.subtract(self.signal.ravel(), lost, out=lost)
        return lost.reshape(len(shown), *self.signal.shape[int(self.flat) :])  # (n, C, T) or (n, T)


def _spans(ends: FloatArray) -> list[str]:
    """Pairs of numbers, (p, 2), with as many decimals as the shortest needs: `0.30-0.40`."""
    shortest = np.diff(ends, axis=1).min() * (1 + 1e-6)  # 1.3 - 1.2 is below 0.1
    digits = int(max(0, 1 - np.floor(np.log10(shortest))))
    dash = "-" if ends.min() >= 0 else " to "
    return [f"{low:.{digits}f}{dash}{high:.{digits}f}" for low, high in ends.tolist()]


def _dates(ends: FloatArray, start: str) -> list[str]:
    """Pairs of seconds after a date, (p, 2): `2026-01-31 12:00-13:00`."""
    shortest = np.diff(ends, axis=1).min()
    units = [("D", 86_400.0), ("m", 60.0), ("s", 1.0), ("ms", 1e-3)]
    unit: Any = next((unit for unit, seconds in units if shortest >= seconds), "us")
    moments = np.datetime64(start, "ns") + np.rint(ends * 1e9).astype("timedelta64[ns]")
    texts = np.char.replace(np.datetime_as_string(moments, unit=unit), "T", " ").tolist()
    same = [unit != "D" and low[:10] == high[:10] for low, high in texts]  # one day
    pairs = zip(texts, same, strict=True)
    return [f"{a}-{b[11:]}" if day else f"{a} to {b}" for (a, b), day in pairs]


@lru_cache(maxsize=4)
def _fades(scene: SignalScene) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """The part of each sample, (CT,); the faded samples, their other part and its share.

    A cut is faded over `fade` samples around it, fewer between short parts; the shares follow a
    raised cosine.
    """
    labels, n = scene.parts, scene.n_samples
    rows, cuts = np.nonzero(np.diff(labels, axis=1))
    flat = rows * n + cuts + 1  # the first sample after each cut
    ends = np.union1d(flat, np.arange(0, labels.size + 1, n))
    place = np.searchsorted(ends, flat)
    half = np.minimum(scene.fade, np.minimum(flat - ends[place - 1], ends[place + 1] - flat)) // 2
    first, width = np.repeat([flat - half, half], 2 * half, axis=1)
    step = np.arange(len(width)) - np.repeat(np.cumsum(2 * half) - 2 * half, 2 * half)
    behind = np.sin(np.pi / 4 * (step + 0.5) / np.maximum(width, 1)) ** 2  # share of the part
    late = step >= width
    others = labels.ravel()[first + width - late]
    return labels.ravel(), first + step, others, np.where(late, 1 - behind, behind)


@lru_cache(maxsize=4)
def _taken(scene: SignalScene, k: int) -> FloatArray:
    """What hiding takes away of the signal, (1, CT), or of each of its bands, (B, CT)."""
    change: FloatArray = scene.signal - scene.hidden[k]
    bands = change if scene.bands is None else split_bands(change, scene.bands / scene.rate)
    return bands.reshape(-1, change.size)


def split_bands(signal: FloatArray, bands: FloatArray) -> FloatArray:
    """A signal as a sum of frequency bands, (C, T) -> (p, C, T), without a shift in time.

    `bands` are in cycles per sample, each begins where the one before ends, and together they reach
    from 0 to 1/2. The ends of the signal are continued by their mirror images, so that they do not
    ring. Around an edge, one band fades into the next.
    """
    n = signal.shape[1]
    room = min(n - 1, max(n // 2, 16))
    longer = np.pad(signal, ((0, 0), (room, room)), mode="reflect", reflect_type="odd")
    spectrum = fft.rfft(longer, axis=1)
    frequencies = fft.rfftfreq(longer.shape[1])
    widths = np.diff(bands, axis=1).ravel()
    slopes = np.minimum(widths[1:], widths[:-1]) * _SLOPE
    # how far each frequency is beyond each inner edge, from 0 to 1
    beyond = (frequencies - bands[1:, :1]) / slopes[:, None] + 0.5
    beyond = np.sin(np.pi / 2 * np.clip(beyond, 0, 1)) ** 2
    ones, zeros = np.ones((1, len(frequencies))), np.zeros((1, len(frequencies)))
    shares = -np.diff(np.concatenate([ones, beyond, zeros]), axis=0)  # (p, F), their sum is 1
    parts = fft.irfft(shares[:, None] * spectrum, longer.shape[1], axis=2)
    return np.ascontiguousarray(parts[:, :, room : room + n])


def cut_windows(signal: FloatArray, *, n: int | None = None, width: int | None = None) -> Labels:
    """Equal stretches of time, over all channels: 20, `n`, or as many as have `width` samples."""
    samples = signal.shape[1]
    if n is not None and width is not None:
        raise ValueError("`segmentation` must have `n` or `width`, not both.")
    if width is None:
        count = min(20, samples) if n is None else n
        check_count("n` of `segmentation", count, maximum=samples)
        cut = np.arange(samples) * count // samples
    else:
        check_count("width` of `segmentation", width, maximum=samples - 1)
        cut = np.minimum(np.arange(samples) // width, max(2, round(samples / width)) - 1)
    return np.broadcast_to(cut, signal.shape)


def cut_changes(
    signal: FloatArray, *, n: int | None = None, width: int | None = None, kernel: str = "rbf"
) -> Labels:
    """Up to `n` stretches of time between changes of the signal; `ruptures` finds them.

    `width` is the fewest samples of one. `kernel` is "rbf" for any change of the distribution,
    "linear" for one of the mean, or "cosine".
    """
    ruptures = import_extra("ruptures", "signal")
    check_choice("kernel", kernel, ("linear", "rbf", "cosine"))
    samples = signal.shape[1]
    step = -(-samples // _LONGEST)
    spread = signal.std(axis=1, keepdims=True)
    points = ((signal - signal.mean(axis=1, keepdims=True)) / np.where(spread, spread, 1)).T
    points = np.add.reduceat(points, np.arange(0, samples, step)) / step
    least = max(2, -(-(samples // 100 if width is None else width) // step))
    count = min(20 if n is None else n, len(points) // least)
    if count < 2:
        raise ValueError(
            f"`width` must leave room for two stretches of time in {samples} samples; got {width}."
        )
    found = ruptures.KernelCPD(kernel=kernel, min_size=least).fit(points)
    ends = [end * step for end in found.predict(n_bkps=count - 1)[:-1]]
    cut = np.searchsorted(ends, np.arange(samples), side="right")
    return np.broadcast_to(cut, signal.shape)


def cut_channels(signal: FloatArray) -> Labels:
    """Whole channels."""
    return np.broadcast_to(np.arange(len(signal))[:, None], signal.shape)


def cut_cells(signal: FloatArray, *, n: int | None = None, width: int | None = None) -> Labels:
    """Windows of each channel: 10 by default."""
    count = min(10, signal.shape[1]) if n is None and width is None else n
    cut = cut_windows(signal, n=count, width=width)
    return np.asarray(cut + np.arange(len(signal))[:, None] * (cut.max() + 1))


def cut_bands(
    found: Recording, *, n: int | None = None, edges: Sequence[float] | None = None
) -> FloatArray:
    """Frequency bands, (p, 2): 8 or `n` of the same width, or between `edges`.

    The edges are in cycles per unit of time, or per sample without times. Bands from 0 and up to
    half the sampling rate are added.
    """
    samples, highest = found.n_samples, found.rate / 2
    steps = np.ones(1) if found.times is None else np.diff(found.times)
    if np.ptp(steps) > _UNEVEN * steps.mean():
        raise ValueError(
            "The samples must be evenly spaced in time for segmentation='bands'; the steps "
            f"are {f'{steps.min():g} to {steps.max():g} {found.unit}'.rstrip()}."
        )
    if edges is None:
        count = min(8, samples // 2) if n is None else n
        check_count("n` of `segmentation", count, maximum=samples // 2)
        ends = np.linspace(0, highest, count + 1)
    else:
        if n is not None:
            raise ValueError("`segmentation` must have `n` or `edges`, not both.")
        given = as_floats("edges", edges)
        ends = np.array([0.0, *given[(given > 0) & (given < highest * (1 - 1e-9))], highest])
        outside = given.min(initial=0) < 0 or given.max(initial=0) > highest * (1 + 1e-9)
        if given.ndim != 1 or outside or (np.diff(given) <= 0).any():
            raise ValueError(
                f"`edges` must increase from 0 to half the sampling rate, {highest:g}; "
                f"got {edges!r:.80}."
            )
    if len(ends) < 3:
        raise ValueError("The segmentation must find at least 2 frequency bands; got 1.")
    return np.stack([ends[:-1], ends[1:]], axis=1)


def cut_tiles(
    found: Recording,
    *,
    windows: int = 10,
    bands: int | None = None,
    edges: Sequence[float] | None = None,
) -> tuple[Labels, FloatArray]:
    """Windows over all channels, and the frequency bands of each: 6, `bands`, or at `edges`."""
    bands = 6 if bands is None and edges is None else bands
    return cut_windows(found.signal, n=windows), cut_bands(found, n=bands, edges=edges)


SEGMENTATIONS: dict[str, Callable[..., object]] = {
    "windows": cut_windows,
    "changes": cut_changes,
    "channels": cut_channels,
    "cells": cut_cells,
    "bands": cut_bands,
    "tiles": cut_tiles,
}


def read_signal(
    source: object,
    *,
    segmentation: Segmentation,
    hide: Hide,
    fade: int = 4,
    rate: float | None = None,
    channels: Sequence[str] | None = None,
    key: str | None = None,
) -> SignalScene:
    """Cut a signal into features; the settings are those of `SignalExplainer`."""
    found = read_recording(source, rate=rate, channels=channels, key=key)
    cut, params = arrays.name_and_parameters(segmentation)
    shape, edges = found.signal.shape, None
    parts = np.zeros(shape, dtype=np.intp)
    if isinstance(cut, str) and cut == "bands":
        edges = cut_bands(found, **params)
    elif isinstance(cut, str) and cut == "tiles":
        parts, edges = cut_tiles(found, **params)
        longest = np.bincount(parts[0]).min() // 2
        fade = max(fade, min(longest, round(found.rate / np.diff(edges, axis=1).min())))
    else:
        find = SEGMENTATIONS[cut] if isinstance(cut, str) else cut
        own = np.asarray(find(found.signal.copy(), **params) if callable(find) else find)
        own = np.broadcast_to(own, shape) if own.shape == shape[1:] else own
        parts = arrays.relabel(own, shape, "signal", "features", "('windows', {'n': 20})")
    hidden = hidden_signals(found.signal, parts if edges is None else None, hide)
    arrays.check_changes(hidden, np.broadcast_to(found.signal, hidden.shape), "signal")
    return SignalScene(
        **{entry.name: getattr(found, entry.name) for entry in fields(found)},
        hidden=hidden,
        parts=parts,
        bands=edges,
        fade=fade,
    )


def hidden_signals(signal: FloatArray, labels: Labels | None, hide: Hide) -> FloatArray:
    """What hidden features show instead, (m, C, T); `labels` is None for frequency bands.

    A bridge is a straight line from the first sample of a stretch to the first one of the next, or
    to the last sample of the signal. It depends on the signal alone, not on what else is hidden.
    """
    if isinstance(hide, str):
        if hide == "noise":
            return _noise(signal)[None]
        if hide == "zero" or (hide == "bridge" and labels is None):  # a band is taken out
            return np.zeros((1, *signal.shape))
        labels = np.zeros(signal.shape, dtype=np.intp) if labels is None else labels
        return (_bridges if hide == "bridge" else _means)(signal, labels)[None]
    values = as_floats("hide", hide(signal.copy()) if callable(hide) else hide)
    shape = signal.shape
    values = np.full(shape, values) if values.ndim == 0 else values
    one_channel = len(signal) == 1 and values.shape[-1:] == shape[1:]
    if values.ndim > 3 or not values.size or not (values.shape[-2:] == shape or one_channel):
        raise ValueError(
            f"`hide` must have signals of the shape {shape} (channels, samples), or several of "
            f"them; got shape {values.shape}."
        )
    return arrays.check_finite("hide", np.ascontiguousarray(values.reshape(-1, *shape)))


def _bridges(signal: FloatArray, labels: Labels) -> FloatArray:
    """Straight lines between the samples at which features begin."""
    samples = signal.shape[1]
    found = np.empty_like(signal)
    for row, values, own in zip(found, signal, labels, strict=True):
        ends = np.flatnonzero(np.diff(own, prepend=own[0] - 1))
        ends = np.append(ends, samples - 1) if ends[-1] < samples - 1 else ends
        row[:] = np.interp(np.arange(samples), ends, values[ends])
    return found


def _means(signal: FloatArray, labels: Labels) -> FloatArray:
    p = int(labels.max()) + 1
    keys = labels + np.arange(len(signal))[:, None] * p
    counts = np.bincount(keys.ravel())
    totals = np.bincount(keys.ravel(), signal.ravel())
    return np.asarray((totals / np.maximum(counts, 1))[keys])


def _noise(signal: FloatArray) -> FloatArray:
    """Noise with the spectrum and the mean of each channel; the same for the same signal."""
    samples = signal.shape[1]
    spectrum = fft.rfft(signal, axis=1)
    turns = np.exp(2j * np.pi * np.random.default_rng(0).random(spectrum.shape))
    turns[:, 0] = 1
    if samples % 2 == 0:
        turns[:, -1] = 1  # it is real
    return np.asarray(fft.irfft(spectrum * turns, samples, axis=1))


def _bands_touch(scene: SignalScene) -> bool:
    """Whether bands, if there are any, have two edges and begin where the one before ends."""
    if scene.bands is None or scene.bands.shape[1] != 2:
        return scene.bands is None
    low, high = scene.bands.T
    return bool((low < high).all()) and np.array_equal(low[1:], high[:-1])


_FIELDS = {
    "signal": checks.floats("C", "T"),
    "hidden": checks.floats("m", "C", "T"),
    "channels": checks.list_of(checks.text(), "C", most=_MOST_CHANNELS),
    "parts": checks.array_of("i", 2),
    "bands": checks.optional(checks.floats("B", "two", low=0.0)),
    "times": checks.optional(checks.floats("T")),
    "unit": checks.text(40),
    "start": checks.text(40),
    "fade": checks.whole(0, 1 << 20),
    "flat": checks.flag(),
}
_RULES = {
    "at least one sample and one hidden signal": lambda scene: scene.hidden.size > 0,
    "one channel if it is flat": lambda scene: not scene.flat or len(scene.signal) == 1,
    "times that increase": lambda s: s.times is None or bool((np.diff(s.times) > 0).all()),
    "a part from 0 on for each sample": lambda s: arrays.are_labels(s.parts, s.signal.shape),
    "bands that touch": _bands_touch,
}

SIGNAL = Domain(
    name="signal",
    feature="window",
    scene=SignalScene,
    check_scene=lambda scene: checks.check_object(scene, _FIELDS, _RULES),
    picture="signal",
)
