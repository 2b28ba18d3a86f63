"""From the values of options to the model and the explainer of a command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eblime import registry
from eblime.cli.modelfile import load_labels
from eblime.domains.record import Command, Domain
from eblime.engine.calls import Calls

__all__ = ["make_explainer", "model_settings", "shared_settings"]


def shared_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that every explainer has; options that were left out keep its defaults."""
    labels = values["labels"]
    settings = {
        "n_masks": values["masks"],
        "method": _method(values["method"], values.get("index")),
        "labels": None if labels is None else load_labels(Path(labels)),
    }
    settings |= _given(values, ("design", "kernel"))
    settings["calls"] = Calls(**_given(values, ("retry", "timeout", "concurrency")))
    return settings


def _given(values: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The values of options that were given."""
    return {name: values[name] for name in names if values.get(name) is not None}


def _method(name: str, index: str | None) -> Any:
    """The method: its name, or an object if `--index` says what its importances are."""
    if index is None:
        return name
    method = registry.find("methods", name)()
    if not hasattr(method, "index"):
        raise ValueError(f"--index needs --method quadrature; got --method {name}.")
    return replace(method, index=index)


def model_settings(command: Command, options: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the model's file among the domain's options."""
    return {
        option.name: options[option.name]
        for option in command.options
        if option.used_by == "model" and option.name in options
    }


def make_explainer(
    domain: Domain, model: Any, values: Mapping[str, Any], options: Mapping[str, Any], argument: str
) -> Any:
    """The explainer of a domain.

    Parameters
    ----------
    domain
        Must have a command.
    model
        As `load_model` returns it.
    values
        Of the shared options.
    options
        Values of the domain's own options.
    argument
        The argument of the command, which some explainers read too.
    """
    command: Command = registry.of_domain(domain, "command")  # type: ignore[assignment]
    shared = shared_settings(values)
    if command.explainer is not None:
        return registry.resolve(command.explainer)(model, shared, options, argument)
    settings = {
        option.setting or option.name: options[option.name]
        for option in command.options
        if option.used_by == "explainer" and options.get(option.name) is not None
    }
    explainer = registry.of_domain(domain, "explainer")
    if explainer is not None:
        return explainer(model, **settings, **shared)
    from eblime.explainers.general import Explainer

    return Explainer(model, kind=domain.name, settings=settings, **shared)
