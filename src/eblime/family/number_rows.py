"""A background and a row that are all numbers, for systems that compute with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eblime._checks import as_generator
from eblime._types import FloatArray, RNGLike
from eblime.domains.tabular.frame import Frame
from eblime.explainers.tabular import TabularExplainer

__all__ = ["NumberRows", "number_rows"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumberRows:
    """The rows of a background and the explained row as numbers, and the way back to tables."""

    frame: Frame  # the table that the numbers come from
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
        """Rows of numbers as the model knows them: a table of the background's kind."""
        sources = np.zeros(rows.shape, dtype=np.intp)
        return self.frame.gather(sources, dict(enumerate(rows.T)))


def number_rows(explainer: Any, x: Any, name: str) -> NumberRows:
    """Read background and row, one feature per column of finite numbers; refuse anything else.

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
    frame, n_features = context.frame, context.n_features
    columns = [frame.column(c) for c in range(len(frame.names))]
    for column, (_, kind) in zip(frame.names, columns, strict=True):
        if kind != "number":
            raise TypeError(
                f"{name} needs rows of numbers; column {column!r} of `background` holds "
                f"{'times' if kind == 'time' else 'categories'}."
            )
    values = np.stack([numbers for numbers, _ in columns], axis=1)
    if n_features != values.shape[1] or not np.isfinite(values).all():
        raise ValueError(
            f"{name} needs one feature per column of finite numbers; got {n_features} features "
            f"and a background of shape {values[:-1].shape}, with "
            f"{int((~np.isfinite(values)).sum())} missing or infinite values."
        )
    return NumberRows(frame=frame, background=values[:-1], row=values[-1])
