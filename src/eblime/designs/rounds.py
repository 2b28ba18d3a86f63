"""Designs as the loop uses them: which masks to ask about next, given the answers so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from eblime import registry
from eblime._types import FloatArray
from eblime.answers import Answers, Proposal
from eblime.designs.masks import MOST_EXHAUSTIVE, exhaustive
from eblime.protocols import Design, Kernel, MaskDesign, Method

__all__ = [
    "EarlyDesign",
    "KernelDesign",
    "MethodDesign",
    "OneShot",
    "OwnLaw",
    "as_design",
    "check_design",
    "one_shot",
]


@runtime_checkable
class MethodDesign(Design, Protocol):
    """A design that chooses masks for a method."""

    def for_method(self, method: Method) -> Design:
        """The design for that method; refuses one that it does not suit."""
        ...


@runtime_checkable
class EarlyDesign(Design, Protocol):
    """A design that asks in rounds of its own, which a stop rule may end."""

    def ending_early(self) -> Design:
        """The design in rounds that suit a stop rule."""
        ...


@runtime_checkable
class KernelDesign(Protocol):
    """A design that draws masks by the kernel."""

    def for_kernel(self, kernel: str | Kernel | None) -> Any:
        """The design for that kernel, unless it has its own."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OneShot:
    """All masks in the first round, by a function of (rng, n_masks, p)."""

    masks: MaskDesign
    n_masks: int

    def next(self, rng: np.random.Generator, answers: Answers) -> FloatArray | Proposal | None:
        """The masks, and None once they are answered."""
        if answers.n_masks:
            return None
        return self.masks(rng, self.n_masks, answers.n_features)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLaw:
    """All perturbed inputs in the first round, drawn by the domain's own law: tables."""

    n_masks: int

    def next(self, rng: np.random.Generator, answers: Answers) -> int | None:
        """How many to draw, and None once they are answered."""
        return None if answers.n_masks else self.n_masks


def one_shot(masks: MaskDesign, n_masks: int) -> Design:
    """A design that asks once, from a function of (rng, n_masks, p) that returns masks.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.answers import Answers
    >>> from eblime.designs import one_shot, paired
    >>> design = one_shot(paired, 4)
    >>> design.next(np.random.default_rng(0), Answers.none(["a", "b"])).masks.shape
    (4, 2)
    """
    return OneShot(masks=masks, n_masks=n_masks)


def check_design(design: Any, method: Method | None = None) -> None:
    """Refuse an object that is not a design, or not one for the method, before reading inputs."""
    if isinstance(design, str):
        found = registry.find("designs", design)
        _for_method(found(n_masks=1) if isinstance(found, type) else found, method)
    elif not (callable(design) or hasattr(design, "next")):
        raise TypeError(
            "`design` must be a name, a function of (rng, n_masks, p) that returns masks, or an "
            f"object with a method `next`; got {design!r}."
        )


def as_design(
    design: Any,
    n_masks: int,
    p: int,
    *,
    exact: bool = True,
    method: Method | None = None,
    kernel: str | Kernel | None = None,
) -> Design:
    """The design of that name, a function as a one-shot design, or the object itself.

    None is the domain's own law. A design given by its name becomes exhaustive where
    `2^p <= n_masks` and masks determine the perturbed inputs (`exact`): all masks are then cheaper
    than a sample. A design that chooses masks for a method is given the method, and one that draws
    them by the kernel is given the kernel.
    """
    if design is None:
        return OwnLaw(n_masks=n_masks)
    check_design(design)
    found = registry.find("designs", design) if isinstance(design, str) else design
    if isinstance(design, str) and exact and p <= MOST_EXHAUSTIVE and 2**p <= n_masks:
        found = exhaustive
    if isinstance(found, type):
        found = found(n_masks=n_masks)
    if isinstance(found, KernelDesign):
        found = found.for_kernel(kernel)
    if hasattr(found, "next"):
        made: Design = _for_method(found, method)
        return made
    return one_shot(found, n_masks)


def _for_method(design: Any, method: Method | None) -> Any:
    """The design, made for the method where it is one that chooses masks for a method."""
    if method is not None and isinstance(design, MethodDesign):
        return design.for_method(method)
    return design
