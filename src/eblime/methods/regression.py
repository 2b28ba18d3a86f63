"""`fit`: the regression alone, for people who have their masks and scores already."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from eblime._checks import check_choice, check_masks, check_scores, check_weights
from eblime._types import FloatArray, RNGLike
from eblime.core.posterior import Posterior
from eblime.core.spectrum import effective_size
from eblime.methods.bayeslime import BayesLIME
from eblime.methods.eblime import EBLIME
from eblime.methods.lime import LIME
from eblime.protocols import Method

__all__ = ["METHODS", "as_method", "fit", "fit_answers", "fit_targets"]

_REPEATS = 5_000  # of the two masks that one feature has

METHODS: dict[str, Method] = {
    "eblime": EBLIME(),
    "eblime-paper": EBLIME.paper(),
    "bayeslime": BayesLIME(),
    "lime": LIME(),
}


def as_method(method: str | Method) -> Method:
    """Return the method of that name, or the object itself."""
    if isinstance(method, str):
        check_choice("method", method, tuple(METHODS))
        return METHODS[method]
    if isinstance(method, type) or not (hasattr(method, "fit") and hasattr(method, "name")):
        known = ", ".join(repr(name) for name in METHODS)
        raise TypeError(
            f"`method` must be one of {known} or an object such as EBLIME(); got {method!r}."
        )
    return method


def fit_answers(
    rng: np.random.Generator,
    method: Method,
    masks: FloatArray,
    scores: FloatArray,
    weights: FloatArray,
    *,
    exhaustive: bool,
) -> tuple[Posterior, ...]:
    """Fit every target, shape (N, T); `exhaustive` says that every mask was asked, each once.

    Notes
    -----
    With one feature and both its masks, a line goes through both answers whatever their weights:
    there is no sampling error and no lack of fit. Two rows leave no degree of freedom to see this,
    and the prior would decide. So both are repeated, as often as lime draws them, at one weight.
    """
    if not exhaustive or masks.shape[1] > 1:
        return method.fit(rng, masks, scores, weights)
    often = np.tile(masks, (_REPEATS, 1)), np.tile(scores, (_REPEATS, 1))
    fitted = method.fit(rng, *often, np.ones(len(masks) * _REPEATS))
    n, ess = len(masks), effective_size(weights)
    return tuple(dataclasses.replace(posterior, n_masks=n, ess=ess) for posterior in fitted)


def fit(
    masks: ArrayLike,
    scores: ArrayLike,
    weights: ArrayLike | None = None,
    method: str | Method = "eblime",
    *,
    rng: RNGLike = 0,
) -> Posterior:
    """Posterior of the feature importances, given what a model answered for N masks.

    Parameters
    ----------
    masks
        Shape (N, p): 1 where a feature is shown, 0 where it is hidden. Other numbers are taken as
        they are: an interpretable representation need not be binary.
    scores
        Shape (N,): the model's score for each mask, one target.
    weights
        Shape (N,): how near each mask is to the input explained; all ones if None.
    method
        "eblime", "eblime-paper", "bayeslime", "lime", or an object such as `EBLIME(scale=2.0)`.
    rng
        Seed or generator for the methods that draw; the exact ones ignore it.

    Returns
    -------
    Posterior
        Mean, intervals, probabilities, rankings and draws of the importances.

    Examples
    --------
    >>> import eblime
    >>> rng = np.random.default_rng(0)
    >>> masks = rng.integers(0, 2, size=(60, 3))
    >>> scores = 0.5 * masks[:, 0] - 0.2 * masks[:, 2] + 0.05 * rng.normal(size=60)
    >>> post = eblime.fit(masks, scores)
    >>> post.interval(0.95).round(2)
    array([[ 0.46,  0.51],
           [-0.03,  0.02],
           [-0.24, -0.18]])
    """
    checked = check_masks(masks)
    one = check_scores(scores, len(checked), ndim=1)[:, None]
    near = check_weights(weights, len(checked))
    return as_method(method).fit(np.random.default_rng(rng), checked, one, near)[0]


def fit_targets(
    masks: ArrayLike,
    scores: ArrayLike,
    weights: ArrayLike | None = None,
    method: str | Method = "eblime",
    *,
    rng: RNGLike = 0,
) -> tuple[Posterior, ...]:
    """Posteriors of several targets, scores of shape (N, T), from one decomposition of the masks.

    Parameters and method names are those of `fit`.
    """
    checked = check_masks(masks)
    many = check_scores(scores, len(checked), ndim=2)
    near = check_weights(weights, len(checked))
    return as_method(method).fit(np.random.default_rng(rng), checked, many, near)
