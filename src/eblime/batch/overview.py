"""A run as an HTML page: importance over all inputs, a list of them with links, and failures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
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

_MOST = 40  # rows of the lists of classes, features and failures
_FEW = 10  # features that are shown at first
_LISTED = 1_000  # explanations in the list of inputs; of more, the worst fits and the first ones
_OUTPUTS = 60  # outputs to choose from
_TOP = 3  # features of an explanation in the list
_COLUMNS = [
    *("input", "name", "target", "label", "prediction", "feature", "value"),
    *("mean", "low", "high", "r2", "r2_held_out", "area"),
]


def overview(
    run: Run,
    path: str | os.PathLike[str] | None = None,
    *,
    prob: float = 0.95,
    pages: int | None = None,
    progress: Progress = None,
) -> str:
    """An HTML page about a run; also written to `path`, if given.

    It lists 1,000 explanations, which the reader can sort and divide by a threshold; of a larger
    run, the 500 worst fits and the first 500 others.

    Parameters
    ----------
    run
        A run, from `open_run`.
    path
        The file to write; None only returns the page, without links.
    prob
        Probability of the intervals.
    pages
        How many of the listed explanations get their own page in `pages/` next to `path`, the worst
        fits first. They must be saved in the run (`keep` of `explain_many`). None is all; of a run
        with more than 1,000 inputs that are not pictures, such as rows, none.
    progress
        None shows a bar on a terminal when the work takes longer than a second; True always, False
        never; or a function of (done, total).
    """
    check_progress(progress)
    found, failures = _entries(run), list(run.failures().itertuples())
    r2_name = "R² (in-sample where not held out)" if found.in_sample else "held-out R²"
    listed = list(found.listed().itertuples())
    links = {} if path is None else _pages(run, Location.of(path), listed, pages, progress)
    importances = [] if found.regions else list(run.summary(prob).itertuples())
    digits = decimals([np.array([row.high for row in importances])])
    page = render_page(
        "run.html.j2",
        scripts=("download.js", "run.js"),
        heading=f"Run “{run.location.name}”",
        summary=_summary(run, found, r2_name, len(failures)),
        classes=_by_class(found.classes) if found.regions else None,
        importances=importances,
        output=importances[0].output if importances else "",
        number=partial(format_number, digits=digits),
        prob=prob,
        r2_name=r2_name,
        about_list=_about_list(found, listed, links),
        outputs=sorted({row.label for row in listed})[:_OUTPUTS],
        listed=listed,
        links=links,
        failures=failures,
        few=_FEW,
        most=_MOST,
    )
    if path is not None:
        Location.of(path).write(page.encode())
    return page


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

    def listed(self) -> Any:
        """Frame of the explanations to list, the worst fits first."""
        import pandas as pd

        if len(self.r2) <= _LISTED:
            return self.first.sort_values("r2", kind="stable")
        both = pd.concat([self.worst[: _LISTED // 2], self.first])
        return both.drop_duplicates(["input", "target"])[:_LISTED].sort_values("r2", kind="stable")


def _entries(run: Run) -> _Entries:
    """Collect the explanations of a run, which is read one part at a time."""
    import pandas as pd

    first, worst, r2, inputs, sums = pd.DataFrame(), pd.DataFrame(), [], 0, []
    in_sample, regions = False, True
    for rows in run.pieces(_COLUMNS):
        each = _explanations(rows)
        first = pd.concat([first, each[: _LISTED - len(first)]])
        worst = pd.concat([worst, each]).sort_values("r2", kind="stable")[:_LISTED]
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
    rows = rows.assign(certain=certain, regions=rows["area"].notna())
    own, same = ["input", "target"], ["name", "label", "prediction", "r2", "r2_held_out"]
    alike = rows.groupby(own, sort=False)
    each = alike[same].first().join(alike["certain"].mean()).join(alike["regions"].all())
    largest = rows.iloc[np.argsort(-rows["mean"].abs().to_numpy(), kind="stable")]
    top: dict[tuple[int, int], list[tuple[str, float, str]]] = {key: [] for key in each.index}
    for row in largest.groupby(own, sort=False).head(_TOP).itertuples():
        kind = "unsure" if not row.certain else "for" if row.mean > 0 else "against"
        top[row.input, row.target].append((_with_value(row.feature, row.value), row.mean, kind))
    held_out, r2 = each.pop("r2_held_out").astype(float), each["r2"].astype(float)
    in_sample = held_out.isna() & ~r2.isin([0.0, 1.0]) & r2.notna()
    each = each.assign(r2=held_out.where(~in_sample, r2), in_sample=in_sample)
    return each.assign(top=list(top.values())).reset_index()


def _with_value(name: str, value: str | None) -> str:
    """A feature and its value, if it has one; numbers with a point are shortened."""
    if not isinstance(value, str):
        return name
    with suppress(ValueError):
        value = f"{float(value):.4g}" if "." in value else value
    return f"{name} = {value}"


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
    said = f"{found.inputs} of {run.settings['count']} inputs explained, {failed} failed."
    if r2.size:
        said += f" The median of the {r2_name} is {np.median(r2):.2f}"
        rough = int((r2 < 0.5).sum())
        said += (
            f"; it is below one half for {rough} of {len(found.r2)} explanations, whose "
            "importances are rough sketches."
            if rough
            else "."
        )
    return said


def _about_list(found: _Entries, listed: Sequence[Any], links: Mapping[Any, Any]) -> str:
    """Which explanations are listed, and which have pages."""
    count = len(found.r2)
    said = "At first the worst fits come first; a heading sorts by its column."
    if len(listed) < count:
        said = (
            f"{len(listed):,} of {count:,} explanations: the {_LISTED // 2:,} worst fits, and the "
            f"first ones. {said}"
        )
    if links and len(links) < len(listed):
        said += " Only some have pages: a run saves its first explanations, or all with keep=True."
    return said


def _pages(
    run: Run, path: Location, listed: Sequence[Any], pages: int | None, progress: Progress
) -> dict[Any, tuple[str, str]]:
    """Write pages of saved explanations; returns links and thumbnails by (input, target)."""
    folder, links = path.parent, {}
    kept = set((run.location / "explanations").files())
    saved = [entry for entry in listed if f"{entry.input}-{entry.target}.eblime" in kept][:pages]
    with progress_reporter(progress, len(saved), unit="page") as report_progress:
        for done, entry in enumerate(saved, start=1):
            explanation = run.explanation(entry.input, entry.target)
            picture = thumbnail(explanation)
            if pages is None and not picture and run.settings["count"] > _LISTED:
                break
            name = f"pages/{entry.input}-{entry.target}.html"
            title = f"{entry.name}: {entry.label}"
            (folder / name).write(report(explanation, title=title).encode())
            links[entry.input, entry.target] = name, picture
            report_progress(done)
    return links
