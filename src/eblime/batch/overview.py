"""A run as an HTML page: importance over all inputs, worst fits, failures, and links."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from eblime._progress import Progress, check_progress, progress_reporter
from eblime._table import decimals, format_number
from eblime._types import FloatArray
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
    found, failures = _entries(run), list(run.failures().itertuples())
    r2_name = "R² (in-sample where not held out)" if found.in_sample else "held-out R²"
    many = len(found.r2) > _MOST
    first, worst = (found.first, found.worst[:_WORST]) if many else (found.first[:0], found.worst)
    links = {}
    if path is not None:
        listed = {(entry.input, entry.target): entry for entry in _each(worst, first)}
        links = _pages(run, Location.of(path), [*listed.values()][:pages], progress)
    importances = [] if found.regions else list(run.summary(prob).itertuples())
    digits = decimals([np.array([row.high for row in importances])])
    page = render_page(
        "run.html.j2",
        scripted=False,
        heading=f"Run “{run.location.name}”",
        summary=_summary(run, found, r2_name, len(failures)),
        classes=_by_class(found.classes) if found.regions else None,
        importances=importances,
        number=partial(format_number, digits=digits),
        prob=prob,
        r2_name=r2_name,
        worst=_each(worst),
        first=_each(first),
        links=links,
        failures=failures,
        most=_MOST,
    )
    if path is not None:
        Location.of(path).write(page.encode())
    return page


def _each(*frames: Any) -> list[Any]:
    """The rows of frames, one after the other."""
    return [row for frame in frames for row in frame.itertuples()]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entries:
    """What the page shows of all explanations of a run.

    `r2` is held-out, or else in-sample, and NaN for constant scores: those without a held-out value
    and an in-sample value of exactly 0 or 1.
    """

    first: Any  # frame of the first explanations
    worst: Any  # and of those with the lowest `r2`; constant scores, which have none, come last
    r2: FloatArray  # of all
    in_sample: bool  # whether some `r2` is
    inputs: int
    regions: bool  # whether the features are regions of their own input, such as superpixels
    classes: Any  # frame with the sums over the explanations of each class


def _entries(run: Run) -> _Entries:
    """Collect the explanations of a run, which is read one part at a time."""
    import pandas as pd

    first, worst, r2, inputs, sums = pd.DataFrame(), pd.DataFrame(), [], 0, []
    in_sample, regions = False, True
    for rows in run.pieces():
        each = _explanations(rows)
        first = pd.concat([first, each[: _MOST - len(first)]])
        worst = pd.concat([worst, each]).sort_values("r2", kind="stable")[:_MOST]
        r2.append(each["r2"].to_numpy(dtype=float))
        inputs += each["input"].nunique()
        in_sample |= bool(each["in_sample"].any())
        regions &= bool(each["regions"].all())
        if regions:
            known = each.assign(count=1, known=each["r2"].notna())
            summed = ["count", "prediction", "r2", "known", "certain"]
            sums.append(known.groupby("label")[summed].sum())
    return _Entries(
        first=first,
        worst=worst,
        r2=np.concatenate(r2),
        in_sample=in_sample,
        inputs=inputs,
        regions=regions,
        classes=pd.concat(sums).groupby(level="label").sum() if regions else None,
    )


def _explanations(rows: Any) -> Any:
    """A frame with one row per explanation, from one with a row per feature."""
    certain = (rows["low"] > 0) | (rows["high"] < 0)
    r2 = rows["r2_held_out"].fillna(rows["r2"].where(~rows["r2"].isin([0.0, 1.0])))
    in_sample = rows["r2_held_out"].isna() & r2.notna()
    rows = rows.assign(certain=certain, r2=r2, in_sample=in_sample, regions=rows["area"].notna())
    same = rows.groupby(["input", "target"])
    each = same[["name", "label", "prediction", "r2", "in_sample"]].first()
    each["certain"], each["regions"] = same["certain"].mean(), same["regions"].all()
    return each.reset_index()


def _by_class(sums: Any) -> list[dict[str, Any]]:
    """Means per class, the most frequent class first."""
    means = sums.assign(
        prediction=sums["prediction"] / sums["count"],
        r2=sums["r2"] / sums["known"].where(sums["known"] > 0),
        certain=sums["certain"] / sums["count"],
    )
    ordered = means.sort_values("count", ascending=False, kind="stable").reset_index()
    return list(ordered.to_dict("records"))


def _summary(run: Run, found: _Entries, r2_name: str, failed: int) -> str:
    """The run in two sentences."""
    r2 = found.r2[~np.isnan(found.r2)]
    done = f"{found.inputs} of {run.settings['count']} inputs explained, {failed} failed."
    if not r2.size:
        return done
    return (
        f"{done} The median of the {r2_name} is {np.median(r2):.2f}; it is below one half "
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
