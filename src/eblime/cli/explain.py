"""`eblime explain`: one input or a folder of them, and the files that come of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from eblime.cli.files import free_names, json_line, make_folder, write_all
from eblime.cli.modelfile import NORMALISATIONS, load_labels, load_model
from eblime.cli.photos import find_photos, parse_hide, parse_segmentation, photo_size, read_photo
from eblime.cli.terminal import asking, open_page, print_explanation, say
from eblime.explanation import Explanation

__all__ = ["explain_app"]

explain_app = typer.Typer(
    no_args_is_help=True, help="Explain what a model says of an image.", rich_markup_mode=None
)

Model = Annotated[
    str, typer.Option("--model", "-m", help="An .onnx or .skops file, or module:name.")
]
Labels = Annotated[
    Path | None, typer.Option(help="Names of the outputs: one a line, or JSON.", exists=True)
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")]
Target = Annotated[
    str | None, typer.Option(help="Output to explain, by number or name. Default: the highest.")
]
MethodName = Annotated[str, typer.Option(help="eblime, eblime-paper, bayeslime or lime.")]
Masks = Annotated[int, typer.Option(help="How many masks to ask about.", min=1)]
Design = Annotated[str, typer.Option(help="bernoulli, paired or exhaustive.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same answer.")]
Prob = Annotated[float, typer.Option(help="Level of the intervals.")]
Top = Annotated[int, typer.Option(help="Features to print and to mark.", min=1)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Open = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]
Trust = Annotated[
    bool,
    typer.Option(help="Read pickle and joblib models, which can run any code."),
]


@explain_app.callback()
def _explain() -> None:
    """Explain what a model says of an image."""


@explain_app.command("image")
def explain_image(
    photo: Annotated[Path, typer.Argument(help="A photo, or a folder of photos.")],
    model: Model,
    labels: Labels = None,
    out: Out = Path("eblime-out"),
    target: Target = None,
    method: MethodName = "eblime",
    masks: Masks = 1000,
    design: Design = "bernoulli",
    segmentation: Annotated[
        str, typer.Option(help="slic, quickshift, felzenszwalb, grid; or slic:n_segments=100.")
    ] = "slic",
    hide: Annotated[str, typer.Option(help="mean, blur, a grey value, or #808080.")] = "mean",
    size: Annotated[
        int | None, typer.Option(help="Scale photos to this size. Default: what the graph takes.")
    ] = None,
    normalise: Annotated[
        str, typer.Option(help="Pixels for ONNX: unit (0..1), imagenet, symmetric, bytes.")
    ] = "unit",
    activation: Annotated[
        str, typer.Option(help="On ONNX outputs: none, softmax or sigmoid.")
    ] = "none",
    seed: Seed = 0,
    prob: Prob = 0.95,
    top: Top = 5,
    as_json: Json = False,
    open_it: Open = False,
    trust_pickle: Trust = False,
) -> None:
    """Explain a photo, or every photo of a folder, by superpixels.

    Writes NAME.eblime, NAME.json, NAME.png and NAME.html to the folder --out.

    Example: eblime explain image dog.jpg --model net.onnx --labels names.txt --activation softmax
    """
    from eblime._checks import check_choice, check_level
    from eblime.explainer import ImageExplainer

    check_level("--prob", prob)
    check_choice("--normalise", normalise, NORMALISATIONS)
    paths = find_photos(photo)
    loaded = load_model(
        model, trust_pickle=trust_pickle, normalise=normalise, activation=activation
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

    def explain(path: Path, progress: Callable[[int, int], None]) -> Explanation:
        explainer = ImageExplainer(loaded, progress=progress, **settings)
        return explainer.explain(read_photo(path, shape), parse_target(target), seed)

    ImageExplainer(loaded, **settings)  # refuses settings that cannot work, before any photo
    run_all(paths, explain, make_folder(out), prob=prob, top=top, as_json=as_json, show=open_it)


def parse_target(target: str | None) -> int | str | None:
    """A column by its number, or a name."""
    return int(target) if target is not None and target.isdigit() else target


def run_all(
    paths: list[Path],
    explain: Callable[[Path, Callable[[int, int], None]], Explanation],
    out: Path,
    *,
    prob: float,
    top: int,
    as_json: bool,
    show: bool,
) -> None:
    """Explain inputs one after the other; one that fails is told and does not stop the rest."""
    failed = 0
    pages = []
    for path, name in zip(paths, free_names(paths), strict=True):
        try:
            with asking(path.name, quiet=as_json) as progress:
                explanation = explain(path, progress)
        except Exception as error:
            if len(paths) == 1:
                raise
            failed += 1
            say(f"{path}: {first_line(error)}", error=True)
            continue
        title = f"{path.name}: why {explanation.label!r}?"
        written = write_all(explanation, out, name, title=title, prob=prob, top=top)
        pages.append(written[-1])
        if as_json:
            say(json_line(explanation, prob, top))
            continue
        if len(paths) > 1:
            say(f"\n{path}")
        print_explanation(explanation, prob=prob, top=top)
        say("Wrote " + ", ".join(str(file) for file in written) + ".")
    if show and pages:
        open_page(pages[0])
    if failed:
        raise RuntimeError(f"{failed} of {len(paths)} inputs failed; the others are in {out}.")


def first_line(error: BaseException) -> str:
    """What an error says, on one line."""
    words = str(error).strip() or type(error).__name__
    return " ".join(words.split())
