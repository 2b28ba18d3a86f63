"""A run is a folder: what is asked for, and one Parquet file for each part that is done.

`manifest.json` says everything that decides a number. A part is written under another name, synced
and renamed: it is there whole, or not at all. What a crash leaves under other names is swept away
when the run goes on.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from eblime._version import __version__
from eblime.batch.place import Place, arrow

__all__ = [
    "COLUMNS",
    "SCHEMA",
    "check_manifest",
    "done_parts",
    "part_names",
    "read_manifest",
    "write_part",
]

SCHEMA = 1
_OURS = ("manifest.json", "failures.csv", "part-*.parquet", "explanations/*.eblime", "inputs/*")
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
    ("error", "string"),
)


def check_manifest(folder: Place, settings: Mapping[str, Any]) -> None:
    """Write what the run is about, or check that the folder is the folder of this run."""
    wanted = json.loads(json.dumps(dict(settings)))
    folder.sweep(_OURS)
    if (folder / "manifest.json").kind() == "nothing":
        if part_names(folder):
            raise ValueError(f"{folder} has parts of a run and no manifest.json: take another.")
        manifest = {
            "schema": SCHEMA,
            "settings": wanted,
            "versions": {
                "eblime": __version__,
                "python": platform.python_version(),
                **{name: version(name) for name in ("numpy", "scipy", "pyarrow")},
            },
        }
        (folder / "manifest.json").write((json.dumps(manifest, indent=1) + "\n").encode())
        return
    known = read_manifest(folder)["settings"]
    for name in sorted({*known, *wanted}):
        if known.get(name) != wanted.get(name):
            raise ValueError(
                f"{folder} is a run with another {name!r}: {known.get(name)!r} there, "
                f"{wanted.get(name)!r} now. Take another folder, or the settings it has."
            )


def read_manifest(folder: Place) -> dict[str, Any]:
    """What a run is about."""
    place = folder / "manifest.json"
    if place.kind() != "file":
        raise FileNotFoundError(f"{folder} is no run: it has no manifest.json.")
    try:
        found = json.loads(place.read())
    except ValueError as error:
        raise ValueError(f"{place} is damaged: {error}.") from error
    if found.get("schema", 0) > SCHEMA:
        raise ValueError(
            f"{folder} has schema {found['schema']}; this eblime reads up to {SCHEMA}. Update it."
        )
    return dict(found)


def part_names(folder: Place) -> list[str]:
    """The files of the parts that are there, in their order."""
    return [name for name in folder.files() if re.fullmatch(r"part-\d{6,}\.parquet", name)]


def write_part(folder: Place, part: int, rows: Mapping[str, Sequence[Any]]) -> None:
    """Write a part: whole, or not at all."""
    pa, pq = arrow()
    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in COLUMNS])
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(dict(rows), schema=schema), sink)
    (folder / _name(part)).write(sink.getvalue().to_pybytes())


def done_parts(folder: Place, parts: Sequence[int]) -> set[int]:
    """Parts that are there and whole; one that is cut short is taken away and done again."""
    _, pq = arrow()
    there, done = set(part_names(folder)), set()
    for part in parts:
        if _name(part) not in there:
            continue
        place = folder / _name(part)
        system, path = place.open()
        try:
            pq.read_metadata(path, filesystem=system)
            done.add(part)
        except Exception:  # whatever damage makes of a Parquet file
            place.remove()
    return done


def _name(part: int) -> str:
    """The file of a part."""
    return f"part-{part:06d}.parquet"
