"""Mixtures of Student t laws: the marginals of beta, exactly and for every feature at once.

With 30 degrees of freedom or more the t distribution function is a normal one at another place,
which is several times faster than its own series.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from eblime._types import BoolArray, FloatArray, IntArray

_MANY = 30.0  # degrees of freedom from which on Hill's expansion has an error below 1e-12
_NEAR = 5.0  # scales within which it is used
_BLOCK = 1 << 21  # numbers held at once
_LARGEST = 1e150  # quantiles beyond it are not resolved: nothing is known


def student_cdf(df: float, z: FloatArray) -> FloatArray:
    """Student t distribution function with a relative error below 1e-8, in the tails too.

    Examples
    --------
    >>> student_cdf(4.0, np.array([0.0, 2.776445]))
    array([0.5  , 0.975])
    """
    if np.isinf(df):
        return np.asarray(special.ndtr(z))
    if df < _MANY:
        return np.asarray(special.stdtr(df, z))
    far = ~(z >= -_NEAR)  # NaN among them
    lower = np.asarray(special.ndtr(-_normal_size(df, np.log1p(z * z / df))))
    lower[far] = special.stdtr(df, z[far])  # relative to the lower tail it is less exact
    return np.where(z < 0, lower, 1 - lower)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudentMixture:
    """`offset + unit * t`, with t a weighted mixture of L located and scaled t laws, m of them.

    A `unit` of zero is a point mass at `offset`, and a scale of zero one at its location. With
    infinite degrees of freedom the laws are normal.
    """

    weights: FloatArray  # (L,), or (L, m) where each law has weights of its own
    loc: FloatArray  # (L, m)
    scale: FloatArray  # (L, m)
    df: float
    unit: float
    heavy: BoolArray  # (m,) True where the mixture's second moment does not exist
    offset: float | FloatArray = 0.0  # (m,) where each law has its own

    @property
    def mean(self) -> FloatArray:
        """Posterior means, (m,): the centres where a mean does not exist (one degree or less)."""
        return self.offset + self.unit * self.mix(self.loc)

    @property
    def sd(self) -> FloatArray:
        """Posterior standard deviations, (m,); infinite with two degrees of freedom or less."""
        if not self.unit:
            return np.zeros(self.loc.shape[1])
        if self.df <= 2:
            return np.full(self.loc.shape[1], np.inf)
        centred = self.loc - self.mix(self.loc)
        spread = self.scale**2 if np.isinf(self.df) else self.df / (self.df - 2) * self.scale**2
        sd = self.unit * np.sqrt(self.mix(spread + centred**2))
        return np.where(self.heavy, np.inf, sd)

    def pdf(self, x: ArrayLike) -> FloatArray:
        """Densities at x, which broadcasts against the m laws."""
        rows, shape = broadcast_rows(x, self.loc.shape[1])
        if not self.unit:
            return point_density(rows, self.offset).reshape(shape)
        with np.errstate(over="ignore"):  # scores of 1e-308
            z = (rows - self.offset) / self.unit
        out = np.concatenate([self._pdf(part) for part in _blocks(z, self.loc.size)])
        with np.errstate(over="ignore"):  # scores of 1e-308
            return (out / self.unit).reshape(shape)

    def cdf(self, x: ArrayLike) -> FloatArray:
        """Distribution functions at x, which broadcasts against the m laws."""
        rows, shape = broadcast_rows(x, self.loc.shape[1])
        if not self.unit:
            return np.heaviside(rows - self.offset, 1.0).reshape(shape)
        with np.errstate(over="ignore"):  # scores of 1e-308
            z = (rows - self.offset) / self.unit
        out = np.concatenate([self._cdf(part) for part in _blocks(z, self.loc.size)])
        return out.reshape(shape)

    def prob_positive(self) -> FloatArray:
        """P(offset + unit * t > 0), small ones to all their digits, (m,).

        One half for a point mass at zero.
        """
        if not self.unit:
            return np.asarray(np.heaviside(self.offset, np.full(self.loc.shape[1], 0.5)))
        loc = self.loc + self.offset / (self.unit or 1.0)
        return np.minimum(self.mix(student_cdf(self.df, _ratio(loc, self.scale, 0.0))), 1.0)

    def quantile(self, q: FloatArray) -> FloatArray:
        """Quantiles; q has shape (..., m) or (..., 1), and the answer (..., m)."""
        m = self.loc.shape[1]
        shape = np.broadcast_shapes(q.shape, (m,))
        if not self.unit:
            return np.full(shape, self.offset)
        out = self._quantiles(q.reshape(-1, q.shape[-1]))
        return (self.offset + self.unit * out).reshape(shape)

    def hdi(self, prob: float) -> FloatArray:
        """Shortest intervals that contain `prob`, (m, 2).

        The best of 33 masses to the left of the interval, refined by bisection: at the shortest
        interval the densities at both ends are equal. The scan handles laws with two modes, which
        have several such intervals.
        """
        m = self.loc.shape[1]
        if not self.unit:
            return np.broadcast_to(np.reshape(self.offset, (-1, 1)), (m, 2)).copy()
        return (self.offset + self.unit * _shortest(self._quantiles, self._pdf, prob, m).T).T

    def select(self, features: IntArray) -> StudentMixture:
        """Some of the m laws, by number."""
        own: dict[str, Any] = {"loc": self.loc, "scale": self.scale, "heavy": self.heavy}
        own |= {"weights": self.weights} if self.weights.ndim == 2 else {}
        own |= {} if np.ndim(self.offset) == 0 else {"offset": np.asarray(self.offset)}
        return replace(self, **{name: values[..., features] for name, values in own.items()})

    def mix(self, terms: FloatArray) -> FloatArray:
        """Sum the components' values by their weights, (..., L, m) -> (..., m)."""
        weights = self.weights if self.weights.ndim == 2 else self.weights[:, None]
        return np.asarray((weights * terms).sum(axis=-2))

    def _pdf(self, x: FloatArray) -> FloatArray:
        """Densities in standard units, (K, m) -> (K, m)."""
        gap = x[:, None] - self.loc
        terms = _ratio(_density(self.df, _ratio(gap, self.scale, 0.0)), self.scale, 0.0)
        return self.mix(terms)

    def _cdf(self, x: FloatArray) -> FloatArray:
        """Distribution functions in standard units, (K, m) -> (K, m)."""
        terms = student_cdf(self.df, _ratio(x[:, None] - self.loc, self.scale, np.inf))
        return np.minimum(self.mix(terms), 1.0)  # the weights add up to one but for rounding

    def _curves(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Distribution functions and densities at once, for quantiles, each (K, m) -> (K, m)."""
        if self.df < _MANY or np.isinf(self.df):
            return self._cdf(x), self._pdf(x)
        z = (x[:, None] - self.loc) / self.scale
        log = np.log1p(z * z / self.df)
        chance = special.ndtr(np.copysign(_normal_size(self.df, log), z))
        density = np.exp(_log_constant(self.df) - (self.df + 1) / 2 * log) / self.scale
        return np.minimum(self.mix(chance), 1.0), self.mix(density)

    def _quantiles(self, q: FloatArray, start: FloatArray | None = None) -> FloatArray:
        """Quantiles in standard units, (K, m) or (K, 1) -> (K, m).

        A mixture's quantile lies between the least and the greatest of its components'. Where there
        is no start, the work is done in blocks.
        """
        size = self.loc.size
        if start is None and len(blocks := _blocks(q, size)) > 1:
            return np.concatenate([self._quantiles(part) for part in blocks])
        with np.errstate(all="ignore"):  # with almost no degrees of freedom: overflow
            t = np.clip(special.stdtrit(self.df, q), -_LARGEST, _LARGEST)
            ends = self.loc + self.scale * t[:, None]
            low, high = ends.min(axis=1), ends.max(axis=1)
            if len(self.weights) == 1:
                return np.asarray(low)
            middle = self.mix(ends) if start is None else start
            inside = np.isfinite(middle) & (middle >= low) & (middle <= high)
            return self._solve(q, np.where(inside, middle, low), low, high)

    def _solve(self, q: FloatArray, x: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """Move x to the quantiles q between low and high, all (K, m); q may be (K, 1).

        Newton's method on the normal scale: `ndtri(cdf(x))` is nearly a straight line, so that two
        or three steps are enough. A step that leaves the bracket is replaced by halving the
        bracket, on an asinh scale because tails can be heavy. Newton doubles the digits: a step of
        1e-6 of a width leaves an error near 1e-12. A quantile that is reached stays, so that it
        does not depend on the others.
        """
        goal, width = special.ndtri(q), np.maximum(self.scale.min(axis=0), np.finfo(float).tiny)
        done = np.zeros(x.shape, dtype=bool)
        for _ in range(200):
            chance, density = self._curves(x)
            low, high = np.where(chance <= q, x, low), np.where(chance >= q, x, high)
            normal = special.ndtri(np.clip(chance, 1e-300, 1 - 1e-16))
            rate = np.exp(-0.5 * normal**2) / np.sqrt(2 * np.pi) / density
            newton = x - (normal - goal) * rate
            inside = (newton >= low) & (newton <= high)
            middle = width * np.sinh((np.arcsinh(low / width) + np.arcsinh(high / width)) / 2)
            moved = np.where(inside, newton, np.clip(middle, low, high))
            still = np.abs(moved - x) <= np.where(inside, 1e-6 * rate, 1e-11 * np.abs(x))
            x = np.where(done, x, moved)
            done |= still | (low == high) | ~np.isfinite(x)
            if done.all():
                break
        return x


def _shortest(
    quantiles: Callable[..., FloatArray], pdf: Callable[..., FloatArray], prob: float, m: int
) -> FloatArray:
    """Shortest intervals of m laws, (m, 2), from their quantiles, (K, m) -> (K, m), and density."""
    with np.errstate(all="ignore"):  # with almost no degrees of freedom the ends can overflow
        masses = np.broadcast_to((1 - prob) * np.arange(1, 34)[:, None] / 34, (33, m))
        ends = quantiles(np.concatenate([masses, masses + prob])).reshape(2, 33, m)
        best = np.argmin(ends[1] - ends[0], axis=0)
        low, high = (1 - prob) * best / 34, (1 - prob) * (best + 2) / 34
        places = ends[:, best, np.arange(m)]
        for _ in range(30):
            left = (low + high) / 2
            places = quantiles(np.stack([left, left + prob]), places)
            density = pdf(places)
            rising = density[0] < density[1]  # then the interval must move to the right
            low, high = np.where(rising, left, low), np.where(rising, high, left)
    return np.asarray(places.T)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedMixture:
    """A mixture of t laws, of at least three degrees of freedom, whose positive part counts more.

    The density is multiplied by `odds` above zero, and divided by what makes it integrate to one.
    """

    base: StudentMixture  # without an offset
    odds: FloatArray  # (m,)

    @property
    def mean(self) -> FloatArray:
        """Means, (m,)."""
        return self.base.unit * self._moments()[0]

    @property
    def sd(self) -> FloatArray:
        """Standard deviations, (m,)."""
        mean, square = self._moments()
        return self.base.unit * np.sqrt(np.maximum(square - mean**2, 0.0))

    def pdf(self, x: ArrayLike) -> FloatArray:
        """Densities at x, which broadcasts against the m laws."""
        return self.base.pdf(x) * np.where(np.asarray(x) > 0, self.odds, 1.0) / self._total

    def cdf(self, x: ArrayLike) -> FloatArray:
        """Distribution functions at x, which broadcasts against the m laws."""
        chance, below = self.base.cdf(x), 1 - self.base.prob_positive()
        above = self.odds * np.maximum(chance - below, 0.0)
        return np.where(np.isnan(chance), chance, np.minimum(chance, below) + above) / self._total

    def prob_positive(self) -> FloatArray:
        """P(beta > 0), (m,)."""
        return self.odds * self.base.prob_positive() / self._total

    def quantile(self, q: FloatArray) -> FloatArray:
        """Quantiles; q has shape (..., m) or (..., 1), and the answer (..., m)."""
        mass, below = q * self._total, 1 - self.base.prob_positive()
        above = np.clip(below + (mass - below) / self.odds, 0.0, 1.0)
        return self.base.quantile(np.where(mass < below, mass, above))

    def hdi(self, prob: float) -> FloatArray:
        """Shortest intervals that contain `prob`, (m, 2)."""
        return _shortest(lambda q, _=None: self.quantile(q), self.pdf, prob, len(self.odds))

    def select(self, features: IntArray) -> SignedMixture:
        """Some of the m laws, by number."""
        return replace(self, base=self.base.select(features), odds=self.odds[features])

    @property
    def _total(self) -> FloatArray:
        """The integral of the density before it is divided by it."""
        return 1 + (self.odds - 1) * self.base.prob_positive()

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and mean squares in standard units, by those of a t law above a point."""
        law, df = self.base, self.base.df
        z, more = -law.loc / law.scale, self.odds - 1
        chance, power = student_cdf(df, -z), 1 - 2 / df
        first = (df + z**2) / (df - 1) * _density(df, z)
        second = df * ((df - 1) / (df - 2) * student_cdf(df - 2, -z * np.sqrt(power)) - chance)
        above = law.loc * chance + law.scale * first
        square = law.loc**2 * chance + 2 * law.loc * law.scale * first + law.scale**2 * second
        whole = law.loc**2 + law.scale**2 / power
        mean, mean_square = law.mix(law.loc + more * above), law.mix(whole + more * square)
        total = 1 + more * law.mix(chance)
        return mean / total, mean_square / total


def share_of_positive(chances: FloatArray, known: float) -> float:
    """The share of positive importances among those whose sign is open.

    Given the `chances` that importances are positive at equal odds, the likelihood of a share s is
    the product of `s P + (1 - s) (1 - P)`, in which each importance counts `2 sqrt(P (1 - P))`: a
    large one, whose sign is sure, says little about small ones. The share is the most probable one,
    as if the signs of `known` open importances of each kind were known. The log is concave.
    """
    weights, lean = 2 * np.sqrt(chances * (1 - chances)), 2 * chances - 1

    def slope(share: float) -> float:
        of_open = float(weights @ (lean / (share * lean + 1 - chances)))
        return of_open + known / share - known / (1 - share)

    return float(optimize.brentq(slope, 1e-9, 1 - 1e-9))


class StudentLaw(ABC):
    """A joint law of importances whose marginals are mixtures of t laws."""

    __slots__ = ()

    has_spread: ClassVar[bool] = True

    @abstractmethod
    def marginals(self) -> StudentMixture | SignedMixture:
        """The law of each importance alone."""

    @property
    def sd(self) -> FloatArray:
        """Posterior standard deviations, (p,); infinite where the second moment does not exist."""
        return self.marginals().sd

    def quantile(self, q: FloatArray) -> FloatArray:
        """Marginal quantiles, (K,) -> (K, p)."""
        return self.marginals().quantile(q[:, None])

    def hdi(self, prob: float) -> FloatArray:
        """Marginal highest-density intervals, (p, 2)."""
        return self.marginals().hdi(prob)

    def pdf(self, x: FloatArray) -> FloatArray:
        """Marginal densities."""
        return self.marginals().pdf(x)

    def cdf(self, x: FloatArray) -> FloatArray:
        """Marginal distribution functions."""
        return self.marginals().cdf(x)

    def prob_positive(self) -> FloatArray:
        """P(beta_j > 0 | Y), (p,); one half where the scores are constant."""
        return self.marginals().prob_positive()


def broadcast_rows(x: ArrayLike, m: int) -> tuple[FloatArray, tuple[int, ...]]:
    """Rows of m values each, one for each feature, and the shape of the answer."""
    values = np.asarray(x, dtype=np.float64)
    try:
        shape = np.broadcast_shapes(values.shape, (m,))
    except ValueError:
        raise ValueError(
            f"`x` must broadcast against the {m} features along its last axis; got shape "
            f"{values.shape}. For a grid of values pass `x[:, None]`."
        ) from None
    return np.broadcast_to(values, shape).reshape(-1, m), shape


def point_density(x: FloatArray, place: float | FloatArray) -> FloatArray:
    """Density of a point mass: infinite at its place, zero elsewhere, NaN at NaN."""
    return np.where(np.isnan(x), np.nan, np.where(x == place, np.inf, 0.0))


def _blocks(rows: FloatArray, size: int) -> list[FloatArray]:
    """Split (K, m) rows so that (rows, L, m) arrays stay of bounded size; `size` is L m."""
    step = max(1, _BLOCK // size)
    return [rows[start : start + step] for start in range(0, max(1, len(rows)), step)]


def _density(df: float, z: FloatArray) -> FloatArray:
    """Student t density."""
    if np.isinf(df):  # beyond 50, the density is zero
        return np.asarray(np.exp(-0.5 * np.clip(z, -50, 50) ** 2) / np.sqrt(2 * np.pi))
    return np.asarray(np.exp(_log_constant(df) - (df + 1) / 2 * np.log1p(z * z / df)))


def _ratio(values: FloatArray, scale: FloatArray, tie: float) -> FloatArray:
    """`values / scale`, and `tie` where both are zero."""
    if scale.all():
        return np.asarray(values / scale)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((values == 0) & (scale == 0), tie, values / scale)


def _log_constant(df: float) -> float:
    """The log of the density's constant, by betaln, so that many degrees of freedom keep digits."""
    return float(-0.5 * np.log(df) - special.betaln(df / 2, 0.5))


def _normal_size(df: float, log: FloatArray) -> FloatArray:
    """The size of the normal deviate with the same chance as z, from log(1 + z^2 / df).

    The expansion of Hill, Algorithm 395 (1970): the error of the chance is below 1e-12 from 30
    degrees of freedom on, and below 1e-15 from 100 on.
    """
    a = df - 0.5
    b, y = 48 * a * a, np.minimum(a * log, 2_000.0)  # beyond, the chance is zero
    far = (((-0.4 * y - 3.3) * y - 24) * y - 85.5) / (0.8 * y * y + 100 + b)
    return np.asarray(((far + y + 3) / b + 1) * np.sqrt(y))
