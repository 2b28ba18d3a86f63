"""Interactions of pairs of features, with their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime import registry
from eblime._checks import check_count, check_level
from eblime._table import importance_table
from eblime._types import FloatArray, IntArray
from eblime.posterior import Posterior

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Interactions"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Interactions:
    """What pairs of features do together beyond what each does alone.

    A positive interaction: shown together, the two change the score by more than the sum of their
    changes alone. `Explanation.interactions` computes them.

    Examples
    --------
    >>> import eblime
    >>> both = lambda texts: [float("not" in t and "bad" in t) for t in texts]
    >>> e = eblime.TextExplainer(both, n_masks=100).explain("not bad at all")
    >>> found = e.interactions()
    >>> float(found.matrix()[0, 1].round(3))
    1.0
    """

    posterior: Posterior  # of the interactions, in the order of `pairs`
    pairs: IntArray  # (P, 2) numbers of the features
    features: Sequence[str]  # names of all features
    label: str = ""  # what was explained

    @property
    def names(self) -> list[str]:
        """The pairs by name."""
        return [
            f"{self.features[i]} \N{MULTIPLICATION SIGN} {self.features[j]}" for i, j in self.pairs
        ]

    def matrix(self, of: FloatArray | None = None) -> FloatArray:
        """The posterior means, (p, p), symmetric with zeros on the diagonal.

        Parameters
        ----------
        of
            Other numbers, one per pair, such as `posterior.sd`.
        """
        found = np.zeros((len(self.features), len(self.features)))
        first, second = self.pairs.T
        found[first, second] = found[second, first] = self.posterior.mean if of is None else of
        return found

    def table(self, prob: float = 0.95, top: int = 10) -> str:
        """The largest interactions as text."""
        check_count("top", top)
        level = check_level("prob", prob)
        return importance_table(self.posterior, self.names, level, top, noun="pair")

    def to_frame(self, prob: float = 0.95, top: int | None = None) -> pd.DataFrame:
        """One row per pair, the largest first.

        The columns are feature_a, feature_b, mean, sd, low, high and prob_positive.
        """
        from eblime._pandas import pd

        if top is not None:
            check_count("top", top)
        order = self.posterior.order()[:top]
        first, second = self.pairs[order].T
        columns: dict[str, Any] = {
            "feature_a": [self.features[i] for i in first],
            "feature_b": [self.features[j] for j in second],
            "mean": self.posterior.mean[order],
        }
        for name, values in self.posterior.columns(prob).items():
            columns[name] = values[order]
        return pd.DataFrame(columns)

    def plot(self, *, ax: Axes | None = None, **settings: Any) -> Axes:
        """A heat map of the means; pairs whose sign is uncertain are faded."""
        draw = registry.find("displays", "interactions")
        return draw(self, ax=ax, **settings)  # type: ignore[no-any-return]

    def _repr_html_(self) -> str:
        """What a notebook shows: the largest interactions with their intervals."""
        return registry.find("displays", "notebook")(self)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        """One line: what they are of."""
        return (
            f"Interactions(estimand={self.posterior.estimand!r}, n_pairs={len(self.pairs)}, "
            f"posterior={self.posterior!r})"
        )

    def __str__(self) -> str:
        """The largest interactions."""
        return f"{self.posterior.estimand}\n{self.table()}"
