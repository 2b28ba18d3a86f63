"""Measures of explanations: whether they are stable, and the model behaves as they say.

`stability` compares repeated explanations of one input. `probability_of_detection`,
`detection_by_response` and `false_call_rate` are about many flaws that were found or missed, by
explanations or anything else. The other functions judge one explanation.
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

from eblime._checks import check_count, check_level
from eblime._detection import DetectionCurve as DetectionCurve
from eblime._detection import detection_by_response as detection_by_response
from eblime._detection import false_call_rate as false_call_rate
from eblime._detection import probability_of_detection as probability_of_detection
from eblime._types import BoolArray, FloatArray
from eblime.core.overall import same_signs, top_features, top_jaccard

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
    pairs that overlap, NaN for point estimates.

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
    nothing = np.full((sizes[0], 2), np.nan)
    ends = [each.interval(prob) if each.has_spread else nothing for each in posteriors]
    return stability_of(means, np.array(ends), top=top)


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


def deletion(explanation: object, game: Score) -> float:
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


def insertion(explanation: object, game: Score) -> float:
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
    explanation: object, game: Score, *, n: int = 200, rng: int | np.random.Generator | None = 0
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


def comprehensiveness(explanation: object, game: Score) -> float:
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


def sufficiency(explanation: object, game: Score) -> float:
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


def _importances(explanation: Any) -> FloatArray:
    """The posterior means of an explanation or a posterior, or the numbers themselves, (p,)."""
    posterior = getattr(explanation, "posterior", explanation)
    mean = getattr(posterior, "mean", None)
    return np.asarray(posterior if mean is None or callable(mean) else mean)  # arrays have mean()


def _scores(game: Score, masks: FloatArray) -> FloatArray:
    return np.asarray(game(masks), dtype=np.float64)


def _steps(importances: FloatArray) -> FloatArray:
    """Masks that show the k features of the largest importance, k = 0 .. p, (p + 1, p)."""
    p = len(importances)
    place = np.empty(p)
    place[np.argsort(-importances, kind="stable")] = np.arange(p)
    return np.asarray(place < np.arange(p + 1)[:, None], dtype=np.float64)


def _area(game: Score, masks: FloatArray) -> float:
    scores = _scores(game, masks)
    return float((scores[:-1] + scores[1:]).mean() / 2)


def _rationales(importances: FloatArray) -> FloatArray:
    """Masks that show each share of the features, rounded up: those of the largest importance."""
    steps = _steps(importances)
    return np.array([steps[int(np.ceil(s * len(importances) - 1e-9))] for s in _SHARES])


def _drop(game: Score, masks: FloatArray) -> float:
    return float(np.mean(_scores(game, np.ones((1, masks.shape[1]))) - _scores(game, masks)))
