"""A run is a folder: its settings, and one Parquet file for each part that is done.

`manifest.json` has everything that decides a number. A part is written under another name, synced
and renamed: it is there whole, or not at all. What a crash leaves under other names is removed at
the end of a call, or at the beginning of the next. Every part has a checksum, which is verified
whenever the part is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from eblime.batch.manifest import decoded, encoded
from eblime.batch.place import Place, arrow
from eblime.batch.seal import DamagedFileError, checked, sealed

__all__ = [
    "COLUMNS",
    "DETAILS",
    "check_manifest",
    "done_parts",
    "forget_parts",
    "map_parts",
    "missing_parts",
    "part_names",
    "read_manifest",
    "read_part",
    "read_table",
    "remove_temporary",
    "write_part",
]

Result = TypeVar("Result")
_READERS = 8  # parts read at a time
_ABOUT = b"eblime.explainer"
_OURS = (
    "manifest.json",
    "in-progress.json",
    "failures.csv",
    "part-*.parquet",
    "explanations/*.eblime",
    "inputs/*",
)
DETAILS = {  # what an explanation says of its features; null where it is of another kind of input
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
    ("place", "int64"),
    ("mean", "float64"),
    ("sd", "float64"),
    ("low", "float64"),
    ("high", "float64"),
    ("prob_positive", "float64"),
    ("r2", "float64"),
    ("ess", "float64"),
    ("n_masks", "int64"),
    *DETAILS.items(),
    ("error", "string"),
)


def check_manifest(folder: Place, settings: Mapping[str, Any], *, new_inputs: bool = False) -> None:
    """Write the manifest, or check that the folder is that of a run with these settings.

    A run without finished parts may become another; with `new_inputs` the inputs may differ, if
    there are as many.
    """
    wanted = json.loads(json.dumps(dict(settings)))
    remove_temporary(folder)
    begun = part_names(folder)
    if begun and (folder / "manifest.json").kind() == "nothing":
        raise ValueError(f"{folder} has parts of a run and no manifest.json: use another folder.")
    known = read_manifest(folder)["settings"] if begun else {}
    if new_inputs and begun:
        known["inputs"] = wanted["inputs"]
    if not begun or (new_inputs and known == wanted):
        (folder / "manifest.json").write(encoded(wanted))
        return
    for name in sorted({*known, *wanted}):
        if known.get(name) != wanted.get(name):
            what, there, now = _difference(name, known.get(name), wanted.get(name))
            raise ValueError(
                f"{folder} was created with {what}={there!r}; this call has {what}={now!r}. Use "
                "another folder, or the settings of the run."
            )


def remove_temporary(folder: Place) -> None:
    """Remove temporary files that processes left when they were killed while writing."""
    folder.sweep(_OURS)


def _difference(name: str, there: Any, now: Any) -> tuple[str, Any, Any]:
    """What differs, to its smallest part where a setting has several."""
    for value in (there, now):
        if not isinstance(value, dict):
            return name, there, now
    for part in sorted({*there, *now}):
        if there.get(part) != now.get(part):
            return part, there.get(part), now.get(part)
    return name, there, now


def read_manifest(folder: Place) -> dict[str, Any]:
    """The manifest of a run; a damaged one is refused."""
    place = folder / "manifest.json"
    if place.kind() != "file":
        raise FileNotFoundError(f"{folder} is not an eblime run folder: it has no manifest.json.")
    return decoded(place.read(), str(place))


def read_part(folder: Place, name: str) -> tuple[Any, dict[str, str]]:
    """The rows of a part as a frame, and the description of the explainer that made them."""
    table = read_table(folder, name)
    return table.to_pandas(), dict(json.loads((table.schema.metadata or {}).get(_ABOUT, b"{}")))


def read_table(folder: Place, name: str) -> Any:
    """The rows of a part as an Arrow table; a damaged file is refused."""
    pa, pq = arrow()
    table = pq.read_table(pa.BufferReader(checked(folder / name)))
    wanted = [(column, getattr(pa, kind)()) for column, kind in COLUMNS]
    if [(field.name, field.type) for field in table.schema] != wanted:
        raise ValueError(f"{folder / name} does not have the columns of a part of a run.")
    return table


def map_parts(function: Callable[[str], Result], names: Sequence[str]) -> Iterator[Result]:
    """The results of a function for the file of each part, several at a time, in order."""
    with ThreadPoolExecutor(_READERS) as pool:
        yield from pool.map(function, names)


def part_names(folder: Place) -> list[str]:
    """The files of the parts that are there, in their order."""
    return [name for name in folder.files() if re.fullmatch(r"part-\d{6,}\.parquet", name)]


def write_part(
    folder: Place, part: int, rows: Mapping[str, Sequence[Any]], about: Mapping[str, str]
) -> None:
    """Write a part, and by what explainer it was made: whole, or not at all."""
    pa, pq = arrow()
    columns = [(name, getattr(pa, kind)()) for name, kind in COLUMNS]
    schema = pa.schema(columns, metadata={_ABOUT: json.dumps(dict(about))})
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(dict(rows), schema=schema), sink)
    (folder / _name(part)).write(sealed(sink.getvalue().to_pybytes()))


def done_parts(folder: Place, parts: Sequence[int]) -> dict[int, int]:
    """Finished parts, and how many inputs failed in each; a damaged part is removed.

    Every file is read and compared with its checksum.
    """
    there = set(part_names(folder))
    wanted = [part for part in parts if _name(part) in there]
    counts = map_parts(partial(_count_failed, folder), [_name(part) for part in wanted])
    done = {}
    for part, failed in zip(wanted, counts, strict=True):
        if failed is None:
            (folder / _name(part)).remove()
        else:
            done[part] = failed
    return done


def _count_failed(folder: Place, name: str) -> int | None:
    """How many inputs failed in a part; None if its file is damaged."""
    try:
        error = read_table(folder, name).column("error")
    except DamagedFileError:
        return None
    return len(error) - int(error.null_count)


def missing_parts(folder: Place, parts: Sequence[int]) -> list[int]:
    """Parts that are not there."""
    there = set(part_names(folder))
    return [part for part in parts if _name(part) not in there]


def forget_parts(folder: Place, parts: Iterable[int]) -> None:
    """Take parts away, to be done again."""
    for part in parts:
        (folder / _name(part)).remove()


def _name(part: int) -> str:
    """The file of a part."""
    return f"part-{part:06d}.parquet"
