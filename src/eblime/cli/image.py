"""`eblime explain image` and `eblime batch image`: photos, their size and the image options."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from eblime.cli.assembly import NORMALISATIONS
from eblime.cli.options import used_by
from eblime.cli.output import file_items, folder_files, say
from eblime.domains.image.photo import PHOTO_ENDINGS, photo_shape, read_photo
from eblime.domains.record import Command, Item, Option

Size = tuple[int, int, int]  # height, width, channels
_WHOLE = 0.9  # of a photo's pixels; cropping less away is not worth a message
_LOOKED_AT = 1000  # photos of a run whose shapes are read before it starts, at most


def items(argument: str, model: Callable[[], Any], options: Mapping[str, Any]) -> list[Item]:
    """A photo or the photos of a folder, each read when its turn comes."""
    size = photo_size(model(), options["size"]) if Path(argument).exists() else None
    read = partial(read_photo, size=size, fit=options["fit"])
    found = file_items(Path(argument), PHOTO_ENDINGS, read, "photo")
    _report_crop((item.path for item in found), size, options["fit"])
    return found


def inputs(argument: str, model: Callable[[], Any], options: Mapping[str, Any]) -> Any:
    """The photos of a folder and its subfolders, in the size that the model takes."""
    files = folder_files(argument, PHOTO_ENDINGS, remote=True)
    size, folder = photo_size(model(), options["size"]), files.folder.local_path
    read = partial(read_photo, size=size, fit=options["fit"])
    if folder is not None:
        some = (folder / files.name(k) for k in range(min(len(files), _LOOKED_AT)))
        _report_crop(some, size, options["fit"])
    return replace(files, fingerprint=f"{files.fingerprint}-{size}-{options['fit']}", read=read)


def _report_crop(paths: Iterable[Any], size: Size | None, fit: str) -> None:
    """Say once that the model does not see all of some photos."""
    if size is None or fit != "crop":
        return
    for path in paths:
        with suppress(Exception):  # an unreadable photo is reported when its turn comes
            height, width = photo_shape(path)
            scale = min(height / size[0], width / size[1])
            seen = round(scale * size[0]), round(scale * size[1])
            if seen[0] * seen[1] < _WHOLE * height * width:
                say(
                    f"Photos are cropped to the shape that the model takes: of {path.name}, it "
                    f"sees the middle {seen[1]} x {seen[0]} of {width} x {height} pixels. With "
                    "--fit pad or --fit stretch, it sees whole photos.",
                    error=True,
                )
                return


def photo_size(model: Any, size: int | None) -> Size | None:
    """The size that a model takes: `--size`, or that of an ONNX graph; None if neither says."""
    session = getattr(model, "session", None)
    shape = session.get_inputs()[0].shape if session is not None else []
    if len(shape) != 4:
        return None if size is None else (size, size, 3)
    channels = shape[1] if shape[1] in (1, 3) else shape[3] if shape[3] in (1, 3) else 3
    height, width = shape[1:3] if shape[3] == channels and shape[1] != channels else shape[2:4]
    if size is not None:
        return size, size, channels
    if isinstance(height, int) and isinstance(width, int):
        return height, width, channels
    return None


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
    Option("activation", "Of an ONNX graph: none, softmax or sigmoid.", default="none"),
    Option("output_name", "Which output of an ONNX graph to use.", setting="output"),
)
COMMAND = Command(
    help="Explain a photo, or every photo of a folder, by superpixels.",
    metavar="PHOTO",
    argument="A photo, or a folder of photos.",
    example="eblime explain image photos/ --model net.onnx --activation softmax",
    batch_argument="A folder, here or such as s3://bucket/photos.",
    items=items,
    inputs=inputs,
    defaults={"design": "paired", "top": 5},
    options=[
        *cut_options(
            "slic, quickshift, felzenszwalb or grid; with parameters slic:n_segments=100.",
            "What a hidden superpixel shows: mean, blur, a grey value or a colour, #808080.",
        ),
        Option("size", "Scale photos to this size.", type=int, minimum=1, used_by="inputs"),
        Option(
            "fit",
            "How to scale: crop (to the middle), pad (with black borders) or stretch.",
            default="crop",
            choices=("crop", "pad", "stretch"),
            used_by="inputs",
        ),
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
