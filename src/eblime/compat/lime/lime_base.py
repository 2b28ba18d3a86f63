"""Fitting the linear model, where lime has it."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eblime._checks import check_choice
from eblime._lazy import import_extra
from eblime._types import FloatArray, IntArray
from eblime.methods.regression import as_method, fit
from eblime.methods.ridge import LIME
from eblime.posterior import Posterior
from eblime.protocols import Method

SELECTIONS = ("auto", "forward_selection", "highest_weights", "lasso_path", "none")
Fit = tuple[float, list[tuple[int, float]], object, object]  # intercept, features, R^2, prediction


@dataclass(eq=False)
class LimeBase:
    """Fits a linear model to perturbed inputs and their scores; `kernel_fn` weighs distances.

    `method` is "lime", lime's ridge regression, or one that gives a posterior of all features, of
    which those with the largest products of mean and value are listed.
    """

    kernel_fn: Callable[[FloatArray], FloatArray]
    verbose: bool = False
    random_state: object = None
    _: KW_ONLY
    method: str | Method = "eblime"

    def __post_init__(self) -> None:
        as_method(self.method)
        self.random_state = as_random_state(self.random_state)

    def forward_selection(
        self, data: FloatArray, labels: FloatArray, weights: FloatArray, num_features: int
    ) -> IntArray:
        """Greedy choice of features by the weighted R^2 of a linear fit, in the order of choice."""
        columns, missed = _centre(data, labels, weights)
        smallest = np.maximum(1e-12 * (columns**2).sum(axis=0), 1e-18 * (weights @ data**2))
        chosen: list[int] = []
        for _ in range(min(num_features, data.shape[1])):
            sizes = (columns**2).sum(axis=0)
            gains = np.where(sizes > smallest, missed @ columns, 0) ** 2 / np.maximum(sizes, 1e-300)
            gains[chosen] = -1
            best = int(np.argmax(gains))
            chosen.append(best)
            if sizes[best] > smallest[best]:  # keep the other columns orthogonal to it
                unit = columns[:, best] / np.sqrt(sizes[best])
                missed = missed - unit * (unit @ missed)
                columns = columns - np.outer(unit, unit @ columns)
        return np.array(chosen, dtype=np.intp)

    def feature_selection(
        self,
        data: FloatArray,
        labels: FloatArray,
        weights: FloatArray,
        num_features: int,
        method: str,
    ) -> IntArray:
        """Choose features: "none", "forward_selection", "highest_weights", "lasso_path", "auto".

        "auto" is forward selection for up to 6 features, else the highest weights.
        """
        check_choice("feature_selection", method, SELECTIONS)
        if method == "none":
            return np.arange(data.shape[1])
        if method == "forward_selection" or (method == "auto" and num_features <= 6):
            return self.forward_selection(data, labels, weights, num_features)
        if method == "lasso_path":
            from sklearn.linear_model import lars_path

            path = lars_path(*_centre(data, labels, weights), method="lasso")[2].T
            steps = [np.flatnonzero(step) for step in path[:0:-1]] or [np.arange(data.shape[1])]
            return next((step for step in steps if len(step) <= num_features), steps[-1])
        return _largest(fit(data, labels, weights, LIME(alpha=0.01)).mean * data[0], num_features)

    def explain_instance_with_data(
        self,
        neighborhood_data: ArrayLike,
        neighborhood_labels: ArrayLike,
        distances: ArrayLike,
        label: int,
        num_features: int,
        feature_selection: str = "auto",
        model_regressor: Any = None,
    ) -> Fit:
        """Fit one label: intercept, sorted (feature, weight), weighted R^2, local prediction."""
        data = np.asarray(neighborhood_data, dtype=np.float64)
        scores = np.asarray(neighborhood_labels, dtype=np.float64)[:, label]
        weights = np.asarray(self.kernel_fn(np.asarray(distances)))
        if self.has_posterior(model_regressor):
            posterior = fit(data, scores, weights, self.method)
            return self.summarise(posterior, data[0], scores[0], num_features, feature_selection)
        used = self.feature_selection(data, scores, weights, num_features, feature_selection)
        model, some = model_regressor, data[:, used]
        if model is None:
            ridge = fit(some, scores, weights, self.method)
            local = ridge.intercept + some[:1] @ ridge.mean
            return self._sort_fit(ridge.intercept, used, ridge.mean, ridge.r2, local, scores[0])
        model.fit(some, scores, sample_weight=weights)
        r2 = model.score(some, scores, sample_weight=weights)
        intercept, coef = float(np.ravel(model.intercept_)[0]), np.ravel(model.coef_)
        return self._sort_fit(intercept, used, coef, r2, model.predict(some[:1]), scores[0])

    def has_posterior(self, regressor: object = None) -> bool:
        """Whether fits give a posterior: not lime's ridge regression, nor a regressor."""
        return regressor is None and not isinstance(as_method(self.method), LIME)

    def summarise(
        self, posterior: Posterior, row: FloatArray, score: float, num_features: int, how: str
    ) -> Fit:
        """What `explain_instance_with_data` returns, from a posterior of all features."""
        mean, intercept = posterior.mean, posterior.intercept
        used = _largest(mean * row, len(row) if how == "none" else num_features)
        predicted = np.array([intercept + row @ mean])
        return self._sort_fit(intercept, used, mean[used], posterior.r2, predicted, score)

    def _sort_fit(
        self, intercept: float, used: Any, weights: Any, r2: object, predicted: object, score: float
    ) -> Fit:
        """The fit with the largest weights first, printed if `verbose`."""
        if self.verbose:
            print("Intercept", intercept)
            print("Prediction_local", predicted)
            print("Right:", score)
        pairs = zip(used.tolist(), weights.tolist(), strict=True)
        return intercept, sorted(pairs, key=lambda pair: -abs(pair[1])), r2, predicted


def exponential_kernel(d: FloatArray, kernel_width: float) -> FloatArray:
    """The default kernel of lime: `sqrt(exp(-d^2 / kernel_width^2))`."""
    return np.asarray(np.sqrt(np.exp(-(d**2) / kernel_width**2)))


def as_random_state(seed: object) -> np.random.RandomState:
    """The random state of a seed as lime takes it, so that draws are the same."""
    found: np.random.RandomState
    found = import_extra("sklearn.utils", "sklearn").check_random_state(seed)
    return found


def _largest(products: FloatArray, n: int) -> IntArray:
    """The features with the largest products of coefficient and value, from the largest on."""
    return np.argsort(-np.abs(products), kind="stable")[:n]


def _centre(
    data: FloatArray, labels: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Data and scores minus their weighted means, times the roots of the weights."""
    root = np.sqrt(weights)
    centre, mean = np.average(data, axis=0, weights=weights), np.average(labels, weights=weights)
    return (data - centre) * root[:, None], (labels - mean) * root
