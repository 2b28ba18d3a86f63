"""A run as a page: what matters over all inputs, where the fit is poor, what failed, with links."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eblime._progress import Progress, telling
from eblime.batch.place import Place
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
    """A page about a run; written to `path` where given.

    Parameters
    ----------
    run
        Of `open_run`.
    path
        Where to write the page; None only returns it, without links.
    prob
        Level of the intervals.
    pages
        Where the run kept its explanations: how many get a page of their own beside `path`, in
        `pages/`, the worst fits first.
    progress
        None shows a bar on a terminal when the work takes longer than a second; True always, False
        never; or a function of (done, total).
    """
    found = _Overall()
    for rows in run.pieces():
        found.add(rows)
    failures = run.failures()
    links = {} if path is None else _pages(run, Place.of(path), found.listed()[:pages], progress)
    main = f"<p>{text(_words(run, found, failures))}</p>"
    if found.images:
        main += f"<h2>By class</h2>{_classes(found)}"
    else:
        main += (
            "<h2>Importance over all inputs</h2>"
            f"<p>Mean of |importance| with its {100 * prob:g} % credible interval.</p>"
            f"{_importance(run.summary(prob))}"
        )
    main += f"<h2>Worst fits</h2>{_list(found.worst, links)}"
    main += f"<h2>First inputs</h2>{_list(found.first, links)}<h2>Failures</h2>{_failed(failures)}"
    page = whole_page(f"Run “{run.place.name}”", "", main, scripted=False)
    if path is not None:
        Place.of(path).write(page.encode())
    return page


@dataclass(slots=True)
class _Overall:
    """What is remembered of a run while it is read, a part at a time."""

    r2: list[Any] = field(default_factory=list)
    worst: list[Any] = field(default_factory=list)
    first: list[Any] = field(default_factory=list)
    classes: dict[str, Any] = field(default_factory=dict)  # label -> sums
    inputs: int = 0
    images: bool = True

    def add(self, rows: Any) -> None:
        """One more part."""
        if rows.empty:
            return
        self.images &= bool(rows["feature"].str.startswith("superpixel ").all())
        rows = rows.assign(sure=(rows["low"] > 0) | (rows["high"] < 0))
        sure = rows.groupby(["input", "target"], sort=False)["sure"].mean()
        each = rows.drop_duplicates(["input", "target"]).assign(sure=sure.to_numpy(dtype=float))
        self.inputs += each["input"].nunique()
        self.r2.append(each["r2"].to_numpy(dtype=float))
        for label, group in each.groupby("label"):
            sums = group[["prediction", "r2", "sure"]].sum().to_numpy(dtype=float)
            self.classes[label] = self.classes.get(label, 0) + np.append(sums, len(group))
        entries = list(each.sort_values(["input", "target"]).itertuples())
        if len(self.first) < _MOST:
            self.first += entries[: _MOST - len(self.first)]
        self.worst = sorted([*self.worst, *entries], key=lambda entry: entry.r2)[:_WORST]

    def listed(self) -> list[Any]:
        """Entries of the lists, each once."""
        both = {(entry.input, entry.target): entry for entry in [*self.worst, *self.first]}
        return list(both.values())


def _words(run: Run, found: _Overall, failures: Any) -> str:
    """The run in two sentences."""
    r2 = np.concatenate(found.r2) if found.r2 else np.empty(0)
    done = f"{found.inputs} of {run.settings['count']} inputs explained, {len(failures)} failed."
    if not r2.size:
        return done
    return (
        f"{done} R² has a median of {np.median(r2):.2f}; it is below one half for "
        f"{int((r2 < 0.5).sum())} explanations, whose importances are rough sketches."
    )


def _pages(run: Run, path: Place, entries: Iterable[Any], progress: Progress) -> dict[Any, Any]:
    """Pages of explanations that were kept: their links and small pictures, by input and target."""
    folder = path.parent
    kept = set((run.place / "explanations").files())
    there = [e for e in entries if f"{e.input}-{e.target}.eblime" in kept]
    links = {}
    with telling(progress, len(there), unit="page") as tell:
        for done, entry in enumerate(there, start=1):
            explanation = run.explanation(entry.input, entry.target)
            name = f"pages/{entry.input}-{entry.target}.html"
            title = f"{entry.name}: {entry.label}"
            (folder / name).write(report(explanation, title=title).encode())
            links[entry.input, entry.target] = name, thumbnail(explanation)
            tell(done)
    return links


def _importance(found: Any) -> str:
    """Features by their mean size, each with a bar."""
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
    """What was explained, by label: superpixels of different images have nothing in common."""
    ordered = sorted(found.classes.items(), key=lambda pair: -pair[1][3])
    body = "".join(
        f'<tr><th scope="row"><bdi>{text(label)}</bdi></th><td>{sums[3]:.0f}</td>'
        f"<td>{sums[0] / sums[3]:.3g}</td><td>{sums[1] / sums[3]:.2f}</td>"
        f"<td>{100 * sums[2] / sums[3]:.0f} %</td></tr>"
        for label, sums in ordered[:_MOST]
    )
    left = len(ordered) - min(len(ordered), _MOST)
    rest = f"<p>{left} more classes are in the run.</p>" if left else ""
    heads = ("class", "images", "mean prediction", "mean R²", "superpixels whose sign is certain")
    return _table(heads, body) + rest


def _list(entries: Iterable[Any], links: dict[Any, Any]) -> str:
    """Inputs with their fit, a small picture and a link where there is a page."""
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
    """Inputs that failed, and why."""
    if found.empty:
        return "<p>None.</p>"
    items = "".join(
        f"<li><bdi>{text(row.name)}</bdi>: {text(row.error)}</li>"
        for row in found.head(_MOST).itertuples()
    )
    left = len(found) - min(len(found), _MOST)
    return f"<ul>{items}</ul>" + (f"<p>And {left} more.</p>" if left else "")


def _table(heads: tuple[str, ...], body: str) -> str:
    """A table of a list."""
    names = "".join(
        f'<th scope="col" class="{_CLASSES.get(head, "number")}">{head}</th>' for head in heads
    )
    return f'<table class="list"><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>'
