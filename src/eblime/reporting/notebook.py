"""Results in a notebook: HTML without scripts, readable on light and dark backgrounds.

A notebook does not have the page's style sheet, so each view has one of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from eblime.plot.style import signed_shares
from eblime.posterior import Posterior
from eblime.reporting.render import render
from eblime.reporting.views import input_view
from eblime.results.comparison import Comparison
from eblime.results.explanation import Explanation
from eblime.results.indices import Interactions
from eblime.results.notes import fit_sentence, notes

_ROWS = 10


def fragment(shown: Explanation | Comparison | Interactions) -> str:
    """The most important features, or pairs, with their 95 % intervals, as HTML."""
    from markupsafe import Markup

    if isinstance(shown, Comparison):
        choices = bool(shown.settings)
        table = shown.sensitivity_cells() if choices else shown.table_cells(_ROWS)
        return str(render("comparison.html.j2", comparison=shown, table=table))
    if isinstance(shown, Interactions):
        return _table(shown.posterior, shown.names, "pair", label=shown.label)
    view = re.sub(r"<template>.*?</template>", "", input_view(shown), flags=re.DOTALL)
    return _table(
        shown.posterior,
        shown.features,
        "feature",
        label=shown.label,
        text=f"{shown.prediction:.4g}. {fit_sentence(shown)} {shown.estimand}",
        notes=notes(shown),
        view=Markup(view),
        id=f"eblime-{sha256(view.encode()).hexdigest()[:8]}",  # its styles are for this view
        shares=signed_shares(shown).tolist(),
    )


def _table(post: Posterior, names: Sequence[str], noun: str, **parts: object) -> str:
    order = post.order()[:_ROWS]
    mean = post.mean[order]
    low, high = np.minimum(mean, 0), np.maximum(mean, 0)
    if post.has_spread:
        low, high = post.select(order).interval().T
    numbers = np.stack([low, mean, high, np.zeros(len(mean))])
    ends = numbers[np.isfinite(numbers)]
    bars = np.interp(numbers, [ends.min(), ends.min() + (np.ptp(ends) or 1.0)], [3, 117])
    empty = {"text": post.estimand, "notes": [], "view": ""}
    return str(
        render(
            "notebook.html.j2",
            rows=zip((names[j] for j in order), numbers.T.tolist(), bars.T.tolist(), strict=True),
            noun=noun,
            has_intervals=post.has_spread,
            left_out=max(0, post.n_features - _ROWS),
            **{**empty, **parts},
        )
    )
