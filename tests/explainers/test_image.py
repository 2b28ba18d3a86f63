import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import eblime
from eblime.reporting.page import settings as described_settings

GRID = ("grid", {"rows": 3, "columns": 4})
IMAGE = np.random.default_rng(0).integers(1, 256, size=(24, 32, 3), dtype=np.uint8)
SIZES = np.linspace(-1, 1, 12)  # importances of the twelve cells


def linear(batch):
    """A weighted sum of the shown share of each cell, and its negative."""
    cells = batch.reshape(len(batch), 3, 8, 4, 8, -1).astype(float).sum(axis=(2, 4, 5))
    whole = IMAGE.reshape(3, 8, 4, 8, -1).astype(float).sum(axis=(1, 3, 4))
    score = 0.3 + (cells / whole).reshape(len(batch), 12) @ SIZES
    return np.column_stack([score, -score])


def explain(model=linear, image=IMAGE, target=0, rng=0, **settings):
    """A quick explanation of the small image."""
    defaults = {"segmentation": GRID, "hide": 0, "n_masks": 200}
    return eblime.ImageExplainer(model, **{**defaults, **settings}).explain(
        image, target=target, rng=rng
    )


@pytest.mark.parametrize("design", ["bernoulli", "orthogonal"])
@pytest.mark.parametrize("kernel", [None, "cosine", "hamming", "uniform"])
def test_known_importances_are_recovered(design, kernel):
    """A model that is linear in the masks: exact means and intercept, and R^2 = 1."""
    e = explain(design=design, kernel=kernel)
    post = e.posterior

    assert_allclose(post.mean, SIZES, atol=1e-5)
    assert_allclose(post.intercept, 0.3, atol=1e-5)
    assert post.r2 > 1 - 1e-8
    assert_allclose(e.prediction, 0.3 + SIZES.sum(), atol=1e-12)
    assert (post.interval()[:, 0] <= SIZES + 1e-6).all()


@pytest.mark.parametrize("segmentation", ["slic", "quickshift", "felzenszwalb", "grid"])
@pytest.mark.parametrize("hide", ["mean", "blur", 0])
def test_every_segmentation_and_hiding_finds_the_important_superpixels(segmentation, hide):
    """For a model that uses one part of a photo, only the superpixels there matter."""
    from skimage import data

    photo = data.astronaut()[:200:2, 100:300:2]
    e = explain(
        lambda batch: batch[:, 30:60, 30:60].astype(float).mean(axis=(1, 2, 3)),
        photo,
        segmentation=segmentation,
        hide=hide,
        n_masks=400,
    )
    inside = np.unique(e.scene.labels[30:60, 30:60])
    outside = np.setdiff1d(np.arange(e.scene.n_features), inside)
    size = np.abs(e.posterior.mean)

    assert size[outside].max(initial=0) < 0.02 * size[inside].max()


def test_the_target_defaults_to_the_highest_output():
    """A number or a label chooses another one."""
    assert explain(target=None).target == (0 if 0.3 + SIZES.sum() > 0 else 1)
    assert explain(target=1).posterior.mean == pytest.approx(-SIZES, abs=1e-5)
    named = explain(target="against", labels=["for", "against"])
    assert (named.target, named.label) == (1, "against")
    assert explain(labels={1: "against"}).label == "output 0"
    assert explain(labels={1: "against"}, target="against").target == 1


def test_several_targets_share_the_model_calls():
    """The numbers are the same as for a single target."""
    sizes = []

    def counted(batch):
        sizes.append(len(batch))
        return linear(batch)

    explainer = eblime.ImageExplainer(counted, segmentation=GRID, hide=0, n_masks=100)
    both = explainer.explain_targets(IMAGE, targets=2)
    alone = explain(n_masks=100, target=1)

    assert sum(sizes) == 101
    assert set(both) == {0, 1}
    assert_allclose(both[1].posterior.mean, alone.posterior.mean)
    assert list(explainer.explain_targets(IMAGE, targets=[1])) == [1]


def test_the_same_seed_gives_the_same_result():
    """For every batch size and for repeated calls; another seed gives other masks."""
    explainer = eblime.ImageExplainer(linear, segmentation=GRID, hide=0, n_masks=50)
    first = explainer.explain(IMAGE, rng=3)

    assert_array_equal(explainer.explain(IMAGE, rng=3).scores, first.scores)
    for size in (1, 7, 1000):
        other = explain(n_masks=50, rng=3, target=None, calls=eblime.Calls(batch_size=size))
        assert_array_equal(other.masks, first.masks)
        assert_allclose(other.scores, first.scores, atol=1e-12)  # the model's own rounding
    assert not np.array_equal(explainer.explain(IMAGE, rng=4).masks, first.masks)


def test_all_masks_are_scored_if_they_are_few():
    """2^4 masks instead of 200; the explanation reports it."""
    e = explain(lambda b: b.mean(axis=(1, 2, 3)), segmentation=("grid", {"rows": 2, "columns": 2}))

    assert len(e.masks) == 16
    assert e.exhaustive
    assert "the importances are exact" in str(e)
    assert "exact" not in str(explain())


def test_progress_is_reported(capsys):
    """A function gets (done, total) up to the end; True draws a bar on standard error."""
    calls = []
    explain(progress=lambda done, total: calls.append((done, total)))
    explain(progress=True)
    shown = capsys.readouterr()

    assert calls[-1] == (200, 200)
    assert calls == sorted(calls)
    assert "200/200" in shown.err
    assert shown.out == ""


def test_memory_is_bounded():
    """10,000 masks of a 224 x 224 photo take less than 256 MB."""
    photo = np.random.default_rng(0).integers(0, 256, size=(224, 224, 3), dtype=np.uint8)
    tracemalloc.start()
    e = explain(lambda b: b[:, 0, 0, :1], photo, segmentation="grid", n_masks=10_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert len(e.scores) == 10_000
    assert peak < 256e6


def test_refitting_needs_no_model():
    """It uses the stored scores."""
    e = explain()
    other = e.refit("bayeslime")

    assert other.posterior.method == "BayesLIME"
    assert_array_equal(other.scores, e.scores)
    assert_allclose(
        other.posterior.mean, eblime.fit(e.masks, e.scores, e.weights, "bayeslime").mean
    )


def test_the_frame_and_the_printed_table():
    """The frame has one row per feature; the table has the five most important ones."""
    pytest.importorskip("pandas")
    e = explain(labels=["for", "against"])
    frame = e.to_frame()

    numbers = ["feature", "mean", "sd", "low", "high", "prob_positive", "top_k"]
    assert list(frame.columns) == [*numbers, *e.details()]
    assert len(frame) == 12
    assert str(e).startswith("for: predicted 0.3")
    assert "superpixel 11" in str(e)
    assert "label='for'" in repr(e)
    assert e.provenance["model_calls"] == len(np.unique(e.masks, axis=0)) + 1 == 201


def test_more_superpixels_than_masks_give_a_warning():
    """With both numbers; the result is still finite."""
    message = r"more features \(12\) than masks that count \(\d\)"
    with pytest.warns(UserWarning, match=message) as caught:
        e = explain(n_masks=5)

    assert np.isfinite(e.posterior.mean).all()
    assert caught[0].filename == __file__


def test_warnings_about_several_targets_point_at_the_caller():
    """Not at a line of the library."""
    explainer = eblime.ImageExplainer(linear, segmentation=GRID, hide=0, n_masks=5)
    with pytest.warns(UserWarning, match="than masks that count") as caught:
        explainer.explain_targets(IMAGE, targets=2, rng=0)

    assert caught[0].filename == __file__


@pytest.mark.parametrize("setting", ["kernel", "design"])
def test_functions_are_named_without_their_address(setting):
    """So that the same settings give the same provenance in every process."""

    def by_count(masks):
        return masks.mean(axis=1)

    def by_coin(rng, n_masks, p):
        return rng.integers(0, 2, (n_masks, p)).astype(float)

    function = by_count if setting == "kernel" else by_coin
    e = explain(**{setting: function})

    assert e.provenance[setting] == {"name": function.__name__}
    described = dict(described_settings(e))["Weights" if setting == "kernel" else "Masks"]
    assert function.__name__ in described
    assert "<function" not in described


def count(model):
    """A model that counts its calls."""

    def counted(batch):
        counted.calls += 1
        return model(batch)

    counted.calls = 0
    return counted


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"image": np.zeros(3)}, ValueError, r"one image of shape"),
        ({"segmentation": "snake"}, ValueError, r"`segmentation` must be one of"),
        ({"hide": 300}, ValueError, r"between 0 and 255"),
        ({"n_masks": 0}, ValueError, r"`n_masks` must be >= 2; got 0"),
        ({"design": "all"}, ValueError, r"`design` must be one of"),
        ({"kernel": "flat"}, ValueError, r"`kernel` must be one of"),
        ({"method": "elime"}, ValueError, r"`method` must be one of"),
        ({"channels": "middle"}, ValueError, r"`channels` must be one of"),
        ({"kernel": lambda masks: masks}, ValueError, r"`weights` must have one entry"),
        ({"design": lambda rng, n, p: np.ones(3)}, ValueError, r"masks of shape \(N, "),
        ({"design": lambda rng, n, p: np.ones((n, p - 1))}, ValueError, r"of shape \(N, 12\)"),
        ({"design": lambda rng, n, p: -np.ones((n, p))}, ValueError, r"zeros and ones.*from -1 to"),
        ({"target": -1}, ValueError, r"`target` must be >= 0; got -1"),
        (
            {"labels": ["crane", "crane"], "target": "crane"},
            ValueError,
            r"several outputs, columns \[0, 1\]",
        ),
        ({"labels": "ab"}, TypeError, r"`labels` must be a list of names"),
        ({"labels": {"0": "for"}}, TypeError, r"from column number to name"),
        ({"progress": "yes"}, TypeError, r"`progress` must be True, False, None or a"),
        ({"segmentation": None}, TypeError, r"`segmentation` must be a name"),
        ({"segmentation": ("grid", {"rows": 0})}, ValueError, r"`rows` must be >= 1; got 0"),
        ({"target": 0.5}, TypeError, r"`target` must be a whole number, a label or None; got 0.5"),
        ({"target": "for"}, ValueError, r"`target` must be a column number if"),
        ({"target": "GAIN", "labels": ["for", "against"]}, ValueError, r"mean 'against'\?"),
    ],
)
def test_invalid_settings_are_refused_before_any_model_call(change, error, message):
    """Whether the constructor or `explain` refuses them."""
    model = count(linear)
    with pytest.raises(error, match=message):
        explain(model, **change)

    assert model.calls == 0


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"target": 2}, ValueError, r"`target` must be < 2, the number of outputs.*got 2"),
        ({"labels": ["for"]}, ValueError, r"name each of the model's 2 outputs; got 1"),
    ],
)
def test_invalid_targets_are_refused_after_one_model_call(change, error, message):
    """The number of outputs is known only after the first call."""
    model = count(linear)
    with pytest.raises(error, match=message):
        explain(model, **change)

    assert model.calls == 1


def broken(when, what):
    """A model that works until its call number `when`, and then does `what`."""

    def model(batch):
        model.calls += 1
        return linear(batch) if model.calls < when else what(batch)

    model.calls = 0
    return model


def fail(batch):
    """Raise an exception."""
    raise ZeroDivisionError("no such luck")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (
            lambda b: linear(b)[1:],
            r"scores of shape \(10, outputs\).*masks 19 to 28.*shape \(9, 2\)",
        ),
        (lambda b: linear(b)[:, :1], r"returned 2 before, and 1 for masks 19 to 28"),
        (lambda b: linear(b) * np.nan, r"for mask 19 output 0 is nan"),
        (lambda b: [["a", "b"]] * len(b), r"masks 19 to 28: .*must return scores; it returned"),
        (lambda b: np.zeros((len(b), 2, 2)), r"it returned shape \(10, 2, 2\)"),
        (fail, r"failed on masks 19 to 28: ZeroDivisionError: no such luck"),
    ],
)
def test_errors_of_a_model_name_the_masks(what, message):
    """The message says what was returned and what was expected; the cause is kept."""
    with pytest.raises(eblime.ModelError, match=message) as caught:
        explain(broken(3, what), calls=eblime.Calls(batch_size=10))

    if what is fail:
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_interrupting_leaves_the_explainer_usable():
    """Ctrl-C is raised, and the next call works."""

    def stop(batch):
        raise KeyboardInterrupt

    model = broken(3, stop)
    explainer = eblime.ImageExplainer(model, segmentation=GRID, hide=0, n_masks=50)
    with pytest.raises(KeyboardInterrupt):
        explainer.explain(IMAGE, target=0)
    model.calls = -1000

    assert_allclose(explainer.explain(IMAGE, target=0).posterior.mean, SIZES, atol=1e-4)


def test_a_batch_that_does_not_fit_into_memory_is_made_smaller():
    """Tuning stops at the last size that worked; with a fixed size the error is raised."""

    def model(batch):
        if len(batch) > 16:
            raise MemoryError("too large")
        return linear(batch)

    import eblime.engine.questions as batches

    clock = iter(np.cumsum(1 / np.arange(1, 10_000)))  # every batch is faster than the one before
    original = batches.time.perf_counter
    try:
        batches.time.perf_counter = lambda: next(clock)
        e = explain(model, n_masks=300)
    finally:
        batches.time.perf_counter = original

    assert e.provenance["batch_size"] <= 16
    assert_allclose(e.posterior.mean, SIZES, atol=1e-4)
    with pytest.raises(eblime.ModelError, match=r"MemoryError: too large"):
        explain(model, calls=eblime.Calls(batch_size=20))


@pytest.mark.parametrize("size", [16, None])
def test_scores_that_share_memory_are_copied(size):
    """For a model that returns a view of the batch, or reuses its output array."""
    buffer = np.empty((512, 2))

    def view(batch):
        return batch[:, 0, 0, :2]

    def reused(batch):
        buffer[: len(batch)] = linear(batch)
        return buffer[: len(batch)]

    for model in (view, reused):
        ours = explain(model, calls=eblime.Calls(batch_size=size))
        copied = explain(
            lambda batch, model=model: model(batch).copy(), calls=eblime.Calls(batch_size=size)
        )
        assert_allclose(ours.scores, copied.scores, atol=1e-12)


def test_scores_may_have_several_types():
    """Lists, data frames and half precision are accepted; complex numbers are refused."""
    pandas = pytest.importorskip("pandas")
    expected = explain().scores

    assert_allclose(explain(lambda b: linear(b).tolist()).scores, expected)
    assert_allclose(explain(lambda b: pandas.DataFrame(linear(b))).scores, expected)
    assert_allclose(explain(lambda b: linear(b).astype(np.float16)).scores, expected, atol=5e-3)
    with pytest.raises(eblime.ModelError, match=r"must return scores.* of complex"):
        explain(lambda b: linear(b) * 1j)


def test_a_first_batch_that_does_not_fit_into_memory_is_halved():
    """Until it fits."""

    def model(batch):
        if len(batch) > 1:
            raise MemoryError
        return linear(batch)

    e = explain(model, n_masks=30)

    assert e.provenance["batch_size"] == 1
    assert len(e.scores) == 30


def test_the_image_of_the_user_is_not_changed():
    """The explanation and a function as `hide` get copies."""
    image = IMAGE.copy()

    def black(pixels):
        pixels[:] = 0
        return pixels

    e = explain(image=image, hide=black)
    assert_array_equal(image, IMAGE)
    image[:] = 0
    assert_array_equal(e.scene.shown, IMAGE)


def test_a_very_narrow_kernel_gives_a_warning():
    """If too few masks carry weight."""
    with pytest.warns(UserWarning, match=r"more features \(12\) than masks that count"):
        explain(kernel=eblime.kernels.ExponentialKernel(width=0.2))


def test_regression_and_single_outputs():
    """One number per image needs no target."""
    e = explain(lambda batch: linear(batch)[:, 0], target=None)

    assert (e.target, e.label) == (0, "output")
    assert_allclose(e.posterior.mean, SIZES, atol=1e-5)


def test_the_fastest_batch_size_is_found():
    """Small batches for a model that is slow with large ones, and the other way round."""
    clock = {"now": 0.0}

    def timed(cost):
        def model(batch):
            clock["now"] += cost(len(batch))
            return linear(batch)

        return model

    import eblime.engine.questions as batches

    original = batches.time.perf_counter
    try:
        batches.time.perf_counter = lambda: clock["now"]
        small = explain(timed(lambda n: 0.02 * n if n <= 4 else 0.07 * n), n_masks=400)
        large = explain(timed(lambda n: 1.0 + 0.001 * n), n_masks=2000)
    finally:
        batches.time.perf_counter = original

    assert small.provenance["batch_size"] == 4
    assert large.provenance["batch_size"] >= 128


def test_an_image_is_cut_once(monkeypatch):
    """For several targets, choices and explanations; other pixels or settings are cut anew."""
    from skimage import segmentation

    cuts = []

    def slic(image, **settings):
        cuts.append(settings)
        return original(image, **settings)

    original = segmentation.slic
    monkeypatch.setattr(segmentation, "slic", slic)
    image = np.random.default_rng().integers(0, 256, size=(24, 32, 3), dtype=np.uint8)
    e = explain(image=image, segmentation="slic")
    again = explain(image=image.copy(), segmentation="slic", target=1)
    eblime.compare(linear, image, hide=["mean", "blur"], n_masks=100)
    assert len(cuts) == 1
    assert_array_equal(e.segments, again.segments)

    explain(image=image, segmentation=("slic", {"compactness": 5}))
    explain(image=image // 2, segmentation="slic")
    assert len(cuts) == 3
