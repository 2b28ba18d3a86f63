"""Options that the commands share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Activation",
    "Bins",
    "Categorical",
    "Design",
    "Drop",
    "Group",
    "HideImage",
    "Json",
    "Labels",
    "Masks",
    "MethodName",
    "Model",
    "Normalise",
    "Open",
    "Out",
    "Perturb",
    "Prob",
    "Representation",
    "Seed",
    "SegmentationName",
    "Size",
    "Target",
    "Timeout",
    "TokensName",
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
SegmentationName = Annotated[
    str, typer.Option(help="slic, quickshift, felzenszwalb, grid; or slic:n_segments=100.")
]
HideImage = Annotated[str, typer.Option(help="mean, blur, a grey value, or #808080.")]
Size = Annotated[
    int | None,
    typer.Option(min=1, max=8192, help="Scale photos to this size. Default: what the graph takes."),
]
Normalise = Annotated[
    str, typer.Option(help="Pixels for ONNX: unit (0..1), imagenet, symmetric, bytes.")
]
Activation = Annotated[str, typer.Option(help="On ONNX outputs: none, softmax or sigmoid.")]
Drop = Annotated[
    str, typer.Option(help="Columns that the model does not take, such as the label: a,b.")
]
Categorical = Annotated[str, typer.Option(help="Columns of numbers that are categories: a,b.")]
Group = Annotated[
    list[str] | None, typer.Option(help="Columns that move together: job=job_a,job_b.")
]
Representation = Annotated[str, typer.Option(help="binary or continuous.")]
Bins = Annotated[str, typer.Option(help="quartile or decile.")]
Perturb = Annotated[str, typer.Option(help="bins, normal or rows.")]
TokensName = Annotated[str, typer.Option(help="word, sentence, char, or a regular expression.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same answer.")]
Prob = Annotated[float, typer.Option(help="Level of the intervals.")]
Top = Annotated[int, typer.Option(help="Features to print and to mark.", min=1)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Open = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]


def _seconds(value: float | None) -> float | None:
    """A time limit, checked."""
    if value is not None and not 0 < value < float("inf"):
        raise ValueError(f"--timeout must be a number of seconds > 0; got {value:g}.")
    return value


Timeout = Annotated[
    float | None,
    typer.Option(
        callback=_seconds, help="Seconds for one input; one that takes longer is a failure."
    ),
]
Trust = Annotated[
    bool,
    typer.Option(help="Read pickle and joblib models, which can run any code."),
]


def parse_target(target: str | None) -> int | str | None:
    """A column by its number, or a name."""
    return int(target) if target is not None and target.isascii() and target.isdigit() else target
