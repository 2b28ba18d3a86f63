"""What every explainer shares: plan the masks, ask the model, weigh, infer."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
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
from eblime.methods.regression import as_method
from eblime.models.adapt import as_model
from eblime.protocols import Design, Kernel, Method, Scene, Source
from eblime.query import Asked, Progress, ask, scorer_of

__all__ = ["Inquiry", "Labels", "Plan", "Target", "columns_of", "inquiry_of"]

Target = int | str | None
Labels = Sequence[str] | Mapping[int, str]


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
        _check_labels(self.labels)
        as_method(self.method)
        as_kernel(self.kernel)
        if self.design is not None:
            as_design(self.design, self.n_masks, 2)

    def explain(self, scene: Scene | Source, targets: Any, rng: RNGLike) -> dict[int, Explanation]:
        """Explain one scene: section 2 of the paper perturbs, section 3 infers."""
        start = time.perf_counter()
        generator = np.random.default_rng(rng)
        _check_targets(targets, self.labels)
        plan = self.plan(scene, generator)
        return self.conclude(plan, self.ask(plan, targets), generator, rng, start)

    def ask(self, plan: Plan, targets: Any) -> Asked:
        """What the model answers for the perturbed inputs, and for the input itself."""
        with scorer_of(as_model(self.model), plan.asked) as scorer:
            return ask(
                scorer,
                plan.requests,
                lambda original: columns_of(targets, original, self.labels),
                batch_size=self.batch_size,
                progress=self.progress,
                itself=plan.itself,
                steady=self.steady,
            )

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
            posteriors = method.fit(generator, masks, asked.scores, weights)
        provenance = {
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
        return {
            column: Explanation(
                posterior=posterior,
                scene=plan.kept,
                target=column,
                label=_name(column, len(original), self.labels),
                prediction=float(original[column]),
                masks=masks,
                scores=scores,
                weights=weights,
                exhaustive=plan.fixed and is_exhaustive(masks),
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
                fixed=False,
            )
        assert self.design is not None
        masks = _designed(as_design(self.design, n, p)(rng, n, p), p)
        return Plan(
            asked=scene,
            kept=scene,
            masks=masks,
            requests=masks,
            itself=1.0,
            weights=self._weights(masks),
            fixed=True,
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
    fixed: bool  # a mask decides the input, with no chance in it


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


def _check_labels(labels: Any) -> None:
    """Refuse labels that are no names."""
    if labels is None:
        return
    names = list(labels.values()) if isinstance(labels, Mapping) else labels
    keys = list(labels) if isinstance(labels, Mapping) else []
    if (
        isinstance(labels, str)
        or not isinstance(names, (list, tuple))
        or not all(isinstance(name, str) for name in names)
        or not all(isinstance(key, (int, np.integer)) for key in keys)
    ):
        raise TypeError(
            "`labels` must be a list of names, or a dictionary from column number to name; "
            f"got {labels!r:.80}."
        )


def _check_targets(targets: Any, labels: Labels | None) -> None:
    """Refuse what no model can have as a target, before it is asked anything."""
    if isinstance(targets, str) or not isinstance(targets, (int, np.integer, list, tuple)):
        raise TypeError(f"`targets` must be a number or a list of targets; got {targets!r}.")
    if isinstance(targets, (list, tuple)):
        for target in targets:
            _column(target, 1 << 62, labels)


def columns_of(targets: Any, original: FloatArray, labels: Labels | None) -> list[int]:
    """Columns of the model's output: the k highest for a number, else those listed."""
    outputs = len(original)
    if labels is not None and not isinstance(labels, Mapping) and len(labels) != outputs:
        raise ValueError(
            f"`labels` must name each of the model's {outputs} outputs; got {len(labels)} names."
        )
    if isinstance(targets, (int, np.integer)):
        check_count("targets", int(targets))
        order = np.argsort(-original, kind="stable")
        return [int(column) for column in order[: int(targets)]]
    chosen = [_column(target, outputs, labels) for target in targets]
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"`targets` must list at least one output, each once; got {targets!r}.")
    return chosen


def _column(target: Any, outputs: int, labels: Labels | None) -> int:
    """One column, by number or by name."""
    if isinstance(target, str):
        target = _column_of_name(target, labels)
    if isinstance(target, bool) or not isinstance(target, (int, np.integer)):
        raise TypeError(f"`target` must be a whole number, a name or None; got {target!r}.")
    if target < 0:
        raise ValueError(f"`target` must be >= 0; got {target}.")
    if target >= outputs:
        raise ValueError(
            f"`target` must be < {outputs}, the number of outputs of the model; got {target}."
        )
    return int(target)


def _column_of_name(name: str, labels: Labels | None) -> int:
    """The column of that name; names that hold the word asked for are suggested."""
    if labels is None:
        raise ValueError(
            f"`target` must be a number where the explainer has no `labels`; got {name!r}."
        )
    named = labels.items() if isinstance(labels, Mapping) else enumerate(labels)
    columns = [(int(column), label) for column, label in named]
    found = [column for column, label in columns if label == name]
    if len(found) > 1:
        raise ValueError(f"`target` {name!r} names several outputs, {found}; give the number.")
    if not found:
        near = [label for _, label in columns if name.lower() in label.lower()][:5]
        hint = f" Did you mean {', '.join(map(repr, near))}?" if near else ""
        raise ValueError(f"`target` must be among `labels`; got {name!r}.{hint}")
    return found[0]


def _name(column: int, outputs: int, labels: Labels | None) -> str:
    """What people call an output."""
    plain = "output" if outputs == 1 else f"output {column}"
    if labels is None:
        return plain
    return str(labels.get(column, plain) if isinstance(labels, Mapping) else labels[column])
