"""Laws of the importances that methods can use: draws, normal mixtures, point estimates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from eblime._checks import as_floats, as_generator, check_count, check_prob
from eblime._types import FloatArray, RNGLike
from eblime.core.student import StudentLaw, StudentMixture, broadcast_rows, point_density

if TYPE_CHECKING:
    from eblime.protocols import Law


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draws:
    """Joint draws from a posterior, one row per draw.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.laws import Draws
    >>> Draws(beta=np.zeros((100, 3))).beta.shape
    (100, 3)
    """

    beta: FloatArray  # (n, p)
    extras: Mapping[str, FloatArray] = field(default_factory=dict)  # (n,) each, by name

    @property
    def sigma2(self) -> FloatArray:
        """Draws of sigma^2, (n,)."""
        return self._extra("sigma2")

    @property
    def lam(self) -> FloatArray:
        """Draws of lambda, (n,)."""
        return self._extra("lam")

    def _extra(self, name: str) -> FloatArray:
        if name not in self.extras:
            raise AttributeError(f"These draws have no {name!r}: their method does not model it.")
        return self.extras[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawsLaw:
    """A law known by its draws.

    Parameters
    ----------
    draws
        The draws that all summaries are computed from.
    source
        The law that they came from, for densities and further draws. Without it, densities are
        kernel estimates and further draws are drawn again from the given ones.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.laws import Draws, DrawsLaw
    >>> law = DrawsLaw(draws=Draws(beta=np.array([[0.0], [1.0], [2.0]])))
    >>> law.mean, law.quantile(np.array([0.5]))
    (array([1.]), array([[1.]]))
    """

    draws: Draws
    source: Law | None = None

    has_spread: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse draws that have no spread to summarise."""
        shape = np.shape(self.draws.beta)
        if len(shape) != 2 or shape[0] < 2:
            raise ValueError(
                f"`draws.beta` must have shape (n, p) with at least 2 draws; got shape {shape}."
            )

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return int(self.draws.beta.shape[1])

    @property
    def mean(self) -> FloatArray:
        """Mean of the draws, (p,)."""
        return np.asarray(self.draws.beta.mean(axis=0))

    @property
    def sd(self) -> FloatArray:
        """Standard deviation of the draws, (p,)."""
        return np.asarray(self.draws.beta.std(axis=0, ddof=1))

    @property
    def cov(self) -> FloatArray:
        """Covariance of the draws, (p, p)."""
        return np.atleast_2d(np.cov(self.draws.beta, rowvar=False))

    def quantile(self, q: FloatArray) -> FloatArray:
        """Quantiles of the draws, (K,) -> (K, p)."""
        return np.asarray(np.quantile(self.draws.beta, q, axis=0))

    def hdi(self, prob: float) -> FloatArray:
        """Shortest intervals between two draws that contain a share `prob` of them, (p, 2)."""
        ordered = self._order_statistics()
        p, n = ordered.shape
        held = min(n - 1, int(np.ceil(prob * n)))
        first = np.argmin(ordered[:, held:] - ordered[:, : n - held], axis=1)
        return np.stack([ordered[np.arange(p), first], ordered[np.arange(p), first + held]], axis=1)

    def pdf(self, x: FloatArray) -> FloatArray:
        """Densities at x: of the law the draws came from, else a Gaussian kernel estimate.

        It has Scott's bandwidth, and is a point mass where all draws are equal.
        """
        if self.source is not None:
            return self.source.pdf(x)
        from scipy.stats import gaussian_kde

        rows, shape = broadcast_rows(x, self.n_features)
        out = point_density(rows, self.draws.beta[0])
        for j in np.flatnonzero(self.sd > 0):
            out[:, j] = gaussian_kde(self.draws.beta[:, j])(rows[:, j])
        return out.reshape(shape)

    def cdf(self, x: FloatArray) -> FloatArray:
        """Share of the draws at or below x, which broadcasts against the features."""
        rows, shape = broadcast_rows(x, self.n_features)
        places = [
            np.searchsorted(column, row, side="right")
            for column, row in zip(self._order_statistics(), rows.T, strict=True)
        ]
        shares = np.stack(places, axis=1) / len(self.draws.beta)
        return np.where(np.isnan(rows), np.nan, shares).reshape(shape)

    def prob_positive(self) -> FloatArray:
        """Share of positive draws, zeros counting one half, (p,)."""
        return np.asarray(np.heaviside(self.draws.beta, 0.5).mean(axis=0))

    def prob_greater(self) -> FloatArray:
        """Share of draws with beta_i > beta_j, ties counting one half, (p, p)."""
        beta = self.draws.beta
        return np.stack(
            [np.heaviside(column[:, None] - beta, 0.5).mean(axis=0) for column in beta.T]
        )

    def draw(self, rng: np.random.Generator, n: int) -> Draws:
        """Draw n times: from the law the draws came from, else from the draws themselves."""
        if self.source is not None:
            return self.source.draw(rng, n)
        rows = rng.integers(0, len(self.draws.beta), size=n)
        extras = {name: values[rows] for name, values in self.draws.extras.items()}
        return Draws(beta=self.draws.beta[rows], extras=extras)

    def _order_statistics(self) -> FloatArray:
        """Each feature's draws in order, (p, n): contiguous rows sort twice as fast."""
        return np.sort(np.ascontiguousarray(self.draws.beta.T), axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalMixture(StudentLaw):
    """`unit` times a weighted mixture of L multivariate normal laws of p importances.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.laws import normal_law
    >>> law = normal_law(np.array([1.0, 0.0]), np.diag([0.25, 1.0]))
    >>> law.sd, law.quantile(np.array([0.975])).round(2)
    (array([0.5, 1. ]), array([[1.98, 1.96]]))
    """

    weights: FloatArray  # (L,) summing to one
    means: FloatArray  # (L, p)
    covs: FloatArray  # (L, p, p)
    unit: float = 1.0  # variances of very small or large numbers are not representable

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return int(self.means.shape[1])

    @property
    def mean(self) -> FloatArray:
        """Mean of each importance, (p,)."""
        return np.asarray(self.unit * self._centre)

    @property
    def cov(self) -> FloatArray:
        """Covariance of the importances, (p, p)."""
        centred = self.means - self._centre
        within = np.einsum("l,lij->ij", self.weights, self.covs)
        return np.asarray(self.unit**2 * (within + (centred * self.weights[:, None]).T @ centred))

    def marginals(self) -> StudentMixture:
        """The law of each importance alone: normal laws are t laws with infinite df."""
        return StudentMixture(
            weights=self.weights,
            loc=self.means,
            scale=np.sqrt(np.maximum(np.diagonal(self.covs, axis1=1, axis2=2), 0.0)),
            df=np.inf,
            unit=self.unit,
            heavy=np.zeros(self.n_features, dtype=bool),
        )

    def prob_greater(self) -> FloatArray:
        """P(beta_i > beta_j), (p, p), with one half on the diagonal."""
        out = np.zeros((self.n_features, self.n_features))
        for weight, mean, cov in zip(self.weights, self.means, self.covs, strict=True):
            variance = np.diag(cov)
            spread = np.sqrt(np.maximum(variance[:, None] + variance - 2 * cov, 0.0))
            gap, open_ = mean[:, None] - mean, spread > 0
            chance = special.ndtr(gap / np.where(open_, spread, 1.0))
            out += weight * np.where(open_, chance, np.heaviside(gap, 0.5))
        return out

    def draw(self, rng: np.random.Generator, n: int) -> Draws:
        """Draw n times: a component first, then a normal draw from it."""
        counts = rng.multinomial(n, self.weights / self.weights.sum())
        parts = [
            mean + rng.standard_normal((count, self.n_features)) @ eigen_root(cov).T
            for count, mean, cov in zip(counts, self.means, self.covs, strict=True)
        ]
        return Draws(beta=self.unit * rng.permutation(np.concatenate(parts)))

    @property
    def _centre(self) -> FloatArray:
        """Means in standard units, (p,)."""
        return np.asarray(self.weights @ self.means)


def normal_law(mean: ArrayLike, cov: ArrayLike) -> NormalMixture:
    """One multivariate normal law, mean (p,) and covariance (p, p).

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.laws import normal_law
    >>> normal_law(np.array([1.0, -1.0]), np.eye(2)).mean
    array([ 1., -1.])
    """
    centre, spread = as_floats("mean", mean), as_floats("cov", cov)
    if centre.ndim != 1 or spread.shape != (len(centre), len(centre)):
        raise ValueError(
            "`mean` must have shape (p,) and `cov` shape (p, p); got shapes "
            f"{centre.shape} and {spread.shape}."
        )
    return NormalMixture(weights=np.ones(1), means=centre[None], covs=spread[None])


def eigen_root(cov: FloatArray) -> FloatArray:
    """A root of a covariance from its eigenvectors, which a singular one has too."""
    values, vectors = np.linalg.eigh(cov)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


class NoSpreadError(ValueError):
    """A method without a statement of uncertainty was asked for one.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> masks = np.random.default_rng(0).integers(0, 2, size=(50, 2))
    >>> post = eblime.fit(masks, masks @ [1.0, -0.5], method="lime")
    >>> try:
    ...     post.interval()
    ... except eblime.core.NoSpreadError:
    ...     print("a point estimate")
    a point estimate
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class PointMass:
    """The importances as a point estimate: they have a mean and no spread.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.laws import PointMass
    >>> PointMass(mean=np.array([1.0, -1.0]), method="mine").mean
    array([ 1., -1.])
    """

    mean: FloatArray  # (p,)
    method: str  # name of the method, for the error message
    refusal: str = ""  # the error message, if it is another one

    has_spread: ClassVar[bool] = False

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.mean)

    @property
    def sd(self) -> FloatArray:
        """Refused: a point estimate has no spread."""
        self._refuse()

    @property
    def cov(self) -> FloatArray:
        """Refused: a point estimate has no spread."""
        self._refuse()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        """Refuse what a point estimate does not have."""
        raise NoSpreadError(
            self.refusal
            or f"{self.method} gives a point estimate, which has a mean and no spread. For "
            'intervals, probabilities and draws fit with method="eblime", "eblime-paper" or '
            '"bayeslime".'
        )

    quantile = hdi = pdf = cdf = prob_positive = prob_greater = draw = _refuse


class OneNumber(ABC):
    """A law of one number, such as lambda, by its quantiles."""

    __slots__ = ()

    @abstractmethod
    def quantile(self, q: ArrayLike) -> FloatArray:
        """Quantiles in the shape of `q`."""

    @property
    def median(self) -> float:
        """The median."""
        return float(self.quantile(0.5))

    def sample(self, n: int, rng: RNGLike = None) -> FloatArray:
        """Independent draws, shape (n,), by the inverse cdf."""
        check_count("n", n)
        return self.quantile(np.clip(as_generator(rng).random(n), 1e-16, 1 - 1e-16))


@dataclass(frozen=True, slots=True, kw_only=True)
class PointValue(OneNumber):
    """A single number that a method knows without uncertainty, such as lime's lambda.

    Examples
    --------
    >>> from eblime.laws import PointValue
    >>> known = PointValue(value=0.3)
    >>> known.mean, known.quantile([0.1, 0.9])
    (0.3, array([0.3, 0.3]))
    """

    value: float

    @property
    def nodes(self) -> FloatArray:
        """The one value, as a rule to sum expectations by."""
        return np.array([self.value])

    @property
    def weights(self) -> FloatArray:
        """All the weight."""
        return np.ones(1)

    @property
    def mean(self) -> float:
        """The value."""
        return self.value

    def quantile(self, q: ArrayLike) -> FloatArray:
        """The value, in the shape of `q`."""
        return np.full_like(check_prob("q", q), self.value)

    def cdf(self, x: ArrayLike) -> FloatArray:
        """A step at the value."""
        return np.heaviside(as_floats("x", x) - self.value, 1.0)

    def sample(self, n: int, rng: RNGLike = None) -> FloatArray:
        """The value n times."""
        check_count("n", n)
        return np.full(n, self.value)
