"""Several inputs in one model call: rows and texts of one kind travel together."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from eblime._types import FloatArray
from eblime.explanation import Explanation
from eblime.inquiry import Inquiry, Plan
from eblime.models.answers import as_scores
from eblime.protocols import Scene
from eblime.query import Asked, ModelError

__all__ = ["explain_together", "group_size"]

_ROWS = 32_768  # perturbed inputs in one call, at most


def group_size(inquiry: Inquiry) -> int:
    """How many scenes may share a call: 1 where the user's size of batches has no room for two."""
    most = _ROWS if inquiry.batch_size is None else inquiry.batch_size
    return max(1, most // (inquiry.n_masks + 1))


def explain_together(
    inquiry: Inquiry, scenes: Sequence[Scene], targets: Any, rngs: Sequence[np.random.Generator]
) -> list[dict[int, Explanation]]:
    """Explain several scenes that make their own inputs, with few model calls.

    The numbers are those of explaining each by itself: every scene draws from its own generator,
    and a model answers a row the same in whatever company. A call is no larger than what the scenes
    say memory has room for; where that is less than two of them, each is asked about by itself.
    """
    start = time.perf_counter()
    plans = [inquiry.plan(scene, rng) for scene, rng in zip(scenes, rngs, strict=True)]
    group = min(group_size(inquiry), min(_room(plan) for plan in plans))
    asked: list[Asked] = []
    for first in range(0, len(plans), group):
        some = plans[first : first + group]
        if len(some) == 1:
            asked.append(inquiry.ask(some[0], targets))
            continue
        for plan, answer in zip(some, _answers(inquiry, some), strict=True):
            asked.append(_asked(answer, plan, targets, inquiry))
    return [
        inquiry.conclude(plan, answer, rng, rng, start)
        for plan, answer, rng in zip(plans, asked, rngs, strict=True)
    ]


def _room(plan: Plan) -> int:
    """How many such plans fit into the largest batch that there is room for."""
    asked: Any = plan.asked
    most = getattr(asked, "room", None) or max(asked.sizes)
    return max(1, int(most) // (len(plan.requests) + 1))


def _answers(inquiry: Inquiry, plans: Sequence[Plan]) -> list[FloatArray]:
    """One call for all plans, the input itself before its masks, and each plan's share of it."""
    batches = []
    for plan in plans:
        asked: Any = plan.asked  # which makes its inputs: rows and texts do
        itself = np.full((1, plan.requests.shape[1]), plan.itself)
        batches.append(asked.inputs(np.concatenate([itself, plan.requests])))
    sizes = [len(plan.requests) + 1 for plan in plans]
    try:
        raw = np.asarray(as_scores(inquiry.model(_stacked(batches))), dtype=np.float64)
    except Exception as error:
        raise ModelError(f"The model failed: {type(error).__name__}: {error}") from error
    scores = raw[:, None] if raw.ndim == 1 else raw
    if scores.ndim != 2 or len(scores) != sum(sizes) or not np.isfinite(scores).all():
        raise ModelError(
            f"The model must return finite scores for a batch of {sum(sizes)}; got shape "
            f"{raw.shape}."
        )
    return np.split(scores, np.cumsum(sizes)[:-1])


def _asked(answer: FloatArray, plan: Plan, targets: Any, inquiry: Inquiry) -> Asked:
    """The share of one input."""
    original, rest = answer[0], answer[1:]
    columns = inquiry.columns(targets, original)
    scores = np.ascontiguousarray(rest[:, columns])
    whole = (plan.requests == plan.itself).all(axis=1)
    scores[whole] = original[columns]
    return Asked(
        scores=scores,
        original=original,
        columns=columns,
        batch_size=len(answer),
        calls=len(answer) - int(whole.sum()),
    )


def _stacked(batches: Sequence[Any]) -> Any:
    """Batches of one kind, one below the other."""
    first = batches[0]
    if len(batches) == 1:
        return first
    if isinstance(first, list):
        return [entry for batch in batches for entry in batch]
    if isinstance(first, np.ndarray):
        return np.concatenate(batches)
    if hasattr(first, "tocsr"):
        from scipy import sparse

        return sparse.vstack(batches, format="csr")
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat(batches, ignore_index=True)
    import narwhals as nw

    return nw.concat([nw.from_native(batch) for batch in batches], how="vertical").to_native()
