"""`eblime demo`: an example that runs in seconds and needs no files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from eblime._checks import check_choice
from eblime._files import write_whole
from eblime.cli.options import OPEN, OUT, argument, with_options
from eblime.cli.output import (
    make_folder,
    print_explanation,
    save_figure,
    say,
    show_page,
    write_all,
)
from eblime.results.explanation import Explanation

__all__ = ["demo"]

_WHICH = 2  # of the scans that ship with the package


@with_options(
    argument("which", "Which example: scan or photo.", default="scan"),
    replace(OUT, default=Path("demo")),
    OPEN,
)
def demo(which: str, out: Path, open: bool) -> None:
    """Explain an example: a defect in an ultrasonic scan, or a photo.

    "scan": a small network that comes with eblime predicts that a printed block has a defect; the
    explanation shows where. "photo": EfficientNet-Lite0 classifies a photo of a coffee cup; this
    needs pip install 'eblime[demo]'.

    Prints a table, and writes the table, the explanation, its numbers, a picture and a page to the
    folder --out.

    Example: eblime demo --open
    """
    check_choice("demo", which, ("scan", "photo"))
    folder = make_folder(out)
    explanation, title, sentence = _scan() if which == "scan" else _photo()
    print_explanation(explanation, prob=0.95, top=5)
    provenance = explanation.provenance
    say(f"{sentence}\n{provenance['model_calls']} images in {provenance['seconds']:.1f} s.")
    name = "scan" if which == "scan" else "espresso"
    *_, png, html = write_all(explanation, folder, name, title=title, prob=0.95, top=5)
    write_whole((folder / f"{name}.txt").resolve(), f"{explanation}\n".encode())
    if which == "scan":
        _draw_scan(explanation, png)
    say(f"Look at {png} and {html}; eblime show {folder / name}.eblime prints the table again.")
    if open:
        show_page(html)


def _scan() -> tuple[Explanation, str, str]:
    """The defect of a scan, and how much of the true one was found."""
    from eblime.datasets.ultrasonic import LABELS, sample_scans, ultrasonic_network
    from eblime.measures import covered_share

    images, defects = sample_scans()
    settings = {"segmentation": ("slic", {"n_segments": 40}), "labels": LABELS}
    explanation = _explain(ultrasonic_network(), images[_WHICH], "with defect", **settings)
    share = 100 * covered_share(explanation, defects[_WHICH], top=5)
    sentence = f"{share:.0f} % of the true defect is under the five most important superpixels."
    return explanation, "Where is the defect?", sentence


def _photo() -> tuple[Explanation, str, str]:
    """The photo of a coffee cup."""
    from eblime.datasets.imagenet import coffee, efficientnet_lite0

    explanation = _explain(efficientnet_lite0(), coffee())
    candidates = explanation.posterior.ranking(by="value").credible_set(1)
    named = ", ".join(explanation.features[j] for j in candidates)
    title = "Why does EfficientNet-Lite0 predict 'espresso'?"
    return explanation, title, f"Most important (95 % credible set): {named}."


def _explain(model: Any, image: Any, target: str | None = None, **settings: Any) -> Explanation:
    """Ask a network about 400 masks."""
    from eblime.explainers.image import ImageExplainer

    return ImageExplainer(model, n_masks=400, **settings).explain(image, target)


def _draw_scan(explanation: Explanation, path: Path) -> None:
    """The scan with its true defect, the superpixels found, and their intervals."""
    from matplotlib.figure import Figure

    from eblime.datasets.ultrasonic import sample_scans

    images, defects = sample_scans()
    figure = Figure(figsize=(12.6, 4.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    left.imshow(images[_WHICH], cmap="gray")
    left.contour(defects[_WHICH], levels=[0.5], colors="#E69F00", linewidths=1.5)
    left.set_title("the scan, with its true defect outlined", fontsize="medium", loc="left")
    left.set_xticks([])
    left.set_yticks([])
    explanation.plot("map", ax=middle)
    explanation.plot("intervals", top=10, ax=right)
    save_figure(figure, path, dpi=100)
