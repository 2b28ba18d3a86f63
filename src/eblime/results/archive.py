"""Zip archives of JSON and NumPy arrays from untrusted files, and values in that form.

Sizes are compared with a limit before anything is decompressed. JSON can only name methods that are
registered, and settings that are dataclasses of a method's module or kernels.
"""

from __future__ import annotations

import dataclasses
import io
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
    *("Arrays", "array_bytes", "check_members", "decode", "decode_method", "encode"),
    *("encode_fields", "encode_method", "parse_array", "read_member", "read_regular"),
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


def encode(value: Any, arrays: Arrays) -> Any:
    """A value as JSON; arrays are put into `arrays` and replaced by their name."""
    if isinstance(value, np.ndarray):
        name = f"array-{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, Mapping):
        return {"mapping": [[encode(k, arrays), encode(v, arrays)] for k, v in value.items()]}
    if isinstance(value, (list, tuple)):
        return [encode(entry, arrays) for entry in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"dataclass": type(value).__name__, "fields": encode_fields(value, arrays)}
    raise TypeError(f"A {type(value).__name__} cannot be saved.")


def encode_fields(value: Any, arrays: Arrays) -> dict[str, Any]:
    """The fields of a dataclass."""
    return {
        field.name: encode(getattr(value, field.name), arrays)
        for field in dataclasses.fields(value)
        if field.init
    }


def decode(value: Any, arrays: Arrays, home: str | None = None) -> Any:
    """The value of JSON; settings that are dataclasses are kernels or of the module `home`."""
    if isinstance(value, list):
        return [decode(entry, arrays, home) for entry in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "mapping" in value:
        return {decode(k, arrays, home): decode(v, arrays, home) for k, v in value["mapping"]}
    homes = (sys.modules[home], kernels) if home else ()
    kind = next((k for h in homes if (k := getattr(h, value["dataclass"], None))), None)
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        raise ValueError(f"`{value['dataclass']!s:.60}` is not a known class of settings.")
    return kind(**{name: decode(v, arrays, home) for name, v in value["fields"].items()})


def encode_method(method: Any, arrays: Arrays) -> dict[str, Any] | None:
    """A method by its class and settings; None if it cannot be rebuilt from them."""
    if not dataclasses.is_dataclass(method) or type(method) not in _known_methods().values():
        return None
    found = dict(arrays)
    try:
        settings = encode_fields(method, found)
    except TypeError:
        return None
    arrays.update(found)
    return {"class": type(method).__name__, "settings": settings}


def decode_method(stored: Any, arrays: Arrays) -> Any | None:
    """The method of a file, or None where this installation does not have it."""
    kind = None if stored is None else _known_methods().get(stored["class"])
    if kind is None:
        return None
    settings = stored["settings"].items()
    return kind(**{name: decode(v, arrays, kind.__module__) for name, v in settings})


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
