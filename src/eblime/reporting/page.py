"""One self-contained page about one or several explanations: nothing is fetched, nothing sent."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from eblime._checks import check_count
from eblime._files import write_whole
from eblime.reporting.diagnostics import (
    TOP_K_NOTE,
    cautions,
    fit_sentence,
    is_poor_fit,
    top_classes,
)
from eblime.reporting.page_data import LEVELS, MOST, page_data
from eblime.reporting.provenance import settings
from eblime.reporting.render import render_page
from eblime.reporting.views import input_view
from eblime.results.explanation import Explanation

__all__ = ["report"]

_SHOWN = 12  # rows before "Show all"


def report(
    explanations: Explanation | Sequence[Explanation],
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    k: int = 5,
) -> str:
    """One self-contained page about one or several explanations, written to `path` if given.

    Parameters
    ----------
    explanations
        One explanation, or several in reading order.
    path
        Where to write the page; None only returns it.
    title
        Heading of the page; None derives it from the explanations.
    k
        The k of P(top k).

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import eblime
    >>> model = lambda texts: [float("good" in text) for text in texts]
    >>> explanation = eblime.TextExplainer(model).explain("a good day")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = eblime.report([explanation, explanation], Path(folder, "days.html"))
    ...     Path(folder, "days.html").read_text(encoding="utf8")[:15]
    '<!DOCTYPE html>'
    """
    listed: list[Any] = list(explanations) if isinstance(explanations, Iterable) else [explanations]
    if not listed or not all(isinstance(entry, Explanation) for entry in listed):
        kinds = sorted({type(entry).__name__ for entry in listed})
        raise TypeError(
            "`explanations` must be an Explanation or a list with at least one; "
            f"got {', '.join(kinds) or 'an empty list'}."
        )
    check_count("k", k)
    page = render_page(
        "report.html.j2",
        heading=_title(listed) if title is None else title,
        sections=[_section(entry, number, k) for number, entry in enumerate(listed)],
        k=min(k, max(entry.scene.n_features for entry in listed)),
        levels=len(LEVELS),
        level=LEVELS.index(0.95),
        shown=_SHOWN,
        top_k_note=TOP_K_NOTE,
    )
    if path is not None:
        write_whole(Path(path).resolve(), page.encode())
    return page


def _title(listed: Sequence[Explanation]) -> str:
    """The default heading."""
    return f"Why {listed[0].label!r}?" if len(listed) == 1 else f"{len(listed)} explanations"


def _section(explanation: Explanation, number: int, k: int) -> dict[str, Any]:
    """What the template shows of one explanation."""
    post, order = explanation.posterior, explanation.posterior.order()
    data = page_data(explanation, min(k, post.n_features))
    return {
        "number": number,
        "label": explanation.label,
        "prediction": explanation.prediction,
        "classes": top_classes(explanation),
        "method": post.method,
        "n_masks": post.n_masks,
        "fit": fit_sentence(explanation),
        "poor": is_poor_fit(explanation),
        "cautions": cautions(explanation),
        "view": input_view(explanation),
        "rows": [(int(j), explanation.features[j], post.mean[j]) for j in order[:MOST]],
        "left_out": max(0, len(order) - MOST),
        "settings": settings(explanation),
        "indices": data.get("indices", {}),
        "index": getattr(explanation.method, "index", None),
        "has_intervals": "low" in data,
        "data": data,
    }
