"""DLIME: rows of the training data instead of random ones (Zafar and Khan, 2019)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.cluster import hierarchy

from eblime._checks import as_floats, check_count, check_masks
from eblime._types import FloatArray, IntArray
from eblime.domains.tabular.frames import Frame, SparseFrame, as_frame
from eblime.domains.tabular.row import row_values
from eblime.explainers.tabular import TabularExplainer
from eblime.protocols import Kernel, Method
from eblime.results.explanation import Explanation

__all__ = ["DLIME", "InOrder"]

_MOST_ROWS = 20_000  # the distances between all pairs of rows must fit into memory


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DLIME:
    """Explains a row by the training rows of its cluster: nothing is left to chance.

    The background is cut into clusters by Ward's method. A row belongs to the cluster of its
    nearest neighbour, and the rows of that cluster are what the model is asked about.

    Parameters
    ----------
    model
        As for `TabularExplainer`.
    background
        The training rows, (n, p): an array, or a frame whose columns are all numbers.
    n_clusters
        Number of clusters; 2 in the original.
    standardize
        Whether columns are divided by their standard deviations for distances; the original
        clusters the rows as they are.
    representation, bins, kernel, method, names
        As for `TabularExplainer`.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.family import DLIME
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(200, 3)) + 8 * rng.integers(0, 2, size=(200, 1))
    >>> explainer = DLIME(model=lambda x: x[:, 0], background=rows, representation="continuous")
    >>> e = explainer.explain(rows[0])
    >>> len(e.masks), e.features[int(np.argmax(e.posterior.mean))]
    (97, 'column 0 ≈ 8.12573')
    """

    model: Any
    background: Any
    n_clusters: int = 2
    standardize: bool = True
    representation: str = "binary"
    bins: Any = "quartile"
    kernel: str | Kernel | None = None
    method: str | Method = "eblime"
    names: Sequence[str] | None = None
    _rows: FloatArray = field(init=False, repr=False)
    _scale: FloatArray = field(init=False, repr=False)
    _clusters: IntArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the settings and find the clusters."""
        check_count("n_clusters", self.n_clusters)
        rows = check_masks(self.background, name="background")
        if len(rows) < self.n_clusters:
            raise ValueError(
                f"`background` must have at least `n_clusters` rows, {self.n_clusters}; got "
                f"{len(rows)}."
            )
        if len(rows) > _MOST_ROWS:
            raise ValueError(
                f"`background` must have at most {_MOST_ROWS} rows for hierarchical clustering; "
                f"got {len(rows)}. Take a sample of them."
            )
        sd = rows.std(axis=0) if self.standardize else np.ones(rows.shape[1])
        scale = np.where(sd > 0, sd, 1.0)
        object.__setattr__(self, "_rows", rows)
        object.__setattr__(self, "_scale", scale)
        object.__setattr__(self, "_clusters", _ward(rows / scale, self.n_clusters))
        self._explainer(rows[:2])

    def neighbours(self, x: Any) -> IntArray:
        """Numbers of the training rows in the cluster of the row."""
        row = as_floats("x", row_values(x, self._frame()))
        if not np.isfinite(row).all():
            raise ValueError("`x` must have no missing or infinite values.")
        nearest = np.argmin(np.sum(((self._rows - row) / self._scale) ** 2, axis=1))
        return np.flatnonzero(self._clusters == self._clusters[nearest])

    def explain(self, x: Any, target: int | str | None = None) -> Explanation:
        """Explain one output of the model for a row; the same row has always the same result."""
        return self._explainer(self._rows[self.neighbours(x)]).explain(x, target, 0)

    def _explainer(self, rows: FloatArray) -> TabularExplainer:
        """An explainer whose perturbed rows are the given ones, after the row itself."""
        return TabularExplainer(
            self.model,
            self.background,
            representation=self.representation,
            bins=self.bins,
            perturb=InOrder.after_itself(rows, self._table),
            names=self.names,
            kernel=self.kernel,
            method=self.method,
            n_masks=len(rows) + 1,
        )

    def _table(self, rows: FloatArray) -> Any:
        """Rows of numbers as the model knows them: a table of the background's kind."""
        sources = np.zeros(rows.shape, dtype=np.intp)
        return self._frame().gather(sources, dict(enumerate(rows.T)))

    def _frame(self) -> Frame:
        """The background as a table."""
        frame = as_frame(self.background, self.names)
        assert not isinstance(frame, SparseFrame)  # it was refused: it is not an array
        return frame


@dataclass(slots=True, kw_only=True)
class InOrder:
    """Gives out rows one after the other, in as many calls as it takes."""

    rows: FloatArray
    table: Callable[[FloatArray], Any] = np.asarray  # from numbers to the background's kind
    given: int = 0

    @classmethod
    def after_itself(
        cls, rows: FloatArray, table: Callable[[FloatArray], Any] = np.asarray
    ) -> InOrder:
        """These rows, after one in the place of the explained row, which the model gets itself."""
        return cls(rows=np.concatenate([rows[:1], rows]), table=table)

    def __call__(self, rng: np.random.Generator, n: int, row: Any) -> Any:
        """The next n rows, as a table."""
        self.given += n
        return self.table(self.rows[self.given - n : self.given])


def _ward(rows: FloatArray, n_clusters: int) -> IntArray:
    """The cluster of each row, by Ward's method, (n,)."""
    if len(rows) == 1:
        return np.zeros(1, dtype=np.intp)
    tree = hierarchy.linkage(rows, method="ward")
    return np.asarray(hierarchy.cut_tree(tree, n_clusters=n_clusters).ravel(), dtype=np.intp)
