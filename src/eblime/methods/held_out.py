"""The held-out R^2 of the regressions, computed when it is first read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eblime._types import FloatArray
from eblime.answers import Answers
from eblime.core.fit_quality import is_constant
from eblime.core.held_out import held_out_r2, leave_one_out
from eblime.core.local import fit_precisions
from eblime.core.mixture import Mixture
from eblime.core.spectrum import Response, Spectrum, decompose, project, rescale, respond

__all__ = ["CrossFitted", "LeaveOneOut", "with_weight"]

_FOLDS = 3


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: the value is kept once computed
class LeaveOneOut:
    """Each answer predicted by the fit to all others, for a regression with one lambda.

    The fields are those of the answers and of the posterior: no array is copied.
    """

    answers: Answers
    mixture: Mixture
    flat: bool  # whether there is a free intercept

    @cached_property
    def r2(self) -> float:
        """Weighted R^2 of the predictions; NaN for constant scores or a single mask."""
        answers = with_weight(self.answers)
        if is_constant(answers.scores):
            return np.nan
        masks, scores, weights = answers.masks, answers.scores, answers.weights
        if self.mixture.hidden:
            masks = np.column_stack([np.ones(len(masks)), masks])
        missed = leave_one_out(masks, scores, weights, self.mixture, flat=self.flat)
        return held_out_r2(scores, weights, missed)


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossFitted:
    """Each answer predicted by the others, for a regression with a scale for each feature.

    The scales are fitted without a third of the answers, which include the one to predict; given
    the scales, that one alone is left out. Scales that had seen it would flatter the result.
    """

    answers: Answers
    ridge: Callable[[Spectrum, Response], Mixture]
    flat: bool
    standardize: bool

    @cached_property
    def r2(self) -> float:
        """Weighted R^2 of the predictions; NaN for constant scores or a single mask."""
        answers = with_weight(self.answers)
        if is_constant(answers.scores):
            return np.nan
        spectrum, response = self._read(answers)
        fold = np.random.default_rng(0).permutation(answers.n_masks) % _FOLDS
        missed = np.empty(answers.n_masks)
        for number in np.unique(fold):
            scales = self._scales(answers.take(np.flatnonzero(fold != number)))
            scaled = rescale(spectrum, scales)
            law = self.ridge(scaled, project(scaled, response))
            masks, rows = answers.masks * scales, fold == number
            missed[rows] = leave_one_out(
                masks, answers.scores, answers.weights, law, flat=self.flat, only=rows
            )
        return held_out_r2(answers.scores, answers.weights, missed)

    def _scales(self, answers: Answers) -> FloatArray:
        """The features' scales as these answers have them, (p,)."""
        return np.asarray(np.exp(-fit_precisions(*self._read(answers), self.ridge) / 2))

    def _read(self, answers: Answers) -> tuple[Spectrum, Response]:
        """The answers as the regression sees them."""
        spectrum = decompose(answers.masks, answers.weights, flat=self.flat)
        return spectrum, respond(spectrum, answers.scores, standardize=self.standardize)


def with_weight(answers: Answers) -> Answers:
    """The answers that have weight."""
    rows = answers.weights > 0
    return answers if rows.all() else answers.take(np.flatnonzero(rows))
