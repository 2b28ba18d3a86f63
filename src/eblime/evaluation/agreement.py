"""How well repeated explanations of one input agree: VSI, CSI, overlap and signs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import special

from eblime._checks import check_count, check_level
from eblime._types import FloatArray
from eblime.answers import Answers
from eblime.core.agreement import (
    coefficient_stability,
    same_signs,
    top_features,
    top_jaccard,
    variable_stability,
)
from eblime.methods.lime import LIME

__all__ = ["Agreement", "agreement", "agreement_of", "ridge_interval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Agreement of repeated explanations; means over all pairs of runs, each from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> from eblime.evaluation.agreement import agreement
    >>> rng = np.random.default_rng(0)
    >>> masks = rng.integers(0, 2, size=(2, 60, 3))
    >>> runs = [eblime.fit(drawn, drawn @ [1.0, 0.5, 0.0]) for drawn in masks]
    >>> agreement(runs, top=2).vsi
    1.0
    """

    vsi: float  # variables stability index: the share of chosen features that two runs share
    csi: float  # coefficients stability index: the share of intervals that overlap
    overlap: float  # Jaccard index of the chosen features of two runs
    sign_flips: float  # share of features chosen by either run whose signs differ


def agreement(runs: Sequence[Any], *, top: int | None = None, prob: float = 0.95) -> Agreement:
    """Agreement of explanations of one input, or of their posteriors, made with different seeds.

    Parameters
    ----------
    runs
        At least two explanations or posteriors with the same features.
    top
        How many features a run chooses, by absolute importance; None is all of them.
    prob
        Probability of the intervals that are compared.

    Notes
    -----
    VSI and CSI are the indices of Visani et al. (2022), which lie between 0 and 100 there. CSI
    compares, for each feature that at least two runs chose, the intervals of those runs.
    Explanations by `LIME`, which has no intervals, get those of a weighted ridge regression
    (`ridge_interval`); posteriors by LIME alone have a CSI of NaN.

    Examples
    --------
    >>> import eblime
    >>> from eblime.evaluation.agreement import agreement
    >>> score = lambda texts: [("two" in t) - 0.5 * ("five" in t) for t in texts]
    >>> explainer = eblime.TextExplainer(score, n_masks=40)
    >>> runs = [explainer.explain("one two three four five six seven", rng=k) for k in range(4)]
    >>> agreement(runs, top=2)
    Agreement(vsi=1.0, csi=1.0, overlap=1.0, sign_flips=0.0)
    """
    check_level("prob", prob)
    posteriors = [getattr(run, "posterior", run) for run in runs]
    if len(posteriors) < 2:
        raise ValueError(f"`runs` must be at least 2 explanations; got {len(posteriors)}.")
    sizes = sorted({posterior.n_features for posterior in posteriors})
    if len(sizes) > 1:
        raise ValueError(
            f"`runs` must have the same features; got {sizes[0]} and {sizes[-1]} of them."
        )
    means = np.array([posterior.mean for posterior in posteriors])
    return agreement_of(means, np.array([_interval(run, prob) for run in runs]), top=top)


def agreement_of(means: FloatArray, intervals: FloatArray, *, top: int | None = None) -> Agreement:
    """Agreement of m runs by their importances, (m, p), and intervals, (m, p, 2)."""
    m, p = means.shape
    if m < 2:
        raise ValueError(f"`means` must have at least 2 rows, one per run; got {m}.")
    if top is not None:
        check_count("top", top)
    kept = min(top or p, p)
    chosen = np.array([top_features(run, kept) for run in means])
    pairs = list(combinations(means, 2))
    unknown = bool(np.isnan(intervals).any())
    return Agreement(
        vsi=variable_stability(chosen),
        csi=float("nan") if unknown else coefficient_stability(intervals, chosen),
        overlap=float(np.mean([top_jaccard(*pair, kept) for pair in pairs])),
        sign_flips=float(np.mean([1 - same_signs(*pair, kept) for pair in pairs])),
    )


def ridge_interval(answers: Answers, *, alpha: float = 1.0, prob: float = 0.95) -> FloatArray:
    """Confidence intervals of lime's weighted ridge regression, (p, 2).

    With X the centred masks, `sd^2` is the diagonal of `s^2 A X'WX A`, `A = (X'WX + alpha I)^-1`,
    where s^2 is the weighted residual sum of squares of least squares over N - p - 1.
    """
    weights, p = answers.weights, answers.n_features
    x = answers.masks - weights @ answers.masks / weights.sum()
    y = answers.scores - weights @ answers.scores / weights.sum()
    root = np.sqrt(weights)
    fit = np.linalg.lstsq(x * root[:, None], y * root, rcond=None)[0]
    free = np.count_nonzero(weights) - p - 1
    if free < 1:
        return np.full((p, 2), np.nan)
    s2 = float(weights @ (y - x @ fit) ** 2) / free
    gram = (x.T * weights) @ x
    inverse = np.linalg.solve(gram + alpha * np.eye(p), np.eye(p))
    beta = inverse @ (x.T @ (weights * y))
    half = special.ndtri((1 + prob) / 2) * np.sqrt(s2 * np.diag(inverse @ gram @ inverse))
    return np.stack([beta - half, beta + half], axis=1)


def _interval(run: Any, prob: float) -> FloatArray:
    """The intervals of a run, (p, 2); NaN where a point estimate comes without its answers."""
    posterior = getattr(run, "posterior", run)
    if posterior.has_spread:
        found: FloatArray = posterior.interval(prob)
        return found
    method = getattr(run, "method", None)
    if isinstance(method, LIME) and method.intercept == "flat":
        return ridge_interval(run.answers, alpha=method.alpha, prob=prob)
    return np.full((posterior.n_features, 2), np.nan)
