"""A run is a folder: what is asked for, and one Parquet file for each part that is done.

`manifest.json` says everything that decides a number. A part is written under another name, synced
and renamed: it is there whole, or not at all. What a crash leaves under other names is swept away
when the run goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eblime._files import write_whole
from eblime._version import __version__

__all__ = [
    "COLUMNS",
    "SCHEMA",
    "done_parts",
    "locked",
    "open_folder",
    "part_path",
    "read_manifest",
    "write_part",
]

SCHEMA = 1
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


def open_folder(folder: Path, settings: Mapping[str, Any]) -> None:
    """Make the folder of a run, or check that it is the folder of this one."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = json.loads(json.dumps(dict(settings)))
    if (folder / "manifest.json").exists():
        known = read_manifest(folder)["settings"]
        for name in sorted({*known, *wanted}):
            if known.get(name) != wanted.get(name):
                raise ValueError(
                    f"{folder} is a run with another {name!r}: {known.get(name)!r} there, "
                    f"{wanted.get(name)!r} now. Take another folder, or the settings it has."
                )
    else:
        manifest = {"schema": SCHEMA, "eblime": __version__, "settings": wanted}
        write_whole(folder / "manifest.json", (json.dumps(manifest, indent=1) + "\n").encode())


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One driver a folder; the lock goes with its process, however that ends."""
    try:
        import fcntl
    except ImportError:  # no such locks here: one driver is the user's own care
        yield
        return
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RuntimeError(f"{folder} is being written by another process.") from error
        for left in folder.glob(".*.tmp"):  # what a crash left
            left.unlink(missing_ok=True)
        yield


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a run is about."""
    path = folder / "manifest.json"
    if not path.exists():
        raise FileNotFoundError(f"{folder} is no run: it has no manifest.json.")
    try:
        found = json.loads(path.read_text(encoding="utf8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}.") from error
    if found.get("schema", 0) > SCHEMA:
        raise ValueError(
            f"{folder} has schema {found['schema']}; this eblime reads up to {SCHEMA}. Update it."
        )
    return dict(found)


def part_path(folder: Path, part: int) -> Path:
    """Where a part is."""
    return folder / f"part-{part:06d}.parquet"


def write_part(folder: Path, part: int, rows: Mapping[str, Sequence[Any]]) -> None:
    """Write a part: whole, or not at all."""
    pa, pq = _arrow()
    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in COLUMNS])
    table = pa.table(dict(rows), schema=schema)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    write_whole(part_path(folder, part), sink.getvalue().to_pybytes())


def done_parts(folder: Path, parts: Sequence[int]) -> set[int]:
    """Parts that are there and whole; one that is cut short is taken away and done again."""
    _, pq = _arrow()
    done = set()
    for part in parts:
        path = part_path(folder, part)
        if not path.exists():
            continue
        try:
            pq.read_metadata(path)
            done.add(part)
        except Exception:  # whatever damage makes of a Parquet file
            path.unlink()
    return done


def _arrow() -> tuple[Any, Any]:
    """pyarrow, or a word on where to get it."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError("Runs need pyarrow: pip install 'eblime[batch]'.") from error
    return pa, pq
