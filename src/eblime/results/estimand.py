"""What the importances of an explanation estimate, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from eblime import registry
from eblime._repr import describe, name_of
from eblime._text import printable
from eblime.kernels import ExponentialKernel, as_kernel, kernel_of, shapley, uniform
from eblime.methods.common import LINEAR_FIT
from eblime.posterior import Posterior

if TYPE_CHECKING:
    from eblime.results.explanation import Explanation

_INTERCEPTS = {
    f"{LINEAR_FIT}free intercept": "a free intercept",
    f"{LINEAR_FIT}no intercept": "no intercept",
    f"{LINEAR_FIT}penalised intercept": "a penalised intercept",
    "weighted linear fit to all masks, free intercept": "a free intercept",
    "linear fit by the Shapley kernel, free intercept": "a free intercept",
}
_MEANS = {  # indices, and over which masks of the other features they are means
    "Banzhaf values": "each counting the same",
    "Shapley values": "each number of shown features counting the same",
}
# perturb -> rows of the own law of tables, and what stands for a hidden value in a chosen mask
_ROWS = {
    "bins": (
        "rows whose values are drawn from the background, each feature independently",
        "a value of another bin, drawn from the background",
    ),
    "normal": (
        "rows whose values are drawn from normal distributions inside bins of the background, each "
        "feature independently",
        "a value drawn from a normal distribution inside another bin",
    ),
    "rows": ("whole rows of the background", "that of a random row of the background"),
    "background": ("", ""),
}
_NUMBERS = {
    "continuous": "rows drawn from normal distributions around the row",
    "continuous-mean": "rows drawn from normal distributions around the mean of the background",
}


def describe_estimand(explanation: Explanation, posterior: Posterior | None = None) -> str:
    """What is averaged over which masks with which weights; the same words for the same quantity.

    `posterior` is that of another index of the same explanation.
    """
    words = (explanation.posterior if posterior is None else posterior).estimand
    drawn = explanation.answers.noisy and _perturb(explanation) != "background"
    drawn &= explanation.scene.domain != "prompt"  # a mask determines a prompt, not its answer
    means = drawn or _perturb(explanation) == "background"
    averaged = f"the mean over {_mixed(explanation)}" if means else ""
    if words in _MEANS:
        score = f", the score of a mask being {averaged}" if averaged else ""
        return (
            f"Importances are {words}: the mean change of the score when the feature is shown, "
            f"over all masks of the others, {_MEANS[words]}{score}."
        )
    if words not in _INTERCEPTS:
        return f"Importances are {printable(words)}."
    fit = f"coefficients of the linear fit with {_INTERCEPTS[words]}"
    weights, even = _weights(explanation, words), "to all masks" in words
    if drawn and not even:
        return f"Importances are {fit}{_rows(explanation)}, {weights}."
    score = f"; the score of a mask is {averaged}" if averaged else ""
    masks = _masks(explanation, even=even)
    return f"Importances are {fit} to the scores of {masks}, {weights}{score}."


def _masks(explanation: Explanation, *, even: bool = False) -> str:
    """The masks whose scores are fitted, by the design's law unless they count the same."""
    name = _design(explanation)
    every = f"all 2^{explanation.answers.n_varying} masks"
    if name == "as in lime":
        name = "sizes" if explanation.scene.domain == "text" else "bernoulli"
    known = name in registry.names("designs")
    law = getattr(registry.find("designs", name), "law", None) if known else f"as {name} draws them"
    return every if even or law is None else f"{every}, {law}"


def _design(explanation: Explanation) -> str:
    """The name of the design, also of one that was given as an object."""
    found = name_of(explanation.provenance.get("design"))
    objects = {"Focused": "focused", "Information": "information", "Adaptive": "adaptive"}
    alias = (objects | {"KernelLaw": "glime"}).get(found, found.replace("_", "-"))
    return alias if alias in registry.names("designs") else found


def _rows(explanation: Explanation) -> str:
    """What a regression is fitted to where chance fills in hidden features."""
    law, design = _perturb(explanation), explanation.provenance.get("design")
    if design is None and law is not None:
        kind = name_of(_reading(explanation, "representation"))
        if kind in _NUMBERS:
            rows = _NUMBERS[kind] if law in _ROWS else f"rows that {law} returns"
            return f", numbers in standard deviations, to the scores of {rows}"
        rows = _ROWS[law][0] if law in _ROWS else f"rows that {law} returns"
        return f", by whether each value is in the row's bin, to the scores of {rows}"
    if design is None or law not in _ROWS:
        return " to the scores of perturbed inputs as they are drawn"
    return f" to the scores of {_masks(explanation)}, in which a hidden value is {_ROWS[law][1]}"


def _mixed(explanation: Explanation) -> str:
    """What has the same mask where chance fills in hidden features."""
    law = _perturb(explanation)
    if law not in _ROWS:
        return "the perturbed inputs with that mask"
    if law == "background":
        known = name_of(_reading(explanation, "background") or "rows")
        return f"{known} of the background, from which all hidden values are taken"
    if explanation.provenance.get("design") is None:
        return f"{_ROWS[law][0]}, shown ones inside the row's bin and hidden ones outside"
    return f"rows in which a shown value is the row's own and a hidden one is {_ROWS[law][1]}"


def _perturb(explanation: Explanation) -> str | None:
    """How other values of a row are drawn; None for inputs that are not rows."""
    stored = _reading(explanation, "perturb")
    return None if stored is None else name_of(stored)


def _reading(explanation: Explanation, name: str) -> Any:
    """How the input was read, as the provenance says, which may come from any file."""
    about: Any = explanation.provenance.get("input")
    return about.get(name) if isinstance(about, Mapping) else None


def _weights(explanation: Explanation, words: str) -> str:
    """How much a mask counts."""
    own = getattr(explanation.method, "kernel", None)
    stored: Any = explanation.provenance.get("kernel")
    if own is not None and "to all masks" in words:
        stored = describe(as_kernel(own))
    kernel = kernel_of(stored)
    if kernel is shapley or "Shapley kernel" in words:
        return "weighted by the Shapley kernel"
    if kernel is uniform:
        return "all counting the same"
    if isinstance(kernel, ExponentialKernel):
        return f"weighted by the {kernel.describe(explanation.answers.n_varying)}"
    return f"weighted by {name_of(stored)}"
