"""`TabularExplainer`: rows of a table, by columns or groups of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from eblime._checks import check_choice, check_count
from eblime.domains.masked import MaskedSubject
from eblime.domains.tabular.background import Background, Groups, group_columns, prepare
from eblime.domains.tabular.row import open_row, open_sparse_row
from eblime.domains.tabular.table import SparseTable, as_table
from eblime.explainers.base import BaseExplainer


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TabularExplainer(BaseExplainer):
    """Explains a model's prediction for a row of a table, by its columns.

    Hidden columns take their values from a row of the background. The score of a mask is the mean
    over all rows of the background, so that a mask decides its score.

    Parameters
    ----------
    model
        Anything that scores rows: a scikit-learn pipeline, a gradient booster, a function, ... It
        gets tables of the background's kind, with the same columns, order and dtypes.
    background
        Typical rows, such as the training data: a pandas or polars frame, an array, or a sparse
        matrix (then the features are the columns in which the row is not zero). A single row is a
        reference to compare with. The explainer keeps a copy.
    groups
        Columns that are hidden together as one feature, such as dummy variables:
        {"job": ["job_a", "job_b"]}.
    names
        Names of the columns, for a background that is an array.
    rows_per_mask
        The most rows of the background that are kept: of a larger one, when the explainer is made,
        one of each group of similar rows, all groups equally large (of a sparse matrix, rows drawn
        at random). A mask takes one model call for each of them.
    link
        "identity" explains the mean score of a mask; "logit" its log-odds, for a model of
        probabilities: then importances add up on the scale of a logistic regression.
    n_masks, design, kernel, method, progress, labels, calls, cache
        See `eblime.explainers.base.BaseExplainer`.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rng = np.random.default_rng(0)
    >>> people = np.column_stack([rng.integers(18, 80, 500), rng.random(500)])
    >>> older = lambda rows: (rows[:, 0] > 40).astype(float)
    >>> e = eblime.TabularExplainer(older, people, names=["age", "luck"]).explain([25, 0.5])
    >>> e.features[0], round(float(e.posterior.mean[0]), 2)
    ('age = 25', -0.68)

    Shapley values, as shap defines them for the same background:

    >>> shapley = eblime.Quadrature(index="shapley")
    >>> game = eblime.TabularExplainer(older, people[:50], method=shapley)
    >>> e = game.explain([25, 0.5])
    >>> bool(np.isclose(e.posterior.mean[0], 0.0 - older(people[:50]).mean()))
    True
    """

    background: Any
    groups: Groups | None = None
    names: Sequence[str] | None = None
    rows_per_mask: int = 100
    link: Literal["identity", "logit"] = "identity"
    _group_of: Mapping[str, str] = field(init=False)
    _table: Background | SparseTable = field(init=False)

    domain = "tabular"
    about = ("rows_per_mask", "link")

    def __post_init__(self) -> None:
        check_count("rows_per_mask", self.rows_per_mask)
        check_choice("link", self.link, ("identity", "logit"))
        table = as_table(self.background, self.names)  # a copy
        self._normalise(background=table.native)
        self._make_loop()
        group_of, most = group_columns(table.names, self.groups), self.rows_per_mask
        kept: Background | SparseTable
        if isinstance(table, SparseTable):
            order = np.random.default_rng(0).permutation(table.native.shape[0])
            kept = table.take(np.sort(order[:most]))
        else:
            kept = prepare(table, group_of, most)
        self._normalise(_group_of=group_of, _table=kept)

    @property
    def description(self) -> dict[str, Any]:
        """How columns are hidden, and the link if there is one."""
        n, most = self.background.shape[0], self.rows_per_mask
        found = {"background": f"{n} rows" if n <= most else f"{most} of {n} rows"}
        return found if self.link == "identity" else {**found, "link": self.link}

    def subject(self, x: Any) -> MaskedSubject:
        """Read and check a row, so that it can be perturbed.

        Parameters
        ----------
        x
            A dictionary, a pandas series, a frame of one row, or values in the order of the
            columns.
        """
        if isinstance(self._table, SparseTable):
            return open_sparse_row(x, self._table, self._group_of, self.link)
        return open_row(x, self._table, self.link)
