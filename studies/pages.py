"""Draw the figures of the measurement pages, and write the pages, from docs/results.

A page `NAME.md` is made from `NAME.md.in`, in which `@part@` stands for a number or a table. The
rows of `readme.in` replace those of the README that begin in the same way.

    make results
    python -m studies pages --check    # writes nothing; fails if a page differs from its files
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from studies.charts import style
from studies.charts.applications import inspection_part, prompt_part, signal_part
from studies.charts.comparisons import agreement_part, faithfulness_part, league_part, photo_part
from studies.charts.coverage import rank_part, text_part, truth_part
from studies.charts.paper import defect_part, figure_parts, stability_part, table_2_part
from studies.charts.speed import speed_part
from studies.charts.style import DOCS, RESULTS

PAGES, README = DOCS / "measurements", DOCS.parent / "README.md"
Parts = dict[str, str]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m studies pages`."""
    parser.add_argument("--check", action="store_true", help="compare the pages; write nothing")


def run(options: argparse.Namespace) -> None:
    """Draw the figures and write the pages, or compare the pages."""
    if options.check:
        parts, missing = checked_parts()
        wrong = [*missing, *differences(parts)]
        print("\n".join(wrong) or "The pages have the numbers of docs/results.")
        sys.exit(bool(wrong))
    parts, missing = all_parts()
    for template in PAGES.glob("*.md.in"):
        text = filled(template, parts)
        if left := holes(text):
            missing.append(f"{template.stem} is not written: no numbers for {', '.join(left)}.")
        else:
            template.with_suffix("").write_text(text, encoding="utf8")
    if missing:
        sys.exit("\n".join(missing))
    README.write_text(with_rows(parts), encoding="utf8")


def all_parts() -> tuple[Parts, list[str]]:
    """Every part by name, with its figures drawn; and what result files lack."""
    found = {path.stem: pd.read_csv(path) for path in RESULTS.glob("*.csv")}
    about = json.loads((RESULTS / "runs.json").read_text())
    makers: dict[str, Callable[[], Mapping[str, str]]] = {
        "coverage-by-rank": lambda: rank_part(found["coverage-by-rank"]),
        "coverage-texts": lambda: text_part(found["coverage-texts"]),
        "coverage": lambda: {
            **truth_part(found["coverage"], found["coverage-french-bulldog"]),
            **table_2_part(found["coverage"]),
        },
        "league": lambda: league_part(found["league"]),
        "quadrature": lambda: photo_part(found["quadrature"]),
        "faithfulness": lambda: faithfulness_part(found["faithfulness"]),
        "agreement": lambda: agreement_part(found["agreement"]),
        "localisation": lambda: defect_part(found["localisation"]),
        "stability": lambda: stability_part(found["stability"]),
        "figures": lambda: figure_parts(found),
        "inspection": lambda: inspection_part(found),
        "signals": lambda: signal_part(found),
        "prompts-live": lambda: prompt_part(found["prompts-live"]),
        "speed": lambda: speed_part(found["speed"], found["half-precision"]),
    }
    parts = {f"versions-{name}": versions_of(run) for name, run in about.items()}
    missing = []
    for name, make in makers.items():
        try:
            parts |= make()
        except KeyError as error:
            missing.append(f"docs/results/{name}.csv has no {error}: run its study again.")
    return parts, missing


def checked_parts() -> tuple[Parts, list[str]]:
    """As `all_parts`, with the figures in a folder that is thrown away."""
    kept = style.IMAGES
    with tempfile.TemporaryDirectory() as folder:
        style.IMAGES = Path(folder)
        try:
            return all_parts()
        finally:
            style.IMAGES = kept


def filled(template: Path, parts: Parts) -> str:
    """The text of a page."""
    text = template.read_text(encoding="utf8")
    for name, part in parts.items():
        text = text.replace(f"@{name}@", part)
    return text


def with_rows(parts: Parts) -> str:
    """The README with the numbers of today."""
    text = README.read_text(encoding="utf8")
    for row in filled(PAGES / "readme.in", parts).splitlines():
        start = row.partition("](")[0]
        text, found = re.subn(rf"^{re.escape(start)}.*$", lambda _, row=row: row, text, flags=re.M)
        if found != 1:
            raise ValueError(f"{README.name} must have one row that begins {start!r}.")
    return text


def holes(text: str) -> list[str]:
    """The names of the parts that are not filled in."""
    return sorted(set(re.findall(r"@([a-z][\w+-]*)@", text)))


def differences(parts: Parts) -> list[str]:
    """One line per page that differs from what would be written; missing parts may be anything."""
    wrong = []
    if not holes(rows := with_rows(parts)) and rows != README.read_text(encoding="utf8"):
        wrong.append(f"{README.name} has other numbers than docs/measurements/readme.in.")
    for template in sorted(PAGES.glob("*.md.in")):
        made = re.split(r"@[a-z][\w+-]*@", filled(template, parts))
        page = template.with_suffix("").read_text(encoding="utf8")
        if re.fullmatch(".*?".join(map(re.escape, made)), page, re.S) is None:
            lines = set(page.splitlines())
            other = [line for piece in made for line in piece.splitlines()[1:-1]]
            first = next((line for line in other if line not in lines), "the order of its lines")
            wrong.append(f"{template.stem} is not what its files give: {first}")
    return wrong


def versions_of(run: Mapping[str, Any]) -> str:
    """The versions that a study was run with."""
    return ", ".join(f"{name} {number}" for name, number in run["versions"].items())
