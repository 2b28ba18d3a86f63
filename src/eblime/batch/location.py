"""Locations of files: a folder of this machine, or an object store of pyarrow or fsspec.

A location is sent to other processes as its address. What pyarrow's file systems lack is here: a
local file is never visible half written, as objects of a store are not, names may be any bytes, and
a lock keeps a second process away.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from eblime._files import write_whole
from eblime._lazy import import_extra

_KINDS = {"File": "file", "Directory": "folder"}


@dataclass(frozen=True, slots=True)
class Location:
    """A folder or a file, by its path or by an address such as `s3://bucket/folder?region=eu`."""

    path: str  # on this machine, or in a store
    store: str = ""  # address of the store, with its query; empty for this machine

    @classmethod
    def of(cls, path: str | os.PathLike[str] | Location) -> Location:
        """The location of a path or an address."""
        if isinstance(path, Location):
            return path
        address = os.fspath(path).removeprefix("file://")
        if "://" not in address:
            return cls(str(Path(address).expanduser().absolute()))
        head, mark, query = address.partition("?")
        scheme, _, rest = head.rstrip("/").partition("://")
        first, slash, inside = rest.partition("/")
        return cls(slash + inside, f"{scheme}://{first}{mark}{query}")

    def __str__(self) -> str:
        head, mark, query = self.store.partition("?")
        return f"{head}{self.path}{mark}{query}"

    def __truediv__(self, name: str) -> Location:
        return Location(f"{self.path.rstrip('/')}/{name}", self.store)

    @property
    def local_path(self) -> Path | None:
        """The path on this machine; None for a store."""
        return None if self.store else Path(self.path)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return Path(self.path).name

    @property
    def parent(self) -> Location:
        """The folder that contains it."""
        return Location(os.path.dirname(self.path), self.store)  # noqa: PTH120, as in a store

    @property
    def suffix(self) -> str:
        """The file name extension, in lower case."""
        return Path(self.path).suffix.lower()

    def open(self) -> tuple[Any, str]:
        """The pyarrow file system, and the path in it."""
        system, root = _file_system(self.store or "file:///")
        return system, f"{root.rstrip('/')}{self.path}" if self.store else self.path

    def kind(self) -> str:
        """What exists there: a "file", a "folder" or "nothing"."""
        system, path = self.open()
        return _KINDS.get(system.get_file_info(path).type.name, "nothing")

    def stream(self) -> Any:
        """A file, open for reading."""
        if self.local_path is not None:
            return self.local_path.open("rb")
        system, path = self.open()
        return system.open_input_stream(path)

    def read(self) -> bytes:
        """The content of a file."""
        with self.stream() as stream:
            return bytes(stream.read())

    def sha256(self) -> bytes:
        """The digest of a file, which is read one block at a time."""
        found = hashlib.sha256()
        with self.stream() as stream:
            while block := stream.read(1 << 20):
                found.update(block)
        return found.digest()

    def write(self, content: bytes) -> None:
        """Write a file. After a crash it is complete, or not there."""
        if self.local_path is not None:
            self.local_path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.local_path, content)
            return
        system, path = self.open()
        with system.open_output_stream(path) as stream:
            stream.write(content)

    def remove(self) -> None:
        """Delete a file, if it exists."""
        system, path = self.open()
        with suppress(FileNotFoundError):
            system.delete_file(path)

    def files(self, *, recursive: bool = False) -> dict[str, int]:
        """Sizes of the files in this folder, by name, sorted; hidden files are left out.

        On this machine links are followed, except into a folder that the link is inside of. Broken
        links are left out.
        """
        found: dict[str, int] = {}
        if self.store:
            system, home = self.open()
            from pyarrow import fs

            selector = fs.FileSelector(home, recursive=recursive, allow_not_found=True)
            for info in system.get_file_info(selector):
                if info.type == fs.FileType.File:
                    found[info.path[len(home) :].lstrip("/")] = int(info.size or 0)
        for home, folders, names in [] if self.store else os.walk(self.path, followlinks=True):
            path = Path(home)
            above = {os.path.realpath(other) for other in (path, *path.parents)}
            folders[:] = [
                name
                for name in folders
                if recursive and name[0] != "." and os.path.realpath(path / name) not in above
            ]
            for file in (path / name for name in names):
                if file.is_file():
                    found[file.relative_to(self.path).as_posix()] = file.stat().st_size
        return {name: found[name] for name in sorted(found) if "/." not in f"/{name}"}

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Create this folder, and refuse a second process that writes to it.

        The lock is released when its process ends, even after a crash. Stores, Windows and some
        file systems have no such locks: there the user must not start two processes. The lock file
        may come from someone else: no link is followed, and its content is not changed.
        """
        if self.local_path is None or sys.platform == "win32":
            yield
            return
        import fcntl

        self.local_path.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        handle = os.open(self.local_path / ".lock", flags, 0o666)
        try:
            with suppress(OSError):  # a file system without locks
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    raise RuntimeError(f"{self} is being written by another process.") from error
            yield
        finally:
            with suppress(OSError):  # a process that was forked meanwhile has the handle, too
                fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)


class TemporaryFolder:
    """A folder that is removed with the last object that holds this one, or when Python ends."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="eblime-")
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@cache
def arrow() -> tuple[Any, Any]:
    """The package pyarrow and its module for Parquet files."""
    pa = import_extra("pyarrow", "batch", safe_since="14.0.1")
    return pa, import_module("pyarrow.parquet")


@cache
def _file_system(address: str) -> tuple[Any, str]:
    """The file system of an address, from pyarrow or else from fsspec, and the path in it."""
    pa, _ = arrow()
    from pyarrow import fs

    found: tuple[Any, str]
    try:
        found = fs.FileSystem.from_uri(address)
    except pa.ArrowInvalid:
        found = fs.FileSystem.from_uri(f"fsspec+{address}")
    return found
