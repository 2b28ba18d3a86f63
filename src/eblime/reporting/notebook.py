"""An explanation inside a notebook: no script, inline styles, readable on light and dark."""

from __future__ import annotations

import numpy as np

from eblime.plot.style import AGAINST, FAVOUR
from eblime.reporting.numbers import reading_order
from eblime.reporting.views import scene_view, text
from eblime.reporting.words import cautions, fit_sentence
from eblime.results.explanation import Explanation

__all__ = ["fragment"]

_ROWS = 10
_NEUTRAL = "#888888"


def fragment(explanation: Explanation) -> str:
    """The picture and the first features with their 95 % intervals, as a piece of a page."""
    view = scene_view(explanation, inline=True).replace(
        "<image ", '<image style="filter:grayscale(1)" ', 1
    )
    picture = f'<div style="flex:1 1 16em;max-width:26em">{view}</div>' if view else ""
    notes = "".join(f"<p>{text(note)}</p>" for note in cautions(explanation))
    return (
        '<div style="line-height:1.4;overflow-wrap:anywhere">'
        f"<p><b>{text(explanation.label)}</b>: {explanation.prediction:.4g}. "
        f"{text(fit_sentence(explanation))}</p>{notes}"
        '<div style="display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start">'
        f'{picture}<div style="flex:1 1 20em">{_table(explanation)}</div></div></div>'
    )


def _table(explanation: Explanation) -> str:
    """Names, bars and numbers of the first features."""
    post, order = explanation.posterior, reading_order(explanation)[:_ROWS]
    certain = post.has_spread
    mean = post.mean[order]
    low, high = post.interval()[order].T if certain else (np.minimum(mean, 0), np.maximum(mean, 0))
    start, end = min(0.0, low.min()), max(0.0, high.max())
    head = "<th>95 %</th>" if certain else ""
    rows = "".join(
        f'<tr><td style="text-align:left">{text(explanation.features[j])}</td>'
        f"<td>{_bar((a, m, b), (start, end))}</td><td>{m:.3g}</td>"
        + (f'<td style="white-space:nowrap">{a:.3g} to {b:.3g}</td></tr>' if certain else "</tr>")
        for j, a, m, b in zip(order, low, mean, high, strict=True)
    )
    left = post.n_features - len(order)
    rest = f"<p>... and {left} more features</p>" if left else ""
    return (
        '<table><thead><tr><th style="text-align:left">feature</th><th></th><th>mean</th>'
        f"{head}</tr></thead><tbody>{rows}</tbody></table>{rest}"
    )


def _bar(marks: tuple[float, float, float], span: tuple[float, float]) -> str:
    """An interval and its mean on a line from the lowest to the highest end."""
    length = (span[1] - span[0]) or 1.0
    low, mean, high = (3 + 114 * (value - span[0]) / length for value in marks)
    zero = 3 + 114 * (0 - span[0]) / length
    colour = FAVOUR if low >= zero else AGAINST if high <= zero else _NEUTRAL
    return (
        '<svg width="120" height="14" viewBox="0 0 120 14">'
        f'<path d="M{zero:.1f} 0V14" stroke="{_NEUTRAL}"/>'
        f'<path d="M{low:.1f} 7H{max(high, low + 0.5):.1f}" stroke="{colour}" stroke-width="5"/>'
        f'<path d="M{mean:.1f} 2V12" stroke="currentColor" stroke-width="1.5"/></svg>'
    )
