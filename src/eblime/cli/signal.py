"""`eblime explain signal` and `eblime batch signal`: files of signals and the signal options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from eblime.cli.image import parse_hide, parse_segmentation
from eblime.cli.output import file_items
from eblime.domains.record import Command, Item, Option
from eblime.domains.signal.reading import SIGNAL_ENDINGS
from eblime.models.signal import LAYOUTS

__all__ = ["COMMAND"]


def items(argument: str, model: Callable[[], Any], options: Mapping[str, Any]) -> list[Item]:
    """A file or the files of a folder, each read when its turn comes."""
    path = Path(argument)
    if not path.exists():
        raise FileNotFoundError(f"There is no signal or folder {argument!r}.")
    return file_items(path, SIGNAL_ENDINGS, Path)


COMMAND = Command(
    help="Explain a signal, or every signal of a folder, by windows, channels or bands.",
    metavar="SIGNAL",
    argument="A .wav, .csv, .npy or .mat file, or a folder of them.",
    example="eblime explain signal pump.wav --model net.onnx --activation softmax",
    batch_help="Explain all signals of a folder.",
    batch_argument="A folder of .wav, .csv, .npy or .mat files.",
    batch_example="eblime batch signal recordings/ --model net.onnx --out run/",
    items=items,
    defaults={"design": "paired", "top": 5},
    options=[
        Option(
            "segmentation",
            "How to cut the signal: windows, changes, channels, cells or bands; with parameters "
            "windows:n=40.",
            default="windows",
            parse=parse_segmentation,
        ),
        Option(
            "hide",
            "What a hidden part shows: bridge, mean, zero, noise, or a number.",
            default="bridge",
            parse=parse_hide,
        ),
        Option("rate", "Samples per second, if the file does not say.", type=float, minimum=0),
        Option(
            "layout",
            "What the model gets: flat, first (channels, samples), last, or auto.",
            default="auto",
            choices=("auto", *LAYOUTS),
        ),
        Option(
            "activation",
            "What turns the outputs of an ONNX graph into scores: none, softmax or sigmoid.",
            default="none",
            used_by="model",
        ),
        Option(
            "output_name",
            "Name of the output to use, if an ONNX graph has several.",
            setting="output",
            used_by="model",
        ),
    ],
)
