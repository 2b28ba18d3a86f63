"""Signals: reading, cutting, hiding, rendering, and planted truths."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.io import savemat, wavfile

import eblime
from eblime.domains.signal.reading import read_recording
from eblime.domains.signal.scene import hidden_signals, read_signal, split_bands


def never(batch):
    """A model that must not be asked."""
    raise AssertionError("the model was asked")


def slow_render(scene, mask):
    """The literal definition: each sample is shown by the shares of its features."""
    channels, n = scene.signal.shape
    out = np.empty((channels, n))
    for c in range(channels):
        own = scene.labels[c]
        cuts = [t for t in range(1, n) if own[t] != own[t - 1]]
        share = [{int(own[t]): 1.0} for t in range(n)]
        ends = [0, *cuts, n]
        for k, cut in enumerate(cuts, start=1):
            shorter = min(cut - ends[k - 1], ends[k + 1] - cut)
            half = min(scene.fade // 2, shorter // 2)
            for t in range(cut - half, cut + half):
                behind = np.sin(np.pi / 2 * (t - cut + half + 0.5) / (2 * half)) ** 2
                share[t] = {int(own[cut - 1]): 1 - behind, int(own[cut]): behind}
        for t in range(n):
            seen = sum(part * mask[j] for j, part in share[t].items())
            out[c, t] = seen * scene.signal[c, t] + (1 - seen) * scene.hidden[0, c, t]
    return out


@pytest.mark.parametrize("fade", [0, 4, 7])
@pytest.mark.parametrize(
    "segmentation", [("windows", {"n": 5}), ("cells", {"width": 6}), "channels", "own"]
)
def test_rendering_equals_its_definition(rng, segmentation, fade):
    """Fades, short features and several channels."""
    own = np.array([[0, 0, 1, 1, 1] * 6, [2] * 29 + [0]])
    cut = own if segmentation == "own" else segmentation
    scene = read_signal(rng.normal(size=(2, 30)), segmentation=cut, hide="mean", fade=fade)
    masks = rng.integers(0, 2, (6, scene.n_features)).astype(float)

    for mask, found in zip(masks, scene.inputs(masks), strict=True):
        assert_allclose(found, slow_render(scene, mask), atol=1e-12)
    assert_array_equal(scene.inputs(np.ones((1, scene.n_features)))[0], scene.signal)


def test_bands_add_up_and_hold_their_frequencies(rng):
    """All shown is the signal to the bit; all hidden is nothing; a tone is in its own band."""
    t = np.arange(1000) / 1000
    signal = np.sin(2 * np.pi * 60 * t) + 0.5 * np.sin(2 * np.pi * 310 * t)
    scene = read_signal(signal, segmentation=("bands", {"n": 5}), hide="bridge", rate=1000)
    parts = split_bands(scene.signal, scene.bands / 1000)

    assert scene.features[0] == "0-100 Hz"
    assert_array_equal(scene.inputs(np.ones((1, 5)))[0], signal)
    assert_allclose(scene.inputs(np.zeros((1, 5))), 0, atol=1e-12)
    assert_allclose(parts.sum(axis=0), scene.signal, atol=1e-12)
    middle = slice(100, 900)
    assert_allclose(parts[0, 0, middle], np.sin(2 * np.pi * 60 * t)[middle], atol=0.02)
    assert_allclose(parts[3, 0, middle], 0.5 * np.sin(2 * np.pi * 310 * t)[middle], atol=0.02)


@pytest.mark.parametrize("n", [2, 3, 7, 64])
def test_bands_of_short_signals_add_up(rng, n):
    """Down to two samples."""
    signal = rng.normal(size=(2, n))
    bands = np.array([[0, 0.1], [0.1, 0.2], [0.2, 0.5]])
    assert_allclose(split_bands(signal, bands).sum(axis=0), signal, atol=1e-12)


def test_rendering_of_tiles_equals_its_definition(rng):
    """A hidden tile takes away the share of its window in its band; all shown is the signal."""
    signal, settings = rng.normal(size=(2, 120)), {"windows": 4, "edges": [0.1, 0.2]}
    scene = read_signal(signal, segmentation=("tiles", settings), hide="zero")
    masks = rng.integers(0, 2, (6, 12)).astype(float)
    time = read_signal(signal, segmentation=("windows", {"n": 4}), hide="zero", fade=scene.fade)
    bands = split_bands(signal, scene.bands)
    ones = replace(time, signal=np.ones((2, 120)))

    assert scene.fade == 10
    for mask, found in zip(masks, scene.inputs(masks), strict=True):
        gone = (1 - mask).reshape(4, 3).T
        lost = sum(slow_render(ones, gone[b]) * bands[b] for b in range(3))
        assert_allclose(found, signal - lost, atol=1e-12)
    assert_array_equal(scene.inputs(np.ones((1, 12)))[0], signal)
    assert_allclose(scene.inputs(np.zeros((1, 12))), 0, atol=1e-12)


def test_names_and_places_of_tiles(rng):
    """The bands of a window follow each other; tiles of one window are bands."""
    signal = rng.normal(size=1000)
    cut = ("tiles", {"windows": 5, "bands": 2})
    scene = read_signal(signal, segmentation=cut, hide="mean", rate=1000)
    one = read_signal(signal, segmentation=("tiles", {"windows": 1, "bands": 3}), hide="mean")
    bands = read_signal(signal, segmentation=("bands", {"n": 3}), hide="mean")
    details, masks = scene.details(), rng.integers(0, 2, (4, 3)).astype(float)

    assert scene.features[:2] == ["0.00-0.20 s, 0-250 Hz", "0.00-0.20 s, 250-500 Hz"]
    assert [column[3] for column in details.values()] == [0.2, 0.4, "0", 250, 500]
    assert scene.labels is None
    assert one.features == bands.features
    assert_array_equal(one.inputs(masks), bands.inputs(masks))


def chirp(t, centre, frequency):
    """A pulse of 30 samples in which the frequency rises, as a complex number."""
    u = t - centre
    return np.exp(-0.5 * (u / 30) ** 2 + 2j * np.pi * (frequency * u + u**2 / 4000))


@pytest.mark.slow
def test_a_planted_chirp_is_found():
    """Among noise and three chirps at its time or frequency, the top tile touches it: 100 draws."""
    t, found = np.arange(2000), 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        centre, frequency = rng.uniform(150, 1850), rng.uniform(0.06, 0.44)
        later = (centre + rng.uniform(600, 1400)) % 2000
        higher = 0.06 + (frequency - 0.06 + rng.uniform(0.1, 0.28)) % 0.38
        places = [(a, b) for a in (centre, later) for b in (frequency, higher)]
        signal = rng.normal(size=2000) + sum(2 * chirp(t, *place).real for place in places)
        pattern = chirp(t, centre, frequency)
        size = np.abs(pattern @ pattern.real)
        model = lambda batch: 1 / (1 + np.exp(6 - 6 * np.abs(batch @ pattern) / size))  # noqa: B023, E731
        e = eblime.SignalExplainer(model, "tiles", n_masks=100).explain(signal, rng=seed)
        best, places = int(np.argmax(e.posterior.mean)), e.details()
        start, end, _, low, high = (column[best] for column in places.values())
        in_time = start < centre + 30 and centre - 30 < end
        found += in_time and low < frequency + 0.02 and frequency - 0.02 < high

    assert found >= 95


def test_a_planted_window_has_its_importance(rng):
    """A model that is linear in what the windows show has known importances."""
    signal, weights = rng.normal(size=400), rng.normal(size=400)
    model = lambda batch: batch @ weights  # noqa: E731
    explainer = eblime.SignalExplainer(model, ("windows", {"n": 8}), hide="zero", fade=0)
    e = explainer.explain(signal)
    truth = [(signal * weights)[50 * k : 50 * k + 50].sum() for k in range(8)]

    assert e.exhaustive
    assert_allclose(e.posterior.mean, truth, atol=1e-3 * np.abs(truth).max())


def test_a_planted_window_a_channel_and_a_band_are_found(rng):
    """Each is the most important one, with certainty, from 200 masks."""
    t = np.arange(600) / 600
    noise = rng.normal(size=(6, 600))
    signal = noise[0].copy()
    signal[300:330] += 5
    peak = lambda batch: 1 / (1 + np.exp(10 - 4 * batch[:, 300:330].mean(axis=1)))  # noqa: E731
    e = eblime.SignalExplainer(peak, n_masks=200).explain(signal)
    assert e.features[np.argmax(e.posterior.top_k_probability(1))] == "window 300-330"
    assert e.posterior.top_k_probability(1).max() > 0.95

    power = lambda batch: batch[:, 4].std(axis=1)  # noqa: E731
    e = eblime.SignalExplainer(power, "channels").explain(noise)
    assert e.features[np.argmax(e.posterior.top_k_probability(1))] == "channel 4"

    tone = np.sin(2 * np.pi * 130 * t) + 0.1 * noise[1]
    energy = lambda batch: np.abs(np.fft.rfft(batch)[:, 130])  # noqa: E731
    e = eblime.SignalExplainer(energy, ("bands", {"n": 8}), rate=600).explain(tone)
    best = int(np.argmax(e.posterior.top_k_probability(1)))
    low, high = e.scene.bands[best]
    assert low < 130 < high


def test_a_bridge_joins_the_ends_of_its_window():
    """It passes the first samples of the windows and the last one of the signal."""
    signal = np.array([[0.0, 9, 2, 9, 4, 9, 8]])
    labels = np.array([[0, 0, 1, 1, 2, 2, 2]])

    assert_allclose(hidden_signals(signal, labels, "bridge")[0], [[0, 1, 2, 3, 4, 6, 8]])
    assert_allclose(hidden_signals(signal, labels, "mean")[0], [[4.5, 4.5, 5.5, 5.5, 7, 7, 7]])


def test_noise_has_the_spectrum_of_the_signal(rng):
    """The same sizes of frequencies, for even and odd lengths, and always the same noise."""
    for n in (64, 65):
        signal = rng.normal(size=(2, n))
        noise = hidden_signals(signal, None, "noise")[0]
        assert_allclose(np.abs(np.fft.rfft(noise)), np.abs(np.fft.rfft(signal)), atol=1e-10)
        assert not np.allclose(noise, signal)
        assert_array_equal(noise, hidden_signals(signal, None, "noise")[0])


def test_a_background_set_is_averaged(rng):
    """The score of a mask is the mean over the signals of the set, and calls are counted."""
    signal, others = rng.normal(size=60), rng.normal(size=(5, 60))
    model = lambda batch: (batch[:, :20] ** 2).sum(axis=1)  # noqa: E731
    explainer = eblime.SignalExplainer(model, ("windows", {"n": 3}), hide=others, fade=0)
    e = explainer.explain(signal)
    hidden = e.scores[e.masks[:, 0] == 0]

    assert_allclose(hidden, model(others).mean())
    assert e.prediction == model(signal[None])[0]
    assert e.provenance["model_calls"] <= 5 * 8


def test_frames_and_series_keep_names_and_times(rng):
    """An index of dates or numbers in pandas, a column of times in polars."""
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    values = rng.normal(size=(48, 2))
    index = pd.date_range("2026-01-31 22:00", periods=48, freq="h")
    scene = read_signal(
        pd.DataFrame(values, columns=["x", "y"], index=index),
        segmentation=("cells", {"n": 4}),
        hide="zero",
    )
    assert scene.features[0] == "2026-01-31 22:00 to 2026-02-01 10:00, channel x"
    assert scene.start == "2026-01-31T22:00:00.000000000"

    frame = pl.DataFrame({"Time [ms]": np.arange(48) / 2, "x": values[:, 0], "y": values[:, 1]})
    found = read_recording(frame)
    assert (found.unit, list(found.channels)) == ("ms", ["x", "y"])
    assert_array_equal(found.signal, values.T)

    series = read_recording(pd.Series(values[:, 0], index=np.arange(48) * 0.1))
    assert series.flat
    assert_allclose(series.times, np.arange(48) * 0.1)
    assert read_recording(pl.Series("a", values[:, 0])).times is None
    zoned = pd.Series(values[:, 0], index=index.tz_localize("Europe/Berlin"))
    assert read_recording(zoned).start.startswith("2026-01-31T22:00")


def test_files_are_read(tmp_path, rng):
    """wav, csv, npy and mat."""
    values = rng.normal(size=(2, 50))
    np.save(tmp_path / "a.npy", values)
    savemat(tmp_path / "a.mat", {"scan": values.T, "fs": 10.0})
    wavfile.write(tmp_path / "a.wav", 100, (values.T * 1000).astype(np.int16))
    lines = [f"{t / 10},{a},{b}" for t, (a, b) in enumerate(values.T)]
    (tmp_path / "a.csv").write_text("\n".join(["time (s),x,y", *lines]))
    (tmp_path / "b.csv").write_text("\n".join(map(str, values[0])))

    assert_array_equal(read_recording(tmp_path / "a.npy").signal, values)
    assert_array_equal(read_recording(str(tmp_path / "a.mat")).signal, values)
    wave = read_recording(tmp_path / "a.wav")
    assert_allclose(wave.signal, np.trunc(values * 1000) / 32768)
    assert_allclose(wave.times[-1], 0.49)
    table = read_recording(tmp_path / "a.csv")
    assert_allclose(table.signal, values)
    assert (table.unit, list(table.channels)) == ("s", ["x", "y"])
    assert read_recording(tmp_path / "b.csv").flat


def test_samples_of_the_most_important_windows():
    """`mask` and `segments` have the shape (C, T); bands have no samples of their own."""
    signal = np.sin(np.arange(80.0)).reshape(2, 40)
    score = lambda batch: batch[:, 1, 10:20].sum(axis=1)  # noqa: E731
    cells = eblime.SignalExplainer(score, ("cells", {"n": 4}), hide=3.0, fade=0, n_masks=60)
    e = cells.explain(signal)
    low = e.mask(top=1, positive_only=False)

    assert e.segments.shape == (2, 40)
    assert np.argwhere(low).tolist() == [[1, t] for t in range(10, 20)]
    bands = eblime.SignalExplainer(score, "bands", n_masks=60).explain(signal)
    with pytest.raises(AttributeError, match="by parts of time or channels"):
        bands.mask()


def test_csv_files_as_pandas_and_spreadsheets_write_them(tmp_path, rng):
    """An index without a name is not a channel; semicolons come with decimal commas."""
    pd = pytest.importorskip("pandas")
    values = rng.normal(size=30).round(3)
    path = tmp_path / "a.csv"
    pd.DataFrame({"x": values, "y": -values}).to_csv(path)
    for source in (path, pd.read_csv(path)):
        found = read_recording(source)
        assert (list(found.channels), found.times) == (["x", "y"], None)
    dates = pd.date_range("2026-01-31", periods=30, freq="min")
    pd.DataFrame({"x": values}, index=dates).to_csv(path)
    found = read_recording(path)
    assert (found.flat, found.start[:10], found.times[1]) == (True, "2026-01-31", 60.0)
    for mark in ";\t":
        frame = pd.DataFrame({"Time [ms]": np.arange(30) / 2, "x,1": values})
        frame.to_csv(path, index=False, sep=mark, decimal=",")
        found = read_recording(path)
        assert_array_equal(found.signal[0], values)
        assert (list(found.channels), found.unit, found.times[1]) == (["x,1"], "ms", 0.5)
        frame.to_csv(path, index=False, sep=mark, decimal=",", header=False)
        assert read_recording(path).signal.shape == (2, 30)


def test_changes_are_found(rng):
    """Cuts at the changes of the mean; long signals are cut on a shorter copy."""
    pytest.importorskip("ruptures")
    signal = np.repeat([0.0, 5.0, 1.0], [1000, 500, 1500]) + 0.1 * rng.normal(size=3000)
    scene = read_signal(signal, segmentation=("changes", {"n": 3}), hide="mean")

    assert scene.details()["end"] == [1000, 1500, 3000]


ONES = np.sin(np.arange(40.0))


@pytest.mark.parametrize(
    ("signal", "settings", "message"),
    [
        (np.array([1.0, np.nan, 2.0]), {}, "must be finite; got nan at \\(1,\\)"),
        (np.array([]), {}, "of shape .* not be empty"),
        (np.ones((2, 3, 4)), {}, "one signal of shape"),
        (np.ones((1, 3, 4)), {}, "without the batch axis"),
        (ONES + 1j, {}, "np.abs"),
        ([1.0], {}, "at least 2 samples"),
        ([[1.0, 2.0], [1.0]], {}, "inhomogeneous shape"),
        (
            ONES,
            {"segmentation": ("windows", {"width": 41})},
            "`width` of .* <= 39; got 41",
        ),
        (ONES, {"segmentation": ("windows", {"n": 41})}, "`n` of .* <= 40; got 41"),
        (ONES, {"segmentation": ("windows", {"n": 1})}, "at least 2 features"),
        (ONES, {"segmentation": ("windows", {"n": 2, "width": 2})}, "not both"),
        (ONES, {"segmentation": "channels"}, "at least 2 features"),
        (ONES, {"segmentation": np.zeros(39, int)}, "signal's shape"),
        (ONES, {"segmentation": np.zeros(40)}, "whole numbers"),
        (ONES, {"segmentation": ("bands", {"edges": [0.2, 0.9]})}, "half the sampling rate"),
        (ONES, {"segmentation": ("bands", {"n": 1})}, "at least 2 frequency bands"),
        (np.arange(40.0), {}, "Hiding must change the signal"),
        (ONES, {"hide": np.ones((3, 41))}, "`hide` must have signals of the shape"),
        (ONES, {"hide": lambda x: x * np.nan}, "`hide` must be finite"),
        (ONES, {"channels": ["a", "b"]}, "`channels` must be 1 different names"),
        ("missing.wav", {}, "There is no file"),
        ("notes.txt", {}, "must end in .wav"),
    ],
)
def test_bad_signals_are_refused_before_the_model_is_asked(signal, settings, message):
    """Each message says what must hold and what came."""
    explainer = eblime.SignalExplainer(never, **settings)
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=message):
        explainer.explain(signal)


def test_columns_with_one_name_are_refused(rng):
    """No channel is lost where the number 1 and the text "1" are names."""
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="`columns` must be 2 different names"):
        read_recording(pd.DataFrame(rng.normal(size=(9, 2)), columns=[1, "1"]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"segmentation": "window"}, "`segmentation` must be one of 'windows'"),
        ({"segmentation": ("windows", {"m": 3})}, "those of 'windows', 'n', 'width'"),
        ({"segmentation": ("windows", {"n": 0})}, "`n` must be >= 1"),
        ({"segmentation": 3}, "must be a name"),
        ({"hide": "blur"}, "`hide` must be one of 'bridge'"),
        ({"fade": -1}, "`fade` must be >= 0"),
        ({"rate": 0}, "`rate` must be finite and > 0"),
        ({"layout": "rows"}, "`layout` must be one of 'auto'"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    """By the constructor."""
    with pytest.raises((ValueError, TypeError), match=message):
        eblime.SignalExplainer(never, **settings)


def test_times_that_do_not_fit_are_refused(rng):
    """Not increasing, uneven for bands, and a rate that differs from the signal's own."""
    pd = pytest.importorskip("pandas")
    values = rng.normal(size=10)
    times = np.arange(10.0)
    times[5] = 2
    with pytest.raises(ValueError, match="sample 5 does not come after"):
        read_recording(pd.Series(values, index=times))
    uneven = pd.Series(values, index=np.arange(10.0) ** 2)
    with pytest.raises(ValueError, match=r"evenly spaced .* 1 to 17\.$"):
        read_signal(uneven, segmentation="bands", hide="zero")
    with pytest.raises(ValueError, match="`rate` must be left out"):
        read_recording(pd.Series(values, index=np.arange(10) / 4), rate=5)


def test_a_transposed_signal_gets_a_warning(rng):
    """More channels than samples."""
    with pytest.warns(UserWarning, match=r"pass `signal.T`"):
        read_recording(rng.normal(size=(50, 3)))


def test_damaged_scenes_are_refused(rng):
    """Files are checked."""
    from eblime.domains.signal import SIGNAL

    good = read_signal(rng.normal(size=20), segmentation="windows", hide="zero")
    for changes in (
        {"parts": None},
        {"parts": good.parts + 1},
        {"bands": np.array([[0.0, 0.1], [0.2, 0.5]])},
        {"bands": np.array([[0.0, 0.1, 0.5]])},
        {"times": np.zeros(20)},
        {"hidden": good.hidden[:, :, 1:]},
        {"flat": 1},
    ):
        with pytest.raises(ValueError, match="SignalScene"):
            SIGNAL.check_scene(replace(good, **changes))


def test_names_without_warnings_for_negative_times():
    """A dash would look like a sign."""
    pd = pytest.importorskip("pandas")
    series = pd.Series(ONES, index=np.arange(40) / 10 - 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scene = read_signal(series, segmentation=("windows", {"n": 2}), hide="zero")
    assert scene.features == ["-2.0 to 0.0", "0.0 to 2.0"]


def test_matlab_files_of_version_7_3_and_their_refusals(tmp_path, rng):
    """They are HDF5 with the axes reversed; a file with two arrays is refused by name."""
    h5py = pytest.importorskip("h5py")
    values = rng.normal(size=(2, 40))
    path = tmp_path / "a.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["scan"] = values.T
        file["rate"] = [[100.0]]
    with path.open("r+b") as opened:
        opened.write(b"MATLAB 7.3 MAT-file")
    savemat(tmp_path / "two.mat", {"a": values, "b": values, "name": "pump"})

    assert_array_equal(read_recording(path).signal, values)
    with pytest.raises(ValueError, match=r"two\.mat' must have one array of 1 or 2 axes"):
        read_recording(tmp_path / "two.mat")


def test_a_rate_in_megahertz_gives_microseconds():
    """Names of windows and bands are those of the shop floor."""
    signal = np.sin(np.arange(100))
    made = {"segmentation": ("windows", {"n": 10}), "hide": 0}
    scene = read_signal(signal, rate=12.5e6, **made)
    bands = read_signal(signal, rate=12.5e6, segmentation=("bands", {"n": 5}), hide=0)

    assert scene.features[4] == "3.20-4.00 us"
    assert bands.features[1] == "1.2-2.5 MHz"
    assert read_signal(signal, rate=500_000, **made).unit == "s"


def test_an_array_of_a_mat_file_is_chosen_by_its_name(tmp_path):
    """Without one the message lists the arrays."""
    from scipy import io

    path = tmp_path / "scan.mat"
    io.savemat(path, {"echo": np.arange(50.0), "gate": np.arange(30.0)})
    made = {"segmentation": "windows", "hide": 0}

    assert read_signal(path, key="gate", **made).n_samples == 30
    with pytest.raises(ValueError, match=r"`key` must name one; it has 'echo' \(1, 50\)"):
        read_signal(path, **made)
    with pytest.raises(ValueError, match=r"`key` must be an array in .*'echo'"):
        read_signal(path, key="noise", **made)
    with pytest.raises(ValueError, match=r"`key` is for .mat files"):
        read_signal(tmp_path / "scan.csv", key="gate", **made)
