"""`eblime explain prompt` and `eblime batch prompt`: questions, sources and the prompt options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from eblime.cli import text
from eblime.domains.prompt import SEGMENTATIONS
from eblime.domains.record import Command, Item, Option
from eblime.domains.text import read_text_file
from eblime.models.likelihood import SCORES


def items(argument: str, model: Callable[[], Any], options: Mapping[str, Any]) -> list[Item]:
    """The question itself, a file, the .txt files of a folder, or standard input for `-`."""
    answer = options["answer"]
    found = text.items(argument, model, options)
    if answer is None:
        return found
    if len(found) > 1:
        raise ValueError("--answer is for one question; there are several.")
    item = found[0]
    return [item._replace(input=lambda: {"question": item.read(), "answer": answer})]


COMMAND = Command(
    help="""Explain a language model's answer by its sources.

    The answer is that of the model, unless --answer gives another one. --targets explains as many
    of its sentences too, and --target one of them, by its number or its text.
    """,
    metavar="QUESTION",
    argument="The question itself, a .txt file, a folder of them, or - for standard input.",
    example="eblime explain prompt questions/ --sources notes/ --model http://localhost:8000/v1",
    batch_argument='A folder, a .jsonl file, or a table with the column "question".',
    items=items,
    inputs=lambda argument, model, options: argument,  # `explain_many` reads it
    defaults={"masks": 64},
    options=[
        Option("sources", "Folder or file with the sources.", type=Path, required=True, parse=Path),
        Option(
            "prompt",
            "File with {sources} and {question}.",
            type=Path,
            parse=lambda path: read_text_file(Path(path)),
        ),
        Option(
            "answer", "The answer to explain. Default: the model's.", used_by="inputs", batch=False
        ),
        Option(
            "segmentation", f"Parts of a text: {', '.join(SEGMENTATIONS)}.", default="paragraph"
        ),
        Option("score", f"Score of an answer: {', '.join(SCORES)}.", default="mean"),
    ],
)
