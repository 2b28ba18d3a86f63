"""Checks of public arguments: each message says what must hold, what was passed, and where.

Each check returns the cleaned value or raises; code behind them does not check again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from eblime._types import FloatArray, RNGLike

HUGE = 1e100  # squares and products of larger numbers would overflow
_TINY = 1e-100  # and those of what is smaller vanish


def as_floats(name: str, values: ArrayLike) -> FloatArray:
    """Return a float64 array, or raise if the values are not real numbers."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "cSUmM" or np.ma.is_masked(values):
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        kind = type(values).__name__
        raise TypeError(
            f"`{name}` must be an array of real numbers; got a {kind} that is not."
        ) from error


def as_generator(rng: RNGLike) -> np.random.Generator:
    """Return the random numbers of a seed: a generator itself, or one for a number or None."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"`rng` must be a whole number >= 0, a numpy.random.Generator or None; got {rng!r}."
        ) from error


def check_masks(masks: ArrayLike, *, name: str = "masks") -> FloatArray:
    """Return masks, or rows of a table, as a finite (N, p) float array."""
    array = as_floats(name, masks)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            f"`{name}` must be 2-D, with at least one row and one column: one row per perturbed "
            f"input and one column per feature; got shape {array.shape}."
        )
    _check_range(name, array, smallest=_TINY)
    return array


def check_scores(scores: ArrayLike, n_masks: int, *, ndim: int) -> FloatArray:
    """Return the scores as a finite array with one row for each mask."""
    array = as_floats("scores", scores)
    if array.ndim != ndim:
        hint = (
            "for several targets at once, shape (N, T), use `fit_targets`"
            if ndim == 1
            else "for one target, shape (N,), use `fit`"
        )
        raise ValueError(f"`scores` must be {ndim}-D; got shape {array.shape} ({hint}).")
    if len(array) != n_masks or array.size == 0:
        raise ValueError(
            f"`scores` must have one entry for each of the {n_masks} masks, and at least one "
            f"column; got shape {array.shape}."
        )
    _check_range("scores", array)
    return array


def check_weights(weights: ArrayLike | None, n_masks: int) -> FloatArray:
    """Return the weights as a finite, non-negative (N,) array that is not all zero."""
    if weights is None:
        return np.ones(n_masks)
    array = as_floats("weights", weights)
    if array.ndim != 1 or len(array) != n_masks:
        raise ValueError(
            f"`weights` must have one entry for each of the {n_masks} masks; "
            f"got shape {array.shape}."
        )
    _check_range("weights", array, smallest=_TINY)
    bad = np.flatnonzero(array < 0)
    if bad.size:
        raise ValueError(f"`weights` must be >= 0; got {array[bad[0]]} at row {bad[0]}.")
    if not array.any():
        raise ValueError(
            f"`weights` must not all be zero; got {n_masks} zeros. "
            "A wider kernel gives some masks weight."
        )
    return array


def check_number(name: str, value: float, *, zero: bool = False) -> None:
    """Refuse a setting that is not a finite number > 0, or >= 0 if `zero` is allowed."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"`{name}` must be a number; got {value!r}.")
    number = value.item() if isinstance(value, np.generic) else value  # or HUGE overflows
    if not ((number > 0 or (zero and number == 0)) and number < np.inf):
        raise ValueError(f"`{name}` must be finite and {'>=' if zero else '>'} 0; got {value!r}.")
    if number > HUGE:
        raise ValueError(f"`{name}` must be at most {HUGE:g}; got {value!r}.")


def check_count(name: str, value: int, *, minimum: int = 1, maximum: int | None = None) -> None:
    """Refuse a setting that is not a whole number from the minimum to the maximum."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"`{name}` must be a whole number; got {value!r}.")
    if value < minimum or (maximum is not None and value > maximum):
        upper = "" if maximum is None else f" and <= {maximum}"
        raise ValueError(f"`{name}` must be >= {minimum}{upper}; got {value!r}.")


def check_prob(name: str, value: ArrayLike) -> FloatArray:
    """Return probabilities strictly between 0 and 1."""
    array = as_floats(name, value)
    bad = ~((array > 0) & (array < 1))
    if bad.any():
        raise ValueError(f"`{name}` must be > 0 and < 1; got {array[bad].flat[0]}.")
    return array


def check_level(name: str, value: float) -> float:
    """Return one probability strictly between 0 and 1."""
    array = check_prob(name, value)
    if array.ndim:
        raise ValueError(f"`{name}` must be one number; got shape {array.shape}.")
    return float(array)


def check_choice(name: str, value: object, known: Sequence[str]) -> None:
    """Refuse a value that is not among the known ones, and list them."""
    if value not in known:
        words = ", ".join(repr(word) for word in known)
        raise ValueError(f"`{name}` must be one of {words}; got {value!r}.")


def _check_range(name: str, array: FloatArray, *, smallest: float = 0.0) -> None:
    """Refuse NaN, infinities and numbers that would overflow, naming the row of the first one.

    And numbers that are all so small that their squares would vanish; zeros are fine.
    """
    largest = max(array.max(), -array.min())
    if 0 < largest < smallest:
        raise ValueError(
            f"`{name}` must have an entry of at least {smallest:g} in size; the largest is "
            f"{largest}. Multiply them by a constant."
        )
    if not largest <= HUGE:  # never so with a NaN
        bad = np.argwhere(~(np.abs(array) <= HUGE))
        place = f"row {bad[0][0]}" + (f", column {bad[0][1]}" if array.ndim == 2 else "")
        value = array[tuple(bad[0])]
        limit = f", at most {HUGE:g} in size" if np.isfinite(value) else ""
        raise ValueError(f"`{name}` must be finite{limit}; got {value} at {place}.")


def check_names(name: str, names: Iterable[object], count: int) -> list[str]:
    """Return names as strings; refuse any other number of them, and two that are equal."""
    found = [] if isinstance(names, str) else [str(each) for each in names]
    if len(found) != count or len(set(found)) < count:
        raise ValueError(f"`{name}` must be {count} different names; got {names!r:.80}.")
    return found


def check_text(name: str, value: object, *, empty: bool = True) -> str:
    """The string; refuses anything else, and one without a visible character if not `empty`."""
    if not isinstance(value, str):
        raise TypeError(f"`{name}` must be a string; got {type(value).__name__}.")
    if not (empty or value.strip()):
        raise ValueError(f"`{name}` must not be empty.")
    return value
