"""`eblime demo`, `eblime show` and `eblime compare`: an example, and saved explanations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime._checks import check_level
from eblime._text import printable
from eblime.cli.options import JSON, OPEN, OUT, PROB, TOP, OptionCommand
from eblime.cli.output import json_line, print_explanation, save_figure, say, show_page, write_all
from eblime.domains.record import Option

if TYPE_CHECKING:
    from eblime.results.explanation import Explanation


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


def _compare(first: str, second: str, prob: float, top: int, json: bool, png: Path | None) -> None:
    """Compare two explanations of the same features, or two runs.

    A star marks features whose intervals do not overlap; for runs, features whose mean |importance|
    differs.

    Example: eblime compare dog.eblime dog-bayeslime.eblime --png both.png

    Example: eblime compare run-forest/ run-boosting/
    """
    from eblime.plot.charts import compare
    from eblime.results.storage import load

    check_level("prob", prob)
    if Path(first).is_dir() or Path(second).is_dir():
        if png is not None:
            raise ValueError("--png needs two .eblime files; got two runs.")
        say(_compare_runs(first, second, prob, top, json=json))
        return
    both = one, other = load(first), load(second)
    if list(one.features) != list(other.features):
        raise ValueError(
            f"The explanations must have the same features; {first} has {len(one.features)} and "
            f"{second} has {len(other.features)}, or their names differ."
        )
    if json:
        say(f"[{', '.join(json_line(each, prob, top) for each in both)}]")
    else:
        say(_side_by_side(both, prob, top))
    if png is not None:
        names = Path(first).stem, Path(second).stem
        save_figure(compare(one, other, names=names, top=top).figure, png, dpi=110)


def _compare_runs(first: str, second: str, prob: float, top: int, *, json: bool) -> str:
    """The differences in importance between two runs."""
    from eblime._table import number_table
    from eblime.batch.results import open_run

    table = open_run(first).compare(open_run(second), prob=prob).head(top)
    if json:
        return str(table.to_json(orient="records"))
    names = ["mean_abs", "other_mean_abs", "difference", "low", "high"]
    columns = [table[name].to_numpy() for name in names]
    stars = np.where((columns[3] > 0) | (columns[4] < 0), "*", "")
    head = ["feature", "first", "second", "difference", f"{100 * prob:g}% low", "high", ""]
    lines = number_table(head, list(table["feature"]), [columns], stars.tolist())
    return "\n".join(["Mean |importance| over the inputs of both runs", *map(str.rstrip, lines)])


def _side_by_side(both: tuple[Explanation, Explanation], prob: float, top: int) -> str:
    """Means and intervals of both, most important first."""
    from eblime._table import number_table

    posts = [each.posterior for each in both]
    order = np.argsort(-np.abs([post.mean for post in posts]).max(axis=0), kind="stable")[:top]
    columns = [  # mean, low and high
        np.column_stack([post.mean, post.interval(prob)] if post.has_spread else [post.mean] * 3)
        for post in posts
    ]
    head = ["feature"]
    for post in posts:
        head += [printable(post.method), f"{100 * prob:g}% low", "high"]
    (_, low, high), (_, other_low, other_high) = groups = [
        list(found[order].T) for found in columns
    ]
    stars = np.where((low > other_high) | (other_low > high), "*", "").tolist()
    titles = (f"{printable(e.label)} ({e.posterior.fit_label()})" for e in both)
    names = [both[0].features[j] for j in order]
    lines = [" and ".join(titles), *number_table([*head, ""], names, groups, stars)]
    if both[0].estimand != both[1].estimand:
        lines += ["Note: they estimate different quantities, so compare ranks, not sizes."]
        lines += [f"Note: first: {both[0].estimand}", f"Note: second: {both[1].estimand}"]
    return "\n".join(map(str.rstrip, lines))


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
    cut = ("slic", {"n_segments": 40})
    explainer = ImageExplainer(ultrasonic_network(), n_masks=400, segmentation=cut, labels=LABELS)
    explanation = explainer.explain(images[_WHICH], "with defect")
    share = 100 * covered_share(explanation, defects[_WHICH], top=5)
    files = write_all(explanation, out, "scan", title="Where is the defect?", prob=0.95, top=5)
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
