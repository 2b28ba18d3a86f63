"""Rows of a part: one per input, target and feature, or one per input that failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from eblime._text import printable
from eblime.batch.folder import COLUMNS, DETAILS
from eblime.results.explanation import Explanation

__all__ = ["Rows", "explained_rows", "failure_rows", "failures_in", "joined_rows"]

Rows = dict[str, list[Any]]  # column -> values


def joined_rows(pieces: Iterable[Rows]) -> Rows:
    """Rows of several inputs, in the order given."""
    rows: Rows = {column: [] for column, _ in COLUMNS}
    for piece in pieces:
        for column, values in rows.items():
            values += piece[column]
    return rows


def failures_in(rows: Rows) -> int:
    """How many inputs failed; each of them has one row."""
    return sum(error is not None for error in rows["error"])


def failure_rows(number: int, name: str, error: BaseException) -> Rows:
    """The row of an input that failed."""
    known = {"input": number, "name": name, "error": _message(error)}
    return {column: [known.get(column)] for column, _ in COLUMNS}


def explained_rows(
    explanations: Sequence[Explanation], number: int, name: str, prob: float
) -> Rows:
    """The rows of an input: one per target and feature."""
    return joined_rows(_feature_rows(entry, number, name, prob) for entry in explanations)


def _message(error: BaseException) -> str:
    """Kind and text of an error on one line."""
    text = " ".join(str(error).split()) or "no message"
    if isinstance(error, SystemExit):
        text = f"the model called sys.exit({error.code!r})"
    return printable(f"{type(error).__name__}: {text}")


def _feature_rows(explanation: Explanation, number: int, name: str, prob: float) -> Rows:
    """One row per feature of an explanation."""
    post = explanation.posterior
    count = post.n_features
    spread = post.columns(prob)
    shared = {
        "input": number,
        "name": name,
        "target": explanation.target,
        "label": explanation.label,
        "prediction": explanation.prediction,
        "r2": post.r2,
        "ess": post.ess,
        "n_masks": post.n_masks,
        "error": None,
    }
    rows: Rows = {column: [value] * count for column, value in shared.items()}
    rows["feature"] = list(map(str, getattr(explanation.scene, "columns", explanation.features)))
    rows["place"] = list(range(count))
    rows["mean"] = post.mean.tolist()
    for column in ("sd", "low", "high", "prob_positive"):
        rows[column] = spread[column].tolist() if spread else [None] * count
    details = explanation.details()
    for column in DETAILS:
        rows[column] = list(details.get(column, [None] * count))
    return rows
