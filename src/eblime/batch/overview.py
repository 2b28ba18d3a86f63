"""A run as a page: what matters over all inputs, where the fit is poor, what failed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from eblime.batch.run import Run
from eblime.reporting.page import whole_page
from eblime.reporting.views import text

__all__ = ["overview"]

_MOST = 40


def overview(run: Run, path: str | os.PathLike[str] | None = None, *, prob: float = 0.95) -> str:
    """One self-contained page about a run; written to `path` where given."""
    rows, failures = run.frame(), run.failures()
    per_input = rows.drop_duplicates(["input", "target"])
    done = per_input["input"].nunique()
    settings = run.settings
    poor = int((per_input["r2"] < 0.5).sum())
    words = (
        f"{done} of {settings['count']} inputs explained, {len(failures)} failed. "
        f"R² has a median of {per_input['r2'].median():.2f}; it is below one half for {poor} "
        f"explanations, whose importances are rough sketches."
    )
    main = (
        f"<p>{text(words)}</p><h2>Importance over all inputs</h2>"
        f"<p>Mean of |importance| with its {100 * prob:g} % credible interval.</p>"
        f"{_importance(run.summary(prob))}<h2>Worst fits</h2>{_worst(run, per_input)}"
        f"<h2>Failures</h2>{_failures(failures)}"
    )
    page = whole_page(f"Run {run.folder.name}", "", main, scripted=False)
    if path is not None:
        Path(path).write_text(page, encoding="utf8")
    return page


def _importance(found: Any) -> str:
    """Features by their mean size, each with a bar."""
    most = float(found["high"].max()) or 1.0
    body = "".join(
        f'<tr><th scope="row"><bdi>{text(row.feature)}</bdi></th><td class="bar">'
        f'<svg viewBox="0 0 100 20" preserveAspectRatio="none"><rect x="0" y="6" height="8" '
        f'width="{100 * row.mean_abs / most:.2f}" fill="#009E73" fill-opacity="0.6"/>'
        f'<rect x="{100 * row.low / most:.2f}" y="9" height="2" '
        f'width="{max(100 * (row.high - row.low) / most, 0.3):.2f}" fill="#767676"/></svg></td>'
        f"<td>{row.mean_abs:.4g}</td><td>{row.low:.4g} to {row.high:.4g}</td>"
        f"<td>{row.inputs}</td></tr>"
        for row in found.head(_MOST).itertuples()
    )
    left = len(found) - min(len(found), _MOST)
    rest = f"<p>{left} more features are in the run.</p>" if left else ""
    return (
        '<table><thead><tr><th scope="col">feature</th><th scope="col"></th>'
        '<th scope="col">mean</th><th scope="col">interval</th><th scope="col">inputs</th></tr>'
        f"</thead><tbody>{body}</tbody></table>{rest}"
    )


def _worst(run: Run, per_input: Any) -> str:
    """Inputs whose line fits worst, with a link where the explanation was kept."""
    items = []
    for row in per_input.nsmallest(10, "r2").itertuples():
        kept = run.folder / "explanations" / f"{row.input}-{row.target}.eblime"
        name = f"<bdi>{text(row.name)}</bdi>"
        link = f'<a href="explanations/{kept.name}">{name}</a>' if kept.exists() else name
        items.append(f"<li>{link}, {text(row.label)}: R² {row.r2:.2f}</li>")
    return f"<ol>{''.join(items)}</ol>"


def _failures(found: Any) -> str:
    """Inputs that failed, and why."""
    if found.empty:
        return "<p>None.</p>"
    items = "".join(
        f"<li><bdi>{text(row.name)}</bdi>: {text(row.error)}</li>"
        for row in found.head(_MOST).itertuples()
    )
    left = len(found) - min(len(found), _MOST)
    return f"<ul>{items}</ul>" + (f"<p>And {left} more.</p>" if left else "")
