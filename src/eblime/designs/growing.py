"""Designs that ask in growing rounds, so that a stop rule can end the questions early."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from eblime import registry
from eblime._types import IntArray
from eblime.answers import Answers
from eblime.designs.masks import exhaustive
from eblime.designs.rounds import EarlyDesign, OneShot, OwnLaw, as_design
from eblime.protocols import Design, Kernel, Method

__all__ = ["Growing", "in_rounds", "rows_of"]

NextTotal = Callable[[int, int], int]  # masks so far, least in the first round -> masks then
_PER_FEATURE = 3  # masks per feature in the first round, at least


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Growing:
    """A plan of perturbed inputs, asked in rounds of growing size."""

    plan: Any  # masks, a record of arrays with one entry per mask, or None: the domain's own law
    n_masks: int  # of the whole plan
    least: int  # masks in the first round, at least
    next_total: NextTotal
    most: int | None = None  # masks that the method takes, unless they are all masks
    complete: bool = False  # whether the plan is all masks

    def next(self, rng: np.random.Generator, answers: Answers) -> Any:
        """The perturbed inputs of the next round; None once all are answered."""
        known = answers.n_masks
        total = min(self.n_masks, self.next_total(known, self.least))
        if self.most is not None and total > self.most:
            total = self.n_masks if self.complete else self.most
        if known >= total:
            return None
        return total - known if self.plan is None else rows_of(self.plan, slice(known, total))


def in_rounds(
    rng: np.random.Generator,
    design: Any,
    max_masks: int,
    p: int,
    *,
    exact: bool,
    next_total: NextTotal,
    method: Method | None = None,
    kernel: str | Kernel | None = None,
) -> Design:
    """The design with at most `max_masks` masks, in rounds.

    A design that decides all masks at once decides `max_masks` of them, and they are asked in
    random order; complementary pairs that follow each other stay together. Where all 2^p masks are
    no more than that (and `exact`), the plan is all of them, each once. A design that asks in
    rounds of its own keeps them. A method with a limit (`most_masks`) gets no more masks than that,
    unless they are all masks.

    Raises
    ------
    ValueError
        If `max_masks` is less than the first round.
    """
    may_end = hasattr(_found(design), "ending_early")
    whole = exact and not may_end
    made = as_design(design, max_masks, p, exact=whole, method=method, kernel=kernel)
    if isinstance(made, EarlyDesign):
        return made.ending_early()
    if not isinstance(made, (OneShot, OwnLaw)):
        return made
    least = next_total(0, _PER_FEATURE * p)
    plan = None if isinstance(made, OwnLaw) else _shuffled(rng, made.masks, max_masks, p)
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
        next_total=next_total,
        most=getattr(method, "most_masks", None),
        complete=plan is not None and count == 2**p,
    )


def _found(design: Any) -> Any:
    """What a name stands for, or the design itself."""
    return registry.find("designs", design) if isinstance(design, str) else design


def rows_of(wanted: Any, rows: slice | IntArray) -> Any:
    """Some of the masks that a design returned: of an array or list, or of a record of arrays."""
    if not is_dataclass(wanted):
        return np.asarray(wanted)[rows]
    record: Any = wanted
    return replace(
        record, **{entry.name: getattr(record, entry.name)[rows] for entry in fields(record)}
    )


def _shuffled(rng: np.random.Generator, masks: Any, n_masks: int, p: int) -> Any:
    """The masks of a design in random order, two at a time; the first two stay first.

    All 2^p masks are put into complementary pairs first, the input itself and everything hidden
    before the others.
    """
    if masks is exhaustive:
        numbers = np.arange(2**p)[::-1]
        half = numbers[: max(1, 2 ** (p - 1))]
        every = exhaustive(rng, n_masks, p)
        plan: Any = every[np.stack([half, 2**p - 1 - half], axis=1).ravel()]
    else:
        drawn = masks(rng, n_masks, p)
        plan = drawn if hasattr(drawn, "masks") else np.asarray(drawn)
    count = len(getattr(plan, "masks", plan))
    pairs = 1 + rng.permutation((count - 2) // 2) if count > 3 else np.empty(0, dtype=np.intp)
    inner = (2 * pairs[:, None] + np.arange(2)).ravel()
    order = np.concatenate([np.arange(min(2, count)), inner, np.arange(2 + len(inner), count)])
    return rows_of(plan, order.astype(np.intp))
