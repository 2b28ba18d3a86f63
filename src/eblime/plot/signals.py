"""A signal with its windows coloured by importance, or its spectrogram with bands or tiles.

`picture_of` says what is drawn, for plots, pages and thumbnails alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime._types import FloatArray
from eblime.plot import style
from eblime.results.explanation import Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CHANNELS = 12  # drawn at most
_COLUMNS = 1000  # of a long signal: in each, a line from its least to its largest value
_BOXES = 400  # of a channel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lane:
    """One channel, or one spectrogram; positions are shares of its width and height."""

    name: str
    ends: tuple[float, float]  # the values at its lower and upper edge
    boxes: list[tuple[int, float, float, float, float]]  # feature, left, lower, width, height
    line: FloatArray = field(default_factory=lambda: np.empty((0, 2)))  # across and up
    dense: bool = False  # whether the line goes from the least to the largest of many samples
    shades: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    """Of a spectrogram from 0 to 1, the first row below."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picture:
    """What is drawn of a signal."""

    lanes: list[Lane]
    ends: tuple[float, float]  # the times at the left and right edge
    time: str  # what they are
    across: list[tuple[float, str]]  # ticks: position from 0 to 1, and number
    up: list[tuple[float, str]]  # ticks of the only lane
    value: str  # what these are
    note: str  # what is left out; empty if nothing is


def picture_of(explanation: Explanation) -> Picture:
    """The lanes of a signal; of many channels, those with the largest importances."""
    style.needs_domain(explanation, "signal", 'plot("signal")')
    scene: Any = explanation.scene
    ends = (float(scene.edges[0]), float(scene.edges[-1]))
    mean = np.abs(explanation.posterior.mean)
    note, n = "", len(scene.channels)
    if scene.bands is not None:
        edges = np.append(scene.bands[:, 0], scene.bands[-1, 1])
        some = range(0, len(edges), -(-len(edges) // 13))  # at most about 13
        lanes, up = [_spectrogram(scene)], [(k / (len(edges) - 1), f"{edges[k]:.4g}") for k in some]
        value = f"frequency ({scene.frequency_unit})"
        note = f"mean power of {n} channels" if n > 1 else ""
    else:
        largest = np.array([mean[np.unique(row)].max() for row in scene.labels])
        chosen = np.sort(np.argsort(-largest, kind="stable")[:_CHANNELS])
        if n > _CHANNELS:
            note = f"the {_CHANNELS} of {n} channels with the largest importances"
        lanes = [_lane(scene, int(c)) for c in chosen]
        up = style.tick_shares(*lanes[0].ends, 5)
        value = "" if n > 1 else "amplitude" if scene.channels[0].isdigit() else scene.channels[0]
    unit = "µs" if scene.unit == "us" else scene.unit
    time = f"time ({unit})" if unit else "sample" if scene.times is None else "time"
    time += f" after {scene.start.replace('T', ' ')}" if scene.start else ""
    across = style.tick_shares(*ends, 6)
    return Picture(lanes=lanes, ends=ends, time=time, across=across, up=up, value=value, note=note)


def _lane(scene: Any, c: int) -> Lane:
    """One channel as a line, and the runs of samples with the same feature as boxes."""
    edges = (scene.edges - scene.edges[0]) / (scene.edges[-1] - scene.edges[0])
    values, labels = scene.signal[c], scene.labels[c]
    room = 0.06 * (float(np.ptp(values)) or 1.0)
    low, high = float(values.min()) - room, float(values.max()) + room
    n = len(values)
    at = (edges[1:] + edges[:-1]) / 2
    dense = n > 2 * _COLUMNS
    if dense:
        starts = np.linspace(0, n, _COLUMNS, endpoint=False).astype(np.intp)
        at = np.repeat(edges[starts], 2)
        values = np.stack(
            [np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)], axis=1
        ).ravel()
    line = np.stack([at, (values - low) / (high - low)], axis=1)
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(labels)) + 1, [n]])
    if len(cuts) > _BOXES:  # narrower than can be seen: some of them stand for all
        cuts = np.linspace(0, n, _BOXES, dtype=np.intp)
    boxes = [
        (int(labels[a]), float(edges[a]), 0.0, float(edges[b] - edges[a]), 1.0)
        for a, b in pairwise(cuts.tolist())
    ]
    return Lane(name=scene.channels[c], ends=(low, high), boxes=boxes, line=line, dense=dense)


def _spectrogram(scene: Any) -> Lane:
    """Power in decibels by time and frequency, each band equally high; features as boxes."""
    from scipy import signal

    n, bands = scene.n_samples, scene.bands
    narrow = scene.rate / np.diff(bands, axis=1).min()  # samples in a period of its width
    longest = min(n, 2048)
    window = int(np.clip(2 * narrow, min(64, longest), max(longest // 4, min(64, longest))))
    hop = max(1, window // 8, n // _COLUMNS)
    whole = np.pad(scene.signal, ((0, 0), (window // 2,) * 2), "reflect", reflect_type="odd")
    frequencies, _, power = signal.spectrogram(
        whole, scene.rate, nperseg=window, noverlap=window - hop, detrend="linear"
    )
    level = 10 * np.log10(power.mean(axis=0) + 1e-300)
    floor = max(float(np.median(level)), level.max() - 60)
    level = np.clip((level - floor) / max(level.max() - floor, 1e-9), 0, 1)  # above the median
    edges = np.append(bands[:, 0], bands[-1, 1])
    rows = np.interp((np.arange(240) + 0.5) / 240, np.linspace(0, 1, len(edges)), edges)
    nearest = np.abs(rows[:, None] - frequencies).argmin(axis=1)
    p, known, whole_time = len(bands), scene.details(), scene.edges[[0, -1]]
    times = [known.get(end, [t] * p) for end, t in zip(("start", "end"), whole_time, strict=True)]
    left, right = np.interp(times, whole_time, [0, 1]).tolist()
    boxes = [(j, left[j], j % p / p, right[j] - left[j], 1 / p) for j in range(len(left))]
    ends = (float(bands[0, 0]), float(bands[-1, 1]))
    return Lane(name="", ends=ends, boxes=boxes, shades=level[nearest])


def signal_map(explanation: Explanation, *, ax: Axes | None = None) -> Axes:
    """The signal: windows in green raise the score, those in orange lower it.

    The colour is stronger where the importance is larger. A window is hatched, without colour, if
    its 95 % interval contains zero. Channels are drawn one above the other; of more than
    twelve, those with the largest importances. Frequency bands and tiles are drawn on the
    spectrogram, each band equally high.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> first = lambda batch: batch[:, :10].mean(axis=1)
    >>> explainer = eblime.SignalExplainer(first, segmentation=("windows", {"n": 5}), hide="zero")
    >>> e = explainer.explain(np.ones(50), rng=0)
    >>> eblime.plot.signal_map(e).get_xlabel()
    'sample'
    """
    from matplotlib.patches import Rectangle

    picture = picture_of(explanation)
    shares, unsure = style.signed_shares(explanation), style.uncertain(explanation)
    drawn = style.axes(ax, signal_size(explanation))
    start, span = picture.ends[0], picture.ends[1] - picture.ends[0]
    n = len(picture.lanes)
    for k, lane in enumerate(picture.lanes):
        floor = n - 1 - k
        if lane.shades.size:
            extent = (*picture.ends, 0, 1)
            grey: Any = {"cmap": "gray_r", "vmin": 0, "vmax": 1.3}
            drawn.imshow(lane.shades, extent=extent, aspect="auto", origin="lower", **grey)
        for j, left, lower, width, height in lane.boxes:
            box = (start + span * left, floor + lower), span * width, height
            shade = {
                "color": style.sign_colour(shares[j]),
                "alpha": style.STRONGEST * abs(shares[j]),
                "lw": 0,
            }
            frame = {"fill": False, "ec": style.NEUTRAL, "alpha": 0.35}
            looks: Any = [shade, {**frame, "lw": 0.5}]
            looks += [{**frame, "hatch": "////", "lw": 0}] * bool(unsure[j])
            for look in looks:
                drawn.add_patch(Rectangle(*box, **look))
        thin: Any = {"lw": 0.4, "alpha": 0.6} if lane.dense else {"lw": 0.9}
        at, up = lane.line.T
        drawn.plot(start + span * at, floor + up, color=style.INK, **thin)
        if k:
            drawn.axhline(floor + 1, color=style.NEUTRAL, lw=0.6)
    drawn.set(
        xlim=picture.ends, ylim=(0, n), xlabel=picture.time, ylabel=style.caption(picture.value)
    )
    ticks = picture.up
    if n > 1:
        ticks = [
            (n - k - 0.5, style.caption(lane.name, 16)) for k, lane in enumerate(picture.lanes)
        ]
    drawn.set_yticks([at for at, _ in ticks], [text for _, text in ticks])
    drawn.tick_params(labelsize="small")
    style.clean(drawn)
    style.sign_bar(drawn, explanation.posterior)
    words = "green raises, orange lowers"
    words += "; hatched: the 95 % interval contains zero" * explanation.posterior.has_spread
    style.title(drawn, explanation, words, picture.note)
    return drawn


def signal_size(explanation: Explanation) -> tuple[float, float]:
    """The size in inches that `signal_map` needs for the signal."""
    scene: Any = explanation.scene
    lanes = min(_CHANNELS, len(scene.channels))
    return 8.0, 3.4 if scene.bands is not None else 1.0 + max(1.6, 0.62 * lanes)
