"""Sentences about an explanation: how good the fit is, and what to watch out for.

The page, the notebook and the terminal show the same sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime._text import count_noun, printable
from eblime._types import FloatArray
from eblime.answers import Answers
from eblime.posterior import Posterior
from eblime.results.indices import by_quadrature

if TYPE_CHECKING:
    from eblime.results.explanation import Explanation

_FEW = 8  # an importance that rests on fewer masks gets a note
_NAMED = 3  # features that the note names
_MASKS_PER_FEATURE = 3  # with fewer, the most important feature is covered too rarely
# held-out R^2 below which the linear fit predicts nothing, is poor, and is only fair
_NOTHING, _POOR, _FAIR = 0.1, 0.5, 0.75
UNRELIABLE = 0.2  # below which pictures say so
_LITTLE = 0.01  # range of the scores, relative to their size, below which they barely move
_GAP = 0.2  # between in-sample and held-out R^2, above which there are too few masks
_WIDE = 2.0  # factor of the variance, by prediction errors of rounds, that gets a note


def fit_sentence(explanation: Explanation) -> str:
    """How well the fit predicts the model."""
    post = explanation.posterior
    if post.constant:
        return "The score never changed, whatever was hidden: there is nothing to explain."
    r2, label = prediction_r2(post), post.fit_label(2, "R²")
    if by_quadrature(explanation):  # over functions of the mask: how well would a line predict?
        line = f"{100 * max(0.0, post.r2):.0f} % of the changes of the score"
        if not label.startswith("held-out"):
            return f"A straight line explains {line}."
        return (
            f"The score of a mask that was not asked is predicted with held-out function R² "
            f"{r2:.2f}. A straight line explains {line}."
        )
    if r2 <= 0:
        return f"The linear fit predicts the score no better than its mean does ({label})."
    return f"The linear fit explains {100 * r2:.0f} % of the changes of the score ({label})."


def stop_sentence(explanation: Explanation) -> str:
    """What the stop rule reached, or why the questions ended; empty without a rule or a limit."""
    known = explanation.provenance.get("stopped")
    return printable(known) if isinstance(known, str) else ""


def footer(explanation: Explanation) -> list[str]:
    """What is printed below the table: what is estimated, why the questions ended, and notes."""
    stopped = stop_sentence(explanation)
    found = [explanation.estimand, *([f"Stopped: {stopped}"] if stopped else [])]
    return [*found, *(f"Note: {note}" for note in notes(explanation))]


def cautions(explanation: Explanation) -> Iterator[str]:
    """Why a picture of the importances may mean nothing; nothing for most."""
    post = explanation.posterior
    if post.constant:
        yield "the score never changed"
    elif prediction_r2(post) < UNRELIABLE:
        yield f"{post.fit_label(2, 'R²')}: do not rely on this picture"
    if barely_moves(post):
        low, high = explanation.scores.min(), explanation.scores.max()
        digits = 2 + int(np.ceil(np.log10(max(abs(low), abs(high)) / (high - low))))
        yield f"the scores barely move: {low:#.{digits}g} to {high:#.{digits}g}"


def nothing_certain(explanation: Explanation) -> str:
    """That the interval of every feature contains zero; empty if that is not so."""
    post = explanation.posterior
    if not post.has_spread or post.constant:
        return ""
    low, high = post.interval().T
    unsure = not ((low > 0) | (high < 0)).any()
    return f"nothing certain with {count_noun(post.n_masks, 'mask')}" if unsure else ""


def barely_moves(post: Posterior) -> bool:
    """Whether the range of the scores is below 1 % of their size."""
    if post.score_range is None or post.constant:
        return False
    low, high = post.score_range
    return high - low < _LITTLE * max(abs(low), abs(high))


def is_poor_fit(explanation: Explanation) -> bool:
    """Whether the linear fit explains less than half of the changes of the score."""
    return not explanation.posterior.constant and not prediction_r2(explanation.posterior) >= _POOR


def notes(explanation: Explanation) -> list[str]:
    """What a reader should know before relying on the numbers; a poor fit comes first."""
    return [*_notes(explanation)]


def _notes(explanation: Explanation) -> Iterator[str]:
    post = explanation.posterior
    if post.constant:
        yield (
            "The model returned the same score for every mask: no feature has an effect here, and "
            "R² has no meaning. If this is unexpected, check the inputs that the model receives."
        )
    elif barely_moves(post):
        why = (
            "may be rounding errors of the model"
            if post.nearly_constant
            else "are below 1 % of the score, however certain they are"
        )
        *_, said = cautions(explanation)
        yield f"{said[0].upper()}{said[1:]}. The importances {why}."
    quadrature = by_quadrature(explanation)
    if not quadrature:
        yield from _fit_notes(explanation)
        yield from _mask_notes(explanation)
    elif not (explanation.exhaustive or post.constant or prediction_r2(post) >= _POOR):
        yield (
            "The score of a mask that was not asked is hard to predict here: the intervals allow "
            "for it and are wide. More masks or fewer features will narrow them."
        )
    if explanation.scene.domain == "prompt":
        yield from _source_notes(explanation)
    p = explanation.answers.n_varying
    few = explanation.answers.n_masks < 2 * p
    if quadrature and few and post.has_spread and not (explanation.exhaustive or post.constant):
        yield (
            f"There are fewer than {2 * p} masks for {p} features: "
            'EBLIME has narrower intervals from so few. Use `refit("eblime")`, or ask more masks.'
        )
    if quadrature and not explanation.exhaustive and len(np.unique(explanation.scores)) == 2:
        yield (
            "The scores take two values only, and Quadrature expects gradual changes: its "
            'intervals may be too narrow. Use `refit("eblime")`, or explain a probability.'
        )
    factor = post.extras.get("widening")
    if factor is not None and factor.mean > _WIDE:
        yield (
            "The model was often far from what the masks before had let expect: the intervals are "
            f"{np.sqrt(factor.mean):.1f} times as wide for it. More masks will narrow them."
        )
    if explanation.exhaustive:
        yield (
            f"The model was asked about all {explanation.answers.n_masks} masks: the importances "
            "are exact."
        )


def _source_notes(explanation: Explanation) -> Iterator[str]:
    """Notes about a prompt: all sources together, a cut answer, and sources that are copies."""
    scene: Any = explanation.scene
    if (gain := explanation.grounded) is not None:
        factor = f", a factor of exp({gain:.2g}) = {np.exp(min(gain, 700)):.2g}"
        whole, score = explanation.prediction, printable(scene.score)
        yield (
            f"The score{f', {score},' if score else ''} is {whole:.3g} with all sources and "
            f"{whole - gain:.3g} with none{factor if 'log' in score else ''}."
        )
    if isinstance(opened := explanation.provenance.get("opened"), list):
        names = ", ".join(map(printable, opened))
        yield f"Other masks, which the fit does not know, chose the documents to open: {names}."
    for group in scene.copies()[:_NAMED]:
        named = ", ".join(printable(scene.features[j]) for j in group[:_NAMED])
        more = f" and {len(group) - _NAMED} more" if len(group) > _NAMED else ""
        yield (
            f"The texts of {named}{more} are nearly equal: they share "
            f"{explanation.posterior.mean[group].sum():.3g} of importance, and each alone may look "
            'unimportant. `groups="similar"` explains them as one source.'
        )


def _fit_notes(explanation: Explanation) -> Iterator[str]:
    """Notes about R^2 and its cause: the method's prior, few masks, or the model."""
    post = explanation.posterior
    r2 = prediction_r2(post)
    if post.constant or r2 >= _FAIR:
        return
    if r2 < _NOTHING:
        words = (
            "The linear fit does not predict the model: for a mask that it has not seen, the mean "
            "of the scores is about as good. Do not rely on these importances."
        )
    elif r2 < _POOR:
        words = (
            "The linear fit is poor: the importances are a rough sketch of the model here, however "
            "narrow their intervals."
        )
    else:
        words = "The linear fit is only fair."
    kinds = ("no intercept", "penalised intercept")
    kind = next((words for words in kinds if words in post.estimand), None)
    if kind is not None:
        reason = (
            f"It may be caused by the prior of {printable(post.method)} ({kind}): "
            'try `refit("eblime")`.'
        )
    elif post.r2 - r2 > _GAP:
        reason = (
            f"It follows its own {post.n_masks} masks (in-sample R² {post.r2:.2f}), which are few "
            f"for {explanation.answers.n_varying} features: more masks or fewer features will help."
        )
    elif explanation.scene.domain == "prompt":
        reason = "Sources act together: see `interactions()`."
    elif r2 < _POOR:
        reason = "Coarser or other features, or a narrower kernel, may describe the model better."
    else:
        reason = "The model does more here than add up its features."
    yield f"{words} {reason}"


def _mask_notes(explanation: Explanation) -> Iterator[str]:
    post = explanation.posterior
    if not post.has_spread:
        yield f"{printable(post.method)} is a point estimate: it has no intervals."
        return
    if explanation.exhaustive:
        return
    p = explanation.answers.n_varying
    if post.ess < _MASKS_PER_FEATURE * p:
        yield (
            f"Few masks for {p} features (effective sample size {post.ess:.0f}): the intervals of "
            "the most important ones may be too narrow. More masks will help."
        )
    if post.constant or explanation.answers.n_masks < _FEW:
        return
    counts = _masks_per_feature(explanation.answers, post.mean)
    fixed = explanation.answers.fixed
    few = np.flatnonzero((counts < _FEW) & (True if fixed is None else ~fixed))
    if few.size:
        order, features = few[np.argsort(counts[few], kind="stable")], explanation.features
        named = [f"{printable(features[j])} (about {counts[j]:.0f})" for j in order[:_NAMED]]
        if len(order) > _NAMED:
            named.append(f"{len(order) - _NAMED} more")
        listed = " and ".join(filter(None, [", ".join(named[:-1]), named[-1]]))
        advice = "More masks help"
        if getattr(explanation.method, "noise", None) == "equal":
            advice += '; so does EBLIME(noise="unequal") if a few masks have far larger residuals'
        yield (
            f"Few masks decide the importance of {listed}: the intervals may be too narrow. "
            f"{advice}."
        )


def _masks_per_feature(answers: Answers, mean: FloatArray) -> FloatArray:
    """How many masks decide each importance, (p,), as effective numbers; infinite if not binary.

    The smaller of two: of the masks in which the feature has its rarer state, by their weights; and
    of all masks, by their shares in the variance of the importance (squares of weight, distance
    from the mean and residual). The second is small if a few scores are far from the linear fit.
    """
    masks, scores = answers.masks, answers.scores
    weights = answers.weights / answers.weights.max()

    def number(shares: FloatArray, shown: FloatArray, hidden: FloatArray) -> FloatArray:
        """`(sum s)^2 / sum s^2` of shares times a factor for a feature's state."""
        sums = []
        for power in (1, 2):
            part = shares**power @ masks
            sums.append(part * shown**power + ((shares**power).sum() - part) * hidden**power)
        known = sums[1] > 1e-12 * (shares**2).sum()
        return np.asarray(np.divide(sums[0] ** 2, sums[1], out=np.zeros_like(mean), where=known))

    centre = weights @ masks / weights.sum()
    missed = scores - np.average(scores, weights=weights) - masks @ mean + centre @ mean
    pull = (weights * (missed / (np.abs(missed).max() or 1.0))) ** 2
    rare = (masks.mean(axis=0) <= 0.5).astype(np.float64)
    fewest = np.minimum(
        number(weights, rare, 1 - rare),
        number(pull / (pull.max() or 1.0), (1 - centre) ** 2, centre**2),
    )
    return np.where(((masks == 0) | (masks == 1)).all(axis=0), fewest, np.inf)


def prediction_r2(post: Posterior) -> float:
    """The held-out R^2, or the in-sample one if that is all there is."""
    held_out = post.r2_held_out
    return post.r2 if held_out is None or np.isnan(held_out) else held_out
