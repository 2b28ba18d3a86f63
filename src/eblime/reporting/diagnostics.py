"""Sentences about an explanation: how good the fit is, what to watch out for, how it was made.

The page, the notebook and the terminal show the same sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from eblime._text import printable
from eblime.protocols import ScalarLaw
from eblime.reporting.describe import describe_input, describe_kernel, describe_object
from eblime.results.explanation import Explanation

__all__ = ["TOP_K_NOTE", "cautions", "fit_sentence", "is_poor_fit", "settings", "top_classes"]

_FEW = 8  # a feature that changed in fewer masks is rarely changed
_CLASSES = 10  # listed on a page
TOP_K_NOTE = (
    "P(top k) is the probability that a feature is among the k most important to the linear "
    "surrogate. It is about the fit: it is not the probability that the object or the defect is "
    "there."
)
_POOR, _FAIR = 0.5, 0.75  # R^2 below which the linear fit is poor, and below which it is only fair

_DESIGNS = {
    "bernoulli": "each feature is shown with probability one half",
    "paired": "random, each mask followed by its opposite",
    "exhaustive": "all possible masks",
    "sizes": "first how many features to hide, then which ones, both uniformly",
    "None": "values drawn from the background decide which features stay in their bin",
}


def fit_sentence(explanation: Explanation) -> str:
    """How much of the model the linear fit explains."""
    if _is_constant(explanation):
        return "The score never changed, whatever was hidden: there is nothing to explain."
    r2 = explanation.posterior.r2
    share = f"{100 * max(r2, 0):.0f} %"
    return f"The linear fit explains {share} of the changes of the score (R² {r2:.2f})."


def is_poor_fit(explanation: Explanation) -> bool:
    """Whether the linear fit explains less than half of the changes of the score."""
    return not _is_constant(explanation) and not explanation.posterior.r2 >= _POOR


def cautions(explanation: Explanation) -> list[str]:
    """What a reader should know before relying on the numbers; a poor fit comes first."""
    found = [_fit_caution(explanation), _spread_caution(explanation), _rare_caution(explanation)]
    if explanation.exhaustive:
        found.append(
            f"All {len(explanation.masks)} masks were asked: no sampling error is left, and the "
            "intervals show only the lack of linear fit."
        )
    return [caution for caution in found if caution]


def _fit_caution(explanation: Explanation) -> str:
    """A caution about R^2; empty if the fit is good."""
    if _is_constant(explanation):
        return (
            "The model returned the same score for every mask: no feature has an effect here, and "
            "R² has no meaning. If this is unexpected, check the inputs that the model receives."
        )
    if is_poor_fit(explanation):
        return (
            "The linear fit is poor: the importances are a rough sketch of the model here, however "
            "narrow their intervals. Coarser or other features, or a narrower kernel, may describe "
            "it better."
        )
    if explanation.posterior.r2 < _FAIR:
        return "The linear fit is only fair: the model does more here than add up its features."
    return ""


def _spread_caution(explanation: Explanation) -> str:
    """A caution about a point estimate or too few masks; empty otherwise."""
    post = explanation.posterior
    if not post.has_spread:
        return f"{printable(post.method)} is a point estimate: it has no intervals."
    if not explanation.exhaustive and post.ess < 2 * post.n_features:
        return (
            f"Few masks for {post.n_features} features (effective sample size {post.ess:.0f}): "
            "more masks will narrow the intervals."
        )
    return ""


def _rare_caution(explanation: Explanation) -> str:
    """A caution about features that are nearly always shown, or nearly always hidden."""
    masks = explanation.masks
    if explanation.exhaustive or not explanation.posterior.has_spread or len(masks) < _FEW:
        return ""
    most = np.array([np.unique(column, return_counts=True)[1].max() for column in masks.T])
    rare = int(np.sum(len(masks) - most < _FEW))
    if not rare:
        return ""
    return (
        f"{rare} of the features changed in fewer than {_FEW} masks: their intervals are based on "
        "few answers and may be too narrow. More masks help."
    )


def _is_constant(explanation: Explanation) -> bool:
    """Whether the model gave every mask the same score."""
    return bool(np.ptp(explanation.scores) == 0)


def top_classes(explanation: Explanation) -> list[tuple[str, float]]:
    """The most likely classes with their probabilities, if the provenance has them."""
    stored = explanation.provenance.get("top_classes")
    found = []
    for entry in stored[:_CLASSES] if isinstance(stored, (list, tuple)) else ():
        if isinstance(entry, (list, tuple)) and len(entry) == 2:
            label, chance = entry
            if isinstance(chance, (int, float)) and np.isfinite(chance):
                found.append((str(label), float(chance)))
    return found


def settings(explanation: Explanation) -> list[tuple[str, str]]:
    """The settings as pairs of a heading and a sentence, in reading order."""
    post, made = explanation.posterior, explanation.provenance
    design = "exhaustive" if explanation.exhaustive else str(made.get("design", "unknown"))
    kernel = describe_kernel(made.get("kernel", "unknown"), post.n_features)
    pairs: list[tuple[str, str | None]] = [
        ("Features", f"{post.n_features}{_reading(made)}"),
        ("Masks", f"{post.n_masks}: {_DESIGNS.get(design, design)}"),
        ("Weights", f"{kernel}; effective sample size {post.ess:.1f}"),
        ("Method", f"{post.method}: {describe_object(made.get('method', 'unknown'))}"),
        ("Ridge parameter", _ridge(post.extras.get("lam"))),
        ("Seed", _seed(made)),
        ("Model calls", f"{made.get('model_calls', 'unknown')} inputs{_time(made)}"),
        ("Versions", _versions(made)),
    ]
    return [(heading, sentence) for heading, sentence in pairs if sentence is not None]


def _reading(made: Mapping[str, Any]) -> str:
    """How the input was read; empty if that is unknown."""
    phrases = describe_input(made.get("input"))
    return f": {phrases}" if phrases else ""


def _ridge(lam: ScalarLaw | None) -> str | None:
    """The posterior of lambda in a few words; None for a method without a ridge parameter."""
    if lam is None:
        return None
    low, high = lam.quantile([0.025, 0.975])
    if low == high:
        return f"fixed at {low:.4g}"
    return f"median {lam.median:.3g}, 95 % from {low:.3g} to {high:.3g}"


def _seed(made: Mapping[str, Any]) -> str:
    """The seed, or what it means that there is none."""
    seed = made.get("seed")
    return "none: another run draws other masks" if seed is None else str(seed)


def _time(made: Mapping[str, Any]) -> str:
    """How long it took; empty if that is unknown."""
    seconds = made.get("seconds")
    return "" if seconds is None else f" in {seconds:.1f} s"


def _versions(made: Mapping[str, Any]) -> str | None:
    """Versions of the packages; None if they are unknown."""
    versions = made.get("versions")
    if not isinstance(versions, Mapping):
        return None
    return ", ".join(f"{name} {version}" for name, version in versions.items())
