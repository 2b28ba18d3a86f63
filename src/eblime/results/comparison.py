"""Several methods on one input, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from eblime import registry
from eblime._checks import check_count, check_level
from eblime._table import align
from eblime._text import printable
from eblime._types import FloatArray, IntArray
from eblime.core.overall import kendall, ranks, same_signs, top_jaccard
from eblime.results.explanation import Explanation

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Comparison"]

_SHOWN = 5  # features in a printed table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Comparison:
    """Explanations of one prediction by several methods; made by `eblime.compare`.

    Examples
    --------
    >>> import eblime
    >>> good = lambda texts: [float("good" in text) for text in texts]
    >>> both = eblime.compare(good, "a good film", ["eblime", "lime"])
    >>> both.methods
    ('eblime', 'lime')
    """

    explanations: Mapping[str, Explanation]  # by the name of the method

    def __post_init__(self) -> None:
        """Refuse explanations that are not of the same prediction."""
        if not self.explanations:
            raise ValueError("A comparison must have at least one explanation.")
        first = self._first
        for name, other in self.explanations.items():
            if list(other.features) != list(first.features) or other.target != first.target:
                raise ValueError(
                    f"All explanations must be of the same features and target; {name!r} differs."
                )

    @property
    def _first(self) -> Explanation:
        """Any of the explanations, for what they share."""
        return next(iter(self.explanations.values()))

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods, in the order in which they were given."""
        return tuple(self.explanations)

    @property
    def model_calls(self) -> dict[str, int]:
        """How many inputs the model was asked about for each method.

        Methods with the same number and the same design share one set of answers.
        """
        return {name: int(e.provenance["model_calls"]) for name, e in self.explanations.items()}

    def __getitem__(self, method: str) -> Explanation:
        """The explanation of a method."""
        if method not in self.explanations:
            known = ", ".join(repr(name) for name in self.methods)
            raise KeyError(f"There is no method {method!r} in this comparison; it has {known}.")
        return self.explanations[method]

    def __iter__(self) -> Iterator[str]:
        """The names of the methods."""
        return iter(self.explanations)

    def __len__(self) -> int:
        """The number of methods."""
        return len(self.explanations)

    def order(self) -> IntArray:
        """Features by their mean rank over the methods, the most important first."""
        places = np.array([ranks(mean) for mean in self._means().values()])
        return np.argsort(places.mean(axis=0), kind="stable")

    def to_frame(self, prob: float = 0.95) -> pd.DataFrame:
        """One row per feature and method: feature, method, mean, low, high and rank.

        `low` and `high` are NaN for a point estimate. Rank 1 has the largest absolute mean.
        """
        from eblime._pandas import pd

        check_level("prob", prob)
        parts = []
        for name, entry in self.explanations.items():
            post = entry.posterior
            ends = post.interval(prob) if post.has_spread else np.full((post.n_features, 2), np.nan)
            columns = {"feature": list(map(str, entry.features)), "method": name, "mean": post.mean}
            columns |= {"low": ends[:, 0], "high": ends[:, 1], "rank": ranks(post.mean)}
            parts.append(pd.DataFrame(columns))
        return pd.concat(parts, ignore_index=True)

    def agreement(self, top: int = 5) -> pd.DataFrame:
        """How far each pair of methods agrees, one row per pair.

        Columns: `top_jaccard`, the Jaccard index of the `top` features of both; `same_signs`, the
        share of equal signs among the features in either top; `kendall`, Kendall's tau between the
        rankings of all features by absolute mean.
        """
        from eblime._pandas import pd

        check_count("top", top)
        rows = [
            (first, second, top_jaccard(a, b, top), same_signs(a, b, top), kendall(a, b))
            for (first, a), (second, b) in combinations(self._means().items(), 2)
        ]
        names = ["first", "second", "top_jaccard", "same_signs", "kendall"]
        return pd.DataFrame(rows, columns=names)

    def plot(self, *, top: int = 10, prob: float = 0.95, ax: Axes | None = None) -> Axes:
        """Means and credible intervals of all methods, one group per feature."""
        draw = registry.find("displays", "comparison")
        return draw(self.explanations, top=top, prob=prob, ax=ax)  # type: ignore[no-any-return]

    def table(self, top: int = _SHOWN, prob: float = 0.95) -> str:
        """The most important features as text: mean and interval for each method."""
        check_count("top", top)
        order = self.order()[:top]
        features = self._first.features
        names = [printable(features[j]) for j in order]
        columns = [[name if len(name) <= 36 else f"{name[:35]}…" for name in names]]
        columns += [self._cells(entry, order, prob) for entry in self.explanations.values()]
        return "\n".join(line.rstrip() for line in align(["feature", *self.methods], columns))

    def notes(self) -> list[str]:
        """What a reader must know to compare the columns."""
        estimands: dict[str, list[str]] = {}
        for name, entry in self.explanations.items():
            estimands.setdefault(entry.estimand, []).append(name)
        if len(estimands) == 1:
            return []
        named = [f"{', '.join(names)}: {what}" for what, names in estimands.items()]
        different = "The methods estimate different quantities, so compare ranks, not sizes."
        return [different, *named]

    @staticmethod
    def _cells(entry: Explanation, order: IntArray, prob: float) -> list[str]:
        """One method's column of a table."""
        post = entry.posterior
        means = [f"{post.mean[j]:+.3g}" for j in order]
        if not post.has_spread:
            return means
        ends = post.select(order).interval(prob)
        return [f"{m} [{a:.3g}, {b:.3g}]" for m, (a, b) in zip(means, ends, strict=True)]

    def _means(self) -> dict[str, FloatArray]:
        """The importances by method."""
        return {name: entry.posterior.mean for name, entry in self.explanations.items()}

    def _repr_html_(self) -> str:
        """What a notebook shows: one row per feature, one column per method."""
        return registry.find("displays", "notebook")(self)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        """One line: the prediction and the methods."""
        return f"Comparison(label={self._first.label!r}, methods={list(self.methods)})"

    def __str__(self) -> str:
        """The prediction, the first features by every method, and notes."""
        first = self._first
        calls = ", ".join(f"{name} {n}" for name, n in self.model_calls.items())
        lines = [
            f"{printable(first.label)}: predicted {first.prediction:.4g}",
            *([] if self.notes() else [first.estimand]),
            self.table(),
            f"Model calls: {calls}",
        ]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes())])
