"""Answers of models in a file, so that nothing is asked twice.

One SQLite table, shared by any number of processes. The key of an answer is a digest of the model,
the input cut into features, and the mask (for tables: the perturbed row); it has all outputs.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from eblime._checks import check_count
from eblime._digest import UnknownContentError, digest_of
from eblime._types import FloatArray
from eblime._warn import warn_user
from eblime.models.identity import fingerprint, named

T = TypeVar("T")

_APPLICATION = 0x65626C6D  # "eblm", in the header of the file
_TIMEOUT = 60.0  # seconds to wait for another process that is writing
_CREATE = (
    "BEGIN IMMEDIATE",  # waits for another process that creates it
    "CREATE TABLE IF NOT EXISTS answers"
    " (key BLOB PRIMARY KEY, answer BLOB NOT NULL, checksum INTEGER NOT NULL)",
    f"PRAGMA application_id = {_APPLICATION}",
)


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

    def __post_init__(self) -> None:
        if not isinstance(self.path, (str, os.PathLike)) or not os.fspath(self.path):
            raise TypeError(f"`cache` must be the path of a file; got {self.path!r}.")
        if self.model_id is not None and (not isinstance(self.model_id, str) or not self.model_id):
            raise TypeError(f"`model_id` must be a name; got {self.model_id!r}.")
        check_count("verify", self.verify, minimum=0)
        if self.file.is_dir() or not self.file.parent.is_dir():
            raise ValueError(
                "`cache` must be the path of a file in a folder that exists; got "
                f"{str(self.file)!r}."
            )

    @property
    def file(self) -> Path:
        """The full path."""
        return Path(self.path).absolute()

    def __len__(self) -> int:
        """Number of answers."""
        if not self.file.exists():
            return 0
        with closing(open_file(self.file)) as connection:
            return int(connection.execute("SELECT count(*) FROM answers").fetchone()[0])

    def __bool__(self) -> bool:
        """Always True, also without answers."""
        return True

    def clear(self) -> None:
        """Delete all answers."""
        if self.file.exists():
            with closing(open_file(self.file)) as connection, connection:
                connection.execute("DELETE FROM answers")

    def name_of(self, model: Any) -> str:
        """The name of a model, by its content where none is given; a TypeError without either."""
        if self.model_id is not None:
            return named(model, self.model_id)
        try:
            return f"content {fingerprint(model)}"
        except UnknownContentError as error:
            raise self._unknown("model", str(error)) from error

    def _unknown(self, what: str, reason: str) -> TypeError:
        return TypeError(
            f"`cache` needs `model_id`, a name for this {what}: {reason}. Write "
            f"cache=eblime.AnswerCache({os.fspath(self.path)!r}, "
            'model_id="fraud model, 2026-11-03"), or on the command line '
            '--model-id "fraud model, 2026-11-03", and change the name when the model changes.'
        )


def as_cache(cache: Any) -> AnswerCache | None:
    """A path as a cache; None is none."""
    return cache if cache is None or isinstance(cache, AnswerCache) else AnswerCache(cache)


@contextmanager
def open_cache(cache: Any, model: Any) -> Iterator[Callable[[Any], CacheSection | None]]:
    """Open a cache for one model; yields a function from an input to its answers, None without.

    The function takes what decides a perturbed input besides its key: the scene, or its `scope`.
    The file is opened once, for however many inputs. Kinds of inputs that are not eblime's need a
    `model_id`: their code decides what the model is asked.
    """
    known = as_cache(cache)
    if known is None:
        yield lambda _: None
        return
    name = known.name_of(model)
    with closing(open_file(known.file)) as connection:

        def section_of(scope: Any) -> CacheSection:
            if known.model_id is None and not type(scope).__module__.startswith("eblime."):
                raise known._unknown("kind of input", "it is code, which may change")
            try:
                digest = digest_of((name, scope))
            except UnknownContentError as error:
                message = f"`cache` needs an input whose content can be compared: {error}."
                raise TypeError(message) from error
            return CacheSection(known, connection, bytes.fromhex(digest))

        yield section_of


def model_name(model: Any, cache: Any) -> str | None:
    """The content of a model, or else its name in its cache; None if neither is known.

    A TypeError if the cache needs a `model_id`.
    """
    with suppress(UnknownContentError):
        return f"content {fingerprint(model)}"
    known = as_cache(cache)
    return None if known is None else known.name_of(model)


class CacheSection:
    """The answers of one model about one input."""

    def __init__(self, cache: AnswerCache, connection: sqlite3.Connection, digest: bytes) -> None:
        self.verify, self._file, self._writes = cache.verify, cache.file, True
        self._connection, self._digest = connection, digest

    def read(self, keys: Sequence[bytes]) -> Mapping[bytes, FloatArray]:
        """All outputs for each of these keys that is known."""
        found = self._read(keys)
        if any(len(answer) % 8 for answer in found.values()):
            raise _damaged(self._file, "an answer has no numbers")
        return {key: np.frombuffer(answer, "<f8").astype(float) for key, answer in found.items()}

    def write(self, keys: Sequence[bytes], outputs: FloatArray) -> None:
        """Store all outputs, (n, outputs), in one transaction."""
        rows = np.ascontiguousarray(outputs, dtype="<f8")
        self._write(dict(zip(keys, (row.tobytes() for row in rows), strict=True)))

    def read_text(self, key: bytes) -> str | None:
        """The text that is stored under a key."""
        found = self._read([key])
        return found[key].decode("utf8", "surrogatepass") if found else None

    def write_text(self, key: bytes, text: str) -> None:
        """Store a text."""
        self._write({key: text.encode("utf8", "surrogatepass")})

    def _key(self, key: bytes) -> bytes:
        return hashlib.blake2b(key, digest_size=16, key=self._digest).digest()

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Look keys up, and compare the checksums."""
        select, execute = "SELECT * FROM answers WHERE key = ?", self._connection.execute
        rows = self._attempt(lambda: [execute(select, [self._key(k)]).fetchone() for k in keys])
        found: dict[bytes, bytes] = {}
        for key, row in zip(keys, rows or (), strict=False):
            if row is not None:
                place, found[key], checksum = row
                if not isinstance(found[key], bytes) or checksum != zlib.crc32(place + found[key]):
                    raise _damaged(self._file, "an answer does not match its checksum")
        return found

    def _write(self, answers: Mapping[bytes, bytes]) -> None:
        placed = ((self._key(key), answer) for key, answer in answers.items())
        rows = [(place, answer, zlib.crc32(place + answer)) for place, answer in placed]
        insert = "INSERT OR IGNORE INTO answers VALUES (?, ?, ?)"
        if self._writes:
            self._attempt(lambda: self._connection.executemany(insert, rows))

    def _attempt(self, step: Callable[[], T]) -> T | None:
        """Do a step; with a warning not at all, if the file is locked or cannot be written to."""
        try:
            with self._connection:
                return step()
        except sqlite3.DatabaseError as error:
            if _is_damage(error):
                raise _damaged(self._file, error) from error
            self._writes = False
            warn_user(f"{self._file} cannot be used, answers are not stored: {error}.")
            return None


def open_file(file: Path) -> sqlite3.Connection:
    """Open the file, created where there is none."""
    try:
        with ExitStack() as stack:
            connection = sqlite3.connect(
                file, timeout=_TIMEOUT, isolation_level="IMMEDIATE", check_same_thread=False
            )
            stack.callback(connection.close)
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            with connection:
                for statement in () if tables else _CREATE:
                    connection.execute(statement)
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            if application != _APPLICATION:
                raise _foreign(file)
            connection.execute("SELECT key, answer, checksum FROM answers LIMIT 1")
            stack.pop_all()
            return connection
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
    return ValueError(
        f"`cache` {str(file)!r} is a file of another program, which is not changed. Use the path "
        "of a new file."
    )


def _damaged(file: Path, reason: object) -> ValueError:
    return ValueError(
        f"`cache` {str(file)!r} is damaged: {reason}. Its answers are not used. Remove it, and "
        f"they are asked again: rm -f {shlex.quote(str(file))}"
    )
