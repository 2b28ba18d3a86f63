"""DMM-MEN: a mixture of regressions as a surrogate of a whole model (Guo et al., 2018).

A Gibbs sampler draws all components at once, with elastic-net priors:

    y | x, component j ~ N(x'beta_j, sigma_j^2),   P(j) = v_j (1 - v_1) ... (1 - v_(j-1))
    v_j ~ Beta(1, alpha),  alpha ~ Gamma(5, 1),  sigma_j^2 ~ inverse gamma(1/2, 1/2)
    p(beta_j | sigma_j) ~ exp(-l1 |b| - l2 b^2 / 2) / C(l1, l2) for each b = beta / sigma_j
    l1 ~ Gamma(1, 1/2), l2 ~ Gamma(4, 1/2), for each component

The Laplace factor is a scale mixture of normal laws: given its variance s, b is normal with
precision `1 / s + l2`, and 1 / s given b is inverse Gaussian with mean l1 / |b| and shape l1^2. The
normaliser `C = sqrt(2 pi / l2) erfcx(l1 / sqrt(2 l2))` does not depend on sigma, so that every step
but that of (l1, l2) has a closed form; these are drawn on a grid.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from eblime._checks import as_floats, as_generator, check_count, check_masks, check_scores
from eblime._types import FloatArray, IntArray, RNGLike
from eblime.answers import Answers
from eblime.explainers.base import BaseExplainer
from eblime.family.systems import NumberRows, explanation_like, spread
from eblime.laws import Draws, DrawsLaw
from eblime.posterior import Posterior
from eblime.results.explanation import Explanation
from eblime.scores import Target

_STARTS = 4  # random states that are tried
_TRIAL = 60  # sweeps of each
_INTERCEPT = 0.01  # prior precision of an intercept, in units of 1 / sigma^2
_GRID = np.exp(np.linspace(np.log(0.02), np.log(100.0), 30))
_SMALL = 1e-8  # least |b| in the step of its scale


@dataclass(frozen=True, slots=True, kw_only=True)
class DMMMEN:
    """DMM-MEN: the regression of the row's component, among rows of the background.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).normal(size=(60, 2))
    >>> methods = {"LIME": "lime", "DMM-MEN": eblime.family.DMMMEN(draws=50, burn_in=50)}
    >>> double = lambda table: 2 * table[:, 0]
    >>> found = eblime.compare(double, rows[0], methods, background=rows, n_masks=60)
    >>> int(abs(found["DMM-MEN"].posterior.mean).argmax())  # the first column
    0
    """

    draws: int = 300
    burn_in: int = 300

    def check(self, explainer: BaseExplainer, x: object) -> None:
        """Refuse inputs other than rows of numbers, and settings that cannot work."""
        NumberRows.of(explainer, x, "DMM-MEN")
        check_count("draws", self.draws, minimum=2)
        check_count("burn_in", self.burn_in, minimum=0)
        check_count("n_masks", explainer.loop.masks_for(), minimum=2)

    def explain(
        self, explainer: BaseExplainer, x: object, target: Target = None, rng: RNGLike = 0
    ) -> Explanation:
        """Fit the mixture to the model's scores of background rows; explain the row by it."""
        self.check(explainer, x)
        known = NumberRows.of(explainer, x, "DMM-MEN").sample(explainer.loop.masks_for() - 1, rng)
        rows = known.background
        asked = known.explain(explainer, rows, target, rng)
        scores = asked.scores[1:]
        whole = fit_mixture(rows, scores, draws=self.draws, burn_in=self.burn_in, rng=rng)
        posterior = whole.local(known.row, asked.prediction)
        calls = int(asked.provenance["model_calls"])
        return explanation_like(asked, posterior, rows, scores, calls)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegressionMixture:
    """Draws from the posterior of a mixture of regressions, by `fit_mixture`.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).normal(size=(80, 2))
    >>> scores = abs(rows[:, 0])
    >>> mixture = eblime.family.fit_mixture(rows, scores, draws=20, burn_in=20, n_components=3)
    >>> mixture.beta.shape, mixture.local(rows[0], scores[0]).mean.shape
    ((20, 3, 2), (2,))
    """

    rows: FloatArray  # (N, p) the inputs
    scores: FloatArray  # (N,) the model's scores for them
    labels: IntArray  # (S, N) component of each row
    beta: FloatArray  # (S, J, p) coefficients, in units of the scores and the columns
    intercept: FloatArray  # (S, J)
    sigma2: FloatArray  # (S, J)
    weights: FloatArray  # (S, J)

    def local(self, x: ArrayLike, score: float) -> Posterior:
        """The coefficients of the component that is responsible for a row and its score.

        Parameters
        ----------
        x
            A row, (p,).
        score
            The model's score for it.
        """
        row = as_floats("x", x).ravel()
        if len(row) != self.rows.shape[1]:
            raise ValueError(f"`x` must have {self.rows.shape[1]} columns; got {len(row)}.")
        gap = score - self.beta @ row - self.intercept
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights) - 0.5 * np.log(self.sigma2) - gap**2 / (2 * self.sigma2)
        chances = special.softmax(logs, axis=1)  # that each component is responsible, (S, J)
        rng = np.random.default_rng(0)  # so that the same row has the same draws
        drawn = np.argmax(np.log(np.maximum(chances, 1e-300)) + rng.gumbel(size=chances.shape), 1)
        together = (self.labels == drawn[:, None]).mean(axis=0)  # how often each row shares it
        weights = together if together.any() else np.ones(len(together))
        return Posterior.from_law(
            DrawsLaw(draws=Draws(beta=self.beta[np.arange(len(drawn)), drawn])),
            Answers(masks=self.rows, scores=self.scores, weights=weights),
            method="DMM-MEN",
            estimand="coefficients of the component of the row",
        )


def fit_mixture(
    rows: ArrayLike,
    scores: ArrayLike,
    *,
    n_components: int = 6,
    draws: int = 500,
    burn_in: int = 500,
    rng: RNGLike = 0,
) -> RegressionMixture:
    """Fit a mixture of regressions to a model's scores, by Gibbs sampling.

    Parameters
    ----------
    rows
        Inputs of the model, (N, p): rows of a table, or masks of superpixels.
    scores
        The model's scores for them, (N,).
    n_components
        The most components; those that are not needed stay empty.
    draws, burn_in
        Sweeps of the sampler that are kept, and before them.
    rng
        Seed or generator.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.family import fit_mixture
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(200, 3))
    >>> scores = np.where(rows[:, 2] > 0, 2.0, -2.0) * rows[:, 0] + 3 * (rows[:, 2] > 0)
    >>> found = fit_mixture(rows, scores, draws=100, burn_in=100)
    >>> found.local(rows[0], scores[0]).mean.round(1) + 0.0, bool(rows[0, 2] > 0)
    (array([2., 0., 0.]), True)
    """
    x = check_masks(rows, name="rows")
    y = check_scores(scores, len(x), ndim=1)
    check_count("n_components", n_components, minimum=2)
    check_count("draws", draws, minimum=2)
    check_count("burn_in", burn_in, minimum=0)
    centre, scale = x.mean(axis=0), spread(x)
    middle, unit = float(y.mean()), float(spread(y))
    inner, outer = np.column_stack([np.ones(len(x)), (x - centre) / scale]), (y - middle) / unit
    generator = as_generator(rng)
    ends = []  # of short chains from random states: one chain may miss a component
    for _ in range(_STARTS):
        first = start(generator, inner, outer, n_components)
        ends.append(_run_chain(generator, first, inner, outer, _TRIAL)[-1])
    fits = [special.logsumexp(log_densities(end, inner, outer), axis=1).sum() for end in ends]
    begin = ends[int(np.argmax(fits))]
    kept = _run_chain(generator, begin, inner, outer, burn_in + draws)[burn_in:]
    beta = unit * np.array([draw.beta[:, 1:] for draw in kept]) / scale
    level = middle + unit * np.array([draw.beta[:, 0] for draw in kept])
    return RegressionMixture(
        rows=x,
        scores=y,
        labels=np.array([draw.labels for draw in kept]),
        beta=beta,
        intercept=level - beta @ centre,
        sigma2=unit**2 * np.array([draw.sigma2 for draw in kept]),
        weights=np.array([draw.weights for draw in kept]),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draw:
    """The state of the sampler; the first coefficient is the intercept."""

    labels: IntArray  # (N,) component of each row
    beta: FloatArray  # (J, 1 + p)
    sigma2: FloatArray  # (J,)
    scales: FloatArray  # (J, p) 1 / s
    penalties: FloatArray  # (J, 2) l1 and l2
    weights: FloatArray  # (J,)
    alpha: float


def log_normaliser(l1: FloatArray, l2: FloatArray) -> FloatArray:
    """Logarithm of C(l1, l2), the integral of `exp(-l1 |b| - l2 b^2 / 2)` over b."""
    return np.asarray(0.5 * np.log(2 * np.pi / l2) + np.log(special.erfcx(l1 / np.sqrt(2 * l2))))


_GRID_NORMALISER = log_normaliser(_GRID[:, None], _GRID[None])
# gamma priors, times l1 and l2 because the grid is even in their logarithms
_GRID_PRIOR = (np.log(_GRID) - _GRID / 2)[:, None] + 4 * np.log(_GRID) - _GRID / 2


def start(rng: np.random.Generator, x: FloatArray, y: FloatArray, n: int) -> Draw:
    """A random state with n components."""
    p = x.shape[1] - 1
    state = Draw(
        labels=rng.integers(0, n, size=len(y)),
        beta=np.zeros((n, 1 + p)),
        sigma2=np.full(n, max(float(y.var()), 1e-12)),
        scales=np.ones((n, p)),
        penalties=np.ones((n, 2)),
        weights=np.full(n, 1 / n),
        alpha=5.0,
    )
    return draw_coefficients(rng, state, x, y)


def sweep(rng: np.random.Generator, state: Draw, x: FloatArray, y: FloatArray) -> Draw:
    """Draw every part of the state once, given the others."""
    logs = log_densities(state, x, y)  # the component of each row: the largest, perturbed
    state = replace(state, labels=np.argmax(logs + rng.gumbel(size=logs.shape), axis=1))
    state = _draw_weights(rng, state)
    state = _draw_penalties(rng, state)
    state = draw_scales(rng, state)
    state = draw_coefficients(rng, state, x, y)
    return _draw_noise(rng, state, x, y)


def draw_scales(rng: np.random.Generator, state: Draw) -> Draw:
    """Inverse variances of the scale mixtures, given the coefficients."""
    b = np.abs(state.beta[:, 1:]) / np.sqrt(state.sigma2)[:, None]
    l1 = state.penalties[:, :1]
    return replace(state, scales=rng.wald(l1 / np.maximum(b, _SMALL), l1**2 + 0 * b))


def draw_coefficients(rng: np.random.Generator, state: Draw, x: FloatArray, y: FloatArray) -> Draw:
    """Coefficients of all components, given the scales and the labels."""
    shown = state.labels == np.arange(len(state.weights))[:, None]  # (J, N)
    columns = shown[:, None, :] * x.T
    precision = columns @ x
    index = np.arange(x.shape[1])
    precision[:, index, index] += _prior_precision(state)
    mean = np.linalg.solve(precision, (columns @ y)[..., None])[..., 0]
    root = np.linalg.cholesky(precision)
    noise = rng.standard_normal(mean.shape) * np.sqrt(state.sigma2)[:, None]
    return replace(
        state, beta=mean + np.linalg.solve(np.swapaxes(root, 1, 2), noise[..., None])[..., 0]
    )


def log_densities(state: Draw, x: FloatArray, y: FloatArray) -> FloatArray:
    """Logarithm of weight times density of each row under each component, (N, J)."""
    gap = y[:, None] - x @ state.beta.T
    with np.errstate(divide="ignore"):
        logs = np.log(state.weights) - 0.5 * np.log(2 * np.pi * state.sigma2)
    return np.asarray(logs - gap**2 / (2 * state.sigma2))


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
    """The penalties of each component, given its coefficients."""
    b = np.abs(state.beta[:, 1:]) / np.sqrt(state.sigma2)[:, None]
    sizes = np.stack([b.sum(axis=1), (b**2).sum(axis=1) / 2], axis=1)
    found = [_on_grid(rng, b.shape[1], size) for size in sizes]
    return replace(state, penalties=np.array(found))


def _on_grid(rng: np.random.Generator, n: int, sizes: FloatArray) -> tuple[float, float]:
    """One pair (l1, l2), given n coefficients with these sums of |b| and b^2 / 2."""
    l1, l2 = _GRID[:, None], _GRID[None]
    logs = _GRID_PRIOR - n * _GRID_NORMALISER - l1 * sizes[0] - l2 * sizes[1]
    first, second = np.unravel_index(
        np.argmax(logs + rng.gumbel(size=logs.shape)), (len(_GRID), len(_GRID))
    )
    return float(_GRID[first]), float(_GRID[second])


def _draw_noise(rng: np.random.Generator, state: Draw, x: FloatArray, y: FloatArray) -> Draw:
    gap = y - np.sum(x * state.beta[state.labels], axis=1)
    n = len(state.sigma2)
    missed = np.bincount(state.labels, weights=gap**2, minlength=n)
    counts = np.bincount(state.labels, minlength=n)
    size = np.sum(_prior_precision(state) * state.beta**2, axis=1)
    shape = 0.5 + (counts + x.shape[1]) / 2
    return replace(state, sigma2=(0.5 + (missed + size) / 2) / rng.gamma(shape))


def _prior_precision(state: Draw) -> FloatArray:
    """Prior precisions of the coefficients in units of 1 / sigma^2, (J, 1 + p)."""
    slopes = state.scales + state.penalties[:, 1:]
    return np.column_stack([np.full(len(slopes), _INTERCEPT), slopes])


def _run_chain(
    rng: np.random.Generator, state: Draw, x: FloatArray, y: FloatArray, n: int
) -> list[Draw]:
    states = []
    for _ in range(n):
        state = sweep(rng, state, x, y)
        states.append(state)
    return states
