"""`eblime show` and `eblime compare`: print and draw saved explanations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from eblime._checks import check_level
from eblime._table import align, decimals, written
from eblime._text import printable
from eblime._types import FloatArray
from eblime.cli.options import Json, Open, Prob, complete_from, known_names
from eblime.cli.output import json_line, print_explanation, save_figure, say, show_page
from eblime.results.explanation import Explanation

__all__ = ["compare", "show"]

File = Annotated[Path, typer.Argument(help="An .eblime file.")]
Both = Annotated[Path, typer.Argument(help="An .eblime file, or the folder of a run.")]
Top = Annotated[int, typer.Option(help="How many features to print.", min=1)]


def show(
    file: File,
    prob: Prob = 0.95,
    top: Top = 10,
    as_json: Json = False,
    html: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
    png: Annotated[Path | None, typer.Option(help="Write a picture to this file.")] = None,
    kind: Annotated[
        str,
        typer.Option(
            help=f"Kind of picture: {known_names('plots')}.", autocompletion=complete_from("plots")
        ),
    ] = "",
    open_it: Open = False,
) -> None:
    """Print a saved explanation, write its picture or page, or open it.

    Example: eblime show eblime-out/dog.eblime --png dog.png --kind density
    """
    from eblime.plot.poster import poster
    from eblime.results.storage import load

    check_level("prob", prob)
    if kind and png is None:
        raise ValueError("--kind also needs --png, the file of the picture.")
    explanation = load(file)
    if png is not None:  # first, so that a wrong --kind prints no table
        figure = explanation.plot(kind).figure if kind else poster(explanation)
        save_figure(figure, png, dpi=110)
    if as_json:
        say(json_line(explanation, prob, top))
    else:
        print_explanation(explanation, prob=prob, top=top)
    page = html if html is not None else file.with_suffix(".html") if open_it else None
    if page is not None:
        explanation.to_html(page)
        if open_it:
            show_page(page, error=as_json)


def compare(
    first: Both,
    second: Both,
    prob: Prob = 0.95,
    top: Top = 10,
    as_json: Json = False,
    png: Annotated[Path | None, typer.Option(help="Write a picture of both to this file.")] = None,
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
        _compare_runs(first, second, prob, top, as_json=as_json, png=png)
        return
    one, other = load(first), load(second)
    if list(one.features) != list(other.features):
        raise ValueError(
            f"The explanations must have the same features; {first} has {len(one.features)} and "
            f"{second} has {len(other.features)}, or their names differ."
        )
    if as_json:
        say(f"[{json_line(one, prob, top)}, {json_line(other, prob, top)}]")
    else:
        say(_side_by_side(one, other, prob, top))
    if png is not None:
        from eblime.plot.bars import compare as draw

        figure = draw(one, other, names=(first.stem, second.stem), top=top).figure
        save_figure(figure, png, dpi=110)


def _compare_runs(
    first: Path, second: Path, prob: float, top: int, *, as_json: bool, png: Path | None
) -> None:
    """Print the differences in importance between two runs."""
    from eblime.batch.results import open_run

    if png is not None:
        raise ValueError("--png needs two .eblime files; got two runs.")
    table = open_run(first).compare(open_run(second), prob=prob).head(top)
    if as_json:
        say(str(table.to_json(orient="records")))
        return
    names = ["mean_abs", "other_mean_abs", "difference", "low", "high"]
    columns = [table[name].to_numpy() for name in names]
    digits = decimals(columns)
    cells = [[printable(name) for name in table["feature"]]]
    cells += [[written(value, digits) for value in column] for column in columns]
    cells.append(
        ["*" if low > 0 or high < 0 else "" for low, high in zip(*columns[3:], strict=True)]
    )
    head = ["feature", "first", "second", "difference", f"{100 * prob:g}% low", "high", ""]
    lines = ["Mean |importance| over the inputs of both runs", *align(head, cells)]
    say("\n".join(line.rstrip() for line in lines))


def _side_by_side(one: Explanation, other: Explanation, prob: float, top: int) -> str:
    """Means and intervals of both, most important first."""
    posts = one.posterior, other.posterior
    size = np.abs(np.stack([post.mean for post in posts])).max(axis=0)
    order = np.argsort(-size, kind="stable")[:top]
    ends = [
        post.interval(prob) if post.has_spread else np.stack([post.mean] * 2, axis=1)
        for post in posts
    ]
    head = ["feature"]
    cells = [[printable(one.features[j]) for j in order]]
    for post, pair in zip(posts, ends, strict=True):
        head += [
            printable(post.method),
            *((f"{100 * prob:g}% low", "high") if post.has_spread else ()),
        ]
        columns = [column[order] for column in (post.mean, *(pair.T if post.has_spread else ()))]
        digits = decimals(columns)
        cells += [[written(value, digits) for value in column] for column in columns]
    apart = (ends[0][:, 0] > ends[1][:, 1]) | (ends[1][:, 0] > ends[0][:, 1])
    head, cells = [*head, ""], [*cells, ["*" if apart[j] else "" for j in order]]
    lines = [
        f"{printable(one.label)} ({posts[0].fit_label()}, {posts[0].n_masks} masks) and "
        f"{printable(other.label)} ({posts[1].fit_label()}, {posts[1].n_masks} masks)",
        *align(head, cells),
        f"{_correlation(posts[0].mean, posts[1].mean)}{int(apart.sum())} of {len(size)} intervals "
        "do not meet.",
    ]
    return "\n".join(line.rstrip() for line in lines)


def _correlation(first: FloatArray, second: FloatArray) -> str:
    """The beginning of a sentence; empty if the means of one explanation are all the same."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return ""
    return f"Correlation of the means {np.corrcoef(first, second)[0, 1]:.3f}; "
