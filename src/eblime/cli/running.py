"""Explain inputs one after the other, and write the results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from eblime._files import write_whole
from eblime._text import csv_text
from eblime.cli.domain_commands import in_options
from eblime.cli.files import json_line, save_figure, target_names, unique, write_all
from eblime.cli.terminal import print_explanation, progress_bar, say, show_page
from eblime.domains.record import Item
from eblime.results.comparison import Comparison
from eblime.results.explanation import Explanation

__all__ = ["Showing", "first_line", "run_all", "write_comparison"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """How results are shown."""

    prob: float  # level of the intervals
    top: int  # features to print and to mark
    json: bool  # print JSON instead of tables
    open: bool  # open the first page in a browser


def run_all(
    items: Sequence[Item],
    explain: Callable[[Item, Callable[[int, int], None]], Sequence[Explanation]],
    out: Path,
    showing: Showing,
    *,
    command: Sequence[str],
    also: Callable[[Item, str], None] | None = None,
) -> None:
    """Explain inputs one after the other; one that fails is reported and does not stop the rest.

    Parameters
    ----------
    items
        The inputs.
    explain
        Returns one explanation for each target; several targets have files of their own.
    out
        Folder for the results.
    showing
        How to show them.
    command
        The first words of the command, for error messages.
    also
        Called after the files of an input were written, with the input and the name of its files.
    """
    failed = 0
    pages: list[Path] = []
    for item, stem in zip(items, _stems(items, out), strict=True):
        try:
            aside = redirect_stdout(sys.stderr) if showing.json else nullcontext()
            with aside, progress_bar(item.title, quiet=showing.json) as progress:
                explanations = explain(item, progress)
        except Exception as error:
            if len(items) == 1:
                raise
            failed += 1
            say(f"{item.title}: {first_line(error, command)}", error=True)
            continue
        if len(items) > 1 and not showing.json:
            say(f"\n{item.title}")
        pages += _write(explanations, out, item.title, stem, showing)
        if also is not None:
            also(item, stem)
    if showing.open and pages:
        show_page(pages[0], error=showing.json)
    if failed:
        raise RuntimeError(f"{failed} of {len(items)} inputs failed; the others are in {out}.")


def first_line(error: BaseException, command: Sequence[str] = ()) -> str:
    """An error's message on one line, with options in place of Python's parameters."""
    message = _without_number(error).strip() or type(error).__name__
    return in_options(" ".join(message.split()), command)


def _without_number(error: BaseException) -> str:
    """An error's message; that of the operating system without "[Errno 2]"."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.strerror}: {str(error.filename)!r}."
    return str(error)


def _write(
    explanations: Sequence[Explanation], out: Path, title: str, stem: str, showing: Showing
) -> list[Path]:
    """Write and print the explanations of one input; returns their pages."""
    pages = []
    prob, top = showing.prob, showing.top
    for explanation, name in zip(explanations, target_names(stem, explanations), strict=True):
        heading = f"{title}: why {explanation.label!r}?"
        written = write_all(explanation, out, name, title=heading, prob=prob, top=top)
        pages.append(written[-1])
        if showing.json:
            say(json_line(explanation, prob, top))
            continue
        print_explanation(explanation, prob=prob, top=top)
        say("Wrote " + ", ".join(str(file) for file in written) + ".")
    return pages


def write_comparison(comparison: Comparison, stem: Path, showing: Showing) -> None:
    """Write STEM-methods.csv and STEM-methods.png, and print the table."""
    paths = [stem.with_name(f"{stem.name}-methods{ending}") for ending in (".csv", ".png")]
    write_whole(paths[0].resolve(), csv_text(comparison.to_frame(showing.prob)).encode())
    save_figure(comparison.plot(top=showing.top, prob=showing.prob).figure, paths[1], dpi=110)
    if not showing.json:
        say(comparison.table(showing.top, showing.prob))
        for note in comparison.notes():
            say(f"Note: {note}")
        say("Wrote " + ", ".join(str(path) for path in paths) + ".")


def _stems(items: Sequence[Item], out: Path) -> list[str]:
    """Names of the result files: no two the same, and none that overwrites an input."""
    folders = {item.path.resolve().parent for item in items if item.path is not None}
    ending = "-explained" if out.resolve() in folders else ""
    return unique([f"{item.stem}{ending}" for item in items])
