"""A few explanations that together show the most important features of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eblime._checks import check_choice
from eblime._types import FloatArray
from eblime._warn import warn_user
from eblime.compat.lime._random import as_random_state

__all__ = ["SubmodularPick"]


class SubmodularPick:
    """Explains many inputs and picks a few that cover the important features.

    Parameters
    ----------
    explainer
        A `LimeTabularExplainer` or `LimeTextExplainer`.
    data
        The inputs.
    predict_fn
        The model, as for `explain_instance`.
    method
        "sample": explain a random sample of the inputs; "full": explain all.
    sample_size
        Size of the sample. As in lime it is drawn from NumPy's global random state:
        `np.random.seed` fixes it.
    num_exps_desired
        How many explanations to pick.
    num_features
        How many features each explanation lists, at most.
    kwargs
        For `explain_instance`; `top_labels` is 1 if it is not given.

    Attributes
    ----------
    sp_explanations
        The explanations that were picked, in the order of the pick.
    explanations
        All of them.
    V
        Numbers of the picked ones in `explanations`.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.compat.lime import LimeTabularExplainer, SubmodularPick
    >>> rows = np.random.default_rng(0).random((60, 3))
    >>> explainer = LimeTabularExplainer(rows, feature_names=["a", "b", "c"], random_state=0)
    >>> model = lambda batch: np.column_stack([1 - batch[:, 0], batch[:, 0]])
    >>> picked = SubmodularPick(
    ...     explainer, rows[:5], model, method="full", num_exps_desired=2, num_samples=100
    ... )
    >>> len(picked.explanations), len(picked.sp_explanations)
    (5, 2)
    """

    def __init__(
        self,
        explainer: Any,
        data: Any,
        predict_fn: Callable[[Any], Any],
        method: str = "sample",
        sample_size: int = 1000,
        num_exps_desired: int = 5,
        num_features: int = 10,
        **kwargs: Any,
    ) -> None:
        check_choice("method", method, ("sample", "full"))
        settings = {"top_labels": 1, "num_features": num_features, **kwargs}
        rows = data.iloc if hasattr(data, "iloc") else data
        chosen = _sample(len(data), sample_size) if method == "sample" else range(len(data))
        self.explanations = [
            explainer.explain_instance(rows[int(i)], predict_fn, **settings) for i in chosen
        ]
        if num_exps_desired > len(self.explanations):
            warn_user(
                f"`num_exps_desired` is {num_exps_desired}; there are only "
                f"{len(self.explanations)} explanations, and all are returned."
            )
        n = min(int(num_exps_desired), len(self.explanations))
        self.V = pick(_importances(self.explanations), n)
        self.sp_explanations = [self.explanations[i] for i in self.V]


def pick(importances: FloatArray, n: int) -> list[int]:
    """Greedy choice of n rows that together cover the most important columns.

    A column that any chosen row has counts with the root of its total size. Of rows that are
    equally good the last one is taken, as in lime.
    """
    sizes = np.abs(importances)
    value = np.sqrt(sizes.sum(axis=0))
    chosen: list[int] = []
    left = list(range(len(sizes)))
    for _ in range(n):
        covered = sizes[chosen].sum(axis=0)
        gains = [float(np.dot((covered + sizes[i]) > 0, value)) for i in left]
        best = left[len(gains) - 1 - int(np.argmax(gains[::-1]))]
        chosen.append(best)
        left.remove(best)
    return chosen


def _sample(n: int, size: int) -> list[int]:
    """Numbers of a random sample of n inputs."""
    if size > n:
        warn_user(f"`sample_size` is {size}; there are only {n} inputs, and all are explained.")
    order = np.arange(n)
    as_random_state(None).shuffle(order)
    return [int(i) for i in order[:size]]


def _importances(explanations: list[Any]) -> FloatArray:
    """Weights of all features that occur, one row per explanation, labels added up."""
    columns: dict[Any, int] = {}
    entries: list[tuple[int, int, float]] = []
    for i, exp in enumerate(explanations):
        for label in exp.available_labels() if exp.mode == "classification" else [1]:
            for feature, weight in exp.as_list(label=label):
                entries.append((i, columns.setdefault(feature, len(columns)), weight))
    found = np.zeros((len(explanations), len(columns)))
    for i, j, weight in entries:
        found[i, j] += weight
    return found
