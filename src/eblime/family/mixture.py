"""DMM-MEN: a mixture of regressions as a surrogate of a whole model (Guo et al., 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from eblime._checks import as_floats, as_generator, check_count, check_masks, check_scores
from eblime._types import FloatArray, IntArray, RNGLike
from eblime.answers import Answers
from eblime.family.mixture_sampler import Draw, log_densities, start, sweep
from eblime.laws import Draws, DrawsLaw
from eblime.posterior import Posterior

__all__ = ["Component", "RegressionMixture", "fit_mixture"]

_STARTS = 4  # random states that are tried
_TRIAL = 60  # sweeps of each


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Component:
    """A group of rows in which the model is nearly linear.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(80, 2))
    >>> scores = np.where(rows[:, 1] > 0, 4.0, -2.0) * rows[:, 0]
    >>> mixture = eblime.family.fit_mixture(rows, scores, draws=20, burn_in=20)
    >>> largest = mixture.components()[0]
    >>> largest.share == len(largest.rows) / 80
    True
    >>> largest.posterior.mean.shape
    (2,)
    """

    share: float  # of the rows
    rows: IntArray  # their numbers
    posterior: Posterior  # of the coefficients


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegressionMixture:
    """Draws from the posterior of a mixture of regressions, by `fit_mixture`.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(80, 2))
    >>> scores = np.where(rows[:, 1] > 0, 4.0, -2.0) * rows[:, 0]
    >>> mixture = eblime.family.fit_mixture(rows, scores, draws=20, burn_in=20, n_components=3)
    >>> mixture.beta.shape
    (20, 3, 2)
    >>> mixture.responsibilities(rows[0], scores[0]).sum(axis=1).round(6).tolist() == [1.0] * 20
    True
    """

    rows: FloatArray  # (N, p) the inputs
    scores: FloatArray  # (N,) the model's scores for them
    names: tuple[str, ...]
    labels: IntArray  # (S, N) component of each row
    beta: FloatArray  # (S, J, p) coefficients, in units of the scores and the columns
    intercept: FloatArray  # (S, J)
    sigma2: FloatArray  # (S, J)
    weights: FloatArray  # (S, J)
    best: int  # the draw with the largest likelihood

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
        if row.shape != (len(self.names),):
            raise ValueError(f"`x` must have {len(self.names)} columns; got {row.size}.")
        chances = self.responsibilities(row, score)  # (S, J)
        rng = np.random.default_rng(0)  # so that the same row has the same draws
        drawn = np.argmax(np.log(np.maximum(chances, 1e-300)) + rng.gumbel(size=chances.shape), 1)
        steps = np.arange(len(drawn))
        together = (self.labels == drawn[:, None]).mean(axis=0)
        return self._posterior(self.beta[steps, drawn], together)

    def responsibilities(self, x: FloatArray, score: float) -> FloatArray:
        """Probability of each component, given a row and its score, in every draw, (S, J)."""
        gap = score - self.beta @ x - self.intercept
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights) - 0.5 * np.log(self.sigma2) - gap**2 / (2 * self.sigma2)
        return np.asarray(special.softmax(logs, axis=1))

    def components(self, least: float = 0.02) -> tuple[Component, ...]:
        """The components of the draw with the largest likelihood, largest first.

        The coefficients are means over the rows of a component, so that they do not depend on the
        numbering of the components, which may change from draw to draw.

        Parameters
        ----------
        least
            Share of the rows below which a component is left out.
        """
        reference = self.labels[self.best]
        found = []
        for j in np.unique(reference):
            rows = np.flatnonzero(reference == j)
            if len(rows) < least * len(reference):
                continue
            share = np.stack([(self.labels[:, rows] == k).mean(1) for k in range(self._n)], axis=1)
            beta = np.einsum("sj,sjp->sp", share, self.beta)
            inside = np.isin(np.arange(len(reference)), rows).astype(np.float64)
            posterior = self._posterior(beta, inside)
            found.append(
                Component(share=len(rows) / len(reference), rows=rows, posterior=posterior)
            )
        return tuple(sorted(found, key=lambda component: -component.share))

    @property
    def _n(self) -> int:
        """Number of components, J."""
        return int(self.weights.shape[1])

    def _posterior(self, beta: FloatArray, weights: FloatArray) -> Posterior:
        """A posterior from draws of the coefficients, judged on rows with these weights."""
        used = weights if weights.any() else np.ones(len(weights))
        answers = Answers(masks=self.rows, scores=self.scores, weights=used, features=self.names)
        return Posterior.from_law(
            DrawsLaw(draws=Draws(beta=beta)),
            answers,
            method="DMM-MEN",
            estimand="coefficients of the component of the row",
        )


def fit_mixture(
    rows: ArrayLike,
    scores: ArrayLike,
    *,
    n_components: int = 6,
    n_nets: int = 3,
    draws: int = 500,
    burn_in: int = 500,
    names: Sequence[str] | None = None,
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
    n_nets
        Number of elastic-net priors, among which each component has one.
    draws, burn_in
        Sweeps of the sampler that are kept, and before them.
    names
        Names of the columns.
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
    check_count("n_nets", n_nets)
    check_count("draws", draws, minimum=2)
    check_count("burn_in", burn_in, minimum=0)
    listed = [f"column {j}" for j in range(x.shape[1])] if names is None else list(names)
    if len(listed) != x.shape[1]:
        raise ValueError(f"`names` must have {x.shape[1]} names; got {len(listed)}.")
    centre, scale = x.mean(axis=0), _spread(x)
    middle, unit = float(y.mean()), float(_spread(y[:, None])[0])
    inner, outer = np.column_stack([np.ones(len(x)), (x - centre) / scale]), (y - middle) / unit
    generator = as_generator(rng)
    begin = _best_start(generator, inner, outer, n_components, n_nets)
    kept = _sampled(generator, begin, inner, outer, burn_in + draws)[burn_in:]
    beta = unit * np.array([draw.beta[:, 1:] for draw in kept]) / scale
    first = middle + unit * np.array([draw.beta[:, 0] for draw in kept])
    return RegressionMixture(
        rows=x,
        scores=y,
        names=tuple(listed),
        labels=np.array([draw.labels for draw in kept]),
        beta=beta,
        intercept=first - beta @ centre,
        sigma2=unit**2 * np.array([draw.sigma2 for draw in kept]),
        weights=np.array([draw.weights for draw in kept]),
        best=int(np.argmax([_log_likelihood(draw, inner, outer) for draw in kept])),
    )


def _best_start(rng: np.random.Generator, x: FloatArray, y: FloatArray, n: int, nets: int) -> Draw:
    """The best of several short chains from random states: one chain may miss a component."""
    ends = [_sampled(rng, start(rng, x, y, n, nets), x, y, _TRIAL)[-1] for _ in range(_STARTS)]
    return max(ends, key=lambda state: _log_likelihood(state, x, y))


def _sampled(
    rng: np.random.Generator, state: Draw, x: FloatArray, y: FloatArray, n: int
) -> list[Draw]:
    """The states after each of n sweeps."""
    states = []
    for _ in range(n):
        state = sweep(rng, state, x, y)
        states.append(state)
    return states


def _log_likelihood(state: Draw, x: FloatArray, y: FloatArray) -> float:
    """Logarithm of the density of all scores."""
    return float(special.logsumexp(log_densities(state, x, y), axis=1).sum())


def _spread(values: FloatArray) -> FloatArray:
    """Standard deviations of columns, 1 for constant ones."""
    sd = values.std(axis=0)
    return np.where(sd > 0, sd, 1.0)
