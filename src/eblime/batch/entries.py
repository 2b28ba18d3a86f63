"""Single inputs as they come to a run: frames, rows, arrays, pictures, paths and texts.

pandas, SciPy and Pillow objects are distinguished by their attributes, so that no optional package
is imported only to look at an input.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "bytes_held",
    "content",
    "has_rows",
    "is_frame",
    "is_large",
    "is_picture",
    "is_row",
    "is_sparse",
]


def has_rows(value: Any) -> bool:
    """Whether a value is a pandas frame or series, whose entries have a position."""
    return hasattr(value, "iloc")


def is_frame(value: Any) -> bool:
    """Whether a value is a pandas frame."""
    return has_rows(value) and hasattr(value, "columns")


def is_row(value: Any) -> bool:
    """Whether a value is a pandas series, such as one row of a frame."""
    return hasattr(value, "to_dict") and not is_frame(value)


def is_sparse(value: Any) -> bool:
    """Whether a value is a sparse matrix or array of SciPy."""
    return hasattr(value, "tocsr")


def is_picture(value: Any) -> bool:
    """Whether a value is a Pillow image."""
    return hasattr(value, "mode") and hasattr(value, "tobytes")


def is_large(value: Any) -> bool:
    """Whether a value is a file, a picture or an array of two or more axes, rather than a row."""
    array = getattr(value, "ndim", 0) >= 2 and not is_sparse(value)
    return array or isinstance(value, os.PathLike) or is_picture(value)


def bytes_held(value: Any) -> int:
    """About how many bytes a value takes in memory."""
    if is_picture(value):
        return int(np.prod(value.size)) * 4
    return int(getattr(value, "nbytes", 0)) or (len(value) if isinstance(value, str) else 200)


def content(value: Any) -> bytes:
    """The content of a value as bytes, which are the same in every process."""
    if is_frame(value):
        from pandas.util import hash_pandas_object

        names = ",".join(map(str, value.columns)).encode()
        return names + bytes(hash_pandas_object(value.astype(str)).to_numpy().tobytes())
    if is_sparse(value):
        value = value.toarray()
    if isinstance(value, np.ndarray) and value.dtype.kind == "O":  # its bytes are addresses
        return str(value.shape).encode() + json.dumps(value.tolist(), default=str).encode()
    if hasattr(value, "tobytes"):  # arrays and pictures
        return str(getattr(value, "shape", "")).encode() + bytes(value.tobytes())
    if isinstance(value, os.PathLike):
        path = Path(value)
        return path.read_bytes() if path.is_file() else os.fsencode(path)
    if is_row(value):
        value = value.to_dict()
    if hasattr(value, "to_pylist"):  # an Arrow table, whose printed form is shortened
        value = value.to_pylist()
    return json.dumps(value, default=str, sort_keys=True).encode()
