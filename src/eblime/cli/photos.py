"""Photos on the command line: which files, what size a model takes, and the image options."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from eblime.domains.image.photo import PHOTO_ENDINGS

__all__ = ["find_photos", "parse_hide", "parse_segmentation", "photo_size"]


def find_photos(path: Path) -> list[Path]:
    """The file itself, or the photos of a folder in the order of their names."""
    if path.is_dir():
        found = sorted(entry for entry in path.iterdir() if entry.suffix.lower() in PHOTO_ENDINGS)
        if not found:
            raise FileNotFoundError(
                f"The folder {str(path)!r} has no photo ({', '.join(PHOTO_ENDINGS)})."
            )
        return found
    if not path.is_file():
        raise FileNotFoundError(f"There is no photo or folder {str(path)!r}.")
    return [path]


def photo_size(model: Any, size: int | None) -> tuple[int, int, int] | None:
    """(height, width, channels) that a model takes: asked for, or read from an ONNX graph."""
    session = getattr(model, "session", None)
    shape = session.get_inputs()[0].shape if session is not None else []
    if len(shape) != 4:
        flat = _flat_size(shape)
        return flat if size is None or flat is not None else (size, size, 3)
    channels = shape[1] if shape[1] in (1, 3) else shape[3] if shape[3] in (1, 3) else 3
    height, width = shape[1:3] if shape[3] == channels and shape[1] != channels else shape[2:4]
    if size is not None:
        return size, size, channels
    if isinstance(height, int) and isinstance(width, int):
        return height, width, channels
    return None


def _flat_size(shape: list[Any]) -> tuple[int, int, int] | None:
    """What a graph of grey pictures, (n, H, W), or of rows of pixels, (n, H x W), takes."""
    if len(shape) == 3 and all(isinstance(length, int) for length in shape[1:]):
        return shape[1], shape[2], 1
    if len(shape) == 2 and isinstance(shape[1], int):
        for channels in (1, 3):
            side = round((shape[1] / channels) ** 0.5)
            if channels * side * side == shape[1]:
                return side, side, channels
    return None


def parse_segmentation(words: str) -> Any:
    """`slic`, or with settings `slic:n_segments=100,compactness=20`."""
    name, _, rest = words.partition(":")
    if not rest:
        return name
    pairs = [part.partition("=") for part in rest.split(",")]
    if not all(equals and key.strip() for key, equals, _ in pairs):
        raise ValueError(
            "--segmentation must be a name, or a name and settings such as "
            f"slic:n_segments=100,compactness=20; got {words!r}."
        )
    return name, {key.strip(): _literal(value) for key, _, value in pairs}


def parse_hide(words: str) -> Any:
    """`mean`, `blur`, a grey value, or a colour such as #808080."""
    if words.startswith("#") and len(words) == 7:
        try:
            return tuple(int(words[i : i + 2], 16) for i in (1, 3, 5))
        except ValueError as error:
            raise ValueError(f"--hide must be a colour such as #808080; got {words!r}.") from error
    try:
        return float(words)
    except ValueError:
        return words


def _literal(value: str) -> Any:
    """A number, True, False, or a word."""
    try:
        return ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        return value.strip()
