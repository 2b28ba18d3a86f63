"""`eblime demo`, `eblime show` and `eblime compare`: an example, and saved explanations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from eblime._checks import check_level
from eblime._files import write_whole
from eblime._table import number_table
from eblime._text import printable
from eblime._types import BoolArray
from eblime.cli.options import JSON, OPEN, OUT, PROB, TOP, OptionCommand
from eblime.cli.output import (
    json_line,
    make_folder,
    print_explanation,
    save_figure,
    say,
    show_page,
    write_all,
)
from eblime.domains.record import Option
from eblime.results.explanation import Explanation


def _show(file: Path, html: Path | None, png: Path | None, kind: str | None, **values: Any) -> None:
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
    page = html if html is not None else file.with_suffix(".html") if values["open"] else None
    if page is not None:
        explanation.to_html(page)
        if values["open"]:
            show_page(page, error=values["json"])


def _compare(
    first: Path, second: Path, prob: float, top: int, json: bool, png: Path | None
) -> None:
    """Compare two explanations of the same features, or two runs.

    A star marks features whose intervals do not overlap; for runs, features whose mean |importance|
    differs.

    Example: eblime compare dog.eblime dog-bayeslime.eblime --png both.png

    Example: eblime compare run-forest/ run-boosting/
    """
    from eblime.results.storage import load

    check_level("prob", prob)
    if first.is_dir() or second.is_dir():
        if png is not None:
            raise ValueError("--png needs two .eblime files; got two runs.")
        say(_compare_runs(first, second, prob, top, json=json))
        return
    one, other = load(first), load(second)
    if list(one.features) != list(other.features):
        raise ValueError(
            f"The explanations must have the same features; {first} has {len(one.features)} and "
            f"{second} has {len(other.features)}, or their names differ."
        )
    if json:
        say(f"[{json_line(one, prob, top)}, {json_line(other, prob, top)}]")
    else:
        say(_side_by_side(one, other, prob, top))
    if png is not None:
        from eblime.plot.charts import compare as draw

        figure = draw(one, other, names=(first.stem, second.stem), top=top).figure
        save_figure(figure, png, dpi=110)


def _compare_runs(first: Path, second: Path, prob: float, top: int, *, json: bool) -> str:
    """The differences in importance between two runs."""
    from eblime.batch.results import open_run

    table = open_run(first).compare(open_run(second), prob=prob).head(top)
    if json:
        return str(table.to_json(orient="records"))
    names = ["mean_abs", "other_mean_abs", "difference", "low", "high"]
    columns = [table[name].to_numpy() for name in names]
    clear = (columns[3] > 0) | (columns[4] < 0)
    head = ["feature", "first", "second", "difference", f"{100 * prob:g}% low", "high", ""]
    lines = number_table(head, list(table["feature"]), [columns], _stars(clear))
    return "\n".join(["Mean |importance| over the inputs of both runs", *map(str.rstrip, lines)])


def _side_by_side(one: Explanation, other: Explanation, prob: float, top: int) -> str:
    """Means and intervals of both, most important first."""
    posts = one.posterior, other.posterior
    means = np.stack([post.mean for post in posts])
    order = np.argsort(-np.abs(means).max(axis=0), kind="stable")[:top]
    head, groups, ends, titles = ["feature"], [], [], []
    for entry, post in zip((one, other), posts, strict=True):
        ends.append(post.interval(prob).T if post.has_spread else (post.mean, post.mean))
        shown = [post.mean, *ends[-1]] if post.has_spread else [post.mean]
        head += [printable(post.method), f"{100 * prob:g}% low", "high"][: len(shown)]
        groups.append([column[order] for column in shown])
        titles.append(f"{printable(entry.label)} ({post.fit_label()}, {post.n_masks} masks)")
    apart = (ends[0][0] > ends[1][1]) | (ends[1][0] > ends[0][1])
    names = [one.features[j] for j in order]
    lines = [" and ".join(titles), *number_table([*head, ""], names, groups, _stars(apart[order]))]
    last = f"{int(apart.sum())} of {len(apart)} intervals do not meet."
    if np.ptp(means, axis=1).all():
        last = f"Correlation of the means {np.corrcoef(*means)[0, 1]:.3f}; {last}"
    lines.append(last)
    if one.estimand != other.estimand:
        lines += ["Note: they estimate different quantities, so compare ranks, not sizes."]
        lines += [f"Note: first: {one.estimand}", f"Note: second: {other.estimand}"]
    return "\n".join(map(str.rstrip, lines))


def _stars(marked: BoolArray) -> list[str]:
    """A column with a star in the marked rows."""
    return ["*" if mark else "" for mark in marked]


_WHICH = 2  # of the scans that ship with the package


def _demo(which: str, out: Path, open: bool) -> None:
    """Explain an example: a defect in an ultrasonic scan, or a photo.

    "scan": a small network that comes with eblime predicts that a printed block has a defect; the
    explanation shows where. "photo": EfficientNet-Lite0 classifies a photo of a coffee cup; this
    needs pip install 'eblime[demo]'.

    Prints a table, and writes the table, the explanation, its numbers, a picture and a page to the
    folder --out.

    Example: eblime demo --open
    """
    folder = make_folder(out)
    explanation, title, sentence = _scan() if which == "scan" else _photo()
    print_explanation(explanation, prob=0.95, top=5)
    provenance = explanation.provenance
    say(f"{sentence}\n{provenance['model_calls']} images in {provenance['seconds']:.1f} s.")
    name = "scan" if which == "scan" else "espresso"
    *_, png, html = write_all(explanation, folder, name, title=title, prob=0.95, top=5)
    write_whole((folder / f"{name}.txt").resolve(), f"{explanation}\n".encode())
    if which == "scan":
        _draw_scan(explanation, png)
    say(f"Look at {png} and {html}; eblime show {folder / name}.eblime prints the table again.")
    if open:
        show_page(html)


def _scan() -> tuple[Explanation, str, str]:
    """The defect of a scan, and how much of the true one was found."""
    from eblime.datasets.ultrasonic import LABELS, sample_scans, ultrasonic_network
    from eblime.measures import covered_share

    images, defects = sample_scans()
    settings = {"segmentation": ("slic", {"n_segments": 40}), "labels": LABELS}
    explanation = _explain(ultrasonic_network(), images[_WHICH], "with defect", **settings)
    share = 100 * covered_share(explanation, defects[_WHICH], top=5)
    sentence = f"{share:.0f} % of the true defect is under the five most important superpixels."
    return explanation, "Where is the defect?", sentence


def _photo() -> tuple[Explanation, str, str]:
    """The photo of a coffee cup."""
    from eblime.datasets.imagenet import coffee, efficientnet_lite0

    explanation = _explain(efficientnet_lite0(), coffee())
    candidates = explanation.posterior.ranking(by="value").credible_set(1)
    named = ", ".join(explanation.features[j] for j in candidates)
    title = "Why does EfficientNet-Lite0 predict 'espresso'?"
    return explanation, title, f"Most important (95 % credible set): {named}."


def _explain(model: Any, image: Any, target: str | None = None, **settings: Any) -> Explanation:
    """Ask a network about 400 masks."""
    from eblime.explainers.image import ImageExplainer

    return ImageExplainer(model, n_masks=400, **settings).explain(image, target)


def _draw_scan(explanation: Explanation, path: Path) -> None:
    """The scan with its true defect, the superpixels found, and their intervals."""
    from matplotlib.figure import Figure

    from eblime.datasets.ultrasonic import sample_scans

    images, defects = sample_scans()
    figure = Figure(figsize=(12.6, 4.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    left.imshow(images[_WHICH], cmap="gray")
    left.contour(defects[_WHICH], levels=[0.5], colors="#E69F00", linewidths=1.5)
    left.set_title("the scan, with its true defect outlined", fontsize="medium", loc="left")
    left.set_xticks([])
    left.set_yticks([])
    explanation.plot("map", ax=middle)
    explanation.plot("intervals", top=10, ax=right)
    save_figure(figure, path, dpi=100)


_SAVED = "An .eblime file, or the folder of a run."
DEMO = OptionCommand(
    "demo",
    _demo,
    [Option("which", "Which example.", default="scan", choices=("scan", "photo"))],
    [replace(OUT, default=Path("demo")), OPEN],
)
SHOW = OptionCommand(
    "show",
    _show,
    [Option("file", "An .eblime file.", type=Path)],
    [
        PROB,
        TOP,
        JSON,
        Option("html", "Write the page to this file.", type=Path, used_by="result"),
        Option("png", "Write a picture to this file.", type=Path, used_by="result"),
        Option("kind", "Kind of picture", names="plots", used_by="result"),
        OPEN,
    ],
)
COMPARE = OptionCommand(
    "compare",
    _compare,
    [Option("first", _SAVED, type=Path), Option("second", _SAVED, type=Path)],
    [
        PROB,
        TOP,
        JSON,
        Option("png", "Write a picture of both to this file.", type=Path, used_by="result"),
    ],
)
