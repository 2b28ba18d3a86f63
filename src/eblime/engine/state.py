"""Where the loop stands with one input: what was asked, what the model replied, what follows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from eblime._checks import as_generator, check_masks, check_weights
from eblime._repr import stable_repr
from eblime._threads import few_threads
from eblime._types import FloatArray, RNGLike
from eblime._version import __version__
from eblime._warn import warn_user
from eblime.answers import Answers, Proposal
from eblime.core.spectrum import effective_size
from eblime.designs.masks import is_exhaustive
from eblime.engine.plan import Reply
from eblime.engine.settings import LoopSettings, Question, brief, most_masks, rule_name
from eblime.engine.targets import check_targets, output_label, top_outputs
from eblime.kernels import as_kernel
from eblime.methods.regression import fit_each
from eblime.models.adapt import has_ranked_outputs
from eblime.posterior import Posterior
from eblime.protocols import Kernel, Neighbourhood, Subject
from eblime.results.explanation import Explanation

__all__ = ["State", "begin", "check_most_masks"]


def begin(settings: LoopSettings, subject: Subject, targets: Any, rng: RNGLike) -> State:
    """The state before the first question."""
    check_targets(targets, settings.labels)
    generator = as_generator(rng)
    _check_budget(settings, subject.scene.n_features)
    neighbourhood = subject.neighbourhood(generator)
    check_most_masks(settings, subject.scene.n_features, exact=neighbourhood.exact)
    if _method_ends(settings) == "required" and not neighbourhood.exact:
        raise ValueError(
            "`method` needs the score with everything hidden, which an input of the domain "
            f"{subject.scene.domain!r} does not have; got {settings.fitted_by!r}."
        )
    return State(
        settings=settings,
        subject=subject,
        targets=targets,
        seed=int(rng) if isinstance(rng, (int, np.integer)) else rng and "a generator",
        rng=generator,
        start=time.perf_counter(),
        neighbourhood=neighbourhood,
        first=Answers.none(subject.scene.features),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """The posteriors of all targets."""

    generator: Mapping[str, Any]  # state of the generator before the fit
    posteriors: tuple[Posterior, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """Where the loop stands: what was asked, and what the model replied."""

    settings: LoopSettings
    subject: Subject
    targets: Any
    seed: Any  # for the record
    rng: np.random.Generator
    start: float
    neighbourhood: Neighbourhood
    first: Answers  # of the first target, which a design may look at
    answers: tuple[Answers, ...] = ()  # of every target
    weights: FloatArray | None = None  # of the perturbed inputs in question
    sampling: FloatArray | None = None  # the factor of these weights that corrects uneven draws
    replies: tuple[Reply, ...] = ()
    stopped: str | None = None  # why the questions ended early
    reached: bool | None = None  # whether the stop rule was reached; None without one
    looked_at: int = 0  # masks when the stop rule was last asked
    expected: int | None = None  # masks that it will take in all, as far as is known
    fit: Fit | None = None  # of the answers so far, if the stop rule needed it
    spent: int = 0  # model calls of the explanation that this one continues

    def extended(self, wanted: FloatArray | Proposal | int, *, warn: bool) -> State:
        """With more perturbed inputs to ask about."""
        scene, known = self.subject.scene, len(self.neighbourhood.masks)
        if known == 0 and self.neighbourhood.exact and _method_ends(self.settings) != "unused":
            wanted = _with_ends(wanted, scene.n_features)
        masks = wanted.masks if isinstance(wanted, Proposal) else wanted
        if not isinstance(masks, (int, np.integer)):
            masks = _checked_masks(masks, scene.n_features)
        grown = self.neighbourhood.extend(self.rng, masks)
        sampling = grown.sampling_weights[known:]
        if isinstance(wanted, Proposal):
            sampling = sampling * check_weights(wanted.sampling_weights, len(sampling))
        weights = _weights(self.settings.kernel, grown.closeness[known:], sampling, warn=warn)
        if known == 0 and grown.exact and is_exhaustive(grown.masks):
            if not self.may_ask_all:
                raise ValueError(
                    f"`max_calls` must be at least {len(weights)}, the number of all masks, for an "
                    f"exhaustive design; got {self.settings.calls.max_calls}."
                )
            # each mask counts as often as a sample of n_masks would contain it
            weights = weights * max(1.0, self.settings.n_masks / len(weights))
        return replace(
            self,
            neighbourhood=grown,
            weights=weights,
            sampling=None if (sampling == 1).all() else sampling,
        )

    def question(self) -> Question:
        """The perturbed inputs that have no answer yet."""
        rows = np.arange(self.first.n_masks, len(self.neighbourhood.masks))
        return Question(
            neighbourhood=self.neighbourhood,
            rows=rows,
            targets=self.targets,
            labels=self.settings.labels,
            ranked=has_ranked_outputs(self.settings.model),
            opening=self.replies[0] if self.replies else None,
            expected=self.expected and max(self.expected, len(self.neighbourhood.masks)),
            before=np.stack([known.scores for known in self.answers], axis=1)
            if self.answers
            else None,
            budget=self._budget(),
            least=max(0, _least(self.settings.n_masks, self.first.n_features) - self.first.n_masks),
        )

    @property
    def may_ask_all(self) -> bool:
        """Whether the model may be asked about all 2^p masks."""
        most = self.settings.calls.max_calls
        return most is None or 2**self.first.n_features <= most

    def _budget(self) -> int | None:
        """How many inputs the model may still be asked about."""
        most = self.settings.calls.max_calls
        return None if most is None else most - sum(reply.calls for reply in self.replies)

    def answered(self, reply: Reply) -> State:
        """With the model's reply appended."""
        assert self.weights is not None
        opening = reply if not self.replies else self.replies[0]
        before = self.answers or tuple(
            replace(self.first, original=float(opening.original[column]))
            for column in opening.columns
        )
        masks, weights = self.neighbourhood.masks[self.first.n_masks :], self.weights
        sampling = self.sampling
        if reply.answered is not None:
            masks, weights = masks[reply.answered], weights[reply.answered]
            sampling = None if sampling is None else sampling[reply.answered]
        answers = tuple(
            _with_hidden(known.append(masks, scores, weights, sampling), self.neighbourhood.exact)
            for known, scores in zip(before, reply.scores.T, strict=True)
        )
        return replace(
            self,
            answers=answers,
            first=answers[0],
            replies=(*self.replies, reply),
            weights=None,
            fit=None,
            sampling=None,
            stopped=reply.stopped,
        )

    def fitted(self) -> tuple[Posterior, ...]:
        """The posteriors of all targets."""
        masks = self.first.masks
        with few_threads(0 if self.settings.steady else masks.size * masks.shape[1]):
            return fit_each(
                self.settings.fitted_by,
                self.rng,
                self.answers,
                exhaustive=self.exhaustive,
            )

    def with_fit(self) -> State:
        """With the posteriors of all targets, which a stop rule and the explanations share."""
        if self.fit is not None:
            return self
        generator = self.rng.bit_generator.state
        return replace(self, fit=Fit(generator=generator, posteriors=self.fitted()))

    @property
    def calls(self) -> int:
        """How many inputs the model was asked about."""
        return self.spent + sum(reply.calls for reply in self.replies)

    @property
    def exhaustive(self) -> bool:
        """Whether every mask was asked once, and determines its input: no chance is left."""
        return self.neighbourhood.exact and is_exhaustive(self.first.masks)

    def explanations(self) -> dict[int, Explanation]:
        """From answers to explanations, by column."""
        opening, fit = self.replies[0], self.with_fit().fit
        assert fit is not None
        original, labels = opening.original, self.settings.labels
        provenance = self._provenance()
        if len(original) > 1 and has_ranked_outputs(self.settings.model):
            provenance["top_classes"] = top_outputs(original, labels)
        return {
            column: Explanation(
                posterior=posterior,
                answers=answers,
                method=self.settings.fitted_by,
                scene=self.subject.scene,
                target=column,
                label=output_label(column, len(original), labels),
                prediction=float(original[column]),
                exhaustive=self.exhaustive,
                provenance=provenance,
                generator=fit.generator,
            )
            for column, answers, posterior in zip(
                opening.columns, self.answers, fit.posteriors, strict=True
            )
        }

    def _provenance(self) -> dict[str, Any]:
        """Settings, seed, cost and versions, for the reader of the results."""
        settings = self.settings
        found: dict[str, Any] = {
            "method": stable_repr(settings.fitted_by),
            "input": dict(settings.about),
            "design": brief(settings.design) if settings.design is not None else None,
            "kernel": stable_repr(as_kernel(settings.kernel)),
            "seed": self.seed,
            "model_calls": self.calls,
            "batch_size": int(self.replies[-1].batch_size),
            "seconds": time.perf_counter() - self.start,
            "versions": {
                "eblime": __version__,
                "numpy": np.__version__,
                "scipy": scipy.__version__,
            },
        }
        if len(self.replies) > 1:
            found["rounds"] = len(self.replies)
        if settings.until is not None:
            found |= {"until": rule_name(settings.until), "reached": bool(self.reached)}
        if self.stopped is not None:
            found["stopped"] = self.stopped
        return found


def _least(n_masks: int, p: int) -> int:
    """How many answers an explanation needs: more than features, unless fewer are wanted."""
    return min(n_masks, p + 2)


def _check_budget(settings: LoopSettings, p: int) -> None:
    """Refuse a budget that has no room for the input itself and enough perturbed inputs."""
    most, least = settings.calls.max_calls, min(2**p, _least(settings.n_masks, p) + 1)
    if most is not None and most < least:
        raise ValueError(
            f"`max_calls` must be at least {least} for an input with {p} features; got {most}."
        )


def check_most_masks(settings: LoopSettings, p: int, *, exact: bool) -> None:
    """Refuse more masks than the method takes, unless they are all masks.

    With a stop rule the number of masks is limited already.
    """
    most, n = most_masks(settings.fitted_by), settings.budget
    if most is None or min(n, 2**p) <= most:
        return
    calls = settings.calls.max_calls
    if exact and 2**p <= n and (calls is None or 2**p <= calls):
        return
    raise ValueError(
        f"`n_masks` must be at most {most:,} for {settings.fitted_by.name}, or at least 2^{p} to "
        f"ask about all masks; got {n:,}. Use EBLIME() for more masks."
    )


def _with_hidden(answers: Answers, exact: bool) -> Answers:
    """The score with everything hidden, where a mask of zeros was asked."""
    if not exact or answers.hidden is not None:
        return answers
    rows = np.flatnonzero(~answers.masks.any(axis=1))
    return replace(answers, hidden=float(answers.scores[rows[0]])) if rows.size else answers


def _method_ends(settings: LoopSettings) -> str:
    """Whether the method uses the scores at both ends: "required", "useful" or "unused"."""
    return str(getattr(settings.fitted_by, "ends", "unused"))


def _with_ends(wanted: Any, p: int) -> Any:
    """The masks of the first round, and those of both ends that are missing, with weight zero."""
    if isinstance(wanted, (int, np.integer)):
        return wanted
    masks = _checked_masks(wanted.masks if isinstance(wanted, Proposal) else wanted, p)
    sampling = wanted.sampling_weights if isinstance(wanted, Proposal) else np.ones(len(masks))
    ends = [np.full(p, end) for end in (1.0, 0.0) if not (masks == end).all(axis=1).any()]
    if not ends:
        return wanted
    return Proposal(
        masks=np.concatenate([masks, ends]),
        sampling_weights=np.concatenate([sampling, np.zeros(len(ends))]),
    )


def _checked_masks(masks: Any, p: int) -> FloatArray:
    """Masks of a design, which may be the user's: (n, p) zeros and ones, made read-only."""
    checked = check_masks(masks).copy()
    if checked.shape[1] != p or not np.isin(checked, (0, 1)).all():
        raise ValueError(
            f"`design` must return zeros and ones of shape (N, {p}); got shape {checked.shape} "
            f"with values from {checked.min():g} to {checked.max():g}."
        )
    checked.flags.writeable = False
    return checked


def _weights(
    kernel: str | Kernel | None, closeness: FloatArray, sampling: FloatArray, *, warn: bool
) -> FloatArray:
    """Weights of perturbed inputs: kernel times sampling weights; warns if too few carry weight."""
    n, p = closeness.shape
    weights = check_weights(as_kernel(kernel)(closeness), n) * sampling
    counting = min(int(np.count_nonzero(weights)), round(effective_size(weights)))
    if warn and counting < p:
        warn_user(
            f"There are more features ({p}) than masks that count ({counting}): expect wide "
            "intervals. Ask for more masks, cut the input into fewer features, or use a wider "
            "kernel."
        )
    return weights
