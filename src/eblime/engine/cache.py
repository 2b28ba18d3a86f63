"""Answers of models in a file, so that nothing is asked twice.

One SQLite file, shared by any number of processes. An answer is stored under the model, the input
cut into features, and the mask (for tables: the perturbed row), and has all outputs of the model.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sqlite3
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
from eblime.models.identity import fingerprint, named

T = TypeVar("T")

_KEYS = 500  # in one query
_LONG_KEY = 32  # bytes; longer keys are stored as digests
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
    that cannot be written to is read. One that is damaged, or is no cache, is refused.

    Parameters
    ----------
    path
        The file, created when it is first used. A path as `cache=` is the same as
        `AnswerCache(path)`.
    model_id
        Name and version of the model, such as "fraud model, 2026-11-03"; use another one when the
        model changes. None recognises the path of an ONNX file by the bytes of the file, if its
        weights are in it. Every other model needs a name.
    verify
        How many of the stored answers an explanation asks the model about again. If an output
        differs by more than 0.1 % of the range of its stored scores, the cache is refused. 0 trusts
        the file.
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
        file = self.file
        if file.exists() and not file.is_file():
            kind = "folder" if file.is_dir() else "special file"
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
        with closing(open_file(self.file, self.timeout)) as connection:
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
        with closing(open_file(self.file, self.timeout)) as connection:
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
            return replace(self, model_id=named(model, self.model_id))
        try:
            return replace(self, model_id=f"content {fingerprint(model)}")
        except UnknownContentError as error:
            raise self._unknown("model", error) from error

    def _unknown(self, what: str, error: UnknownContentError) -> TypeError:
        """The error that asks for a name."""
        return TypeError(
            f"`cache` needs `model_id`, a name for this {what}: {error}. Write "
            f"cache=eblime.AnswerCache({os.fspath(self.path)!r}, "
            'model_id="fraud model, 2026-11-03"), or on the command line '
            '--model-id "fraud model, 2026-11-03", and change the name when the model changes.'
        )

    @contextmanager
    def sections(self, model: Any) -> Iterator[Callable[[Any], CacheSection]]:
        """Open the file for one model; yields a function from an input to its answers.

        The function takes what decides a perturbed input besides its key; see
        `Neighbourhood.scope`. The file is opened once, for however many inputs. With a `model_id`,
        the code of the user's own kinds of inputs counts as far as it can be compared; without one
        there must be none.
        """
        name = self.for_model(model).model_id

        def section_of(scope: Any) -> CacheSection:
            try:
                digest = digest_of((name, scope), code=self.model_id is not None)
            except UnknownContentError as error:
                if self.model_id is None:
                    raise self._unknown("kind of input", error) from error
                message = f"`cache` needs an input whose content can be compared: {error}."
                raise TypeError(message) from error
            return CacheSection(file, str(name), bytes.fromhex(digest), self.verify)

        with closing(_OpenFile(self)) as file:
            yield section_of


def as_cache(cache: Any) -> AnswerCache | None:
    """A path as a cache; None is none."""
    return cache if cache is None or isinstance(cache, AnswerCache) else AnswerCache(cache)


def model_name(model: Any, cache: Any) -> str | None:
    """The content of a model, or else its name in its cache; None if neither is known.

    Raises
    ------
    TypeError
        If the cache needs a `model_id`.
    """
    try:
        return f"content {fingerprint(model)}"
    except UnknownContentError:
        known = as_cache(cache)
        return None if known is None else known.for_model(model).model_id


class CacheSection:
    """The answers of one model about one input; see `Book`."""

    def __init__(self, file: _OpenFile, model: str, digest: bytes, verify: int) -> None:
        self._file, self._model, self._digest, self.verify = file, model, digest, verify
        self._start = zlib.crc32(digest)

    def read(self, keys: Sequence[bytes]) -> Mapping[bytes, FloatArray]:
        """All outputs for each of these keys that is known."""
        short = {_short_key(key): key for key in keys}
        found = self._file.attempt(lambda: self._read([*short], size=8))
        return {
            short[key]: np.frombuffer(blob, dtype="<f8").astype(np.float64, copy=False)
            for key, blob in (found or {}).items()
        }

    def write(self, keys: Sequence[bytes], outputs: FloatArray) -> None:
        """Store all outputs, (n, outputs), in one transaction."""
        blobs = [row.tobytes() for row in np.ascontiguousarray(outputs, dtype="<f8")]
        self._store([*map(_short_key, keys)], blobs)

    def read_text(self, key: bytes) -> str | None:
        """The text that is stored under a key."""
        found = self._file.attempt(lambda: self._read([_short_key(key)]))
        return next(iter(found.values())).decode("utf8", "surrogatepass") if found else None

    def write_text(self, key: bytes, text: str) -> None:
        """Store a text."""
        self._store([_short_key(key)], [text.encode("utf8", "surrogatepass")])

    def _store(self, keys: Sequence[bytes], blobs: Sequence[bytes]) -> None:
        """Write, unless the file cannot be written to."""
        if self._file.writes:
            self._file.attempt(lambda: self._write(keys, blobs))

    def _read(self, keys: Sequence[bytes], size: int = 1) -> dict[bytes, bytes]:
        """Look keys up, some hundreds at a time, and compare the checksums."""
        found: dict[bytes, bytes] = {}
        for start in range(0, len(keys), _KEYS):
            some = keys[start : start + _KEYS]
            marks = ", ".join("?" * len(some))
            rows = self._file.connection.execute(
                "SELECT key, outputs, checksum FROM answers WHERE key IN "
                f"({marks}) AND scope = (SELECT id FROM scopes WHERE digest = ?)",
                [*some, self._digest],
            )
            for key, outputs, checksum in rows:
                whole = isinstance(outputs, bytes) and len(outputs) % size == 0
                if not whole or checksum != self._checksum(key, outputs):
                    raise sqlite3.DatabaseError("an answer does not match its checksum")
                found[key] = outputs
        return found

    def _write(self, keys: Sequence[bytes], blobs: Sequence[bytes]) -> None:
        """Insert answers that are not there yet."""
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
    """The open file of a cache."""

    def __init__(self, cache: AnswerCache) -> None:
        self._file, self.writes = cache.file, True
        self.connection = open_file(cache.file, cache.timeout)

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def attempt(self, step: Callable[[], T]) -> T | None:
        """Do a step; with a warning not at all, if the file is locked or cannot be written to."""
        try:
            return step()
        except sqlite3.DatabaseError as error:
            if _is_damage(error):
                raise _damaged(self._file, error) from error
            self.writes = False
            warn_user(f"{self._file} cannot be used, answers are not stored: {error}.")
            return None


def open_file(file: Path, timeout: float) -> sqlite3.Connection:
    """Open the file, created where there is none."""
    try:
        return _connect(file, timeout)
    except sqlite3.DatabaseError as error:
        if "not a database" in str(error):
            raise _foreign(file) from error
        if _is_damage(error):
            raise _damaged(file, error) from error
        raise ValueError(f"`cache` {str(file)!r} cannot be opened: {error}.") from error


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether the content of a file is wrong; it may also be locked, or the disk full."""
    return not isinstance(error, sqlite3.OperationalError) or "no such" in str(error)


def _foreign(file: Path) -> ValueError:
    """The error for a file that eblime has not written."""
    return ValueError(
        f"`cache` {str(file)!r} is a file of another program, which is not changed. Use the path "
        "of a new file."
    )


def _damaged(file: Path, error: Exception) -> ValueError:
    """The error for a cache that must not be used."""
    parts = shlex.join(str(part) for part in _parts(file) if part.exists())
    return ValueError(
        f"`cache` {str(file)!r} is damaged: {error}. Its answers are not used. Remove it, and they "
        f"are asked again: rm -f {parts}"
    )


def _connect(file: Path, timeout: float) -> sqlite3.Connection:
    """Connect, check whose file it is, and create the tables."""
    read_only = file.exists() and not all(os.access(path, os.W_OK) for path in (file, file.parent))
    address = file.as_uri()
    if read_only:  # without a writer SQLite has no files for locks beside it, and can make none
        address += "?mode=ro" if _parts(file)[1].exists() else "?immutable=1"
    connection = sqlite3.connect(
        address,
        timeout=min(timeout, _LONGEST),
        isolation_level=None,
        check_same_thread=False,
        uri=True,
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
            raise _foreign(file)
        if tables and layout != _LAYOUT:
            message = f"it has layout {layout}, and this eblime uses {_LAYOUT}"
            raise sqlite3.DatabaseError(message)
        if read_only:
            return connection
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
