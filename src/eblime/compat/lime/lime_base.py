"""Fitting the linear model, where lime has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eblime._checks import check_choice, check_count
from eblime._types import FloatArray, IntArray
from eblime.answers import Answers
from eblime.compat.lime._random import as_random_state
from eblime.compat.lime._selection import SELECTIONS, forward_selection, select_features
from eblime.compat.lime._surrogate import Fit, checked_answers, fit_labels
from eblime.methods.regression import as_method
from eblime.protocols import Method

__all__ = ["LimeBase", "check_settings"]


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
    ) -> tuple[float, list[tuple[int, float]], float, FloatArray]:
        """Fit one label: intercept, sorted (feature, weight), weighted R^2, local prediction."""
        answers = checked_answers(
            neighborhood_data,
            neighborhood_labels,
            self.kernel_fn(np.asarray(distances)),
            [label],
            None,
        )
        fit = self.fit_all(answers, num_features, feature_selection, model_regressor)[0]
        return fit.posterior.intercept, list(fit.listed), fit.posterior.r2, fit.local_pred

    def fit_all(
        self,
        answers: Sequence[Answers],
        num_features: int,
        feature_selection: str = "auto",
        model_regressor: Any = None,
    ) -> list[Fit]:
        """Fit several labels that share their perturbed inputs."""
        fits = fit_labels(self.method, answers, num_features, feature_selection, model_regressor)
        if self.verbose:
            for fit, one in zip(fits, answers, strict=True):
                print("Intercept", fit.posterior.intercept)
                print("Prediction_local", fit.local_pred)
                print("Right:", one.scores[0])
        return fits


def check_settings(num_features: int, num_samples: int, feature_selection: str) -> None:
    """Refuse settings of a call that cannot work, before the model is called."""
    check_count("num_features", num_features)
    check_count("num_samples", num_samples)
    check_choice("feature_selection", feature_selection, SELECTIONS)


def _answers(data: Any, labels: Any, weights: Any) -> Answers:
    """Arrays as answers, checked."""
    return checked_answers(data, np.reshape(labels, (-1, 1)), weights, [0], None)[0]
