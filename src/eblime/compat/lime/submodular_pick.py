"""A few explanations that together show the most important features of a model."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from eblime._checks import check_choice
from eblime._types import FloatArray
from eblime.compat.lime.lime_base import as_random_state


class SubmodularPick:
    """Explains many inputs and picks a few that cover the important features.

    The sample is drawn from NumPy's global random state, as in lime: `np.random.seed` fixes it.
    `sp_explanations` are those that were picked, `V` their numbers in `explanations`.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.compat.lime import LimeTabularExplainer, SubmodularPick
    >>> rows = np.random.default_rng(0).random((60, 3))
    >>> explainer = LimeTabularExplainer(rows, random_state=0)
    >>> model = lambda batch: np.column_stack([1 - batch[:, 0], batch[:, 0]])
    >>> pick = SubmodularPick(explainer, rows[:5], model, num_exps_desired=2, sample_size=5)
    >>> len(pick.explanations), len(pick.sp_explanations)
    (5, 2)
    """

    def __init__(
        self,
        explainer: Any,
        data: Any,
        predict_fn: Callable[[Any], object],
        method: str = "sample",
        sample_size: int = 1000,
        num_exps_desired: int = 5,
        num_features: int = 10,
        **kwargs: object,
    ) -> None:
        check_choice("method", method, ("sample", "full"))
        order = np.arange(len(data))
        if method == "sample":
            as_random_state(None).shuffle(order)
            order = order[:sample_size]
        settings = {"top_labels": 1, "num_features": num_features, **kwargs}
        rows = data.iloc if hasattr(data, "iloc") else data
        self.explanations = [
            explainer.explain_instance(rows[int(i)], predict_fn, **settings) for i in order
        ]
        self.V = _pick(self.explanations, min(int(num_exps_desired), len(order)))
        self.sp_explanations = [self.explanations[i] for i in self.V]


def _pick(explanations: list[Any], n: int) -> list[int]:
    """Greedy choice of n explanations that together have the most important features.

    A feature that any chosen one has counts with the root of its total size. Of those that are
    equally good the last one is taken, as in lime.
    """
    weights: defaultdict[object, FloatArray] = defaultdict(lambda: np.zeros(len(explanations)))
    for i, exp in enumerate(explanations):
        for label in exp.available_labels() if exp.mode == "classification" else [1]:
            for feature, weight in exp.as_list(label=label):
                weights[feature][i] += weight
    sizes = np.abs(np.column_stack(list(weights.values())))
    value = np.sqrt(sizes.sum(axis=0))
    chosen: list[int] = []
    for _ in range(n):
        gains = ((sizes[chosen].sum(axis=0) + sizes) > 0) @ value
        gains[chosen] = -1
        chosen.append(len(gains) - 1 - int(np.argmax(gains[::-1])))
    return chosen
