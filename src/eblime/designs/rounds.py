"""Designs as the loop uses them: which masks to ask about next, given the answers so far.

`as_design` makes one from a name or a function; `in_rounds` asks in growing rounds, so that a stop
rule can end the questions early.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eblime import registry
from eblime._types import FloatArray, IntArray
from eblime.answers import Answers, Proposal
from eblime.designs.masks import MOST_EXHAUSTIVE, exhaustive
from eblime.protocols import Design, Kernel, MaskDesign, Method
from eblime.stopping.rule import next_total


@dataclass(frozen=True, slots=True, kw_only=True)
class OneShot:
    """All masks in the first round, by a function of (rng, n_masks, p).

    None stands for a number of inputs that are drawn by the domain's own law: tables.
    """

    masks: MaskDesign | None
    n_masks: int

    def next(self, rng: np.random.Generator, answers: Answers) -> Any:
        """The masks, or how many inputs to draw; None once they are answered."""
        if answers.n_masks:
            return None
        if self.masks is None:
            return self.n_masks
        return self.masks(rng, self.n_masks, answers.n_features)


def check_design(design: object, method: Method | None = None) -> None:
    """Refuse an object that is not a design, or not one for the method, before reading inputs."""
    if isinstance(design, str):
        found = _found(design)
        _for_method(found(n_masks=1) if isinstance(found, type) else found, method)
    elif not (callable(design) or isinstance(design, Design)):
        raise TypeError(
            "`design` must be a name, a function of (rng, n_masks, p) that returns masks, or an "
            f"object with a method `next`; got {design!r}."
        )


def as_design(
    design: object,
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
    than a sample. They count the same, or by the law of a design that does not correct for its
    draws (`all_masks`), so that the estimand does not depend on `n_masks`. A design that chooses
    masks for a method is given the method, and one that draws them by the kernel is given the
    kernel.
    """
    if design is None:
        return OneShot(masks=None, n_masks=n_masks)
    found = _found(design)
    if not isinstance(design, str):
        check_design(design)
    elif exact and p <= MOST_EXHAUSTIVE and 2**p <= n_masks:
        found = getattr(found, "all_masks", exhaustive)
    if isinstance(found, type):
        found = found(n_masks=n_masks)
    if adapt := getattr(found, "for_kernel", None):
        found = adapt(kernel)
    if isinstance(found, Design):
        made: Design = _for_method(found, method)
        return made
    return OneShot(masks=found, n_masks=n_masks)


def _for_method(design: object, method: Method | None) -> Any:
    """The design, made for the method where it is one that chooses masks for a method."""
    adapt = getattr(design, "for_method", None)
    return design if method is None or adapt is None else adapt(method)


_PER_FEATURE = 3  # masks per feature in the first round, at least


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Growing:
    """A plan of perturbed inputs, asked in rounds of growing size."""

    plan: FloatArray | Proposal | None  # None: inputs are drawn by the domain's own law
    n_masks: int  # of the whole plan
    least: int  # masks in the first round, at least
    most: int | None = None  # masks that the method takes, unless they are all masks
    complete: bool = False  # whether the plan is all masks

    def next(self, rng: np.random.Generator, answers: Answers) -> Any:
        """The perturbed inputs of the next round; None once all are answered."""
        added = slice(self.least, self.least + 2)  # both ends, which the plan does not have
        is_end = np.ptp(answers.masks[added], axis=1) == 0 if len(answers.masks) else False
        known = answers.n_masks - int(np.sum(is_end & (answers.weights[added] == 0)))
        wanted = min(next_total(known, self.least), 3 * known // 2) if known else self.least
        total = min(self.n_masks, wanted)
        if self.most is not None and total > self.most:
            total = self.n_masks if self.complete else self.most
        if known >= total:
            return None
        return total - known if self.plan is None else rows_of(self.plan, slice(known, total))


def in_rounds(
    rng: np.random.Generator,
    design: object,
    max_masks: int,
    p: int,
    *,
    exact: bool,
    method: Method | None = None,
    kernel: str | Kernel | None = None,
) -> Design:
    """The design with at most `max_masks` masks, in rounds.

    A design that decides all masks at once decides `max_masks` of them, and they are asked in
    random order; complementary pairs that follow each other stay together. Where all 2^p masks are
    no more than that (and `exact`), the plan is all of them, each once. A design that asks in
    rounds of its own keeps them. A method with a limit (`most_masks`) gets no more masks than that,
    unless they are all masks.
    """
    own_rounds = isinstance(_found(design), type)
    made = as_design(
        design, max_masks, p, exact=exact and not own_rounds, method=method, kernel=kernel
    )
    if not isinstance(made, OneShot):
        return made
    least = first_look(design, p) or next_total(0, _PER_FEATURE * p)
    plan = None if made.masks is None else _shuffle(rng, made.masks, max_masks, p)
    count = max_masks if plan is None else len(getattr(plan, "masks", plan))
    if max_masks < least and count != 2**p:
        raise ValueError(
            f"`max_masks` must be at least {least}, the first round for {p} features; got "
            f"{max_masks}."
        )
    return Growing(
        plan=plan,
        n_masks=count,
        least=least,
        most=getattr(method, "most_masks", None),
        complete=plan is not None and count == 2**p,
    )


def first_look(design: object, p: int) -> int | None:
    """How many masks a stop rule first looks at, where the design says it; None is the usual."""
    found: int | None = getattr(_found(design), "first_look", lambda _: None)(p)
    return found


def _found(design: object) -> Any:
    """What a name stands for, or the design itself."""
    return registry.find("designs", design) if isinstance(design, str) else design


def rows_of(wanted: object, rows: slice | IntArray) -> Any:
    """Some of the masks that a design returned: an array, a list or a proposal."""
    if isinstance(wanted, Proposal):
        return Proposal(masks=wanted.masks[rows], sampling_weights=wanted.sampling_weights[rows])
    return np.asarray(wanted)[rows]


def _shuffle(rng: np.random.Generator, masks: Any, n_masks: int, p: int) -> Any:
    """The masks of a design in random order, two at a time; the first two stay first.

    All 2^p masks in counting order are put into complementary pairs first, the input itself and
    everything hidden before the others.
    """
    drawn = masks(rng, n_masks, p)
    if getattr(masks, "keeps_order", False):
        return drawn
    plan: Any = drawn if isinstance(drawn, Proposal) else np.asarray(drawn)
    listed = getattr(plan, "masks", plan)
    count = len(listed)
    if count == 2.0**p and np.array_equal(listed, exhaustive(rng, n_masks, p)):
        half = np.arange(count)[::-1][: max(1, count // 2)]
        plan = rows_of(plan, np.stack([half, count - 1 - half], axis=1).ravel())
    pairs = 1 + rng.permutation((count - 2) // 2) if count > 3 else np.empty(0, dtype=np.intp)
    inner = (2 * pairs[:, None] + np.arange(2)).ravel()
    order = np.concatenate([np.arange(min(2, count)), inner, np.arange(2 + len(inner), count)])
    return rows_of(plan, order.astype(np.intp))
