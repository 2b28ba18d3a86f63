"""The order in which least-angle regression takes up features (Efron et al., 2004), lasso form.

Only the first few steps are needed, so that every step solves for the active features anew.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eblime._types import FloatArray

__all__ = ["Entry", "lars_entries"]

_ROUNDING = 1e-10  # share of a column, or of the first correlation, that counts as zero


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """A step in which a feature enters."""

    entering: int  # the feature with the largest absolute correlation
    runner_up: int | None  # the second largest of those that are not active; None without one
    residual: FloatArray  # (n,) before the step


def lars_entries(x: FloatArray, y: FloatArray, k: int) -> list[Entry]:
    """The first k entries of the lasso path of y on the columns of x, both centred.

    A feature may leave the path and enter again; the entry that counts is the last one for each
    number of active features. There are fewer than k if the residual is met before.

    Examples
    --------
    >>> x = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> [entry.entering for entry in lars_entries(x, np.array([1.0, -1.0, 3.0, -3.0]), 2)]
    [1, 0]
    """
    p = x.shape[1]
    beta, active, barred = np.zeros(p), list[int](), set[int]()
    found: dict[int, Entry] = {}
    top, dropped = float(np.abs(x.T @ y).max(initial=0.0)), False
    for _ in range(8 * p + 8):
        residual = y - x @ beta
        c = x.T @ residual
        if not dropped:
            rest = [j for j in range(p) if j not in active and j not in barred]
            order = sorted(rest, key=lambda j: (-abs(c[j]), j))
            if not order or abs(c[order[0]]) <= _ROUNDING * top:
                break
            second = order[1] if len(order) > 1 else None
            entry = Entry(entering=order[0], runner_up=second, residual=residual)
            if _is_combination(x, active, order[0]):
                barred.add(order[0])
                continue
            found[len(active) + 1] = entry
            if len(active) + 1 >= k:
                break
            active.append(order[0])
        dropped = _advance(x, c, beta, active, barred)
    return [found[size] for size in sorted(found)]


def _advance(
    x: FloatArray, c: FloatArray, beta: FloatArray, active: list[int], barred: set[int]
) -> bool:
    """Move `beta` to the next knot; True if a feature reached zero there and was dropped."""
    columns, signs = x[:, active], np.sign(c[active])
    direction = np.linalg.solve(columns.T @ columns, signs)
    level, slope = float(np.abs(c[active]).max()), x.T @ (columns @ direction)
    rest = [j for j in range(len(c)) if j not in active and j not in barred]
    with np.errstate(divide="ignore", invalid="ignore"):
        ties = np.concatenate(
            [(level - c[rest]) / (1 - slope[rest]), (level + c[rest]) / (1 + slope[rest])]
        )
        zeros = -beta[active] / direction
    least = _ROUNDING * level
    step = float(min(ties[(ties > least) & np.isfinite(ties)], default=level))
    leaving = float(min(zeros[(zeros > least) & np.isfinite(zeros)], default=np.inf))
    beta[active] += min(step, leaving, level) * direction
    if leaving >= min(step, level):
        return False
    gone = active[int(np.argmin(np.abs(zeros - leaving)))]
    beta[gone] = 0.0
    active.remove(gone)
    return True


def _is_combination(x: FloatArray, active: list[int], new: int) -> bool:
    """Whether a column is a linear combination of the active ones, up to rounding."""
    column = x[:, new]
    if active:
        column = column - x[:, active] @ np.linalg.lstsq(x[:, active], column, rcond=None)[0]
    return bool(column @ column <= _ROUNDING * (x[:, new] @ x[:, new]))
