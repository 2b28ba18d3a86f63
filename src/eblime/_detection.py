"""Probability of detection: logistic regression of hits on size, with likelihood-ratio bounds.

The log odds of a hit are a + b x. The likelihood is concave in (a, b), so that its profile at a
point, the maximum over all lines through that point, is found by safeguarded Newton steps. The
maximum is at infinity if hits and misses do not overlap; the bounds exist nevertheless.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from eblime import registry
from eblime._checks import as_floats
from eblime._types import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_FAR = 500.0  # log odds beyond every bound
_STEEP = 1e8  # the largest slope, in units of the covariate's spread
_NEAR = 1e-6  # distance from a step that counts as none, in the same units
_DROP = special.chdtri(1, 0.1) / 2  # of the log-likelihood: 5 % beyond each of two ends


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HitMiss:
    """Numbers of trials and hits at each value of a covariate, in increasing order."""

    x: FloatArray  # (m,) at least two different values
    n: IntArray  # (m,) trials
    k: IntArray  # (m,) hits

    @property
    def kind(self) -> str:
        """Whether the slope is finite: "overlap", "up", "down" (steps), "all" or "none" (hits)."""
        hit, miss = self.x[self.k > 0], self.x[self.k < self.n]
        if not (hit.size and miss.size):
            return "all" if hit.size else "none"
        return "up" if miss[-1] <= hit[0] else "down" if hit[-1] <= miss[0] else "overlap"

    @property
    def step(self) -> tuple[float, float]:
        """Where the step is if hits and misses do not overlap: between two values of x."""
        hit, miss = self.x[self.k > 0], self.x[self.k < self.n]
        return (miss[-1], hit[0]) if self.kind == "up" else (hit[-1], miss[0])

    def estimate(self) -> tuple[float, float]:
        """The maximum-likelihood intercept and slope.

        At a step, NaN and an infinite slope; NaN for both if there are only hits or only misses.
        """
        if self.kind != "overlap":
            return np.nan, {"up": np.inf, "down": -np.inf}.get(self.kind, np.nan)
        t, centre, spread = self._scaled()
        middle = np.zeros(1)  # of the scaled covariate

        def slope(odds: float) -> float:
            return float(self._profile(np.array([odds]), middle, t)[1][0])

        odds = float(optimize.brentq(slope, -_FAR, _FAR, xtol=1e-13))
        b = float(self._profile(np.array([odds]), middle, t)[2][0]) / spread
        return odds - b * centre, b

    def bend(self) -> float:
        """P value of the line against a parabola: Rao's score test of the square of x.

        Small where the shares are on one side of the curve at both ends and on the other between
        them. NaN where the slope is not finite, or with only two values of x.
        """
        a, b = self.estimate()
        if not np.isfinite(b) or len(self.x) < 3:
            return np.nan
        t = self._scaled()[0]
        p = special.expit(a + b * self.x)
        powers = np.stack([t**2, np.ones_like(t), t])
        info = (powers * self.n * p * (1 - p)) @ powers.T
        rest = info[0, 0] - info[0, 1:] @ np.linalg.solve(info[1:, 1:], info[1:, 0])
        return float(special.chdtrc(1, (t**2 @ (self.k - self.n * p)) ** 2 / rest))

    def bound(self, at: FloatArray, side: int) -> FloatArray:
        """Lower (side -1) or upper (+1) 95 % bounds of the log odds at some places, (q,).

        The value at which the profile likelihood falls by 1.35, half of the 90 % point of
        chi-square with one degree of freedom. Newton steps from far outside converge without a
        safeguard, because the profile is concave.
        """
        t, centre, spread = self._scaled()
        place = (at - centre) / spread
        ends, least = np.full(len(at), side * _FAR), self._most() - _DROP
        value, slope, b = self._profile(ends, place, t)
        free = value >= least  # no value is excluded
        for _ in range(100):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                move = np.where(free, 0.0, (least - value) / slope)
            ends = ends + move
            if np.abs(move).max() < 1e-10 * (1 + np.abs(ends).max()):
                break
            value, slope, b = self._profile(ends, place, t, b)
        return np.where(free, side * np.inf, ends)

    def largest(self, prob: float) -> float:
        """The largest x at which the probability may be `prob`: the 95 % upper bound of that x.

        Infinite if a slope of zero is not excluded, or if the slope is negative.
        """
        t, centre, spread = self._scaled()
        level, least = np.array([special.logit(prob)]), self._most() - _DROP
        rate = self.k.sum() / self.n.sum()
        flat = special.xlogy(self.k, rate).sum() + special.xlogy(self.n - self.k, 1 - rate).sum()
        a, b = self.estimate()
        if not b > 0 or flat >= least:
            return np.inf

        def excess(place: float) -> float:
            return float(self._profile(level, np.array([place]), t)[0][0] - least)

        if np.isinf(b):
            start = (self.step[1] - centre) / spread + _NEAR
        else:
            start = ((float(level[0]) - a) / b - centre) / spread
        if excess(start) <= 0:  # at a step
            return self.step[1]
        reach = 1.0
        while excess(start + reach) > 0:
            reach *= 2
        return float(centre + spread * optimize.brentq(excess, start, start + reach, xtol=1e-12))

    def _scaled(self) -> tuple[FloatArray, float, float]:
        """The covariate with mean 0 and standard deviation 1, and both of them before."""
        centre = float(np.average(self.x, weights=self.n))
        spread = float(np.sqrt(np.average((self.x - centre) ** 2, weights=self.n)))
        return (self.x - centre) / spread, centre, spread

    def _sum(self, odds: FloatArray) -> FloatArray:
        """The log-likelihood of log odds, (..., m), without loss of digits where they are large."""
        hit, miss = np.logaddexp(0, -odds), np.logaddexp(0, odds)
        return np.asarray(-(self.k * hit + (self.n - self.k) * miss).sum(axis=-1))

    def _most(self) -> float:
        """The supremum of the log-likelihood."""
        if self.kind == "overlap":
            a, b = self.estimate()
            return float(self._sum(a + b * self.x))
        share = self.k / self.n  # at a step, only values with hits and misses lose
        return float(
            (special.xlogy(self.k, share) + special.xlogy(self.n - self.k, 1 - share)).sum()
        )

    def _profile(
        self, odds: FloatArray, at: FloatArray, t: FloatArray, b: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The largest log-likelihood of all lines with these log odds at these places.

        And its derivative by the log odds, and the slopes of the lines; (q,) each. `b` are slopes
        to start from.
        """
        away = t - at[:, None]  # (q, m)
        b = np.zeros(len(at)) if b is None else b
        low, high = np.full(len(at), -_STEEP), np.full(len(at), _STEEP)
        for _ in range(200):
            p = special.expit(odds[:, None] + b[:, None] * away)
            miss = self.k - self.n * p
            slope = (miss * away).sum(axis=1)
            low, high = np.where(slope > 0, b, low), np.where(slope > 0, high, b)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                step = b + slope / (self.n * p * (1 - p) * away**2).sum(axis=1)
            inside = (step > low) & (step < high)
            half = np.sinh((np.arcsinh(low) + np.arcsinh(high)) / 2)  # slopes differ in magnitude
            new = np.where(inside, step, half)
            done = np.abs(new - b) <= 1e-11 * (1 + np.abs(b))
            b = new
            if done.all():
                break
        line = odds[:, None] + b[:, None] * away
        return self._sum(line), (self.k - self.n * special.expit(line)).sum(axis=1), b


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DetectionCurve:
    """Probability of detection against size; made by `probability_of_detection`.

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
    a: float  # log odds of a hit: a + b log(size)
    b: float
    a50: float  # found with probability .5
    a90: float
    a90_95: float  # upper bound of a90 that holds with 95 % confidence
    notes: tuple[str, ...]

    def curve(self, sizes: ArrayLike | None = None) -> FloatArray:
        """Probability of detection and its lower and upper bound at each size, (m, 3).

        Each bound holds with 95 % confidence at one size. The lower one is .9 at `a90_95`. None
        takes the sizes of the flaws.
        """
        x = np.log(self.sizes if sizes is None else _check_sizes(sizes))
        data = HitMiss(x=np.log(self.sizes), n=self.counts, k=self.found)
        if np.isfinite(self.b):
            middle = special.expit(self.a + self.b * x)
        elif np.isnan(self.b):
            middle = np.full(len(x), float(data.kind == "all"))
        else:  # a step somewhere between two sizes
            low, high = data.step
            middle = np.where(x < low, self.b < 0, np.where(x > high, self.b > 0, np.nan))
            for edge in (low, high):
                middle[x == edge] = (self.found / self.counts)[data.x == edge]
        ends = [special.expit(data.bound(x, side)) for side in (-1, 1)]
        return np.stack([middle, *ends], axis=1)

    def to_frame(self) -> pd.DataFrame:
        """One row per size: size, flaws, found, share, probability, low and high."""
        from eblime._pandas import pd

        columns = dict(zip(("probability", "low", "high"), self.curve().T, strict=True))
        head = {"size": self.sizes, "flaws": self.counts, "found": self.found}
        return pd.DataFrame({**head, "share": self.found / self.counts, **columns})

    def plot(self, *, ax: Axes | None = None, **settings: Any) -> Axes:
        """The curve with its bounds, the share found at each size, and a90 and a90/95."""
        return registry.find("displays", "detection")(self, ax=ax, **settings)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        """One line: the three sizes."""
        return f"DetectionCurve(a50={self.a50:.4g}, a90={self.a90:.4g}, a90_95={self.a90_95:.4g})"

    def __str__(self) -> str:
        """How many flaws were found, the curve, its sizes, and notes."""
        few, many = f"{self.sizes[0]:.4g}", f"{self.sizes[-1]:.4g}"
        ends = {"a50": self.a50, "a90": self.a90, "a90/95": self.a90_95}
        sign = "-" if self.b < 0 else "+"
        lines = [
            f"{self.found.sum()} of {self.counts.sum()} flaws found, sizes {few} to {many}",
            f"log odds of a hit = {self.a:.4g} {sign} {abs(self.b):.4g} log(size)",
            ", ".join(f"{k} = {v:.4g}" if v < np.inf else f"{k} unknown" for k, v in ends.items()),
        ]
        if not np.isfinite(self.b):
            del lines[1]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


def probability_of_detection(sizes: ArrayLike, hits: ArrayLike) -> DetectionCurve:
    """How the probability that a flaw is found rises with its size, from hits and misses.

    Parameters
    ----------
    sizes
        The size of each flaw, (n,), > 0.
    hits
        Whether each was found, (n,): True or False, 1 or 0.

    Notes
    -----
    Logistic regression on the logarithm of the size, by maximum likelihood: the hit/miss model of
    MIL-HDBK-1823A (2009). `a90` is the size that is found with probability .9, and `a90_95` its
    upper bound with 95 % confidence: the largest size s for which the likelihood-ratio test, with
    one degree of freedom and both tails together at 10 %, does not reject P(s) = .9. The bounds of
    the curve are made the same way. All of them need the model to be right: look at the plot,
    above all whether the shares reach 1. A note says so where a parabola in the logarithm of the
    size fits clearly better (Rao's score test, P < .01). Flaws must be independent: with several
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
    data = HitMiss(x=np.log(unique), n=counts, k=found)
    a, b = data.estimate()
    rises = b > 0 and np.isfinite(b)
    a50, a90 = (np.exp((special.logit(p) - a) / b) if rises else np.nan for p in (0.5, 0.9))
    bound = np.nan if data.kind == "all" else float(np.exp(data.largest(0.9)))
    return DetectionCurve(
        sizes=unique,
        counts=counts,
        found=found,
        a=a,
        b=b,
        a50=float(a50),
        a90=float(a90),
        a90_95=bound,
        notes=tuple(_detection_notes(data, b, float(a90), bound)),
    )


def _detection_notes(data: HitMiss, b: float, a90: float, bound: float) -> Iterator[str]:
    """What a reader of a curve of detection must know."""
    first, last = np.exp(data.x[[0, -1]])
    if data.kind == "all":
        least = 0.05 ** (1 / data.n.sum())
        yield (
            f"All {data.n.sum()} flaws were found, so no curve can be fitted and a90 is unknown: "
            "add smaller flaws. Over the sizes of these flaws taken together, the probability of "
            f"detection is at least {least:.3f} (95 % confidence)."
        )
    elif data.kind == "none":
        yield (
            f"None of the {data.n.sum()} flaws was found, so no curve can be fitted and a90 is "
            "unknown: add larger flaws."
        )
    elif data.kind == "up":
        low, high = np.exp(data.step)
        where = f"between {low:.4g} and {high:.4g}" if low < high else f"close to {low:.4g}"
        yield (
            f"No flaw below {high:.4g} was found and none above {low:.4g} was missed, so the slope "
            f"has no estimate, and a50 and a90 are {where}: add flaws of such sizes. a90/95 does "
            "not need the estimate."
        )
    elif b < 0:
        yield (
            "Larger flaws were found less often, so that no size has a90. Check whether `hits` are "
            "misses."
        )
    elif np.isinf(bound):
        yield (
            "A curve that does not rise is not excluded (likelihood ratio, 5 %), so that a90 has "
            "no upper bound: add flaws, or a wider range of sizes."
        )
    if data.bend() < 0.01:
        yield (
            f"The shares found do not follow the curve (P = {data.bend():.2g}, test of a bend): "
            "look at the plot. a90 and its bound are not reliable."
        )
    for name, value in (("a90", a90), ("a90/95", bound)):
        if np.isfinite(value) and not first <= value <= last:
            yield (
                f"{name} = {value:.4g} is outside the sizes {first:.4g} to {last:.4g}: it relies "
                "on the shape of the curve there."
            )


def _check_sizes(sizes: ArrayLike) -> FloatArray:
    """Sizes of flaws as a float array, (n,)."""
    found = as_floats("sizes", sizes)
    if found.ndim != 1:
        raise ValueError(f"`sizes` must be 1-D, one entry per flaw; got shape {found.shape}.")
    bad = np.flatnonzero(~((found > 0) & (found < np.inf)))  # refuses NaN too
    if bad.size:
        raise ValueError(f"`sizes` must be finite and > 0; got {found[bad[0]]} at index {bad[0]}.")
    return found
