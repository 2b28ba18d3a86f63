"""A point estimate: a mean and no statement about uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from eblime._checks import as_floats, check_count, check_prob
from eblime._types import FloatArray, RNGLike
from eblime.core.draws import Draws

__all__ = ["NoSpreadError", "PointMass", "PointValue"]


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

    @property
    def has_spread(self) -> bool:
        """Always False: a point estimate has no spread."""
        return False

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

    def summary(self, prob: float) -> dict[str, FloatArray]:
        """Nothing: a point estimate has no spread."""
        return {}

    def quantile(self, q: FloatArray) -> FloatArray:
        """Refused: a point estimate has no spread."""
        self._refuse()

    def hdi(self, prob: float) -> FloatArray:
        """Refused: a point estimate has no spread."""
        self._refuse()

    def pdf(self, x: FloatArray) -> FloatArray:
        """Refused: a point estimate has no spread."""
        self._refuse()

    def cdf(self, x: FloatArray) -> FloatArray:
        """Refused: a point estimate has no spread."""
        self._refuse()

    def prob_positive(self) -> FloatArray:
        """Refused: a point estimate has no spread."""
        self._refuse()

    def prob_greater(self) -> FloatArray:
        """Refused: a point estimate has no spread."""
        self._refuse()

    def draw(self, rng: np.random.Generator, n: int) -> Draws:
        """Refused: a point estimate has no spread."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NoSpreadError(
            self.refusal
            or f"{self.method} gives a point estimate, which has a mean and no spread. For "
            'intervals, probabilities and draws fit with method="eblime", "eblime-paper" or '
            '"bayeslime".'
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PointValue:
    """A single number that a method knows without uncertainty, such as lime's intercept.

    Examples
    --------
    >>> from eblime.laws import PointValue
    >>> known = PointValue(value=0.3)
    >>> known.mean, known.quantile([0.1, 0.9])
    (0.3, array([0.3, 0.3]))
    """

    value: float

    @property
    def mean(self) -> float:
        """The value."""
        return self.value

    @property
    def median(self) -> float:
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
