"""What is known about the inputs of a run: hits, misses, false calls, and whether flaws are shown.

A rule rejects an input if one of its explanations is inside all of its ranges, which are the least
and the most of the score, of R2, and of the certainty and size of the most important feature.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from eblime.batch.results import Run
from eblime.domains.image.photo import open_photo
from eblime.measures import covered_share, false_call_rate, probability_of_detection

USUAL = '{"score": [0.5, null]}'
_COLUMNS = {"score": "prediction", "r2": "r2", "certainty": "prob_positive", "size": "area"}
_OUTCOMES = {(1, 1): "hit", (1, 0): "miss", (0, 1): "false call", (0, 0): "correct"}
_TOP = 3  # superpixels that must cover half of a flaw
_TOP_FEATURE = ("mean", "prob_positive", "area")


def read_rule(text: str) -> Mapping[str, tuple[float, float]]:
    """The ranges in a rule in JSON, such as `{"score": [0.5, null], "r2": [0.2, null]}`."""
    try:
        found = {name: np.array(ends, dtype=float) for name, ends in json.loads(text).items()}
        if not found or {ends.shape for ends in found.values()} != {(2,)} or {*found} - {*_COLUMNS}:
            raise ValueError(f"{text:.80}")
    except (AttributeError, TypeError, ValueError) as error:
        message = f"A rule must have ranges of {', '.join(_COLUMNS)}, such as {USUAL}; got {error}."
        raise ValueError(message) from error
    return {k: (*np.where(np.isnan(v), (-np.inf, np.inf), v),) for k, v in found.items()}


def judge(run: Run, rule: str, truth: Path | None = None) -> Any:
    """A frame with a row per input: its score, whether it is rejected, and what is known of it.

    `truth` is a table with the column `name`, that of the file. Its `flaw`, 0 or 1, gives an
    `outcome`, and its `mask`, an image, or `x0`, `y0`, `x1` and `y1` give `located`: whether the
    explanation shows the flaw. Other columns, such as `size` or `inspector`, are kept.
    """
    import pandas as pd

    rows = run.frame(["input", "target", "name", "prediction", "r2", "r2_held_out", *_TOP_FEATURE])
    rows["r2"] = rows["r2_held_out"].fillna(rows["r2"])
    each = rows.sort_values("mean").groupby(["input", "target"], as_index=False).last()
    ranges = read_rule(rule).items()
    inside = [each[_COLUMNS[name]].astype(float).between(*ends) for name, ends in ranges]
    each["rejected"] = np.all(inside, axis=0)
    each = each.sort_values("rejected", kind="stable").groupby("input", as_index=False).last()
    found = each[["input", "target", "name", "rejected"]].assign(score=each["prediction"])
    if truth is None:
        return found
    known = pd.read_csv(truth)
    names = known.get("name", known.index)
    if names.duplicated().any() or not names.isin(found["name"]).any():
        raise ValueError(
            f"{truth} must have a column `name` with each file once, such as {found['name'][0]!r}."
        )
    found = found.merge(known, on="name")
    if "flaw" in found:
        pairs = zip(found["flaw"].astype(int), found["rejected"].astype(int), strict=True)
        found["outcome"] = [_OUTCOMES[pair] for pair in pairs]
    if "mask" in found or "x0" in found:
        found["located"] = [_located(run, row, truth.parent) for row in found.to_dict("records")]
    return found


def _located(run: Run, row: Mapping[Any, Any], folder: Path) -> float:
    """Whether the top superpixels cover half of a flaw, 0 or 1; NaN where that is not known."""
    with suppress(FileNotFoundError):  # the explanation was not saved
        e: Any = run.explanation(row["input"], row["target"])
        if isinstance(row.get("mask"), str):
            image = open_photo(folder / row["mask"]).convert("L")
            region = np.asarray(image.resize(e.segments.shape[::-1], 0)) > 0
        else:
            y, x = np.indices(e.segments.shape)
            x0, y0, x1, y1 = (row.get(side, np.nan) for side in ("x0", "y0", "x1", "y1"))
            region = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
        if region.any():
            return float(covered_share(e, region, top=_TOP) >= 0.5)
    return np.nan


def summary(found: Any) -> Iterator[str]:
    """What `judge` found, in sentences."""
    yield f"{found['rejected'].sum()} of {len(found)} inputs are rejected."
    if "outcome" in found:
        counts = found["outcome"].value_counts()
        yield ", ".join(f"{word}: {counts.get(word, 0)}" for word in _OUTCOMES.values())
        flaws, calls = found[found["flaw"] == 1], found.loc[found["flaw"] == 0, "rejected"]
        if len(calls):
            yield "false-call rate {:.2f} ({:.2f} to {:.2f})".format(*false_call_rate(calls))
        if "located" in found:
            shown = flaws.loc[flaws["rejected"], "located"].dropna()
            yield f"the explanation shows the flaw in {shown.sum():.0f} of {len(shown)} hits"
        if "size" in found:
            with suppress(ValueError):  # no curve
                yield str(probability_of_detection(flaws["size"], flaws["rejected"]))
