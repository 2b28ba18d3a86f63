"""Settings of the loop, and the questions that it asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eblime._checks import check_count
from eblime._types import FloatArray, IntArray
from eblime.designs.rounds import check_design
from eblime.engine.calls import CallSettings
from eblime.engine.plan import Reply
from eblime.engine.targets import Labels, check_labels, columns_of
from eblime.kernels import as_kernel
from eblime.methods.regression import as_method
from eblime.protocols import Kernel, Method, Neighbourhood

__all__ = ["LoopSettings", "Question", "brief"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """How any input is asked about, weighed and fitted; what all explainers share."""

    model: Any
    n_masks: int
    design: Any  # a name, a function or an object; None is the domain's own law
    kernel: str | Kernel | None
    method: str | Method
    batch_size: int | None
    labels: Labels | None
    about: Mapping[str, str]  # how the input was read, for the reader of the results
    steady: bool = False  # batch sizes must not depend on how fast the machine is
    calls: CallSettings = field(default_factory=CallSettings)  # how the model is called

    def check(self) -> None:
        """Refuse settings that cannot work, before any input is read."""
        check_count("n_masks", self.n_masks)
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size)
        check_labels(self.labels)
        self.calls.check()
        as_method(self.method)
        as_kernel(self.kernel)
        if self.design is not None:
            check_design(self.design)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """Perturbed inputs that the loop wants scores for."""

    neighbourhood: Neighbourhood
    rows: IntArray  # numbers of the perturbed inputs
    targets: Any  # which outputs to keep: a number of the highest, or a list
    labels: Labels | None
    ranked: bool  # whether the outputs can be compared, as those of a classifier
    opening: Reply | None  # the reply of the first round; None in the first round
    before: FloatArray | None = None  # (n, T) scores of the perturbed inputs before these
    budget: int | None = None  # inputs that the model may be asked about; None is no limit
    least: int = 1  # different inputs that must have an answer if the user interrupts

    def choose(self, original: FloatArray) -> Sequence[int]:
        """The outputs to keep, given the scores of the input itself."""
        return columns_of(self.targets, original, self.labels, ranked=self.ranked)


def brief(setting: Any) -> str:
    """A setting on one short line."""
    words = " ".join((setting if isinstance(setting, str) else repr(setting)).split())
    return words if len(words) <= 120 else f"{words[:119]}…"
