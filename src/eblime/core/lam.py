"""What the data say about lambda: its evidence, its prior, and its posterior.

With `W^1/2 Z = U D V'` and `k = U' W^1/2 Y`, the printed N x N forms become sums over the spectrum,
O(L r) for L values of lambda: `log|M_lam| = sum log(1 + d_j / lam)` up to a constant, and
`Q_lam = 2 b + residual + sum k_j^2 lam / (d_j + lam)`.

The posterior of lambda is fixed, on a grid, or on the whole half-line. The density of
`x = log(lambda)` is analytic in the strip `|Im x| < pi` whatever the data are, so that sums over
equal steps, which a change of variables makes small near the mode, leave errors near the rounding
of the machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicHermiteSpline, CubicSpline

from eblime._checks import as_floats, check_prob
from eblime._types import FloatArray
from eblime.core.laws import OneNumber, PointValue

_BLOCK = 1 << 15  # numbers held at once: the work stays in the processor's cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The likelihood of lambda with beta and sigma^2 (and a flat intercept) integrated out."""

    d: FloatArray  # (r,) squared singular values of the weighted masks
    k: FloatArray  # (r,) weighted scores in the left singular basis
    floor: float  # 2 b + the residual that no beta can reach
    df: float  # degrees of freedom, 2 a + N, one less for a flat intercept

    def q(self, lambdas: FloatArray) -> FloatArray:
        """`Q_lam` of Proposition 1 at every lambda of an (L,) array."""
        return self._q_and_log_det(lambdas)[0]

    def log_likelihood(self, lambdas: FloatArray) -> FloatArray:
        """Log of Proposition 2 without P(lambda), up to a constant."""
        q, log_det = self._q_and_log_det(lambdas)
        return -0.5 * (log_det + self.df * np.log(q))

    def _q_and_log_det(self, lambdas: FloatArray) -> tuple[FloatArray, FloatArray]:
        """`Q_lam` and `log|M_lam|`, in blocks."""
        q, log_det = np.empty_like(lambdas), np.empty_like(lambdas)
        step = max(1, _BLOCK // max(1, len(self.d)))
        power, ones = self.k**2, np.ones(len(self.d))
        for start in range(0, len(lambdas), step):
            block = slice(start, start + step)
            ratio = self.d / lambdas[block, None]
            log_det[block] = np.log1p(ratio) @ ones  # a product with ones: sums at BLAS speed
            ratio += 1
            q[block] = self.floor + np.reciprocal(ratio, out=ratio) @ power
        return q, log_det


def log_half_cauchy(lambdas: FloatArray, *, scale: float = 1.0) -> FloatArray:
    """Log density of lambda when lambda^-1/2 is half-Cauchy with the given scale.

    Equation (2d) after the change of variables, normalised: `s / (pi sqrt(lam) (1 + s^2 lam))`.
    Its tail is `lam^-3/2`, so that lambda has no mean, before the data or after.
    """
    return np.asarray(np.log(scale / np.pi) - 0.5 * np.log(lambdas) - np.log1p(scale**2 * lambdas))


def log_local_precision(x: FloatArray) -> FloatArray:
    """Log density of `x = log(phi)`, the log of a feature's own precision factor.

    The feature's scale `tau = phi^-1/2` has density `tau (1 + tau^2)^-3/2`, so that
    `P(tau <= t) = 1 - (1 + t^2)^-1/2`. Its tail is that of a half-Cauchy, which lets a large
    importance escape the common shrinkage. It vanishes at zero, where the half-Cauchy of the
    horseshoe does not: the prior of beta then is bounded at zero (Strawderman and Berger).
    """
    return np.asarray(0.5 * x - 1.5 * np.logaddexp(0.0, x) - np.log(2.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class GridLambda(OneNumber):
    """Lambda on a finite grid, as in Proposition 2 and Algorithm 2."""

    nodes: FloatArray  # (L,) increasing
    weights: FloatArray  # (L,) P(lambda_l | Y), summing to one

    @property
    def mean(self) -> float:
        """E(lambda | Y) on the grid: Proposition 2 with the normalising sum it lacks in print."""
        return float(self.weights @ self.nodes)

    def quantile(self, q: ArrayLike) -> FloatArray:
        """The first grid values whose cumulated weight reaches `q`."""
        total = np.cumsum(self.weights)
        index = np.searchsorted(total, check_prob("q", q) * total[-1])
        return np.asarray(self.nodes[np.minimum(index, len(total) - 1)])

    def cdf(self, x: ArrayLike) -> FloatArray:
        """Cumulated weight of the grid values up to and including `x`."""
        values = as_floats("x", x)
        total = np.concatenate([[0.0], np.cumsum(self.weights)])
        index = np.searchsorted(self.nodes, values, side="right")
        return np.where(np.isnan(values), np.nan, total[index] / total[-1])


def grid_lambda(evidence: Evidence, grid: FloatArray, *, scale: float = 1.0) -> GridLambda:
    """Posterior of lambda on a grid: Proposition 2, normalised."""
    log_weights = evidence.log_likelihood(grid) + log_half_cauchy(grid, scale=scale)
    weights = np.exp(log_weights - log_weights.max())
    return GridLambda(nodes=grid, weights=weights / weights.sum())


_SCAN = 40  # nodes of a coarse scan
_FAR, _FARTHEST = 9.0, 32.0  # mass below exp(-9), or exp(-32), of the mode is left out
_WIDEST = 3.0  # width of a peak in log(lambda)
_FINE = 2**11  # steps of the curve of a cdf
_STRIDES = (32, 16, 8, 4, 2, 1)  # steps of the curve from one node of the rule to the next
_CLOSE = 1e-9  # error of means by these nodes
_STEPS = 8  # of Newton for a quantile: each doubles the digits


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfLineLambda(OneNumber):
    """Lambda on the whole half-line: a rule of L nodes, and a curve of G points for its cdf.

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

    nodes: FloatArray  # (L,)
    weights: FloatArray  # (L,)
    logs: FloatArray  # (G,) log(lambda), increasing
    chances: FloatArray  # (G,) the cdf there
    densities: FloatArray  # (G,) the density of log(lambda) there

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

    def quantile(self, q: ArrayLike) -> FloatArray:
        """Quantiles of lambda, by Newton's steps between two points of the curve.

        A step that leaves what is known to hold the quantile is replaced by its middle.
        """
        target = check_prob("q", q)
        place = np.clip(np.searchsorted(self.chances, target), 1, len(self.logs) - 1)
        low, high, curve = self.logs[place - 1], self.logs[place], self._curve()
        slope, logs = curve.derivative(), (low + high) / 2
        for _ in range(_STEPS):
            missed = curve(logs) - target
            low, high = np.where(missed < 0, logs, low), np.where(missed < 0, high, logs)
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = logs - missed / slope(logs)
            inside = (logs >= low) & (logs <= high)  # never so with a NaN
            logs = np.where(inside, logs, (low + high) / 2)
        return np.asarray(np.exp(logs))

    def cdf(self, x: ArrayLike) -> FloatArray:
        """P(lambda <= x | Y)."""
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(as_floats("x", x), 0.0))
        return np.asarray(self._curve()(np.clip(logs, self.logs[0], self.logs[-1])))

    def _curve(self) -> CubicHermiteSpline:
        """The cdf as a function of log(lambda)."""
        return CubicHermiteSpline(self.logs, self.chances, self.densities)


def half_line_lambda(
    evidence: Evidence, *, scale: float = 1.0, null: bool = False
) -> HalfLineLambda:
    """Posterior of lambda on (0, inf), by the nodes of `few_lambdas`, as many as the mass needs.

    `scale` is that of the half-Cauchy prior of lambda^-1/2. If some direction of beta is left to
    the prior (`null`), whose variance is Q / lambda, the rule reaches far enough to the left for
    E(1 / lambda | Y) too.
    """
    [x], [weights], _ = few_lambdas(
        evidence.d[None],
        evidence.k[None],
        np.array([evidence.floor]),
        np.array([evidence.df]),
        n=_FINE + 1,
        scale=scale,
        null=null,
        far=_FARTHEST,
    )
    waves = weights * np.stack([np.ones_like(x), np.cos(x), np.sin(x)])  # all of (0, inf) and parts
    errors = {s: s * waves[:, ::s].sum(axis=1) - waves.sum(axis=1) for s in _STRIDES}
    stride = next(s for s in _STRIDES if np.abs(errors[s]).max() < _CLOSE)
    place = np.arange(_FINE + 1.0)
    chances = CubicSpline(place, weights).antiderivative()(place)
    return HalfLineLambda(
        nodes=np.exp(x[::stride]),
        weights=weights[::stride] / weights[::stride].sum(),
        logs=x,
        chances=chances / chances[-1],
        densities=weights / CubicSpline(place, x)(place, 1) / chances[-1],
    )


def few_lambdas(
    d: FloatArray,
    k: FloatArray,
    floor: FloatArray,
    df: FloatArray,
    *,
    n: int,
    scale: float = 1.0,
    null: bool = False,
    far: float = _FAR,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Values for the law of `half_line_lambda`, of B evidences at once.

    The evidences have the shapes (B, r), (B, r), (B,) and (B,). Returns n values of
    `x = log(lambda)`, their weights, and `Q_lam`, each (B, n). Values whose log density is `far`
    below the highest are left out.

    A coarse scan finds the mode and how far the mass reaches, Newton's method the mode itself and
    the width w of the peak. The nodes are `mode + w sinh(t)` with t equally spaced: near the mode
    as narrow as the peak needs, and wide where a tail is long. The sum over them converges as fast
    as for any analytic density that vanishes at both ends.
    """
    power, slope2 = k**2, scale**2
    reachable = np.sum(power / d, axis=1)

    def look(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        lambdas = np.exp(x)[..., None]
        share = lambdas / (d[:, None] + lambdas)  # (B, m, r)
        q = floor[:, None] + (share @ power[..., None])[..., 0]
        half_log_det = -0.5 * np.log(share).sum(axis=-1)
        log_density = 0.5 * x - np.log1p(slope2 * np.exp(x)) - 0.5 * df[:, None] * np.log(q)
        return log_density - half_log_det, q

    rank = d.shape[1]
    turn = np.log(floor / np.where(reachable > 0, reachable, floor))
    places = [turn, turn + np.log((rank + 1) / df), np.full(len(d), -2 * np.log(scale))]
    anchors = np.stack([*places, *np.log(d[:, [0, -1] if rank else []].T)])
    tilt = null and rank > 1
    low = np.maximum(anchors.min(axis=0) - 3 - 2 * far / (rank + 1 - 2 * tilt), -690.0)
    high = np.minimum(anchors.max(axis=0) + 3 + 2 * far, 690.0)
    scan = round(_SCAN * far / _FAR)
    step = (high - low) / (scan - 1)
    x = low[:, None] + step[:, None] * np.arange(scan)
    values = look(x)[0]
    best = np.argmax(values, axis=1)
    inside = values > values.max(axis=1, keepdims=True) - far
    if tilt:
        inside |= values - x > (values - x).max(axis=1, keepdims=True) - far
    first, last = np.argmax(inside, axis=1), scan - 1 - np.argmax(inside[:, ::-1], axis=1)
    mode, width = _peak(d, power, floor, df, slope2, low + step * best, step)
    ends = np.stack([low + step * (first - 1), low + step * (last + 1)], axis=1)
    ends = np.arcsinh((ends - mode[:, None]) / width[:, None])
    place = ends[:, :1] + (ends[:, 1:] - ends[:, :1]) * np.linspace(0.0, 1.0, n)
    x = mode[:, None] + width[:, None] * np.sinh(place)
    values, q = look(x)
    weights = np.exp(values - values.max(axis=1, keepdims=True)) * np.cosh(place)
    return x, weights / weights.sum(axis=1, keepdims=True), q


def _peak(
    d: FloatArray,
    power: FloatArray,
    floor: FloatArray,
    df: FloatArray,
    slope2: float,
    start: FloatArray,
    step: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Mode of log(lambda) within a step of `start`, and the width that the curvature says, (B,)."""
    x = start
    for _ in range(2):
        lambdas = np.exp(x)
        share = lambdas[:, None] / (d + lambdas[:, None])
        move = share * (1 - share)
        q = floor + np.sum(power * share, axis=1)
        rate = np.sum(power * move, axis=1) / q
        prior = slope2 * lambdas / (1 + slope2 * lambdas)
        slope = 0.5 * np.sum(1 - share, axis=1) - 0.5 * df * rate + 0.5 - prior
        bend = np.sum(power * move * (2 * share - 1), axis=1) / q + rate**2
        curve = 0.5 * np.sum(move, axis=1) - 0.5 * df * bend + prior * (1 - prior)
        curve = np.maximum(curve, 1 / step**2)  # where the density bends upwards
        x = np.clip(x + slope / curve, start - step, start + step)
    return x, np.minimum(1 / np.sqrt(curve), _WIDEST)


LambdaLaw = GridLambda | HalfLineLambda | PointValue  # the last: set by hand, as in LIME
_DRAW_BLOCK = 1 << 20  # exponentials held at once


def gumbel_sample(rng: np.random.Generator, grid: LambdaLaw, n: int) -> FloatArray:
    """The lambda whose log weight plus Gumbel noise is largest, n times, O(n L)."""
    nodes, weights = grid.nodes, grid.weights
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    best = np.empty(n, dtype=np.intp)
    step = max(1, _DRAW_BLOCK // len(nodes))
    for start in range(0, n, step):
        block = best[start : start + step]
        noise = rng.standard_exponential((len(block), len(nodes)))
        np.log(noise, out=noise)
        block[:] = np.argmax(np.subtract(log_weights, noise, out=noise), axis=1)
    return np.asarray(nodes[best])
