"""Explain inputs one after the other, and write what comes of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

from eblime.cli.files import json_line, target_names, write_all
from eblime.cli.options import in_options
from eblime.cli.terminal import asking, open_page, print_explanation, say
from eblime.results.explanation import Explanation

__all__ = ["Item", "first_line", "run_all"]

Item = tuple[str, str, Any]  # what people call it, the name of its files, the input


def run_all(
    items: Sequence[Item],
    explain: Callable[[Any, Callable[[int, int], None]], Sequence[Explanation]],
    out: Path,
    *,
    prob: float,
    top: int,
    as_json: bool,
    show: bool,
) -> None:
    """Explain inputs one after the other; one that fails is reported and does not stop the rest.

    An input has an explanation for each of its targets; several have files of their own each.
    """
    failed = 0
    pages = []
    for title, name, given in items:
        try:
            aside = redirect_stdout(sys.stderr) if as_json else nullcontext()
            with aside, asking(title, quiet=as_json) as progress:
                explanations = explain(given, progress)
        except Exception as error:
            if len(items) == 1:
                raise
            failed += 1
            say(f"{title}: {first_line(error)}", error=True)
            continue
        if len(items) > 1 and not as_json:
            say(f"\n{title}")
        for explanation, own in zip(explanations, target_names(name, explanations), strict=True):
            heading = f"{title}: why {explanation.label!r}?"
            written = write_all(explanation, out, own, title=heading, prob=prob, top=top)
            pages.append(written[-1])
            if as_json:
                say(json_line(explanation, prob, top))
                continue
            print_explanation(explanation, prob=prob, top=top)
            say("Wrote " + ", ".join(str(file) for file in written) + ".")
    if show and pages and not open_page(pages[0]):
        say(f"No graphical browser here; the page is {pages[0]}.", error=as_json)
    if failed:
        raise RuntimeError(f"{failed} of {len(items)} inputs failed; the others are in {out}.")


def first_line(error: BaseException) -> str:
    """An error's message on one line, with options in place of Python's parameters."""
    words = str(error).strip() or type(error).__name__
    return in_options(" ".join(words.split()))
