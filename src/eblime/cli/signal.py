"""`eblime explain signal` and `eblime batch signal`: files of signals and the signal options."""

from __future__ import annotations

from pathlib import Path

from eblime.cli.image import OF_GRAPHS, cut_options
from eblime.cli.output import file_items, folder_files
from eblime.domains.record import Command, Option
from eblime.domains.signal.reading import SIGNAL_ENDINGS
from eblime.models.signal import LAYOUTS

COMMAND = Command(
    help="Explain a signal or a folder, by windows, channels or bands.",
    metavar="SIGNAL",
    argument="A .wav, .csv, .npy or .mat file, or a folder of them.",
    example="eblime explain signal recordings/ --model net.onnx --activation softmax",
    items=lambda argument, model, options: file_items(
        Path(argument), SIGNAL_ENDINGS, Path, "signal"
    ),
    inputs=lambda argument, model, options: folder_files(argument, SIGNAL_ENDINGS),
    defaults={"design": "paired", "top": 5},
    options=[
        *cut_options(
            "windows, changes, channels, cells or bands; with parameters windows:n=40.",
            "What a hidden part shows: bridge, mean, zero, noise, or a number.",
            segmentation="windows",
            hide="bridge",
        ),
        Option("rate", "Samples per second, if the file does not say.", type=float),
        Option(
            "layout",
            "What the model gets: flat, first (channels, samples), last, or auto.",
            default="auto",
            choices=("auto", *LAYOUTS),
        ),
        *OF_GRAPHS,
    ],
)
