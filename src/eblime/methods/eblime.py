"""EBLIME: Bayesian ridge regression with a random ridge parameter, the paper's method."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Literal

import numpy as np

from eblime._checks import check_choice, check_count, check_number
from eblime._types import FloatArray, IntArray
from eblime.answers import Answers
from eblime.core.fit_quality import leave_one_out
from eblime.core.lam import Evidence, grid_lambda, gumbel_sample, half_line_lambda
from eblime.core.laws import DrawsLaw
from eblime.core.local import Level, LocalMixture, fit_local, most_together, rescale_all
from eblime.core.mixture import Mixture
from eblime.core.pairs import find_pairs
from eblime.core.pool import PooledPrior, fit_pooled, learn_weights
from eblime.core.spectrum import is_well_conditioned, project, rescale
from eblime.methods.common import Regression, bayesian_posterior, local_posterior, regress
from eblime.posterior import Posterior


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedGrid:
    """The paper's way to integrate over lambda: a uniform grid, and draws by Algorithms 1 and 2.

    Examples
    --------
    >>> import eblime
    >>> eblime.EBLIME.paper().grid.n_lambdas
    20000
    """

    n_lambdas: int = 20_000  # L
    upper: float = 1.0  # r
    draws: int | None = 2_500  # s; None integrates the same grid exactly
    sampler: Literal["categorical", "gumbel"] = "categorical"

    def __post_init__(self) -> None:
        """Refuse settings that no grid can have."""
        check_count("n_lambdas", self.n_lambdas)
        check_number("upper", self.upper)
        if self.draws is not None:
            check_count("draws", self.draws, minimum=2)
        check_choice("sampler", self.sampler, ("categorical", "gumbel"))

    @property
    def lambdas(self) -> FloatArray:
        """`r l / L` for l = 1 .. L, shape (L,)."""
        return self.upper * (np.arange(1, self.n_lambdas + 1) / self.n_lambdas)


@dataclass(frozen=True, slots=True, kw_only=True)
class EBLIME:
    """The default method: a Bayesian ridge regression that learns how much to shrink importances.

    The ridge parameter lambda says how strongly importances are shrunk towards zero, and sigma^2
    how far the scores lie from a line. Both are unknown: lambda^-1/2 has a half-Cauchy prior,
    sigma^2 an inverse gamma prior. Each feature has its own scale, in addition to lambda. The share
    of the importances that are positive is learnt too.

    Parameters
    ----------
    a, b
        Shape and scale of the prior of sigma^2; weak by default. With standardised scores b is the
        scale at a mask of average weight.
    intercept
        "flat": the intercept is free. "none": there is none, as in the paper.
    scale
        Scale of the prior of lambda^-1/2: a smaller one expects smaller importances.
    standardize
        Divide the scores by their weighted spread first (and undo it in the result), so that the
        result does not depend on their units.
    grid
        How to integrate over lambda: None over all positive values, exactly; a `PublishedGrid` as
        in the paper.
    local
        Whether each feature has its own scale, so that a few large importances are not shrunk
        because many are small. None, the default, is True without a grid and False with one. False
        is better if all importances are of similar size.
    noise
        "unequal": intervals are widened for features where some masks are further from the line
        than others (a sandwich variance that allows for pairs of complementary masks). "equal": the
        distances are taken to be of the same size at all masks. None, the default, is "unequal"
        with `local=True`, and "equal" without.
    finite
        Whether only masks that were not asked are uncertain: a mask has one score, and there are
        2^p of them (`core/population.py`). None, the default, is True without a grid.
    pooled
        A prior that was learnt from many inputs, instead of lambda and the features' own scales;
        `Run.pool` sets it.

    Notes
    -----
    Masks in complementary pairs, as the design "orthogonal" asks them, have scores whose even part
    cancels out of the importances. With a free intercept and `grid=None`, the lack of fit is then
    that of the odd parts, from N / 2 observations (`core/pairs.py`), less what balanced masks keep
    away from the importances (`core/aliasing.py`). Weights that correct for uneven draws make N
    masks count as fewer (`design_effect` in `core/spectrum.py`).

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> masks = np.array([[1, 1], [1, 0], [0, 1], [0, 0], [1, 1], [0, 1]])
    >>> scores = masks @ [2.0, -1.0] + [0.1, -0.1, 0.0, 0.1, 0.0, -0.1]
    >>> post = eblime.fit(masks, scores, method=eblime.EBLIME())
    >>> post.mean.round(2), post.prob_positive().round(2)
    (array([ 1.96, -0.95]), array([1.  , 0.01]))
    """

    a: float = 1e-6
    b: float = 1e-6
    intercept: Literal["flat", "none"] = "flat"
    scale: float = 1.0
    standardize: bool = True
    grid: PublishedGrid | None = None
    local: bool | None = None
    noise: Literal["equal", "unequal"] | None = None
    finite: bool | None = None
    pooled: PooledPrior | None = None

    def __post_init__(self) -> None:
        """Refuse settings that no prior can have, and decide `local` where it is None."""
        check_number("a", self.a)
        check_number("b", self.b)
        check_number("scale", self.scale)
        check_choice("intercept", self.intercept, ("flat", "none"))
        if not isinstance(self.standardize, bool):
            raise TypeError(f"`standardize` must be True or False; got {self.standardize!r}.")
        if not isinstance(self.grid, (PublishedGrid, type(None))):
            raise TypeError(f"`grid` must be a PublishedGrid or None; got {self.grid!r}.")
        for name in ("local", "finite"):
            if not isinstance(value := getattr(self, name), (bool, type(None))):
                raise TypeError(f"`{name}` must be True, False or None; got {value!r}.")
        if self.local is None:
            object.__setattr__(self, "local", self.grid is None)
        if self.noise is None:
            object.__setattr__(self, "noise", "unequal" if self.local else "equal")
        check_choice("noise", self.noise, ("equal", "unequal"))
        if self.finite is None:
            object.__setattr__(self, "finite", self.grid is None)
        if not isinstance(self.pooled, (PooledPrior, type(None))):
            raise TypeError(f"`pooled` must be a PooledPrior or None; got {self.pooled!r}.")
        if self.pooled is not None and not (self.local and self.standardize):
            raise ValueError("`pooled` needs `local=True` and `standardize=True`.")
        if self.grid is not None and (self.local or self.noise == "unequal" or self.finite):
            raise ValueError(
                "`local=True`, `noise='unequal'` and `finite=True` need `grid=None`; got a "
                "PublishedGrid. Leave them out."
            )

    @classmethod
    def paper(
        cls,
        *,
        n_lambdas: int = 20_000,
        upper: float = 1.0,
        draws: int | None = 2_500,
        sampler: Literal["categorical", "gumbel"] = "categorical",
    ) -> EBLIME:
        """The published method: no intercept, a = b = 1, scores as they are, lambda in (0, 1].

        Parameters
        ----------
        n_lambdas, upper
            L and r: the grid is L uniform values of (0, r].
        draws
            s, the number of draws by Algorithm 1; None integrates the same grid exactly.
        sampler
            How Algorithm 1 draws lambda: "gumbel" as printed (Algorithm 2), "categorical" by
            inverse cdf, which has the same law and takes milliseconds.
        """
        grid = PublishedGrid(n_lambdas=n_lambdas, upper=upper, draws=draws, sampler=sampler)
        return cls(a=1.0, b=1.0, intercept="none", standardize=False, grid=grid, local=False)

    @property
    def fits_together(self) -> bool:
        """Whether several targets can be fitted together: it draws nothing."""
        return self.grid is None

    @property
    def name(self) -> str:
        """The method's name in tables and reports."""
        if self.grid is not None:
            return "EBLIME (published grid)"
        extras = [] if self.local else ["common ridge"]
        if self.pooled is not None:
            extras.append(f"pooled over {self.pooled.inputs} inputs")
        if (self.noise == "unequal") != self.local:
            extras.append(f"{self.noise} noise")
        return f"EBLIME ({', '.join(extras)})" if extras else "EBLIME"

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """Fit one target."""
        if self.grid is None:
            return self.fit_targets([answers])[0]
        [problem] = self._problems([answers])
        evidence = self._evidence(problem)
        lam = grid_lambda(evidence, self.grid.lambdas, scale=self.scale)
        mixture = problem.law(lam, evidence)
        drawn = _draws_law(rng, self.grid, mixture)
        return bayesian_posterior(self.name, problem, mixture, law=drawn)

    def fit_targets(self, answers: Sequence[Answers]) -> list[Posterior]:
        """Fit several targets without a grid; those that share masks share the decomposition."""
        problems, unequal = self._problems(answers), self.noise == "unequal"
        if not self.local:
            return [self._ridge_posterior(problem, unequal=unequal) for problem in problems]
        return [
            local_posterior(self.name, *pair, unequal=unequal, errors=self._local_errors)
            for pair in zip(problems, self._local_laws(problems), strict=True)
        ]

    def _problems(self, answers: Sequence[Answers]) -> list[Regression]:
        """The regression of each target, before anything about lambda."""
        return regress(
            answers,
            flat=self.intercept == "flat",
            standardize=self.standardize,
            corrected=self.grid is None,
            finite=bool(self.finite),
        )

    def _local_laws(self, problems: Sequence[Regression]) -> list[LocalMixture]:
        """The law of beta with a scale for each feature, many at a time where possible."""
        if self.pooled is not None:
            return [
                fit_pooled(self._level(problem), problem.response.unit, self.pooled)
                for problem in problems
            ]
        found: dict[int, LocalMixture] = {}
        together: dict[int, list[int]] = {}  # by the number of features
        for number, problem in enumerate(problems):
            p = problem.answers.n_features
            if is_well_conditioned(problem.spectrum):
                together.setdefault(p, []).append(number)
            else:
                unit = np.array([problem.response.unit])
                [found[number]] = fit_local(
                    partial(self._careful_level, problem), unit, p, scale=self.scale
                )
        for p, numbers in together.items():
            for start in range(0, len(numbers), most_together(p)):
                some = numbers[start : start + most_together(p)]
                bases = [problems[number].spectrum.basis for number in some]
                evidences = [self._evidence(problems[number]) for number in some]
                units = np.array([problems[number].response.unit for number in some])
                at = rescale_all(Level.join(bases, evidences))
                found |= zip(some, fit_local(at, units, p, scale=self.scale), strict=True)
        return [found[number] for number in range(len(problems))]

    def _level(self, problem: Regression) -> Level:
        return Level.join([problem.spectrum.basis], [self._evidence(problem)])

    def pool(
        self, asked: Iterable[tuple[Answers, Sequence[Hashable] | None]], inputs: int
    ) -> list[EBLIME]:
        """The method for each of several fits, with a prior that is learnt from all of them.

        Parameters
        ----------
        asked
            What was asked, for each output of each input. And the names of the features, where
            those of the same name are alike, such as the columns of a table: each name then has a
            law of its own. None if the features of one input have nothing to do with another's.
        inputs
            How many inputs there are.

        Notes
        -----
        An importance, in units of the scores' spread over root p, has the same law in every input:
        a mixture of normal laws on a grid of centres and widths, so that it may be heavy-tailed or
        lean to one side. The weights of the mixture are learnt (empirical Bayes), and their own
        uncertainty is left out. `core/pool.py` has the computation.

        Examples
        --------
        >>> import numpy as np
        >>> import eblime
        >>> from eblime.answers import Answers
        >>> rng = np.random.default_rng(0)
        >>> masks = rng.integers(0, 2, size=(20, 5)).astype(float)
        >>> scores = masks @ rng.exponential(size=(5, 3)) + rng.normal(size=(20, 3))
        >>> few = [Answers(masks=masks, scores=y, weights=np.ones(20)) for y in scores.T]
        >>> method = eblime.EBLIME().pool([(each, None) for each in few], inputs=3)[0]
        >>> eblime.fit(masks, scores[:, 0], method=method).method
        'EBLIME (pooled over 3 inputs)'
        """
        levels: list[Level | None] = []
        laws: list[IntArray] = []
        known: dict[Hashable, int] = {}
        for each, own in asked:
            [problem] = self._problems([each.varying])
            levels.append(self._level(problem) if problem.response.unit else None)
            every = [None] * each.n_features if own is None else own
            words = every if each.fixed is None else compress(every, ~each.fixed)
            laws.append(np.array([known.setdefault(word, len(known)) for word in words]))
        weights = learn_weights(levels, laws)
        priors = [PooledPrior(inputs=inputs, weights=weights[law]) for law in laws]
        return [replace(self, pooled=prior) for prior in priors]

    def _careful_level(self, problem: Regression, fitted: FloatArray) -> Level:
        """One regression with other scales, decomposed again from its masks."""
        spectrum = rescale(problem.spectrum, np.exp(-fitted[0] / 2))
        k, residual = project(spectrum, problem.response.y)
        response = replace(problem.response, k=k, residual=residual)
        scaled = replace(problem, spectrum=spectrum, response=response)
        return Level.join([spectrum.basis], [self._evidence(scaled)])

    def _local_errors(self, answers: Answers) -> FloatArray:
        """Each answer predicted by the others, (n,), with a scale for each feature.

        The scales are fitted without a third of the answers, which include the one to predict;
        given the scales, that one alone is left out. Scales that had seen it would flatter the
        result. With a pooled prior, the fit to nine tenths of the answers predicts the others.
        """
        [problem] = self._problems([answers])
        pairs, folds = find_pairs(answers.masks), 3 if self.pooled is None else 10
        rng = np.random.default_rng(0)
        fold = rng.permutation(answers.n_masks) % folds
        if pairs is not None and len(pairs.first) > 1:
            fold[pairs.first] = fold[pairs.second] = rng.permutation(len(pairs.first)) % folds
        missed = np.empty(answers.n_masks)
        for number in np.unique(fold):
            rows = fold == number
            [law] = self._local_laws(self._problems([answers.take(np.flatnonzero(~rows))]))
            if self.pooled is not None:
                error = answers.scores - answers.masks @ law.mean
                level = np.average(error[~rows], weights=answers.weights[~rows])
                missed[rows] = error[rows] - level * problem.spectrum.flat
                continue
            level = self._careful_level(problem, law.fitted[None])
            evidence, masks = level.evidence(0), answers.masks * np.exp(-law.fitted / 2)
            lam = half_line_lambda(evidence, scale=self.scale)
            unit = problem.response.unit
            mixture = Mixture(basis=level.basis[0], evidence=evidence, lam=lam, unit=unit)
            flat = problem.spectrum.flat
            missed[rows] = leave_one_out(
                masks, answers.scores, answers.weights, mixture, flat=flat, pairs=pairs, only=rows
            )
        return missed

    def _ridge_posterior(self, problem: Regression, *, unequal: bool) -> Posterior:
        """The posterior with one common lambda."""
        spectrum, evidence = problem.spectrum, self._evidence(problem)
        null = len(spectrum.d) < len(spectrum.basis)
        lam = half_line_lambda(evidence, scale=self.scale, null=null)
        mixture = problem.law(lam, evidence)
        return bayesian_posterior(self.name, problem, mixture, unequal=unequal)

    def _evidence(self, problem: Regression) -> Evidence:
        """The likelihood of lambda."""
        # Standardised scores have a spread of one at the average weight, so b is scaled by that
        # weight. Otherwise the prior would dominate when a narrow kernel makes all weights small.
        spectrum = problem.spectrum
        weight = float(np.mean(spectrum.root**2)) if self.standardize else 1.0
        return problem.evidence(a=self.a, b=self.b * weight)


def common_ridge() -> EBLIME:
    """`EBLIME(local=False)`, the method of the name "eblime-ridge"."""
    return EBLIME(local=False)


def _draws_law(rng: np.random.Generator, grid: PublishedGrid, mixture: Mixture) -> DrawsLaw | None:
    """Algorithm 1 with the chosen sampler of lambda; None where the grid is integrated exactly."""
    if grid.draws is None:
        return None
    if grid.sampler == "gumbel":
        lambdas = gumbel_sample(rng, mixture.lam, grid.draws)
    else:
        lambdas = mixture.lam.sample(grid.draws, rng)
    return DrawsLaw(draws=mixture.draw_given(rng, lambdas), source=mixture)
