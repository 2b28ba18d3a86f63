"""A run as an HTML page: importance over all inputs, a list of them with links, and failures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from eblime._progress import Progress, check_progress, progress_reporter
from eblime._table import decimals, format_number
from eblime.batch.location import Location
from eblime.batch.results import Run
from eblime.batch.truth import Decisions
from eblime.reporting.page import report
from eblime.reporting.render import render_page
from eblime.reporting.views import figure_data, thumbnail
from eblime.results.notes import UNRELIABLE, cautions, nothing_certain

_LISTED = 1_000  # explanations in the list of inputs; of more, the worst fits and the first ones
_TOP = 3  # features of an explanation in the list
_OWN = ["input", "target"]  # of an explanation
_SAME = ["label", "prediction", "r2", "r2_held_out"]  # in all its rows


def overview(
    run: Run,
    path: str | os.PathLike[str] | None = None,
    *,
    prob: float = 0.95,
    pages: int | None = None,
    progress: Progress = None,
    decisions: Decisions | None = None,
) -> str:
    """An HTML page about a run; also written to `path`, with links, if given.

    It lists 1,000 explanations, which the reader can sort and divide by a threshold; of a larger
    run, the 500 worst fits and the first 500 others. So many `pages` of those that are saved in the
    run, the worst fits first, are written to `pages/` next to `path`. None is all; of a run with
    more than 1,000 inputs that are not pictures, such as rows, none. `decisions` are those of a
    rule, which have a table of their own.
    """
    check_progress(progress)
    entries, failures = _entries(run), list(run.failures().itertuples())
    listed = list(_listed(run, entries).itertuples())
    links = {} if path is None else _pages(run, Location.of(path), listed, pages, progress)
    regions = bool(entries["regions"].all())  # of their own input, such as superpixels
    importances = [] if regions else list(run.summary(prob).itertuples())
    curve = decisions.curve if decisions else None
    digits = decimals([np.array([row.high for row in importances])])
    page = render_page(
        "run.html.j2",
        scripts=("download.js", "run.js"),
        heading=f"Run “{run.location.name}”: {entries['input'].nunique()} inputs",
        count=run.settings["count"],
        entries=entries,
        classes=_by_class(entries) if regions else None,
        importances=importances,
        number=partial(format_number, digits=digits),
        prob=prob,
        unreliable=UNRELIABLE,
        listed=listed,
        links=links,
        failures=failures,
        decisions=decisions,
        curve=figure_data(curve.plot().figure, 110) if curve else "",
    )
    if path is not None:
        Location.of(path).write(page.encode())
    return page


def _entries(run: Run) -> Any:
    """A frame with one row per explanation.

    `r2` is held-out, or else in-sample, and NaN for constant scores: those without a held-out value
    and an in-sample value of exactly 0 or 1.
    """
    import pandas as pd

    found = []
    for rows in run.pieces([*_OWN, *_SAME, "low", "high", "area"]):
        certain = (rows["low"] > 0) | (rows["high"] < 0)
        rows = rows.assign(certain=certain, regions=rows["area"].notna())
        alike = rows.groupby(_OWN, sort=False)
        found.append(
            alike[_SAME].first().join(alike["certain"].mean()).join(alike["regions"].all())
        )
    each = pd.concat(found).reset_index()
    held_out, r2 = each.pop("r2_held_out").astype(float), each["r2"].astype(float)
    in_sample = held_out.isna() & ~r2.isin([0.0, 1.0]) & r2.notna()
    return each.assign(r2=held_out.where(~in_sample, r2), in_sample=in_sample)


def _listed(run: Run, entries: Any) -> Any:
    """The explanations to list, the worst fits first, with their most important features."""
    import pandas as pd

    worst = entries.sort_values("r2", kind="stable")  # constant scores come last
    if len(entries) > _LISTED:
        both = pd.concat([worst[: _LISTED // 2], entries]).drop_duplicates(_OWN)
        worst = both[:_LISTED].sort_values("r2", kind="stable")
    wanted = [*_OWN, "name", "feature", "value", "mean", "low", "high"]
    rows: Any = pd.concat([p[p["input"].isin(worst["input"])] for p in run.pieces(wanted)])
    names = rows.drop_duplicates("input").set_index("input")["name"]
    largest = rows.iloc[np.argsort(-rows["mean"].abs().to_numpy(), kind="stable")]
    most = largest.groupby(_OWN, sort=False).head(_TOP).groupby(_OWN)
    top = {key: list(own.itertuples()) for key, own in most}
    keys = zip(worst["input"], worst["target"], strict=True)
    return worst.assign(name=worst["input"].map(names), top=[top[key] for key in keys])


def _by_class(entries: Any) -> list[dict[str, Any]]:
    """Medians per class, the most frequent class first."""
    alike = entries.groupby("label")
    medians = alike[["prediction", "r2", "certain"]].median().assign(count=alike.size())
    ordered = medians.sort_values("count", ascending=False, kind="stable").reset_index()
    return list(ordered.to_dict("records"))


def _pages(
    run: Run, path: Location, listed: Sequence[Any], pages: int | None, progress: Progress
) -> dict[Any, tuple[str, str, str]]:
    """Write pages of saved explanations: links, thumbnails and cautions by (input, target)."""
    folder, links = path.parent, {}
    kept = set((run.location / "explanations").files())
    largest = max((abs(entry.top[0].mean) for entry in listed), default=None)  # on all thumbnails
    saved = [entry for entry in listed if f"{entry.input}-{entry.target}.eblime" in kept][:pages]
    with progress_reporter(progress, len(saved), unit="page") as report_progress:
        for done, entry in enumerate(saved, start=1):
            explanation = run.explanation(entry.input, entry.target)
            picture = thumbnail(explanation, largest)
            if pages is None and not picture and run.settings["count"] > _LISTED:
                break
            name = f"pages/{entry.input}-{entry.target}.html"
            title = f"{entry.name}: {entry.label}"
            (folder / name).write(report(explanation, title=title).encode())
            words = "; ".join(filter(None, [nothing_certain(explanation), *cautions(explanation)]))
            links[entry.input, entry.target] = name, picture, words
            report_progress(done)
    return links
