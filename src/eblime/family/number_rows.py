"""A background and a row whose features are numbers, for systems that compute with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eblime._checks import as_generator
from eblime._types import FloatArray, IntArray, RNGLike
from eblime.domains.tabular.frames import Frame
from eblime.explainers.tabular import TabularExplainer

__all__ = ["NumberRows", "number_rows"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumberRows:
    """The rows of a background and the explained row as numbers, and the way back to tables.

    Columns that are not features, because they are constant, are left out of the numbers.
    """

    frame: Frame  # the table that the numbers come from: the background and then the row
    columns: IntArray  # (p,) of the table, one for each feature
    background: FloatArray  # (n, p)
    row: FloatArray  # (p,)

    def sampled(self, most: int, rng: RNGLike) -> NumberRows:
        """The same with at most that many background rows, drawn without replacement, in order."""
        n = len(self.background)
        if n <= most:
            return self
        chosen = as_generator(rng).choice(n, most, replace=False)
        return replace(self, background=self.background[np.sort(chosen)])

    def table(self, rows: FloatArray) -> Any:
        """Rows of numbers as the model knows them: a table of the background's kind.

        Columns that are not features have the values of the explained row.
        """
        itself = np.full((len(rows), len(self.frame.names)), self.frame.n_rows - 1)
        return self.frame.gather(itself, dict(zip(self.columns.tolist(), rows.T, strict=True)))


def number_rows(explainer: Any, x: Any, name: str) -> NumberRows:
    """Read background and row; each feature must be one column of finite numbers.

    Parameters
    ----------
    explainer
        The explainer that has the background.
    x
        The row.
    name
        Of the system that needs numbers, for messages.
    """
    if not isinstance(explainer, TabularExplainer):
        raise TypeError(
            f"{name} needs rows of numbers, from a TabularExplainer; got "
            f"{type(explainer).__name__}."
        )
    context = explainer.subject(x).context
    frame = context.frame
    chosen: list[int] = []
    for feature in context.background.features:
        if len(feature.columns) > 1:
            raise ValueError(
                f"{name} needs one feature per column; feature {feature.name!r} has "
                f"{len(feature.columns)} columns. Leave out `groups`."
            )
        chosen.append(feature.columns[0])
    values = np.stack([_numbers(frame, column, name) for column in chosen], axis=1)
    return NumberRows(
        frame=frame,
        columns=np.array(chosen, dtype=np.intp),
        background=values[:-1],
        row=values[-1],
    )


def _numbers(frame: Frame, column: int, name: str) -> FloatArray:
    """A column of the background and of the row as finite numbers, (n + 1,)."""
    values, kind, _ = frame.column(column)
    title = frame.names[column]
    if kind != "number":
        raise TypeError(
            f"{name} needs rows of numbers; column {title!r} of `background` holds "
            f"{'times' if kind == 'time' else 'categories'}."
        )
    bad = ~np.isfinite(values)
    if bad.any():
        where, n = "`background`" if bad[:-1].any() else "the row", int(bad.sum())
        raise ValueError(
            f"{name} needs finite numbers; column {title!r} of {where} has {n} missing or infinite "
            "values."
        )
    return np.asarray(values, dtype=np.float64)
