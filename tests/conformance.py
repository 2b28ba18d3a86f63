"""What every method, design, kernel, domain and plot kind must do, built in or not."""

import os
import warnings

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from problems import problem

import eblime
from eblime import registry
from eblime._digest import digest_of
from eblime.answers import Answers, Proposal
from eblime.designs.rounds import as_design
from eblime.kernels import as_kernel
from eblime.laws import DrawsLaw
from eblime.methods.regression import as_method
from eblime.protocols import INPUT_ITSELF, MaskedScene, RenderedScene

LEVELS = np.array([0.01, 0.3, 0.5, 0.8, 0.99])
TEXT = "a good film, a bad story and a happy end"
_RNG = np.random.default_rng(0)
ROWS = _RNG.random((60, 4))
IMAGE = _RNG.integers(0, 256, (12, 16, 3), dtype=np.uint8)


def _image():
    grid = ("grid", {"rows": 2, "columns": 4})
    model = lambda batch: batch[:, :6].mean(axis=(1, 2, 3))  # noqa: E731
    return eblime.ImageExplainer(model, segmentation=grid, n_masks=200), IMAGE


def _tabular():
    return eblime.TabularExplainer(lambda rows: rows[:, 0] - rows[:, 2], ROWS, n_masks=200), ROWS[0]


def _text():
    score = lambda texts: [("good" in text) + 0.1 * len(text) for text in texts]  # noqa: E731
    return eblime.TextExplainer(score, n_masks=200), TEXT


# for each domain: a function that returns an explainer and an input
SAMPLES = {"image": _image, "tabular": _tabular, "text": _text}


# ---------------------------------------------------------------- methods


def answers_of(kind):
    """Answers to fit: "small", "wide" (more features than masks), "constant" or "weighted"."""
    rng = np.random.default_rng(0)
    masks, scores, weights = problem(rng, *((6, 12) if kind == "wide" else (40, 4)))
    if kind != "weighted":
        weights = np.ones(len(masks))
    if kind == "constant":
        scores = np.full(len(masks), 0.3)
    return Answers(masks=masks, scores=scores, weights=weights)


def check_method(name, kind):
    """It fits, states its name, gives the same numbers again, and its law is consistent."""
    method, answers = as_method(name), answers_of(kind)
    post = method.fit(np.random.default_rng(1), answers)
    again = method.fit(np.random.default_rng(1), answers)

    assert post.method == method.name
    assert post.n_masks == answers.n_masks
    assert post.mean.shape == (answers.n_features,)
    assert np.isfinite(post.mean).all()
    assert_array_equal(post.mean, again.mean)
    assert post.r2 <= 1 + 1e-9
    assert method.name in post.table()
    if post.has_spread:
        check_law(post.law)


def check_law(law):
    """Quantiles, distribution function, probabilities and draws agree with each other."""
    x = law.quantile(LEVELS)
    near = 2 / len(law.draws.beta) if isinstance(law, DrawsLaw) else 1e-6
    summary, p = law.summary(0.95), law.n_features

    below = law.cdf(np.nextafter(x, -np.inf))
    assert np.isfinite(x).all(), f"quantiles must be finite; got {x}"
    assert (np.diff(x, axis=0) >= 0).all(), "quantiles must not fall as the level rises"
    assert (law.cdf(x) >= LEVELS[:, None] - near).all(), "cdf(quantile(q)) must reach q"
    assert (below <= LEVELS[:, None] + near).all(), "quantile(q) must be the smallest with cdf >= q"
    assert_allclose(summary["sd"], law.sd, rtol=1e-6)
    assert_allclose(
        np.stack([summary["low"], summary["high"]]), law.quantile(np.array([0.025, 0.975]))
    )
    assert_allclose(summary["prob_positive"], law.prob_positive(), atol=1e-9)
    low, high = law.hdi(0.95).T
    assert (law.cdf(high) - law.cdf(np.nextafter(low, -np.inf)) >= 0.95 - near).all()
    greater = law.prob_greater()
    assert_allclose(greater + greater.T, np.ones((p, p)), atol=1e-6)
    check_draws(law)


def check_draws(law, n=4000):
    """Mean and covariance of draws are those of the law, within standard errors."""
    beta = law.draw(np.random.default_rng(2), n).beta
    error = 6 * beta.std(axis=0) / np.sqrt(n) + 1e-12
    again = law.draw(np.random.default_rng(2), n).beta

    assert beta.shape == (n, law.n_features)
    assert (np.abs(beta.mean(axis=0) - law.mean) <= error).all()
    assert_array_equal(beta, again)
    assert_allclose(np.diag(law.cov), law.sd**2, rtol=1e-6, atol=1e-15)


def check_saved_method(name, path):
    """An explanation by the method comes back from a file with the same numbers."""
    explainer, x = _text()
    e = explainer.explain(x).refit(name)
    loaded = eblime.load(e.save(path))

    assert loaded.method == e.method
    assert_allclose(loaded.posterior.mean, e.posterior.mean, rtol=1e-9, atol=1e-12)
    if e.posterior.has_spread:
        ends = e.posterior.interval()
        assert_allclose(loaded.posterior.interval(), ends, rtol=1e-6, atol=1e-9)
    assert str(loaded) == str(e)


# ---------------------------------------------------------------- designs and kernels


def check_design(name, n_masks=33, p=5):
    """Zeros and ones, the input itself among them, reproducible, and it ends."""
    masks = asked_by(name, n_masks, p)

    assert masks.dtype == np.float64
    assert masks.shape[1] == p
    most = max(n_masks, 2**p)
    assert 1 <= len(masks) <= most, f"{name} must ask 1 to {most} masks; it asks {len(masks)}"
    assert np.isin(masks, (0, 1)).all(), f"{name} must ask masks of zeros and ones"
    assert (masks == 1).all(axis=1).any(), f"{name} must ask about the input itself, all ones"
    assert (masks == 0).any(axis=0).all(), f"{name} must hide each feature at least once"
    again = asked_by(name, n_masks, p)
    assert_array_equal(masks, again, f"{name} must ask the same masks for the same rng")


def asked_by(name, n_masks, p):
    """All masks that a design asks about, with answers that depend on two features."""
    design = as_design(name, n_masks, p, exact=False)
    rng, answers = np.random.default_rng(3), Answers.none([f"feature {j}" for j in range(p)])
    for _ in range(n_masks + 1):
        wanted = design.next(rng, answers)
        if wanted is None:
            return answers.masks
        masks = wanted.masks if isinstance(wanted, Proposal) else np.asarray(wanted)
        weights = wanted.sampling_weights if isinstance(wanted, Proposal) else np.ones(len(masks))
        scores = masks[:, 0] - 0.5 * masks[:, -1]
        answers = answers.append(masks, scores, weights, weights)
    raise AssertionError(f"{name} does not end")


def check_kernel(name):
    """Weights from 0 to 1, 1 at the input itself, one per mask, not larger if more is hidden.

    A kernel that treats shown and hidden features alike falls up to one half only.
    """
    masks = np.tril(np.ones((6, 5)), -1)[::-1]  # from all shown to all hidden
    weights = as_kernel(name)(masks)

    assert weights.shape == (6,), f"{name} must return one weight per mask"
    assert weights[0] == 1, f"{name} must give the input itself the weight 1; it gives {weights[0]}"
    assert ((weights >= 0) & (weights <= 1)).all(), f"{name} must return weights from 0 to 1"
    even = np.allclose(weights, weights[::-1])
    falls = (np.diff(weights[: 3 if even else 6]) <= 0).all()
    assert falls, f"{name} must not weigh a mask more because it hides more"


# ---------------------------------------------------------------- domains


def check_domain(name, sample, path):
    """Its record, its scene and its neighbourhood keep their contracts."""
    record = registry.find("domains", name)
    explainer, x = sample()
    subject = explainer.subject(x)

    assert record.name == name == explainer.domain == subject.scene.domain
    assert record.feature
    assert record.picture in registry.names("plots")
    assert isinstance(subject.scene, record.scene)
    assert len(subject.scene.features) == subject.scene.n_features
    record.check_scene(subject.scene)
    check_neighbourhood(subject, explainer.design)
    check_explanation(explainer, x, path)


def check_neighbourhood(subject, design):
    """It grows in steps, numbers its inputs from 0, and knows the input itself."""
    rng, p = np.random.default_rng(0), subject.scene.n_features
    first = subject.neighbourhood(rng)
    wanted = 3 if design is None else rng.integers(0, 2, (3, p)).astype(float)
    grown = first.extend(rng, wanted).extend(rng, wanted)

    assert len(first.masks) == 0
    assert grown.masks.shape == grown.closeness.shape == (6, p)
    if design is not None:
        assert_array_equal(grown.masks, np.concatenate([wanted, wanted]))
    scene = subject.scene
    assert isinstance(scene, (MaskedScene, RenderedScene)) or not grown.exact
    keys = grown.keys(np.array([INPUT_ITSELF, 0, 1, 2, 3, 4, 5]))
    assert all(isinstance(key, bytes) for key in keys)
    assert digest_of(grown.scope, own_classes=True) == digest_of(first.scope, own_classes=True)
    if grown.exact:  # the same mask is the same input
        assert keys[1:4] == keys[4:]
        assert len(set(keys[1:])) == len(np.unique(grown.masks, axis=0))
    if isinstance(scene, RenderedScene):  # a renderer writes its inputs
        batch = scene.batch(2)
        scene.renderer().render(np.ones((2, p)), batch)
        assert_array_equal(batch[0], batch[1])
    else:
        batch = grown.inputs(np.array([INPUT_ITSELF, 0, 5]))
        assert len(batch) == 3
        assert np.array_equal(grown.inputs(np.array([5]))[0], batch[2])
        assert list(grown.sizes) == sorted(set(grown.sizes))
        assert grown.room >= 1


def check_explanation(explainer, x, path):
    """It can be explained, printed, exported, shown, saved and loaded."""
    e = explainer.explain(x)
    loaded = eblime.load(e.save(path))

    assert e.prediction == e.answers.original
    assert all(len(values) == e.scene.n_features for values in e.details().values())
    assert str(loaded) == str(e)
    assert list(loaded.features) == list(e.features)
    assert list(loaded.to_frame().columns) == list(e.to_frame().columns)
    assert e.features[0] in e.to_frame()["feature"].to_list()
    assert "<!DOCTYPE html>" in loaded.to_html()
    assert loaded.to_json() == e.to_json()
    assert e._repr_html_()


# ---------------------------------------------------------------- plot kinds


def check_plot(kind, explanations):
    """It draws on new or given axes, changes nothing, and refuses what does not fit."""
    from matplotlib.figure import Figure

    drawn = 0
    for explanation in explanations:
        given, before = Figure().subplots(), explanation.posterior.mean.copy()
        try:
            fresh = explanation.plot(kind)
        except (TypeError, eblime.core.NoSpreadError):
            continue
        drawn += 1
        assert explanation.plot(kind, ax=given) is given
        assert fresh is not given
        assert len(given.get_children()) > 8
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fresh.figure.canvas.print_figure(os.devnull, format="png")
        assert_array_equal(explanation.posterior.mean, before)

    assert drawn, f"{kind} draws no explanation"
