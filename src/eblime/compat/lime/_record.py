"""What a result keeps of the fits: small, so that thousands of results fit into memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._threads import few_threads
from eblime._types import FloatArray
from eblime._version import __version__
from eblime.answers import Answers
from eblime.methods.regression import fit_each
from eblime.protocols import Method, Scene
from eblime.results.explanation import Explanation

__all__ = ["Record", "Sample", "class_name", "top_classes"]

_CLASSES = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """The perturbed inputs that all labels share; zeros and ones take one bit each."""

    masks: NDArray[Any]  # packed bits, (N, bytes), or numbers, (N, p)
    weights: FloatArray
    scene: Scene
    provenance: Mapping[str, Any]

    @classmethod
    def of(cls, answers: Answers, scene: Scene, provenance: Mapping[str, Any]) -> Sample:
        """The perturbed inputs of these answers."""
        masks: NDArray[Any] = answers.masks
        binary = bool(((masks == 0) | (masks == 1)).all())
        return cls(
            masks=np.packbits(masks > 0, axis=1) if binary else masks,
            weights=answers.weights,
            scene=scene,
            provenance={
                "input": {},
                "design": "random, as in lime",
                "seed": "random_state of the explainer",
                "model_calls": answers.n_masks,
                "versions": {"eblime": __version__, "numpy": np.__version__},
                **provenance,
            },
        )

    def unpacked(self) -> FloatArray:
        """The masks, (N, p)."""
        if self.masks.dtype != np.uint8:
            return self.masks
        return np.unpackbits(self.masks, axis=1, count=self.scene.n_features).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Record:
    """One label of a result; `explanation` fits its posterior again, which takes milliseconds."""

    sample: Sample
    scores: FloatArray
    method: Method
    target: int
    label: str

    def explanation(self) -> Explanation:
        """The explanation of this label, as this library has it."""
        generator = np.random.default_rng(0)
        state = generator.bit_generator.state
        prediction = float(self.scores[0])
        answers = Answers(
            masks=self.sample.unpacked(),
            scores=self.scores,
            weights=self.sample.weights,
            original=prediction,
            features=self.sample.scene.features,
        )
        with few_threads(answers.masks.size * answers.n_features):
            (posterior,) = fit_each(self.method, generator, [answers])
        return Explanation(
            posterior=posterior,
            answers=answers,
            method=self.method,
            scene=self.sample.scene,
            target=self.target,
            label=self.label,
            prediction=prediction,
            exhaustive=False,
            provenance={**self.sample.provenance, "method": repr(self.method)},
            generator=state,
        )


def top_classes(scores: FloatArray, names: Sequence[Any] | None) -> list[tuple[str, float]]:
    """The most likely classes with their scores."""
    order = np.argsort(-scores, kind="stable")[:_CLASSES]
    return [(class_name(names, int(j)), float(scores[j])) for j in order]


def class_name(names: Sequence[Any] | None, label: int) -> str:
    """The name of a class, or its number if the class has no name."""
    return str(names[label] if names is not None and label < len(names) else label)
