"""Measures of faithfulness: whether the model behaves as the importances say.

`attribution` has one number per feature, (p,). `game` is the score as a function of masks. Each
docstring has the literal definition and its source, and says where we depart from it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from eblime._types import FloatArray, IntArray

__all__ = [
    "HIGHER_IS_BETTER",
    "comprehensiveness",
    "deletion_auc",
    "infidelity",
    "insertion_auc",
    "max_sensitivity",
    "pointing_game",
    "prediction_gap",
    "relevance_mass",
    "sufficiency",
]

Score = Callable[[FloatArray], FloatArray]  # (n, p) masks -> (n,)

HIGHER_IS_BETTER = {
    "insertion": True,
    "deletion": False,
    "infidelity": False,
    "comprehensiveness": True,
    "sufficiency": False,
    "pgi": True,
    "pgu": False,
    "pointing": True,
    "mass": True,
    "sensitivity": False,
}

_SHARES = (0.01, 0.05, 0.10, 0.20, 0.50)  # of the tokens (DeYoung et al. 2020, section 4.2)


def deletion_auc(game: Score, attribution: FloatArray) -> float:
    """Area under the score while features are hidden, the most important first.

    With f_k the score after hiding the k features of the largest attribution, k = 0 .. p: the mean
    of (f_k + f_{k+1}) / 2 over k = 0 .. p - 1, the trapezoid rule on [0, 1]. Petsiuk et al. (2018,
    RISE) hide pixels; here a step hides one feature. Smaller is better.
    """
    return _area(game, 1.0 - _steps(attribution))


def insertion_auc(game: Score, attribution: FloatArray) -> float:
    """Area under the score while features are shown, the most important first.

    As `deletion_auc`, starting with everything hidden and showing the features of the largest
    attribution first (Petsiuk et al. 2018). Larger is better.
    """
    return _area(game, _steps(attribution))


def infidelity(game: Score, attribution: FloatArray, rng: np.random.Generator, n: int) -> float:
    """Error of the attribution as a prediction of what hiding features does.

    Yeh et al. (2019): the mean of (I'a - (f(x) - f(x - I)))^2 over random perturbations I. Here I
    hides each feature by a fair coin, so that I'a is the sum of the attributions of the hidden
    features. Two departures: a is multiplied by the factor that makes the mean smallest, as a scale
    is arbitrary for some methods; and the mean is divided by that of (f(x) - f(x - I))^2, so that 0
    is perfect and 1 is no better than attributions of zero. Smaller is better. NaN where hiding
    features changes nothing.
    """
    masks = rng.integers(0, 2, size=(n, len(attribution))).astype(np.float64)
    drop = game(np.ones((1, len(attribution)))) - game(masks)
    predicted = (1 - masks) @ attribution
    if not (drop**2).sum() > 0:
        return float("nan")
    power = float((predicted**2).sum())
    factor = float(predicted @ drop) / power if power > 0 else 0.0
    return float(((factor * predicted - drop) ** 2).sum() / (drop**2).sum())


def comprehensiveness(game: Score, attribution: FloatArray) -> float:
    """Drop of the score when the most important tokens are removed.

    DeYoung et al. (2020, ERASER): f(x) - f(x without r), averaged over rationales r of the 1, 5,
    10, 20 and 50 % of tokens with the largest attribution (rounded up). Larger is better.
    """
    kept = np.array([1 - _rationale(attribution, share) for share in _SHARES])
    return float(np.mean(game(np.ones((1, len(attribution)))) - game(kept)))


def sufficiency(game: Score, attribution: FloatArray) -> float:
    """Drop of the score when only the most important tokens are left.

    DeYoung et al. (2020, ERASER): f(x) - f(r alone), averaged over the same rationales as for
    `comprehensiveness`. Smaller is better.
    """
    kept = np.array([_rationale(attribution, share) for share in _SHARES])
    return float(np.mean(game(np.ones((1, len(attribution)))) - game(kept)))


def prediction_gap(
    predict: Callable[[IntArray], FloatArray],
    original: float,
    attribution: FloatArray,
    *,
    top: int,
    important: bool,
) -> float:
    """PGI and PGU: how far the prediction moves when some columns are perturbed.

    OpenXAI (Agarwal et al. 2022): the mean of |f(x) - f(x')| over perturbed rows x'. PGI perturbs
    the `top` columns of the largest absolute attribution and keeps the others (larger is better);
    PGU keeps these and perturbs the others (smaller is better). OpenXAI adds Gaussian noise to
    numbers; here perturbed values come from rows of the background, which suits categories too.

    Parameters
    ----------
    predict
        Scores of the perturbed rows, given the numbers of the columns to perturb.
    original
        The score of the row itself.
    attribution
        One number per column.
    top
        How many columns are important.
    important
        Whether the important columns are perturbed (PGI) or the others (PGU).
    """
    order = np.argsort(-np.abs(attribution), kind="stable")
    chosen = order[:top] if important else order[top:]
    return float(np.mean(np.abs(original - predict(np.sort(chosen)))))


def pointing_game(heat: FloatArray, region: NDArray[np.bool_], *, tolerance: int = 0) -> float:
    """Whether the hottest point lies in the region, (H, W) and (H, W).

    Zhang et al. (2016): a hit if the maximum of the map is within `tolerance` pixels of the region
    (15 pixels for their photos). The pixels of a superpixel tie; this is the probability of a hit
    for a point drawn from all pixels with the largest value. Larger is better.
    """
    near = region
    if tolerance:
        rows, columns = np.ogrid[-tolerance : tolerance + 1, -tolerance : tolerance + 1]
        disc = rows**2 + columns**2 <= tolerance**2
        near = ndimage.binary_dilation(region, structure=disc)
    return float(near[heat == heat.max()].mean())


def relevance_mass(heat: FloatArray, region: NDArray[np.bool_]) -> float:
    """The share of the positive relevance that lies in the region.

    Arras et al. (2022), relevance mass accuracy: the sum of the relevance in the region over its
    sum in the whole image; negative relevance counts as zero. 0 where nothing is positive. Larger
    is better.
    """
    positive = np.maximum(heat, 0)
    total = float(positive.sum())
    return float(positive[region].sum() / total) if total > 0 else 0.0


def max_sensitivity(attribution: FloatArray, nearby: FloatArray) -> float:
    """The largest change of the attributions over inputs near the input.

    Yeh et al. (2019): the maximum of |a(y) - a(x)| over inputs y within a small radius of x, by
    sampling some y; divided by |a(x)|, as in captum, because scales differ. `nearby` has the
    attributions of the sampled inputs, (m, p). Smaller is better. NaN for attributions of zero.
    """
    size = float(np.linalg.norm(attribution))
    if not size > 0:
        return float("nan")
    return float(np.linalg.norm(nearby - attribution, axis=1).max() / size)


def _steps(attribution: FloatArray) -> FloatArray:
    """Masks that show the k features of the largest attribution, k = 0 .. p, (p + 1, p)."""
    p = len(attribution)
    place = np.empty(p)
    place[np.argsort(-attribution, kind="stable")] = np.arange(p)
    return np.asarray(place < np.arange(p + 1)[:, None], dtype=np.float64)


def _area(game: Score, masks: FloatArray) -> float:
    """The trapezoid rule over equal steps on [0, 1]."""
    scores = game(masks)
    return float((scores[:-1] + scores[1:]).mean() / 2)


def _rationale(attribution: FloatArray, share: float) -> FloatArray:
    """A mask that shows a share of the features, rounded up: those of the largest attribution."""
    kept: FloatArray = _steps(attribution)[int(np.ceil(share * len(attribution) - 1e-9))]
    return kept
