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
    "inode_of",
    "open_file",
    "reported",
    "set_aside",
    "size_of",
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


def open_file(file: Path, timeout: float) -> tuple[sqlite3.Connection, int | None]:
    """Open the file, created where there is none; a damaged one is set aside.

    Returns the connection and the inode of the file.
    """
    with _locked(file, alone=False):
        inode = inode_of(file)
        try:
            return _opened(file, timeout), inode_of(file)
        except (DamagedError, sqlite3.DatabaseError) as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            damage = error
    set_aside(file, damage, inode)
    with _locked(file, alone=False):
        return _opened(file, timeout), inode_of(file)


@contextmanager
def _locked(file: Path, *, alone: bool) -> Iterator[None]:
    """Hold the lock of a file: alone to rename the file, with others to open it.

    So no file is renamed while another process or thread opens it. Windows, which does not rename
    open files, and some file systems have no such locks.
    """
    handle = _lock_handle(file)
    if handle is None:
        yield
        return
    import fcntl

    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)  # also for a process that was forked meanwhile
        os.close(handle)


def _lock_handle(file: Path) -> int | None:
    """Open the empty file that is locked, `.NAME.lock`; None where there are no locks.

    The folder itself is not locked: another program may hold its lock for as long as this one
    runs, as `flock FOLDER python script.py` does.
    """
    try:
        import fcntl  # noqa: F401  not on Windows

        lock = file.with_name(f".{file.name}.lock")
        return os.open(lock, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except (ImportError, OSError):
        return None


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


def _parts(file: Path) -> list[Path]:
    """The files of a database: itself, and those of writes in progress."""
    return [file, *(file.with_name(f"{file.name}{ending}") for ending in ("-wal", "-shm"))]


def inode_of(file: Path) -> int | None:
    """The number of a file, which another file at the same path does not have; None if missing."""
    try:
        return file.stat().st_ino
    except FileNotFoundError:
        return None


def size_of(file: Path) -> int:
    """Bytes of all files of a database."""
    found = 0
    for part in _parts(file):
        with suppress(FileNotFoundError):
            found += part.stat().st_size
    return found


def set_aside(file: Path, error: Exception, inode: int | None) -> None:
    """Rename a damaged file, and say so; nothing if another process has done it already."""
    with _locked(file, alone=True):
        if inode_of(file) != inode:
            return
        number, aside = 1, file.with_name(f"{file.name}.damaged")
        while aside.exists():
            number += 1
            aside = file.with_name(f"{file.name}.damaged-{number}")
        for part, renamed in zip(_parts(file), _parts(aside), strict=True):
            with suppress(FileNotFoundError), _renaming(file, error):
                part.rename(renamed)
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
