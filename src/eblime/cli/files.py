"""What a command leaves behind: explanation, numbers, picture and page, side by side."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Sequence
from pathlib import Path

from eblime._files import write_whole
from eblime.results.explanation import Explanation

__all__ = ["free_names", "json_line", "make_folder", "target_names", "write_all"]


def make_folder(path: Path) -> Path:
    """The folder to write to, made where it is missing; refused before any model call."""
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"--out must be a folder; {str(path)!r} is a file.")
    path.mkdir(parents=True, exist_ok=True)
    probe = path / ".eblime-write-test"
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise PermissionError(f"--out must be writable; {str(path)!r} is not ({error}).") from error
    return path


def write_all(
    explanation: Explanation, folder: Path, name: str, *, title: str, prob: float, top: int
) -> list[Path]:
    """NAME.eblime, NAME.json, NAME.png and NAME.html, in this order of worth."""
    from eblime.plot.poster import poster

    paths = [folder / f"{name}{suffix}" for suffix in (".eblime", ".json", ".png", ".html")]
    k = min(top, explanation.scene.n_features)
    explanation.save(paths[0])
    write_whole(paths[1].resolve(), f"{explanation.to_json(prob, k)}\n".encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a font without some sign draws a box instead
        poster(explanation, k).savefig(paths[2], dpi=100)
    explanation.to_html(paths[3], title=title)
    return paths


def json_line(explanation: Explanation, prob: float, top: int) -> str:
    """The numbers on one line, for other programs."""
    k = min(top, explanation.scene.n_features)
    return json.dumps(json.loads(explanation.to_json(prob, k)), allow_nan=False)


def target_names(name: str, explanations: Sequence[Explanation]) -> list[str]:
    """Names of an input's files: its own for one target, else with each target's label."""
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


def free_names(paths: list[Path], out: Path | None = None) -> list[str]:
    """A name for each input's files, no two alike, and none that would overwrite an input."""
    stems = [path.stem for path in paths]
    beside = out is not None and any(out.resolve() == path.resolve().parent for path in paths)
    names: list[str] = []
    for path in paths:
        name = path.name if stems.count(path.stem) > 1 else path.stem
        name = f"{name}-explained" if beside else name
        k = 2
        while name in names:
            name, k = f"{name}-{k}", k + 1
        names.append(name)
    return names
