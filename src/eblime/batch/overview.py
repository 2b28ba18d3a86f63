"""A run as an HTML page: importance over all inputs, worst fits, failures, and links."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eblime._progress import Progress, telling
from eblime.batch.location import Location
from eblime.batch.results import Run
from eblime.reporting.page import report, whole_page
from eblime.reporting.views import text, thumbnail

__all__ = ["overview"]

_MOST = 40  # rows of a list
_WORST = 20
_CLASSES = {"output": "words", "inputs": "side"}  # of columns


def overview(
    run: Run,
    path: str | os.PathLike[str] | None = None,
    *,
    prob: float = 0.95,
    pages: int = 60,
    progress: Progress = None,
) -> str:
    """An HTML page about a run; also written to `path`, if given.

    Parameters
    ----------
    run
        A run, from `open_run`.
    path
        The file to write; None only returns the page, without links.
    prob
        Probability of the intervals.
    pages
        How many explanations get their own page in `pages/` next to `path`, the worst fits first;
        needs a run with keep=True.
    progress
        None shows a bar on a terminal when the work takes longer than a second; True always, False
        never; or a function of (done, total).
    """
    found = _Overall()
    for rows in run.pieces():
        found.add(rows)
    failures = run.failures()
    links = {} if path is None else _pages(run, Location.of(path), found.listed()[:pages], progress)
    main = f"<p>{text(_sentences(run, found, failures))}</p>"
    if found.regions:
        main += f"<h2>By class</h2>{_classes(found)}"
    else:
        main += (
            "<h2>Importance over all inputs</h2>"
            f"<p>Mean of |importance| with its {100 * prob:g} % credible interval.</p>"
            f"{_importance(run.summary(prob))}"
        )
    main += f"<h2>Worst fits</h2>{_list(found.worst, links)}"
    main += f"<h2>First inputs</h2>{_list(found.first, links)}<h2>Failures</h2>{_failed(failures)}"
    page = whole_page(f"Run “{run.location.name}”", "", main, scripted=False)
    if path is not None:
        Location.of(path).write(page.encode())
    return page


@dataclass(slots=True)
class _Overall:
    """Totals of a run, which is read one part at a time."""

    r2: list[Any] = field(default_factory=list)
    worst: list[Any] = field(default_factory=list)
    first: list[Any] = field(default_factory=list)
    classes: dict[str, Any] = field(default_factory=dict)  # label -> sums
    inputs: int = 0
    regions: bool = True  # features are regions of their own input, such as superpixels

    def add(self, rows: Any) -> None:
        """Add the rows of a part."""
        if rows.empty:
            return
        self.regions &= bool(rows["area"].notna().all())
        rows = rows.assign(certain=(rows["low"] > 0) | (rows["high"] < 0))
        certain = rows.groupby(["input", "target"], sort=False)["certain"].mean()
        each = rows.drop_duplicates(["input", "target"])
        each = each.assign(certain=certain.to_numpy(dtype=float))
        self.inputs += each["input"].nunique()
        self.r2.append(each["r2"].to_numpy(dtype=float))
        for label, group in each.groupby("label"):
            sums = group[["prediction", "r2", "certain"]].sum().to_numpy(dtype=float)
            self.classes[label] = self.classes.get(label, 0) + np.append(sums, len(group))
        entries = list(each.sort_values(["input", "target"]).itertuples())
        if len(self.first) < _MOST:
            self.first += entries[: _MOST - len(self.first)]
        self.worst = sorted([*self.worst, *entries], key=lambda entry: entry.r2)[:_WORST]

    def listed(self) -> list[Any]:
        """The entries of both lists, each once."""
        both = {(entry.input, entry.target): entry for entry in [*self.worst, *self.first]}
        return list(both.values())


def _sentences(run: Run, found: _Overall, failures: Any) -> str:
    """The run in two sentences."""
    r2 = np.concatenate(found.r2) if found.r2 else np.empty(0)
    done = f"{found.inputs} of {run.settings['count']} inputs explained, {len(failures)} failed."
    if not r2.size:
        return done
    return (
        f"{done} R² has a median of {np.median(r2):.2f}; it is below one half for "
        f"{int((r2 < 0.5).sum())} explanations, whose importances are rough sketches."
    )


def _pages(run: Run, path: Location, entries: Iterable[Any], progress: Progress) -> dict[Any, Any]:
    """Write pages of kept explanations; returns links and thumbnails by (input, target)."""
    folder = path.parent
    kept = set((run.location / "explanations").files())
    listed = [entry for entry in entries if f"{entry.input}-{entry.target}.eblime" in kept]
    links = {}
    with telling(progress, len(listed), unit="page") as show:
        for done, entry in enumerate(listed, start=1):
            explanation = run.explanation(entry.input, entry.target)
            name = f"pages/{entry.input}-{entry.target}.html"
            title = f"{entry.name}: {entry.label}"
            (folder / name).write(report(explanation, title=title).encode())
            links[entry.input, entry.target] = name, thumbnail(explanation)
            show(done)
    return links


def _importance(found: Any) -> str:
    """A table of features by mean absolute importance, with bars."""
    most = float(found["high"].max()) or 1.0
    body = "".join(
        f'<tr><th scope="row"><bdi>{text(row.feature)}</bdi></th><td class="bar">'
        f'<svg viewBox="0 0 100 20" preserveAspectRatio="none"><rect x="0" y="6" height="8" '
        f'width="{100 * row.mean_abs / most:.2f}" fill="#009E73" fill-opacity="0.6"/>'
        f'<rect x="{100 * row.low / most:.2f}" y="9" height="2" '
        f'width="{max(100 * (row.high - row.low) / most, 0.3):.2f}" fill="#767676"/></svg></td>'
        f"<td>{row.mean_abs:.3g}</td><td>{row.low:.3g} to {row.high:.3g}</td>"
        f'<td class="side">{row.inputs}</td></tr>'
        for row in found.head(_MOST).itertuples()
    )
    left = len(found) - min(len(found), _MOST)
    rest = f"<p>{left} more features are in the run.</p>" if left else ""
    return _table(("feature", "", "mean", "interval", "inputs"), body) + rest


def _classes(found: _Overall) -> str:
    """A table by label, for inputs whose features are their own regions and cannot be pooled."""
    ordered = sorted(found.classes.items(), key=lambda pair: -pair[1][3])
    body = "".join(
        f'<tr><th scope="row"><bdi>{text(label)}</bdi></th><td>{sums[3]:.0f}</td>'
        f"<td>{sums[0] / sums[3]:.3g}</td><td>{sums[1] / sums[3]:.2f}</td>"
        f"<td>{100 * sums[2] / sums[3]:.0f} %</td></tr>"
        for label, sums in ordered[:_MOST]
    )
    left = len(ordered) - min(len(ordered), _MOST)
    rest = f"<p>{left} more classes are in the run.</p>" if left else ""
    heads = ("class", "inputs", "mean prediction", "mean R²", "features whose sign is certain")
    return _table(heads, body) + rest


def _list(entries: Iterable[Any], links: dict[Any, Any]) -> str:
    """A table of inputs with their fit; with a thumbnail and a link if they have a page."""
    body = ""
    for entry in entries:
        name = f"<bdi>{text(entry.name)}</bdi>"
        link, picture = links.get((entry.input, entry.target), ("", ""))
        name = f'<a href="{link}">{picture}{name}</a>' if link else name
        body += (
            f'<tr><th scope="row">{name}</th>'
            f'<td class="words"><bdi>{text(entry.label)}</bdi></td>'
            f"<td>{entry.prediction:.3g}</td><td>{entry.r2:.2f}</td></tr>"
        )
    return _table(("input", "output", "prediction", "R²"), body)


def _failed(found: Any) -> str:
    """A list of the failed inputs with their errors."""
    if found.empty:
        return "<p>None.</p>"
    items = "".join(
        f"<li><bdi>{text(row.name)}</bdi>: {text(row.error)}</li>"
        for row in found.head(_MOST).itertuples()
    )
    left = len(found) - min(len(found), _MOST)
    return f"<ul>{items}</ul>" + (f"<p>And {left} more.</p>" if left else "")


def _table(heads: tuple[str, ...], body: str) -> str:
    """An HTML table."""
    names = "".join(
        f'<th scope="col" class="{_CLASSES.get(head, "number")}">{head}</th>' for head in heads
    )
    return f'<table class="list"><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>'
