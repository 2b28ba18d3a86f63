"""What every explainer shares: plan the masks, ask the model, weigh, infer."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np
import scipy

from eblime._checks import check_count, check_masks, check_weights
from eblime._progress import check_progress
from eblime._threads import few_threads
from eblime._types import FloatArray, RNGLike
from eblime._version import __version__
from eblime.core.spectrum import effective_size
from eblime.designs.masks import DESIGNS, as_design, is_exhaustive
from eblime.explanation import Explanation
from eblime.kernels import as_kernel
from eblime.methods.regression import as_method, fit_answers
from eblime.models.adapt import as_model, has_ranked_outputs
from eblime.protocols import Design, Kernel, Method, Scene, Source
from eblime.query import Asked, Progress, ask, scorer_of
from eblime.targets import (
    Labels,
    check_labels,
    check_targets,
    columns_of,
    output_label,
    top_outputs,
)

__all__ = ["Inquiry", "Plan", "inquiry_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """How any scene is asked about, weighed and inferred."""

    model: Any
    n_masks: int
    design: str | Design | None  # None: as the scene's own law has it
    kernel: str | Kernel | None
    method: str | Method
    batch_size: int | None
    progress: Progress
    labels: Labels | None
    about: Mapping[str, str]  # how the input was read, for people to know
    steady: bool = False  # the size of batches must not depend on how fast they are

    def check(self) -> None:
        """Refuse settings that cannot work, before any input is seen."""
        check_count("n_masks", self.n_masks)
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size)
        check_progress(self.progress)
        check_labels(self.labels)
        as_method(self.method)
        as_kernel(self.kernel)
        if self.design is not None:
            as_design(self.design, self.n_masks, 2)

    def explain(self, scene: Scene | Source, targets: Any, rng: RNGLike) -> dict[int, Explanation]:
        """Explain one scene: section 2 of the paper perturbs, section 3 infers."""
        start = time.perf_counter()
        generator = np.random.default_rng(rng)
        check_targets(targets, self.labels)
        plan = self.plan(scene, generator)
        return self.conclude(plan, self.ask(plan, targets), generator, rng, start)

    def ask(self, plan: Plan, targets: Any) -> Asked:
        """What the model answers for the perturbed inputs, and for the input itself."""
        with scorer_of(as_model(self.model), plan.asked) as scorer:
            return ask(
                scorer,
                plan.requests,
                lambda original: self.columns(targets, original),
                batch_size=self.batch_size,
                progress=self.progress,
                itself=plan.itself,
                steady=self.steady,
            )

    def columns(self, targets: Any, original: FloatArray) -> list[int]:
        """Columns of the outputs to explain, given the model's answer for the input itself."""
        return columns_of(targets, original, self.labels, ranked=has_ranked_outputs(self.model))

    def original(self, scene: Scene | Source) -> FloatArray:
        """What the model answers for the input itself: one call with one input."""
        plan = self.plan(scene, np.random.default_rng(0))
        alone = replace(plan, requests=plan.requests[:0])
        return replace(self, progress=False).ask(alone, 1).original

    def conclude(
        self, plan: Plan, asked: Asked, generator: np.random.Generator, rng: RNGLike, start: float
    ) -> dict[int, Explanation]:
        """From answers to posteriors, and what led to them."""
        masks, weights, original = plan.masks, plan.weights, asked.original
        method = as_method(self.method)
        with few_threads(0 if self.steady else masks.size * masks.shape[1]):
            posteriors = fit_answers(
                generator, method, masks, asked.scores, weights, exhaustive=plan.exhaustive
            )
        provenance: dict[str, Any] = {
            "method": repr(method),
            "input": dict(self.about),
            "design": self.design if isinstance(self.design, str) else _brief(self.design),
            "kernel": repr(as_kernel(self.kernel)),
            "seed": int(rng) if isinstance(rng, (int, np.integer)) else rng and "a generator",
            "model_calls": asked.calls,
            "batch_size": int(asked.batch_size),
            "seconds": time.perf_counter() - start,
            "versions": {
                "eblime": __version__,
                "numpy": np.__version__,
                "scipy": scipy.__version__,
            },
        }
        if len(original) > 1 and has_ranked_outputs(self.model):
            provenance["top_classes"] = top_outputs(original, self.labels)
        return {
            column: Explanation(
                posterior=posterior,
                scene=plan.kept,
                target=column,
                label=output_label(column, len(original), self.labels),
                prediction=float(original[column]),
                masks=masks,
                scores=scores,
                weights=weights,
                exhaustive=plan.exhaustive,
                provenance=provenance,
            )
            for column, scores, posterior in zip(
                asked.columns, asked.scores.T, posteriors, strict=True
            )
        }

    def plan(self, scene: Scene | Source, rng: np.random.Generator) -> Plan:
        """Which perturbed inputs to ask about, and how the regression and the kernel see them."""
        p, n = scene.n_features, self.n_masks
        if _is_source(scene):  # chance is in every input: no set of masks is all there is
            design = DESIGNS[self.design] if isinstance(self.design, str) else self.design
            drawn = scene.draw(rng, n, design)
            masks = check_masks(drawn.masks) if design is None else _designed(drawn.masks, p)
            masks.flags.writeable = False
            return Plan(
                asked=drawn,
                kept=scene.scene,
                masks=masks,
                requests=np.arange(len(masks), dtype=np.float64)[:, None],
                itself=-1.0,
                weights=self._weights(masks + (1 - drawn.origin)),
                exhaustive=False,
            )
        assert self.design is not None
        masks = _designed(as_design(self.design, n, p)(rng, n, p), p)
        every = is_exhaustive(masks)
        often = max(1.0, n / len(masks)) if every else 1.0  # draws that a mask stands for
        return Plan(
            asked=scene,
            kept=scene,
            masks=masks,
            requests=masks,
            itself=1.0,
            weights=often * self._weights(masks),
            exhaustive=every,
        )

    def _weights(self, closeness: FloatArray) -> FloatArray:
        """What the kernel says of masks, ones being the input itself; a word where few speak."""
        n, p = closeness.shape
        weights = check_weights(as_kernel(self.kernel)(closeness), n)
        counting = min(int(np.count_nonzero(weights)), round(effective_size(weights)))
        if counting < p:
            warnings.warn(
                f"There are more features ({p}) than masks that count ({counting}): expect wide "
                "intervals. Ask for more masks, cut the input into fewer features, or take a "
                "wider kernel.",
                stacklevel=6,
            )
        return weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Perturbed inputs to ask about."""

    asked: Scene  # makes the inputs
    kept: Scene  # what the explanation keeps
    masks: FloatArray  # (N, p) as the regression sees them
    requests: FloatArray  # (N, .) as `asked` knows them
    itself: float  # entries of the request for the input itself
    weights: FloatArray  # (N,) how much each counts
    exhaustive: bool  # every mask is asked once, and decides its input: no chance is left


def inquiry_of(explainer: Any) -> Inquiry:
    """The settings that every explainer has."""
    names = ("model", "n_masks", "design", "kernel", "method", "batch_size", "progress", "labels")
    return Inquiry(
        **{name: getattr(explainer, name) for name in names},
        about={name: _brief(getattr(explainer, name)) for name in explainer._about},
    )


def _is_source(scene: Scene | Source) -> TypeGuard[Source]:
    """Whether a scene draws its inputs; asking a protocol takes ten times as long."""
    return hasattr(scene, "draw")


def _brief(setting: Any) -> str:
    """A setting on one short line."""
    words = " ".join((setting if isinstance(setting, str) else repr(setting)).split())
    return words if len(words) <= 120 else f"{words[:119]}…"


def _designed(masks: Any, p: int) -> FloatArray:
    """Masks of a design, which may be the user's: (N, p) zeros and ones, not to be written to."""
    checked = check_masks(masks).copy()
    if checked.shape[1] != p or not np.isin(checked, (0, 1)).all():
        raise ValueError(
            f"`design` must return zeros and ones of shape (N, {p}); got shape {checked.shape} "
            f"with values from {checked.min():g} to {checked.max():g}."
        )
    checked.flags.writeable = False
    return checked
