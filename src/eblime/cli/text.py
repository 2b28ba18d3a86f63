"""`eblime explain text` and `eblime batch text`: where texts come from, and the text options."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from operator import not_
from pathlib import Path
from typing import Any

from eblime.cli.output import file_items
from eblime.domains.record import Command, Item, Option
from eblime.domains.text import read_text_file

_TABLES = (".csv", ".tsv", ".jsonl", ".parquet")


def items(argument: str, model: Callable[[], Any], options: Mapping[str, Any]) -> list[Item]:
    """The text itself, a file, the .txt files of a folder, or standard input for `-`."""
    if argument == "-":
        return [Item("standard input", "text", sys.stdin.read())]
    if not argument.strip():  # an empty path would be the current folder
        raise ValueError("The text must not be empty.")
    path = Path(argument)
    try:
        exists = path.exists()
    except OSError:  # too long for a path: it is the text
        exists = False
    if exists and path.suffix.lower() in _TABLES:
        raise ValueError(
            f"{argument!r} is a table; `eblime batch text` explains each of its texts."
        )
    if exists:
        return file_items(path, (".txt",), read_text_file)
    if path.suffix.lower() == ".txt" and " " not in argument:
        raise FileNotFoundError(f"There is no text file {argument!r}.")
    return [Item("text", "text", argument)]


COMMAND = Command(
    help="Explain a text by its words, sentences or characters.",
    metavar="TEXT",
    argument="The text itself, a .txt file, a folder of them, or - for standard input.",
    example="eblime explain text reviews/ --model sentiment.skops",
    batch_argument='A folder, a .jsonl file, or a table with the column "text".',
    items=items,
    inputs=lambda argument, model, options: argument,  # `explain_many` reads it
    defaults={"design": "paired"},
    options=[
        Option("tokens", "word, sentence, char or a pattern.", default="word", commas=True),
        Option("positions", "Each occurrence counts.", type=bool, setting="bag", parse=not_),
        Option("hide", "Replacement of a hidden word, such as [MASK]. Default: none.", default=""),
    ],
)
