"""A run as an HTML page: importance over all inputs, worst fits, failures, and links."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from eblime._progress import Progress, check_progress, progress_reporter
from eblime._table import decimals, format_number
from eblime.batch.location import Location
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
        How many explanations get their own page in `pages/` next to `path`, the worst fits first.
        They must be saved in the run: the first 100 inputs are, and all with keep=True.
    progress
        None shows a bar on a terminal when the work takes longer than a second; True always, False
        never; or a function of (done, total).
    """
    check_progress(progress)
    found = _Totals()
    for rows in run.pieces():
        found.add(rows)
    failures = list(run.failures().itertuples())
    links = {} if path is None else _pages(run, Location.of(path), found.listed()[:pages], progress)
    importances = [] if found.regions else list(run.summary(prob).itertuples())
    digits = decimals([np.array([row.high for row in importances])])
    page = render_page(
        "run.html.j2",
        scripted=False,
        heading=f"Run “{run.location.name}”",
        summary=_summary(run, found, len(failures)),
        classes=found.by_class() if found.regions else None,
        importances=importances,
        number=partial(format_number, digits=digits),
        prob=prob,
        r2_name=found.r2_name,
        worst=found.worst if found.entries > _MOST else sorted(found.first, key=_worst_first),
        first=found.first if found.entries > _MOST else [],
        links=links,
        failures=failures,
        most=_MOST,
    )
    if path is not None:
        Location.of(path).write(page.encode())
    return page


@dataclass(slots=True)
class _Totals:
    """Totals of a run, which is read one part at a time."""

    r2: list[Any] = field(default_factory=list)
    worst: list[Any] = field(default_factory=list)
    first: list[Any] = field(default_factory=list)
    classes: dict[str, Any] = field(default_factory=dict)  # label -> sums
    inputs: int = 0
    entries: int = 0  # inputs times their targets
    in_sample: bool = False  # some explanation has no held-out R^2
    regions: bool = True  # features are regions of their own input, such as superpixels

    def add(self, rows: Any) -> None:
        """Add the rows of a part."""
        if rows.empty:
            return
        self.regions &= bool(rows["area"].notna().all())
        rows = rows.assign(certain=(rows["low"] > 0) | (rows["high"] < 0))
        certain = rows.groupby(["input", "target"], sort=False)["certain"].mean()
        each = rows.drop_duplicates(["input", "target"])
        each = each.assign(certain=certain.to_numpy(dtype=float), r2=_quality(each))
        self.in_sample |= bool((each["r2_held_out"].isna() & each["r2"].notna()).any())
        self.inputs += each["input"].nunique()
        self.entries += len(each)
        self.r2.append(each["r2"].dropna().to_numpy(dtype=float))
        for label, group in each.groupby("label"):
            sums = group[["prediction", "r2", "certain"]].sum().to_numpy(dtype=float)
            counts = len(group), group["r2"].notna().sum()
            self.classes[label] = self.classes.get(label, 0) + np.append(sums, counts)
        entries = list(each.sort_values(["input", "target"]).itertuples())
        if len(self.first) < _MOST:
            self.first += entries[: _MOST - len(self.first)]
        self.worst = sorted([*self.worst, *entries], key=_worst_first)[:_WORST]

    @property
    def r2_name(self) -> str:
        """What the R^2 of the page is."""
        return "R² (in-sample where not held out)" if self.in_sample else "held-out R²"

    def listed(self) -> list[Any]:
        """The entries of both lists, each once."""
        both = {(entry.input, entry.target): entry for entry in [*self.worst, *self.first]}
        return list(both.values())

    def by_class(self) -> list[dict[str, Any]]:
        """Means per class, the most frequent class first."""
        ordered = sorted(self.classes.items(), key=lambda pair: -pair[1][3])
        return [
            {
                "label": label,
                "count": int(count),
                "prediction": prediction / count,
                "r2": r2 / moving if moving else np.nan,
                "certain": certain / count,
            }
            for label, (prediction, r2, certain, count, moving) in ordered
        ]


def _quality(each: Any) -> Any:
    """The held-out R^2 of every explanation, or the in-sample one; NaN for constant scores.

    Constant scores are those without a held-out value and an in-sample value of exactly 0 or 1.
    """
    in_sample = each["r2"].where(~each["r2"].isin([0.0, 1.0]))
    return each["r2_held_out"].where(each["r2_held_out"].notna(), in_sample)


def _worst_first(entry: Any) -> float:
    """Order by R^2; an explanation of constant scores, which has none, comes last."""
    return float(np.inf if np.isnan(entry.r2) else entry.r2)


def _summary(run: Run, found: _Totals, failed: int) -> str:
    """The run in two sentences."""
    r2 = np.concatenate(found.r2) if found.r2 else np.empty(0)
    done = f"{found.inputs} of {run.settings['count']} inputs explained, {failed} failed."
    if not r2.size:
        return done
    return (
        f"{done} The median of the {found.r2_name} is {np.median(r2):.2f}; it is below one half "
        f"for {int((r2 < 0.5).sum())} explanations, whose importances are rough sketches."
    )


def _pages(run: Run, path: Location, entries: Iterable[Any], progress: Progress) -> dict[Any, Any]:
    """Write pages of kept explanations; returns links and thumbnails by (input, target)."""
    folder = path.parent
    kept = set((run.location / "explanations").files())
    listed = [entry for entry in entries if f"{entry.input}-{entry.target}.eblime" in kept]
    links = {}
    with progress_reporter(progress, len(listed), unit="page") as report_progress:
        for done, entry in enumerate(listed, start=1):
            explanation = run.explanation(entry.input, entry.target)
            name = f"pages/{entry.input}-{entry.target}.html"
            title = f"{entry.name}: {entry.label}"
            (folder / name).write(report(explanation, title=title).encode())
            links[entry.input, entry.target] = name, thumbnail(explanation)
            report_progress(done)
    return links
