"""Options that the commands share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Design",
    "Json",
    "Labels",
    "Masks",
    "MethodName",
    "Model",
    "Open",
    "Out",
    "Prob",
    "Seed",
    "Target",
    "Top",
    "Trust",
    "parse_target",
]

Model = Annotated[
    str, typer.Option("--model", "-m", help="An .onnx or .skops file, or module:name.")
]
Labels = Annotated[
    Path | None, typer.Option(help="Names of the outputs: one a line, or JSON.", exists=True)
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")]
Target = Annotated[
    str | None, typer.Option(help="Output to explain, by number or name. Default: the highest.")
]
MethodName = Annotated[str, typer.Option(help="eblime, eblime-paper, bayeslime or lime.")]
Masks = Annotated[int, typer.Option(help="How many masks to ask about.", min=1)]
Design = Annotated[str, typer.Option(help="bernoulli, paired or exhaustive.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same answer.")]
Prob = Annotated[float, typer.Option(help="Level of the intervals.")]
Top = Annotated[int, typer.Option(help="Features to print and to mark.", min=1)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Open = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]
Trust = Annotated[
    bool,
    typer.Option(help="Read pickle and joblib models, which can run any code."),
]


def parse_target(target: str | None) -> int | str | None:
    """A column by its number, or a name."""
    return int(target) if target is not None and target.isascii() and target.isdigit() else target
