"""The run folder: settings, and one Parquet file per finished part.

`manifest.json` holds every setting that can change a number. A part is written under a temporary
name, synced and renamed, so it is never visible half written. Temporary files that a crash leaves
are deleted at the end of a call, or at the start of the next. Every part has a checksum, which is
verified whenever the part is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from eblime.batch.location import Location, arrow
from eblime.batch.manifest import decoded, encoded
from eblime.batch.seal import DamagedFileError, checked, sealed

__all__ = [
    "COLUMNS",
    "DETAILS",
    "check_manifest",
    "delete_parts",
    "done_parts",
    "map_parts",
    "missing_parts",
    "part_names",
    "part_schema",
    "read_manifest",
    "read_part",
    "read_table",
    "remove_temporary",
    "write_part",
]

Result = TypeVar("Result")
_READERS = 8  # parts read at a time
_ABOUT = b"eblime.explainer"  # metadata of a part: the settings of its explainer
_OUR_FILES = (
    "manifest.json",
    "in-progress.json",
    "failures.csv",
    "part-*.parquet",
    "explanations/*.eblime",
    "inputs/*",
)
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
_NEW = ("estimate", "se", "r2_held_out")  # columns that runs of older versions do not have


def check_manifest(
    folder: Location, settings: Mapping[str, Any], *, new_inputs: bool = False
) -> None:
    """Write the manifest, or check that the run was created with these settings.

    The settings of a run without finished parts are replaced. With `new_inputs` the inputs may
    differ, as long as their number is the same.
    """
    wanted = json.loads(json.dumps(dict(settings)))
    remove_temporary(folder)
    begun = part_names(folder)
    if begun and (folder / "manifest.json").kind() == "nothing":
        raise ValueError(f"{folder} has parts of a run but no manifest.json; use another folder.")
    known = read_manifest(folder)["settings"] if begun else {}
    if new_inputs and begun:
        known["inputs"] = wanted["inputs"]
    if not begun or (new_inputs and known == wanted):
        (folder / "manifest.json").write(encoded(wanted))
        return
    for name in sorted({*known, *wanted}):
        if known.get(name) != wanted.get(name):
            what, before, now = _difference(name, known.get(name), wanted.get(name))
            raise ValueError(
                f"{folder} was created with {what}={before!r}; this call has {what}={now!r}. Use "
                "another folder, or the settings of the run."
            )


def remove_temporary(folder: Location) -> None:
    """Delete temporary files of processes that were killed while writing."""
    folder.remove_temporary(_OUR_FILES)


def _difference(name: str, before: Any, now: Any) -> tuple[str, Any, Any]:
    """The setting that differs; of a dictionary, its first item that differs."""
    if isinstance(before, dict) and isinstance(now, dict):
        for item in sorted({*before, *now}):
            if before.get(item) != now.get(item):
                return item, before.get(item), now.get(item)
    return name, before, now


def read_manifest(folder: Location) -> dict[str, Any]:
    """The manifest of a run; a damaged one is refused."""
    manifest = folder / "manifest.json"
    if manifest.kind() != "file":
        raise FileNotFoundError(f"{folder} is not an eblime run folder: it has no manifest.json.")
    return decoded(manifest.read(), str(manifest))


def part_schema() -> Any:
    """The columns of a part, as an Arrow schema."""
    pa, _ = arrow()
    return pa.schema([(name, getattr(pa, kind)()) for name, kind in COLUMNS])


def read_part(folder: Location, name: str) -> tuple[Any, dict[str, str]]:
    """The rows of a part as a frame, and the settings of its explainer."""
    table = read_table(folder, name)
    return table.to_pandas(), dict(json.loads((table.schema.metadata or {}).get(_ABOUT, b"{}")))


def read_table(folder: Location, name: str) -> Any:
    """The rows of a part as an Arrow table; a damaged file is refused."""
    pa, pq = arrow()
    table = _with_new_columns(pq.read_table(pa.BufferReader(checked(folder / name))))
    if not table.schema.equals(part_schema()):
        raise ValueError(f"{folder / name} does not have the columns of a part of a run.")
    return table


def _with_new_columns(table: Any) -> Any:
    """The table of a part, with nulls in the columns that its version of eblime did not have."""
    pa, _ = arrow()
    for column in _NEW:
        if column not in table.column_names:
            table = table.append_column(column, pa.nulls(len(table), pa.float64()))
    known = [column for column, _ in COLUMNS if column in table.column_names]
    others = [column for column in table.column_names if column not in known]
    return table.select([*known, *others])


def map_parts(function: Callable[[str], Result], names: Sequence[str]) -> Iterator[Result]:
    """Call a function with every name, several at a time; yields the results in order."""
    with ThreadPoolExecutor(_READERS) as pool:
        yield from pool.map(function, names)


def part_names(folder: Location) -> list[str]:
    """The files of the finished parts, in order."""
    return [name for name in folder.files() if re.fullmatch(r"part-\d{6,}\.parquet", name)]


def write_part(
    folder: Location, part: int, rows: Mapping[str, Sequence[Any]], about: Mapping[str, str]
) -> None:
    """Write a part, with the settings of its explainer."""
    pa, pq = arrow()
    schema = part_schema().with_metadata({_ABOUT: json.dumps(dict(about))})
    sink = pa.BufferOutputStream()
    columns = {name: _storable(values) for name, values in rows.items()}
    pq.write_table(pa.table(columns, schema=schema), sink)
    (folder / _name(part)).write(sealed(sink.getvalue().to_pybytes()))


def _storable(values: Sequence[Any]) -> list[Any]:
    """The values of a column; half characters (lone surrogates) in strings become escapes."""
    return [
        value.encode("utf8", "backslashreplace").decode("utf8") if isinstance(value, str) else value
        for value in values
    ]


def done_parts(folder: Location, parts: Mapping[int, range]) -> dict[int, int]:
    """Finished parts, and how many inputs failed in each; damaged parts are deleted.

    Every file is read and compared with its checksum, and with the inputs of its part, which are
    given for each: a file may have been copied over another one.
    """
    finished = set(part_names(folder))
    wanted = {_name(part): part for part in parts if _name(part) in finished}
    counts = map_parts(lambda name: _count_failed(folder, name, parts[wanted[name]]), [*wanted])
    done = {}
    for part, failed in zip(wanted.values(), counts, strict=True):
        if failed is None:
            (folder / _name(part)).remove()
        else:
            done[part] = failed
    return done


def _count_failed(folder: Location, name: str, numbers: range) -> int | None:
    """How many inputs failed in a part; None if its file is damaged or has other inputs."""
    try:
        table = read_table(folder, name)
    except DamagedFileError:
        return None
    if {*table.column("input").unique().to_pylist()} != {*numbers}:
        return None
    error = table.column("error")
    return len(error) - int(error.null_count)


def missing_parts(folder: Location, parts: Sequence[int]) -> list[int]:
    """Parts that are not finished."""
    finished = set(part_names(folder))
    return [part for part in parts if _name(part) not in finished]


def delete_parts(folder: Location, parts: Iterable[int]) -> None:
    """Delete parts, so that they are done again."""
    for part in parts:
        (folder / _name(part)).remove()


def _name(part: int) -> str:
    """The file of a part."""
    return f"part-{part:06d}.parquet"
