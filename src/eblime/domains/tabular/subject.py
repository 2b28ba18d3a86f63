"""`open_row`: from a row and its background to a subject that can be perturbed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eblime.domains.tabular.background import (
    Background,
    TableSettings,
    prepare,
    select_settings,
)
from eblime.domains.tabular.context import RowContext
from eblime.domains.tabular.custom import UserNeighbourhood, UserPerturb
from eblime.domains.tabular.neighbourhood import TableNeighbourhood
from eblime.domains.tabular.row import read_row
from eblime.domains.tabular.scene import TableScene
from eblime.domains.tabular.sparse_frame import SparseFrame, SparseMatrix
from eblime.protocols import Neighbourhood

__all__ = ["REPRESENTATIONS", "TableSubject", "open_row"]

REPRESENTATIONS = ("binary", "continuous")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableSubject:
    """One row of a table that can be perturbed."""

    context: RowContext
    scene: TableScene
    around: bool  # with continuous features: sample around the row, not around the mean
    perturb: str | UserPerturb

    def neighbourhood(self, rng: np.random.Generator) -> Neighbourhood:
        """An empty neighbourhood; the seed of its random rows is drawn here."""
        p = self.context.n_features
        if not isinstance(self.perturb, str):
            return UserNeighbourhood(
                context=self.context,
                perturb=self.perturb,
                frame=self.context.frame,
                masks=np.empty((0, p)),
                origin=np.ones(p),
            )
        return TableNeighbourhood(
            context=self.context,
            perturb=self.perturb,
            around=self.around,
            entropy=tuple(int(number) for number in rng.integers(0, 2**32, size=4)),
            masks=np.empty((0, p)),
        )


def open_row(
    row: Any,
    table: Background | SparseFrame,
    settings: TableSettings,
    *,
    representation: str,
    around: bool,
    perturb: str | UserPerturb,
) -> TableSubject:
    """Read and check a row, and find its features.

    Parameters
    ----------
    row
        See `read_row`.
    table
        The background: prepared, or a sparse matrix, which is prepared for each row.
    settings
        How a sparse matrix is prepared.
    representation, around, perturb
        See `TabularExplainer`.
    """
    if isinstance(table, SparseFrame):
        background, values = _open_sparse_row(row, table, settings)
    else:
        background, values = table, read_row(row, table)
    frame = background.frame.append_row(values)
    values = frame.row(background.n_rows)  # in the dtypes of the background, as the model sees them
    background = background.for_row(values)
    continuous = representation == "continuous"
    features = background.features
    scene = TableScene(
        features=[background.label(feature, values, continuous) for feature in features],
        columns=[feature.name for feature in features],
        values=[feature.value_text(values) for feature in features],
    )
    context = RowContext(
        background=background,
        frame=frame,
        values=values,
        same=background.same(values),
        continuous=continuous,
    )
    return TableSubject(context=context, scene=scene, around=around, perturb=perturb)


def _open_sparse_row(
    row: Any, table: SparseFrame, settings: TableSettings
) -> tuple[Background, list[Any]]:
    """The background and the values for a row of a sparse matrix, where it is not zero."""
    dense_row = row.tocsr().toarray() if isinstance(row, SparseMatrix) else row
    dense = np.asarray(dense_row, dtype=float).ravel()
    if len(dense) != table.n_columns:
        raise ValueError(f"`row` must have {table.n_columns} columns; got {len(dense)}.")
    columns = np.flatnonzero(dense)
    if not columns.size:
        raise ValueError("`row` must have a column that is not zero; all are zero.")
    background = prepare(table.select(columns), select_settings(settings, table.names, columns))
    return background, [float(value) for value in dense[columns]]
