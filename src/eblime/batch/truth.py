"""What a rule decides about the inputs of a run, beside what is known of them.

A rule rejects an input if one of its explanations is inside all of its ranges, which are the least
and the most of the score, of R2, and of the certainty and size of the most important feature.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eblime import measures
from eblime._types import BoolArray
from eblime.batch.inputs import read_table
from eblime.batch.results import Run
from eblime.domains.image.photo import open_photo, read_photo

USUAL = '{"score": [0.5, null]}'
_PLACES = ("mask", "x0", "y0", "x1", "y1", "width", "height")  # columns that say where a flaw is
_NUMBERS = (*_PLACES[1:], "size")
_FOUND = ("decision", "located", "outcome", "score")  # columns of the decisions
_RANGES = {"score": "prediction", "r2": "r2", "certainty": "prob_positive", "size": "area"}
_OUTCOMES = {(1, True): "hit", (1, False): "miss", (0, True): "false call", (0, False): "correct"}
_TOP = 3  # superpixels that must cover half of a flaw


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """Which inputs of a run a rule rejects, and how that compares with what is known."""

    table: Any  # a frame with a row per input
    words: tuple[str, ...]
    curve: measures.DetectionCurve | None = None


def read_rule(text: str) -> Mapping[str, tuple[float, float]]:
    """The ranges in a rule in JSON, such as `{"score": [0.5, null], "r2": [0.2, null]}`."""
    try:
        found = {name: np.array(ends, dtype=float) for name, ends in json.loads(text).items()}
        if not found or {ends.shape for ends in found.values()} != {(2,)} or {*found} - {*_RANGES}:
            raise ValueError(f"{text.strip():.80}")
    except (AttributeError, TypeError, ValueError) as error:
        message = f"A rule must have ranges of {', '.join(_RANGES)}, such as {USUAL}; got {error}."
        raise ValueError(message) from error
    ranges = {k: (*np.where(np.isnan(v), (-np.inf, np.inf), v),) for k, v in found.items()}
    if any(low >= high for low, high in ranges.values()):
        raise ValueError(f"The least of a rule must be below the most; got {text.strip():.80}.")
    return ranges


def decide(run: Run, rule: str, truth: Path | None = None) -> Decisions:
    """Decide about each input of a run, and compare with a table of what is known of them.

    The table has the column `name`, that of the file. Its `flaw`, 0 or 1, gives an `outcome`; its
    `mask`, an image beside the table, or `x0`, `y0`, `x1` and `y1`, in pixels of a photo of `width`
    and `height`, give `located`: whether the explanation shows the flaw. `size` gives a curve of
    detection. Other columns, such as `inspector`, are kept.
    """
    from eblime._pandas import pd

    top = ["mean", "prob_positive", "area"]
    rows = run.frame(["input", "target", "name", "prediction", "r2", "r2_held_out", *top])
    rows["r2"] = rows["r2_held_out"].fillna(rows["r2"])
    each = rows.sort_values("mean").groupby(["input", "target"]).tail(1).sort_values("input")
    ranges = read_rule(rule).items()
    inside = [each[_RANGES[name]].astype(float).between(*ends) for name, ends in ranges]
    each["decision"] = np.where(np.all(inside, axis=0), "reject", "accept")
    each = each.sort_values("decision", kind="stable").groupby("input").tail(1)
    each = each.sort_values("input", ignore_index=True).rename(columns={"prediction": "score"})
    table = each[["input", "target", "name", "score", "decision"]]
    n = int((table["decision"] == "reject").sum())
    words = [f"{n} of {len(table)} inputs are rejected. The rule: {' '.join(rule.split())}"]
    if len(failed := run.failures()):
        words.append(f"{len(failed)} more failed, and are not judged.")
        table = pd.concat([table, failed[["input", "name"]].assign(target=-1, decision="failed")])
        table = table.sort_values("input", ignore_index=True)
    if truth is None:
        return Decisions(table=table, words=tuple(words))
    known = read_table(truth).rename(columns={name: f"{name} (known)" for name in _FOUND})
    words_in = [n for n in _NUMBERS if n in known and not pd.api.types.is_numeric_dtype(known[n])]
    if words_in:
        raise ValueError(f"{truth} must have numbers in its columns {words_in}.")
    names = known.get("name", known.index.to_series()).astype(str)
    if names.duplicated().any() or not names.isin(table["name"]).any():
        raise ValueError(
            f"{truth} must have a column `name` with each file once, such as {table['name'][0]!r}."
        )
    lost = names[~names.isin(table["name"])].tolist()
    if lost:
        words.append(f"{truth.name}: the run has no {', '.join(map(repr, lost[:3]))}.")
    table = table.merge(known.assign(name=names), "left", "name", suffixes=("", " (known)"))
    if {"mask", "x0"} & {*table}:
        places: list[Any] = table.to_dict("records")
        kept = (run.location / "explanations").files()
        table.insert(5, "located", [_located(run, row, truth.parent, kept) for row in places])
    table, curve = table.drop(columns=[name for name in _PLACES if name in table]), None
    if "flaw" in table:
        if not table["flaw"].dropna().isin([0, 1]).all():
            raise ValueError(f"{truth} must have 0 or 1 in its column `flaw`.")
        rejected = table["decision"].map({"reject": True, "accept": False})
        pairs = zip(table["flaw"], rejected, strict=True)
        table.insert(5, "outcome", [_OUTCOMES.get(pair, "") for pair in pairs])
        curve = _compare(table, words)
    return Decisions(table=table, words=tuple(words), curve=curve)


def _compare(table: Any, words: list[str]) -> measures.DetectionCurve | None:
    """Add what outcomes say, in sentences; returns the curve of detection if there is one."""
    counts = table["outcome"].value_counts()
    words.append(", ".join(f"{word}: {counts.get(word, 0)}" for word in _OUTCOMES.values()))
    table = table[table["outcome"] != ""]
    flaws, calls = table[table["flaw"] == 1], table.loc[table["flaw"] == 0, "decision"] == "reject"
    if len(calls):
        rate, low, high = measures.false_call_rate(calls)
        words.append(f"False-call rate: {rate:.2f} (95 % interval {low:.2f} to {high:.2f})")
    if "located" in flaws:
        shown = flaws.loc[flaws["outcome"] == "hit", "located"].dropna()
        words.append(f"The explanation shows the flaw in {shown.sum():.0f} of {len(shown)} hits.")
    curve = None
    if "size" in flaws:
        flaws = flaws.dropna(subset="size")
        try:
            curve = measures.probability_of_detection(flaws["size"], flaws["outcome"] == "hit")
            words += str(curve).splitlines()
        except ValueError as error:
            words.append(f"No curve of detection. {error}")
    return curve


def _located(run: Run, row: Mapping[Any, Any], folder: Path, kept: Container[str]) -> float:
    """Whether the top superpixels cover half of a flaw, 0 or 1; NaN where that is not known."""
    if f"{row['input']}-{row['target']}.eblime" not in kept:
        return np.nan
    explanation = run.explanation(row["input"], row["target"])
    fit = (run.settings["about"] or {}).get("fit", "stretch")
    region = _region(row, folder, explanation.segments.shape, fit)
    if not region.any():
        return np.nan
    return float(measures.covered_share(explanation, region, top=_TOP) >= 0.5)


def _region(row: Mapping[Any, Any], folder: Path, shape: tuple[int, ...], fit: str) -> BoolArray:
    """Where a flaw is, with the mask or the box scaled as the photo was."""
    from PIL import Image

    if isinstance(row.get("mask"), str):
        inside = np.asarray(open_photo(folder / row["mask"]).convert("L")) > 0
    else:
        x0, y0, x1, y1, width, height = (row.get(name, np.nan) for name in _PLACES[1:])
        own = shape if np.isnan([width, height]).any() else (int(height), int(width))
        y, x = np.ogrid[: own[0], : own[1]]
        inside = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    image = Image.fromarray(255 * inside.astype(np.uint8))
    return np.asarray(read_photo(image, (shape[0], shape[1], 1), fit=fit).pixels >= 128)
