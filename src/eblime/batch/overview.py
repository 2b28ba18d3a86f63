"""A page about a run: what matters over all inputs, the worst fits and the failures, with links."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eblime._progress import Progress, progress_reporter
from eblime.batch.place import Place
from eblime.batch.results import Run
from eblime.reporting.page import report
from eblime.reporting.render import render_page
from eblime.reporting.views import thumbnail

__all__ = ["overview"]

_MOST = 40  # rows of a list
_WORST = 20


def overview(
    run: Run,
    path: str | os.PathLike[str] | None = None,
    *,
    prob: float = 0.95,
    pages: int = 60,
    progress: Progress = None,
) -> str:
    """A page about a run, written to `path` if given.

    Parameters
    ----------
    run
        A run of `open_run` or `explain_many`.
    path
        Where to write the page; None only returns it, without links.
    prob
        Level of the intervals.
    pages
        If the run kept its explanations: how many get a page of their own beside `path`, in
        `pages/`, the worst fits first.
    progress
        None shows a bar on a terminal when the work takes longer than a second; True always, False
        never; or a function of (done, total).
    """
    found = _Overall()
    for rows in run.pieces():
        found.add(rows)
    failures = list(run.failures().itertuples())
    links = {} if path is None else _pages(run, Place.of(path), found.listed()[:pages], progress)
    page = render_page(
        "run.html.j2",
        scripted=False,
        heading=f"Run “{run.place.name}”",
        summary=_summary(run, found, len(failures)),
        classes=found.by_class() if found.images else None,
        importances=[] if found.images else list(run.summary(prob).itertuples()),
        prob=prob,
        worst=found.worst,
        first=found.first,
        links=links,
        failures=failures,
        most=_MOST,
    )
    if path is not None:
        Place.of(path).write(page.encode())
    return page


@dataclass(slots=True)
class _Overall:
    """What the page needs from the run, collected part by part."""

    r2: list[Any] = field(default_factory=list)
    worst: list[Any] = field(default_factory=list)
    first: list[Any] = field(default_factory=list)
    classes: dict[str, Any] = field(default_factory=dict)  # label -> sums
    inputs: int = 0
    images: bool = True

    def add(self, rows: Any) -> None:
        """Add the rows of one part."""
        if rows.empty:
            return
        self.images &= bool(rows["feature"].str.startswith("superpixel ").all())
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

    def by_class(self) -> list[dict[str, Any]]:
        """Means per class, the most frequent class first."""
        ordered = sorted(self.classes.items(), key=lambda pair: -pair[1][3])
        return [
            {"label": label, "count": int(sums[3])}
            | dict(zip(("prediction", "r2", "certain"), sums[:3] / sums[3], strict=True))
            for label, sums in ordered
        ]


def _summary(run: Run, found: _Overall, failed: int) -> str:
    """The run in two sentences."""
    r2 = np.concatenate(found.r2) if found.r2 else np.empty(0)
    done = f"{found.inputs} of {run.settings['count']} inputs explained, {failed} failed."
    if not r2.size:
        return done
    return (
        f"{done} The median of R² is {np.median(r2):.2f}; it is below one half for "
        f"{int((r2 < 0.5).sum())} explanations, whose importances are rough sketches."
    )


def _pages(run: Run, path: Place, entries: Iterable[Any], progress: Progress) -> dict[Any, Any]:
    """Write the pages of kept explanations; their links and thumbnails by input and target."""
    folder = path.parent
    kept = set((run.place / "explanations").files())
    there = [e for e in entries if f"{e.input}-{e.target}.eblime" in kept]
    links = {}
    with progress_reporter(progress, len(there), unit="page") as report_progress:
        for done, entry in enumerate(there, start=1):
            explanation = run.explanation(entry.input, entry.target)
            name = f"pages/{entry.input}-{entry.target}.html"
            title = f"{entry.name}: {entry.label}"
            (folder / name).write(report(explanation, title=title).encode())
            links[entry.input, entry.target] = name, thumbnail(explanation)
            report_progress(done)
    return links
