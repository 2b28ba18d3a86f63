"""`eblime demo`, `show` and `compare`, and how every command prints and writes its results."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import warnings
import webbrowser
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from eblime._checks import check_level
from eblime._files import write_whole
from eblime._text import printable
from eblime.cli.options import JSON, OPEN, OUT, PROB, TOP, OptionCommand
from eblime.domains.record import Option

if TYPE_CHECKING:
    from eblime._types import BoolArray
    from eblime.results.explanation import Explanation


_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")


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


def print_pages(pages: Sequence[Path]) -> None:
    """Print pages to PDF files of the same names, with an installed Chromium or Chrome."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        raise ValueError(
            f"--pdf needs Chromium or Chrome: none of {', '.join(_BROWSERS)} was found. Open "
            f"{pages[0]} in a browser and print it there."
        )
    root = hasattr(os, "geteuid") and os.geteuid() == 0  # for whom Chromium has no sandbox
    flags = ["--headless", "--disable-gpu", "--no-pdf-header-footer", *["--no-sandbox"] * root]
    for page in pages:
        out = f"--print-to-pdf={page.with_suffix('.pdf')}"
        words = [browser, *flags, out, page.resolve(strict=True).as_uri()]
        subprocess.run(words, capture_output=True, check=True)
    say(f"Wrote {pages[0].with_suffix('.pdf')} and {len(pages) - 1} others in pages/ beside it.")


def write_all(
    explanation: Explanation,
    folder: Path,
    name: str,
    *,
    title: str,
    prob: float,
    top: int,
    truth: BoolArray | None = None,
) -> list[Path]:
    """Write NAME.eblime, NAME.json, NAME.png and NAME.html; returns their paths in this order."""
    from eblime.plot.poster import poster

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}{suffix}" for suffix in (".eblime", ".json", ".png", ".html")]
    k = min(top, explanation.scene.n_features)
    explanation.save(paths[0])
    write_whole(paths[1].resolve(), f"{explanation.to_json(prob, k)}\n".encode())
    save_figure(poster(explanation, k, truth=truth), paths[2], dpi=100)
    explanation.to_html(paths[3], title=title, truth=truth)
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


def unique(names: Sequence[str]) -> list[str]:
    """The names, with -2, -3, ... added to those that are taken; some disks ignore case."""
    found: dict[str, str] = {}
    for wanted in names:
        free = chain([wanted], (f"{wanted}-{k}" for k in count(2)))
        name = next(name for name in free if name.lower() not in found)
        found[name.lower()] = name
    return [*found.values()]


def _show(file: str, html: Path | None, png: Path | None, kind: str | None, **values: Any) -> None:
    """Print a saved explanation, write its picture or page, or open it.

    Example: eblime show eblime-out/dog.eblime --png dog.png --kind density
    """
    from eblime.plot.poster import poster
    from eblime.results.storage import load

    prob, top = check_level("prob", values["prob"]), values["top"]
    if kind and png is None:
        raise ValueError("--kind also needs --png, the file of the picture.")
    explanation = load(file)
    if png is not None:  # first, so that a wrong --kind prints no table
        figure = explanation.plot(kind).figure if kind else poster(explanation)
        save_figure(figure, png, dpi=110)
    if values["json"]:
        say(json_line(explanation, prob, top))
    else:
        print_explanation(explanation, prob=prob, top=top)
    page = html or (Path(file).with_suffix(".html") if values["open"] else None)
    if page is not None:
        explanation.to_html(page)
        if values["open"]:
            show_page(page, error=values["json"])


def _compare(first: str, second: str, prob: float, png: Path | None, **values: Any) -> None:
    """Compare two explanations of the same features, or two runs.

    A star marks the features of two runs whose mean |importance| differs.

    Example: eblime compare dog.eblime dog-bayeslime.eblime --png both.png

    Example: eblime compare run-forest/ run-boosting/
    """
    from eblime.results.comparison import Comparison
    from eblime.results.storage import load

    check_level("prob", prob)
    top = values["top"]
    if Path(first).is_dir() or Path(second).is_dir():
        if png is not None:
            raise ValueError("--png needs two .eblime files; got two runs.")
        say(_compare_runs(first, second, prob, top, json=values["json"]))
        return
    names = unique([Path(first).stem, Path(second).stem])
    both = Comparison(explanations=dict(zip(names, map(load, (first, second)), strict=True)))
    table = both.table(top, prob)
    if values["json"]:
        say(f"[{', '.join(json_line(both[name], prob, top) for name in names)}]")
    else:
        titles = [
            f"{name}: {both[name].label}, {both[name].posterior.method} "
            f"({both[name].posterior.fit_label()})"
            for name in names
        ]
        intervals = f"Means, with {100 * prob:g} % intervals in brackets:"
        say("\n".join([*titles, intervals, table, *map("Note: {}".format, both.notes(top, prob))]))
    if png is not None:
        save_figure(both.plot(top=top, prob=prob).figure, png, dpi=110)


def _compare_runs(first: str, second: str, prob: float, top: int, *, json: bool) -> str:
    """The differences in importance between two runs."""
    from eblime.batch.results import open_run

    table = open_run(first).compare(open_run(second), prob=prob).head(top)
    if json:
        return str(table.to_json(orient="records"))
    names = {"mean_abs": "first", "other_mean_abs": "second", "low": f"{100 * prob:g}% low"}
    table[""] = np.where((table["low"] > 0) | (table["high"] < 0), "*", "")
    columns = ["feature", "mean_abs", "other_mean_abs", "difference", "low", "high", ""]
    shown = table[columns].rename(columns=names).set_index("feature").rename_axis(None)
    text = shown.to_string(float_format="%.4g")
    return f"Mean |importance| over the inputs of both runs\n{text}"


_WHICH = 2  # of the scans that ship with the package


def _demo(out: Path, open: bool) -> None:
    """Explain an example: a defect in an ultrasonic scan.

    A small network that comes with eblime predicts that a printed block has a defect; the
    explanation shows where. Prints a table, and writes the explanation, its numbers, a picture and
    a page to the folder --out.

    Example: eblime demo --open
    """
    from eblime.datasets.ultrasonic import LABELS, sample_scans, ultrasonic_network
    from eblime.explainers.image import ImageExplainer
    from eblime.measures import covered_share

    images, defects = sample_scans()
    cut = ("slic", {"n_segments": 40, "compactness": 100})  # a scan has speckles
    explainer = ImageExplainer(ultrasonic_network(), n_masks=400, segmentation=cut, labels=LABELS)
    explanation = explainer.explain(images[_WHICH], "with defect")
    share = 100 * covered_share(explanation, defects[_WHICH], top=5)
    shown: Any = {"title": "Where is the defect?", "prob": 0.95, "top": 5}
    files = write_all(explanation, out, "scan", truth=defects[_WHICH], **shown)
    print_explanation(explanation, prob=0.95, top=5)
    say(
        f"{share:.0f} % of the true defect is under the five most important superpixels.\n"
        f"Look at {files[2]} and {files[3]}; eblime show {files[0]} prints the table again."
    )
    if open:
        show_page(files[3])


_SAVED = "An .eblime file, or the folder of a run."
_PNG = Option("png", "Write a picture to this file.", type=Path, used_by="result")
DEMO = OptionCommand("demo", _demo, {}, [replace(OUT, default=Path("demo")), OPEN])
SHOW = OptionCommand(
    "show",
    _show,
    {"file": "An .eblime file."},
    [
        PROB,
        TOP,
        JSON,
        Option("html", "Write the page to this file.", type=Path, used_by="result"),
        _PNG,
        Option("kind", "Kind of picture", names="plots", used_by="result"),
        OPEN,
    ],
)
COMPARE = OptionCommand(
    "compare", _compare, {"first": _SAVED, "second": _SAVED}, [PROB, TOP, JSON, _PNG]
)
