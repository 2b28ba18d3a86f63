"""Rows of a part: one per input, target and feature, or one per failed input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from eblime._text import printable
from eblime.batch.folder import COLUMNS, DETAILS
from eblime.core.overall import least_squares
from eblime.methods.common import LINEAR_FIT
from eblime.results.explanation import Explanation

__all__ = ["Rows", "explained_rows", "failure_rows", "failures_in", "joined_rows"]

Rows = dict[str, list[Any]]  # column -> values
_CONVERT: dict[str, Callable[[Any], Any]] = {"string": str, "float64": float, "int64": int}


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
    """The row of a failed input."""
    known = {"input": number, "name": name, "error": _message(error)}
    return {column: [known.get(column)] for column, _ in COLUMNS}


def explained_rows(
    explanations: Sequence[Explanation], number: int, name: str, prob: float
) -> Rows:
    """The rows of an input: one per target and feature."""
    return joined_rows(_feature_rows(entry, number, name, prob) for entry in explanations)


def _message(error: BaseException) -> str:
    """Type and message of an error on one line."""
    text = " ".join(str(error).split()) or "no message"
    if isinstance(error, SystemExit):
        text = f"the model called sys.exit({error.code!r})"
    return printable(f"{type(error).__name__}: {text}")


def _feature_rows(explanation: Explanation, number: int, name: str, prob: float) -> Rows:
    """One row per feature of an explanation."""
    post, details = explanation.posterior, explanation.details()
    count = post.n_features
    spread = post.columns(prob)
    shared = {
        "input": number,
        "name": name,
        "target": explanation.target,
        "label": explanation.label,
        "prediction": explanation.prediction,
        "r2": post.r2,
        "r2_held_out": post.r2_held_out,
        "ess": post.ess,
        "n_masks": post.n_masks,
        "error": None,
    }
    rows: Rows = {column: [value] * count for column, value in shared.items()}
    # a feature that belongs to a column of a table has the column's name in every input
    rows["feature"] = list(map(str, details.get("column", explanation.features)))
    rows["place"] = list(range(count))
    rows["mean"] = post.mean.tolist()
    for column in ("sd", "low", "high", "prob_positive"):
        rows[column] = spread[column].tolist() if spread else [None] * count
    rows |= _unshrunk(explanation)
    return rows | _detail_rows(details, count)


def _unshrunk(explanation: Explanation) -> Rows:
    """Least-squares estimates and standard errors, for averages over inputs; null if unknown.

    They are unknown for a method that estimates something else than the weighted linear fit, such
    as Shapley values.
    """
    answers, post = explanation.answers, explanation.posterior
    unknown: Rows = {"estimate": [None] * post.n_features, "se": [None] * post.n_features}
    if not post.estimand.startswith(LINEAR_FIT):
        return unknown
    found = least_squares(
        answers.masks, answers.scores, answers.weights, intercept="intercept" in post.extras
    )
    if found is None:
        return unknown
    estimate, se = found
    return {
        "estimate": estimate.tolist(),
        "se": [0.0] * len(se) if explanation.exhaustive else se.tolist(),
    }


def _detail_rows(details: Mapping[str, Sequence[Any]], count: int) -> Rows:
    """The details that runs have columns for; null if the input has none, or of another type."""
    rows: Rows = {}
    for column, kind in DETAILS.items():
        try:
            found = [_converted(value, kind) for value in details[column]]
        except (KeyError, TypeError, ValueError, OverflowError):
            found = [None] * count
        rows[column] = found if len(found) == count else [None] * count
    return rows


def _converted(value: Any, kind: str) -> Any:
    """A detail as its column stores it; a number with a fraction does not fit whole numbers."""
    converted = None if value is None else _CONVERT[kind](value)
    if kind == "int64" and converted != value:
        raise ValueError(f"{value!r} is not a whole number.")
    return converted
