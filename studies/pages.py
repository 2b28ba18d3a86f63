"""Draw the figures of the measurement pages, and write the pages, from docs/results.

A page `NAME.md` is made from `NAME.in.md`, in which `@part@` stands for a number or a table.

    make results
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from studies.charts.comparisons import agreement_part, faithfulness_part, league_part, photo_part
from studies.charts.coverage import rank_part, text_part, truth_part
from studies.charts.paper import defect_part, figure_parts, stability_part, table_2_part
from studies.charts.speed import speed_part
from studies.charts.style import DOCS, RESULTS

PAGES = DOCS / "measurements"


def run(options: argparse.Namespace) -> None:
    """Draw the figures and write the pages."""
    found = {path.stem: pd.read_csv(path) for path in RESULTS.glob("*.csv")}
    about = json.loads((RESULTS / "runs.json").read_text())
    parts = {
        **{f"versions-{name}": versions_of(run) for name, run in about.items()},
        **rank_part(found["coverage-by-rank"]),
        **text_part(found["coverage-texts"]),
        **truth_part(found["coverage"], found["coverage-french-bulldog"]),
        **league_part(found["league"]),
        **photo_part(found["quadrature"]),
        **faithfulness_part(found["faithfulness"]),
        **agreement_part(found["agreement"]),
        **table_2_part(found["coverage"]),
        **defect_part(found["localisation"]),
        **stability_part(found["stability"]),
        **figure_parts(found),
        **speed_part(found["speed"], found["half-precision"]),
    }
    for path in PAGES.glob("*.in.md"):
        text = path.read_text(encoding="utf8")
        for name, part in parts.items():
            text = text.replace(f"@{name}@", part)
        path.with_name(path.name.replace(".in", "")).write_text(text, encoding="utf8")


def versions_of(run: Mapping[str, Any]) -> str:
    """The versions that a study was run with."""
    return ", ".join(f"{name} {number}" for name, number in run["versions"].items())
