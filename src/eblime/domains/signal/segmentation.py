"""Cutting a signal into features, and what hidden ones show instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from eblime._checks import as_floats, check_choice
from eblime._types import FloatArray
from eblime.domains.composite import Labels, Segmentation, check_cut, relabel
from eblime.domains.signal.reading import Recording, read_recording
from eblime.domains.signal.scene import SignalScene

__all__ = ["HIDES", "SEGMENTATIONS", "Hide", "Segmentation", "check_settings", "read_signal"]

Hide = str | float | NDArray[Any] | Callable[[FloatArray], Any]
HIDES = ("bridge", "mean", "zero", "noise")
_LONGEST = 2000  # points of the copy in which changes are looked for
_UNEVEN = 0.01  # of a step between samples, which bands allow


def windows(signal: FloatArray, *, n: int | None = None, width: int | None = None) -> Labels:
    """Equal stretches of time, over all channels: 20, `n`, or as many as have `width` samples."""
    samples = signal.shape[1]
    if n is not None and width is not None:
        raise ValueError("`segmentation` must have `n` or `width`, not both.")
    if width is None:
        count = min(20, samples) if n is None else n
        _check_fit("n", count, samples)
        cut = np.arange(samples) * count // samples
    else:
        _check_fit("width", width, samples - 1)
        cut = np.minimum(np.arange(samples) // width, max(1, round(samples / width)) - 1)
        cut = np.arange(samples) // width if cut.max() == 0 else cut
    return np.broadcast_to(cut, signal.shape)


def changes(
    signal: FloatArray, *, n: int | None = None, width: int | None = None, kernel: str = "rbf"
) -> Labels:
    """Up to `n` stretches of time between changes of the signal; `ruptures` finds them.

    `width` is the fewest samples of one. `kernel` is "rbf" for any change of the distribution,
    "linear" for one of the mean, or "cosine".
    """
    try:
        import ruptures
    except ImportError as error:
        raise ImportError(
            "segmentation='changes' needs ruptures: pip install 'eblime[signal]'."
        ) from error
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


def channels(signal: FloatArray) -> Labels:
    """Whole channels."""
    if len(signal) < 2:
        raise ValueError(
            "The signal must have at least 2 channels for segmentation='channels'; got 1. "
            "Use 'windows'."
        )
    return np.broadcast_to(np.arange(len(signal))[:, None], signal.shape)


def cells(signal: FloatArray, *, n: int | None = None, width: int | None = None) -> Labels:
    """Windows of each channel: 10 by default."""
    count = min(10, signal.shape[1]) if n is None and width is None else n
    cut = windows(signal, n=count, width=width)
    return np.asarray(cut + np.arange(len(signal))[:, None] * (cut.max() + 1))


def bands(
    found: Recording, *, n: int | None = None, edges: Sequence[float] | None = None
) -> FloatArray:
    """Frequency bands, (p, 2): 8 or `n` of the same width, or between `edges`.

    The edges are in cycles per unit of time, or per sample without times. Bands from 0 and up to
    half the sampling rate are added.
    """
    samples, steps = found.signal.shape[1], np.ones(1)
    if found.times is not None:
        steps = np.diff(found.times)
        if np.ptp(steps) > _UNEVEN * steps.mean():
            raise ValueError(
                "The samples must be evenly spaced in time for segmentation='bands'; the steps "
                f"are {f'{steps.min():g} to {steps.max():g} {found.unit}'.rstrip()}."
            )
    highest = 0.5 / steps.mean()
    if edges is None:
        count = min(8, samples // 2) if n is None else n
        _check_fit("n", count, samples // 2)
        ends = np.linspace(0, highest, count + 1)
    else:
        if n is not None:
            raise ValueError("`segmentation` must have `n` or `edges`, not both.")
        given = as_floats("edges", edges)
        rising = given.ndim == 1 and given.size and (np.diff(given) > 0).all()
        if not rising or given[0] < 0 or given[-1] > highest * (1 + 1e-9):
            raise ValueError(
                f"`edges` must increase from 0 to half the sampling rate, {highest:g}; "
                f"got {edges!r:.80}."
            )
        inner = given[(given > 0) & (given < highest * (1 - 1e-9))]
        ends = np.concatenate([[0.0], inner, [highest]])
    if len(ends) < 3:
        raise ValueError("The segmentation must find at least 2 frequency bands; got 1.")
    return np.stack([ends[:-1], ends[1:]], axis=1)


SEGMENTATIONS: dict[str, Callable[..., Any]] = {
    "windows": windows,
    "changes": changes,
    "channels": channels,
    "cells": cells,
    "bands": bands,
}


def _check_fit(name: str, value: int, most: int) -> None:
    """Refuse more or longer parts than a signal has room for."""
    if not 1 <= value <= most:
        raise ValueError(
            f"`{name}` in `segmentation` must be from 1 to {most} for this signal; got {value}."
        )


def check_settings(segmentation: Segmentation, hide: Hide) -> None:
    """Refuse settings that no signal can have."""
    check_cut(segmentation, hide, SEGMENTATIONS, HIDES, "(T,) or (C, T),", (1, 2))


def read_signal(
    source: Any,
    *,
    segmentation: Segmentation,
    hide: Hide,
    fade: int = 4,
    rate: float | None = None,
    channels: Sequence[str] | None = None,
) -> SignalScene:
    """Cut a signal into features; the settings are those of `SignalExplainer`."""
    found = read_recording(source, rate=rate, channels=channels)
    params: Mapping[str, Any] = {}
    if isinstance(segmentation, tuple):
        segmentation, params = segmentation
    own = labels = cut = None
    if isinstance(segmentation, str) and segmentation == "bands":
        cut = bands(found, **params)
    elif isinstance(segmentation, str):
        own = SEGMENTATIONS[segmentation](found.signal, **params)
    else:
        own = segmentation(found.signal.copy()) if callable(segmentation) else segmentation
    if cut is None:
        own, shape = np.asarray(own), found.signal.shape
        own = np.broadcast_to(own, shape) if own.shape == shape[1:] else own
        labels = relabel(own, shape, "signal's shape", "features", "('windows', {'n': 20})")
    hidden = hidden_signals(found.signal, labels, hide)
    if (hidden == found.signal).all():
        raise ValueError(
            "Hiding must change the signal; with this `hide` every hidden part looks like the "
            "shown one. Choose another, such as hide='zero' or hide='noise'."
        )
    return SignalScene(
        signal=found.signal,
        hidden=hidden,
        channels=list(found.channels),
        labels=labels,
        bands=cut,
        times=found.times,
        unit=found.unit,
        start=found.start,
        fade=fade,
        flat=found.flat and len(found.signal) == 1,
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
        if labels is None:
            return np.broadcast_to(signal.mean(axis=1, keepdims=True), signal.shape)[None].copy()
        return (_bridges if hide == "bridge" else _means)(signal, labels)[None]
    values = as_floats("hide", hide(signal.copy()) if callable(hide) else hide)
    shape = signal.shape
    if values.ndim == 0:
        values = np.full(shape, float(values))
    if values.ndim == 1 or (values.ndim == 2 and len(signal) == 1 and values.shape != shape):
        values = values.reshape(-1, 1, values.shape[-1])  # signals of one channel
    elif values.ndim == 2:
        values = values[None]
    if values.ndim != 3 or values.shape[1:] != shape or not len(values):
        raise ValueError(
            f"`hide` must have signals of the shape {shape} (channels, samples), or several of "
            f"them; got shape {values.shape}."
        )
    if not np.isfinite(values).all():
        raise ValueError("`hide` must be finite; it has NaN or infinities.")
    return np.ascontiguousarray(values)


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
    """The mean of each feature in each channel."""
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
