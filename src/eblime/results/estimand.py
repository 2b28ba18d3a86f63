"""What the importances of an explanation estimate, in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eblime import registry
from eblime._repr import describe, name_of
from eblime._text import printable
from eblime.kernels import ExponentialKernel, as_kernel, kernel_of, shapley, uniform
from eblime.posterior import Posterior

if TYPE_CHECKING:
    from eblime.results.explanation import Explanation

_INTERCEPTS = {"free": "a free", "no": "no", "penalised": "a penalised"}
_MEANS = {  # indices, and over which masks of the other features they are means
    "Banzhaf values": "each counting the same",
    "Shapley values": "each number of shown features counting the same",
}


def describe_estimand(explanation: Explanation, posterior: Posterior | None = None) -> str:
    """What is averaged over which masks with which weights; the same words for the same quantity.

    `posterior` is that of another index of the same explanation.
    """
    words = (explanation.posterior if posterior is None else posterior).estimand
    drawn = explanation.answers.noisy
    drawn &= explanation.scene.domain != "prompt"  # a mask determines a prompt, not its answer
    averaged = _averaged(explanation, drawn=drawn)
    if words in _MEANS:
        score = f", the score of a mask being {averaged}" if averaged else ""
        return (
            f"Importances are {words}: the mean change of the score when the feature is shown, "
            f"over all masks of the others, {_MEANS[words]}{score}."
        )
    fitted, _, kind = words.removesuffix(" intercept").rpartition(", ")
    if "linear fit" not in fitted or kind not in _INTERCEPTS:
        return f"Importances are {printable(words)}."
    fit = f"coefficients of the linear fit with {_INTERCEPTS[kind]} intercept"
    weights, even = _weights(explanation, words), "to all masks" in words
    if drawn and not even:
        by_law = explanation.provenance.get("design") is None
        masks = "perturbed inputs as they are drawn" if by_law else _masks(explanation)
        return f"Importances are {fit} to the scores of {masks}, {weights}."
    score = f"; the score of a mask is {averaged}" if averaged else ""
    masks = _masks(explanation, even=even)
    return f"Importances are {fit} to the scores of {masks}, {weights}{score}."


def plain_estimand(explanation: Explanation) -> str:
    """What an importance is, without a formula."""
    hide = (explanation.provenance.get("input") or {}).get("hide")
    domain, way = explanation.scene.domain, printable(name_of(hide))
    if domain == "tabular":
        what, how = "value", "replaced by those of the background"
    else:
        what, how = "part", f"hidden ({way})" if hide or hide == 0 else "left out"
        how = how if hide != "mean" else f"replaced by its mean{' colour' * (domain == 'image')}"
    words = f"How much the score falls when the {what} is {how}"
    return f"{words}, averaged over which of the others are hidden too."


def _masks(explanation: Explanation, *, even: bool = False) -> str:
    """The masks whose scores are fitted, by the design's law unless they count the same."""
    found = name_of(explanation.provenance.get("design"))
    if found == "as in lime":
        found = "sizes" if explanation.scene.domain == "text" else "bernoulli"
    # a design that was given as an object has the name of its class
    named = "glime" if found == "KernelLaw" else found.replace("_", "-").lower()
    law: str | None = f"as {found} draws them"
    if named in registry.names("designs"):
        law = getattr(registry.find("designs", named), "law", None)
    every = f"all 2^{explanation.answers.n_varying} masks"
    return every if even or law is None else f"{every}, {law}"


def _averaged(explanation: Explanation, *, drawn: bool) -> str:
    """What the score of a mask is a mean over; empty if a mask has one input."""
    found = (explanation.provenance.get("input") or {}).get("background")
    if isinstance(found, str):
        mean = f"the mean over {printable(found[:60])} of the background"
        mean = f"the log-odds of {mean}" if explanation.unit else mean
        return f"{mean}, from which all hidden values are taken"
    return "the mean over the perturbed inputs with that mask" if drawn else ""


def _weights(explanation: Explanation, words: str) -> str:
    own = getattr(explanation.method, "kernel", None)
    stored: object = explanation.provenance.get("kernel")
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
