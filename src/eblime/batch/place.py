"""Where things lie: a folder of this machine, or an object store that pyarrow or fsspec knows.

A place travels to other processes as its address. Files of a folder appear whole by a rename, and
those of a store because a store shows an object only once it is whole.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from eblime._files import write_whole

__all__ = ["READ_WHOLE", "Place", "arrow"]

READ_WHOLE = 1 << 30  # bytes of inputs that are read to tell whether they have changed


@dataclass(frozen=True, slots=True)
class Place:
    """A folder or a file by its address: a path, or such as `s3://bucket/folder`."""

    address: str

    @classmethod
    def of(cls, path: str | os.PathLike[str] | Place) -> Place:
        """The place that a path or an address means."""
        if isinstance(path, Place):
            return path
        words = os.fspath(path)
        if words.startswith("file://"):
            words = words.removeprefix("file://")
        if "://" in words:
            return cls(words.rstrip("/"))
        return cls(str(Path(words).expanduser().absolute()))

    def __str__(self) -> str:
        return self.address

    def __truediv__(self, name: str) -> Place:
        head, query = self._parts()
        return Place(f"{head}/{name}{query}")

    def _parts(self) -> tuple[str, str]:
        """The address without the settings of its store, and these."""
        if self.folder is not None:
            return self.address, ""
        head, mark, query = self.address.partition("?")
        return head, mark + query

    @property
    def folder(self) -> Path | None:
        """The path, where it is on this machine."""
        return None if "://" in self.address else Path(self.address)

    @property
    def name(self) -> str:
        """The last part of the address."""
        if self.folder is not None:
            return self.folder.name
        return self._parts()[0].rsplit("/", 1)[-1]

    @property
    def parent(self) -> Place:
        """The folder that it is in."""
        if self.folder is not None:
            return Place(str(self.folder.parent))
        head, query = self._parts()
        return Place(head.rsplit("/", 1)[0] + query)

    @property
    def suffix(self) -> str:
        """The ending, in small letters."""
        return Path(self.name).suffix.lower()

    def make(self) -> None:
        """Make the folder, where there is none."""
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except FileExistsError as error:
                raise NotADirectoryError(f"{self} must be a folder; it is a file.") from error
            if not os.access(self.folder, os.W_OK):
                raise PermissionError(f"{self} must be a folder that can be written to.")

    def kind(self) -> str:
        """What is there: "file", "folder" or "nothing"."""
        if self.folder is not None:
            there = "folder" if self.folder.is_dir() else "nothing"
            return "file" if self.folder.is_file() else there
        from pyarrow import fs

        system, path = self.open()
        found = system.get_file_info(path).type
        return {fs.FileType.File: "file", fs.FileType.Directory: "folder"}.get(found, "nothing")

    def read(self) -> bytes:
        """The content of a file."""
        with self.stream() as stream:
            return bytes(stream.read())

    def digest(self) -> str:
        """What a file holds, in a few letters."""
        found = hashlib.sha256()
        with self.stream() as stream:
            while block := stream.read(1 << 20):
                found.update(block)
        return found.hexdigest()

    def stream(self) -> Any:
        """A file, open for reading from its beginning to its end."""
        if self.folder is not None:
            return self.folder.open("rb")
        system, path = self.open()
        return system.open_input_stream(path)

    def write(self, content: bytes) -> None:
        """Write a file that is there whole, or not at all."""
        if self.folder is not None:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.folder, content)
            return
        system, path = self.open()
        with system.open_output_stream(path) as stream:
            stream.write(content)

    def remove(self) -> None:
        """Take a file away."""
        if self.folder is not None:
            self.folder.unlink()
            return
        system, path = self.open()
        system.delete_file(path)

    def files(self, *, recursive: bool = False) -> dict[str, int]:
        """Names below this folder and their sizes, sorted; names that begin with a dot are not."""
        if self.folder is not None:
            return dict(sorted(_walked(self.folder, "", recursive)))
        from pyarrow import fs

        system, path = self.open()
        selector = fs.FileSelector(path, recursive=recursive, allow_not_found=True)
        found = {}
        for info in system.get_file_info(selector):
            name = info.path[len(path) :].lstrip("/")
            hidden = any(part.startswith(".") for part in name.split("/"))
            if info.type == fs.FileType.File and not hidden:
                found[name] = int(info.size or 0)
        return dict(sorted(found.items()))

    def open(self) -> tuple[Any, str]:
        """The file system of pyarrow, and the path in it."""
        if self.folder is not None:
            return _store("")[0], self.address
        head, query = self._parts()
        scheme, rest = head.split("://", 1)
        first, _, inside = rest.partition("/")
        system, root = _store(f"{scheme}://{first}{query}")
        return system, f"{root.rstrip('/')}/{inside}"

    def sweep(self, names: tuple[str, ...]) -> None:
        """Take away what a crash left of files with such names, which may have stars."""
        if self.folder is not None:
            for name in names:
                above, _, last = name.rpartition("/")
                for left in (self.folder / above).glob(f".{last}.*.tmp"):
                    left.unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One driver per folder; the lock ends with its process, however that ends.

        Stores, Windows and some file systems have no such locks: there the user must see to it.
        """
        try:
            import fcntl
        except ImportError:
            yield
            return
        if self.folder is None:
            yield
            return
        handle = _open_lock(self.folder / ".lock")
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RuntimeError(f"{self} is being written by another process.") from error
            except OSError:  # a file system without locks
                pass
            yield
        finally:
            os.close(handle)


def _open_lock(path: Path) -> int:
    """Open a lock file, made if it is missing; what it holds is left, and no link is followed."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if path.is_symlink():
            raise PermissionError(
                f"{path} must be a plain file; it is a symbolic link. Remove it."
            ) from error
        raise


def _walked(
    folder: Path, above: str, recursive: bool, inside: frozenset[tuple[int, int]] = frozenset()
) -> Iterator[tuple[str, int]]:
    """Names and sizes of files, whatever bytes the names are made of.

    Links are followed, but never into a folder that the link is `inside` of. Links that lead
    nowhere are left out.
    """
    if not folder.is_dir():
        return
    here = folder.stat()
    if (here.st_dev, here.st_ino) in inside:
        return
    inside |= {(here.st_dev, here.st_ino)}
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            try:
                file, size = entry.is_file(), entry.stat().st_size
            except OSError:  # a link to nothing or to itself
                continue
            if file:
                yield above + entry.name, size
            elif recursive and entry.is_dir():
                below = f"{above}{entry.name}/"
                yield from _walked(folder / entry.name, below, recursive, inside)


def arrow() -> tuple[Any, Any]:
    """The modules of pyarrow; versions that run code from the files they read are refused."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError("Runs need pyarrow: pip install 'eblime[batch]'.") from error
    if [int(number) for number in re.findall(r"\d+", pa.__version__)[:3]] < [14, 0, 1]:
        raise ImportError(
            f"Runs need pyarrow 14.0.1 or later, and this is {pa.__version__}: "
            "pip install 'eblime[batch]'."
        )
    return pa, pq


@lru_cache(maxsize=8)
def _store(address: str) -> tuple[Any, str]:
    """A file system that pyarrow has itself, else one of fsspec's, and where the address lies."""
    pa, _ = arrow()
    from pyarrow import fs

    if not address:
        return fs.LocalFileSystem(), ""
    try:
        found: tuple[Any, str] = fs.FileSystem.from_uri(address)
        return found
    except pa.ArrowInvalid as known:
        try:
            import fsspec

            system, path = fsspec.core.url_to_fs(address)
        except (ImportError, ValueError) as error:
            raise ValueError(
                f"{address} is no address that pyarrow or fsspec can open here ({error}; {known})."
            ) from error
        return fs.PyFileSystem(fs.FSSpecHandler(system)), path
