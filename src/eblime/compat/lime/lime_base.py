"""Fitting the linear model, where lime has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eblime._checks import check_choice, check_count
from eblime._threads import few_threads
from eblime._types import FloatArray, IntArray
from eblime.answers import Answers
from eblime.compat.lime._random import as_random_state
from eblime.compat.lime._selection import SELECTIONS, forward_selection, select_features
from eblime.compat.lime._surrogate import Fit, GivenWeights, checked_answers, fit_labels
from eblime.methods.regression import as_method
from eblime.protocols import Method

__all__ = ["Asked", "LimeBase", "check_settings", "fit_asked"]


class LimeBase:
    """Fits a linear model to perturbed inputs and their scores.

    Parameters
    ----------
    kernel_fn
        From distances to weights.
    verbose
        Whether to print the intercept and both predictions of each fit.
    random_state
        Kept as an attribute; no fit draws random numbers.
    method
        "lime" is lime's ridge regression; "eblime", the default, and others give a posterior.
    """

    def __init__(
        self,
        kernel_fn: Callable[[FloatArray], FloatArray],
        verbose: bool = False,
        random_state: Any = None,
        *,
        method: str | Method = "eblime",
    ) -> None:
        as_method(method)
        self.kernel_fn = kernel_fn
        self.verbose = verbose
        self.random_state = as_random_state(random_state)
        self.method = method

    def forward_selection(
        self, data: Any, labels: Any, weights: Any, num_features: int
    ) -> IntArray:
        """Greedy choice of features by the weighted R^2."""
        return forward_selection(_answers(data, labels, weights), num_features)

    def feature_selection(
        self, data: Any, labels: Any, weights: Any, num_features: int, method: str
    ) -> IntArray:
        """Choose features: "none", "forward_selection", "highest_weights", "lasso_path", "auto"."""
        return select_features(_answers(data, labels, weights), num_features, method)

    def explain_instance_with_data(
        self,
        neighborhood_data: Any,
        neighborhood_labels: Any,
        distances: Any,
        label: int,
        num_features: int,
        feature_selection: str = "auto",
        model_regressor: Any = None,
    ) -> tuple[float, list[tuple[int, float]], Any, FloatArray]:
        """Fit one label: intercept, sorted (feature, weight), weighted R^2, local prediction."""
        answers = checked_answers(
            neighborhood_data,
            neighborhood_labels,
            self.kernel_fn(np.asarray(distances)),
            [label],
            None,
        )
        fit = self.fit_all(answers, num_features, feature_selection, model_regressor)[0]
        return fit.intercept, list(fit.listed), fit.score, fit.local_pred

    def fit_all(
        self,
        answers: Sequence[Answers],
        num_features: int,
        feature_selection: str = "auto",
        model_regressor: Any = None,
    ) -> list[Fit]:
        """Fit several labels that share their perturbed inputs."""
        masks = answers[0].masks
        with few_threads(masks.size * masks.shape[1]):
            fits = fit_labels(
                self.method, answers, num_features, feature_selection, model_regressor
            )
        if self.verbose:
            for fit, one in zip(fits, answers, strict=True):
                print("Intercept", fit.intercept)
                print("Prediction_local", fit.local_pred)
                print("Right:", one.scores[0])
        return fits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """Perturbed inputs and what the model answered, as an explainer's `base` takes them."""

    data: Any  # (N, p) as the regression sees them
    scores: FloatArray  # (N, outputs)
    distances: Any  # (N,)
    labels: Sequence[int]
    features: Sequence[str]


def fit_asked(
    base: Any, asked: Asked, num_features: int, feature_selection: str, model_regressor: Any
) -> tuple[list[Answers], list[Fit]]:
    """The answers and the linear model of each label.

    `base` is the explainer's, which users may replace: if it has its own
    `explain_instance_with_data`, that is called for each label, as lime does.
    """
    if np.shape(asked.data)[1:] != (len(asked.features),):
        raise ValueError(
            f"The perturbed inputs must have {len(asked.features)} columns, one per feature; got "
            f"shape {np.shape(asked.data)}."
        )
    function = getattr(base.explain_instance_with_data, "__func__", None)
    weigh = getattr(base, "kernel_fn", np.ones_like)
    answers = checked_answers(
        asked.data, asked.scores, weigh(asked.distances), asked.labels, asked.features
    )
    if function is LimeBase.explain_instance_with_data:
        return answers, base.fit_all(answers, num_features, feature_selection, model_regressor)
    settings = {"model_regressor": model_regressor, "feature_selection": feature_selection}
    return answers, [_fit_by(base, asked, label, num_features, settings) for label in asked.labels]


def _fit_by(
    base: Any, asked: Asked, label: int, num_features: int, settings: Mapping[str, Any]
) -> Fit:
    """What a `base` of the user's own returns for a label."""
    intercept, listed, score, local_pred = base.explain_instance_with_data(
        asked.data, asked.scores, asked.distances, label, num_features, **settings
    )
    pairs = tuple((int(j), float(weight)) for j, weight in listed)
    height = float(np.ravel(intercept)[0])
    method = GivenWeights(name=type(base).__name__, listed=pairs, intercept=height)
    return Fit(method=method, listed=pairs, intercept=height, score=score, local_pred=local_pred)


def check_settings(num_features: int, num_samples: int, feature_selection: str) -> None:
    """Refuse settings of a call that cannot work, before the model is called."""
    check_count("num_features", num_features)
    check_count("num_samples", num_samples)
    check_choice("feature_selection", feature_selection, SELECTIONS)


def _answers(data: Any, labels: Any, weights: Any) -> Answers:
    """Arrays as answers, checked."""
    return checked_answers(data, np.reshape(labels, (-1, 1)), weights, [0], None)[0]
