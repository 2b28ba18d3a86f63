"""Answers of functions: an array of scores, or a clear error."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_scores", "is_async"]

_ADVICE = "Return an array of shape (n,) or (n, outputs) with one row per input."


def is_async(model: Any) -> bool:
    """Whether calling a model gives a coroutine instead of scores."""
    return inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(
        getattr(model, "__call__", None)  # noqa: B004  the method itself is inspected
    )


def as_scores(answer: Any) -> NDArray[Any]:
    """The answer of a model as an array of numbers."""
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()  # it is never run
        raise TypeError(
            f"The model must return scores; it returned a {type(answer).__name__}. Wrap an async "
            "function: lambda batch: asyncio.run(model(batch))."
        )
    if isinstance(answer, Mapping):
        keys = ", ".join(repr(key) for key in list(answer)[:5])
        raise TypeError(
            f"The model must return scores; it returned a {type(answer).__name__} with the keys "
            f"{keys}. Return one of its entries as an array."
        )
    try:
        scores = np.asarray(answer)
        if scores.dtype == object:  # numbers of other kinds, such as Decimal, or no numbers
            scores = np.array([float(score) for score in scores.flat]).reshape(scores.shape)
        if scores.dtype.kind not in "biufc":
            raise TypeError(scores.dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"The model must return scores; {_described(answer)}. {_ADVICE}") from error
    return scores


def _described(answer: Any) -> str:
    """What came instead of numbers, with its first entry."""
    kind = type(answer).__name__
    if not isinstance(answer, (list, tuple, np.ndarray)) or len(answer) == 0:
        return f"it returned a {kind}"
    first = answer.flat[0] if isinstance(answer, np.ndarray) else answer[0]
    return f"it returned a {kind} of {type(first).__name__}, such as {first!r:.80}"
