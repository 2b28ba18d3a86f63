"""What the fit says about the score of any mask, with an interval; what the model answered."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from eblime._checks import as_floats, check_prob
from eblime._types import FloatArray
from eblime.results.notes import prediction_r2

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from eblime.results.explanation import Explanation


class Prediction(NamedTuple):
    """The scores of some masks as the fit predicts them, (n,) each.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.results import Prediction
    >>> found = Prediction(mean=np.array([0.5]), low=np.array([0.4]), high=np.array([0.6]))
    >>> found.high - found.low
    array([0.2])
    """

    mean: FloatArray
    low: FloatArray
    high: FloatArray


def predict(explanation: Explanation, masks: ArrayLike, prob: float) -> Prediction:
    """The fit's prediction for masks, (n, p) or (p,); see `Explanation.predict`."""
    check_prob("prob", prob)
    post = explanation.posterior
    wanted = check_shown(masks, explanation.answers.n_features)
    centre, cov, variance = spread_of(explanation)
    mean, away = post.intercept + wanted @ post.mean, wanted - centre
    spread = np.einsum("np,pq,nq->n", away, cov, away)
    half = NormalDist().inv_cdf(0.5 + prob / 2) * np.sqrt(np.maximum(spread, 0) + variance)
    return Prediction(mean, mean - half, mean + half)


def spread_of(explanation: Explanation) -> tuple[FloatArray, FloatArray, float]:
    """What the variance of a prediction consists of; zeros for a point estimate.

    The mean mask, (p,), the covariance of the importances and the scatter of single scores.
    """
    post, answers = explanation.posterior, explanation.answers
    centre = answers.weights @ answers.masks / answers.weights.sum()
    if not post.has_spread:
        return centre, np.zeros((len(centre), len(centre))), 0.0
    spread = np.cov(answers.scores, aweights=answers.weights, ddof=0)
    scatter = max(1 - prediction_r2(post), 0.0) * float(spread)  # of single scores about the fit
    return centre, post.cov, scatter * (1 + 1 / post.ess)


def asked(explanation: Explanation, mask: ArrayLike) -> float | None:
    """The model's answer for a mask; None if it was not asked, or has no single answer."""
    answers = explanation.answers
    (wanted,) = check_shown(mask, answers.n_features)
    if answers.fixed is not None:  # whether these are shown makes no difference
        wanted = np.where(answers.fixed, 1.0, wanted)
    masks, scores = known_answers(explanation)
    rows = np.flatnonzero((masks == wanted).all(axis=1))
    return float(scores[rows[0]]) if rows.size else None


def known_answers(explanation: Explanation) -> tuple[FloatArray, FloatArray]:
    """Masks with the model's own answer: the input, everything hidden, and those asked."""
    answers, p = explanation.answers, explanation.answers.n_features
    masks: list[FloatArray] = [np.ones((1, p))]
    scores: list[FloatArray] = [np.array([explanation.prediction])]
    if not answers.noisy:
        if answers.hidden is not None:
            fixed = np.zeros(p) if answers.fixed is None else answers.fixed
            masks.append(np.asarray(fixed, dtype=np.float64)[None])
            scores.append(np.array([answers.hidden]))
        masks, scores = [*masks, answers.masks], [*scores, answers.scores]
    return np.concatenate(masks), np.concatenate(scores)


def check_shown(masks: ArrayLike, p: int) -> FloatArray:
    """Masks of zeros and ones, (n, p)."""
    found = np.atleast_2d(as_floats("masks", masks))
    if found.ndim != 2 or found.shape[1] != p or not ((found == 0) | (found == 1)).all():
        raise ValueError(
            f"`masks` must be zeros and ones of shape (n, {p}), 1 for a feature that is shown; got "
            f"shape {np.shape(masks)}."
        )
    return found
