"""`eblime explain`: a photo, a row or a text, or many of them, and the files that come of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from eblime._checks import check_choice, check_level
from eblime.cli.files import free_names, make_folder
from eblime.cli.modelfile import NORMALISATIONS, load_labels, load_model
from eblime.cli.options import (
    Activation,
    Bins,
    Categorical,
    Design,
    Drop,
    Group,
    HideImage,
    Json,
    Labels,
    Masks,
    MethodName,
    Model,
    Normalise,
    Open,
    Out,
    OutputName,
    Perturb,
    Prob,
    Representation,
    Seed,
    SegmentationName,
    Size,
    Target,
    Targets,
    TokensName,
    Top,
    Trust,
    parse_targets,
)
from eblime.cli.photos import find_photos, parse_hide, parse_segmentation, photo_size
from eblime.cli.running import Item, run_all
from eblime.cli.tables import find_texts, match_columns, parse_groups, parse_rows, read_table
from eblime.domains.image.photo import read_photo
from eblime.results.explanation import Explanation

__all__ = ["explain_app"]

explain_app = typer.Typer(
    no_args_is_help=True,
    help="Explain what a model says of an image, a row of a table or a text.",
    rich_markup_mode=None,
)


@explain_app.callback()
def _explain() -> None:
    """Explain what a model says of an image, a row of a table or a text."""


@explain_app.command("image")
def explain_image(
    photo: Annotated[Path, typer.Argument(help="A photo, or a folder of photos.")],
    model: Model,
    labels: Labels = None,
    out: Out = Path("eblime-out"),
    target: Target = None,
    targets: Targets = None,
    method: MethodName = "eblime",
    masks: Masks = 1000,
    design: Design = "bernoulli",
    segmentation: SegmentationName = "slic",
    hide: HideImage = "mean",
    size: Size = None,
    normalise: Normalise = "unit",
    activation: Activation = "none",
    output_name: OutputName = None,
    seed: Seed = 0,
    prob: Prob = 0.95,
    top: Top = 5,
    as_json: Json = False,
    open_it: Open = False,
    trust_pickle: Trust = False,
) -> None:
    """Explain a photo, or every photo of a folder, by superpixels.

    Writes NAME.eblime, NAME.json, NAME.png and NAME.html to the folder --out; with --targets,
    NAME-LABEL.eblime and so on for each output.

    Example: eblime explain image dog.jpg --model net.onnx --labels names.txt --activation softmax
    """
    from eblime.explainers.image import ImageExplainer

    check_level("--prob", prob)
    chosen = parse_targets(target, targets)
    check_choice("--normalise", normalise, NORMALISATIONS)
    paths = find_photos(photo)
    loaded = load_model(
        model,
        trust_pickle=trust_pickle,
        normalise=normalise,
        activation=activation,
        output_name=output_name,
    )
    settings: dict[str, Any] = {
        "segmentation": parse_segmentation(segmentation),
        "hide": parse_hide(hide),
        "n_masks": masks,
        "design": design,
        "method": method,
        "labels": None if labels is None else load_labels(labels),
    }
    shape = photo_size(loaded, size)

    def explain(path: Path, progress: Callable[[int, int], None]) -> list[Explanation]:
        explainer = ImageExplainer(loaded, progress=progress, **settings)
        found = explainer.explain_targets(read_photo(path, shape), chosen, seed)
        return list(found.values())

    ImageExplainer(loaded, **settings)  # refuses settings that cannot work, before any photo
    items: list[Item] = [
        (path.name, name, path) for path, name in zip(paths, free_names(paths, out), strict=True)
    ]
    run_all(items, explain, make_folder(out), prob=prob, top=top, as_json=as_json, show=open_it)


@explain_app.command("tabular")
def explain_tabular(
    data: Annotated[Path, typer.Argument(help="A .csv or .parquet file.")],
    model: Model,
    row: Annotated[str, typer.Option(help="Rows, from 0: 3, or 3,7, or 0:10.")] = "0",
    background: Annotated[
        Path | None, typer.Option(help="What is usual, such as the training data. Default: DATA.")
    ] = None,
    drop: Drop = "",
    categorical: Categorical = "",
    group: Group = None,
    labels: Labels = None,
    out: Out = Path("eblime-out"),
    target: Target = None,
    targets: Targets = None,
    method: MethodName = "eblime",
    masks: Masks = 1000,
    representation: Representation = "binary",
    bins: Bins = "quartile",
    perturb: Perturb = "bins",
    seed: Seed = 0,
    prob: Prob = 0.95,
    top: Top = 10,
    as_json: Json = False,
    open_it: Open = False,
    trust_pickle: Trust = False,
) -> None:
    """Explain rows of a table by its columns.

    Columns that the model was trained on are found by their names; others are left out.

    Example: eblime explain tabular data.csv --row 3 --model m.skops --background train.csv
    """
    from eblime.explainers.tabular import TabularExplainer

    check_level("--prob", prob)
    chosen = parse_targets(target, targets)
    table = read_table(data)
    usual = table if background is None else read_table(background)
    rows = parse_rows(row, len(table))
    loaded = load_model(model, trust_pickle=trust_pickle)
    usual = match_columns(usual, loaded, drop)
    settings: dict[str, Any] = {
        "categorical": categorical.split(",") if categorical else None,
        "groups": parse_groups(group or []),
        "n_masks": masks,
        "method": method,
        "representation": representation,
        "bins": bins,
        "perturb": perturb,
        "labels": None if labels is None else load_labels(labels),
    }
    told: list[Callable[[int, int], None]] = []  # whom to tell of the row at hand
    explainer = TabularExplainer(
        loaded, usual, progress=lambda done, total: told[-1](done, total), **settings
    )

    def explain(place: int, progress: Callable[[int, int], None]) -> list[Explanation]:
        told.append(progress)
        return list(explainer.explain_targets(table.iloc[place], chosen, seed).values())

    items: list[Item] = [(f"{data.name}, row {k}", f"{data.stem}-row{k}", k) for k in rows]
    run_all(items, explain, make_folder(out), prob=prob, top=top, as_json=as_json, show=open_it)


@explain_app.command("text")
def explain_text(
    text: Annotated[
        str, typer.Argument(help="The text itself, a .txt file, a folder of them, or - to read it.")
    ],
    model: Model,
    labels: Labels = None,
    out: Out = Path("eblime-out"),
    target: Target = None,
    targets: Targets = None,
    method: MethodName = "eblime",
    masks: Masks = 1000,
    design: Design = "sizes",
    tokens: TokensName = "word",
    positions: Annotated[
        bool, typer.Option("--positions", help="Each occurrence of a word is a feature.")
    ] = False,
    hide: Annotated[
        str, typer.Option(help="What stands for a hidden word. Default: nothing.")
    ] = "",
    seed: Seed = 0,
    prob: Prob = 0.95,
    top: Top = 10,
    as_json: Json = False,
    open_it: Open = False,
    trust_pickle: Trust = False,
) -> None:
    """Explain a text by its words, sentences or characters.

    Example: eblime explain text "A witty, gorgeous film." --model sentiment.skops
    """
    from eblime.explainers.text import TextExplainer

    check_level("--prob", prob)
    chosen = parse_targets(target, targets)
    items = find_texts(text, sys.stdin)
    settings: dict[str, Any] = {
        "tokens": tokens,
        "bag": not positions,
        "hide": hide,
        "n_masks": masks,
        "design": design,
        "method": method,
        "labels": None if labels is None else load_labels(labels),
    }
    loaded = load_model(model, trust_pickle=trust_pickle)
    TextExplainer(loaded, **settings)  # refuses settings that cannot work, before any text

    def explain(words: str, progress: Callable[[int, int], None]) -> list[Explanation]:
        explainer = TextExplainer(loaded, progress=progress, **settings)
        return list(explainer.explain_targets(words, chosen, seed).values())

    run_all(items, explain, make_folder(out), prob=prob, top=top, as_json=as_json, show=open_it)
