"""`eblime explain`: explain one or several inputs, and write the results to a folder."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from contextlib import nullcontext, redirect_stdout
from functools import cache, partial
from pathlib import Path
from typing import Any

import click

from eblime import registry
from eblime._checks import check_level
from eblime._files import write_whole
from eblime._text import csv_text
from eblime.cli.assembly import load_model, make_explainer, model_settings
from eblime.cli.options import (
    ANSWERS,
    ASKING,
    LazyGroup,
    OptionCommand,
    cache_of,
    command_of,
    domain_options,
    error_line,
    own_values,
)
from eblime.cli.options import (
    EXPLAIN as OF_EXPLAIN,
)
from eblime.cli.output import (
    json_line,
    make_folder,
    print_explanation,
    save_figure,
    say,
    show_page,
    target_names,
    unique,
    write_all,
)
from eblime.domains.record import Command, Domain, Item, Option
from eblime.engine.settings import stop_settings
from eblime.explainers.compare import compare_with, parse_methods
from eblime.results.comparison import Comparison
from eblime.results.explanation import Explanation

# Between choices; not in slic:n_segments=50,compactness=5 and not in brackets.
_COMMA = re.compile(r",(?!\s*\w+\s*=)(?![^(\[]*[)\]])")


def _make(name: str) -> click.Command:
    """The command `eblime explain NAME`."""
    domain, command = command_of(name)
    summary = command.help or f"Explain inputs of the kind {domain.name}, by {domain.feature}s."
    return OptionCommand(
        name,
        partial(_explain, domain, command),
        [Option("argument", command.argument)],
        domain_options(domain, command, [*ASKING, *ANSWERS, *OF_EXPLAIN]),
        metavar=command.metavar,
        help=f"{summary}\n\n"
        "Writes NAME.eblime, NAME.json, NAME.png and NAME.html to the folder --out; with "
        "--targets, NAME-LABEL.eblime and so on for each output.\n\n"
        f"Example: {command.example}",
    )


EXPLAIN = LazyGroup(
    "explain",
    partial(registry.names, "domains"),
    _make,
    help="""Explain a prediction: of an image, a row, a text, a signal.

    Example: eblime explain text "A witty film." --model sentiment.skops

    Packages that are installed can add other kinds of inputs.
    """,
)


def _explain(domain: Domain, command: Command, /, **values: Any) -> None:
    """Explain each input and write its files; bad settings are refused before any model call.

    An input that fails is reported and does not stop the rest.
    """
    check_level("prob", values["prob"])
    given, options = values["argument"], own_values(command, values)

    @cache
    def model() -> Any:
        settings = model_settings(command, values)
        return load_model(values["model"], trust_pickle=values["trust_pickle"], **settings)

    items = [Item(*item) for item in registry.resolve(command.items)(given, model, options)]
    explain = _explaining(make_explainer(domain, command, model(), values, given), command, values)
    folder = make_folder(values["out"])
    failed = 0
    pages: list[Path] = []
    # no two names of result files are the same, and none overwrites an input
    beside = folder.resolve() in {i.path.resolve().parent for i in items if i.path is not None}
    stems = unique([f"{item.stem}{'-explained' if beside else ''}" for item in items])
    for item, stem in zip(items, stems, strict=True):
        try:
            aside = redirect_stdout(sys.stderr) if values["json"] else nullcontext()
            with aside:
                found = explain(item.read(), progress=False if values["json"] else None)
        except Exception as error:
            if len(items) == 1:
                raise
            failed += 1
            say(f"{item.title}: {error_line(error, ('explain', domain.name))}", error=True)
            continue
        if len(items) > 1 and not values["json"]:
            say(f"\n{item.title}")
        pages += _write(found, folder, item.title, stem, values)
    if values["open"] and pages:
        show_page(pages[0], error=values["json"])
    if failed:
        raise RuntimeError(f"{failed} of {len(items)} inputs failed; the others are in {folder}.")


def _explaining(explainer: Any, command: Command, values: Mapping[str, Any]) -> partial[Any]:
    """A function from an input to its explanations: by target, or with --compare by method."""
    limits = {name: values[name] for name in ("until", "max_masks", "max_seconds")}
    if values["target"] is not None and values["targets"] is not None:
        raise ValueError("--target and --targets cannot be used together; give one of them.")
    targets = values["targets"] or 1 if values["target"] is None else [values["target"]]
    stop_settings(explainer.loop, **limits)
    common = {"rng": values["seed"], "cache": cache_of(values)}
    if not values["compare"]:
        return partial(explainer.explain_targets, targets=targets, **common, **limits)
    for flag in ("--targets", "--until", "--max-seconds"):
        if values[flag[2:].replace("-", "_")] is not None:
            raise ValueError(f"--compare cannot be used together with {flag}.")
    choices = _choices(explainer, command, values)
    plain = [text for text in values["compare"] if "=" not in text]
    names = [name.strip() for text in plain for name in text.split(",")]
    others = [name for name in names if name != values["method"]]
    parse_methods([values["method"], *others])
    methods = {values["method"]: explainer.method} | {name: name for name in others}
    if more := sum(len(found) - 1 for found in choices.values()):
        say(
            f"{more + 1} explanations of each input, with {values['masks']} masks each: about "
            f"{(more + 1) * values['masks']:,} model calls.",
            error=True,
        )
    return partial(
        compare_with, explainer, methods=methods, choices=choices, target=values["target"], **common
    )


def _choices(
    explainer: Any, command: Command, values: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """The choices of options in --compare, such as hide=0,blur; the option's own first."""
    shared = [one for one in ASKING if one.name in ("masks", "design", "kernel")]
    usable = [one for one in (*command.options, *shared) if one.used_by == "explainer"]
    known = {one.name: one for one in usable if not (one.many or one.type is bool)}
    found: dict[str, dict[str, Any]] = {}
    for text in values["compare"]:
        name, equals, value = text.partition("=")
        if not equals:
            continue
        option = known.get(name.strip().removeprefix("--").replace("-", "_"))
        if option is None:
            names = ", ".join(one.flag[2:] for one in known.values())
            raise ValueError(f"--compare must name one of {names}; got {text!r}.")
        setting = option.setting or option.name
        usual = values[option.name]
        first = {"default" if usual is None else str(usual): getattr(explainer, setting)}
        options = found.setdefault(setting, first)
        for choice in [value] if option.commas else _COMMA.split(value):
            try:
                given = option.type(choice)
            except ValueError as error:
                raise ValueError(f"--compare {text} must have a number: {error}.") from error
            if choice in options:
                raise ValueError(f"--compare {text} must differ from the other choices.")
            options[choice] = option.parse(given) if option.parse else given
    return found


def _write(
    found: Comparison | Mapping[Any, Explanation],
    folder: Path,
    title: str,
    stem: str,
    values: Mapping[str, Any],
) -> list[Path]:
    """Write and print what was found about one input; returns the pages."""
    prob, top, quiet = values["prob"], values["top"], values["json"]
    pages = []
    shown = [found[found.methods[0]]] if isinstance(found, Comparison) else [*found.values()]
    for explanation, name in zip(shown, target_names(stem, shown), strict=True):
        heading = f"{title}: why {explanation.label!r}?"
        written = write_all(explanation, folder, name, title=heading, prob=prob, top=top)
        pages.append(written[-1])
        if quiet:
            say(json_line(explanation, prob, top))
            continue
        print_explanation(explanation, prob=prob, top=top)
        say("Wrote " + ", ".join(str(file) for file in written) + ".")
    if isinstance(found, Comparison):
        if found.settings:
            return [*pages, _write_choices(found, folder / f"{stem}-choices", values)]
        table, picture = (folder / f"{stem}-methods{ending}" for ending in (".csv", ".png"))
        write_whole(table.resolve(), csv_text(found.to_frame(prob)).encode())
        save_figure(found.plot(top=top, prob=prob).figure, picture, dpi=110)
        if not quiet:
            notes = [f"Note: {note}" for note in found.notes()]
            say("\n".join([found.table(top, prob), *notes, f"Wrote {table}, {picture}."]))
    return pages


def _write_choices(found: Comparison, base: Path, values: Mapping[str, Any]) -> Path:
    """Write how far the explanation depends on the choices, and print it; returns the page."""
    prob, top = values["prob"], values["top"]
    table, numbers, picture, page = (
        base.with_name(f"{base.name}{ending}") for ending in (".csv", ".json", ".png", ".html")
    )
    text = found.to_json(top, prob)
    write_whole(table.resolve(), csv_text(found.sensitivity(top, prob)).encode())
    write_whole(numbers.resolve(), f"{text}\n".encode())
    save_figure(found.pictures(top), picture, dpi=110)
    found.to_html(page)
    if values["json"]:
        say(json.dumps(json.loads(text), allow_nan=False))
        return page
    notes = [f"Note: {note}" for note in found.notes(top, prob)]
    wrote = f"Wrote {table}, {numbers}, {picture}, {page}."
    say("\n".join([found.sensitivity_table(top, prob), *notes, wrote]))
    return page
