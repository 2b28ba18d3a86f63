"""What an explanation says, in plain words: the page, the notebook and the terminal share them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from eblime._text import printable
from eblime.reporting.plain import input_words, kernel_words, object_words
from eblime.results.explanation import Explanation

__all__ = ["TOP_K_NOTE", "cautions", "fit_sentence", "settings", "top_classes"]

_FEW = 8
_CLASSES = 10  # that a page lists
TOP_K_NOTE = (
    "P(top k) is the probability that a feature is among the k most important to the linear "
    "surrogate. It is about the fit: it is not the probability that the object or the defect is "
    "there."
)
POOR, FAIR = 0.5, 0.75  # R^2 below which the line is a rough sketch, and a fair one

_DESIGNS = {
    "bernoulli": "each feature is shown with probability one half",
    "paired": "random, each mask followed by its opposite",
    "exhaustive": "all possible masks",
    "sizes": "first how many features to hide, then which, both uniformly",
    "None": "values drawn from the background decide which features stay in their bin",
}


def fit_sentence(explanation: Explanation) -> str:
    """How much of the model the line explains."""
    r2 = explanation.posterior.r2
    if np.ptp(explanation.scores) == 0:
        return "The score never moved, whatever was hidden: there is nothing to explain."
    share = f"{100 * max(r2, 0):.0f} %"
    return f"The linear fit explains {share} of how the score moves (R² {r2:.2f})."


def cautions(explanation: Explanation) -> list[str]:
    """What a reader must know before believing the numbers; empty where all is well."""
    post, found = explanation.posterior, []
    if np.ptp(explanation.scores) == 0:
        found.append(
            "The model returned the same score for every mask: no feature has an effect here, and "
            "R² says nothing. If that is a surprise, check the inputs that the model receives."
        )
    elif not post.r2 >= POOR:
        found.append(
            "The linear fit is poor: the importances are a rough sketch of the model here, however "
            "narrow their intervals. Coarser or other features, or a narrower kernel, may describe "
            "it better."
        )
    elif post.r2 < FAIR:
        found.append(
            "The linear fit is only fair: the model does more here than add up its features."
        )
    if not post.has_spread:
        found.append(
            f"{printable(post.method)} is a point estimate: it does not say how sure it is."
        )
    elif not explanation.exhaustive and post.ess < 2 * post.n_features:
        found.append(
            f"Few masks for {post.n_features} features (effective sample size {post.ess:.0f}): "
            "more masks will narrow the intervals."
        )
    rare = _rarely_changed(explanation)
    if rare:
        found.append(
            f"{rare} of the features changed in fewer than {_FEW} masks: their intervals rest on "
            "few answers, and may be too narrow. More masks help."
        )
    if explanation.exhaustive:
        found.append(
            f"All {len(explanation.masks)} masks were asked: no sampling error is left, and the "
            "intervals show the lack of linear fit alone."
        )
    return found


def top_classes(explanation: Explanation) -> list[tuple[str, float]]:
    """The classes that the model finds most likely, with their probabilities, where stored."""
    stored = explanation.provenance.get("top_classes")
    found = []
    for entry in stored[:_CLASSES] if isinstance(stored, (list, tuple)) else ():
        if isinstance(entry, (list, tuple)) and len(entry) == 2:
            label, chance = entry
            if isinstance(chance, (int, float)) and np.isfinite(chance):
                found.append((str(label), float(chance)))
    return found


def _rarely_changed(explanation: Explanation) -> int:
    """How many features were nearly always shown, or nearly always hidden."""
    masks = explanation.masks
    if explanation.exhaustive or not explanation.posterior.has_spread:
        return 0
    most = np.array([np.unique(column, return_counts=True)[1].max() for column in masks.T])
    return int(np.sum(len(masks) - most < _FEW)) if len(masks) >= _FEW else 0


def settings(explanation: Explanation) -> list[tuple[str, str]]:
    """The settings as pairs of a heading and a sentence, in reading order."""
    post, made = explanation.posterior, explanation.provenance
    lam = post.extras.get("lam")
    design = str(made.get("design", "unknown"))
    asked = "exhaustive" if explanation.exhaustive else design
    pairs = [
        ("Features", f"{post.n_features}{_reading(made)}"),
        ("Masks", f"{post.n_masks}: {_DESIGNS.get(asked, asked)}"),
        (
            "Weights",
            f"{kernel_words(made.get('kernel', 'unknown'), post.n_features)}; "
            f"effective sample size {post.ess:.1f}",
        ),
        ("Method", f"{post.method}: {object_words(made.get('method', 'unknown'))}"),
        *([("Ridge parameter", _ridge(lam))] if lam is not None else []),
        ("Seed", _seed(made)),
        ("Model calls", f"{made.get('model_calls', 'unknown')} inputs{_time(made)}"),
    ]
    versions = made.get("versions")
    if isinstance(versions, Mapping):
        pairs.append(("Versions", ", ".join(f"{name} {v}" for name, v in versions.items())))
    return pairs


def _reading(made: Mapping[str, Any]) -> str:
    """How the input was read."""
    words = input_words(made.get("input"))
    return f": {words}" if words else ""


def _ridge(lam: Any) -> str:
    """The posterior of lambda in a few words."""
    low, high = lam.quantile([0.025, 0.975])
    if low == high:
        return f"fixed at {low:.4g}"
    return f"median {lam.median:.3g}, 95 % from {low:.3g} to {high:.3g}"


def _seed(made: Mapping[str, Any]) -> str:
    """The seed, or a word on why there is none."""
    seed = made.get("seed")
    return "none: another run gives other masks" if seed is None else str(seed)


def _time(made: Mapping[str, Any]) -> str:
    """How long it took, where that is known."""
    seconds = made.get("seconds")
    return "" if seconds is None else f" in {seconds:.1f} s"
