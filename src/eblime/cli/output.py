"""What commands print and write: messages, tables, progress bars, files and pages."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import tempfile
import warnings
import webbrowser
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from eblime._files import write_whole
from eblime._table import number_table
from eblime._text import printable, width
from eblime.domains.record import Item
from eblime.results.explanation import Explanation
from eblime.results.notes import fit_sentence, footer

_BAR = 28  # characters of a bar where there is room
_SHORTEST = 8  # characters of a bar or a name
_LONGEST = 44  # characters of a feature's name


def say(text: str, *, error: bool = False) -> None:
    """Print plain text: markup and control characters in it have no effect."""
    stream = sys.stderr if error else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf8"
    shown = "\n".join(printable(line) for line in text.split("\n"))
    print(shown.encode(encoding, "backslashreplace").decode(encoding), file=stream)


def print_explanation(explanation: Explanation, *, prob: float, top: int) -> None:
    """Print a coloured table with bars on a terminal, and the plain table in a pipe."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        say(f"{explanation.headline}\n{explanation.table(prob, top)}")
    else:
        console.print(Text(explanation.headline, style="bold"))
        console.print(Text(fit_sentence(explanation), style="dim"))
        for line in _table(explanation, prob, top, console.width):
            console.print(line, no_wrap=True, overflow="ellipsis")
    for sentence in footer(explanation):
        text = Text(sentence, style="yellow" if sentence.startswith("Note: ") else "dim")
        # broken between words on a terminal, one line each in a pipe
        console.print(text, soft_wrap=not console.is_terminal)


def _table(explanation: Explanation, prob: float, top: int, columns: int) -> Iterator[Text]:
    """The top features, with a bar for each interval if the terminal is wide enough."""
    post = explanation.posterior
    order = post.order()[:top]
    mean = post.mean[order]
    ends, likely = np.stack([mean, mean], axis=1), []
    head, shown = ["", "mean"], [mean]
    if post.has_spread:
        found = post.select(order).columns(prob)
        ends = np.stack([found["low"], found["high"]], axis=1)
        likely = [f"{value:.3f}" for value in found["prob_positive"]]
        head, shown = [*head, f"{100 * prob:g}% low", "high", "P(>0)"], [mean, *ends.T]
    numbers = number_table(head, [""] * len(order), [shown], likely)
    names = ["feature", *(printable(explanation.features[j]) for j in order)]
    space = max(_SHORTEST, columns - len(numbers[0]))
    longest = min(_LONGEST, space, max(map(width, names)))
    room = min(_BAR, space - longest - 2)
    limits = min(0.0, ends.min()), max(0.0, ends.max())
    for k, (name, line) in enumerate(zip(names, numbers, strict=True)):
        row = Text(name, style="" if k else "dim")
        row.truncate(longest, overflow="ellipsis", pad=True)
        if room >= _SHORTEST:
            low, high = ends[k - 1]
            colour = "green" if low > 0 else "dark_orange" if high < 0 else "bright_black"
            bar = _bar((low, mean[k - 1], high), limits, room) if k else " " * room
            row.append(f"  {bar}", style=colour)
        yield row.append(line)


def _bar(marks: tuple[float, float, float], limits: tuple[float, float], room: int) -> str:
    """An interval with its mean, drawn in characters; zero is a thin line."""
    start, end = limits
    span = (end - start) or 1.0
    low, mean, high = (round((room - 1) * (mark - start) / span) for mark in marks)
    zero = round((room - 1) * (0 - start) / span)
    signs = [" "] * room
    signs[zero] = "│"
    signs[low : high + 1] = "━" * (high - low + 1)
    signs[mean] = "●"
    return "".join(signs)


def show_page(page: object, *, error: bool = False) -> None:
    """Open a page in a browser; without one, or for a page in a store, say where the page is."""
    local = Path(str(page))
    if not (local.exists() and open_page(local)):
        say(f"No graphical browser here; the page is {page}.", error=error)


def open_page(path: Path) -> bool:
    """Open a page in a graphical browser; returns False if there is none. Does not wait for it."""
    screen = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if not screen:
        return False
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    if type(browser) is webbrowser.GenericBrowser:  # a text browser would take over the terminal
        return False
    return bool(browser.open(path.resolve().as_uri()))


def make_folder(path: Path) -> Path:
    """Create the folder for the results, or refuse it, before any model call."""
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"--out must be a folder; {str(path)!r} is a file.")
    path.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryFile(dir=path):  # a file of its own: another command may do the same
            pass
    except OSError as error:
        raise PermissionError(f"--out must be writable; {str(path)!r} is not ({error}).") from error
    return path


def write_all(
    explanation: Explanation, folder: Path, name: str, *, title: str, prob: float, top: int
) -> list[Path]:
    """Write NAME.eblime, NAME.json, NAME.png and NAME.html; returns their paths in this order."""
    from eblime.plot.poster import poster

    paths = [folder / f"{name}{suffix}" for suffix in (".eblime", ".json", ".png", ".html")]
    k = min(top, explanation.scene.n_features)
    explanation.save(paths[0])
    write_whole(paths[1].resolve(), f"{explanation.to_json(prob, k)}\n".encode())
    save_figure(poster(explanation, k), paths[2], dpi=100)
    explanation.to_html(paths[3], title=title)
    return paths


def save_figure(figure: Any, path: Path, *, dpi: int) -> None:
    """Write a picture, which appears whole or not at all; without a suffix it is a .png file."""
    file = (path if path.suffix else path.with_suffix(".png")).resolve()
    if not file.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(path.parent)!r} for {path.name!r}.")
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a font without some character draws a box instead
        figure.savefig(content, format=file.suffix[1:], dpi=dpi)
    write_whole(file, content.getvalue())


def json_line(explanation: Explanation, prob: float, top: int) -> str:
    """The numbers on one line, for other programs."""
    k = min(top, explanation.scene.n_features)
    return json.dumps(json.loads(explanation.to_json(prob, k)), allow_nan=False)


def target_names(name: str, explanations: Sequence[Explanation]) -> list[str]:
    """Names of an input's files: its own for one target, otherwise with each target's label."""
    if len(explanations) == 1:
        return [name]
    labels = [re.sub(r"\W+", "-", entry.label).strip("-")[:40] for entry in explanations]
    return unique(
        [f"{name}-{label or e.target}" for label, e in zip(labels, explanations, strict=True)]
    )


def file_items(
    path: Path, endings: Sequence[str], read: Callable[[Path], Any], kind: str = "text"
) -> list[Item]:
    """A file, or those of a folder with these endings, each read when its turn comes."""
    if not path.exists():
        raise FileNotFoundError(f"There is no {kind} or folder {str(path)!r}.")
    paths = [path]
    if path.is_dir():
        paths = sorted(e for e in path.iterdir() if e.name.lower().endswith(tuple(endings)))
        if not paths:
            either = " or ".join(filter(None, [", ".join(endings[:-1]), endings[-1]]))
            raise FileNotFoundError(f"The folder {str(path)!r} has no file that ends in {either}.")
    count = Counter(entry.stem.lower() for entry in paths)
    names = unique([entry.name if count[entry.stem.lower()] > 1 else entry.stem for entry in paths])
    return [
        Item(entry.name, name, partial(read, entry), entry)
        for entry, name in zip(paths, names, strict=True)
    ]


def unique(names: Sequence[str]) -> list[str]:
    """The names, with -2, -3, ... added to those that are taken; some disks ignore case."""
    found: list[str] = []
    taken: set[str] = set()
    for wanted in names:
        name, k = wanted, 2
        while name.lower() in taken:
            name, k = f"{wanted}-{k}", k + 1
        found.append(name)
        taken.add(name.lower())
    return found
