"""Sentences about an explanation: how good the fit is, what to watch out for, how it was made.

The page, the notebook and the terminal show the same sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from eblime._text import printable
from eblime._types import FloatArray, IntArray
from eblime.posterior import Posterior
from eblime.protocols import ScalarLaw
from eblime.reporting.describe import describe_input, describe_kernel, describe_object
from eblime.results.explanation import Explanation
from eblime.results.indices import by_quadrature

__all__ = [
    "TOP_K_NOTE",
    "cautions",
    "fit_sentence",
    "is_poor_fit",
    "settings",
    "stop_sentence",
    "top_classes",
]

_FEW = 8  # an importance that rests on fewer masks gets a note
_NAMED = 3  # features that the note names
_CLASSES = 10  # listed on a page
TOP_K_NOTE = (
    "P(top k) is the probability that a feature is among the k most important to the linear "
    "surrogate. It is about the fit: it is not the probability that the object or the defect is "
    "there."
)
# held-out R^2 below which the linear fit predicts nothing, is poor, and is only fair
_NOTHING, _POOR, _FAIR = 0.1, 0.5, 0.75
_GAP = 0.2  # between in-sample and held-out R^2, above which there are too few masks
_PRIOR = 0.1  # by which EBLIME's R^2 must be above a method's to blame that method's prior

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


def fit_sentence(explanation: Explanation) -> str:
    """How well the fit predicts the model."""
    if _is_constant(explanation):
        return "The score never changed, whatever was hidden: there is nothing to explain."
    r2, label = _r2(explanation.posterior), explanation.posterior.fit_label(2, "R²")
    if by_quadrature(explanation):
        return _process_sentence(explanation.posterior, label)
    if r2 <= 0:
        return f"The linear fit predicts the score no better than its mean does ({label})."
    return f"The linear fit explains {100 * r2:.0f} % of the changes of the score ({label})."


def _process_sentence(post: Posterior, label: str) -> str:
    """How well a posterior over functions of the mask predicts, and how well a line would."""
    line = f"{100 * max(0.0, post.r2):.0f} % of the changes of the score"
    if not label.startswith("held-out"):
        return f"A straight line explains {line}."
    return (
        f"The score of a mask that was not asked is predicted with {label}. A straight line "
        f"explains {line}."
    )


def stop_sentence(explanation: Explanation) -> str:
    """What the stop rule reached, or why the questions ended; empty without a rule or a limit."""
    known = explanation.provenance.get("stopped")
    return printable(known) if isinstance(known, str) else ""


def is_poor_fit(explanation: Explanation) -> bool:
    """Whether the linear fit explains less than half of the changes of the score."""
    return not _is_constant(explanation) and not _r2(explanation.posterior) >= _POOR


def cautions(explanation: Explanation) -> list[str]:
    """What a reader should know before relying on the numbers; a poor fit comes first."""
    if by_quadrature(explanation):
        found = [_score_caution(explanation), _process_caution(explanation)]
        return [caution for caution in found if caution]
    free = _free_of_prior(explanation)
    found = [
        _score_caution(explanation),
        _prior_caution(explanation, free),
        _fit_caution(explanation.posterior if free is None else free),
        _spread_caution(explanation),
        _rare_caution(explanation),
    ]
    if explanation.exhaustive:
        found.append(
            f"All {len(explanation.masks)} masks were asked: no sampling error is left, and the "
            "intervals show only the lack of linear fit."
        )
    return [caution for caution in found if caution]


def _score_caution(explanation: Explanation) -> str:
    """A caution about scores that do not move, or barely; empty otherwise."""
    post = explanation.posterior
    if _is_constant(explanation):
        return (
            "The model returned the same score for every mask: no feature has an effect here, and "
            "R² has no meaning. If this is unexpected, check the inputs that the model receives."
        )
    if post.nearly_constant:
        return (
            f"The scores barely move: they differ by {np.ptp(explanation.scores):.1g} at most. The "
            "importances may be rounding errors of the model."
        )
    return ""


def _prior_caution(explanation: Explanation, free: Posterior | None) -> str:
    """A caution about a method whose prior spoils the fit; empty otherwise."""
    if free is None:
        return ""
    post = explanation.posterior
    intercepts = ("no intercept", "penalised intercept")
    kind = next((f" ({words})" for words in intercepts if words in post.estimand), "")
    model = ", not by the model" if _r2(free) >= _POOR else ""
    return (
        f"The low R² ({_r2(post):.2f}) is caused by the prior of {printable(post.method)}{kind}"
        f"{model}: EBLIME() has {free.fit_label(2, 'R²')} on the same answers. Use "
        '`refit("eblime")`.'
    )


def _fit_caution(post: Posterior) -> str:
    """A caution about R^2; empty if the fit is good or the scores are constant."""
    r2 = _r2(post)
    if post.constant or r2 >= _FAIR:
        return ""
    if r2 < _NOTHING:
        text = (
            "The linear fit does not predict the model: for a mask that it has not seen, the mean "
            "of the scores is about as good. Do not rely on these importances."
        )
    elif r2 < _POOR:
        text = (
            "The linear fit is poor: the importances are a rough sketch of the model here, however "
            "narrow their intervals."
        )
    else:
        text = "The linear fit is only fair."
    if post.r2 - r2 > _GAP:
        return (
            f"{text} It follows its own {post.n_masks} masks (in-sample R² {post.r2:.2f}), which "
            f"are few for {post.n_features} features: more masks or fewer features will help."
        )
    if r2 < _POOR:
        return (
            f"{text} Coarser or other features, or a narrower kernel, may describe the model "
            "better."
        )
    return f"{text[:-1]}: the model does more here than add up its features."


def _process_caution(explanation: Explanation) -> str:
    """A caution about a posterior over functions of the mask; empty if it predicts well."""
    post = explanation.posterior
    if explanation.exhaustive:
        return f"All {len(explanation.masks)} masks were asked: the importances are exact."
    if post.constant or _r2(post) >= _POOR:
        return ""
    return (
        "The score of a mask that was not asked is hard to predict here: the intervals allow for "
        "it and are wide. More masks or fewer features will narrow them."
    )


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
    """A caution about features whose importances rest on few masks; empty if there are none."""
    many = len(explanation.masks) >= _FEW
    if explanation.exhaustive or not explanation.posterior.has_spread or not many:
        return ""
    counts = _masks_per_feature(explanation)
    few = np.flatnonzero(counts < _FEW)
    if not few.size or _is_constant(explanation):
        return ""
    order = few[np.argsort(counts[few], kind="stable")]
    named = [
        f"{printable(explanation.features[j])} (about {counts[j]:.0f})" for j in order[:_NAMED]
    ]
    if len(order) > _NAMED:
        named.append(f"{len(order) - _NAMED} more")
    listed = " and ".join(filter(None, [", ".join(named[:-1]), named[-1]]))
    advice = "More masks help"
    if getattr(explanation.method, "noise", None) == "equal":
        advice += '; so does EBLIME(noise="unequal") if a few masks have far larger residuals'
    return (
        f"Few masks decide the importance of {listed}: the intervals may be too narrow. {advice}."
    )


def _masks_per_feature(explanation: Explanation) -> FloatArray:
    """How many masks decide each importance, (p,), as effective numbers.

    The smaller of two: of the masks in which the feature does not have its most frequent value,
    by their weights; and of all masks, by their shares in the variance of the importance (squares
    of weight, distance from the mean and residual). The second is small if a few scores are far
    from the linear fit.
    """
    masks, weights = explanation.masks, explanation.weights
    centred = masks - np.average(masks, axis=0, weights=weights)
    scores = explanation.scores - np.average(explanation.scores, weights=weights)
    residuals = scores - centred @ explanation.posterior.mean
    deciding = _effective_numbers((centred * (weights * residuals)[:, None]) ** 2)
    usual = [values[np.argmax(n)] for values, n in _value_counts(masks)]
    varying = _effective_numbers((masks != usual) * weights[:, None])
    return np.minimum(varying, deciding)


def _value_counts(masks: FloatArray) -> list[tuple[FloatArray, IntArray]]:
    """The values of each column and how often each occurs."""
    return [np.unique(column, return_counts=True) for column in masks.T]


def _effective_numbers(shares: FloatArray) -> FloatArray:
    """`(sum s)^2 / sum s^2` of each column; 0 for a column of zeros."""
    top = shares.max(axis=0)
    scaled = shares / np.where(top > 0, top, 1.0)
    squares = np.sum(scaled**2, axis=0)
    return np.asarray(scaled.sum(axis=0) ** 2 / np.where(squares > 0, squares, 1.0))


def _is_constant(explanation: Explanation) -> bool:
    """Whether the model gave every mask the same score."""
    return explanation.posterior.constant


def _r2(post: Posterior) -> float:
    """The held-out R^2, or the in-sample one if that is all there is."""
    held_out = post.r2_held_out
    return post.r2 if held_out is None or np.isnan(held_out) else held_out


def _free_of_prior(explanation: Explanation) -> Posterior | None:
    """EBLIME's fit of the same answers, if it shows that the method's prior spoils its own fit."""
    post = explanation.posterior
    if post.constant or _r2(post) >= _FAIR:
        return None
    free = explanation.refit("eblime").posterior
    # a fit with a free intercept is never worse than the mean on its own data
    blamed = _r2(free) >= _POOR or post.r2 < 0
    return free if blamed and _r2(free) - _r2(post) > _PRIOR else None


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
