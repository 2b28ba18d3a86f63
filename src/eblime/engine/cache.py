"""Answers of models in a file, so that nothing is asked twice.

One SQLite file, shared by any number of processes. An answer is stored under the model, the input
cut into features, and the mask (for tables: the perturbed row), and has all outputs of the model.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from eblime._checks import check_number
from eblime._digest import UnknownContentError, digest_of
from eblime._types import FloatArray
from eblime._warn import warn_user
from eblime.models.identity import fingerprint

__all__ = ["AnswerCache", "CacheStats", "as_cache"]

T = TypeVar("T")

_KEYS = 500  # in one query
_LONG_KEY = 32  # bytes; longer keys are stored as digests
_CLOSED = -1  # instead of an inode: differs from that of every file, and from None
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


class CacheStats(NamedTuple):
    """What an `AnswerCache` holds."""

    answers: int  # perturbed inputs with an answer
    inputs: int  # inputs, each cut into features in one way; a table counts as one
    models: int
    bytes: int  # of the file


@dataclass(frozen=True, slots=True)
class AnswerCache:
    """A file with the answers of models, for `cache=` of an explainer, `explain` or `explain_many`.

    Answers are written after every batch. Several processes may use the file at once. A file
    that is damaged or has another layout is renamed to `*.damaged`, with a warning.

    Parameters
    ----------
    path
        The file, created when it is first used. A path as `cache=` is the same as
        `AnswerCache(path)`.
    model_id
        Name and version of the model, such as "fraud model, 2026-11-03"; use another one when the
        model changes. None recognises an ONNX file, and a torch network or an estimator of
        scikit-learn, LightGBM, XGBoost or CatBoost that has no code of your own in it, by its
        content. Every other model needs a name.
    verify
        How many of the stored answers an explanation asks the model about again. If one of them
        differs by more than 0.1 % of the largest score, the cache is refused. 0 trusts the file.
    timeout
        Seconds to wait for another process that is writing.

    Examples
    --------
    The second explanation asks one answer again, to see that it is still the same model:

    >>> import tempfile
    >>> import eblime
    >>> cache = eblime.AnswerCache(tempfile.mkdtemp() + "/answers.db", model_id="length")
    >>> explainer = eblime.TextExplainer(lambda texts: [len(t) for t in texts], cache=cache)
    >>> explainer.explain("a good film").provenance["model_calls"]
    8
    >>> explainer.explain("a good film").provenance["model_calls"], len(cache)
    (1, 8)
    """

    path: str | os.PathLike[str]
    model_id: str | None = None
    verify: int = 1
    timeout: float = 60.0

    def __post_init__(self) -> None:
        """Refuse a path that cannot be a file."""
        if not isinstance(self.path, (str, os.PathLike)) or not os.fspath(self.path):
            raise TypeError(f"`cache` must be the path of a file; got {self.path!r}.")
        if self.model_id is not None and (not isinstance(self.model_id, str) or not self.model_id):
            raise TypeError(f"`model_id` must be a name; got {self.model_id!r}.")
        if isinstance(self.verify, bool) or not isinstance(self.verify, int) or self.verify < 0:
            raise ValueError(f"`verify` must be a whole number >= 0; got {self.verify!r}.")
        check_number("timeout", self.timeout)
        file, mode = self.file, None
        with suppress(OSError):  # it is missing, or another process is renaming it
            mode = file.stat().st_mode
        if mode is not None and not stat.S_ISREG(mode):
            kind = "folder" if stat.S_ISDIR(mode) else "special file"
            raise ValueError(f"`cache` must be the path of a file; {str(file)!r} is a {kind}.")
        if not file.parent.is_dir():
            raise ValueError(f"`cache` must be in a folder that exists; got {str(file)!r}.")

    @property
    def file(self) -> Path:
        """The full path."""
        return Path(self.path).absolute()

    def __len__(self) -> int:
        """Number of answers."""
        return self.stats().answers

    def __bool__(self) -> bool:
        """Always True, also without answers."""
        return True

    def stats(self) -> CacheStats:
        """How many answers, inputs and models there are, and how large the file is."""
        if not self.file.exists():
            return CacheStats(answers=0, inputs=0, models=0, bytes=0)
        with closing(open_file(self.file, self.timeout)[0]) as connection:
            answers, inputs, models = connection.execute(
                "SELECT (SELECT count(*) FROM answers), count(*), count(DISTINCT model) FROM scopes"
            ).fetchone()
            size = 0
            for part in _parts(self.file):
                with suppress(FileNotFoundError):
                    size += part.stat().st_size
            return CacheStats(answers=answers, inputs=inputs, models=models, bytes=size)

    def clear(self) -> None:
        """Delete all answers."""
        if not self.file.exists():
            return
        with closing(open_file(self.file, self.timeout)[0]) as connection:
            with _transaction(connection):  # or another process writes answers in between
                connection.execute("DELETE FROM answers")
                connection.execute("DELETE FROM scopes")
            with suppress(sqlite3.OperationalError):  # another process is reading
                connection.execute("VACUUM")

    def for_model(self, model: Any) -> AnswerCache:
        """The same file with the name of a model, by its content where none is given.

        Raises
        ------
        TypeError
            If the model needs a `model_id`.
        """
        if self.model_id is not None:
            return self
        try:
            return replace(self, model_id=f"content {fingerprint(model)}")
        except UnknownContentError as error:
            raise TypeError(
                f"`cache` needs `model_id`, a name for this model: {error}. Write "
                f"cache=eblime.AnswerCache({os.fspath(self.path)!r}, "
                'model_id="fraud model, 2026-11-03"), or on the command line '
                '--model-id "fraud model, 2026-11-03", and change the name when the model changes.'
            ) from error

    @contextmanager
    def books(self, model: Any) -> Iterator[Callable[[Any], CacheBook]]:
        """Open the file for one model; yields a function from an input to its answers.

        The function takes what decides a perturbed input besides its key; see
        `Neighbourhood.scope`. The file is opened once, for however many inputs.
        """
        named = self.for_model(model)
        with closing(_OpenFile(named)) as file:
            yield lambda scope: CacheBook(file, named, scope)


def as_cache(cache: Any) -> AnswerCache | None:
    """A path as a cache; None is none."""
    return cache if cache is None or isinstance(cache, AnswerCache) else AnswerCache(cache)


class CacheBook:
    """The answers of one model about one input; see `Book`."""

    def __init__(self, file: _OpenFile, cache: AnswerCache, scope: Any) -> None:
        self._file, self._model, self.verify = file, cache.model_id, cache.verify
        try:
            self._digest = bytes.fromhex(digest_of((self._model, scope), own_classes=True))
        except UnknownContentError as error:
            message = f"`cache` needs an input whose content can be compared: {error}."
            raise TypeError(message) from error
        self._start = zlib.crc32(self._digest)

    def read(self, keys: Sequence[bytes]) -> Mapping[bytes, FloatArray]:
        """All outputs for each of these keys that is known."""
        short = {_short_key(key): key for key in keys}
        found = self._file.attempt(lambda: self._read([*short]))
        return {} if found is None else {short[key]: outputs for key, outputs in found.items()}

    def write(self, keys: Sequence[bytes], outputs: FloatArray) -> None:
        """Store all outputs, (n, outputs), in one transaction."""
        if self._file.writes:
            self._file.attempt(lambda: self._write([_short_key(key) for key in keys], outputs))

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, FloatArray]:
        """Look keys up, some hundreds at a time, and compare the checksums."""
        found: dict[bytes, FloatArray] = {}
        for start in range(0, len(keys), _KEYS):
            some = keys[start : start + _KEYS]
            marks = ", ".join("?" * len(some))
            rows = self._file.connection.execute(
                "SELECT key, outputs, checksum FROM answers WHERE key IN "
                f"({marks}) AND scope = (SELECT id FROM scopes WHERE digest = ?)",
                [*some, self._digest],
            )
            for key, outputs, checksum in rows:
                if checksum != self._checksum(key, outputs) or len(outputs) % 8:
                    raise DamagedError("an answer does not match its checksum")
                found[key] = np.frombuffer(outputs, dtype="<f8").astype(np.float64, copy=False)
        return found

    def _write(self, keys: Sequence[bytes], outputs: FloatArray) -> None:
        """Insert answers that are not there yet."""
        blobs = [row.tobytes() for row in np.ascontiguousarray(outputs, dtype="<f8")]
        with _transaction(self._file.connection) as connection:
            connection.execute(
                "INSERT OR IGNORE INTO scopes (digest, model) VALUES (?, ?)",
                (self._digest, self._model),
            )
            (scope,) = connection.execute(
                "SELECT id FROM scopes WHERE digest = ?", (self._digest,)
            ).fetchone()
            connection.executemany(
                "INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?)",
                [
                    (scope, key, blob, self._checksum(key, blob))
                    for key, blob in zip(keys, blobs, strict=True)
                ],
            )

    def _checksum(self, key: bytes, outputs: bytes) -> int:
        """Of an answer and where it belongs."""
        return zlib.crc32(outputs, zlib.crc32(key, self._start))


def _short_key(key: bytes) -> bytes:
    """The key itself, or a digest of it where it is long."""
    return key if len(key) <= _LONG_KEY else hashlib.blake2b(key, digest_size=16).digest()


class _OpenFile:
    """The file of a cache, opened, and opened again where it was damaged or replaced."""

    def __init__(self, cache: AnswerCache) -> None:
        self._cache, self.writes = cache, True
        self.connection, self._inode = open_file(cache.file, cache.timeout)

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def attempt(self, step: Callable[[], T]) -> T | None:
        """Do a step: again with a new file if this one is damaged, not at all if it is locked."""
        try:
            if inode_of(self._cache.file) != self._inode:  # it was removed or replaced
                self._reopen()
            return step()
        except (sqlite3.OperationalError, ValueError) as error:  # locked, or of another program
            self.writes = False
            reason = str(error).rstrip(".")
            warn_user(f"{self._cache.file} cannot be used, answers are not stored: {reason}.")
            return None
        except (DamagedError, sqlite3.DatabaseError) as error:
            self.close()
            _set_aside(self._cache.file, error, self._inode)
            self._reopen()
            return step()

    def _reopen(self) -> None:
        """Open the file that is there now, or a new one; the next step tries again if it fails."""
        self.close()
        self._inode = _CLOSED
        self.connection, self._inode = open_file(self._cache.file, self._cache.timeout)


def open_file(file: Path, timeout: float) -> tuple[sqlite3.Connection, int | None]:
    """Open the file, created where there is none; a damaged one is set aside.

    Returns the connection and the inode of the file.
    """
    try:
        with _locked(file, alone=False):
            inode = inode_of(file)
            try:
                return _connect(file, timeout), inode_of(file)
            except (DamagedError, sqlite3.DatabaseError) as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise
                damage = error
        _set_aside(file, damage, inode)
        with _locked(file, alone=False):
            return _connect(file, timeout), inode_of(file)
    except sqlite3.OperationalError as error:
        raise ValueError(f"`cache` {str(file)!r} cannot be opened: {error}.") from error


@contextmanager
def _locked(file: Path, *, alone: bool) -> Iterator[None]:
    """Hold the lock of a file: alone to rename the file, with others to open it.

    So no file is renamed while another process or thread opens it. What is locked is an empty file,
    `.NAME.lock`: another program may hold the lock of the folder for as long as this one runs, as
    `flock FOLDER python script.py` does. Windows, which does not rename open files, and some file
    systems have no such locks.
    """
    try:
        import fcntl

        flags = os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        handle = os.open(file.with_name(f".{file.name}.lock"), flags, 0o666)
    except (ImportError, OSError):
        yield
        return
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)  # also for a process that was forked meanwhile
        os.close(handle)


def _connect(file: Path, timeout: float) -> sqlite3.Connection:
    """Connect, check whose file it is, and create the tables."""
    connection = sqlite3.connect(
        file, timeout=min(timeout, _LONGEST), isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("BEGIN")  # one moment: another process may be creating the tables
        application, layout, tables = (
            int(connection.execute(query).fetchone()[0])
            for query in (
                "PRAGMA application_id",
                "PRAGMA user_version",
                "SELECT count(*) FROM sqlite_master",
            )
        )
        connection.execute("COMMIT")
        if tables and application != _APPLICATION:
            raise ValueError(f"`cache` {str(file)!r} is a database of another program.")
        if tables and layout != _LAYOUT:
            raise DamagedError(f"it has layout {layout}, and this eblime uses {_LAYOUT}")
        if not tables:  # an answer with 1,000 outputs fits into a page
            connection.execute("PRAGMA page_size = 32768")
        _write_ahead(connection, timeout)
        connection.execute("PRAGMA synchronous = NORMAL")
        if not tables:
            with _transaction(connection):
                for statement in _TABLES:
                    connection.execute(statement)
    except BaseException:
        connection.close()
        raise
    return connection


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
def _transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """All statements or none; waits for other processes that write."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _parts(file: Path) -> list[Path]:
    """The files of a database: itself, and those of writes in progress."""
    return [file, *(file.with_name(f"{file.name}{ending}") for ending in ("-wal", "-shm"))]


def inode_of(file: Path) -> int | None:
    """The number of a file, which another file at the same path does not have; None if missing."""
    try:
        return file.stat().st_ino
    except FileNotFoundError:
        return None


def _set_aside(file: Path, error: Exception, inode: int | None) -> None:
    """Rename a damaged file, and say so; nothing if another process has done it already."""
    with _locked(file, alone=True):
        if inode_of(file) != inode:
            return
        number, aside = 1, file.with_name(f"{file.name}.damaged")
        while aside.exists():
            number += 1
            aside = file.with_name(f"{file.name}.damaged-{number}")
        try:
            for part, renamed in zip(_parts(file), _parts(aside), strict=True):
                with suppress(FileNotFoundError):
                    part.rename(renamed)
        except PermissionError as refused:
            raise ValueError(
                f"`cache` {str(file)!r} is damaged ({error}) and cannot be renamed: "
                f"{refused.strerror}. Use another file."
            ) from refused
    warn_user(
        f"The cache {str(file)!r} is damaged ({error}): it was renamed to {aside.name!r}, and "
        "answers are asked again."
    )
