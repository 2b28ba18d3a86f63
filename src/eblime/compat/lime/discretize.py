"""Bins of numeric columns, with lime's names and draws."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from eblime._types import FloatArray
from eblime.compat.lime.lime_base import as_random_state


class BaseDiscretizer:
    """Cuts numeric columns into bins and draws numbers from bins.

    Subclass it and write `bins` to cut columns in your own way. `data_stats` has `means`, `stds`,
    `mins` and `maxs` of each bin by column, to use instead of those of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.compat.lime.discretize import BaseDiscretizer
    >>> class Thirds(BaseDiscretizer):
    ...     def bins(self, data, labels):
    ...         return [np.array([1 / 3, 2 / 3]) for _ in self.to_discretize]
    >>> rows = np.random.default_rng(0).random((60, 2))
    >>> Thirds(rows, [], ["a", "b"], random_state=0).names[0]
    ['a <= 0.33', '0.33 < a <= 0.67', 'a > 0.67']
    """

    keeps_borders = True  # False: a bin of width zero gives 0 whatever its border is, as in lime

    def __init__(
        self,
        data: object,
        categorical_features: Sequence[int],
        feature_names: Sequence[object],
        labels: object = None,
        random_state: object = None,
        data_stats: Mapping[str, Any] | None = None,
    ) -> None:
        values = np.asarray(data)
        self.to_discretize = [j for j in range(values.shape[1]) if j not in categorical_features]
        self.data_stats = data_stats
        self.random_state = as_random_state(random_state)
        self.names: dict[int, list[str]] = {}
        self.lambdas: dict[int, Callable[[np.ndarray], object]] = {}
        self.means, self.stds, self.mins, self.maxs = (
            dict((data_stats or {}).get(name, {})) for name in ("means", "stds", "mins", "maxs")
        )
        borders = [np.unique(found) for found in self.bins(values, labels)]
        for feature, cuts in zip(self.to_discretize, borders, strict=False):
            name, column = feature_names[feature], values[:, feature]
            between = [f"{low:.2f} < {name} <= {high:.2f}" for low, high in pairwise(cuts)]
            first, last = f"{name} <= {cuts[0]:.2f}", f"{name} > {cuts[-1]:.2f}"
            self.names[feature] = [first, *between, last]
            self.lambdas[feature] = partial(np.searchsorted, cuts)
            if data_stats:
                continue
            placed = np.searchsorted(cuts, column)
            inside = [column[placed == k] for k in range(len(cuts) + 1)]
            self.means[feature] = [part.mean() if len(part) else 0.0 for part in inside]
            self.stds[feature] = [(part.std() if len(part) else 0.0) + 1e-11 for part in inside]
            self.mins[feature] = [column.min(), *cuts.tolist()]
            self.maxs[feature] = [*cuts.tolist(), column.max()]

    def bins(self, data: np.ndarray, labels: object) -> list[FloatArray]:
        """The borders between the bins of each column of `to_discretize`."""
        raise NotImplementedError("A discretizer must have a method `bins`.")

    def discretize(self, data: object) -> np.ndarray:
        """Rows, or one row, with the number of the bin in place of each number."""
        found = np.array(data)
        for feature, place in self.lambdas.items():
            found[..., feature] = place(found[..., feature])
        return found

    def undiscretize(self, data: object) -> np.ndarray:
        """Rows, or one row, with a number drawn from each bin: a truncated normal."""
        found = np.array(data)
        for feature in self.means:
            bins = np.atleast_1d(found[..., feature].astype(int))
            drawn = self.get_undiscretize_values(feature, bins)
            found[..., feature] = drawn.reshape(found.shape[:-1])
        return found

    def get_undiscretize_values(self, feature: int, values: object) -> FloatArray:
        """A number from each of these bins of a column; a bin of width zero gives its border."""
        low, high, mean, sd = (
            np.asarray(table[feature], dtype=np.float64)
            for table in (self.mins, self.maxs, self.means, self.stds)
        )
        start, end, bins = (low - mean) / sd, (high - mean) / sd, np.asarray(values)
        found = (low if self.keeps_borders else start)[bins]
        wide: Any = (start != end)[bins]
        inside, wide = (bins, ...) if wide.all() else (bins[wide], wide)
        share = self.random_state.uniform(size=len(inside))  # as scipy's truncnorm draws
        sign = np.where(start < 0, 1.0, -1.0)  # in the tail that keeps the digits
        below, above = ndtr(sign * start), ndtr(sign * end)
        drawn = ndtri(below[inside] + (above - below)[inside] * share)
        found[wide] = drawn * (sign * sd)[inside] + mean[inside]
        return np.asarray(found)


class StatsDiscretizer(BaseDiscretizer):
    """Bins whose borders are given: `data_stats["bins"]`, by column."""

    def bins(self, data: np.ndarray, labels: Any) -> list[FloatArray]:
        """The given borders."""
        given = (self.data_stats or {}).get("bins") or {}
        found = [given.get(feature) for feature in self.to_discretize]
        return [np.asarray(cuts) for cuts in found if cuts is not None]


class QuartileDiscretizer(BaseDiscretizer):
    """Four bins with the same number of rows."""

    def bins(self, data: np.ndarray, labels: object) -> list[FloatArray]:
        """The quartiles."""
        return [np.percentile(data[:, j], [25, 50, 75]) for j in self.to_discretize]


class DecileDiscretizer(BaseDiscretizer):
    """Ten bins with the same number of rows."""

    def bins(self, data: np.ndarray, labels: object) -> list[FloatArray]:
        """The deciles."""
        return [np.percentile(data[:, j], range(10, 100, 10)) for j in self.to_discretize]


class EntropyDiscretizer(BaseDiscretizer):
    """At most eight bins, cut by a decision tree that predicts the labels."""

    def bins(self, data: np.ndarray, labels: object) -> list[FloatArray]:
        """The thresholds of a tree of depth 3, or the median if it has none."""
        if labels is None:
            raise ValueError("`labels` must not be None for an EntropyDiscretizer.")
        from sklearn.tree import DecisionTreeClassifier

        grow = partial(DecisionTreeClassifier, criterion="entropy", max_depth=3)
        found = []
        for j in self.to_discretize:
            tree = grow(random_state=self.random_state).fit(data[:, [j]], labels).tree_
            cuts = np.sort(tree.threshold[tree.children_left > -1])
            found.append(cuts if len(cuts) else np.array([np.median(data[:, j])]))
        return found
