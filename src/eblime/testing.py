"""Checks of what every method, design, kernel, domain and plot must do, built in or not.

For the tests of a package that extends eblime: each raises an `AssertionError` if a rule is broken.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import ArrayLike

from eblime import registry
from eblime._types import FloatArray
from eblime.answers import Answers, Proposal
from eblime.core import NoSpreadError
from eblime.designs.rounds import as_design
from eblime.kernels import as_kernel
from eblime.laws import DrawsLaw
from eblime.methods.regression import as_method
from eblime.protocols import INPUT_ITSELF, Kernel, Law, MeanBatch, Method, Subject, is_rendered
from eblime.results.explanation import Explanation
from eblime.results.storage import load

_LEVELS = np.array([0.01, 0.3, 0.5, 0.8, 0.99])
_MASKS, _FEATURES = 100, 7  # of a design


def check_method(method: str | Method) -> None:
    """Check a method: fits of several shapes, a consistent law, the same numbers from a file.

    A method that is given by its name is also saved and loaded.

    Examples
    --------
    >>> from eblime.testing import check_method
    >>> check_method("lime")
    """
    found = as_method(method)
    for kind in ("small", "wide", "constant", "weighted"):
        answers = _answers(kind)
        post, again = (found.fit(np.random.default_rng(1), answers) for _ in range(2))
        _require(post.method == found.name, f"`method` must be {found.name!r}; got {post.method!r}")
        _require(post.mean.shape == (answers.n_features,), "there must be a mean for each feature")
        _require(np.isfinite(post.mean), f"means must be finite; got {post.mean}")
        assert_array_equal(post.mean, again.mean, "the same answers must give the same means")
        _require(post.r2 <= 1 + 1e-9, f"R^2 must be at most 1; got {post.r2}")
        if post.has_spread:
            check_law(post.law)
    if isinstance(method, str):
        from eblime.explainers.text import TextExplainer

        explainer = TextExplainer(lambda texts: [len(text) for text in texts], n_masks=200)
        e = explainer.explain("a good film, a bad story and a happy end")
        _check_explanation(e.refit(method))


def _answers(kind: str) -> Answers:
    """Answers to fit: "small", "wide" (more features than masks), "constant" or "weighted"."""
    rng, (n, p) = np.random.default_rng(0), (6, 12) if kind == "wide" else (40, 4)
    masks = rng.integers(0, 2, size=(n, p)).astype(float)
    masks[0] = 1
    scores = np.tanh(masks @ rng.normal(size=p)) + masks[:, 0] * masks[:, -1]
    weights = rng.uniform(0.2, 1.0, size=n) if kind == "weighted" else np.ones(n)
    scores = np.full(n, 0.3) if kind == "constant" else scores + 0.05 * rng.normal(size=n)
    return Answers(masks=masks, scores=scores, weights=weights)


def check_law(law: Law) -> None:
    """Check that quantiles, distribution function, probabilities and draws agree with each other.

    Examples
    --------
    >>> from eblime.laws import normal_law
    >>> from eblime.testing import check_law
    >>> check_law(normal_law([1.0, -1.0], [[1.0, 0.5], [0.5, 1.0]]))
    """
    x = law.quantile(_LEVELS)
    near = 2 / len(law.draws.beta) if isinstance(law, DrawsLaw) else 1e-6
    p = law.n_features
    below, reached = law.cdf(np.nextafter(x, -np.inf)), law.cdf(x)
    _require(np.isfinite(x), f"quantiles must be finite; got {x}")
    _require((np.diff(x, axis=0) >= 0), "quantiles must not fall as the level rises")
    _require((reached >= _LEVELS[:, None] - near), "cdf(quantile(q)) must reach q")
    _require(below <= _LEVELS[:, None] + near, "quantile(q) must be the smallest with cdf >= q")
    low, high = law.hdi(0.95).T
    inside = law.cdf(high) - law.cdf(np.nextafter(low, -np.inf))
    _require((inside >= 0.95 - near), "`hdi(0.95)` must hold 95 %")
    greater, n = law.prob_greater(), 4000
    assert_allclose(greater + greater.T, np.ones((p, p)), atol=1e-6)
    beta, again = (law.draw(np.random.default_rng(2), n).beta for _ in range(2))
    error = 6 * beta.std(axis=0) / np.sqrt(n) + 1e-12  # six standard errors
    _require(beta.shape == (n, p), f"draws must have shape {(n, p)}; got {beta.shape}")
    _require(np.abs(beta.mean(axis=0) - law.mean) <= error, "the mean of draws must be the mean")
    assert_array_equal(beta, again, "the same rng must give the same draws")
    assert_allclose(np.diag(law.cov), law.sd**2, rtol=1e-6, atol=1e-15)


def check_design(design: object) -> None:
    """Check a design: zeros and ones, the input itself among them, reproducible, and it ends.

    It is a name, a function of (rng, n_masks, p), a class that takes `n_masks`, or an object that
    asks about at most 100 masks.

    Examples
    --------
    >>> from eblime.testing import check_design
    >>> check_design("orthogonal")
    """
    masks, again = _all_masks(design), _all_masks(design)
    most = max(_MASKS, 2**_FEATURES)
    _require(masks.shape[1] == _FEATURES, f"masks must have p columns; got shape {masks.shape}")
    _require(1 <= len(masks) <= most, f"a design must ask 1 to {most} masks; it asks {len(masks)}")
    _require(np.isin(masks, (0, 1)), "masks must be zeros and ones")
    _require(bool((masks == 1).all(axis=1).any()), "the input itself, all ones, must be asked")
    _require((masks == 0).any(axis=0), "each feature must be hidden at least once")
    assert_array_equal(masks, again, "the same rng must give the same masks")


def _all_masks(design: object) -> FloatArray:
    """All masks that a design asks about, with answers that depend on two features."""
    made = as_design(design, _MASKS, _FEATURES, exact=False)
    names = [f"feature {j}" for j in range(_FEATURES)]
    rng, answers = np.random.default_rng(3), Answers.none(names)
    for _ in range(_MASKS + 1):
        wanted = made.next(rng, answers)
        if wanted is None:
            return answers.masks
        masks, weights = _masks_and_weights(wanted)
        scores = masks[:, 0] - 0.5 * masks[:, -1]
        answers = answers.append(masks, scores, weights, weights)
    raise AssertionError(f"a design must end after {_MASKS} masks: `next` must return None")


def _masks_and_weights(wanted: Proposal | ArrayLike) -> tuple[FloatArray, FloatArray]:
    if isinstance(wanted, Proposal):
        masks, weights = wanted.masks, wanted.sampling_weights
        fits = weights.shape == (len(masks),) and bool((weights >= 0).all())
        _require(fits, "`sampling_weights` must be one number >= 0 for each mask")
    else:
        masks = np.asarray(wanted)
        weights = np.ones(len(masks))
        varies = len(masks) < 16 or bool((np.ptp(masks, axis=0) > 0).all())
        _require(varies, "a round that always shows or hides a feature needs a `Proposal`")
    _require(masks.dtype == np.float64, f"masks must be float64; got {masks.dtype}")
    return masks, weights


def check_kernel(kernel: str | Kernel) -> None:
    """Check a kernel: one weight per mask, from 0 to 1, not larger if more is hidden.

    Examples
    --------
    >>> from eblime.testing import check_kernel
    >>> check_kernel(lambda closeness: 0.9 ** (1 - closeness).sum(axis=1))
    """
    masks = np.tril(np.ones((6, 5)), -1)[::-1]  # from all shown to all hidden
    weights = as_kernel(kernel)(masks)
    _require(weights.shape == (6,), f"a kernel must return one weight per mask; got {weights!r}")
    _require(weights[0] == 1, f"the input itself must have the weight 1; got {weights[0]}")
    _require(((weights >= 0) & (weights <= 1)), "weights must be from 0 to 1")
    even = np.allclose(weights, weights[::-1])  # treats shown and hidden alike: falls to the middle
    falls = np.diff(weights[: 3 if even else 6]) <= 0
    _require(falls, "a mask must not weigh more because it hides more")


def check_domain(explainer: Any, x: object) -> None:
    """Check a domain: its record, its scenes, its neighbourhoods, and an explanation of `x`.

    The domain must be registered.

    Examples
    --------
    >>> import eblime
    >>> from eblime.testing import check_domain
    >>> check_domain(eblime.TextExplainer(lambda texts: [len(t) for t in texts]), "one two three")
    """
    record, subject = registry.find("domains", explainer.domain), explainer.subject(x)
    scene = getattr(subject, "whole", None) or subject.scene
    _require(record.name == scene.domain, f"the scene must be of {record.name!r}")
    _require(bool(record.feature), "`feature` must say what a feature is called")
    _require(record.picture in registry.names("plots"), "`picture` must be a plot kind")
    _require(isinstance(scene, record.scene), "`scene` must be the class of the scenes")
    _require(len(scene.features) == scene.n_features, "there must be a name for each feature")
    record.check_scene(scene)
    _check_neighbourhood(subject, by_masks=explainer.design is not None)
    _check_explanation(explainer.explain(x))


def _check_neighbourhood(subject: Subject, *, by_masks: bool) -> None:
    """It grows in steps, numbers its inputs from 0, and knows the input itself."""
    scene = subject.scene
    rng, p = np.random.default_rng(0), scene.n_features
    first = subject.neighbourhood(rng)
    wanted = rng.integers(0, 2, (3, p)).astype(float) if by_masks else 3
    grown = first.extend(rng, wanted).extend(rng, wanted)
    _require(len(first.masks) == 0, "a neighbourhood must begin without inputs")
    shapes = grown.masks.shape == getattr(grown, "closeness", grown.masks).shape == (6, p)
    _require(shapes, "`masks` and `closeness` must have a row for each input")
    if isinstance(wanted, np.ndarray):
        assert_array_equal(grown.masks, np.concatenate([wanted, wanted]))
    keys = grown.keys(np.array([INPUT_ITSELF, 0, 1, 2, 3, 4, 5]))
    _require(all(isinstance(key, bytes) for key in keys), "`keys` must be bytes")
    if grown.exact:
        distinct = keys[1:4] == keys[4:] and len(set(keys[1:])) == len(np.unique(wanted, axis=0))
        _require(distinct, "a mask must have one key, and different masks different keys")
    if is_rendered(scene):  # a renderer writes its inputs
        batch = scene.batch(2)
        scene.renderer().render(np.ones((2, p)), batch)
        assert_array_equal(batch[0], batch[1])
        return
    inputs = grown.inputs(np.array([INPUT_ITSELF, 0, 5]))
    last = grown.inputs(np.array([5]))
    if isinstance(inputs, MeanBatch):
        same = len(inputs.sizes) == 3
        same &= np.array_equal(last.inputs, inputs.inputs[-int(last.sizes[0]) :])
    else:
        same = len(inputs) == 3 and np.array_equal(last[0], inputs[2])
    _require(same, "`inputs` must return the inputs asked for, each the same every time")
    _require(list(grown.sizes) == sorted(set(grown.sizes)), "`sizes` must rise")


def _check_explanation(e: Explanation) -> None:
    with tempfile.TemporaryDirectory() as folder:
        loaded = load(e.save(Path(folder) / "e.eblime"))
    _require(loaded.method == e.method, f"a file must keep {e.method!r}; got {loaded.method!r}")
    assert_allclose(loaded.posterior.mean, e.posterior.mean, rtol=1e-9, atol=1e-12)
    if e.posterior.has_spread:
        assert_allclose(loaded.posterior.interval(), e.posterior.interval(), 1e-6, 1e-9)
    _require(e.prediction == e.answers.original, "`prediction` must be the score of the input")
    lengths = [len(values) == e.scene.n_features for values in e.details().values()]
    _require(lengths, "`details` must have one value per feature")
    _require(str(loaded) == str(e), "the table of an explanation from a file must be the same")
    _require(list(loaded.features) == list(e.features), "a file must keep the names of features")
    _require(loaded.to_json() == e.to_json(), "the JSON of one from a file must be the same")
    _require("<!DOCTYPE html>" in loaded.to_html() and e._repr_html_(), "there must be a page")


def check_plot(kind: str, explanations: Iterable[Explanation]) -> None:
    """Check a plot kind: it draws on new or given axes, changes nothing, refuses what does not fit.

    It must draw at least one of the explanations, and refuse others with a `TypeError`.

    Examples
    --------
    >>> import eblime
    >>> e = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one two three")
    >>> eblime.testing.check_plot("intervals", [e])
    """
    from matplotlib.figure import Figure

    drawn = 0
    for explanation in explanations:
        given, before = Figure().subplots(), explanation.posterior.mean.copy()
        try:
            fresh = explanation.plot(kind)
        except (TypeError, NoSpreadError):
            continue
        drawn += 1
        _require(
            explanation.plot(kind, ax=given) is given, "a plot must return the axes it is given"
        )
        _require(len(given.get_children()) > 8, "nothing was drawn on the axes that were given")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fresh.figure.canvas.print_figure(os.devnull, format="png")
        assert_array_equal(explanation.posterior.mean, before, "a plot must change nothing")
    _require(drawn > 0, f"{kind!r} draws none of the explanations")


def _require(holds: ArrayLike, message: str) -> None:
    if not np.all(holds):
        raise AssertionError(f"{message}.")
