"""`eblime explain`: explain one or several inputs, and write the results to a folder."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eblime import registry
from eblime._checks import check_level
from eblime._files import write_whole
from eblime.cli import options, show
from eblime.domains.record import Command, Domain, Item

if TYPE_CHECKING:
    from eblime.results.comparison import Comparison
    from eblime.results.explanation import Explanation

# Between choices; not in slic:n_segments=50,compactness=5 and not in brackets.
_COMMA = re.compile(r",(?!\s*\w+\s*=)(?![^(\[]*[)\]])")


def _explain(domain: Domain, command: Command, /, **values: Any) -> None:
    """Explain each input and write its files; bad settings are refused before any model call.

    An input that fails is reported and does not stop the rest.
    """
    from eblime.cli.assembly import make_explainer, model_of

    check_level("prob", values["prob"])
    given, quiet = values["argument"], values["json"]
    model = cache(partial(model_of, command, values, trust_pickle=values["trust_pickle"]))
    read = registry.resolve(command.items)
    items = [Item(*item) for item in read(given, model, options.own_values(command, values))]
    explain = _explaining(make_explainer(domain, command, model(), values, given), command, values)
    folder = values["out"]
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    pages: list[Path] = []
    # no two names of result files are the same, and none overwrites an input
    beside = folder.resolve() in {i.path.resolve().parent for i in items if i.path is not None}
    stems = show.unique([f"{item.stem}{'-explained' if beside else ''}" for item in items])
    for item, stem in zip(items, stems, strict=True):
        try:
            with redirect_stdout(sys.stderr) if quiet else nullcontext():
                found = explain(item.read(), progress=False if quiet else None)
        except Exception as error:
            if len(items) == 1:
                raise
            failed += 1
            show.say(
                f"{item.title}: {options.error_line(error, ('explain', domain.name))}", error=True
            )
            continue
        if len(items) > 1 and not quiet:
            show.say(f"\n{item.title}")
        pages += _write(found, folder, item.title, stem, values)
    if values["open"] and pages:
        show.show_page(pages[0], error=quiet)
    if failed:
        raise RuntimeError(f"{failed} of {len(items)} inputs failed; the others are in {folder}.")


def _explaining(explainer: Any, command: Command, values: options.Values) -> partial[Any]:
    """A function from an input to its explanations: by target, or with --compare by method."""
    from eblime.explainers.compare import compare_with

    target, targets = values["target"], values["targets"]
    if target is not None and targets is not None:
        raise ValueError("--target and --targets cannot be used together; give one of them.")
    limits = {name: values[name] for name in ("until", "max_masks", "max_seconds")}
    common = {"rng": values["seed"], "cache": options.cache_of(values)}
    if not values["compare"]:
        wanted = (targets or 1) if target is None else [target]
        return partial(explainer.explain_targets, targets=wanted, **common, **limits)
    for name in ("targets", *limits):
        if values[name] is not None:
            flag = f"--{name.replace('_', '-')}"
            raise ValueError(f"--compare cannot be used together with {flag}.")
    plain = [text for text in values["compare"] if "=" not in text]
    names = [name.strip() for text in plain for name in text.split(",")]
    others = [name for name in names if name != values["method"]]
    methods = {values["method"]: explainer.method} | {name: name for name in others}
    choices = _choices(explainer, command, values)
    return partial(
        compare_with, explainer, methods=methods, choices=choices, target=target, **common
    )


def _choices(explainer: Any, command: Command, values: options.Values) -> dict[str, dict[str, Any]]:
    """The choices of options in --compare, such as hide=0,blur; the option's own first."""
    known = {
        one.name.replace("_", "-"): one
        for one in (*options.ASKING, *command.options)
        if (one.setting or one.name) in ("n_masks", "design", "kernel", *explainer.about)
        and not (one.many or one.type is bool)
    }
    found: dict[str, dict[str, Any]] = {}
    for text in values["compare"]:
        name, equals, value = text.partition("=")
        if not equals:
            continue
        option = known.get(name.strip().removeprefix("--"))
        if option is None:
            raise ValueError(f"--compare must name one of {', '.join(known)}; got {text!r}.")
        setting, usual = option.setting or option.name, values[option.name]
        first = {"default" if usual is None else str(usual): getattr(explainer, setting)}
        choices = found.setdefault(setting, first)
        for choice in [value] if option.commas else _COMMA.split(value):
            if choice in choices:
                raise ValueError(f"--compare {text} must differ from the other choices.")
            typed = options.option_of(option).type_cast_value(click.get_current_context(), choice)
            choices[choice] = options.settings_of([option], {option.name: typed})[setting]
    return found


def _write(
    found: Comparison | Mapping[Any, Explanation],
    folder: Path,
    title: str,
    stem: str,
    values: options.Values,
) -> list[Path]:
    """Write and print what was found about one input; returns the pages."""
    from eblime.results.comparison import Comparison

    prob, top = values["prob"], values["top"]
    pages = []
    shown = [found[found.methods[0]]] if isinstance(found, Comparison) else [*found.values()]
    for explanation, name in zip(shown, _target_names(stem, shown), strict=True):
        heading = f"{title}: why {explanation.label!r}?"
        written = show.write_all(explanation, folder, name, title=heading, prob=prob, top=top)
        pages.append(written[-1])
        if values["json"]:
            show.say(show.json_line(explanation, prob, top))
            continue
        show.print_explanation(explanation, prob=prob, top=top)
        show.say("Wrote " + ", ".join(map(str, written)) + ".")
    if isinstance(found, Comparison):
        pages += _write_comparison(found, folder / stem, values)
    return pages


def _target_names(name: str, explanations: Sequence[Explanation]) -> list[str]:
    """Names of an input's files: its own for one target, otherwise with each target's label."""
    if len(explanations) == 1:
        return [name]
    labels = [re.sub(r"\W+", "-", entry.label).strip("-")[:40] for entry in explanations]
    return show.unique(
        [f"{name}-{label or e.target}" for label, e in zip(labels, explanations, strict=True)]
    )


def _write_comparison(found: Comparison, base: Path, values: options.Values) -> list[Path]:
    """Write how methods differ, or how much choices matter, and print it; returns the pages."""
    from eblime._text import csv_text

    prob, top = values["prob"], values["top"]
    frame, shown, figure = (
        (found.sensitivity(top, prob), found.sensitivity_table(top, prob), found.pictures(top))
        if found.settings
        else (found.to_frame(prob), found.table(top, prob), found.plot(top=top, prob=prob).figure)
    )
    kind, text = "choices" if found.settings else "methods", found.to_json(top, prob)
    table, picture, numbers, page = (
        base.with_name(f"{base.name}-{kind}{ending}")
        for ending in (".csv", ".png", ".json", ".html")
    )
    write_whole(table.resolve(), csv_text(frame).encode())
    show.save_figure(figure, picture, dpi=110)
    write_whole(numbers.resolve(), f"{text}\n".encode())
    found.to_html(page)
    if values["json"]:
        show.say(json.dumps(json.loads(text), allow_nan=False))
    else:
        notes = [f"Note: {note}" for note in found.notes(top, prob)]
        show.say("\n".join([shown, *notes, f"Wrote {table}, {picture}, {numbers}, {page}."]))
    return [page]


GROUP = options.domain_group(
    "explain",
    _explain,
    [*options.ASKING, *options.ANSWERS, *options.EXPLAIN],
    "Writes NAME.eblime, NAME.json, NAME.png and NAME.html to the folder --out; with --targets, "
    "NAME-LABEL.eblime and so on for each output.",
    help="""Explain an image, row, text, signal, volume or prompt.

    Example: eblime explain text "A witty film." --model sentiment.skops

    Packages that are installed can add other kinds of inputs.
    """,
)
