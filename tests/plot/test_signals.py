"""A signal with its windows coloured, and its spectrogram with its bands."""

import dataclasses

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

import eblime
from eblime.domains.signal import SIGNAL, SignalScene
from eblime.plot.signals import picture_of
from eblime.plot.style import AGAINST, FAVOUR, STRONGEST, signed_shares, tick_shares


def explain(signal, model, **fields):
    """An explanation of a signal (C, T) whose features are given."""
    parts = np.zeros(signal.shape, dtype=np.intp)
    blank = {"parts": parts, "bands": None, "times": None, "unit": "", "start": "", "fade": 0}
    names = [f"channel {c}" for c in range(len(signal))]
    fields = {"channels": names, "hidden": np.zeros((1, *signal.shape))} | fields
    scene = SignalScene(signal=signal, **blank | fields)
    domain = dataclasses.replace(SIGNAL, read=lambda x: scene)
    return eblime.Explainer(model, domain, n_masks=120).explain(signal, rng=0)


def windows(channels=1, width=10):
    """A signal of ones in 4 windows per channel; the second raises, the fourth lowers the score."""
    n = 4 * width
    labels = np.arange(channels)[:, None] * 4 + np.arange(n) // width
    last = channels - 1
    noise = np.random.default_rng(1)

    def model(batch):
        up, down = batch[:, last, width : 2 * width], batch[:, last, 3 * width :]
        return up.mean(axis=1) - 0.5 * down.mean(axis=1) + 0.05 * noise.normal(size=len(batch))

    times = np.arange(n) / 10
    return explain(np.ones((channels, n)), model, parts=labels, times=times, unit="s")


def filled(ax):
    """Left edge, floor, colour and opacity of the boxes with a colour."""
    boxes = [p for p in ax.patches if isinstance(p, Rectangle) and p.get_fill()]
    return [(*p.get_xy(), p.get_facecolor()[:3], p.get_alpha()) for p in boxes]


def test_windows_have_the_colour_of_their_importance():
    """Green raises, orange lowers; the opacity is what is certain of the importance."""
    e = windows()
    found = filled(eblime.plot.signal_map(e))

    assert [box[0] for box in found] == pytest.approx([0, 1, 2, 3])
    assert found[1][2] == pytest.approx(to_rgb(FAVOUR))
    assert found[3][2] == pytest.approx(to_rgb(AGAINST))
    alphas = [box[3] for box in found]
    assert alphas == pytest.approx(STRONGEST * np.abs(signed_shares(e)))


def test_windows_are_hatched_where_the_interval_contains_zero():
    """One hatched box per such window; none for a point estimate."""
    e = windows()
    low, high = e.posterior.interval().T
    hatched = [p for p in eblime.plot.signal_map(e).patches if p.get_hatch()]

    assert [p.get_x() for p in hatched] == pytest.approx(np.flatnonzero((low < 0) & (high > 0)))
    plain = eblime.plot.signal_map(e.refit("lime"))
    assert not any(p.get_hatch() for p in plain.patches)
    assert "hatched" not in plain.get_title("left")


def test_channels_are_stacked_and_the_axis_has_its_unit():
    """The first channel is on top; names are tick labels."""
    ax = eblime.plot.signal_map(windows(3))
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    floors = ax.get_yticks()

    assert names == ["channel 0", "channel 1", "channel 2"]
    assert floors[0] > floors[2]
    assert ax.get_xlabel() == "time (s)"
    strongest = max(filled(ax), key=lambda box: box[3])
    assert strongest[:2] == pytest.approx((1, 0))  # the last channel


def test_of_many_channels_those_with_the_largest_importances_are_drawn():
    """And the title says so."""
    ax = eblime.plot.signal_map(windows(15))

    assert len(ax.get_yticklabels()) == 12
    assert ax.get_yticklabels()[-1].get_text() == "channel 14"
    assert "the 12 of 15 channels with the largest importances" in ax.get_title("left")


def test_long_signals_keep_their_extremes():
    """A spike of one sample is drawn at its height, with few points."""
    signal = np.zeros((1, 100_000))
    signal[0, 54_321] = 1.0
    labels = np.arange(100_000)[None] // 25_000
    e = explain(signal, lambda batch: batch.max(axis=(1, 2)), parts=labels)
    lane = picture_of(e).lanes[0]
    low, high = lane.ends

    assert len(lane.line) == 2000
    at, up = lane.line[lane.line[:, 1].argmax()]
    assert low + up * (high - low) == pytest.approx(1)
    assert at == pytest.approx(0.54321, abs=1e-3)


def test_bands_are_rows_of_the_spectrogram():
    """Each equally high, with its edges as ticks; the tone is dark in its band."""
    t = np.arange(2000) / 1000
    edges = np.array([0.0, 50, 100, 200, 500])
    bands = np.stack([edges[:-1], edges[1:]], axis=1)
    tone = np.sin(2 * np.pi * 150 * t)[None]
    power = lambda batch: (batch**2).mean(axis=(1, 2))  # noqa: E731
    e = explain(tone, power, bands=bands, times=t, unit="s")
    ax = eblime.plot.signal_map(e)
    shades = picture_of(e).lanes[0].shades

    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["0", "50", "100", "200", "500"]
    assert ax.get_yticks() == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert ax.get_ylabel() == "frequency (Hz)"
    assert shades.mean(axis=1).argmax() * 4 // len(shades) == 2
    assert max(filled(ax), key=lambda box: box[3])[1] == pytest.approx(0.5)


def test_tiles_are_cells_of_the_spectrogram():
    """The box of a tile is its window by its band; the loud one is green."""
    t = np.arange(2000) / 1000
    bands = np.array([[0, 100], [100, 300], [300, 500]])
    parts = np.arange(2000)[None] // 500
    burst = np.sin(2 * np.pi * 200 * t) * (parts == 2)
    power = lambda batch: (batch**2).mean(axis=(1, 2))  # noqa: E731
    e = explain(burst, power, parts=parts, bands=bands, times=t, unit="s")
    best = max(filled(eblime.plot.signal_map(e)), key=lambda box: box[3])
    boxes = picture_of(e).lanes[0].boxes

    assert best[:2] == pytest.approx((1, 1 / 3))
    assert len(boxes) == 12
    assert boxes[7][1:] == pytest.approx((0.5, 1 / 3, 0.25, 1 / 3))


def test_another_domain_is_refused():
    """The message says what is needed."""
    e = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one two")
    with pytest.raises(TypeError, match="needs a signal explanation"):
        eblime.plot.signal_map(e)


@pytest.mark.parametrize(
    ("ends", "texts"),
    [((0, 1), ["0", "0.2", "0.4", "0.6", "0.8", "1"]), ((-0.3, 2.9), ["0", "1", "2"])],
)
def test_ticks_are_round_numbers(ends, texts):
    """Between the ends, with their positions as shares."""
    found = tick_shares(*ends, 6 if ends[0] == 0 else 4)

    assert [text for _, text in found] == texts
    low, high = ends
    assert [low + at * (high - low) for at, _ in found] == pytest.approx([float(t) for t in texts])
