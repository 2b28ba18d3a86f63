"""`eblime batch` and `eblime report`: a folder of inputs to a folder of results."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from eblime._checks import check_choice
from eblime.cli.modelfile import load_labels, load_model
from eblime.cli.options import parse_target
from eblime.cli.photos import find_photos, photo_size, read_photo
from eblime.cli.tables import match_columns, read_table
from eblime.cli.terminal import asking, open_page, say

__all__ = ["batch", "report"]

KINDS = ("image", "tabular", "text")


def batch(
    context: typer.Context,
    kind: Annotated[str | None, typer.Argument(help="image, tabular or text.")] = None,
    inputs: Annotated[
        Path | None, typer.Argument(help="A folder, or a .csv, .parquet or .jsonl file.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="An .onnx or .skops file, or module:name.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder of the run.")] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Go on with a run; nothing else is needed.")
    ] = None,
    background: Annotated[
        Path | None, typer.Option(help="For tables: what is usual. Default: the inputs.")
    ] = None,
    labels: Annotated[Path | None, typer.Option(help="Names of the outputs.")] = None,
    target: Annotated[
        str | None, typer.Option(help="Output to explain. Default: the highest.")
    ] = None,
    method: Annotated[
        str, typer.Option(help="eblime, eblime-paper, bayeslime or lime.")
    ] = "eblime",
    masks: Annotated[int, typer.Option(help="Masks for each input.", min=1)] = 1000,
    seed: Annotated[int, typer.Option(help="Of the run.", min=0)] = 0,
    part_size: Annotated[int, typer.Option(help="Inputs in a part.", min=1)] = 64,
    keep: Annotated[bool, typer.Option("--keep", help="Save whole explanations too.")] = False,
    engine: Annotated[str, typer.Option(help="local or ray.")] = "local",
    workers: Annotated[int, typer.Option(help="Processes.", min=1)] = 1,
    max_failures: Annotated[
        int | None, typer.Option(help="Stop when more inputs than that have failed.", min=0)
    ] = None,
    trust_pickle: Annotated[
        bool, typer.Option("--trust-pickle", help="Read pickle and joblib models.")
    ] = False,
) -> None:
    """Explain many inputs into a folder that survives interruptions.

    Example: eblime batch image photos/ --model net.onnx --out run/ --workers 2

    Example: eblime batch --resume run/
    """
    from eblime.batch.folder import read_manifest
    from eblime.batch.inputs import Files
    from eblime.batch.run import explain_many

    if resume is not None:
        _refuse_other_settings(context)
        told = _told_before(read_manifest(resume), resume)
        folder = resume
    else:
        if kind is None or inputs is None or model is None or out is None:
            raise ValueError("eblime batch needs KIND, INPUTS, --model and --out, or --resume RUN.")
        check_choice("kind", kind, KINDS)
        told = {
            "kind": kind,
            "inputs": str(inputs.resolve()),
            "model": str(Path(model).resolve()) if Path(model).is_file() else model,
            "model_sha256": _digest(model),
            "background": None if background is None else str(background.resolve()),
            "labels": None if labels is None else str(labels.resolve()),
            "target": target,
            "method": method,
            "masks": masks,
            "seed": seed,
            "part_size": part_size,
            "keep": keep,
        }
        folder = out
    chosen = parse_target(told["target"])
    given: Any = told["inputs"]
    if told["kind"] == "image":
        loaded = load_model(told["model"], trust_pickle=trust_pickle)
        names = tuple(path.name for path in find_photos(Path(told["inputs"])))
        files = Files(folder=told["inputs"], names=names)
        given = Photos(files=files, size=photo_size(loaded, None))
    with asking("explaining", quiet=False) as progress:
        run = explain_many(
            Maker(told=told, trust_pickle=trust_pickle),
            given,
            folder,
            targets=1 if chosen is None else [chosen],
            seed=told["seed"],
            engine=engine,
            workers=workers,
            part_size=told["part_size"],
            keep=told["keep"],
            max_failures=max_failures,
            about=json.dumps(told, sort_keys=True),
            progress=progress,
        )
    failed = len(run.failures())
    say(f"{told['inputs']}: {run.settings['count'] - failed} explained, {failed} failed.")
    say(f"The run is in {folder}; eblime report {folder} makes a page of it.")


def report(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    html: Annotated[Path | None, typer.Option(help="Where to write the page.")] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Make a page about a run: importance over all inputs, worst fits, failures.

    Example: eblime report run/ --open
    """
    from eblime.batch.overview import overview
    from eblime.batch.run import open_run

    page = html or run / "report.html"
    overview(open_run(run), page)
    say(f"Wrote {page}.")
    if open_it and not open_page(page):
        say(f"No graphical browser here; the page is {page}.")


def _refuse_other_settings(context: typer.Context) -> None:
    """With --resume the run's own settings hold; only how it is run may be said anew."""
    free = {"resume", "engine", "workers", "max_failures", "trust_pickle"}
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in free and getattr(source, "name", "") == "COMMANDLINE":
            raise ValueError(
                f"--resume must come without {name.replace('_', '-')}: the run has its own."
            )


def _told_before(manifest: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The settings that `eblime batch` began a run with."""
    try:
        return dict(json.loads(manifest["settings"]["about"]))
    except (TypeError, ValueError, KeyError) as error:
        raise ValueError(
            f"{folder} was not begun by `eblime batch`; go on with it in Python."
        ) from error


def _digest(model: str) -> str | None:
    """What a model file holds, None for a Python name."""
    path = Path(model)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Photos:
    """The photos of a folder, cut and scaled to what the model takes."""

    files: Any
    size: tuple[int, int, int] | None

    @property
    def fingerprint(self) -> str:
        """Names and sizes of the files, and the size they are scaled to."""
        return f"{self.files.fingerprint}-{self.size}"

    def __len__(self) -> int:
        return len(self.files)

    def name(self, number: int) -> str:
        """Its file name."""
        return str(self.files.name(number))

    def get(self, number: int) -> Any:
        """A photo as an array."""
        return read_photo(self.files.get(number), self.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """Makes the explainer of a run in whatever process needs it."""

    told: dict[str, Any]
    trust_pickle: bool

    def __call__(self) -> Any:
        """Load the model and make the explainer."""
        from eblime.explainer import ImageExplainer, TabularExplainer, TextExplainer

        told = self.told
        if told["model_sha256"] != _digest(told["model"]):
            raise ValueError(f"{told['model']} is not the model that the run was begun with.")
        model = load_model(told["model"], trust_pickle=self.trust_pickle)
        settings: dict[str, Any] = {
            "n_masks": told["masks"],
            "method": told["method"],
            "labels": None if told["labels"] is None else load_labels(Path(told["labels"])),
        }
        if told["kind"] == "image":
            return ImageExplainer(model, **settings)
        if told["kind"] == "text":
            return TextExplainer(model, **settings)
        usual = read_table(Path(told["background"] or told["inputs"]))
        return TabularExplainer(model, match_columns(usual, model, ""), **settings)
