"""What a model returns: an array of scores, or a clear error."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime.models.conversion import descends

__all__ = ["as_scores", "is_async"]

_ADVICE = "Return an array of shape (n,) or (n, outputs) with one row per input."


def is_async(model: Any) -> bool:
    """Whether calling a model returns a coroutine instead of scores."""
    return inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(
        getattr(model, "__call__", None)  # noqa: B004  the method itself is inspected
    )


def as_scores(returned: Any) -> NDArray[Any]:
    """What a model returned, as an array of numbers."""
    if inspect.isawaitable(returned):
        if inspect.iscoroutine(returned):
            returned.close()  # it is never awaited
        raise TypeError(
            f"The model must return scores; it returned a {type(returned).__name__}. Pass an "
            "`async def` function itself: it is awaited."
        )
    if isinstance(returned, Mapping):
        keys = ", ".join(repr(key) for key in list(returned)[:5])
        raise TypeError(
            f"The model must return scores; it returned a {type(returned).__name__} with the keys "
            f"{keys}. Return one of its entries as an array."
        )
    try:
        if np.ma.is_masked(returned):
            raise TypeError("some are masked")
        scores = np.asarray(_on_cpu(returned))
        if scores.dtype == object:  # perhaps other numbers, such as Decimal
            scores = np.array([_number(score) for score in scores.flat]).reshape(scores.shape)
        if scores.dtype.kind not in "biufc":
            raise TypeError(scores.dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"The model must return scores; {_described(returned)}. {_ADVICE}"
        ) from error
    return scores


def _on_cpu(returned: Any) -> Any:
    """A tensor of torch in main memory, in a dtype that NumPy has; all else as it is."""
    if not descends(returned, "torch", "Tensor"):
        return returned
    found = returned.detach().cpu()
    return found.double() if found.is_floating_point() else found


def _number(score: Any) -> float:
    """An entry of an array of objects; digits in a string are a label rather than a score."""
    if isinstance(score, (str, bytes)):
        raise TypeError("a string is not a score")
    return float(score)


def _described(returned: Any) -> str:
    """The type of what was returned, and its first entry."""
    kind = type(returned).__name__
    if np.ma.is_masked(returned):
        return f"it returned a {kind} in which some are masked"
    if not isinstance(returned, (list, tuple, np.ndarray)) or len(returned) == 0:
        return f"it returned a {kind}"
    first = returned.flat[0] if isinstance(returned, np.ndarray) else returned[0]
    first = first.item() if isinstance(first, np.generic) else first
    return f"it returned a {kind} of {type(first).__name__}, such as {first!r:.80}"
