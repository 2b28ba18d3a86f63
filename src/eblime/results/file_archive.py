"""Reading zip archives and NumPy arrays from untrusted files.

Sizes are compared with the limit before anything is decompressed or allocated.
"""

from __future__ import annotations

import io
import math
import os
import stat
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["check_members", "parse_array", "read_member", "read_regular"]

_MOST_MEMBERS = 1000
_MOST_AXES = 4
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_regular(path: str | os.PathLike[str], limit: int) -> bytes:
    """Read a file of at most `limit` bytes; pipes, devices and folders are refused unread."""
    options = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(path, os.O_RDONLY | options)  # non-blocking: a pipe must not hang
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError(f"{os.fspath(path)} must be a regular file; it is not.")
        if found.st_size > limit:
            raise ValueError(
                f"{os.fspath(path)} must have at most {limit} bytes; it has {found.st_size}."
            )
        with open(handle, "rb", closefd=False) as file:
            return file.read(limit)
    finally:
        os.close(handle)


def check_members(archive: zipfile.ZipFile, size: int, limit: int) -> None:
    """Refuse an archive that would need more than `limit` bytes, before it is decompressed.

    Parameters
    ----------
    archive
        The archive.
    size
        Bytes of the archive itself: members that share their bytes add up to more.
    limit
        Bytes that all members together may have.
    """
    members = archive.infolist()
    if len(members) > _MOST_MEMBERS:
        raise ValueError(f"it must have at most {_MOST_MEMBERS} parts; it has {len(members)}")
    if len({member.filename for member in members}) < len(members):
        raise ValueError("its parts must have different names")
    if any(member.compress_type not in _METHODS for member in members):
        raise ValueError("its parts must be stored or deflated")
    if sum(member.compress_size for member in members) > size:
        raise ValueError("its parts must not overlap")
    total = sum(member.file_size for member in members)
    if total > limit:
        raise ValueError(
            f"it must unpack to at most {limit} bytes, but needs {total}; "
            f"if you trust the file, pass max_bytes={total}"
        )


def read_member(archive: zipfile.ZipFile, name: str, limit: int | None = None) -> bytes:
    """Decompress one member, which `check_members` has passed."""
    member = archive.getinfo(name)
    if limit is not None and member.file_size > limit:
        raise ValueError(f"{name} must have at most {limit} bytes; it has {member.file_size}")
    return archive.read(member)  # reads no more than the size that the archive states


def parse_array(data: bytes) -> NDArray[Any]:
    """An array in NumPy's own format, in native byte order; only plain numbers are accepted."""
    file = io.BytesIO(data)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, _, dtype = readers[np.lib.format.read_magic(file)](file)
    if dtype.kind not in "biuf" or dtype.itemsize > 8 or len(shape) > _MOST_AXES:
        raise ValueError(f"arrays must hold plain numbers; got dtype {dtype} and shape {shape}")
    if math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ValueError(f"an array of shape {shape} and dtype {dtype} has another size")
    array = np.load(io.BytesIO(data), allow_pickle=False)
    return np.ascontiguousarray(array, dtype=dtype.newbyteorder("="))
