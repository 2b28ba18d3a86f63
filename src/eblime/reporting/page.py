"""One self-contained page about one or several explanations: nothing is fetched, nothing sent."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eblime._checks import check_count
from eblime._files import write_whole
from eblime._text import printable
from eblime._types import FloatArray, IntArray
from eblime.posterior import Posterior
from eblime.reporting.provenance import settings
from eblime.reporting.render import render_page
from eblime.reporting.views import MOST, input_view
from eblime.results.explanation import Explanation
from eblime.results.indices import every_index
from eblime.results.notes import fit_sentence, is_poor_fit, notes

__all__ = ["LEVELS", "page_data", "report"]

_SHOWN = 12  # rows before "Show all"
_CLASSES = 10  # listed on a page
LEVELS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99)
_MOST_SWITCHED = 64  # features of an explanation whose index the reader can switch
_POINTS = 41  # points of a density
_INDEX_WORDS = {
    "lime": "Importances are coefficients of the weighted linear fit to all masks.",
    "banzhaf": "Importances are Banzhaf values: the mean change of the score when the feature is "
    "shown, all masks counting the same.",
    "shapley": "Importances are Shapley values: they share out the difference between the score of "
    "the input and the score with everything hidden.",
}
_TOP_K_NOTE = (
    "P(top k) is the probability that a feature is among the k most important to the linear "
    "surrogate. It is about the fit: it is not the probability that the object or the defect is "
    "there."
)


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
        top_k_note=_TOP_K_NOTE,
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
    names = explanation.features
    data = page_data(explanation, min(k, post.n_features))
    return {
        "number": number,
        "label": explanation.label,
        "prediction": explanation.prediction,
        "classes": _top_classes(explanation),
        "method": post.method,
        "n_masks": post.n_masks,
        "fit": fit_sentence(explanation),
        "poor": is_poor_fit(explanation),
        "notes": notes(explanation),
        "view": input_view(explanation),
        "rows": [(int(j), names[j], post.mean[j]) for j in order[:MOST]],
        "left_out": max(0, len(order) - MOST),
        "settings": settings(explanation),
        "indices": data.get("indices", {}),
        "index": getattr(explanation.method, "index", None),
        "has_intervals": "low" in data,
        "data": data,
    }


def _top_classes(explanation: Explanation) -> list[tuple[str, float]]:
    """The most likely classes with their probabilities, if the provenance has them."""
    stored = explanation.provenance.get("top_classes")
    found = []
    for entry in stored[:_CLASSES] if isinstance(stored, (list, tuple)) else ():
        if isinstance(entry, (list, tuple)) and len(entry) == 2:
            label, chance = entry
            if isinstance(chance, (int, float)) and np.isfinite(chance):
                found.append((str(label), float(chance)))
    return found


def page_data(explanation: Explanation, k: int) -> dict[str, Any]:
    """Everything the page's controls need, as plain lists, the most important feature first.

    `low` and `high` have one row per feature and one entry per level. `from`, `to` and `density`
    are the marginal between its 0.2 and 99.8 % quantiles. A point estimate has only its means.
    `indices` has the same numbers for the other indices that the reader can switch to.
    """
    order = explanation.posterior.order()[:MOST]
    found = {"label": printable(explanation.label), "levels": LEVELS, "k": k}
    found |= _numbers(explanation, explanation.posterior, order, k)
    indices = every_index(explanation) if len(order) <= _MOST_SWITCHED else {}
    if indices:
        found["indices"] = {
            name: {"words": _INDEX_WORDS[name]} | _numbers(explanation, post, post.order(), k)
            for name, post in indices.items()
        }
    return found


def _numbers(explanation: Explanation, post: Posterior, order: IntArray, k: int) -> dict[str, Any]:
    """The numbers of one posterior."""
    names = explanation.features
    found: dict[str, Any] = {
        "index": [int(j) for j in order],
        "name": [printable(names[j]) for j in order],
        "mean": _short(post.mean[order], 6),
    }
    values = explanation.details().get("value")
    if values is not None:
        found["value"] = [printable(values[j]) for j in order]
    return found | _spread(post, order, k) if post.has_spread else found


def _spread(post: Posterior, order: IntArray, k: int) -> dict[str, Any]:
    """Intervals, probabilities and densities; empty if there are too few masks for them."""
    tails = np.array([(1 - level) / 2 for level in LEVELS])
    quantiles = post.quantile(np.concatenate([tails, 1 - tails, [0.002, 0.998]]))[:, order]
    positive = post.prob_positive()
    if not all(np.isfinite(values).all() for values in (quantiles, post.sd, positive)):
        return {}
    low, high = quantiles[: len(LEVELS)], quantiles[len(LEVELS) : -2]
    digits = _digits(quantiles)
    return {
        "sd": _short(post.sd[order]),
        "positive": _short(positive[order], 3),
        "top": _short(post.top_k_probability(k)[order], 3),
        "low": _short(low.T, digits),
        "high": _short(high.T, digits),
        "from": _short(quantiles[-2], digits),
        "to": _short(quantiles[-1], digits),
        "density": _densities(post, order, quantiles[-2], quantiles[-1]),
    }


def _densities(
    post: Posterior, order: IntArray, start: FloatArray, end: FloatArray
) -> list[list[int]]:
    """Marginal densities between two ends, as integers with 1000 at the highest point."""
    if not (start < end).all():  # a score that never changed: every importance is zero
        return []
    x = np.empty((_POINTS, post.n_features))
    x[:] = post.mean
    x[:, order] = np.linspace(start, end, _POINTS)
    # the half-Cauchy prior leaves a spike without mass at zero
    x[x == 0] = 1e-12 * (end - start).max()
    height = post.pdf(x)[:, order]
    highest = height.max(axis=0)
    if not ((highest > 0) & (highest < np.inf)).all():  # too narrow or too wide to draw
        return []
    return [[int(v) for v in np.round(1000 * column / column.max())] for column in height.T]


def _digits(quantiles: FloatArray) -> int:
    """Significant digits that distinguish the ends of the narrowest interval."""
    span = np.abs(quantiles[-1] - quantiles[-2])
    size = np.abs(quantiles).max(axis=0)
    ratio = np.divide(size, span, out=np.ones_like(size), where=span > 0).max()
    return int(np.clip(np.ceil(np.log10(max(ratio, 1.0))) + 4, 4, 15))


def _short(values: FloatArray, digits: int = 4) -> Any:
    """Nested lists of numbers with a few significant digits."""
    if values.ndim > 1:
        return [_short(row, digits) for row in values]
    return [float(f"{value:.{digits}g}") for value in values]
