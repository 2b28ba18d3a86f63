"""Options that the commands share, declared once."""

from __future__ import annotations

import re
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
    "OutputName",
    "Perturb",
    "Prob",
    "Representation",
    "Seed",
    "SegmentationName",
    "Size",
    "Target",
    "Targets",
    "Timeout",
    "TokensName",
    "Top",
    "Trust",
    "in_options",
    "parse_targets",
]

Model = Annotated[
    str, typer.Option("--model", "-m", help="An .onnx or .skops file, or module:name.")
]
Labels = Annotated[
    Path | None, typer.Option(help="Names of the outputs: one a line, or JSON.", exists=True)
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")]
Target = Annotated[
    str | None,
    typer.Option(help="Output to explain, by name, else by number from 0. Default: the highest."),
]
Targets = Annotated[
    int | None,
    typer.Option(help="Explain so many of the highest outputs, with files for each.", min=1),
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
OutputName = Annotated[
    str | None, typer.Option(help="Output of an ONNX graph that has several, by its name.")
]
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


_OPTIONS = {  # parameters of the library -> options
    "groups": "--group",
    "n_masks": "--masks",
    "output": "--output-name",
    **{
        name: f"--{name}"
        for name in (
            "activation",
            "background",
            "bins",
            "categorical",
            "design",
            "hide",
            "labels",
            "method",
            "model",
            "perturb",
            "prob",
            "representation",
            "segmentation",
            "target",
            "targets",
            "tokens",
        )
    },
}


def parse_targets(target: str | None, targets: int | None) -> int | list[int | str]:
    """What to explain: so many of the highest outputs, or one by its name or number."""
    if target is not None and targets is not None:
        raise ValueError("--target and --targets cannot be used together; give one of them.")
    return [target] if target is not None else targets or 1


def in_options(message: str) -> str:
    """A message of the library with the options of the command line in place of parameters."""
    return re.sub(r"`(\w+)`", lambda found: _OPTIONS.get(found[1], found[0]), message)
