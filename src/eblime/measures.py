"""Measures of explanations: whether they are stable, and the model behaves as they say.

`stability` compares repeated explanations of one input. `probability_of_detection` is about many
flaws that were found or missed, by explanations or anything else. The other functions judge one
explanation.
`explanation` may also be the importances alone, (p,), from any package. `game` is the score as a
function of masks, (n, p) -> (n,): `eblime.game(model, x)`, or a function of yours. Each docstring
has the literal definition and its source, and says where we depart from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage, special

from eblime._checks import check_count, check_level
from eblime._detection import DetectionCurve, probability_of_detection
from eblime._types import BoolArray, FloatArray, IntArray
from eblime.answers import Answers
from eblime.core.overall import same_signs, top_features, top_jaccard
from eblime.methods.ridge import LIME

__all__ = [
    "DetectionCurve",
    "Stability",
    "comprehensiveness",
    "covered_share",
    "deletion",
    "infidelity",
    "insertion",
    "max_sensitivity",
    "pointing_game",
    "prediction_gap",
    "probability_of_detection",
    "relevance_mass",
    "ridge_interval",
    "stability",
    "stability_of",
    "sufficiency",
]

Score = Callable[[FloatArray], ArrayLike]  # (n, p) masks -> (n,)

_SHARES = (0.01, 0.05, 0.10, 0.20, 0.50)  # of the tokens (DeYoung et al. 2020, section 4.2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """Agreement of repeated explanations; means over all pairs of runs, each from 0 to 1.

    Runs that agree have 1, and 0 for `sign_flips`. A feature is chosen by a run if it is among its
    `top` features by absolute importance.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rng = np.random.default_rng(0)
    >>> masks = rng.integers(0, 2, size=(2, 60, 3))
    >>> runs = [eblime.fit(drawn, drawn @ [1.0, 0.5, 0.0]) for drawn in masks]
    >>> eblime.measures.stability(runs, top=2).vsi
    1.0
    """

    vsi: float  # variables stability index: the share of chosen features that two runs share
    csi: float  # coefficients stability index: the share of intervals that overlap
    overlap: float  # Jaccard index of the chosen features of two runs
    sign_flips: float  # share of features chosen by either run whose signs differ


def stability(
    explanations: Sequence[Any], *, top: int | None = None, prob: float = 0.95
) -> Stability:
    """Agreement of explanations of one input, or of their posteriors, made with different seeds.

    Parameters
    ----------
    explanations
        At least two explanations or posteriors with the same features.
    top
        How many features an explanation chooses, by absolute importance; None is all of them.
    prob
        Probability of the intervals that are compared.

    Notes
    -----
    VSI and CSI are the indices of Visani et al. (2022), which lie between 0 and 100 there. VSI is
    the mean over pairs of runs of the share of chosen features that both chose. CSI compares, for
    each feature that at least two runs chose, the intervals of those runs: it is the share of
    pairs that overlap. Explanations by `LIME`, which has no intervals, get those of a weighted
    ridge regression; posteriors by LIME alone have a CSI of NaN.

    Examples
    --------
    >>> import eblime
    >>> score = lambda texts: [("two" in t) - 0.5 * ("five" in t) for t in texts]
    >>> explainer = eblime.TextExplainer(score, n_masks=40)
    >>> runs = [explainer.explain("one two three four five six seven", rng=k) for k in range(4)]
    >>> eblime.measures.stability(runs, top=2)
    Stability(vsi=1.0, csi=1.0, overlap=1.0, sign_flips=0.0)
    """
    check_level("prob", prob)
    posteriors = [getattr(run, "posterior", run) for run in explanations]
    if len(posteriors) < 2:
        raise ValueError(f"`explanations` must be at least 2; got {len(posteriors)}.")
    sizes = sorted({posterior.n_features for posterior in posteriors})
    if len(sizes) > 1:
        raise ValueError(
            f"`explanations` must have the same features; got {sizes[0]} and {sizes[-1]} of them."
        )
    means = np.array([posterior.mean for posterior in posteriors])
    return stability_of(means, np.array([_interval(run, prob) for run in explanations]), top=top)


def stability_of(means: FloatArray, intervals: FloatArray, *, top: int | None = None) -> Stability:
    """Agreement of m runs by their importances, (m, p), and intervals, (m, p, 2).

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.measures import stability_of
    >>> means = np.array([[3.0, -2.0, 0.1], [2.9, 0.2, 2.0]])
    >>> stability_of(means, np.stack([means - 0.1, means + 0.1], axis=2), top=2).vsi
    0.5
    """
    m, p = means.shape
    if m < 2:
        raise ValueError(f"`means` must have at least 2 rows, one per run; got {m}.")
    if top is not None:
        check_count("top", top)
    kept = min(top or p, p)
    chosen = np.array([top_features(run, kept) for run in means])
    shared = [(a & b).sum() for a, b in combinations(chosen, 2)]
    pairs = list(combinations(means, 2))
    return Stability(
        vsi=float(np.mean(shared) / kept),
        csi=_coefficient_stability(intervals, chosen),
        overlap=float(np.mean([top_jaccard(*pair, kept) for pair in pairs])),
        sign_flips=float(np.mean([1 - same_signs(*pair, kept) for pair in pairs])),
    )


def _coefficient_stability(ends: FloatArray, chosen: BoolArray) -> float:
    """CSI of intervals, (m, p, 2), for the chosen features, (m, p); NaN where an end is NaN."""
    found = []
    for j in np.flatnonzero(chosen.sum(axis=0) >= 2):
        pairs = combinations(ends[chosen[:, j], j], 2)
        found.append(np.mean([max(a[0], b[0]) <= min(a[1], b[1]) for a, b in pairs]))
    return float("nan") if np.isnan(ends).any() or not found else float(np.mean(found))


def ridge_interval(answers: Answers, *, alpha: float = 1.0, prob: float = 0.95) -> FloatArray:
    """Confidence intervals of lime's weighted ridge regression, (p, 2).

    With X the centred masks, `sd^2` is the diagonal of `s^2 A X'WX A`, `A = (X'WX + alpha I)^-1`,
    where s^2 is the weighted residual sum of squares of least squares over N - p - 1.

    Examples
    --------
    >>> import eblime
    >>> from eblime.measures import ridge_interval
    >>> explainer = eblime.TextExplainer(lambda texts: [len(t) for t in texts], method="lime")
    >>> e = explainer.explain("a b")
    >>> ridge_interval(e.answers).shape
    (2, 2)
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


def deletion(explanation: Any, game: Score) -> float:
    """Area under the score while features are hidden, the most important first.

    With f_k the score after hiding the k features of the largest importance, k = 0 .. p: the mean
    of (f_k + f_{k+1}) / 2 over k = 0 .. p - 1, the trapezoid rule on [0, 1]. Petsiuk et al. (2018,
    RISE) hide pixels; here a step hides one feature. Smaller is better.

    Examples
    --------
    >>> import eblime
    >>> happy = lambda texts: [float("good" in t) for t in texts]
    >>> e = eblime.TextExplainer(happy).explain("a good film")
    >>> eblime.measures.deletion(e, eblime.game(happy, "a good film"))  # of 1, 0, 0 and 0
    0.16666666666666666
    """
    return _area(game, 1.0 - _steps(_importances(explanation)))


def insertion(explanation: Any, game: Score) -> float:
    """Area under the score while features are shown, the most important first.

    As `deletion`, starting with everything hidden and showing the features of the largest
    importance first (Petsiuk et al. 2018). Larger is better.

    Examples
    --------
    >>> import eblime
    >>> happy = lambda texts: [float("good" in t) for t in texts]
    >>> e = eblime.TextExplainer(happy).explain("a good film")
    >>> eblime.measures.insertion(e, eblime.game(happy, "a good film"))  # of 0, 1, 1 and 1
    0.8333333333333334
    """
    return _area(game, _steps(_importances(explanation)))


def infidelity(
    explanation: Any, game: Score, *, n: int = 200, rng: int | np.random.Generator | None = 0
) -> float:
    """Error of the importances as a prediction of what hiding features does.

    Yeh et al. (2019): the mean of (I'a - (f(x) - f(x - I)))^2 over n random perturbations I. Here I
    hides each feature by a fair coin, so that I'a is the sum of the importances of the hidden
    features. Two departures: a is multiplied by the factor that makes the mean smallest, as a scale
    is arbitrary for some methods; and the mean is divided by that of (f(x) - f(x - I))^2, so that 0
    is perfect and 1 is no better than importances of zero. Smaller is better. NaN where hiding
    features changes nothing.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> eblime.measures.infidelity([2.0, 1.0], lambda masks: masks @ [2.0, 1.0])
    0.0
    """
    importances = _importances(explanation)
    masks = np.random.default_rng(rng).integers(0, 2, size=(n, len(importances))).astype(np.float64)
    drop = _scores(game, np.ones((1, len(importances)))) - _scores(game, masks)
    predicted = (1 - masks) @ importances
    if not (drop**2).sum() > 0:
        return float("nan")
    power = float((predicted**2).sum())
    factor = float(predicted @ drop) / power if power > 0 else 0.0
    return float(((factor * predicted - drop) ** 2).sum() / (drop**2).sum())


def comprehensiveness(explanation: Any, game: Score) -> float:
    """Drop of the score when the most important tokens are removed.

    DeYoung et al. (2020, ERASER): f(x) - f(x without r), averaged over rationales r of the 1, 5,
    10, 20 and 50 % of tokens with the largest importance (rounded up). Larger is better.

    Examples
    --------
    >>> import eblime
    >>> happy = lambda texts: [float("good" in t) for t in texts]
    >>> e = eblime.TextExplainer(happy).explain("a good film")
    >>> eblime.measures.comprehensiveness(e, eblime.game(happy, "a good film"))
    1.0
    """
    return _drop(game, 1 - _rationales(_importances(explanation)))


def sufficiency(explanation: Any, game: Score) -> float:
    """Drop of the score when only the most important tokens are left.

    DeYoung et al. (2020, ERASER): f(x) - f(r alone), averaged over the same rationales as for
    `comprehensiveness`. Smaller is better.

    Examples
    --------
    >>> import eblime
    >>> happy = lambda texts: [float("good" in t) for t in texts]
    >>> e = eblime.TextExplainer(happy).explain("a good film")
    >>> eblime.measures.sufficiency(e, eblime.game(happy, "a good film"))
    0.0
    """
    return _drop(game, _rationales(_importances(explanation)))


def prediction_gap(
    explanation: Any,
    predict: Callable[[IntArray], ArrayLike],
    *,
    top: int,
    important: bool = True,
    prediction: float | None = None,
) -> float:
    """PGI and PGU: how far the prediction moves when some columns are perturbed.

    OpenXAI (Agarwal et al. 2022): the mean of `|f(x) - f(x')|` over perturbed rows x'. PGI perturbs
    the `top` columns of the largest absolute importance and keeps the others (larger is better);
    PGU keeps these and perturbs the others (smaller is better). OpenXAI adds Gaussian noise to
    numbers; `predict` may also take values from rows of the background, which suits categories.

    Parameters
    ----------
    explanation
        An explanation of a row, or one number per column.
    predict
        Scores of the perturbed rows, given the numbers of the columns to perturb.
    top
        How many columns are important.
    important
        Whether the important columns are perturbed (PGI) or the others (PGU).
    prediction
        The score of the row itself; None takes that of the explanation.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> slopes = np.array([4.0, 1.0, 3.0])
    >>> lost = lambda columns: [8 - slopes[columns].sum()]  # a perturbed column loses its slope
    >>> eblime.measures.prediction_gap(slopes, lost, top=2, prediction=8.0)
    7.0
    """
    importances = _importances(explanation)
    before = explanation.prediction if prediction is None else prediction
    order = np.argsort(-np.abs(importances), kind="stable")
    chosen = order[:top] if important else order[top:]
    return float(np.mean(np.abs(before - np.asarray(predict(np.sort(chosen))))))


def pointing_game(explanation: Any, region: NDArray[np.bool_], *, tolerance: int = 0) -> float:
    """Whether the pixels of the largest importance lie in a region, (H, W).

    Zhang et al. (2016): a hit if the maximum of the map is within `tolerance` pixels of the region
    (15 pixels for their photos). The pixels of a superpixel tie; this is the probability of a hit
    for a point drawn from all pixels with the largest value. Larger is better. In place of an
    explanation of an image, a map of importances, (H, W), may be given.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> heat, region = np.array([[0.0, 1.0, 1.0]]), np.array([[True, True, False]])
    >>> eblime.measures.pointing_game(heat, region)
    0.5
    """
    near, heat = region, _heat(explanation)
    if tolerance:
        rows, columns = np.ogrid[-tolerance : tolerance + 1, -tolerance : tolerance + 1]
        disc = rows**2 + columns**2 <= tolerance**2
        near = ndimage.binary_dilation(region, structure=disc)
    return float(near[heat == heat.max()].mean())


def relevance_mass(explanation: Any, region: NDArray[np.bool_]) -> float:
    """The share of the positive importance that lies in a region, (H, W).

    Arras et al. (2022), relevance mass accuracy: the sum of the relevance in the region over its
    sum in the whole image; negative relevance counts as zero. 0 where nothing is positive. Larger
    is better. In place of an explanation of an image, a map of importances, (H, W), may be given.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> heat, region = np.array([[1.0, -5.0, 3.0]]), np.array([[True, True, False]])
    >>> eblime.measures.relevance_mass(heat, region)
    0.25
    """
    positive = np.maximum(_heat(explanation), 0)
    total = float(positive.sum())
    return float(positive[region].sum() / total) if total > 0 else 0.0


def covered_share(explanation: Any, region: NDArray[np.bool_], *, top: int = 5) -> float:
    """Share of a region, (H, W), under the `top` superpixels with the largest positive importances.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> photo = np.zeros((8, 8), dtype=np.uint8)
    >>> photo[:, 4:] = 200
    >>> halves = ("grid", {"rows": 1, "columns": 2})
    >>> bright = lambda batch: batch.mean(axis=(1, 2))
    >>> e = eblime.ImageExplainer(bright, segmentation=halves, hide=0).explain(photo)
    >>> eblime.measures.covered_share(e, photo > 100, top=1)
    1.0
    """
    importances = _importances(explanation)
    order = np.argsort(-importances, kind="stable")[:top]
    chosen = order[importances[order] > 0]
    return float(np.isin(explanation.segments[region], chosen).mean())


def max_sensitivity(explanation: Any, nearby: Sequence[Any]) -> float:
    """The largest change of the importances over inputs near the input.

    Yeh et al. (2019): the maximum of `|a(y) - a(x)|` over inputs y within a small radius of x, by
    sampling some y; divided by `|a(x)|`, as in captum, because scales differ. `nearby` has the
    explanations of the sampled inputs. Smaller is better. NaN for importances of zero.

    Examples
    --------
    >>> import eblime
    >>> eblime.measures.max_sensitivity([6.0, 8.0], [[6.0, 9.0], [9.0, 4.0]])
    0.5
    """
    importances = _importances(explanation)
    size = float(np.linalg.norm(importances))
    if not size > 0:
        return float("nan")
    others = np.array([_importances(one) for one in nearby])
    return float(np.linalg.norm(others - importances, axis=1).max() / size)


def _importances(explanation: Any) -> FloatArray:
    """The posterior means of an explanation or a posterior, or the numbers themselves, (p,)."""
    posterior = getattr(explanation, "posterior", explanation)
    mean = getattr(posterior, "mean", None)
    return np.asarray(posterior if mean is None or callable(mean) else mean)  # arrays have mean()


def _heat(explanation: Any) -> FloatArray:
    """The importance of each pixel, (H, W)."""
    segments = getattr(explanation, "segments", None)
    return np.asarray(explanation) if segments is None else _importances(explanation)[segments]


def _scores(game: Score, masks: FloatArray) -> FloatArray:
    """The scores of masks as floats, (n,)."""
    return np.asarray(game(masks), dtype=np.float64)


def _steps(importances: FloatArray) -> FloatArray:
    """Masks that show the k features of the largest importance, k = 0 .. p, (p + 1, p)."""
    p = len(importances)
    place = np.empty(p)
    place[np.argsort(-importances, kind="stable")] = np.arange(p)
    return np.asarray(place < np.arange(p + 1)[:, None], dtype=np.float64)


def _area(game: Score, masks: FloatArray) -> float:
    """The trapezoid rule over equal steps on [0, 1]."""
    scores = _scores(game, masks)
    return float((scores[:-1] + scores[1:]).mean() / 2)


def _rationales(importances: FloatArray) -> FloatArray:
    """Masks that show each share of the features, rounded up: those of the largest importance."""
    steps = _steps(importances)
    return np.array([steps[int(np.ceil(s * len(importances) - 1e-9))] for s in _SHARES])


def _drop(game: Score, masks: FloatArray) -> float:
    """The mean drop of the score from the whole input to masks."""
    return float(np.mean(_scores(game, np.ones((1, masks.shape[1]))) - _scores(game, masks)))
