"""Continuing an explanation."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import eblime
from eblime.domains import Domain
from eblime.domains.masked import MaskedSubject

TEXT = "one two three four five six seven eight nine ten eleven twelve"
ROWS = np.random.default_rng(0).normal(size=(100, 10))
ROW = ROWS[3] + 0.1  # in no column a value of the background
IMAGE = np.random.default_rng(0).random((16, 16))


class Model:
    """Counts what it is asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, batch):
        """Two scores."""
        if isinstance(batch, list):
            self.asked.extend(batch)
            one = np.array([("two" in t) + 0.5 * ("seven" in t) for t in batch])
        else:
            self.asked.extend(row.tobytes() for row in batch)
            one = batch.reshape(len(batch), -1)[:, :2].prod(axis=1)
        return np.stack([one, 1 - one**2], axis=1)


def made(kind, design=None):
    """An explainer, its model and an input."""
    model = Model()
    chosen = {} if design is None else {"design": design}
    if kind == "text":
        return eblime.TextExplainer(model, n_masks=150, **chosen), model, TEXT
    if kind == "table":
        return eblime.TabularExplainer(model, ROWS, n_masks=150, **chosen), model, ROW
    grid = ("grid", {"rows": 4, "columns": 4})
    return eblime.ImageExplainer(model, segmentation=grid, n_masks=150, **chosen), model, IMAGE


@pytest.mark.parametrize(
    ("kind", "design"),
    [
        ("text", None),
        ("text", "bernoulli"),
        ("image", "leverage"),
        ("table", None),
        ("table", "bernoulli"),
    ],
)
def test_more_is_one_fit_to_all_answers(kind, design):
    """Nothing is asked again, the first answers stay, and a second time gives the same."""
    explainer, model, x = made(kind, design)
    e = explainer.explain(x, 1, rng=5)
    more = e.more(60)

    assert len(model.asked) == len(set(model.asked)) == more.provenance["model_calls"]
    assert len(more.masks) == 210
    assert_array_equal(more.masks[:150], e.masks)
    assert_array_equal(more.scores[:150], e.scores)
    assert more.target == 1
    fitted = more.method.fit(np.random.default_rng(0), more.answers)
    assert_allclose(fitted.mean, more.posterior.mean, atol=1e-9)
    assert_allclose(fitted.sd, more.posterior.sd)
    assert_array_equal(e.more(60).masks, more.masks)
    assert len(more.more(10).masks) == 220


@pytest.mark.parametrize("kind", ["text", "image", "table"])
def test_a_loaded_explanation_needs_its_explainer_and_input(kind, tmp_path):
    """With them it continues as it would have without being saved."""
    explainer, _, x = made(kind)
    e = explainer.explain(x, 1)
    loaded = eblime.load(e.save(tmp_path / "e.eblime"))
    with pytest.raises(ValueError, match=r"`explainer` and `x` must be given"):
        loaded.more(60)
    more, again = e.more(60), loaded.more(60, explainer=explainer, x=x)

    assert_array_equal(again.masks, more.masks)
    assert_array_equal(again.posterior.mean, more.posterior.mean)
    assert again.label == more.label
    assert pickle.loads(pickle.dumps(e)).source is None


def test_another_input_or_model_is_refused(tmp_path):
    """The features, or the prediction, differ."""
    explainer, _, _ = made("text")
    loaded = eblime.load(explainer.explain(TEXT, 0).save(tmp_path / "e.eblime"))
    with pytest.raises(ValueError, match="`x` must be the explained input"):
        loaded.more(10, explainer=explainer, x="another text")
    other = eblime.TextExplainer(lambda texts: [[3.0, len(t)] for t in texts])
    with pytest.raises(ValueError, match="another model: its prediction is"):
        loaded.more(10, explainer=other, x=TEXT)


def test_after_all_masks_there_are_no_more():
    """An exhaustive explanation is complete."""
    e = made("text")[0].explain("one two three", 0)

    assert e.exhaustive
    with pytest.raises(ValueError, match="The model was asked about all masks"):
        e.more(5)


def test_a_refitted_explanation_continues_with_its_method():
    """And an interrupted one with the answers that it has."""
    explainer, _, x = made("text")
    more = explainer.explain(x, 0).refit("lime").more(20)
    short = explainer.explain(x, 0, calls=eblime.Calls(max_calls=60))

    assert more.posterior.method == eblime.fit(more.masks, more.scores, method="lime").method
    assert len(short.more(30).masks) == len(short.masks) + 30


def test_an_interrupted_explanation_of_a_noisy_input_continues():
    """Its masks are enough, also where chance is part of the answers."""
    scene = made("text")[0].subject(TEXT).scene
    domain = Domain(
        name="noisy",
        feature="word",
        scene=type(scene),
        read=lambda x: MaskedSubject(scene=scene, exact=False),
        design="bernoulli",
    )
    calls = eblime.Calls(max_calls=60)
    short = eblime.Explainer(Model(), domain, n_masks=150).explain(TEXT, 0, calls=calls)

    assert len(short.masks) < 150
    assert len(short.more(30).masks) == len(short.masks) + 30


@pytest.mark.parametrize("given", [{"explainer": made("text")[0]}, {"x": TEXT}])
def test_an_explainer_without_its_input_is_refused(given):
    """And an input without its explainer, rather than ignored."""
    explainer, _, x = made("text")
    with pytest.raises(ValueError, match="must be given together"):
        explainer.explain(x).more(10, **given)


def test_seconds_are_those_of_both_parts(monkeypatch):
    """The time between the two calls does not count."""
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    def slow(texts):
        now[0] += 1.0
        return [len(text) for text in texts]

    e = eblime.TextExplainer(slow, n_masks=50, calls=eblime.Calls(batch_size=100)).explain(TEXT)
    now[0] += 1000.0
    more = e.more(20)

    assert e.provenance["seconds"] == 1.0
    assert more.provenance["seconds"] == 2.0


def test_progress_counts_the_new_masks():
    """From none to all of them, also after a stop rule with its own estimate."""
    for settings in ({}, {"until": "width0.5"}):
        seen = []
        e = eblime.TextExplainer(Model(), design="bernoulli").explain(TEXT, **settings)
        if e.exhaustive:
            continue
        e.more(60, progress=lambda *pair, seen=seen: seen.append(pair))

        assert seen[0] == (0, 60)
        assert seen[-1] == (60, 60)


def test_a_design_may_return_lists():
    """As it may in the first round."""

    def draw(rng, n, p):
        return rng.integers(0, 2, size=(n, p)).tolist()

    e = eblime.TextExplainer(Model(), design=draw, n_masks=50).explain(TEXT)

    assert len(e.more(20).masks) == 70


def test_no_more_masks_are_asked_than_there_are():
    """Twelve words have 4,096 masks, ten columns 1,024."""
    explainer, model, x = made("text")
    e = explainer.explain(x)
    model.asked.clear()

    with pytest.raises(ValueError, match=r"at most 3,946; got 5,000\."):
        e.more(5000)
    row, _, x = made("table")
    with pytest.raises(ValueError, match=r"at most 874; got 875\."):
        row.explain(x).more(875)
    assert not model.asked


@pytest.mark.parametrize("method", ["eblime", "quadrature"])  # the second adds both ends
def test_more_orthogonal_masks_are_those_of_a_larger_design(method):
    """The array goes on, so that balance and accuracy are those of asking all at once."""
    words = " ".join(f"w{k}" for k in range(20))
    model = lambda texts: [len(t) for t in texts]  # noqa: E731
    first = eblime.TextExplainer(model, method=method, n_masks=64).explain(words, rng=3)
    e, whole = first.more(32).more(32), eblime.TextExplainer(model, method=method, n_masks=128)
    rows, expected = ({*map(bytes, f.masks.astype("u1"))} for f in (e, whole.explain(words, rng=3)))

    assert rows == expected
    assert len(rows) == len(e.masks)


@pytest.mark.parametrize(("design", "ends"), [("bernoulli", [1]), ("leverage", [1, 0])])
def test_more_masks_do_not_repeat_the_input(design, ends):
    """Nor everything hidden, where a design begins with both."""
    words = " ".join(f"w{k}" for k in range(20))
    model = lambda texts: [len(t) for t in texts]  # noqa: E731
    first = eblime.TextExplainer(model, design=design, n_masks=60).explain(words, rng=0)
    e = first.more(10)

    assert e.masks[: len(ends), 0].tolist() == ends
    assert len(e.masks) == 70
    added = e.masks[-10:].mean(axis=1)
    assert ((added > 0) & (added < 1)).all()
