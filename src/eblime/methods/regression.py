"""`fit`: the regression alone, for people who have their masks and scores already."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from eblime._checks import check_choice, check_masks, check_scores, check_weights
from eblime._types import RNGLike
from eblime.core.posterior import Posterior
from eblime.methods.bayeslime import BayesLIME
from eblime.methods.eblime import EBLIME
from eblime.methods.lime import LIME
from eblime.protocols import Method

__all__ = ["METHODS", "as_method", "fit", "fit_targets"]

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
