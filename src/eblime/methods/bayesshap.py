"""BayesSHAP: Shapley values with a posterior, by a regression with the Shapley kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from eblime._types import FloatArray
from eblime.answers import Answers
from eblime.core.laws import PointValue, normal_law
from eblime.core.mixture import Mixture, NoiseVariance
from eblime.core.pairs import find_pairs
from eblime.core.population import is_exhaustive, without_rounding
from eblime.kernels import shapley
from eblime.methods.common import Regression, bayesian_posterior, regress
from eblime.posterior import Posterior
from eblime.protocols import Law, ScalarLaw

_FLAT = 1e-9  # a ridge parameter that does not matter


@dataclass(frozen=True, slots=True, kw_only=True)
class BayesSHAP:
    """Shapley values by a Bayesian linear regression with the Shapley kernel (Slack et al., 2021).

    The kernel of an explainer is not used: the number of shown features decides the weight of a
    mask. Use it with `design="leverage"`, which asks about the masks with the most weight.

    Where the scores of the input itself and of everything hidden are known, the line is exact
    there, as for Shapley values: the importances add up to the difference, in every draw.
    Elsewhere the intercept is free. The importances are shrunk, with a ridge parameter of 1 as
    published, only where there are more features than masks.

    Notes
    -----
    With f(0) and f(1) the scores at the ends, `beta = (f(1) - f(0)) / p + B gamma`, where the
    columns of B are an orthonormal basis of all vectors that add up to zero. gamma is the
    regression of `f(z) - f(0) - (f(1) - f(0)) |z| / p` on `B'z`, without intercept. On all masks
    its slopes are the Shapley values, exactly.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> masks = np.array([[1, 1, 1], [0, 0, 0], [1, 0, 0], [0, 1, 1], [0, 1, 0], [1, 0, 1]])
    >>> scores = masks[:, 0] * masks[:, 1] + 0.5 * masks[:, 2]
    >>> post = eblime.fit(masks, scores, method=eblime.BayesSHAP())
    >>> float(post.mean.sum().round(6)), post.estimand
    (1.5, 'Shapley values')
    """

    name: ClassVar[str] = "BayesSHAP"
    design: ClassVar[str] = "leverage"  # instead of the default
    ends: ClassVar[str] = "useful"  # the loop asks about the input itself and everything hidden

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """Fit one target."""
        if not np.isin(answers.masks, (0, 1)).all():
            raise ValueError("`masks` must be zeros and ones for BayesSHAP; got other values.")
        ends = _ends(answers)
        weighed = replace(answers, weights=_weights(answers, interior=False))
        if ends is None:
            [problem] = regress([weighed], flat=True)
            mixture = self._mixture(weighed.masks, problem)
            posterior = bayesian_posterior(self.name, problem, mixture)
            estimand = "linear fit by the Shapley kernel, free intercept"
            return replace(posterior, estimand=estimand)
        inside = _weights(answers, interior=True)
        return self._exact_at_ends(weighed, inside, *ends)

    def _exact_at_ends(
        self, answers: Answers, inside: FloatArray, shown: float, hidden: float
    ) -> Posterior:
        """Posterior of the importances that add up to the difference of the two ends."""
        p, masks = answers.n_features, answers.masks
        share = (shown - hidden) / p
        basis = _contrasts(p)
        left = answers.scores - hidden - share * masks.sum(axis=1)
        if not inside.any():  # only the ends were asked, or there is a single feature
            inside, left = np.ones(len(masks)), left if p > 1 else np.zeros(len(masks))
        contrasts = replace(answers, masks=masks @ basis, scores=left, weights=inside)
        [problem] = regress([contrasts], flat=False)
        mixture = self._mixture(masks, problem)
        law: Law = replace(mixture, matrix=basis, offset=np.full(p, share))
        drawn = answers.noisy or answers.sampling is not None
        if not drawn and is_exhaustive(masks):  # the Shapley values
            law = normal_law(without_rounding(law.mean, answers.scores), np.zeros((p, p)))
        extras: dict[str, ScalarLaw] = {
            "lam": mixture.lam,
            "sigma2": NoiseVariance(mixture=mixture),
            "intercept": PointValue(value=hidden),
        }
        return Posterior.from_law(
            law, answers, method=self.name, estimand="Shapley values", extras=extras
        )

    def _mixture(self, masks: FloatArray, problem: Regression) -> Mixture:
        """Law of the coefficients: flat where the masks determine them, else a ridge."""
        spectrum = problem.spectrum
        reached, n = len(spectrum.d), len(spectrum.root)
        flat = n - spectrum.flat > len(spectrum.basis)
        pairs = find_pairs(masks[spectrum.rows]) if flat and n > 2 * reached else None
        evidence = replace(problem, pairs=pairs).evidence(a=-reached / 2 if flat else 0.0)
        return problem.law(PointValue(value=_FLAT if flat else 1.0), evidence)


def _ends(answers: Answers) -> tuple[float, float] | None:
    """The scores of the input itself and with everything hidden; None unless both are known.

    Several answers to one of them that differ do not say what its score is.
    """
    if answers.original is not None:  # from the loop, which knows whether masks fix the input
        return None if answers.hidden is None else (answers.original, answers.hidden)
    rows = [np.flatnonzero((answers.masks == end).all(axis=1)) for end in (1, 0)]
    shown, hidden = (answers.scores[some] for some in rows)
    if not (shown.size and hidden.size) or np.ptp(shown) or np.ptp(hidden):
        return None
    return float(shown[0]), float(hidden[0])


def _weights(answers: Answers, *, interior: bool) -> FloatArray:
    """The Shapley kernel times what corrects uneven draws, with a mean of one between the ends."""
    shown = answers.masks.sum(axis=1)
    inside = (shown > 0) & (shown < answers.n_features)
    weights = shapley(answers.masks)
    if answers.sampling is not None:
        weights = weights * answers.sampling
    if (weights[inside] > 0).any():
        weights = weights / weights[inside].mean()
    if interior:
        return np.where(inside, weights, 0.0)
    return weights if weights.any() else np.ones(len(weights))


def _contrasts(p: int) -> FloatArray:
    """An orthonormal basis of the vectors that add up to zero, (p, p - 1); zeros if p is 1."""
    if p == 1:
        return np.zeros((1, 1))
    steps = np.arange(1, p)
    basis = np.triu(np.ones((p, p - 1)))
    basis[steps, steps - 1] = -steps
    return np.asarray(basis / np.sqrt(steps * (steps + 1)))
