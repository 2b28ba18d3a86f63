"""`eblime explain tabular` and `eblime batch tabular`: tables, rows and the table options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eblime.cli.options import used_by
from eblime.domains.record import Command, Item, Option

if TYPE_CHECKING:
    import pandas as pd


_ENDINGS = (".csv", ".tsv", ".parquet")
_LARGE = 200 << 20  # bytes; a larger table is not read whole to be its own background


def items(argument: str, model: Callable[[], Any], options: Mapping[str, Any]) -> list[Item]:
    """Rows of a table."""
    path = Path(argument)
    table, background = read_table(path), read_table(_background(argument, options))
    for name in _listed(options["drop"]):
        if name not in table.columns and name not in background.columns:
            raise ValueError(f"--drop must name columns of the table; there is no {name!r}.")
    get_row = table.iloc.__getitem__
    return [
        Item(f"{path.name}, row {row}", f"{path.stem}-row{row}", partial(get_row, row))
        for row in parse_rows(options["row"], len(table))
    ]


def inputs(argument: str, model: Callable[[], Any], options: Mapping[str, Any]) -> str:
    """All rows of a table, which must be fit to be the background if there is no other."""
    if options["background"] is None:
        path = Path(argument)
        is_table = path.is_file() and path.suffix.lower() in _ENDINGS
        if not is_table or path.stat().st_size > _LARGE:
            raise ValueError(
                "--background must name a table of usual values, such as the training data: "
                f"{argument} cannot be read whole."
            )
    return argument


def explainer(
    model: Any, settings: Mapping[str, Any], options: Mapping[str, Any], argument: str
) -> Any:
    """A `TabularExplainer` with a background that has the model's columns."""
    from eblime.explainers.tabular import TabularExplainer

    table = match_columns(read_table(_background(argument, options)), model, options["drop"])
    return TabularExplainer(model, table, **settings)


def read_table(path: Path) -> pd.DataFrame:
    """A pandas frame from a .csv, .tsv or .parquet file."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no table {str(path)!r}.")
    return _read_table(path.resolve(), path.stat().st_mtime_ns)


@lru_cache(maxsize=2)  # the rows and the background, which are often the same file
def _read_table(path: Path, time: int) -> pd.DataFrame:
    """A file of this time as a frame, which must not be changed."""
    from eblime._pandas import pd, read_csv

    suffix = path.suffix.lower()
    if suffix not in _ENDINGS:
        raise ValueError(f"Tables must be .csv, .tsv or .parquet files; got {str(path)!r}.")
    try:
        table = pd.read_parquet(path) if suffix == ".parquet" else read_csv(path, suffix)
    except ValueError as error:
        raise ValueError(f"{str(path)!r} cannot be read as a table: {error}") from error
    if len(table.columns) == 1 and ";" in str(table.columns[0]):
        raise ValueError(
            f"{str(path)!r} must be separated by commas, or by tabs with the ending .tsv; its "
            "first line has semicolons."
        )
    return table


def parse_rows(text: str, count: int) -> list[int]:
    """Rows by number: `3`, `3,7` or `0:10`, all of them inside the table."""
    rows: list[int] = []
    try:
        for part in text.split(","):
            start, colon, end = part.partition(":")
            rows += range(int(start or 0), int(end or count)) if colon else [int(part)]
    except ValueError as error:
        raise ValueError(f"--row must be like 3, or 3,7, or 0:10; got {text!r}.") from error
    outside = [row for row in rows if not 0 <= row < count]
    if outside or not rows:
        got = f"got {outside[0]}" if outside else "got none"
        raise ValueError(f"--row must be from 0 to {count - 1}, the rows of the table; {got}.")
    return rows


def match_columns(table: pd.DataFrame, model: Any, drop: str) -> pd.DataFrame:
    """The columns that the model was trained on, in its order, where it knows their names."""
    kept = table.drop(columns=[name for name in _listed(drop) if name in table.columns])
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


def parse_groups(entries: list[str]) -> dict[str, list[str]] | None:
    """Groups of columns: `job=job_a,job_b`."""
    groups = {}
    for entry in entries:
        name, equals, columns = entry.partition("=")
        if not (name and equals and columns):
            raise ValueError(f"--group must be like job=job_a,job_b; got {entry!r}.")
        groups[name] = columns.split(",")
    return groups or None


def _listed(text: str) -> list[str]:
    """Names in `a,b`."""
    return [name for name in text.split(",") if name]


def _background(argument: str, options: Mapping[str, Any]) -> Path:
    """The table that shows which values are usual: --background, or the table itself."""
    return Path(options["background"] or argument)


COMMAND = Command(
    help="""Explain rows of a table by its columns.

    Columns that the model was trained on are found by their names; others are left out. Hidden
    columns take their values from rows of the background.
    """,
    metavar="DATA",
    argument="A .csv, .tsv or .parquet file.",
    example="eblime explain tabular data.csv --model m.skops --background train.csv",
    batch_argument="A table, .jsonl too, or a folder of .parquet files, here or such as s3://b/rows.",
    items=items,
    inputs=inputs,
    explainer=explainer,
    options=[
        *used_by(
            "inputs",
            Option("row", "Which rows, from 0: 3, or 3,7, or 0:10.", default="0", batch=False),
            Option("background", "Table of usual values. Default: the table.", type=Path),
            Option("drop", "Columns that the model does not take: a,b.", default=""),
        ),
        Option(
            "group",
            "Columns that change together as one feature: job=job_a,job_b. May be repeated.",
            many=True,
            setting="groups",
            parse=parse_groups,
        ),
        Option(
            "rows_per_mask",
            "The most rows of the background that are kept; a score is their mean.",
            type=int,
            default=100,
            minimum=1,
        ),
    ],
)
