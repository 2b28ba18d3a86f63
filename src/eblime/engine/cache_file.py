"""The file of a cache: opened, checked, and set aside where it is damaged."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from eblime._warn import warn_user

__all__ = [
    "DamagedError",
    "file_parts",
    "inode_of",
    "open_file",
    "reported",
    "set_aside",
    "transaction",
]

_APPLICATION = 0x65626C6D  # "eblm", in the header of the file
_LAYOUT = 1
_LONGEST = 1e6  # seconds: SQLite counts milliseconds in 32 bits
_TABLES = (
    "CREATE TABLE IF NOT EXISTS scopes (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE,"
    " model TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS answers (scope INTEGER NOT NULL, key BLOB NOT NULL,"
    " outputs BLOB NOT NULL, checksum INTEGER NOT NULL, UNIQUE (scope, key))",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_LAYOUT}",
)


class DamagedError(Exception):
    """A file that must not be used."""


def open_file(file: Path, timeout: float) -> sqlite3.Connection:
    """Open the file, created where there is none; a damaged one is set aside."""
    inode = inode_of(file)
    try:
        return _opened(file, timeout)
    except (DamagedError, sqlite3.DatabaseError) as error:
        replaced = inode is not None and inode_of(file) != inode  # by another process
        if isinstance(error, sqlite3.OperationalError) and not replaced:
            raise
        set_aside(file, error, inode)
        return _opened(file, timeout)


def _opened(file: Path, timeout: float) -> sqlite3.Connection:
    """Connect, check whose file it is, and create the tables."""
    connection = sqlite3.connect(
        file, timeout=min(timeout, _LONGEST), isolation_level=None, check_same_thread=False
    )
    try:
        application, layout, tables = _header(connection)
        if tables and application != _APPLICATION:
            raise ValueError(f"`cache` {str(file)!r} is a database of another program.")
        if tables and layout != _LAYOUT:
            raise DamagedError(f"it has layout {layout}, and this eblime uses {_LAYOUT}")
        if not tables:  # an answer with 1,000 outputs fits into a page
            connection.execute("PRAGMA page_size = 32768")
        _write_ahead(connection, timeout)
        connection.execute("PRAGMA synchronous = NORMAL")
        if not tables:
            with transaction(connection):
                for statement in _TABLES:
                    connection.execute(statement)
    except BaseException:
        connection.close()
        raise
    return connection


def _header(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """The program, the layout and the number of tables, all read at one moment.

    Read one after the other, they could be of before and after another process creates the tables.
    """
    queries = (
        "PRAGMA application_id",
        "PRAGMA user_version",
        "SELECT count(*) FROM sqlite_master",
    )
    connection.execute("BEGIN")
    application, layout, tables = (
        int(connection.execute(query).fetchone()[0]) for query in queries
    )
    connection.execute("COMMIT")
    return application, layout, tables


def _write_ahead(connection: sqlite3.Connection, timeout: float) -> None:
    """Let processes read while one writes.

    SQLite waits for other processes at every statement but this one, which fails at once.
    """
    deadline = time.monotonic() + timeout
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return  # some file systems cannot: the file keeps its other mode
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """All statements or none; waits for other processes that write."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def reported(file: Path) -> Iterator[None]:
    """Say which file cannot be opened."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise ValueError(f"`cache` {str(file)!r} cannot be opened: {error}.") from error


def file_parts(file: Path) -> list[Path]:
    """The files of a database: itself, and those of writes in progress."""
    return [file, *(file.with_name(f"{file.name}{ending}") for ending in ("-wal", "-shm"))]


def inode_of(file: Path) -> int | None:
    """What tells a file from another one at the same path; None if there is none."""
    try:
        return file.stat().st_ino
    except FileNotFoundError:
        return None


def set_aside(file: Path, error: Exception, inode: int | None) -> None:
    """Rename a damaged file, and say so; nothing if another process has done it already."""
    with _held(file, inode) as ours:
        if not ours:
            return
        number, aside = 1, file.with_name(f"{file.name}.damaged")
        while aside.exists():
            number += 1
            aside = file.with_name(f"{file.name}.damaged-{number}")
        # the file itself last: from then on the other two may be those of its successor
        for part, ending in zip(reversed(file_parts(file)), ("-shm", "-wal", ""), strict=True):
            with suppress(FileNotFoundError), _renaming(file, error):
                part.rename(aside.with_name(f"{aside.name}{ending}"))
    warn_user(
        f"The cache {str(file)!r} is damaged ({error}): it was renamed to {aside.name!r}, and "
        "answers are asked again."
    )


@contextmanager
def _renaming(file: Path, error: Exception) -> Iterator[None]:
    """Say that a damaged file cannot be renamed."""
    try:
        yield
    except PermissionError as refused:
        raise ValueError(
            f"`cache` {str(file)!r} is damaged ({error}) and cannot be renamed: "
            f"{refused.strerror}. Use another file."
        ) from refused


@contextmanager
def _held(file: Path, inode: int | None) -> Iterator[bool]:
    """Whether a file is still the one with this inode; no other process renames it meanwhile."""
    try:
        import fcntl
    except ImportError:  # Windows does not rename a file that is open
        yield inode_of(file) == inode
        return
    try:
        handle = os.open(file, os.O_RDONLY)
    except FileNotFoundError:
        yield False
        return
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield inode_of(file) == inode
    finally:
        os.close(handle)
