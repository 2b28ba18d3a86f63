"""Result files of a command: explanation, numbers, picture and page."""

from __future__ import annotations

import io
import json
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eblime._files import write_whole
from eblime.results.explanation import Explanation

__all__ = [
    "free_names",
    "json_line",
    "make_folder",
    "save_figure",
    "target_names",
    "unique",
    "write_all",
]


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
    found: list[str] = []
    for explanation in explanations:
        label = re.sub(r"\W+", "-", explanation.label).strip("-")[:40]
        own = f"{name}-{label or explanation.target}"
        if own.lower() in (other.lower() for other in found):  # some disks ignore case
            own = f"{own}-{explanation.target}"
        found.append(own)
    return found


def free_names(paths: Sequence[Path]) -> list[str]:
    """A name for the result files of each input file, no two the same."""
    count = Counter(path.stem.lower() for path in paths)
    return unique([path.name if count[path.stem.lower()] > 1 else path.stem for path in paths])


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
