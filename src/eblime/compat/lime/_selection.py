"""Choosing the features that lime's linear model has."""

from __future__ import annotations

import numpy as np

from eblime._checks import check_choice
from eblime._types import FloatArray, IntArray
from eblime.answers import Answers
from eblime.methods.lime import LIME

__all__ = ["SELECTIONS", "forward_selection", "largest_products", "lasso_path", "select_features"]

SELECTIONS = ("auto", "forward_selection", "highest_weights", "lasso_path", "none")
_FEW = 6  # features up to which "auto" is a forward selection


def select_features(
    answers: Answers, num_features: int, how: str, *, row: FloatArray | None = None
) -> IntArray:
    """The features of lime's linear model, by number.

    Parameters
    ----------
    answers
        Perturbed inputs, scores and weights; the first perturbed input is the input itself.
    num_features
        How many features to choose, at most.
    how
        "none": all features. "forward_selection": add the feature that raises the weighted R^2
        most, again and again. "highest_weights": the largest products of coefficient and value, of
        a ridge regression on all features. "lasso_path": the features of a lasso with at most that
        many. "auto": forward selection for up to 6 features, else highest weights.
    row
        The input itself as the regression sees it; None is the first perturbed input.
    """
    check_choice("feature_selection", how, SELECTIONS)
    if how == "none":
        return np.arange(answers.n_features)
    if how == "auto":
        how = "forward_selection" if num_features <= _FEW else "highest_weights"
    if how == "forward_selection":
        return forward_selection(answers, num_features)
    if how == "lasso_path":
        return lasso_path(answers, num_features)
    ridge = LIME(alpha=0.01).fit(np.random.default_rng(0), answers)
    return largest_products(ridge.mean, answers.masks[0] if row is None else row, num_features)


def largest_products(coefficients: FloatArray, row: FloatArray, num_features: int) -> IntArray:
    """The features with the largest |coefficient * value|, from the largest on."""
    return np.argsort(-np.abs(coefficients * row), kind="stable")[:num_features]


def forward_selection(answers: Answers, num_features: int) -> IntArray:
    """Greedy choice by the weighted R^2 of a linear fit with intercept, in the order of choice.

    Columns are kept orthogonal to the chosen ones, so that the gain of each is one product.
    """
    columns, missed = _centred(answers)
    raw = answers.weights @ answers.masks**2
    smallest = np.maximum(1e-12 * (columns**2).sum(axis=0), 1e-18 * raw)
    chosen: list[int] = []
    for _ in range(min(num_features, answers.n_features)):
        sizes = (columns**2).sum(axis=0)
        gains = np.zeros(answers.n_features)
        np.divide((missed @ columns) ** 2, sizes, out=gains, where=sizes > smallest)
        gains[chosen] = -1
        best = int(np.argmax(gains))
        chosen.append(best)
        if sizes[best] > smallest[best]:
            unit = columns[:, best] / np.sqrt(sizes[best])
            missed = missed - unit * (unit @ missed)
            columns = columns - np.outer(unit, unit @ columns)
    return np.array(chosen, dtype=np.intp)


def lasso_path(answers: Answers, num_features: int) -> IntArray:
    """The features of the last step of the lasso path that has at most `num_features`."""
    try:
        from sklearn.linear_model import lars_path
    except ImportError as error:
        raise ImportError(
            "feature_selection='lasso_path' needs scikit-learn: pip install 'eblime[sklearn]'."
        ) from error
    columns, scores = _centred(answers)
    path = lars_path(columns, scores, method="lasso")[2].T
    steps = [np.flatnonzero(step) for step in path[:0:-1]] or [np.arange(answers.n_features)]
    return next((step for step in steps if len(step) <= num_features), steps[-1])


def _centred(answers: Answers) -> tuple[FloatArray, FloatArray]:
    """Masks and scores minus their weighted means, times the roots of the weights."""
    root = np.sqrt(answers.weights)
    centre = np.average(answers.masks, axis=0, weights=answers.weights)
    mean = np.average(answers.scores, weights=answers.weights)
    return (answers.masks - centre) * root[:, None], (answers.scores - mean) * root
