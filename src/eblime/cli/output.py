"""What commands print and write: messages, tables, progress bars, files and pages."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
import warnings
import webbrowser
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eblime._files import write_whole
from eblime._text import one_of, printable
from eblime.batch.location import Location
from eblime.domains.record import Item

if TYPE_CHECKING:
    from eblime.batch.inputs import Files
    from eblime.results.explanation import Explanation


def say(text: str, *, error: bool = False, **style: Any) -> None:
    """Print plain text, styled on a terminal: control characters in it have no effect."""
    shown = "\n".join(printable(line) for line in text.split("\n"))
    click.secho(shown, file=sys.stderr if error else sys.stdout, **style)


def print_explanation(explanation: Explanation, *, prob: float, top: int) -> None:
    """Print the table and the sentences about it, which a terminal breaks between words."""
    from eblime.results.notes import footer

    say(explanation.headline, bold=True)
    say(explanation.table(prob, top))
    for sentence in footer(explanation):
        broken = click.wrap_text(sentence, shutil.get_terminal_size().columns)
        style = "yellow" if sentence.startswith("Note: ") else None
        say(broken if sys.stdout.isatty() else sentence, fg=style)


def show_page(page: object, *, error: bool = False) -> None:
    """Open a page in a browser; without one, or for a page in a store, say where the page is."""
    local = Path(str(page))
    screen = sys.platform in ("darwin", "win32") or {"DISPLAY", "WAYLAND_DISPLAY"} & {*os.environ}
    if not (local.exists() and screen and webbrowser.open(local.resolve().as_uri())):
        say(f"No graphical browser here; the page is {page}.", error=error)


def write_all(
    explanation: Explanation, folder: Path, name: str, *, title: str, prob: float, top: int
) -> list[Path]:
    """Write NAME.eblime, NAME.json, NAME.png and NAME.html; returns their paths in this order."""
    from eblime.plot.poster import poster

    Location.of(folder).make()
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
            raise FileNotFoundError(
                f"The folder {str(path)!r} has no file that ends in {one_of(endings)}."
            )
    names = unique([entry.stem for entry in paths])
    return [
        Item(entry.name, name, partial(read, entry), entry)
        for entry, name in zip(paths, names, strict=True)
    ]


def folder_files(argument: str, endings: tuple[str, ...], *, remote: bool = False) -> Files:
    """The files of a folder and its subfolders, for a run; `remote` allows a store."""
    from eblime.batch.inputs import find_files

    folder = Location.of(argument)
    if folder.kind() == "nothing" or not (remote or folder.local_path):
        raise FileNotFoundError(f"There is no folder {argument!r}{'' if remote else ' here'}.")
    return find_files(folder, endings)


def unique(names: Sequence[str]) -> list[str]:
    """The names, with -2, -3, ... added to those that are taken; some disks ignore case."""
    found: dict[str, str] = {}
    for wanted in names:
        free = chain([wanted], (f"{wanted}-{k}" for k in count(2)))
        name = next(name for name in free if name.lower() not in found)
        found[name.lower()] = name
    return [*found.values()]
