"""Logistic regression of hits on one covariate, with likelihood-ratio bounds.

The log odds of a hit are a + b x. The likelihood is concave in (a, b), so that its profile at a
point, the maximum over all lines through that point, is found by safeguarded Newton steps. The
maximum is at infinity if hits and misses do not overlap; the bounds exist nevertheless.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from eblime._types import FloatArray, IntArray

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
        beta = np.array([special.logit(self.k.sum() / self.n.sum()), 0.0])
        for _ in range(100):
            p = special.expit(beta[0] + beta[1] * t)
            slope = np.array([(self.k - self.n * p).sum(), (self.k - self.n * p) @ t])
            w = self.n * p * (1 - p)
            move = np.linalg.solve([[w.sum(), w @ t], [w @ t, w @ t**2]], slope)
            while self._loglik(beta + move, t) < self._loglik(beta, t) - 1e-12:
                move = move / 2
            beta = beta + move
            if np.abs(move).max() < 1e-12 * (1 + np.abs(beta).max()):
                break
        b = float(beta[1] / spread)
        return float(beta[0] - b * centre), b

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

    def _loglik(self, beta: FloatArray, t: FloatArray) -> float:
        """The log-likelihood of an intercept and a slope."""
        return float(self._sum(beta[0] + beta[1] * t))

    def _sum(self, odds: FloatArray) -> FloatArray:
        """The log-likelihood of log odds, (..., m), without loss of digits where they are large."""
        hit, miss = np.logaddexp(0, -odds), np.logaddexp(0, odds)
        return np.asarray(-(self.k * hit + (self.n - self.k) * miss).sum(axis=-1))

    def _most(self) -> float:
        """The supremum of the log-likelihood."""
        if self.kind == "overlap":
            a, b = self.estimate()
            return self._loglik(np.array([a, b]), self.x)
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
