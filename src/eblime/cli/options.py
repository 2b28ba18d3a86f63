"""Options that `eblime explain` and `eblime batch` have for every domain, declared once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eblime import registry
from eblime.domains.record import Command, Domain

if TYPE_CHECKING:
    from eblime.engine.cache import AnswerCache

__all__ = [
    "Cache",
    "Cpus",
    "Engine",
    "Gpus",
    "Json",
    "MaxFailures",
    "ModelId",
    "Open",
    "Prob",
    "Timeout",
    "Trust",
    "Workers",
    "batch_parameters",
    "cache_of",
    "complete_from",
    "explain_parameters",
    "known_names",
    "parse_targets",
]


def _seconds(value: float | None) -> float | None:
    """A time limit, checked."""
    if value is not None and not 0 < value < float("inf"):
        raise ValueError(f"--timeout must be a number of seconds > 0; got {value:g}.")
    return value


Model = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        help="An .onnx or .skops file, a .pkl or .joblib file with --trust-pickle, or module:name.",
    ),
]
Trust = Annotated[bool, typer.Option(help="Read pickle and joblib models, which can run any code.")]
Labels = Annotated[
    Path | None, typer.Option(help="Names of the outputs: one per line, or JSON.", exists=True)
]
Target = Annotated[
    str | None,
    typer.Option(help="Output to explain, by name, else by number from 0. Default: the highest."),
]
Targets = Annotated[
    int | None,
    typer.Option(help="Explain this many of the highest outputs, with files for each.", min=1),
]
Compare = Annotated[
    str | None,
    typer.Option(
        help="Other methods in addition to --method, such as lime,bayeslime or "
        "quadrature+adaptive (a method and its design); adds NAME-methods.csv and .png."
    ),
]
Index = Annotated[
    str | None,
    typer.Option(
        help="With --method quadrature, what the importances are: lime (the linear fit), banzhaf "
        "or shapley values. --design adaptive needs fewer masks for the same precision.",
    ),
]
Masks = Annotated[int, typer.Option(help="How many masks to ask the model about.", min=1)]
Until = Annotated[
    str | None,
    typer.Option(
        help="Ask in rounds until this is known with 95 % probability: top5 (which features are "
        "the 5 most important), ranking3 (and their order), sign5 (their signs), width0.05 (all "
        "importances, within such an interval), width10% (of the largest one) or lars3 (the test "
        "of S-LIME). Join with & or |; top5@0.99 asks for 99 %. Replaces --masks.",
    ),
]
MaxMasks = Annotated[
    int | None,
    typer.Option(help="With --until: the most masks to ask about. Default: 5000.", min=1),
]
MaxSeconds = Annotated[
    float | None,
    typer.Option(help="Seconds after which no further round of masks begins.", min=0),
]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")]
Prob = Annotated[float, typer.Option(help="Probability of the intervals, between 0 and 1.")]
Cache = Annotated[
    Path | None, typer.Option(help="File that stores the model's answers; none is asked twice.")
]
ModelId = Annotated[
    str | None,
    typer.Option(
        help="With --cache: name and version of the model; change it when the model changes."
    ),
]
Retry = Annotated[int | None, typer.Option(help="How often to repeat a failed model call.", min=0)]
Concurrency = Annotated[
    int | None, typer.Option(help="How many model calls to make at once.", min=1)
]
# of `eblime explain`
CallTimeout = Annotated[
    float | None,
    typer.Option(callback=_seconds, help="Seconds for one model call; a longer one fails."),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")]
Top = Annotated[int, typer.Option(help="How many features to print and to mark.", min=1)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Open = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]
# of `eblime batch`
RunFolder = Annotated[str, typer.Option("--out", "-o", help="Folder of the run.")]
PartSize = Annotated[
    int | None,
    typer.Option(help="Inputs per part. Default: 8 images, 64 of other inputs.", min=1),
]
Keep = Annotated[bool, typer.Option("--keep", help="Save whole explanations too, for pages.")]
Engine = Annotated[
    str, typer.Option(help="Where to run: local (processes of this machine) or ray (a cluster).")
]
Workers = Annotated[
    str, typer.Option(help="Number of processes, or auto: as many as cores and memory allow.")
]
Cpus = Annotated[float | None, typer.Option(help="Cores per worker on Ray.", min=0)]
Gpus = Annotated[float | None, typer.Option(help="GPUs per worker on Ray.", min=0)]
MaxFailures = Annotated[
    int | None, typer.Option(help="Stop when more inputs than this have failed.", min=0)
]
Timeout = Annotated[
    float | None,
    typer.Option(
        callback=_seconds, help="Seconds for one input; one that takes longer counts as failed."
    ),
]


def explain_parameters(domain: Domain, command: Command) -> list[Parameter]:
    """The shared options of `eblime explain`."""
    return [
        *_shared(domain, command),
        _parameter("targets", Targets, None),
        _parameter("compare", Compare, None),
        _parameter("max_seconds", MaxSeconds, None),
        _parameter("timeout", CallTimeout, None),
        _parameter("out", Out, Path("eblime-out")),
        _parameter("top", Top, command.defaults.get("top", 10)),
        _parameter("json", Json, False),
        _parameter("open", Open, False),
        _parameter("trust_pickle", Trust, False),
    ]


def batch_parameters(domain: Domain, command: Command) -> list[Parameter]:
    """The shared options of `eblime batch`."""
    return [
        _parameter("out", RunFolder),
        *_shared(domain, command),
        _parameter("part_size", PartSize, None),
        _parameter("keep", Keep, False),
        _parameter("engine", Engine, "local"),
        _parameter("workers", Workers, "auto"),
        _parameter("cpus_per_worker", Cpus, None),
        _parameter("gpus_per_worker", Gpus, None),
        _parameter("max_failures", MaxFailures, None),
        _parameter("timeout", Timeout, None),
        _parameter("trust_pickle", Trust, False),
    ]


def _shared(domain: Domain, command: Command) -> list[Parameter]:
    """What both commands need to know: the model, the output and how to ask."""
    usual = {
        "method": "eblime",
        "masks": 1000,
        "design": domain.design if isinstance(domain.design, str) else None,
        "kernel": domain.kernel if isinstance(domain.kernel, str) else None,
        **command.defaults,
    }
    return [
        _parameter("model", Model),
        _parameter("labels", Labels, None),
        _parameter("target", Target, None),
        _parameter("method", _named("methods", "How to infer importances"), usual["method"]),
        _parameter("index", Index, None),
        _parameter("masks", Masks, usual["masks"]),
        _parameter("until", Until, None),
        _parameter("max_masks", MaxMasks, None),
        _parameter("design", _named("designs", "Which masks to ask about"), usual["design"]),
        _parameter(
            "kernel",
            _named("kernels", "How much a mask counts (by default euclidean; for texts cosine)"),
            usual["kernel"],
        ),
        _parameter("seed", Seed, 0),
        _parameter("prob", Prob, 0.95),
        _parameter("cache", Cache, None),
        _parameter("model_id", ModelId, None),
        _parameter("retry", Retry, None),
        _parameter("concurrency", Concurrency, None),
    ]


def cache_of(values: Mapping[str, Any]) -> AnswerCache | None:
    """The cache that `--cache` and `--model-id` describe; None without `--cache`."""
    from eblime.engine.cache import AnswerCache

    path, model_id = values["cache"], values["model_id"]
    if path is None:
        if model_id is not None:
            raise ValueError("--model-id needs --cache.")
        return None
    return AnswerCache(path, model_id=model_id)


def known_names(kind: registry.Kind) -> str:
    """The registered names, those of other packages included: `a, b or c`."""
    *most, last = registry.names(kind)
    return f"{', '.join(most)} or {last}" if most else last


def complete_from(kind: registry.Kind) -> Callable[[str], list[str]]:
    """Shell completion with the registered names."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in registry.names(kind) if name.startswith(incomplete)]

    return complete


def parse_targets(target: str | None, targets: int | None) -> int | list[int | str]:
    """What to explain: this many of the highest outputs, or one by its name or number."""
    if target is not None and targets is not None:
        raise ValueError("--target and --targets cannot be used together; give one of them.")
    return [target] if target is not None else targets or 1


def _parameter(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    """A parameter of a command's function; without a default the option must be given."""
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _named(kind: registry.Kind, what: str) -> Any:
    """An option that takes a registered name."""
    option = typer.Option(help=f"{what}: {known_names(kind)}.", autocompletion=complete_from(kind))
    return Annotated[str | None, option]
