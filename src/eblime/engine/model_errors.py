"""What a model returned, checked; errors name the masks that it was asked about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eblime._types import FloatArray, IntArray
from eblime.engine.scorers import RowScorer

__all__ = ["ModelError", "checked", "failed", "place"]


_BATCH = "A model is called with a batch of inputs, not with one."


class ModelError(RuntimeError):
    """The model failed or returned something that is not a score, for the masks named.

    Examples
    --------
    >>> import eblime
    >>> try:
    ...     eblime.TextExplainer(lambda texts: 1 / 0).explain("a good day")
    ... except eblime.ModelError as error:
    ...     print(type(error.__cause__).__name__)
    ZeroDivisionError
    """


def failed(rows: IntArray, error: BaseException) -> ModelError:
    """The error that says where the model failed."""
    message = f"The model failed on {place(rows)}: {type(error).__name__}: {error}"
    return ModelError(f"{message.rstrip('.')}. {_BATCH}" if _expects_one(error) else message)


def _expects_one(error: BaseException) -> bool:
    """Whether a model seems to treat a batch as one input.

    Such as `text.lower()` of a list of texts, or `if row["age"] > 40` of a table.
    """
    if isinstance(error, ValueError):
        return "truth value" in str(error)  # also an AttributeError: scikit-learn's NotFittedError
    return isinstance(error, AttributeError)


def place(rows: IntArray) -> str:
    """The masks of a batch, for a message."""
    if len(rows) == 0:
        return "the input itself"
    return f"mask {rows[0]}" if len(rows) == 1 else f"masks {rows.min()} to {rows.max()}"


def checked(
    scorer: RowScorer,
    launched: Any,
    n: int,
    rows: IntArray,
    width: int | None = None,
    columns: Sequence[int] = (),
) -> FloatArray:
    """Fetch the answer to a batch of n and check it: (n, outputs), or of them only `columns`."""
    shape = tuple(getattr(launched, "shape", None) or np.shape(launched))
    if len(shape) not in (1, 2) or shape[0] != n or 0 in shape:
        raise ModelError(
            f"The model must return scores of shape ({n}, outputs) for a batch of {n}; "
            f"for {place(rows)} it returned shape {shape}."
            + (" Return one score per output, such as a mean over pixels." if shape[2:] else "")
            + (f" {_BATCH}" if shape == () else "")
        )
    outputs = 1 if len(shape) == 1 else shape[1]
    if width is not None and outputs != width:
        raise ModelError(
            f"The model must return as many outputs for every mask; it returned {width} for the "
            f"input itself and {outputs} for {place(rows)}."
        )
    try:
        kept = launched[:, list(columns)] if columns and len(shape) == 2 else launched
        raw = scorer.fetch(kept)
        if np.iscomplexobj(raw):
            raise TypeError("they are complex")
        # a copy: the model may fill the same array again at its next call
        scores = np.array(raw, dtype=np.float64).reshape(n, -1)
    except (TypeError, ValueError) as error:
        message = f"The model must return real numbers; for {place(rows)} it did not: {error}."
        raise ModelError(message) from error
    except Exception as error:
        raise failed(rows, error) from error
    _refuse_non_finite(scores, rows, columns)
    return scores


def _refuse_non_finite(scores: FloatArray, rows: IntArray, columns: Sequence[int]) -> None:
    """Refuse NaN and infinities, naming the first mask and output."""
    if np.isfinite(scores).all():
        return
    row, column = (int(index) for index in np.argwhere(~np.isfinite(scores))[0])
    position = row - (len(scores) - len(rows))  # the input itself, if among them, comes first
    where = place(rows[position : position + 1] if position >= 0 else rows[:0])
    output = columns[column] if columns else column
    raise ModelError(
        f"The model must return finite scores; for {where} output {output} is "
        f"{scores[row, column]}."
    )
