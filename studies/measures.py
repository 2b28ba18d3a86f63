"""Measures that only the studies use; the others are in `eblime.measures`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage, special

import eblime
from eblime._types import FloatArray, IntArray
from eblime.answers import Answers


def interval_of(e: eblime.Explanation) -> FloatArray:
    """The intervals of an explanation, (p, 2); LIME gets those of its ridge regression."""
    return e.posterior.interval() if e.posterior.has_spread else ridge_interval(e.answers)


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


def prediction_gap(
    importances: FloatArray,
    predict: Callable[[IntArray], ArrayLike],
    *,
    top: int,
    important: bool,
    prediction: float,
) -> float:
    """PGI and PGU: how far the prediction moves when some columns are perturbed.

    OpenXAI (Agarwal et al. 2022): the mean of `|f(x) - f(x')|` over perturbed rows x', which
    `predict` scores. PGI (`important`) perturbs the `top` columns of the largest absolute
    importance, and PGU the others.
    """
    order = np.argsort(-np.abs(importances), kind="stable")
    chosen = order[:top] if important else order[top:]
    return float(np.mean(np.abs(prediction - np.asarray(predict(np.sort(chosen))))))


def pointing_game(heat: FloatArray, region: NDArray[np.bool_], *, tolerance: int = 0) -> float:
    """Whether the pixels of the largest importance in a map, (H, W), lie in a region.

    Zhang et al. (2016): a hit if the maximum is within `tolerance` pixels of the region. The pixels
    of a superpixel tie; this is the probability of a hit for one of them drawn at random.
    """
    near = region
    if tolerance:
        rows, columns = np.ogrid[-tolerance : tolerance + 1, -tolerance : tolerance + 1]
        disc = rows**2 + columns**2 <= tolerance**2
        near = ndimage.binary_dilation(region, structure=disc)
    return float(near[heat == heat.max()].mean())


def relevance_mass(heat: FloatArray, region: NDArray[np.bool_]) -> float:
    """The share of the positive importance in a map, (H, W), that lies in a region.

    Relevance mass accuracy (Arras et al. 2022). 0 where nothing is positive.
    """
    positive = np.maximum(heat, 0)
    total = float(positive.sum())
    return float(positive[region].sum() / total) if total > 0 else 0.0


def max_sensitivity(importances: FloatArray, nearby: Sequence[FloatArray]) -> float:
    """The largest change of the importances over inputs near the input, as a share of their size.

    Yeh et al. (2019), divided by `|a(x)|` as in captum. NaN for importances of zero.
    """
    size = float(np.linalg.norm(importances))
    if not size > 0:
        return float("nan")
    return float(np.linalg.norm(np.asarray(nearby) - importances, axis=1).max() / size)
