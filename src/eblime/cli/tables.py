"""Tables and texts as the command line reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TextIO

from eblime.cli.files import free_names
from eblime.cli.running import Item

__all__ = ["find_texts", "match_columns", "parse_groups", "parse_rows", "read_table"]


def read_table(path: Path) -> Any:
    """A pandas frame from a .csv, .tsv or .parquet file."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("Reading tables needs pandas: pip install 'eblime[frame]'.") from error
    if not path.is_file():
        raise FileNotFoundError(f"There is no table {str(path)!r}.")
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return pd.read_parquet(path)
    if suffix not in (".csv", ".tsv"):
        raise ValueError(f"Tables must be .csv, .tsv or .parquet files; got {str(path)!r}.")
    try:
        return pd.read_csv(path, sep="\t" if suffix == ".tsv" else ",")
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(f"{str(path)!r} cannot be read as a table: {error}") from error


def parse_rows(words: str, count: int) -> list[int]:
    """Rows by number: `3`, `3,7` or `0:10`, all of them inside the table."""
    rows: list[int] = []
    try:
        for part in words.split(","):
            start, colon, end = part.partition(":")
            rows += range(int(start or 0), int(end or count)) if colon else [int(part)]
    except ValueError as error:
        raise ValueError(f"--row must be such as 3, or 3,7, or 0:10; got {words!r}.") from error
    outside = [row for row in rows if not 0 <= row < count]
    if outside or not rows:
        named = f"got {outside[0]}" if outside else "got none"
        raise ValueError(f"--row must be from 0 to {count - 1}, the rows of the table; {named}.")
    return rows


def match_columns(table: Any, model: Any, drop: str) -> Any:
    """The columns that the model was trained on, in its order, where it knows their names."""
    unwanted = [name for name in drop.split(",") if name]
    unknown = [name for name in unwanted if name not in table.columns]
    if unknown:
        raise ValueError(f"--drop must name columns of the table; there is no {unknown[0]!r}.")
    kept = table.drop(columns=unwanted)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return kept
    absent = [str(name) for name in names if name not in kept.columns]
    if absent:
        raise ValueError(
            f"The table must have the columns that the model was trained on; missing: "
            f"{', '.join(map(repr, absent[:8]))}."
        )
    return kept[list(names)]


def parse_groups(words: list[str]) -> dict[str, list[str]] | None:
    """Groups of columns: `job=job_a,job_b`."""
    groups = {}
    for entry in words:
        name, equals, columns = entry.partition("=")
        if not (name and equals and columns):
            raise ValueError(f"--group must be such as job=job_a,job_b; got {entry!r}.")
        groups[name] = columns.split(",")
    return groups or None


def find_texts(given: str, stdin: TextIO) -> list[Item]:
    """The text itself, a file, the .txt files of a folder, or standard input for `-`."""
    if given == "-":
        return [("standard input", "text", stdin.read())]
    path = Path(given)
    try:
        there, folder = path.exists(), path.is_dir()
    except OSError:  # too long for a path: it is the text
        there, folder = False, False
    if folder:
        paths = sorted(entry for entry in path.iterdir() if entry.suffix.lower() == ".txt")
        if not paths:
            raise FileNotFoundError(f"The folder {given!r} has no .txt file.")
        names = free_names(paths)
        return [(p.name, name, _read(p)) for p, name in zip(paths, names, strict=True)]
    if there:
        return [(path.name, path.stem, _read(path))]
    if path.suffix.lower() == ".txt" and " " not in given:
        raise FileNotFoundError(f"There is no text file {given!r}.")
    return [("text", "text", given)]


def _read(path: Path) -> str:
    """A text file as it is, line ends included."""
    try:
        return path.read_bytes().decode("utf8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{str(path)!r} must be a text in UTF-8: {error}.") from error
