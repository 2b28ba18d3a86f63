"""Quadrature: a posterior over functions of the mask, and any index of importance from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np

from eblime._checks import check_choice
from eblime._repr import stable_repr
from eblime._threads import few_threads
from eblime._types import FloatArray, IntArray
from eblime.answers import Answers
from eblime.core.indices import Index, banzhaf, by_size, shapley
from eblime.core.laws import NormalMixture, PointMass, PointValue, normal_law
from eblime.core.population import without_rounding
from eblime.core.quadrature import Function, Table, exact_values, find_twins, read_table
from eblime.kernels import as_kernel, size_weights
from eblime.methods.common import regress
from eblime.posterior import Posterior
from eblime.protocols import Kernel, Law

MOST_MASKS = 3_000  # distinct masks: the cost is cubic in them
_LAST = 3  # rounds that the fit before them is tested by
_BALANCED, _CHECKED = 0.8, 0.8  # of `Regression.aliased`; of the line's variance there
MOST_EXACT = 20  # features, if all masks were used
_WORDS = {
    "lime": "weighted linear fit to all masks, free intercept",
    "banzhaf": "Banzhaf values",
    "shapley": "Shapley values",
}
INDICES, _SHAPLEY = tuple(_WORDS), _WORDS["shapley"]
_ONE = "One mask says nothing about the importances: Quadrature needs at least 2 distinct masks."


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Quadrature:
    """Importances from a posterior over functions of the mask.

    A model gives one mask the same score each time, so nothing is random except which masks were
    asked. The score as a function of the mask is a Gaussian process, and every importance is a mean
    over all masks that has a closed form. For photos the error is about half that of a regression
    with as many model calls. Once all masks are asked, the intervals have width zero. Works with
    any masks, best with balanced ones: `design="orthogonal"` or `design="adaptive"`.

    Parameters
    ----------
    kernel
        The weight of a mask for the index "lime"; None is lime's kernel with width 0.75 sqrt(p). It
        must depend on the number of hidden features only. `eblime.fit` needs no weights then.
    index
        "lime": coefficients of the weighted linear fit, free intercept, to all masks; "banzhaf":
        mean change of the score when a feature is shown, all masks counting the same; "shapley":
        Shapley values, which sum to the score of the input less the score with everything hidden,
        if both were asked.

    Notes
    -----
    At most 3,000 distinct masks, unless all 2^p masks were used: then the values are exact. The
    time grows with the cube of the number of masks: 0.03 s for 400, 0.2 s for 1,000.

    Where chance fills in the hidden features, as for tables, the posterior is of the mean score of
    a mask, and the nugget of the process, with a prior for noisy answers, stands for the rest. A
    regression is as good there.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> masks = np.array([[1, 1, 1], [0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 0], [0, 0, 1]])
    >>> scores = masks @ [0.5, 0.0, 0.2] + 0.3 * masks[:, 0] * masks[:, 1]
    >>> post = eblime.fit(masks, scores, method=eblime.Quadrature(index="shapley"))
    >>> float(post.mean.sum().round(6))
    1.0
    """

    kernel: str | Kernel | None = None
    index: Literal["lime", "banzhaf", "shapley"] = "lime"

    name: ClassVar[str] = "Quadrature"
    most_masks: ClassVar[int] = MOST_MASKS  # unless these are all masks

    def __post_init__(self) -> None:
        """Refuse an unknown index and an object that is not a kernel."""
        check_choice("index", self.index, INDICES)
        as_kernel(self.kernel)

    def __repr__(self) -> str:
        """The settings; a kernel function by its name, without its address in memory."""
        return f"Quadrature(kernel={stable_repr(self.kernel)}, index={self.index!r})"

    @property
    def estimand(self) -> str:
        """What the importances are, in a few words."""
        return _WORDS[self.index]

    @property
    def design(self) -> str | None:
        """The design instead of the default one; None leaves that."""
        return "leverage" if self.index == "shapley" else None

    @property
    def ends(self) -> str:
        """Both ends are asked, and must be known exactly for Shapley values, which add up to them.

        The ends are the input itself and everything hidden.
        """
        return "required" if self.index == "shapley" else "useful"

    def with_kernel(self, kernel: str | Kernel | None) -> Quadrature:
        """The same method with an explainer's kernel, unless it has its own."""
        return self if self.kernel is not None or kernel is None else replace(self, kernel=kernel)

    def check_features(self, p: int) -> None:
        """Refuse a kernel that has no index for p features."""
        self.functional(p)

    def functional(self, p: int) -> Index:
        """The functional of the function of the mask that the importances are, for p features."""
        if self.index == "banzhaf":
            return banzhaf()
        if self.index == "shapley":
            return shapley(p)
        weights = size_weights(self.kernel, p)
        if (weights > 0).all():
            steps = np.diff(np.log(weights))
            if np.ptp(steps) <= 1e-9 * max(1.0, float(np.abs(steps).max())):
                return banzhaf(float(1 / (1 + np.exp(-steps.mean()))))
        return by_size(weights)

    def check_weights(self, masks: FloatArray, weights: FloatArray) -> None:
        """Refuse weights that contradict the kernel and the index."""
        n, p = masks.shape
        if self.index == "lime":
            expected = size_weights(self.kernel, p)[masks.sum(axis=1).astype(np.intp)]
        elif self.index == "banzhaf":
            expected = np.ones(n)
        else:
            return
        share = weights * expected.mean() - expected * weights.mean()
        if np.abs(share).max() > 1e-6 * expected.max() * weights.max():
            raise ValueError(
                f"`weights` must be those of Quadrature's own kernel, or None; got other weights. "
                f"{self!r} needs no weights: choose the kernel by Quadrature(kernel=...), or the "
                "index by Quadrature(index=...)."
            )

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """The posterior of the importances of one target."""
        index = self.functional(answers.n_features)
        return fit_indices(answers, [index], [self.estimand])[0]


def fit_indices(
    answers: Answers, indices: Sequence[Index], words: Sequence[str]
) -> tuple[Posterior, ...]:
    """Posteriors of several indices from the same answers, with what they are in words.

    The features are put in an order that the answers decide, so that the order in which they come
    does not matter, and nothing is drawn: few draws would move the means by a tenth of an sd.
    """
    if not np.isin(answers.masks, (0, 1)).all():
        raise ValueError(
            "`masks` must be zeros and ones for Quadrature; got other values. Use EBLIME() for "
            "representations that are not binary."
        )
    masks, scores = _with_input(answers.masks, answers)
    order = np.argsort(-np.abs((2 * masks - 1).T @ (scores - scores.mean())), kind="stable")
    p = masks.shape[1]
    table = read_table(masks[:, order], scores, noisy=answers.noisy, ends=answers.exact_ends)
    held_out: float | None = None
    widening: float | None = None
    laws: list[Law]
    if table.n_masks == 1:
        sizes = [len(index.subsets(p)) for index in indices]
        laws = [PointMass(mean=np.zeros(n), method="Quadrature", refusal=_ONE) for n in sizes]
        held_out = float("nan")
    elif not table.unit:
        laws = [_point(np.zeros(len(index.subsets(p)))) for index in indices]
        held_out = float("nan")
    elif p <= MOST_EXACT and table.n_masks == 2**p and not table.noisy:
        exact = [exact_values(masks, scores, index) for index in indices]
        laws = [_point(without_rounding(values, scores)) for values in exact]
    else:
        if table.n_masks > MOST_MASKS + 2:  # both ends may come on top
            raise ValueError(
                f"Quadrature takes at most {MOST_MASKS:,} distinct masks; got {table.n_masks:,}. "
                "Use fewer masks, all of them, or EBLIME()."
            )
        with few_threads(0):  # of many small products, threads cost more than they save
            rounds = _last_rounds(masks[:, order], scores, answers)
            function = Function.fit(table, rounds, find_twins(masks[:, order], scores))
            least, laws = _least_variance(answers), []
            for law, index, estimand in zip(function.laws(indices), indices, words, strict=True):
                if index.order == 1:  # Shapley values are as much too certain as Banzhaf values
                    known = function.laws([banzhaf()])[0] if estimand == _SHAPLEY else law
                    law = _widen(law, least, known)
                laws.append(_reorder(law, index, order))
        held_out = function.held_out_r2
        widening = None if answers.rounds is None else function.widening
    return tuple(
        _posterior(law, answers, index, estimand, held_out, widening)
        for law, index, estimand in zip(laws, indices, words, strict=True)
    )


def _least_variance(answers: Answers) -> float:
    """What the mean variance of the importances must be on masks that are balanced; 0 elsewhere.

    On an orthogonal array a fit leaves little lack of fit to be seen, and the process believes its
    prior. The line's own variance there (`core/aliasing.py`) is a check that asks for no prior.
    """
    n, p = answers.masks.shape
    if n < p + 3:
        return 0.0
    even = replace(answers, weights=np.ones(n), sampling=None)
    [problem] = regress([even], flat=True, corrected=True)
    evidence, spectrum = problem.evidence(), problem.spectrum
    if problem.aliased > _BALANCED or len(spectrum.d) < p or evidence.df <= p:
        return 0.0
    sigma2 = evidence.floor * problem.response.unit**2 / (evidence.df - p)
    left = 1 - n * float(np.exp2(-p))
    return float(_CHECKED * left * sigma2 * np.mean(1 / spectrum.d))


def _widen(law: NormalMixture, least: float, known: NormalMixture) -> NormalMixture:
    """The law wider by what `known` needs for a mean variance of `least`, all correlations kept."""
    own = float(np.mean(known.sd**2))
    factor = max(1.0, least / own) if own > 0 else 1.0
    centre = law.weights @ law.means
    means = centre + np.sqrt(factor) * (law.means - centre)
    return replace(law, means=means, covs=factor * law.covs) if factor > 1 else law


def _last_rounds(
    masks: FloatArray, scores: FloatArray, answers: Answers
) -> list[tuple[Table, Table]]:
    """Of each of the last rounds, the answers before it and its own."""
    if answers.rounds is None:
        return []
    starts = np.unique(answers.rounds)  # of a file, perhaps: any numbers
    starts = starts[(starts > 0) & (starts < answers.n_masks)][-_LAST:]
    settings: dict[str, Any] = {"noisy": answers.noisy, "ends": answers.exact_ends}
    return [
        (
            read_table(masks[:start], scores[:start], **settings),
            read_table(masks[start:end], scores[start:end], **settings),
        )
        for start, end in pairwise([*starts.tolist(), answers.n_masks])
    ]


def _reorder(law: NormalMixture, index: Index, order: IntArray) -> NormalMixture:
    """The law with the features in their own order, given the order in which it has them."""
    subsets, place = index.subsets(len(order)), np.argsort(order)
    number = {tuple(subset): row for row, subset in enumerate(subsets.tolist())}
    rows = [number[tuple(sorted(place[subset].tolist()))] for subset in subsets]
    return replace(law, means=law.means[:, rows], covs=law.covs[:, rows][:, :, rows])


def _point(values: FloatArray) -> NormalMixture:
    """A law without spread around known values."""
    return normal_law(values, np.zeros((len(values), len(values))))


def _posterior(
    law: Law,
    answers: Answers,
    index: Index,
    estimand: str,
    held_out: float | None,
    widening: float | None,
) -> Posterior:
    """Assemble the posterior; R^2 is that of the importances as a line, NaN for interactions."""
    r2, extras = float("nan"), {}
    if widening is not None:
        extras["widening"] = PointValue(value=widening)
    if index.order == 1:
        equal = replace(answers, weights=np.ones(answers.n_masks))
        r2 = Posterior.from_law(law, equal, method="", estimand="").r2
        extras["intercept"] = PointValue(value=_intercept(law.mean, answers, estimand))
    return Posterior(
        law=law,
        estimand=estimand,
        method="Quadrature",
        n_masks=answers.n_masks,
        r2=r2,
        ess=float(answers.n_masks),
        extras=extras,
        held_out=r2 if held_out is None else held_out,  # all masks: nothing is held out
        score_range=(float(answers.scores.min()), float(answers.scores.max())),
        by_function=True,
    )


def _intercept(mean: FloatArray, answers: Answers, estimand: str) -> float:
    """Where the line with these importances begins.

    Shapley values add up from the score with everything hidden to that of the input. For the other
    indices it is the intercept that fits the answers best, with their weights for "lime".
    """
    if estimand == _SHAPLEY and answers.original is not None:
        return float(answers.original - mean.sum())
    weights = answers.weights if estimand == _WORDS["lime"] else np.ones(answers.n_masks)
    return float(weights @ (answers.scores - answers.masks @ mean) / weights.sum())


def _with_input(masks: FloatArray, answers: Answers) -> tuple[FloatArray, FloatArray]:
    """Masks and scores, with the input itself if its score is known and it was not among them."""
    size = masks.sum(axis=1)
    if answers.original is None or (size == masks.shape[1]).any() or not (size == 0).any():
        return masks, answers.scores
    whole = np.ones((1, masks.shape[1]))
    return np.concatenate([masks, whole]), np.append(answers.scores, answers.original)
