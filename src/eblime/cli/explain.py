"""`eblime explain`: explain one or several inputs, and write the results to a folder."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

import typer

from eblime import registry
from eblime._checks import check_level
from eblime._files import write_whole
from eblime._text import csv_text
from eblime.cli.assembly import load_model, make_explainer, model_settings
from eblime.cli.options import (
    cache_of,
    domain_group,
    explain_parameters,
    in_options,
    make_command,
    option_values,
    parse_targets,
)
from eblime.cli.output import (
    json_line,
    make_folder,
    print_explanation,
    progress_bar,
    save_figure,
    say,
    show_page,
    target_names,
    unique,
    write_all,
)
from eblime.domains.record import Command, Domain, Item
from eblime.engine.settings import stop_settings
from eblime.explainers.compare import compare_with, parse_methods
from eblime.results.comparison import Comparison
from eblime.results.explanation import Explanation

__all__ = ["Showing", "explain_app", "first_line", "run_all", "write_comparison"]


def _build(domain: Domain, command: Command) -> Any:
    """The command `eblime explain NAME`."""
    summary = command.help or f"Explain inputs of the kind {domain.name}, by {domain.feature}s."
    return make_command(
        domain.name,
        partial(_explain, domain, command),
        help=f"{summary}\n\n"
        "Writes NAME.eblime, NAME.json, NAME.png and NAME.html to the folder --out; with "
        "--targets, NAME-LABEL.eblime and so on for each output.\n\n"
        f"Example: {command.example}",
        argument=Annotated[str, typer.Argument(help=command.argument, metavar=command.metavar)],
        own=command.options,
        shared=explain_parameters(domain, command),
    )


def _explain(domain: Domain, command: Command, values: dict[str, Any]) -> None:
    """Explain each input and write its files; bad settings are refused before any model call."""
    check_level("prob", values["prob"])
    targets, stored = parse_targets(values["target"], values["targets"]), cache_of(values)
    limits = {name: values[name] for name in ("until", "max_masks", "max_seconds")}
    options = option_values(command.options, values)
    argument = values["argument"]

    @cache
    def model() -> Any:
        settings = model_settings(command, options)
        return load_model(values["model"], trust_pickle=values["trust_pickle"], **settings)

    items = [Item(*item) for item in registry.resolve(command.items)(argument, model, options)]
    explainer = make_explainer(domain, model(), values, options, argument)
    stop_settings(explainer.loop, **limits)
    folder = make_folder(values["out"])
    showing = Showing(
        prob=values["prob"], top=values["top"], json=values["json"], open=values["open"]
    )
    if values["compare"] is not None:
        _compare(explainer, items, values, folder, showing)
        return

    def explain(item: Item, progress: Any) -> list[Any]:
        found = explainer.explain_targets(
            item.read(), targets, values["seed"], progress=progress, cache=stored, **limits
        )
        return list(found.values())

    run_all(items, explain, folder, showing, command=("explain", domain.name))


def _compare(
    explainer: Any, items: list[Item], values: dict[str, Any], folder: Path, showing: Showing
) -> None:
    """Explain each input by several methods; the files of --method, and a table of all."""
    for option in ("targets", "until", "max_seconds"):
        if values[option] is not None:
            flag = f"--{option.replace('_', '-')}"
            raise ValueError(f"--compare cannot be used together with {flag}.")
    explainer.check()  # its own method first, so that an error names --method
    method, cached = values["method"], cache_of(values)
    others = [name.strip() for name in values["compare"].split(",")]
    parse_methods([method, *(name for name in others if name != method)])
    methods = {method: explainer.method, **{name: name for name in others if name != method}}
    comparison: Any = None  # of the input at hand

    def explain(item: Item, progress: Any) -> list[Any]:
        nonlocal comparison
        comparison = compare_with(
            explainer,
            item.read(),
            methods,
            target=values["target"],
            rng=values["seed"],
            cache=cached,
            progress=progress,
        )
        return [comparison[method]]

    def also(item: Item, stem: str) -> None:
        write_comparison(comparison, folder / stem, showing)

    run_all(items, explain, folder, showing, command=("explain", explainer.domain), also=also)


explain_app = typer.Typer(cls=domain_group(_build), no_args_is_help=True, rich_markup_mode=None)


@explain_app.callback()
def _group() -> None:
    """Explain a prediction: of an image, a row of a table or a text.

    Example: eblime explain text "A witty film." --model sentiment.skops

    Packages that are installed can add other kinds of inputs.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """How results are shown."""

    prob: float  # level of the intervals
    top: int  # features to print and to mark
    json: bool  # print JSON instead of tables
    open: bool  # open the first page in a browser


def run_all(
    items: Sequence[Item],
    explain: Callable[[Item, Callable[[int, int], None]], Sequence[Explanation]],
    out: Path,
    showing: Showing,
    *,
    command: Sequence[str],
    also: Callable[[Item, str], None] | None = None,
) -> None:
    """Explain inputs one after the other; one that fails is reported and does not stop the rest.

    Parameters
    ----------
    items
        The inputs.
    explain
        Returns one explanation for each target; several targets have files of their own.
    out
        Folder for the results.
    showing
        How to show them.
    command
        The first words of the command, for error messages.
    also
        Called after the files of an input were written, with the input and the name of its files.
    """
    failed = 0
    pages: list[Path] = []
    for item, stem in zip(items, _stems(items, out), strict=True):
        try:
            aside = redirect_stdout(sys.stderr) if showing.json else nullcontext()
            with aside, progress_bar(item.title, quiet=showing.json) as progress:
                explanations = explain(item, progress)
        except Exception as error:
            if len(items) == 1:
                raise
            failed += 1
            say(f"{item.title}: {first_line(error, command)}", error=True)
            continue
        if len(items) > 1 and not showing.json:
            say(f"\n{item.title}")
        pages += _write(explanations, out, item.title, stem, showing)
        if also is not None:
            also(item, stem)
    if showing.open and pages:
        show_page(pages[0], error=showing.json)
    if failed:
        raise RuntimeError(f"{failed} of {len(items)} inputs failed; the others are in {out}.")


def first_line(error: BaseException, command: Sequence[str] = ()) -> str:
    """An error's message on one line, with options in place of Python's parameters."""
    message = _without_number(error).strip() or type(error).__name__
    return in_options(" ".join(message.split()), command)


def _without_number(error: BaseException) -> str:
    """An error's message; that of the operating system without "[Errno 2]"."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.strerror}: {str(error.filename)!r}."
    return str(error)


def _write(
    explanations: Sequence[Explanation], out: Path, title: str, stem: str, showing: Showing
) -> list[Path]:
    """Write and print the explanations of one input; returns their pages."""
    pages = []
    prob, top = showing.prob, showing.top
    for explanation, name in zip(explanations, target_names(stem, explanations), strict=True):
        heading = f"{title}: why {explanation.label!r}?"
        written = write_all(explanation, out, name, title=heading, prob=prob, top=top)
        pages.append(written[-1])
        if showing.json:
            say(json_line(explanation, prob, top))
            continue
        print_explanation(explanation, prob=prob, top=top)
        say("Wrote " + ", ".join(str(file) for file in written) + ".")
    return pages


def write_comparison(comparison: Comparison, stem: Path, showing: Showing) -> None:
    """Write STEM-methods.csv and STEM-methods.png, and print the table."""
    paths = [stem.with_name(f"{stem.name}-methods{ending}") for ending in (".csv", ".png")]
    write_whole(paths[0].resolve(), csv_text(comparison.to_frame(showing.prob)).encode())
    save_figure(comparison.plot(top=showing.top, prob=showing.prob).figure, paths[1], dpi=110)
    if not showing.json:
        say(comparison.table(showing.top, showing.prob))
        for note in comparison.notes():
            say(f"Note: {note}")
        say("Wrote " + ", ".join(str(path) for path in paths) + ".")


def _stems(items: Sequence[Item], out: Path) -> list[str]:
    """Names of the result files: no two the same, and none that overwrites an input."""
    folders = {item.path.resolve().parent for item in items if item.path is not None}
    ending = "-explained" if out.resolve() in folders else ""
    return unique([f"{item.stem}{ending}" for item in items])
