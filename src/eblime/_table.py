"""The importances as a plain text table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from eblime._checks import check_count, check_level
from eblime._text import count_noun, printable, width
from eblime._types import FloatArray

if TYPE_CHECKING:
    from eblime.posterior import Posterior


def importance_table(
    post: Posterior, names: Sequence[str] | None, prob: float, top: int, *, noun: str = "feature"
) -> str:
    """The `top` features by absolute mean, in aligned columns; means only for a point estimate."""
    level = check_level("prob", prob)
    check_count("top", top)
    mean, order = post.mean, post.order()[:top]
    found = post.select(order).columns(level)
    labels = [f"{noun} {j}" if names is None else names[j] for j in order]
    head, columns = [noun, "mean"], [mean[order]]
    if found:
        head += ["sd", f"{level * 100:g}% low", "high", "P(>0)"]
        columns += [found[name] for name in ("sd", "low", "high")]
    digits = decimals(columns)
    cells = [list(map(printable, labels))]
    cells += [[format_number(value, digits) for value in column] for column in columns]
    if found:
        cells.append(list(map(format_chance, found["prob_positive"])))
    lines = [
        f"{printable(post.method)}: {printable(count_noun(post.n_masks, 'mask'))}, "
        f"{post.fit_label()}, effective sample size {post.ess:.1f}",
        *align(head, cells),
    ]
    if len(mean) > top:
        lines.append(f"... and {count_noun(len(mean) - top, f'more {noun}')}")
    return "\n".join(lines)


def decimals(columns: list[FloatArray]) -> int | None:
    """Decimals that show three digits of the largest number; None where exponents are shorter."""
    finite = np.abs(np.concatenate(columns))
    finite = finite[np.isfinite(finite)]
    largest = finite.max(initial=0.0)
    if largest == 0:
        return 3
    power = int(np.floor(np.log10(largest)))
    return max(0, 3 - power) if -4 <= power <= 6 else None


def format_chance(chance: float) -> str:
    """A probability with two decimals: more are not known, so none is printed as 0 or 1.

    Examples
    --------
    >>> format_chance(0.0004), format_chance(0.5), format_chance(1.0)
    ('<.01', '0.50', '>.99')
    """
    return "<.01" if chance < 0.01 else ">.99" if chance > 0.99 else f"{chance:.2f}"


def format_number(value: float, digits: int | None) -> str:
    """Format one number; a number that rounds to zero has no sign.

    Examples
    --------
    >>> format_number(-0.00001, 4), format_number(-0.01, 2), format_number(-1e-9, None)
    ('0.0000', '-0.01', '-1.000e-09')
    """
    if digits is None:
        return f"{value:.3e}"
    return f"{round(value, digits) + 0.0:.{digits}f}"


def align(head: list[str], cells: list[list[str]]) -> list[str]:
    """Pad the columns: names to the left, numbers to the right."""
    widths = [max(width(h), *map(width, column)) for h, column in zip(head, cells, strict=True)]
    rows = [head, *zip(*cells, strict=True)]
    return [
        "  ".join(
            cell + " " * (room - width(cell)) if i == 0 else cell.rjust(room)
            for i, (cell, room) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
