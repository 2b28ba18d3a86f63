"""How an explanation was made: its settings as pairs of a heading and a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eblime.protocols import ScalarLaw
from eblime.reporting.describe import describe_input, describe_kernel, describe_object
from eblime.reporting.diagnostics import stop_sentence
from eblime.results.explanation import Explanation

__all__ = ["settings"]

_DESIGNS = {
    "bernoulli": "each feature is shown with probability one half",
    "paired": "random, each mask followed by its opposite",
    "stratified": "random pairs of opposites, each size as often as it occurs among all masks",
    "leverage": "random pairs of opposites, all sizes equally often, with weights that correct it",
    "focused": "pairs of opposites, preferably where the prediction is uncertain",
    "information": "pairs of opposites, preferably those that narrow the intervals most",
    "adaptive": "pairs of opposites, chosen in rounds where they narrow the intervals most",
    "exhaustive": "all possible masks",
    "sizes": "first how many features to hide, then which ones, both uniformly",
    "None": "values drawn from the background decide which features stay in their bin",
}


def settings(explanation: Explanation) -> list[tuple[str, str]]:
    """The settings as pairs of a heading and a sentence, in reading order."""
    post, made = explanation.posterior, explanation.provenance
    design = "exhaustive" if explanation.exhaustive else str(made.get("design", "unknown"))
    kernel = describe_kernel(made.get("kernel", "unknown"), post.n_features)
    pairs: list[tuple[str, str | None]] = [
        ("Features", f"{post.n_features}{_reading(made)}"),
        ("Masks", f"{post.n_masks}: {_DESIGNS.get(design) or describe_object(design)}"),
        ("Weights", f"{kernel}; effective sample size {post.ess:.1f}"),
        ("Method", f"{post.method}: {describe_object(made.get('method', 'unknown'))}"),
        ("Ridge parameter", _ridge(post.extras.get("lam"))),
        ("Seed", _seed(made)),
        ("Model calls", f"{made.get('model_calls', 'unknown')} inputs{_time(made)}"),
        ("Stopped", stop_sentence(explanation) or None),
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
