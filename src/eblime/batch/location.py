"""Locations of files: a folder of this machine, or an object store of pyarrow or fsspec.

A location is sent to other processes as its address. What pyarrow's file systems lack is here: a
local file is never visible half written, as objects of a store are not, names may be any bytes, and
a lock keeps a second process away.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from eblime._files import write_whole
from eblime._lazy import import_extra

_KINDS = {"File": "file", "Directory": "folder"}


@dataclass(frozen=True, slots=True)
class Location:
    """A folder or a file, by its path or by an address such as `s3://bucket/folder?region=eu`."""

    address: str

    @classmethod
    def of(cls, path: str | os.PathLike[str] | Location) -> Location:
        """The location of a path or an address."""
        if isinstance(path, Location):
            return path
        address = os.fspath(path).removeprefix("file://")
        if "://" in address:
            return cls(address.rstrip("/"))
        return cls(str(Path(address).expanduser().absolute()))

    def __str__(self) -> str:
        return self.address

    def __truediv__(self, name: str) -> Location:
        head, query = self._split()
        return Location(f"{head}/{name}{query}")

    def _split(self) -> tuple[str, str]:
        head, mark, query = self.address.partition("?")
        return (head, mark + query) if "://" in head else (self.address, "")

    @property
    def local_path(self) -> Path | None:
        """The path on this machine; None for a store."""
        return None if "://" in self.address else Path(self.address)

    @property
    def name(self) -> str:
        """The last part of the address."""
        return Path(self._split()[0]).name

    @property
    def parent(self) -> Location:
        """The folder that contains it."""
        head, query = self._split()
        return Location(os.path.dirname(head) + query)  # noqa: PTH120, as it may be an address

    @property
    def suffix(self) -> str:
        """The file name extension, in lower case."""
        return Path(self.name).suffix.lower()

    def open(self) -> tuple[Any, str]:
        """The pyarrow file system, and the path in it."""
        if self.local_path is not None:
            return _file_system("file:///")[0], self.address
        head, query = self._split()
        scheme, rest = head.split("://", 1)
        first, _, inside = rest.partition("/")
        system, root = _file_system(f"{scheme}://{first}{query}")
        return system, f"{root.rstrip('/')}/{inside}"

    def make(self) -> None:
        """Create the folder if it does not exist."""
        if self.local_path is not None:
            self.local_path.mkdir(parents=True, exist_ok=True)

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

    def sha256(self) -> Any:
        """The hash of a file, which is read one block at a time."""
        found = hashlib.sha256()
        with self.stream() as stream:
            while block := stream.read(1 << 20):
                found.update(block)
        return found

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
        """Sizes of the files in this folder, by name, sorted; hidden files are left out."""
        if self.local_path is not None:
            return dict(sorted(_files(self.local_path, recursive=recursive)))
        system, path = self.open()
        from pyarrow import fs

        selector = fs.FileSelector(path, recursive=recursive, allow_not_found=True)
        found = {
            info.path[len(path) :].lstrip("/"): int(info.size or 0)
            for info in system.get_file_info(selector)
            if info.type == fs.FileType.File
        }
        return {name: found[name] for name in sorted(found) if "/." not in f"/{name}"}

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Refuse a second process that writes to this folder.

        The lock is released when its process ends, even after a crash. Stores, Windows and some
        file systems have no such locks: there the user must not start two processes. The lock file
        may come from someone else: no link is followed, and its content is not changed.
        """
        path = self.local_path
        if path is None or sys.platform == "win32":
            yield
            return
        import fcntl

        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        handle = os.open(refuse_link(self / ".lock").address, flags, 0o666)
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


def refuse_link(file: Location) -> Location:
    """The file or folder itself; a symbolic link is refused."""
    if file.local_path is not None and file.local_path.is_symlink():
        raise PermissionError(
            f"{file} must not be a symbolic link, which may lead out of the run folder. Put what "
            "it leads to in its place, or remove it."
        )
    return file


def _files(folder: Path, *, recursive: bool) -> Iterator[tuple[str, int]]:
    """Names and sizes of files.

    Links are followed, except into a folder that the link is inside of. Broken links are left out.
    """
    for home, folders, names in os.walk(folder, followlinks=True):
        path = Path(home)
        above = {os.path.realpath(other) for other in (path, *path.parents)}
        folders[:] = [
            name
            for name in folders
            if recursive and name[0] != "." and os.path.realpath(path / name) not in above
        ]
        for name in names:
            if name[0] != "." and (path / name).is_file():
                yield (path / name).relative_to(folder).as_posix(), (path / name).stat().st_size


def arrow() -> tuple[Any, Any]:
    """The package pyarrow and its module for Parquet files."""
    pa = import_extra("pyarrow", "batch", safe_since="14.0.1")
    return pa, import_module("pyarrow.parquet")


@lru_cache(maxsize=8)
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
