"""`eblime explain`: explain one or several inputs, and write the results to a folder."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

import typer

from eblime import registry
from eblime._checks import check_level
from eblime.cli.assembly import make_explainer, model_settings
from eblime.cli.domain_commands import domain_group, make_command, option_values
from eblime.cli.files import make_folder
from eblime.cli.modelfile import load_model
from eblime.cli.options import cache_of, explain_parameters, parse_targets
from eblime.cli.running import Showing, run_all, write_comparison
from eblime.domains.record import Command, Domain, Item
from eblime.engine.settings import stop_settings
from eblime.explainers.compare import compare_with, parse_methods

__all__ = ["explain_app"]


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
