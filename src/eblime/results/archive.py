"""Zip archives of JSON and NumPy arrays from untrusted files, and values in that form.

Sizes are compared with a limit before anything is decompressed. JSON can only name methods that are
registered, and settings that are dataclasses of a method's module or kernels.
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import os
import stat
import sys
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime import kernels, registry

__all__ = [
    *("Arrays", "array_bytes", "build_method", "check_members", "describe_method", "dump"),
    *("fields_of", "parse", "parse_array", "read_member", "read_regular"),
]

Arrays = dict[str, NDArray[Any]]
_MOST_MEMBERS = 1000
_MOST_AXES = 4
_COMPRESSION = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


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


def check_members(archive: zipfile.ZipFile, size: int) -> int:
    """The bytes that all members unpack to, as the archive states; strange archives are refused.

    `size` is that of the archive itself: members that share their bytes add up to more.
    """
    members = archive.infolist()
    if len(members) > _MOST_MEMBERS:
        raise ValueError(f"it must have at most {_MOST_MEMBERS} parts; it has {len(members)}")
    if len({member.filename for member in members}) < len(members):
        raise ValueError("its parts must have different names")
    if any(member.compress_type not in _COMPRESSION for member in members):
        raise ValueError("its parts must be stored or deflated")
    if sum(member.compress_size for member in members) > size:
        raise ValueError("its parts must not overlap")
    return sum(member.file_size for member in members)


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
    shape, fortran, dtype = readers[np.lib.format.read_magic(file)](file)
    if dtype.kind not in "biuf" or dtype.itemsize > 8 or len(shape) > _MOST_AXES:
        raise ValueError(f"arrays must hold plain numbers; got dtype {dtype} and shape {shape}")
    if math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ValueError(f"an array of shape {shape} and dtype {dtype} has another size")
    found = np.frombuffer(data, dtype, offset=file.tell())  # not a copy
    found = found.reshape(shape, order="F" if fortran else "C")
    return np.ascontiguousarray(found, dtype=dtype.newbyteorder("=")).reshape(shape)


def array_bytes(array: NDArray[Any]) -> bytes:
    """An array in NumPy's own format."""
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


def dump(tree: Any, arrays: Arrays) -> str:
    """A tree of plain values as JSON; arrays are put into `arrays` and replaced by their name."""

    def encode(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            name = f"array-{len(arrays)}"
            arrays[name] = value
            return {"array": name}
        if isinstance(value, (np.generic, Mapping)):
            return value.item() if isinstance(value, np.generic) else dict(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {"dataclass": type(value).__name__, "fields": fields_of(value)}
        raise TypeError(f"A {type(value).__name__} cannot be saved.")

    return json.dumps(tree, default=encode)


def parse(text: bytes, arrays: Mapping[str, NDArray[Any]] | None = None) -> Any:
    """The tree of JSON, with its arrays in place of their names; names stay without `arrays`."""

    def decode(value: dict[str, Any]) -> Any:
        return value if arrays is None or list(value) != ["array"] else arrays[value["array"]]

    return json.loads(text, object_hook=decode)


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass, from which it can be built again."""
    fields = dataclasses.fields(value)
    return {field.name: getattr(value, field.name) for field in fields if field.init}


def describe_method(method: Any) -> dict[str, Any] | None:
    """A method by its class and settings; None if it cannot be built again from them."""
    if not dataclasses.is_dataclass(method) or type(method) not in _known_methods().values():
        return None
    settings = fields_of(method)
    try:
        dump(settings, {})
    except TypeError:
        return None
    return {"class": type(method).__name__, "settings": settings}


def build_method(stored: Any) -> Any | None:
    """The method of a file, or None where this installation does not have it."""
    kind = None if stored is None else _known_methods().get(stored["class"])
    if kind is None:
        return None
    home = sys.modules[kind.__module__]
    return kind(**{name: _build(value, home) for name, value in stored["settings"].items()})


def _build(value: Any, home: Any) -> Any:
    """A setting; one that is a dataclass is a kernel or belongs to the module of the method."""
    if not (isinstance(value, dict) and "dataclass" in value):
        return value
    name = value["dataclass"]
    kind = getattr(home, name, None) or getattr(kernels, name, None)
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        raise ValueError(f"`{name!s:.60}` is not a known class of settings.")
    return kind(**{key: _build(entry, home) for key, entry in value["fields"].items()})


def _known_methods() -> dict[str, type]:
    """Classes of all methods that the registry can import, by name."""
    found: dict[str, type] = {}
    for name in registry.names("methods"):
        try:
            kind = type(registry.find("methods", name)())
        except Exception:  # a package whose entry point is broken must not break files
            continue
        found.setdefault(kind.__name__, kind)
    return found
