"""The commands of the built-in domains: how they read inputs, and their options."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from operator import not_
from pathlib import Path
from typing import Any

from eblime._text import one_of
from eblime.batch.inputs import Files, find_files, read_table
from eblime.batch.location import Location
from eblime.cli.assembly import NORMALISATIONS
from eblime.cli.options import Values, used_by
from eblime.cli.show import say, unique
from eblime.domains.image.photo import (
    PHOTO_ENDINGS,
    check_scaling,
    fit_words,
    photo_shape,
    read_photo,
)
from eblime.domains.prompt import SEGMENTATIONS
from eblime.domains.readers import VOLUME_ENDINGS
from eblime.domains.record import Command, Item, Option
from eblime.domains.signal.reading import SIGNAL_ENDINGS
from eblime.domains.text import read_text_file
from eblime.models.conversion import ACTIVATIONS
from eblime.models.likelihood import SCORES
from eblime.models.signal import LAYOUTS

LoadModel = Callable[[], Any]
Size = tuple[int, int, int]  # height, width, channels
_FITS = ("pad", "crop", "stretch")
_LOOKED_AT = 1000  # photos of a run whose shapes are read before it starts, at most


def file_items(
    path: Path, endings: Sequence[str], read: Callable[[Path], Any], kind: str = "text"
) -> list[Item]:
    """A file, or those of a folder with these endings, each read when its turn comes."""
    if not path.exists():
        raise FileNotFoundError(f"There is no {kind} or folder {str(path)!r}.")
    paths = [path]
    if path.is_dir():
        paths = sorted(e for e in path.iterdir() if e.name.lower().endswith(tuple(endings)))
        if not paths:
            raise FileNotFoundError(
                f"The folder {str(path)!r} has no file that ends in {one_of(endings)}."
            )
    names = unique([entry.stem for entry in paths])
    return [
        Item(entry.name, name, partial(read, entry), entry)
        for entry, name in zip(paths, names, strict=True)
    ]


def folder_files(argument: str, endings: tuple[str, ...], *, remote: bool = False) -> Files:
    """The files of a folder and its subfolders, for a run; `remote` allows a store."""
    folder = Location.of(argument)
    if folder.kind() == "nothing" or not (remote or folder.local_path):
        raise FileNotFoundError(f"There is no folder {argument!r}{'' if remote else ' here'}.")
    return find_files(folder, endings)


def _image_items(argument: str, model: LoadModel, options: Values) -> list[Item]:
    """A photo or the photos of a folder, each read when its turn comes."""
    read = _photo_reader(model, options) if Path(argument).exists() else read_photo
    found = file_items(Path(argument), PHOTO_ENDINGS, read, "photo")
    _report_fit((item.path for item in found), read)
    return found


def _image_inputs(argument: str, model: LoadModel, options: Values) -> Any:
    """The photos of a folder and its subfolders, in the size that the model takes."""
    files, read = folder_files(argument, PHOTO_ENDINGS, remote=True), _photo_reader(model, options)
    folder, shown = files.folder.local_path, tuple(read.keywords.values())
    if folder is not None:
        _report_fit((folder / files.name(k) for k in range(len(files))[:_LOOKED_AT]), read)
    return replace(files, fingerprint=f"{files.fingerprint}-{shown}", read=read)


def _photo_reader(model: LoadModel, options: Values) -> partial[Any]:
    """A function that reads photos as the model and the options want them."""
    bits, window = options["bits"], options["window"] and parse_numbers(options["window"])
    check_scaling(bits, window)
    found = model()
    size, floats = photo_size(found, options["size"]), getattr(found, "scales_uint8", False)
    given = {"size": size, "fit": options["fit"], "bits": bits, "window": window, "floats": floats}
    return partial(read_photo, **given)


def _report_fit(paths: Iterable[Any], read: Any) -> None:
    """Say once what happens to photos of another shape than the model takes."""
    size, fit = read.keywords["size"], read.keywords["fit"]
    for path in paths if size[0] else ():
        with suppress(Exception):  # an unreadable photo is reported when its turn comes
            if words := fit_words(photo_shape(path), size, fit):
                say(
                    "Photos of another shape are made to fit the model; see --fit crop, pad or "
                    f"stretch. {path.name}: {words}.",
                    error=True,
                )
                return


def photo_size(model: Any, size: int | None) -> Size:
    """The size that a model takes: `--size`, or that of an ONNX graph; 0 x 0 if neither says.

    Photos are grey if the graph or the first layer of a PyTorch network takes one channel.
    """
    session, network = getattr(model, "session", None), getattr(model, "module", model)
    layers = network.modules() if hasattr(network, "modules") else ()
    first = next((layer for layer in layers if hasattr(layer, "in_channels")), None)
    shape = session.get_inputs()[0].shape if session is not None else []
    if len(shape) != 4:
        shape = ["n", getattr(first, "in_channels", 3), "height", "width"]
    channels = shape[1] if shape[1] in (1, 3) else shape[3] if shape[3] in (1, 3) else 3
    height, width = shape[1:3] if shape[3] == channels and shape[1] != channels else shape[2:4]
    if size is not None or not (isinstance(height, int) and isinstance(width, int)):
        height = width = size or 0
    return height, width, channels


def parse_segmentation(text: str) -> Any:
    """`slic`, or with settings `slic:n_segments=100,compactness=20`."""
    name, _, rest = text.partition(":")
    try:
        call: Any = ast.parse(f"f({rest})", mode="eval").body
        settings = {
            entry.arg: getattr(entry.value, "id", None) or ast.literal_eval(entry.value)
            for entry in call.keywords
        }
        if call.args or bool(rest) != bool(settings):
            raise ValueError("They need names.")
    except (AttributeError, SyntaxError, ValueError) as error:
        raise ValueError(
            "--segmentation must be a name, or a name and settings such as "
            f"slic:n_segments=100,compactness=20; got {text!r}."
        ) from error
    return (name, settings) if settings else name


def parse_hide(text: str) -> Any:
    """`mean`, `blur`, a grey value, or a colour such as #808080."""
    if text.startswith("#"):
        if not re.fullmatch("#[0-9a-fA-F]{6}", text):
            raise ValueError(f"--hide must be a colour such as #808080; got {text!r}.")
        return tuple(int(text[i : i + 2], 16) for i in (1, 3, 5))
    try:
        return float(text)
    except ValueError:
        return text


def cut_options(cutting: str, hiding: str, segmentation: str = "slic", hide: str = "mean") -> Any:
    """The options --segmentation and --hide, with their help and defaults."""
    return (
        Option("segmentation", cutting, default=segmentation, parse=parse_segmentation),
        Option("hide", hiding, default=hide, parse=parse_hide),
    )


OF_GRAPHS = used_by(
    "model",
    Option("activation", "Of an ONNX graph's outputs.", default="auto", choices=ACTIVATIONS),
    Option("output_name", "Which output of an ONNX graph to use.", setting="output"),
)


def parse_numbers(text: str) -> tuple[float, ...]:
    """`0.5,1,1` as numbers."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise ValueError(f"{text!r} must be numbers such as 0.5,1,1.") from error


_SPACING = (
    Option("spacing", "Size of a pixel or voxel: 0.5,1,1.", parse=parse_numbers, commas=True),
    Option("unit", "Unit of the spacing.", default="mm"),
)
IMAGE = Command(
    help="Explain a photo, or every photo of a folder, by superpixels.",
    metavar="PHOTO",
    argument="A photo, or a folder of photos.",
    example="eblime explain image photos/ --model net.onnx --activation softmax",
    batch_argument="A folder, here or such as s3://bucket/photos.",
    items=_image_items,
    inputs=_image_inputs,
    defaults={"top": 5},
    options=[
        *cut_options(
            "slic, quickshift, felzenszwalb or grid; with parameters slic:n_segments=100.",
            "What a hidden superpixel shows: mean, blur, a grey value or a colour, #808080; auto:"
            " blur for grey photos, else mean.",
            hide="auto",
        ),
        *used_by(
            "inputs",
            Option("size", "Scale photos to this size.", type=int, minimum=1),
            Option(
                "fit",
                "How: with borders in the mean colour, or cropped.",
                default="pad",
                choices=_FITS,
            ),
            Option("bits", "How many bits pixels use, such as 12 of 16.", type=int),
            Option("window", "Pixels that become black and white: 200,3800.", commas=True),
        ),
        *_SPACING,
        Option(
            "normalise",
            "Pixels that an ONNX graph takes: 0 to 1, standardised, -1 to 1, or 0 to 255.",
            default="unit",
            choices=NORMALISATIONS,
            used_by="model",
        ),
        *OF_GRAPHS,
    ],
)


def _tabular_items(argument: str, model: LoadModel, options: Values) -> list[Item]:
    """Rows of a table."""
    path = Path(argument)
    background, table = read_table(_background(argument, options)), read_table(path)
    for name in _listed(options["drop"]):
        if name not in table.columns and name not in background.columns:
            raise ValueError(f"--drop must name columns of the table; there is no {name!r}.")
    return [
        Item(
            f"{path.name}, row {row}", f"{path.stem}-row{row}", partial(table.iloc.__getitem__, row)
        )
        for row in parse_rows(options["row"], len(table))
    ]


def _tabular_explainer(model: Any, settings: Values, options: Values, argument: str) -> Any:
    """A `TabularExplainer` with a background that has the model's columns, in its order."""
    from eblime.explainers.tabular import TabularExplainer

    table = read_table(_background(argument, options))
    table = table.drop(columns=_listed(options["drop"]), errors="ignore")
    for name in _listed(options["categorical"]):
        if name not in table.columns:
            raise ValueError(f"--categorical must name columns of the table; there is no {name!r}.")
        table[name] = table[name].astype("category")
    names = list(getattr(model, "feature_names_in_", table.columns))
    absent = [str(name) for name in names if name not in table.columns]
    if absent:
        raise ValueError(
            f"The table must have the columns that the model was trained on; missing: "
            f"{', '.join(map(repr, absent[:8]))}."
        )
    return TabularExplainer(model, table[names], **settings)


def parse_rows(text: str, count: int) -> list[int]:
    """Rows by number: `3`, `3,7` or `0:10`, all of them inside the table."""
    rows: list[int] = []
    try:
        for part in text.split(","):
            start, colon, end = part.partition(":")
            rows += range(int(start or 0), int(end or count)) if colon else [int(part)]
    except ValueError as error:
        raise ValueError(f"--row must be like 3, or 3,7, or 0:10; got {text!r}.") from error
    outside = [row for row in rows if not 0 <= row < count]
    if outside or not rows:
        got = f"got {outside[0]}" if outside else "got none"
        raise ValueError(f"--row must be from 0 to {count - 1}, the rows of the table; {got}.")
    return rows


def parse_groups(entries: list[str]) -> dict[str, list[str]] | None:
    """Groups of columns: `job=job_a,job_b`."""
    groups = {}
    for entry in entries:
        name, equals, columns = entry.partition("=")
        if not (name and equals and columns):
            raise ValueError(f"--group must be like job=job_a,job_b; got {entry!r}.")
        groups[name] = columns.split(",")
    return groups or None


def _listed(text: str) -> list[str]:
    """Names in `a,b`."""
    return [name for name in text.split(",") if name]


def _background(argument: str, options: Values) -> Path:
    """The table that shows which values are usual: --background, or the table itself."""
    path = Path(options["background"] or argument)
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no table {str(path)!r} here; --background names a table of usual values."
        )
    return path


TABULAR = Command(
    help="""Explain rows of a table by its columns.

    Columns that the model was trained on are found by their names; others are left out. Hidden
    columns take their values from rows of the background.
    """,
    metavar="DATA",
    argument="A .csv, .tsv or .parquet file.",
    example="eblime explain tabular data.csv --model m.skops --background train.csv",
    batch_argument="A table, .jsonl too, or a folder of .parquet files, here or such as s3://b/rows.",
    items=_tabular_items,
    inputs=lambda argument, model, options: argument,  # `explain_many` reads it
    explainer=_tabular_explainer,
    options=[
        *used_by(
            "inputs",
            Option("row", "Which rows, from 0: 3, or 3,7, or 0:10.", default="0", batch=False),
            Option("background", "Table of usual values. Default: the table.", type=Path),
            Option("drop", "Columns that the model does not take: a,b.", default=""),
            Option(
                "categorical",
                "Columns that the model takes as categories, which CSV files do not store: a,b.",
                default="",
            ),
        ),
        Option(
            "group",
            "Columns that change together as one feature: job=job_a,job_b. May be repeated.",
            many=True,
            setting="groups",
            parse=parse_groups,
        ),
        Option(
            "rows_per_mask",
            "The most rows of the background that are kept; a score is their mean.",
            type=int,
            default=100,
            minimum=1,
        ),
        Option(
            "link",
            "Explain the log-odds of probabilities.",
            default="identity",
            choices=("identity", "logit"),
        ),
    ],
)


_TABLES = (".csv", ".tsv", ".jsonl", ".parquet")


def _text_items(argument: str, model: LoadModel, options: Values) -> list[Item]:
    """The text itself, a file, the .txt files of a folder, or standard input for `-`."""
    if argument == "-":
        return [Item("standard input", "text", sys.stdin.read())]
    if not argument.strip():  # an empty path would be the current folder
        raise ValueError("The text must not be empty.")
    path = Path(argument)
    try:
        exists = path.exists()
    except OSError:  # too long for a path: it is the text
        exists = False
    if exists and path.suffix.lower() in _TABLES:
        raise ValueError(
            f"{argument!r} is a table; `eblime batch text` explains each of its texts."
        )
    if exists:
        return file_items(path, (".txt",), read_text_file)
    if path.suffix.lower() == ".txt" and " " not in argument:
        raise FileNotFoundError(f"There is no text file {argument!r}.")
    return [Item("text", "text", argument)]


TEXT = Command(
    help="Explain a text by its words, sentences or characters.",
    metavar="TEXT",
    argument="The text itself, a .txt file, a folder of them, or - for standard input.",
    example="eblime explain text reviews/ --model sentiment.skops",
    batch_argument='A folder, a .jsonl file, or a table with the column "text".',
    items=_text_items,
    inputs=lambda argument, model, options: argument,  # `explain_many` reads it
    options=[
        Option("tokens", "word, sentence, char or a pattern.", default="word", commas=True),
        Option("positions", "Each occurrence counts.", type=bool, setting="bag", parse=not_),
        Option("hide", "Replacement of a hidden word, such as [MASK]. Default: none.", default=""),
    ],
)


def _prompt_items(argument: str, model: LoadModel, options: Values) -> list[Item]:
    """The question itself, a file, the .txt files of a folder, or standard input for `-`."""
    found, answer = _text_items(argument, model, options), options["answer"]
    if answer is None:
        return found
    if len(found) > 1:
        raise ValueError("--answer is for one question; there are several.")
    (item,) = found
    return [item._replace(input=lambda: {"question": item.read(), "answer": answer})]


PROMPT = Command(
    help="""Explain a language model's answer by its sources.

    The answer is that of the model, unless --answer gives another one. --targets explains as many
    of its sentences too, and --target one of them, by its number or its text.
    """,
    metavar="QUESTION",
    argument="The question itself, a .txt file, a folder of them, or - for standard input.",
    example="eblime explain prompt questions/ --sources notes/ --model http://localhost:8000/v1",
    batch_argument='A folder, a .jsonl file, or a table with the column "question".',
    items=_prompt_items,
    inputs=lambda argument, model, options: argument,  # `explain_many` reads it
    defaults={"masks": 64},
    options=[
        Option("sources", "Folder or file with the sources.", type=Path, required=True, parse=Path),
        Option(
            "prompt",
            "File with {sources} and {question}.",
            type=Path,
            parse=lambda path: read_text_file(Path(path)),
        ),
        Option(
            "answer", "The answer to explain. Default: the model's.", used_by="inputs", batch=False
        ),
        Option(
            "segmentation", f"Parts of a text: {', '.join(SEGMENTATIONS)}.", default="paragraph"
        ),
        Option("score", f"Score of an answer: {', '.join(SCORES)}.", default="mean"),
        Option("levels", "2 finds documents, then their chunks.", type=int, default=1, batch=False),
    ],
)


SIGNAL = Command(
    help="Explain a signal or a folder, by windows, channels or bands.",
    metavar="SIGNAL",
    argument="A .wav, .csv, .npy or .mat file, or a folder of them.",
    example="eblime explain signal recordings/ --model net.onnx --activation softmax",
    items=lambda argument, model, options: file_items(
        Path(argument), SIGNAL_ENDINGS, Path, "signal"
    ),
    inputs=lambda argument, model, options: folder_files(argument, SIGNAL_ENDINGS),
    defaults={"top": 5},
    options=[
        *cut_options(
            "windows, changes, channels, cells, bands or tiles; with parameters windows:n=40.",
            "What a hidden part shows: bridge, mean, zero, noise, or a number.",
            segmentation="windows",
            hide="bridge",
        ),
        Option("rate", "Samples per second, if the file does not say.", type=float),
        Option("key", "Name of the array in a .mat file that has several."),
        Option(
            "layout",
            "What the model gets: flat, first (channels, samples), last, or auto.",
            default="auto",
            choices=("auto", *LAYOUTS),
        ),
        *OF_GRAPHS,
    ],
)


VOLUME = Command(
    help="Explain a volume or a folder of volumes, by blocks or regions.",
    metavar="VOLUME",
    argument="A .npy, .npz, .tif, .mat, .h5, .nii or .dcm file, or a folder of them.",
    example="eblime explain volume scans/ --model flaws:score --segmentation blocks:n=4",
    batch_argument="A folder on this machine.",
    items=lambda argument, model, options: file_items(
        Path(argument), VOLUME_ENDINGS, Path, "volume"
    ),
    inputs=lambda argument, model, options: folder_files(argument, VOLUME_ENDINGS),
    defaults={"top": 5},
    options=[
        *cut_options(
            "slic or blocks; with parameters blocks:n=4, blocks:n=(2,8,8) or slic:n_segments=100.",
            "What a hidden region shows: mean (of its voxels), blur, or a number such as 0.",
        ),
        *_SPACING,
        Option("origin", "Position of the first voxel.", parse=parse_numbers, commas=True),
        Option("axes", "Names of the axes: time,x,y.", parse=lambda t: t.split(","), commas=True),
        Option("channels", "The channel axis.", default="auto", choices=("auto", "first", "last")),
        Option("key", "Name of the array in a .npz, .mat or HDF5 file that has several."),
        *OF_GRAPHS,
    ],
)
