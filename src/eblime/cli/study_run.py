"""Run a study of `eblime bench`: its options, its folder and the file of its rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eblime._files import write_whole
from eblime._text import csv_text
from eblime.cli.terminal import progress_bar, say

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["AllItems", "Items", "Jobs", "Out", "Seed", "run_study", "write_rows"]

Items = Annotated[
    int | None, typer.Option(help="Number of inputs. Default: all, at most 40.", min=1)
]
AllItems = Annotated[int | None, typer.Option(help="Number of inputs. Default: all.", min=1)]
Jobs = Annotated[int, typer.Option(help="Number of processes.", min=1)]
Out = Annotated[
    Path | None,
    typer.Option(help="Folder of the results; a study resumes there. Default: in eblime-bench."),
]
Seed = Annotated[int, typer.Option(help="Seed of the whole study.", min=0)]


def run_study(
    study: Callable[..., pd.DataFrame],
    dataset: str,
    settings: dict[str, Any],
    *,
    name: str | None = None,
    jobs: int,
    out: Path | None,
    quiet: bool,
) -> tuple[pd.DataFrame, Path]:
    """The rows of a study, and the folder of its results; its name is that of the function."""
    title = name or study.__name__
    folder = out or _study_folder(title, {"dataset": dataset, **settings})
    with progress_bar(f"{title}, {dataset}", quiet=quiet) as progress:
        table = study(dataset, jobs=jobs, out=folder, progress=progress, **settings)
    return table, folder


def _study_folder(study: str, settings: dict[str, Any]) -> Path:
    """A folder for these settings alone, so that a study resumes only its own results."""
    content = json.dumps({**settings, "items": None}, sort_keys=True).encode()
    name = f"{study}-{settings['dataset']}-{hashlib.sha256(content).hexdigest()[:8]}"
    return Path("eblime-bench") / name


def write_rows(table: pd.DataFrame, folder: Path) -> None:
    """Write all rows of a study next to its results, and say where."""
    file = folder / "rows.csv"
    write_whole(file.resolve(), csv_text(table).encode())
    say(f"Every row is in {file}.")
