"""What the terminal shows: tables, progress, a browser where there is one."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from eblime._table import decimals, written
from eblime._text import printable, width
from eblime.reporting.diagnostics import cautions, fit_sentence
from eblime.results.explanation import Explanation

__all__ = ["asking", "open_page", "print_explanation", "say"]

_BAR = 28


def say(words: str, *, error: bool = False) -> None:
    """One line of plain words: no markup, no colour codes of anybody else's."""
    stream = sys.stderr if error else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf8"
    shown = "\n".join(printable(line) for line in words.split("\n"))
    print(shown.encode(encoding, "backslashreplace").decode(encoding), file=stream)


def print_explanation(explanation: Explanation, *, prob: float, top: int) -> None:
    """A coloured table with bars on a terminal, the plain table in a pipe."""
    console = Console(highlight=False, markup=False, emoji=False)
    head = f"{printable(explanation.label)}: predicted {explanation.prediction:.4g}"
    if not console.is_terminal:
        say(f"{head}\n{explanation.table(prob, top)}")
    else:
        console.print(Text(head, style="bold"))
        console.print(Text(fit_sentence(explanation), style="dim"))
        console.print(_table(explanation, prob, top, console.width))
    for note in cautions(explanation):
        console.print(Text(f"Note: {note}", style="yellow"), soft_wrap=True)


def _table(explanation: Explanation, prob: float, top: int, columns: int) -> Table:
    """The first features with a bar for each interval, where the terminal has room for it."""
    post = explanation.posterior
    order = np.argsort(-np.abs(post.mean), kind="stable")[:top]
    certain = post.has_spread
    mean = post.mean[order]
    ends = post.interval(prob)[order] if certain else np.stack([mean, mean], axis=1)
    start, end = min(0.0, ends.min()), max(0.0, ends.max())
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("feature", max_width=44, overflow="ellipsis", no_wrap=True)
    longest = min(44, max(width(printable(explanation.features[j])) for j in order))
    room = min(_BAR, columns - longest - (52 if certain else 16))
    if room >= 8:
        table.add_column("", no_wrap=True)
    for name in ("mean", *((f"{100 * prob:g}% low", "high", "P(>0)") if certain else ())):
        table.add_column(name, justify="right", no_wrap=True)
    digits = decimals([mean, ends.ravel()])
    chance = post.prob_positive()[order] if certain else None
    for place, j in enumerate(order):
        low, high = ends[place]
        colour = "green" if low > 0 else "dark_orange" if high < 0 else "bright_black"
        cells = [
            Text(printable(explanation.features[j])),
            *(
                [Text(_bar((low, mean[place], high), start, end, room), style=colour)]
                if room >= 8
                else []
            ),
            Text(written(mean[place], digits), style="bold"),
        ]
        if chance is not None:
            cells += [Text(written(end_, digits)) for end_ in (low, high)]
            cells.append(Text(f"{chance[place]:.3f}"))
        table.add_row(*cells)
    return table


def _bar(marks: tuple[float, float, float], start: float, end: float, room: int) -> str:
    """An interval with its mean, in characters; zero is a thin line."""
    span = (end - start) or 1.0
    low, mean, high = (round((room - 1) * (mark - start) / span) for mark in marks)
    zero = round((room - 1) * (0 - start) / span)
    signs = [" "] * room
    signs[zero] = "│"
    signs[low : high + 1] = "━" * (high - low + 1)
    signs[mean] = "●"
    return "".join(signs)


@contextmanager
def asking(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal, silence in a pipe; the function is told (done, total)."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda done, total: None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
    )
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(printable(what), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def open_page(path: Path) -> bool:
    """Show a page in a graphical browser, where there is one and a screen; never waits for it."""
    screen = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if not screen:
        return False
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    if type(browser) is webbrowser.GenericBrowser:  # a text browser, which takes the terminal
        return False
    return bool(browser.open(path.resolve().as_uri()))
