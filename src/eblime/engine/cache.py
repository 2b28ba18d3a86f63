"""Answers of models in a file, so that nothing is asked twice.

One SQLite file, shared by any number of processes. An answer is stored under the model, the input
cut into features, and the mask (for tables: the perturbed row), and has all outputs of the model.
"""

from __future__ import annotations

import os
import sqlite3
import stat
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
from eblime.engine.cache_file import (
    DamagedError,
    inode_of,
    open_file,
    reported,
    set_aside,
    size_of,
    transaction,
)
from eblime.models.identity import fingerprint

__all__ = ["AnswerCache", "CacheStats", "as_cache"]

T = TypeVar("T")

_KEYS = 500  # in one query
_CLOSED = -1  # instead of an inode: differs from that of every file, and from None


class CacheStats(NamedTuple):
    """What an `AnswerCache` holds."""

    answers: int  # perturbed inputs with an answer
    inputs: int  # inputs, each cut into features in one way; a table counts as one
    models: int
    bytes: int  # of the file


@dataclass(frozen=True, slots=True)
class AnswerCache:
    """A file with the answers of models, for `cache=` of an explainer, `explain` or `explain_many`.

    Answers are written after every model call. Several processes may use the file at once. A file
    that is damaged or has another layout is renamed to `*.damaged`, with a warning.

    Parameters
    ----------
    path
        The file, created when it is first used. A path as `cache=` is the same as
        `AnswerCache(path)`.
    model_id
        Name and version of the model, such as "resnet-v3". None recognises the model by its
        content: weights, pickle, file or code. A model behind a service needs a name; give it
        another one when the service changes.
    timeout
        Seconds to wait for another process that is writing.

    Examples
    --------
    >>> import tempfile
    >>> import eblime
    >>> cache = eblime.AnswerCache(tempfile.mkdtemp() + "/answers.db")
    >>> explainer = eblime.TextExplainer(lambda texts: [len(t) for t in texts], cache=cache)
    >>> explainer.explain("a good film").provenance["model_calls"]
    8
    >>> explainer.explain("a good film").provenance["model_calls"], len(cache)
    (0, 8)
    """

    path: str | os.PathLike[str]
    model_id: str | None = None
    timeout: float = 60.0

    def __post_init__(self) -> None:
        """Refuse a path that cannot be a file."""
        if not isinstance(self.path, (str, os.PathLike)) or not os.fspath(self.path):
            raise TypeError(f"`cache` must be the path of a file; got {self.path!r}.")
        if self.model_id is not None and (not isinstance(self.model_id, str) or not self.model_id):
            raise TypeError(f"`model_id` must be a name; got {self.model_id!r}.")
        check_number("timeout", self.timeout)
        file = self.file
        mode = _mode_of(file)
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
        with reported(self.file), closing(open_file(self.file, self.timeout)[0]) as connection:
            answers, inputs, models = connection.execute(
                "SELECT (SELECT count(*) FROM answers), count(*), count(DISTINCT model) FROM scopes"
            ).fetchone()
            size = size_of(self.file)
            return CacheStats(answers=answers, inputs=inputs, models=models, bytes=size)

    def clear(self) -> None:
        """Delete all answers."""
        if not self.file.exists():
            return
        with reported(self.file), closing(open_file(self.file, self.timeout)[0]) as connection:
            with transaction(connection):  # or another process writes answers in between
                connection.execute("DELETE FROM answers")
                connection.execute("DELETE FROM scopes")
            with suppress(sqlite3.OperationalError):  # another process is reading
                connection.execute("VACUUM")

    def for_model(self, model: Any) -> AnswerCache:
        """The same file with a model that is recognised already: many inputs ask for it once."""
        if self.model_id is not None:
            return self
        return replace(self, model_id=f"content {fingerprint(model)}")

    @contextmanager
    def books(self, model: Any) -> Iterator[Callable[[Any], CacheBook]]:
        """Open the file for one model; yields a function from an input to its answers.

        The function takes what decides a perturbed input besides its key; see
        `Neighbourhood.scope`. The file is opened once, for however many inputs.
        """
        name = self.for_model(model).model_id
        assert name is not None
        with closing(_OpenFile(self)) as file:
            yield lambda scope: CacheBook(file, name, _digest(name, scope))


def _mode_of(file: Path) -> int | None:
    """What kind of file it is; None if it is missing or another process is renaming it."""
    try:
        return file.stat().st_mode
    except OSError:
        return None


def as_cache(cache: Any) -> AnswerCache | None:
    """A path as a cache; None is none."""
    return cache if cache is None or isinstance(cache, AnswerCache) else AnswerCache(cache)


def _digest(model: str, scope: Any) -> bytes:
    """What identifies an input of a model in the file."""
    try:
        return bytes.fromhex(digest_of((model, scope)))
    except UnknownContentError as error:
        message = f"`cache` needs an input whose content can be compared: {error}."
        raise TypeError(message) from error


class _OpenFile:
    """The file of a cache, opened, and opened again where it was damaged or replaced."""

    def __init__(self, cache: AnswerCache) -> None:
        self._cache, self.writes = cache, True
        with reported(cache.file):
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
            set_aside(self._cache.file, error, self._inode)
            self._reopen()
            return step()

    def _reopen(self) -> None:
        """Open the file that is there now, or a new one; the next step tries again if it fails."""
        self.close()
        self._inode = _CLOSED
        self.connection, self._inode = open_file(self._cache.file, self._cache.timeout)


class CacheBook:
    """The answers of one model about one input; see `Book`."""

    def __init__(self, file: _OpenFile, model: str, digest: bytes) -> None:
        self._file, self._model, self._digest = file, model, digest
        self._start = zlib.crc32(digest)

    def read(self, keys: Sequence[bytes]) -> Mapping[bytes, FloatArray]:
        """All outputs for each of these keys that is known."""
        found = self._file.attempt(lambda: self._read(keys))
        return {} if found is None else found

    def write(self, keys: Sequence[bytes], outputs: FloatArray) -> None:
        """Store all outputs, (n, outputs), in one transaction."""
        if self._file.writes:
            self._file.attempt(lambda: self._write(keys, outputs))

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
        with transaction(self._file.connection) as connection:
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
