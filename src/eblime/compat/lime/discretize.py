"""Bins of numeric columns, with lime's names and draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import truncnorm

from eblime._types import FloatArray, IntArray
from eblime.compat.lime._random import as_random_state

__all__ = [
    "BaseDiscretizer",
    "DecileDiscretizer",
    "EntropyDiscretizer",
    "QuartileDiscretizer",
    "StatsDiscretizer",
]

_SMALLEST_SD = 1e-11  # added to each bin's, so that none is zero


class BaseDiscretizer(ABC):
    """Cuts numeric columns into bins and draws numbers from bins.

    Subclass it and write `bins` to cut columns in your own way.

    Parameters
    ----------
    data
        The training rows, (n, columns).
    categorical_features
        Columns that are not cut.
    feature_names
        Names of the columns.
    labels
        Classes of the rows, for discretisers that use them.
    random_state
        Seed or `RandomState` of the draws.
    data_stats
        `means`, `stds`, `mins` and `maxs` of each bin by column, instead of those of the data.

    Examples
    --------
    Bins of equal width, used by `LimeTabularExplainer`:

    >>> import numpy as np
    >>> from eblime.compat.lime import LimeTabularExplainer
    >>> from eblime.compat.lime.discretize import BaseDiscretizer
    >>> class Thirds(BaseDiscretizer):
    ...     def bins(self, data, labels):
    ...         return [np.array([1 / 3, 2 / 3]) for _ in self.to_discretize]
    >>> rows = np.random.default_rng(0).random((60, 2))
    >>> thirds = Thirds(rows, [], ["a", "b"], random_state=0)
    >>> thirds.names[0]
    ['a <= 0.33', '0.33 < a <= 0.67', 'a > 0.67']
    >>> explainer = LimeTabularExplainer(rows, discretizer=thirds, feature_names=["a", "b"])
    """

    keeps_borders = True  # False: a bin of width zero gives 0 whatever its border is, as in lime

    def __init__(
        self,
        data: Any,
        categorical_features: Sequence[int],
        feature_names: Sequence[Any],
        labels: Any = None,
        random_state: Any = None,
        data_stats: Mapping[str, Any] | None = None,
    ) -> None:
        values = np.asarray(data)
        self.to_discretize = [
            j for j in range(values.shape[1]) if j not in set(categorical_features)
        ]
        self.data_stats = data_stats
        self.random_state = as_random_state(random_state)
        self.names: dict[int, list[str]] = {}
        self.lambdas: dict[int, Callable[[Any], Any]] = {}
        stats = data_stats or {}
        self.means: dict[int, list[float]] = dict(stats.get("means", {}))
        self.stds: dict[int, list[float]] = dict(stats.get("stds", {}))
        self.mins: dict[int, list[float]] = dict(stats.get("mins", {}))
        self.maxs: dict[int, list[float]] = dict(stats.get("maxs", {}))
        borders = [np.unique(found) for found in self.bins(values, labels)]
        for feature, cuts in zip(self.to_discretize, borders, strict=False):
            self.names[feature] = _bin_names(str(feature_names[feature]), cuts)
            self.lambdas[feature] = partial(np.searchsorted, cuts)
            if not data_stats:
                self._describe(feature, values[:, feature], cuts)

    @abstractmethod
    def bins(self, data: Any, labels: Any) -> list[FloatArray]:
        """The borders between the bins of each column of `to_discretize`."""

    def discretize(self, data: Any) -> Any:
        """Rows, or one row, with the number of the bin in place of each number."""
        found = np.array(data)
        for feature, place in self.lambdas.items():
            found[..., feature] = place(found[..., feature])
        return found

    def undiscretize(self, data: Any) -> Any:
        """Rows, or one row, with a number drawn from each bin: a truncated normal."""
        found = np.array(data)
        for feature in self.means:
            bins = np.atleast_1d(found[..., feature].astype(int))
            drawn = self.get_undiscretize_values(feature, bins)
            found[..., feature] = drawn.reshape(found.shape[:-1])
        return found

    def get_undiscretize_values(self, feature: int, values: Any) -> FloatArray:
        """A number from each of these bins of a column; a bin of width zero gives its border."""
        bins = np.asarray(values)
        low, high, mean, sd = (
            np.asarray(table[feature], dtype=np.float64)
            for table in (self.mins, self.maxs, self.means, self.stds)
        )
        start, end = (low - mean) / sd, (high - mean) / sd
        found = (low if self.keeps_borders else start)[bins]
        wide = (start != end)[bins]
        drawn = truncated_normal(self.random_state, start, end, bins[wide])
        found[wide] = drawn * sd[bins[wide]] + mean[bins[wide]]
        return np.asarray(found)

    def _describe(self, feature: int, column: FloatArray, cuts: FloatArray) -> None:
        """Mean, spread and ends of the bins of a column."""
        placed = np.searchsorted(cuts, column)
        inside = [column[placed == k] for k in range(len(cuts) + 1)]
        self.means[feature] = [part.mean() if len(part) else 0.0 for part in inside]
        self.stds[feature] = [(part.std() if len(part) else 0.0) + _SMALLEST_SD for part in inside]
        self.mins[feature] = [column.min(), *cuts.tolist()]
        self.maxs[feature] = [*cuts.tolist(), column.max()]


class StatsDiscretizer(BaseDiscretizer):
    """Bins whose borders are given: `data_stats["bins"]`, by column."""

    def bins(self, data: Any, labels: Any) -> list[FloatArray]:
        """The given borders."""
        given = (self.data_stats or {}).get("bins") or {}
        return [
            np.asarray(given[feature])
            for feature in self.to_discretize
            if given.get(feature) is not None
        ]


class QuartileDiscretizer(BaseDiscretizer):
    """Four bins with the same number of rows."""

    def bins(self, data: Any, labels: Any) -> list[FloatArray]:
        """The quartiles."""
        return _percentiles(data, self.to_discretize, [25, 50, 75])


class DecileDiscretizer(BaseDiscretizer):
    """Ten bins with the same number of rows."""

    def bins(self, data: Any, labels: Any) -> list[FloatArray]:
        """The deciles."""
        return _percentiles(data, self.to_discretize, list(range(10, 100, 10)))


class EntropyDiscretizer(BaseDiscretizer):
    """At most eight bins, cut by a decision tree that predicts the labels."""

    def bins(self, data: Any, labels: Any) -> list[FloatArray]:
        """The thresholds of a tree of depth 3, or the median if it has none."""
        if labels is None:
            raise ValueError("`labels` must not be None for an EntropyDiscretizer.")
        try:
            from sklearn.tree import DecisionTreeClassifier
        except ImportError as error:
            raise ImportError(
                "discretizer='entropy' needs scikit-learn: pip install 'eblime[sklearn]'."
            ) from error
        found = []
        for feature in self.to_discretize:
            column = np.asarray(data)[:, [feature]]
            tree = DecisionTreeClassifier(
                criterion="entropy", max_depth=3, random_state=self.random_state
            )
            grown = tree.fit(column, labels).tree_
            cuts = np.sort(grown.threshold[grown.children_left > -1])
            found.append(cuts if len(cuts) else np.array([np.median(column)]))
        return found


def named_discretizer(name: object) -> Callable[..., BaseDiscretizer]:
    """The class of a discretiser by its name."""
    known = {
        "quartile": QuartileDiscretizer,
        "decile": DecileDiscretizer,
        "entropy": EntropyDiscretizer,
        "stats": StatsDiscretizer,
    }
    if not isinstance(name, str) or name not in known:
        raise ValueError(
            "`discretizer` must be 'quartile', 'decile', 'entropy' or a BaseDiscretizer; "
            f"got {name!r:.60}."
        )
    return known[name]


def truncated_normal(
    random_state: np.random.RandomState, start: FloatArray, end: FloatArray, bins: IntArray
) -> FloatArray:
    """A standard normal number inside each of these bins, from one uniform number each.

    They are the draws of `scipy.stats.truncnorm.rvs` with the same random state. Where zero is
    in the bin, as the bin's own mean is, the quantile function is computed from the nearer tail,
    without logarithms.
    """
    if (start[bins] > 0).any() or (end[bins] < 0).any():
        return np.asarray(truncnorm.rvs(start[bins], end[bins], random_state=random_state))
    share = random_state.uniform(size=len(bins))
    mass = (ndtr(end) - ndtr(start))[bins]
    below = ndtr(start)[bins] + share * mass
    above = ndtr(-end)[bins] + (1 - share) * mass
    return np.asarray(np.where(below < 0.5, 1, -1) * ndtri(np.minimum(below, above)))


def _percentiles(data: Any, features: Sequence[int], levels: Sequence[int]) -> list[FloatArray]:
    """Percentiles of some columns."""
    return [np.percentile(np.asarray(data)[:, feature], levels) for feature in features]


def _bin_names(name: str, cuts: FloatArray) -> list[str]:
    """Names such as "0.50 < x <= 1.00", from the lowest bin to the highest."""
    between = [f"{low:.2f} < {name} <= {high:.2f}" for low, high in pairwise(cuts)]
    return [f"{name} <= {cuts[0]:.2f}", *between, f"{name} > {cuts[-1]:.2f}"]
