"""The loop: rounds, stop rules, shared calls, and methods with a law of their own."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from together import explain_together

import eblime
from eblime.designs.masks import bernoulli
from eblime.engine.explain import explanations
from eblime.engine.questions import PendingReply
from eblime.engine.session import Session
from eblime.laws import normal_law
from eblime.posterior import Posterior

TEXT = "one two three four five six seven eight nine ten"


def score(texts):
    """A score of words, and of one pair of them."""
    return [("two" in t) + 0.5 * ("seven" in t) - 0.3 * ("one" in t and "ten" in t) for t in texts]


@dataclass(frozen=True)
class Rounds:
    """Three rounds of 40 masks, of which the later show what looked important more often."""

    n_masks: int = 120

    def next(self, rng, answers):
        """Masks of the next round."""
        if answers.n_masks >= self.n_masks:
            return None
        masks = bernoulli(rng, 40, answers.n_features)
        if answers.n_masks:
            gain = np.abs(np.corrcoef(answers.masks.T, answers.scores)[-1, :-1])
            masks[:, np.argmax(np.nan_to_num(gain))] = 1
        return masks


@dataclass(frozen=True)
class LeastSquares:
    """Ordinary least squares with a normal law."""

    name: str = "least squares"

    def fit(self, rng, answers):
        """The estimate and its usual covariance."""
        design = np.column_stack([np.ones(answers.n_masks), answers.masks])
        inverse = np.linalg.pinv(design.T @ design)
        beta = inverse @ design.T @ answers.scores
        left = answers.scores - design @ beta
        cov = inverse * (left @ left) / max(1, answers.n_masks - len(beta))
        law = normal_law(beta[1:], cov[1:, 1:])
        return Posterior.from_law(law, answers, method=self.name)


def test_a_design_asks_in_rounds():
    """Later rounds see the answers of earlier ones, and nothing is asked twice."""
    asked = []

    def model(texts):
        asked.extend(texts)
        return score(texts)

    e = eblime.TextExplainer(model, design=Rounds()).explain(TEXT)

    assert len(e.masks) == 120
    assert e.provenance["rounds"] == 3
    assert e.provenance["model_calls"] == len(asked) <= 121
    assert_allclose(e.scores, score(e.scene.inputs(e.masks)))
    assert (e.masks[40:, e.posterior.mean.argmax()] == 1).mean() > 0.6


def test_a_stop_rule_ends_the_questions():
    """It is called after each round with posterior and answers; its reason is recorded."""
    seen = []

    def until(posterior, answers):
        seen.append(answers.n_masks)
        return "enough" if answers.n_masks >= 80 else None

    e = eblime.TextExplainer(score, design=Rounds()).explain(TEXT, until=until)

    assert seen == [40, 80]
    assert len(e.masks) == 80
    assert e.provenance["stopped"] == "enough"


def test_rounds_share_model_calls():
    """Inputs that ask in rounds share calls, with the numbers of explaining each alone."""
    texts = [TEXT, TEXT[4:], "two seven nine four three one"]
    calls = []

    def model(batch):
        calls.append(len(batch))
        return score(batch)

    explainer = eblime.TextExplainer(model, design=Rounds())
    subjects = [explainer.subject(text) for text in texts]
    rngs = [np.random.default_rng(k) for k in range(3)]
    together = explain_together(explainer.loop, subjects, 1, rngs)

    assert len(calls) == 3
    for k, (text, found) in enumerate(zip(texts, together, strict=True)):
        alone = explainer.explain(text, rng=np.random.default_rng(k))
        assert_array_equal(found[0].posterior.mean, alone.posterior.mean)
        assert_array_equal(found[0].masks, alone.masks)
        assert found[0].generator == alone.generator


def test_a_session_asks_and_takes_replies():
    """It has the next question, and no need of the model; any caller can answer it."""
    explainer = eblime.TextExplainer(score, n_masks=30)
    subject = explainer.subject(TEXT)
    session = Session.begin(explainer.loop, subject, 1, 0)
    question = session.question
    pending = PendingReply(question)
    scores = np.array(score(question.neighbourhood.inputs(pending.asked)))[:, None]
    pending.enter(slice(0, len(scores)), scores)

    assert session.step(pending.complete(batch_size=len(scores), calls=len(scores))) is None
    assert session.fit is None  # inputs of a run are fitted together
    found = explanations(session)[0].posterior.mean
    assert_array_equal(found, explainer.explain(TEXT).posterior.mean)


@pytest.mark.parametrize("explain", ["text", "table", "image"])
def test_a_law_of_ones_own_goes_everywhere(explain, tmp_path):
    """A method with a normal law is printed, exported, saved and drawn."""
    rng = np.random.default_rng(0)
    if explain == "text":
        e = eblime.TextExplainer(score, method=LeastSquares()).explain(TEXT)
    elif explain == "table":
        rows = rng.normal(size=(80, 4))
        e = eblime.TabularExplainer(
            lambda r: r[:, 0] - r[:, 2], rows, n_masks=200, method=LeastSquares()
        ).explain(rows[0])
    else:
        image = rng.integers(0, 256, (24, 24, 3), dtype=np.uint8)
        grid = ("grid", {"rows": 3, "columns": 4})
        model = lambda batch: batch[:, :12].mean(axis=(1, 2, 3))  # noqa: E731
        e = eblime.ImageExplainer(
            model, segmentation=grid, n_masks=200, method=LeastSquares()
        ).explain(image)
    post = e.posterior

    assert "least squares" in str(e)
    assert e.to_frame()["sd"].notna().all()
    assert '"least squares"' in e.to_json()
    assert "least squares" in e.to_html()
    assert post.ranking().order.shape == (post.n_features,)
    e.plot("intervals").figure.canvas.print_figure("/dev/null", format="png")
    with pytest.raises(eblime.core.NoSpreadError, match="no ridge parameter"):
        post.lam  # noqa: B018
    loaded = eblime.load(e.save(tmp_path / "e.eblime"))
    assert_allclose(loaded.posterior.mean, post.mean, atol=0.1 * post.sd.max() + 1e-12)
    assert loaded.posterior.method == "least squares"
    with pytest.raises(ValueError, match="not installed"):
        loaded.refit(loaded.method)


def test_an_empty_design_is_refused():
    """A design that asks about nothing gives a clear error."""

    class Nothing:
        def next(self, rng, answers):
            return None

    with pytest.raises(ValueError, match="at least one mask"):
        eblime.TextExplainer(score, design=Nothing()).explain(TEXT)


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (TEXT, {"n_masks": 50}),
        (TEXT, {"n_masks": 50, "method": "quadrature", "design": "bernoulli"}),  # asks both ends
        ("a good film", {}),  # all eight masks
    ],
)
def test_progress_ends_at_its_total(text, settings):
    """Whatever the design asks about."""
    seen = []
    explainer = eblime.TextExplainer(score, **settings)
    e = explainer.explain(text, progress=lambda *pair: seen.append(pair))

    assert seen[-1] == (len(e.masks), len(e.masks))


def test_progress_must_be_a_function_or_a_flag():
    """A wrong one is refused before the model is called."""
    calls = []
    explainer = eblime.TextExplainer(lambda texts: calls.append(texts) or score(texts))

    with pytest.raises(TypeError, match="`progress` must be"):
        explainer.explain(TEXT, progress=5)
    assert not calls


def test_a_seed_of_several_numbers_is_recorded_as_a_generator():
    """NumPy takes them."""
    e = eblime.TextExplainer(score, n_masks=30).explain(TEXT, rng=np.array([1, 2]))

    assert e.provenance["seed"] == "a generator"
