"""A Gibbs sampler for a mixture of regressions with elastic-net priors, all components at once.

    y | x, component j ~ N(x'beta_j, sigma_j^2),   P(j) = v_j (1 - v_1) ... (1 - v_(j-1))
    v_j ~ Beta(1, alpha),  alpha ~ Gamma(5, 1),  sigma_j^2 ~ inverse gamma(1/2, 1/2)
    p(beta_j | sigma_j) ~ exp(-l1 |b| - l2 b^2 / 2) / C(l1, l2) for each b = beta / sigma_j
    (l1, l2) of component j: one of K pairs, drawn by weights ~ Dirichlet(1 / K)
    l1 ~ Gamma(1, 1/2), l2 ~ Gamma(4, 1/2)

The Laplace factor is a scale mixture of normal laws: given its variance s, b is normal with
precision `1 / s + l2`, and 1 / s given b is inverse Gaussian with mean l1 / |b| and shape l1^2. The
normaliser `C = sqrt(2 pi / l2) erfcx(l1 / sqrt(2 l2))` does not depend on sigma, so that every step
but that of (l1, l2) has a closed form; these are drawn on a grid.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from eblime._types import FloatArray, IntArray

__all__ = ["Draw", "log_densities", "log_normaliser", "start", "sweep"]

_INTERCEPT = 0.01  # prior precision of an intercept, in units of 1 / sigma^2
_GRID = np.exp(np.linspace(np.log(0.02), np.log(100.0), 30))
_SMALL = 1e-8  # least |b| in the step of its scale


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draw:
    """The state of the sampler; the first coefficient is the intercept."""

    labels: IntArray  # (N,) component of each row
    beta: FloatArray  # (J, 1 + p)
    sigma2: FloatArray  # (J,)
    scales: FloatArray  # (J, p) 1 / s
    nets: IntArray  # (J,) which pair of penalties each component has
    penalties: FloatArray  # (K, 2)
    net_weights: FloatArray  # (K,)
    weights: FloatArray  # (J,)
    alpha: float


def log_normaliser(l1: FloatArray, l2: FloatArray) -> FloatArray:
    """Logarithm of C(l1, l2), the integral of `exp(-l1 |b| - l2 b^2 / 2)` over b."""
    return np.asarray(0.5 * np.log(2 * np.pi / l2) + np.log(special.erfcx(l1 / np.sqrt(2 * l2))))


_GRID_NORMALISER = log_normaliser(_GRID[:, None], _GRID[None])
# gamma priors, times l1 and l2 because the grid is even in their logarithms
_GRID_PRIOR = (np.log(_GRID) - _GRID / 2)[:, None] + 4 * np.log(_GRID) - _GRID / 2


def start(rng: np.random.Generator, x: FloatArray, y: FloatArray, n: int, nets: int) -> Draw:
    """A random state with n components."""
    p = x.shape[1] - 1
    state = Draw(
        labels=rng.integers(0, n, size=len(y)),
        beta=np.zeros((n, 1 + p)),
        sigma2=np.full(n, max(float(y.var()), 1e-12)),
        scales=np.ones((n, p)),
        nets=rng.integers(0, nets, size=n),
        penalties=np.ones((nets, 2)),
        net_weights=np.full(nets, 1 / nets),
        weights=np.full(n, 1 / n),
        alpha=5.0,
    )
    return draw_coefficients(rng, state, x, y)


def sweep(rng: np.random.Generator, state: Draw, x: FloatArray, y: FloatArray) -> Draw:
    """Draw every part of the state once, given the others."""
    state = _draw_labels(rng, state, x, y)
    state = _draw_weights(rng, state)
    state = _draw_penalties(rng, state)
    state = draw_scales(rng, state)
    state = draw_coefficients(rng, state, x, y)
    return _draw_noise(rng, state, x, y)


def draw_scales(rng: np.random.Generator, state: Draw) -> Draw:
    """Inverse variances of the scale mixtures, given the coefficients."""
    b = np.abs(state.beta[:, 1:]) / np.sqrt(state.sigma2)[:, None]
    l1 = state.penalties[state.nets, :1]
    return replace(state, scales=rng.wald(l1 / np.maximum(b, _SMALL), l1**2 + 0 * b))


def draw_coefficients(rng: np.random.Generator, state: Draw, x: FloatArray, y: FloatArray) -> Draw:
    """Coefficients of all components, given the scales and the labels."""
    shown = _members(state).T  # (J, N)
    columns = shown[:, None, :] * x.T
    precision = columns @ x
    index = np.arange(x.shape[1])
    precision[:, index, index] += _prior_precision(state)
    mean = np.linalg.solve(precision, (columns @ y)[..., None])[..., 0]
    root = np.linalg.cholesky(precision)
    noise = rng.standard_normal(mean.shape) * np.sqrt(state.sigma2)[:, None]
    spread = np.linalg.solve(np.swapaxes(root, 1, 2), noise[..., None])[..., 0]
    return replace(state, beta=mean + spread)


def log_densities(state: Draw, x: FloatArray, y: FloatArray) -> FloatArray:
    """Logarithm of weight times density of each row under each component, (N, J)."""
    gap = y[:, None] - x @ state.beta.T
    with np.errstate(divide="ignore"):
        logs = np.log(state.weights) - 0.5 * np.log(2 * np.pi * state.sigma2)
    return np.asarray(logs - gap**2 / (2 * state.sigma2))


def _draw_labels(rng: np.random.Generator, state: Draw, x: FloatArray, y: FloatArray) -> Draw:
    """The component of each row, by the largest of perturbed logarithms."""
    logs = log_densities(state, x, y)
    return replace(state, labels=np.argmax(logs + rng.gumbel(size=logs.shape), axis=1))


def _draw_weights(rng: np.random.Generator, state: Draw) -> Draw:
    """Weights by breaking a stick, and the concentration alpha."""
    counts = np.bincount(state.labels, minlength=len(state.weights))
    after = counts[::-1].cumsum()[::-1] - counts
    stick = np.clip(rng.beta(1 + counts[:-1], state.alpha + after[:-1]), 1e-12, 1 - 1e-12)
    left = np.concatenate([[1.0], np.cumprod(1 - stick)])
    weights = left * np.concatenate([stick, [1.0]])
    rate = 1 - float(np.log1p(-stick).sum())
    alpha = float(rng.gamma(5 + len(stick), 1 / rate))
    return replace(state, weights=weights, alpha=alpha)


def _draw_penalties(rng: np.random.Generator, state: Draw) -> Draw:
    """The pair of penalties of each component, the pairs themselves, and their weights."""
    b = np.abs(state.beta[:, 1:]) / np.sqrt(state.sigma2)[:, None]
    p, n_nets = b.shape[1], len(state.penalties)
    sizes = np.stack([b.sum(axis=1), (b**2).sum(axis=1) / 2], axis=1)  # (J, 2)
    l1, l2 = state.penalties.T
    logs = np.log(np.maximum(state.net_weights, 1e-300)) - p * log_normaliser(l1, l2)
    logs = logs - sizes @ state.penalties.T
    nets = np.argmax(logs + rng.gumbel(size=logs.shape), axis=1)
    counts = np.bincount(nets, minlength=n_nets)
    total = np.zeros((n_nets, 2))
    np.add.at(total, nets, sizes)
    penalties = np.array([_on_grid(rng, p * m, t) for m, t in zip(counts, total, strict=True)])
    shares = rng.dirichlet(1 / n_nets + counts)
    return replace(state, nets=nets, penalties=penalties, net_weights=shares)


def _on_grid(rng: np.random.Generator, n: int, sizes: FloatArray) -> tuple[float, float]:
    """One pair (l1, l2), given n coefficients with these sums of |b| and b^2 / 2."""
    l1, l2 = _GRID[:, None], _GRID[None]
    logs = _GRID_PRIOR - n * _GRID_NORMALISER - l1 * sizes[0] - l2 * sizes[1]
    first, second = np.unravel_index(
        np.argmax(logs + rng.gumbel(size=logs.shape)), (len(_GRID), len(_GRID))
    )
    return float(_GRID[first]), float(_GRID[second])


def _draw_noise(rng: np.random.Generator, state: Draw, x: FloatArray, y: FloatArray) -> Draw:
    """Noise variances, given the coefficients and the scales."""
    gap = y - np.sum(x * state.beta[state.labels], axis=1)
    n = len(state.sigma2)
    missed = np.bincount(state.labels, weights=gap**2, minlength=n)
    counts = np.bincount(state.labels, minlength=n)
    size = np.sum(_prior_precision(state) * state.beta**2, axis=1)
    shape = 0.5 + (counts + x.shape[1]) / 2
    return replace(state, sigma2=(0.5 + (missed + size) / 2) / rng.gamma(shape))


def _prior_precision(state: Draw) -> FloatArray:
    """Prior precisions of the coefficients in units of 1 / sigma^2, (J, 1 + p)."""
    slopes = state.scales + state.penalties[state.nets, 1:]
    return np.column_stack([np.full(len(slopes), _INTERCEPT), slopes])


def _members(state: Draw) -> FloatArray:
    """One where a row is of a component, (N, J)."""
    return np.asarray(state.labels[:, None] == np.arange(len(state.weights)), dtype=np.float64)
