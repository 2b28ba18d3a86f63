"""The run folder: settings, and one Parquet file per finished part.

`manifest.json` holds every setting that can change a number, and a checksum of them. The name of a
part ends with a SHA-256 digest of its run, its number and its bytes: a file that is damaged, or
that belongs elsewhere, is never read. A part is written under a temporary name,
synced and renamed, so it is never visible half written. Temporary files that a crash leaves are
deleted at the end of a call, or at the start of the next.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from eblime._field_checks import check_fields, either, instance, one_of, text, whole
from eblime._text import printable
from eblime._version import __version__
from eblime.batch.location import Location, arrow
from eblime.core.overall import least_squares
from eblime.methods.common import LINEAR_FIT
from eblime.results.explanation import Explanation

Item = TypeVar("Item")
Result = TypeVar("Result")
Settings = Mapping[str, Any]  # of a run, and what else JSON holds
Rows = list[dict[str, Any]]  # the columns that are known, for each row
SCHEMA = 3
_READERS = 8  # parts read at a time
_PART = re.compile(r"part-(\d{6,})-[0-9a-f]{16}\.parquet")
_HOMES = (".lock", "manifest.json", "explanations", "inputs", "pages", "pooled")
_SPARE_BYTES, _EXPANSION = 3 << 26, 50  # bytes that a Parquet file may unpack to, and per byte
_MOST_INPUTS = 1 << 53
_MAY_BE_UNKNOWN = ("explainer", "model")  # until a worker creates the explainer
_TEMPORARY = (".manifest.json.*.tmp", ".part-*.tmp", "explanations/.*.tmp", "inputs/.*.tmp")
DETAILS = {  # columns of `Explanation.details` that runs store; null where a domain has none
    "value": "string",
    "bin": "string",
    "centroid_row": "float64",
    "centroid_column": "float64",
    "top": "int64",
    "left": "int64",
    "bottom": "int64",
    "right": "int64",
    "area": "int64",
}
COLUMNS = (
    ("input", "int64"),
    ("name", "string"),
    ("target", "int64"),
    ("label", "string"),
    ("question", "string"),  # of a prompt
    ("prediction", "float64"),
    ("feature", "string"),
    ("place", "int64"),  # position of the feature among those of its input
    ("mean", "float64"),
    ("sd", "float64"),
    ("low", "float64"),
    ("high", "float64"),
    ("prob_positive", "float64"),
    ("estimate", "float64"),  # least squares, not shrunk; null with too few masks
    ("se", "float64"),  # its standard error
    ("r2", "float64"),
    ("r2_held_out", "float64"),  # null for a method that does not provide it
    ("ess", "float64"),
    ("n_masks", "int64"),
    *DETAILS.items(),
    ("error", "string"),
)
_SETTINGS = {  # what readers of a run use; the others are only compared
    "targets": either(one_of(None), whole(0), instance(list)),
    "seed": whole(0),
    "count": whole(1, _MOST_INPUTS),
    "inputs": text(),
    "part_size": whole(1),
}


class DamagedFileError(ValueError):
    """A file of a run whose contents do not match its checksum."""


# Files whose names end with a digest of their run, their place in it, and their bytes


def write_checked(folder: Location, stem: str, table: Any, run: str = "") -> str:
    """Write a Parquet file with its digest in its name; returns the name."""
    pa, pq = arrow()
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content = sink.getvalue().to_pybytes()
    name = f"{stem}-{_digest(run, stem, content)}.parquet"
    (folder / name).write(content)
    return name


def read_checked(file: Location, run: str = "") -> bytes:
    """The content of a file, after it was compared with the digest in its name."""
    content = file.read()
    stem, _, digest = file.name.removesuffix(".parquet").rpartition("-")
    if digest != _digest(run, stem, content):
        raise DamagedFileError(
            f"{file} is damaged, or was copied from another run or renamed: its contents do not "
            "match its checksum. Call `eblime.explain_many`, or `eblime batch --resume`, again to "
            "replace such files."
        )
    return content


def _digest(run: str, stem: str, content: bytes) -> str:
    return hashlib.sha256(f"{run} {stem} ".encode() + content).hexdigest()[:16]


# The manifest


def refuse_difference(folder: Location, before: Settings, now: Settings) -> None:
    """Refuse settings that are not those of the run; None is unknown for some."""
    for name in sorted({*before, *now}):
        one, other = before.get(name), now.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            refuse_difference(folder, one, other)
        elif one != other and not (name in _MAY_BE_UNKNOWN and None in (one, other)):
            raise ValueError(
                f"{folder} was created with {name}={one!r}; this call has {name}={other!r}. Use "
                "another folder, overwrite=True (--overwrite), or the settings of the run."
            )


def write_manifest(folder: Location, run: str, settings: Settings) -> None:
    """Write the manifest of a run with these settings."""
    packages = ("numpy", "scipy", "pyarrow")
    manifest = {
        "schema": SCHEMA,
        "run": run,
        "settings": dict(settings),
        "versions": {
            "eblime": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in packages},
        },
    }
    content = json.dumps(with_checksum(manifest), indent=1) + "\n"
    (folder / "manifest.json").write(content.encode())


def with_checksum(manifest: Settings) -> Settings:
    """A manifest with a checksum of everything else in it."""
    rest = {name: value for name, value in manifest.items() if name != "sha256"}
    content = json.dumps(rest, sort_keys=True).encode()
    return {**rest, "sha256": hashlib.sha256(content).hexdigest()}


def refuse_links(folder: Location, names: Iterable[str] = _HOMES) -> None:
    """Refuse links in the place of files and folders of a run: they may lead out of it."""
    home = folder.local_path
    for file in () if home is None else map(home.joinpath, names):
        if file.is_symlink():
            raise PermissionError(
                f"{file} must not be a symbolic link, which may lead out of the run folder. Put "
                "what it leads to in its place, or remove it."
            )


def read_manifest(folder: Location) -> Settings:
    """The manifest of a run, checked; a folder with links is refused."""
    refuse_links(folder)
    name = folder / "manifest.json"
    if name.kind() != "file":
        raise FileNotFoundError(f"{folder} is not an eblime run folder: it has no manifest.json.")
    found = None
    with suppress(ValueError, RecursionError):
        found = json.loads(name.read())
    if not isinstance(found, dict) or found != with_checksum(found):
        raise ValueError(f"{name} is damaged: its contents do not match its checksum.")
    if found.get("schema") != SCHEMA:
        raise ValueError(
            f"{name} has schema {found.get('schema')!r:.20}; this eblime reads {SCHEMA}. Use the "
            "version of eblime that wrote it, or repeat the run."
        )
    checked: Settings = found
    check_fields(checked, {"run": text(), "settings": instance(dict)}, f"{name} is damaged: `")
    check_fields(checked["settings"], _SETTINGS, f"{name} is damaged: `")
    return checked


# Rows of a part: one per input, target and feature, or one per failed input


def rows_of_input(
    number: int, name: str, found: Iterable[Explanation] | BaseException, prob: float
) -> Rows:
    """The rows of an input: one per target and feature of its explanations, or one for an error."""
    own = {"input": number, "name": printable(name)}
    if isinstance(found, BaseException):
        words = " ".join(str(found).split()) or "no message"
        return [own | {"error": printable(f"{type(found).__name__}: {words}")}]
    return [own | row for explanation in found for row in _rows(explanation, prob)]


def _rows(explanation: Explanation, prob: float) -> Iterator[dict[str, Any]]:
    """The other columns of an explanation that are known, one row per feature."""
    post, details = explanation.posterior, explanation.details()
    same = {
        "target": explanation.target,
        "label": explanation.label,
        "question": getattr(explanation.scene, "question", None),
        "prediction": explanation.prediction,
        "r2": post.r2,
        "r2_held_out": post.r2_held_out,
        "ess": post.ess,
        "n_masks": post.n_masks,
    }
    columns: dict[str, Iterable[Any]] = {
        # a feature that belongs to a column of a table has the column's name in every input
        "feature": map(str, details.get("column", explanation.features)),
        "place": range(len(post.mean)),
        "mean": post.mean,
        **post.columns(prob),
        **_least_squares(explanation),
    }
    for name in DETAILS.keys() & details.keys():
        columns[name] = map(str, details[name]) if DETAILS[name] == "string" else details[name]
    plain = (each.tolist() if isinstance(each, np.ndarray) else each for each in columns.values())
    return (same | dict(zip(columns, row, strict=True)) for row in zip(*plain, strict=True))


def _least_squares(explanation: Explanation) -> dict[str, Any]:
    """Least-squares estimates and standard errors, for averages over inputs; none if unknown.

    They are unknown for a method that estimates something else than the weighted linear fit, such
    as Shapley values.
    """
    posterior, answers = explanation.posterior, explanation.answers
    if not posterior.estimand.startswith(LINEAR_FIT):
        return {}
    some, intercept = answers.varying, "intercept" in posterior.extras
    solved = least_squares(some.masks, some.scores, some.weights, intercept=intercept)
    if solved is None:
        return {}
    estimate, se = solved
    if (fixed := answers.fixed) is not None:  # which are zero
        places = np.cumsum(~fixed) - 1
        estimate, se = (np.where(fixed, 0.0, values[places]) for values in solved)
    return {"estimate": estimate, "se": np.zeros_like(se) if explanation.exhaustive else se}


# Parts


def part_numbers(settings: Settings, part: int) -> range:
    """The inputs of a part."""
    size = settings["part_size"]
    return range(settings["count"])[part * size : (part + 1) * size]


def part_files(folder: Location) -> dict[int, str]:
    """The file of each finished part, in order."""
    found = {int(match[1]): name for name in folder.files() if (match := _PART.fullmatch(name))}
    return dict(sorted(found.items()))


def remove_leftovers(folder: Location) -> None:
    """Delete temporary files of processes that were killed."""
    if folder.local_path is not None:
        for file in chain(*map(folder.local_path.glob, _TEMPORARY)):
            file.unlink(missing_ok=True)


def remove_run(folder: Location) -> None:
    """Delete the files of a run; other files in the folder are not changed."""
    for home, ending in (("explanations", "eblime"), ("inputs", "parquet"), ("pages", "html")):
        for name in (folder / home).files():
            if name.endswith(ending):
                (folder / f"{home}/{name}").remove()
    for name in ("manifest.json", *part_files(folder).values()):
        (folder / name).remove()


def write_part(folder: Location, run: str, part: int, rows: Rows) -> None:
    """Write the rows of a part."""
    pa, _ = arrow()
    columns = {name: [_valid(row.get(name)) for row in rows] for name, _ in COLUMNS}
    table = pa.Table.from_pydict(columns, schema=pa.schema(COLUMNS))
    write_checked(folder, f"part-{part:06d}", table, run)


def _valid(value: Any) -> Any:
    """Half characters of a text (lone surrogates) as escapes."""
    return value.encode("utf8", "backslashreplace") if isinstance(value, str) else value


def read_parquet(content: bytes, columns: Sequence[str] | None = None) -> Any:
    """A Parquet file in memory as an Arrow table; one that unpacks to much more is refused.

    It is read in pieces, as one large value may be stored once and occur in every row, and without
    threads, as one that still holds `content` when Python ends would abort the process.
    """
    pa, pq = arrow()
    file = pq.ParquetFile(pa.BufferReader(content), pre_buffer=False)
    about, limit = file.metadata, _SPARE_BYTES + _EXPANSION * len(content)
    packed = [about.row_group(k).total_byte_size for k in range(about.num_row_groups)]
    size = max(sum(packed), 8 * about.num_rows * about.num_columns)
    batches: list[Any] = []
    pieces = file.iter_batches(max(1, limit // max([1, *packed])), None, columns, use_threads=False)
    while size <= limit:
        batch = next(pieces, None)
        if batch is None:
            return pa.Table.from_batches(batches)
        batches.append(batch)
        size = max(size, sum(each.nbytes for each in batches))
    raise ValueError(
        f"A Parquet file of {len(content)} bytes must unpack to at most {limit} bytes; it has "
        f"{about.num_rows} rows of {about.num_columns} columns, {size} bytes or more."
    )


def map_ahead(
    pool: Executor, ahead: int, function: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Result]:
    """Call a function with items in a pool; results come in order, and so many wait to be used."""
    waiting: deque[Future[Result]] = deque()
    for item in items:
        waiting.append(pool.submit(function, item))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def read_table(folder: Location, run: str, name: str, columns: Sequence[str] | None = None) -> Any:
    """The rows of a part as an Arrow table; a damaged file, or one of another run, is refused."""
    table = read_parquet(read_checked(folder / name, run), columns)
    schema = arrow()[0].schema(COLUMNS)
    if {*table.schema} != {f for f in schema if columns is None or f.name in columns}:
        raise ValueError(f"{folder / name} does not have the columns of a part of a run.")
    return table


def map_parts(function: Callable[[str], Result], files: Iterable[str]) -> Iterator[Result]:
    """Call a function with the file of every part, several at a time; results come in order."""
    with ThreadPoolExecutor(_READERS) as pool:
        yield from map_ahead(pool, _READERS, function, files)


def done_parts(folder: Location, run: str, *, retry: bool) -> dict[int, int]:
    """Finished parts, and how many inputs failed in each.

    Every file is read and compared with its checksum. Damaged parts are deleted and, with `retry`,
    those with failed inputs.
    """

    def count_failed(name: str) -> int | None:
        with suppress(DamagedFileError):
            error = read_table(folder, run, name, ["error"]).column("error")
            failed = len(error) - int(error.null_count)
            if not (retry and failed):
                return failed
        (folder / name).remove()
        return None

    files = part_files(folder)
    counts = zip(files, map_parts(count_failed, files.values()), strict=True)
    return {part: failed for part, failed in counts if failed is not None}
