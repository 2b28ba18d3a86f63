"""The linear models behind the explanations, as methods of this library."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eblime._checks import check_masks, check_scores, check_weights
from eblime._types import FloatArray, IntArray
from eblime.answers import Answers
from eblime.compat.lime._selection import largest_products, select_features
from eblime.core.laws import PointMass, PointValue
from eblime.methods.lime import LIME
from eblime.methods.regression import as_method, fit_each
from eblime.posterior import Posterior
from eblime.protocols import Method

__all__ = [
    "Fit",
    "GivenWeights",
    "Restricted",
    "UserRegressor",
    "checked_answers",
    "fit_labels",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restricted:
    """A point estimate from some of the features; the importance of all others is zero."""

    base: Method
    columns: tuple[int, ...]

    @property
    def name(self) -> str:
        """The method's name in tables and reports."""
        return self.base.name

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """Fit one target."""
        chosen = list(self.columns)
        fitted = self.base.fit(rng, replace(answers, masks=answers.masks[:, chosen], features=None))
        law = PointMass(mean=_spread_out(fitted.mean, chosen, answers), method=self.name)
        return replace(fitted, law=law)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UserRegressor:
    """A linear regressor with scikit-learn's interface, as a point estimate."""

    regressor: Any  # has `fit(X, y, sample_weight=)`, `coef_` and `intercept_`
    columns: tuple[int, ...]

    @property
    def name(self) -> str:
        """The regressor's class."""
        return type(self.regressor).__name__

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """Fit one target; as in lime, the regressor itself is fitted, not a copy."""
        chosen = list(self.columns)
        model = self.regressor
        model.fit(answers.masks[:, chosen], answers.scores, sample_weight=answers.weights)
        intercept = float(np.ravel(model.intercept_)[0])
        return _point(self.name, chosen, np.ravel(model.coef_), intercept, answers)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenWeights:
    """Weights and an intercept that the user's own `LimeBase` returned, as a point estimate."""

    name: str
    listed: tuple[tuple[int, float], ...]
    intercept: float

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """The weights as they are; nothing is fitted."""
        columns = [j for j, _ in self.listed]
        weights = np.array([weight for _, weight in self.listed])
        return _point(self.name, columns, weights, self.intercept, answers)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """The linear model of one label."""

    method: Method
    listed: Sequence[tuple[int, float]]  # features and importances, largest first
    intercept: float
    score: Any  # weighted R^2
    local_pred: Any  # (1,) what the linear model predicts for the input itself


def fit_labels(
    method: str | Method,
    answers: Sequence[Answers],
    num_features: int,
    feature_selection: str,
    regressor: Any = None,
) -> list[Fit]:
    """The linear model of each label; labels share masks and weights.

    With `LIME` or a regressor of the user, the selection decides which features the model has.
    Every other method fits all features, and the selection only decides which are listed.
    """
    chosen = as_method(method)
    if regressor is None and not isinstance(chosen, LIME):
        posteriors = fit_each(chosen, np.random.default_rng(0), answers)
        return [
            _fit(chosen, posterior, _listed(posterior, one, num_features, feature_selection), one)
            for posterior, one in zip(posteriors, answers, strict=True)
        ]
    found = []
    for one in answers:
        used = select_features(one, num_features, feature_selection)
        columns = tuple(int(j) for j in used)
        model: Method = Restricted(base=chosen, columns=columns)
        if regressor is not None:
            model = UserRegressor(regressor=regressor, columns=columns)
        posterior = model.fit(np.random.default_rng(0), one)
        found.append(_fit(deepcopy(model), posterior, used, one))  # labels share the regressor
    return found


def checked_answers(
    data: Any, scores: Any, weights: Any, labels: Sequence[int], features: Sequence[str] | None
) -> list[Answers]:
    """The answers of each label, checked; the first row is the input itself."""
    masks = check_masks(data)
    columns = check_scores(scores, len(masks), ndim=2)
    near = check_weights(weights, len(masks))
    for label in labels:
        if not -columns.shape[1] <= label < columns.shape[1]:
            raise ValueError(
                f"`labels` must be columns of the model's output, 0 .. {columns.shape[1] - 1}; "
                f"got {label}."
            )
    return [
        Answers(
            masks=masks,
            scores=columns[:, label],
            weights=near,
            original=float(columns[0, label]),
            features=features,
        )
        for label in labels
    ]


def _listed(posterior: Posterior, answers: Answers, num_features: int, how: str) -> IntArray:
    """The features to list of a posterior of all features."""
    if how == "auto":
        return largest_products(posterior.mean, answers.masks[0], num_features)
    return select_features(answers, num_features, how)


def _fit(method: Method, posterior: Posterior, used: IntArray, answers: Answers) -> Fit:
    """The linear model with its features in the order of importance."""
    mean = posterior.mean
    order = sorted((int(j) for j in used), key=lambda j: -abs(mean[j]))
    return Fit(
        method=method,
        listed=[(j, float(mean[j])) for j in order],
        intercept=posterior.intercept,
        score=posterior.r2,
        local_pred=np.array([posterior.intercept + answers.masks[0] @ mean]),
    )


def _point(
    name: str, columns: Sequence[int], weights: FloatArray, intercept: float, answers: Answers
) -> Posterior:
    """Weights of some columns and an intercept as a posterior without spread."""
    return Posterior.from_law(
        PointMass(mean=_spread_out(weights, columns, answers), method=name),
        answers,
        method=name,
        estimand=f"coefficients of {name}",
        extras={"intercept": PointValue(value=intercept)},
    )


def _spread_out(values: FloatArray, columns: Sequence[int], answers: Answers) -> FloatArray:
    """Values of some columns among zeros for the others, (p,)."""
    found = np.zeros(answers.n_features)
    found[list(columns)] = values
    found.flags.writeable = False
    return found
