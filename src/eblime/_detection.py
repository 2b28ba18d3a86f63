"""Probability of detection: regression of hits, or of responses, on size, with bounds.

The log odds of a hit, or its probit, are a + b log(size), or a + b size. Every bound is an extreme
over the lines (a, b) that a likelihood-ratio test does not reject. They are a convex set around the
most likely line; its edge is found along rays by Newton steps, which converge from outside because
the likelihood is concave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special, stats

from eblime import registry
from eblime._checks import as_floats, check_choice, check_level
from eblime._types import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_RAYS = 1000  # from the most likely line to the edge
_DROP = special.chdtri(1, 0.1) / 2  # of the log-likelihood: 5 % beyond each of two ends


class _Likelihood(NamedTuple):
    """Minus the log-likelihood of a + b x at n points, (..., n)."""

    loss: Callable[[FloatArray], Any]  # (...)
    slope: Callable[[FloatArray], Any]  # (..., n)
    weights: Callable[[FloatArray], Any]  # (n,) the expected curvature at each point


# from a + b x, whose words these are, to the probability of a hit; P(-x) = 1 - P(x)
_LINKS = {"logit": stats.logistic, "probit": stats.norm}
_WORDS = {"logit": "log odds", "probit": "probit"}
_SCALES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "log": (np.log, np.exp),
    "linear": (np.asarray, np.asarray),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DetectionCurve:
    """Probability of detection against size.

    Made by `probability_of_detection` and `detection_by_response`.

    A number that the flaws do not determine is NaN, one without an upper limit is infinite, and
    `notes` says why.

    Examples
    --------
    >>> import eblime
    >>> sizes = [0.5, 0.7, 1.0, 1.0, 1.4, 1.4, 2.0, 2.8]
    >>> found = eblime.measures.probability_of_detection(sizes, [0, 0, 0, 1, 1, 0, 1, 1])
    >>> float(round(found.a50, 2))
    1.18
    """

    sizes: FloatArray  # (k,) the different sizes, in increasing order
    counts: IntArray  # (k,) flaws of each size
    found: IntArray  # (k,) and those that were found
    a: float  # log odds or probit of a hit: a + b log(size), or a + b size
    b: float
    a50: float  # found with probability .5
    a90: float
    a90_95: float  # upper bound of a90 that holds with 95 % confidence
    lines: FloatArray  # (2, K) a and b at the edge of the set of lines that are not rejected
    notes: tuple[str, ...]
    scale: str = "log"
    link: str = "logit"

    def curve(self, sizes: ArrayLike | None = None) -> FloatArray:
        """Probability of detection and its lower and upper bound at each size, (m, 3).

        Each bound holds with 95 % confidence at one size. The lower one is .9 at `a90_95`. None
        takes the sizes of the flaws.
        """
        x = _SCALES[self.scale][0](self.sizes if sizes is None else _check_sizes(sizes))
        odds = self.lines.T @ np.stack([np.ones_like(x), x])
        every = np.array([self.a + self.b * x, odds.min(axis=0), odds.max(axis=0)])
        return np.asarray(_LINKS[self.link].cdf(every).T)

    def to_frame(self) -> pd.DataFrame:
        """One row per size: size, flaws, found, share, probability, low and high."""
        from eblime._pandas import pd

        columns = dict(zip(("probability", "low", "high"), self.curve().T, strict=True))
        head = {"size": self.sizes, "flaws": self.counts, "found": self.found}
        return pd.DataFrame({**head, "share": self.found / self.counts, **columns})

    def plot(self, *, ax: Axes | None = None, **settings: object) -> Axes:
        """The curve with its bounds, the share found at each size, and a90 and a90/95."""
        return registry.find("charts", "detection")(self, ax=ax, **settings)

    def __repr__(self) -> str:
        """One line: the three sizes."""
        return f"DetectionCurve(a50={self.a50:.4g}, a90={self.a90:.4g}, a90_95={self.a90_95:.4g})"

    def __str__(self) -> str:
        """How many flaws were found, the curve, its sizes, and notes."""
        few, many = f"{self.sizes[0]:.4g}", f"{self.sizes[-1]:.4g}"
        ends = {"a50": self.a50, "a90": self.a90, "a90/95": self.a90_95}
        sign, size = "-" if self.b < 0 else "+", "log(size)" if self.scale == "log" else "size"
        lines = (
            f"{self.found.sum()} of {self.counts.sum()} flaws found, sizes {few} to {many}",
            f"{_WORDS[self.link]} of a hit = {self.a:.4g} {sign} {abs(self.b):.4g} {size}",
            ", ".join(f"{k} = {v:.4g}" if v < np.inf else f"{k} unknown" for k, v in ends.items()),
        )
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


def probability_of_detection(
    sizes: ArrayLike,
    hits: ArrayLike,
    *,
    scale: Literal["log", "linear"] = "log",
    link: Literal["logit", "probit"] = "logit",
) -> DetectionCurve:
    """How the probability that a flaw is found rises with its size, from hits and misses.

    Parameters
    ----------
    sizes
        The size of each flaw, (n,), > 0.
    hits
        Whether each was found, (n,): True or False, 1 or 0.
    scale
        Whether the curve is one of the logarithm of the size, "log", or of the size, "linear".
    link
        The form of the curve: "logit" or "probit".

    Notes
    -----
    Regression by maximum likelihood: the hit/miss model of MIL-HDBK-1823A (2009). `a90` is the size
    that is found with probability .9, and `a90_95` its upper bound with 95 % confidence: the
    largest size s for which the likelihood-ratio test, with one degree of freedom and both tails
    together at 10 %, does not reject P(s) = .9. The bounds of the curve are made the same way. All
    of them need the model to be right: look at the plot, above all whether the shares reach 1. A
    note says so where a parabola in the size, on its scale, fits clearly better (Rao's score test,
    P < .01). The sizes of hits and of misses must overlap, and flaws be independent: with several
    looks at each flaw, the bounds are too narrow.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rng = np.random.default_rng(0)
    >>> sizes = np.repeat(np.geomspace(0.5, 4, 10), 20)  # 20 flaws of each of ten sizes, in mm
    >>> hits = rng.random(200) < sizes**4 / (sizes**4 + 1.5**4)
    >>> print(eblime.measures.probability_of_detection(sizes, hits))
    89 of 200 flaws found, sizes 0.5 to 4
    log odds of a hit = -1.653 + 3.454 log(size)
    a50 = 1.614, a90 = 3.048, a90/95 = 3.705
    """
    check_choice("scale", scale, tuple(_SCALES))
    check_choice("link", link, tuple(_LINKS))
    at = _check_sizes(sizes)
    marks = as_floats("hits", hits)
    needed = f"`hits` must be True or False for each of the {len(at)} sizes; got"
    if marks.shape != at.shape:
        raise ValueError(f"{needed} shape {marks.shape}.")
    other = np.flatnonzero(~np.isin(marks, (0, 1)))
    if other.size:
        raise ValueError(
            f"{needed} {marks[other[0]]:g} at index {other[0]}. Leave out flaws without a result, "
            "and give each of several flaws of one size an entry of its own."
        )
    unique, group, counts = np.unique(at, return_inverse=True, return_counts=True)
    if len(unique) < 2:
        raise ValueError(
            f"`sizes` must have at least two different values; got {len(unique)}. "
            "With one size, use the share of hits."
        )
    found = np.bincount(group, marks).astype(np.intp)
    hit, miss = unique[found > 0], unique[found < counts]
    if not (hit.size and miss.size and hit[0] < miss[-1] and miss[0] < hit[-1]):
        ends = (f"{x[0]:.4g} to {x[-1]:.4g}" if x.size else "no size" for x in (hit, miss))
        raise ValueError(
            "The sizes of hits and of misses must overlap for a curve; got hits at {} and misses "
            "at {}. Add flaws of other sizes, or in between.".format(*ends)
        )
    model = _hit_miss(counts, found, _LINKS[link])
    return _curve_of(unique, counts, found, _SCALES[scale][0](unique), model, scale, link)


def detection_by_response(
    sizes: ArrayLike,
    responses: ArrayLike,
    threshold: float,
    *,
    scale: Literal["log", "linear"] = "log",
) -> DetectionCurve:
    """How the probability of detection rises with size, from the strength of responses.

    Parameters
    ----------
    sizes
        The size of each flaw, (n,), > 0.
    responses
        How strong the signal of each was, (n,), on a scale on which they scatter evenly about a
        line: often their logarithm. Leave out responses at the limits of the instrument.
    threshold
        On the same scale; a flaw counts as found if its response is above it.
    scale
        As for `probability_of_detection`.

    Notes
    -----
    The model "a-hat versus a" of MIL-HDBK-1823A (2009): response = c + d x + tau e with normal e, x
    the size or its logarithm, by maximum likelihood, so that the probability of detection is
    Phi(a + b x) with a = (c - threshold) / tau and b = d / tau. Bounds are those of the likelihood
    ratio, with tau at its most likely value for each line, where the handbook has Wald's. Censored
    responses are not modelled.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rng = np.random.default_rng(0)
    >>> sizes = np.repeat(np.geomspace(0.5, 4, 10), 8)
    >>> strength = 2.0 * np.log(sizes) + rng.normal(scale=0.5, size=80)  # in logarithms
    >>> print(eblime.measures.detection_by_response(sizes, strength, threshold=np.log(1.5)))
    45 of 80 flaws found, sizes 0.5 to 4
    probit of a hit = -0.8106 + 4.449 log(size)
    a50 = 1.2, a90 = 1.6, a90/95 = 1.703
    """
    check_choice("scale", scale, tuple(_SCALES))
    at, given = _check_sizes(sizes), as_floats("responses", responses)
    if given.shape != at.shape or not np.isfinite(given).all():
        raise ValueError(f"`responses` must be a finite number for each of the {len(at)} sizes.")
    unique, group, counts = np.unique(at, return_inverse=True, return_counts=True)
    x, above = _SCALES[scale][0](at), given - threshold
    if len(unique) < 2 or not np.any(np.polyfit(x, above, 1, full=True)[1] > 1e-20 * above @ above):
        raise ValueError("`responses` must scatter about a line, at two or more different sizes.")
    found = np.bincount(group, above > 0).astype(np.intp)
    return _curve_of(unique, counts, found, x, _response(above), scale, "probit")


def false_call_rate(calls: ArrayLike, prob: float = 0.95) -> tuple[float, float, float]:
    """The share of places without a flaw at which one was called, and its interval.

    Parameters
    ----------
    calls
        Whether there was a call, for each place without a flaw, (n,): True or False, 1 or 0.
    prob
        Probability of the interval, that of Clopper and Pearson.

    Examples
    --------
    >>> import eblime
    >>> [round(number, 3) for number in eblime.measures.false_call_rate([0] * 58 + [1] * 2)]
    [0.033, 0.004, 0.115]
    """
    marks = as_floats("calls", calls)
    if marks.ndim != 1 or not len(marks) or not np.isin(marks, (0, 1)).all():
        raise ValueError("`calls` must be True or False for each of at least one place.")
    test = stats.binomtest(int(marks.sum()), len(marks))
    low, high = test.proportion_ci(check_level("prob", prob))
    return float(marks.mean()), float(low), float(high)


def _curve_of(
    sizes: FloatArray,
    counts: IntArray,
    found: IntArray,
    x: FloatArray,
    model: _Likelihood,
    scale: str,
    link: str,
) -> DetectionCurve:
    """The most likely curve; `x` are the sizes of the model's points on its scale."""
    form, back = _LINKS[link], _SCALES[scale][1]
    (a, b), lines = _fit(x, model)
    a50, a90 = (back((form.ppf(p) - a) / b) if b > 0 else np.nan for p in (0.5, 0.9))
    rises = (lines[1] > 0).all()
    bound = back(((form.ppf(0.9) - lines[0]) / lines[1]).max()) if rises else np.inf
    powers, odds = np.stack([x**2, np.ones_like(x), x]), a + b * x
    score, info = -(powers @ model.slope(odds)), (powers * model.weights(odds)) @ powers.T
    bend = float(special.chdtrc(1, score @ np.linalg.pinv(info, hermitian=True) @ score))
    return DetectionCurve(
        sizes=sizes,
        counts=counts,
        found=found,
        a=float(a),
        b=float(b),
        a50=float(a50),
        a90=float(a90),
        a90_95=float(bound),
        lines=lines,
        notes=tuple(_detection_notes(sizes, float(b), float(a90), float(bound), bend)),
        scale=scale,
        link=link,
    )


def _hit_miss(n: IntArray, k: IntArray, link: Any) -> _Likelihood:
    """Of n flaws at each point k were found."""

    def slope(odds: FloatArray) -> Any:  # of the logarithm of the probability
        return np.exp(link.logpdf(odds) - link.logcdf(odds))

    return _Likelihood(
        loss=lambda odds: -(k * link.logcdf(odds) + (n - k) * link.logcdf(-odds)).sum(axis=-1),
        slope=lambda odds: (n - k) * slope(-odds) - k * slope(odds),
        weights=lambda odds: n * slope(odds) * slope(-odds),
    )


def _response(above: FloatArray) -> _Likelihood:
    """Responses above the threshold, at the most likely tau: 1 / tau solves a parabola."""
    n, power = len(above), above @ above

    def rate(odds: FloatArray) -> Any:
        half = odds @ above / 2
        return (half + np.sqrt(half**2 + n * power)) / power

    def slope(odds: FloatArray) -> Any:
        return odds - rate(odds)[..., None] * above

    def loss(odds: FloatArray) -> Any:
        return (slope(odds) ** 2).sum(axis=-1) / 2 - n * np.log(rate(odds))

    return _Likelihood(loss=loss, slope=slope, weights=np.ones_like)


def _fit(x: FloatArray, model: _Likelihood) -> tuple[FloatArray, FloatArray]:
    """The most likely (a, b), and the edge of the set of lines that are not rejected, (2, K)."""
    centre, spread = x.mean(), x.std()
    powers = np.stack([np.ones_like(x), (x - centre) / spread])

    def loss(line: FloatArray) -> Any:
        return model.loss(line.T @ powers)

    def slope(line: FloatArray) -> Any:
        return powers @ model.slope(line.T @ powers).T

    best = optimize.minimize(loss, np.zeros(2), jac=slope, method="BFGS", options={"gtol": 1e-9}).x
    turn = np.linspace(0, 2 * np.pi, _RAYS, endpoint=False)
    factor = np.linalg.cholesky((powers * model.weights(best @ powers)) @ powers.T)
    rays, middle = np.linalg.solve(factor.T, [np.cos(turn), np.sin(turn)]), best[:, None]
    most, far = loss(best) + _DROP, np.ones(_RAYS)
    while (inside := loss(middle + far * rays) < most).any():
        far = np.where(inside, 2 * far, far)
    for _ in range(100):
        line = middle + far * rays
        step = (loss(line) - most) / (slope(line) * rays).sum(axis=0)
        far = far - step
        if (np.abs(step) <= 1e-12 * far).all():
            break
    edge = np.hstack([middle, middle + far * rays])
    edge[1] /= spread
    edge[0] -= edge[1] * centre
    return edge[:, 0], edge[:, 1:]


def _detection_notes(
    sizes: FloatArray, b: float, a90: float, bound: float, bend: float
) -> Iterator[str]:
    if b < 0:
        yield (
            "Larger flaws were found less often, so that no size has a90. Check whether `hits` are "
            "misses."
        )
    elif np.isinf(bound):
        yield (
            "A curve that does not rise is not excluded (likelihood ratio, 5 %), so that a90 has "
            "no upper bound: add flaws, or a wider range of sizes."
        )
    if bend < 0.01:
        yield (
            f"The shares found do not follow the curve (P = {bend:.2g}, test of a bend): "
            "look at the plot. a90 and its bound are not reliable."
        )
    for name, value in (("a90", a90), ("a90/95", bound)):
        if np.isfinite(value) and not sizes[0] <= value <= sizes[-1]:
            yield (
                f"{name} = {value:.4g} is outside the sizes {sizes[0]:.4g} to {sizes[-1]:.4g}: it "
                "relies on the shape of the curve there."
            )


def _check_sizes(sizes: ArrayLike) -> FloatArray:
    found = as_floats("sizes", sizes)
    if found.ndim != 1:
        raise ValueError(f"`sizes` must be 1-D, one entry per flaw; got shape {found.shape}.")
    bad = np.flatnonzero(~((found > 0) & (found < np.inf)))  # refuses NaN too
    if bad.size:
        raise ValueError(f"`sizes` must be finite and > 0; got {found[bad[0]]} at index {bad[0]}.")
    return found
