"""The posterior of lambda on the whole half-line, by panels where its mass is.

The density of `x = log(lambda)` is analytic in the strip `|Im x| < pi` whatever the data are, so
that eight Gauss-Legendre nodes on a panel across which it varies little leave errors near the
rounding of the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import ArrayLike

from eblime._checks import as_floats, as_generator, check_count, check_prob
from eblime._types import BoolArray, FloatArray, IntArray, RNGLike
from eblime.core.evidence import Evidence
from eblime.core.priors import log_half_cauchy

__all__ = ["PanelLambda", "half_line_lambda"]


def _to_series(n: int) -> FloatArray:
    """Matrix from values at the n Gauss-Legendre nodes to Legendre coefficients, (n, n).

    Gauss's rule integrates the products exactly: `c_k = (2 k + 1) / 2 sum_i w_i P_k(x_i) f_i`.
    """
    nodes, weights = legendre.leggauss(n)
    return np.asarray(legendre.legvander(nodes, n - 1) * weights[:, None] * (np.arange(n) + 0.5))


_NODES, _WEIGHTS = legendre.leggauss(8)
_FINE, _ = legendre.leggauss(16)
_TO_FINE = _to_series(8) @ legendre.legvander(_FINE, 7).T  # values at 8 nodes -> values at 16
_FINE_TO_SERIES = _to_series(16)
_DEPTH = 28.0  # panels whose density is exp(-28) of the highest, or less, are left out
_REACH = 75.0  # half-Cauchy tails fall as exp(-x / 2): beyond this the mass is 1e-16


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelLambda:
    """Lambda on the whole half-line, its density known at the nodes of P panels.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rng = np.random.default_rng(0)
    >>> masks = rng.integers(0, 2, size=(100, 2))
    >>> lam = eblime.fit(masks, masks @ [1.0, 0.0] + 0.1 * rng.normal(size=100)).lam
    >>> low, high = lam.quantile([0.025, 0.975])
    >>> bool(low < lam.median < high)
    True
    >>> lam.mean
    inf
    """

    left: FloatArray  # (P,) panel ends in x = log(lambda), increasing
    right: FloatArray  # (P,)
    density: FloatArray  # (P, 8) density of x at the Gauss-Legendre nodes, total mass one

    @property
    def nodes(self) -> FloatArray:
        """Lambda at the quadrature nodes, shape (8 P,)."""
        middle, half = (self.right + self.left) / 2, (self.right - self.left) / 2
        return np.exp(middle[:, None] + half[:, None] * _NODES).ravel()

    @property
    def weights(self) -> FloatArray:
        """Quadrature weights, shape (8 P,)."""
        half = (self.right - self.left) / 2
        return (self.density * _WEIGHTS * half[:, None]).ravel()

    @property
    def mean(self) -> float:
        """Infinite: the half-Cauchy leaves P(lambda | Y) a tail of `lam^-3/2`, whatever the data.

        Use `median`, `quantile` or `log_mean`; the published grid has a finite mean.
        """
        return np.inf

    @property
    def log_mean(self) -> float:
        """E(log lambda | Y), which is finite."""
        return float(self.weights @ np.log(self.nodes))

    @property
    def median(self) -> float:
        """Posterior median of lambda."""
        return float(self.quantile(0.5))

    def quantile(self, q: ArrayLike) -> FloatArray:
        """Quantiles of lambda: the panel by bisection, the position in it by safeguarded Newton."""
        target = check_prob("q", q)
        total, series = self._cumulated()
        aim = np.ravel(target) * total[-1]
        panel = np.clip(np.searchsorted(total, aim, side="right") - 1, 0, len(self.left) - 1)
        part, low, high = aim - total[panel], -np.ones(aim.shape), np.ones(aim.shape)
        slope = legendre.legder(series)[:, panel]
        place = np.zeros(aim.shape)
        for _ in range(60):
            gap = legendre.legval(place, series[:, panel], tensor=False) - part
            low, high = np.where(gap <= 0, place, low), np.where(gap >= 0, place, high)
            with np.errstate(divide="ignore", invalid="ignore"):
                newton = place - gap / legendre.legval(place, slope, tensor=False)
            inside = (newton > low) & (newton < high)
            moved = np.where(inside, newton, (low + high) / 2)
            done = np.max(np.abs(moved - place), initial=0.0) < 1e-14
            place = moved
            if done:
                break
        return np.exp(self._log_lambda(panel, place)).reshape(target.shape)

    def cdf(self, x: ArrayLike) -> FloatArray:
        """P(lambda <= x | Y), by integrating the panels' interpolants."""
        values = as_floats("x", x)
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(np.ravel(values), 0.0))
        total, series = self._cumulated()
        panel = np.clip(np.searchsorted(self.left, logs, side="right") - 1, 0, len(self.left) - 1)
        half = (self.right - self.left)[panel] / 2
        place = np.clip((logs - self.left[panel]) / half - 1, -1, 1)
        part = legendre.legval(place, series[:, panel], tensor=False)
        return np.asarray((total[panel] + part) / total[-1]).reshape(values.shape)

    def sample(self, n: int, rng: RNGLike = None) -> FloatArray:
        """Draw i.i.d. values from the continuous law."""
        check_count("n", n)
        uniform = as_generator(rng).random(n)
        return self.quantile(np.clip(uniform, 1e-16, 1 - 1e-16))

    def _cumulated(self) -> tuple[FloatArray, FloatArray]:
        """Mass up to each panel, (P + 1,), and antiderivatives in Legendre series, (17, P).

        The log density bends little across a panel: it is interpolated, not the density.
        """
        half = (self.right - self.left) / 2
        fine = np.exp(np.log(self.density) @ _TO_FINE)
        series = legendre.legint((fine @ _FINE_TO_SERIES).T * half, lbnd=-1, axis=0)
        mass = legendre.legval(1.0, series)
        return np.concatenate([[0.0], np.cumsum(mass)]), np.asarray(series, dtype=np.float64)

    def _log_lambda(self, panel: IntArray, place: FloatArray) -> FloatArray:
        """Turn a position in [-1, 1] of a panel into x."""
        left, right = self.left[panel], self.right[panel]
        return np.asarray((left + right) / 2 + place * (right - left) / 2)


def half_line_lambda(evidence: Evidence, *, scale: float = 1.0, null: bool = False) -> PanelLambda:
    """Posterior of lambda on (0, inf), by panels where its mass is.

    Parameters
    ----------
    evidence
        The likelihood of lambda.
    scale
        Scale of the half-Cauchy prior of lambda^-1/2.
    null
        Whether some direction of beta is left to the prior, whose variance is Q / lambda: then the
        panels reach far enough to the left for E(1 / lambda | Y) too.
    """
    rank = len(evidence.d)

    def log_density(x: FloatArray) -> FloatArray:
        lambdas = np.exp(x)
        return evidence.log_likelihood(lambdas) + log_half_cauchy(lambdas, scale=scale) + x

    anchors = [-2 * np.log(scale), *np.log(evidence.d[[0, -1]] if rank else [])]
    reachable = float(np.sum(evidence.k**2 / evidence.d))
    if reachable > 0:  # where Q turns from its floor to its slope, and where that balances |M|
        turn = np.log(evidence.floor / reachable)
        anchors += [turn, turn + np.log((rank + 1) / evidence.df)]
    tilt = 1.0 if null and rank > 1 else 0.0  # also watch the density times exp(-x)
    low = max(min(anchors) - 5 - 2 * _REACH / (rank + 1 - 2 * tilt), -690.0)
    high = min(max(anchors) + 5 + _REACH, 690.0)
    left, right = _panels(log_density, low, high, tilt)
    middle, half = (left + right) / 2, (right - left) / 2
    values = log_density((middle[:, None] + half[:, None] * _NODES).ravel()).reshape(-1, 8)
    density = np.exp(values - values.max())
    return PanelLambda(left=left, right=right, density=density / ((density @ _WEIGHTS) @ half))


def _panels(
    log_density: Callable[[FloatArray], FloatArray], low: float, high: float, tilt: float
) -> tuple[FloatArray, FloatArray]:
    """Choose panels: only where there is mass, and narrow enough that the log density bends little.

    The lower a panel lies below the top, the more the density may vary across it.
    """
    edges = np.linspace(low, high, int(np.ceil((high - low) / 4)) + 1)
    panels = np.stack([edges[:-1], edges[1:]])
    values = log_density(edges)
    ends = np.stack([values[:-1], values[1:]])
    for _ in range(40):
        middle = panels.mean(axis=0)
        crest = log_density(middle)
        values, places = np.vstack([ends, crest]), np.vstack([panels, middle])
        depth, bound = _depth(values, places, tilt)
        vary = values.max(axis=0) - values.min(axis=0)
        wide = (panels[1] - panels[0] > 2) & (depth < 4)
        split = (bound < _DEPTH) & ((vary > 3 + 0.5 * depth) | wide)
        kept = (bound < _DEPTH) & ~split
        if not split.any():
            return panels[0][kept], panels[1][kept]
        panels = _halve(panels, middle, kept, split)
        ends = _halve(ends, crest, kept, split)
        order = np.argsort(panels[0])
        panels, ends = panels[:, order], ends[:, order]
    raise FloatingPointError("The posterior density of lambda could not be resolved.")


def _halve(ends: FloatArray, middle: FloatArray, kept: BoolArray, split: BoolArray) -> FloatArray:
    """Panels kept as they are, then the left and the right halves of those split, (2, P)."""
    cut = middle[split]
    return np.hstack([ends[:, kept], [ends[0, split], cut], [cut, ends[1, split]]])


def _depth(values: FloatArray, x: FloatArray, tilt: float) -> tuple[FloatArray, FloatArray]:
    """How far each panel lies below the highest point seen, and a lower bound on that.

    Counted in the log density, and in the log density minus x where `tilt` is 1. The bound allows
    for a peak between the points of a panel, as high as its second difference says.
    """
    bend = np.abs(values[0] - 2 * values[2] + values[1])
    depth = values.max() - values.max(axis=0)
    if tilt:
        tilted = values - x
        depth = np.minimum(depth, tilted.max() - tilted.max(axis=0))
    return depth, depth - bend
