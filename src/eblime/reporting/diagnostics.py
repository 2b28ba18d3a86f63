"""Sentences about an explanation: how good the fit is, and what to watch out for.

The page, the notebook and the terminal show the same sentences.
"""

from __future__ import annotations

import numpy as np

from eblime._text import printable
from eblime._types import FloatArray, IntArray
from eblime.methods.eblime import EBLIME
from eblime.methods.regression import is_quick
from eblime.posterior import Posterior
from eblime.results.explanation import Explanation
from eblime.results.indices import by_quadrature

__all__ = [
    "TOP_K_NOTE",
    "cautions",
    "fit_sentence",
    "is_poor_fit",
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


def fit_sentence(explanation: Explanation) -> str:
    """How well the fit predicts the model."""
    if explanation.posterior.constant:
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
    return not explanation.posterior.constant and not _r2(explanation.posterior) >= _POOR


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
    if explanation.posterior.constant:
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
        found = (
            "The linear fit does not predict the model: for a mask that it has not seen, the mean "
            "of the scores is about as good. Do not rely on these importances."
        )
    elif r2 < _POOR:
        found = (
            "The linear fit is poor: the importances are a rough sketch of the model here, however "
            "narrow their intervals."
        )
    else:
        found = "The linear fit is only fair."
    return f"{found} {_fit_reason(post, r2)}"


def _fit_reason(post: Posterior, r2: float) -> str:
    """Why a fit is not good, and what helps."""
    if post.r2 - r2 > _GAP:
        return (
            f"It follows its own {post.n_masks} masks (in-sample R² {post.r2:.2f}), which are few "
            f"for {post.n_features} features: more masks or fewer features will help."
        )
    if r2 < _POOR:
        return "Coarser or other features, or a narrower kernel, may describe the model better."
    return "The model does more here than add up its features."


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
    if not few.size or explanation.posterior.constant:
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


def _r2(post: Posterior) -> float:
    """The held-out R^2, or the in-sample one if that is all there is."""
    held_out = post.r2_held_out
    return post.r2 if held_out is None or np.isnan(held_out) else held_out


def _free_of_prior(explanation: Explanation) -> Posterior | None:
    """EBLIME's fit of the same answers, if it shows that the method's prior spoils its own fit."""
    post = explanation.posterior
    if post.constant or _r2(post) >= _FAIR:
        return None
    if not is_quick(EBLIME(), explanation.answers, fits=5):  # with those of the held-out R^2
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
