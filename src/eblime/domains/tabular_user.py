"""Rows perturbed by the user's own function, asked once for each block and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eblime._types import FloatArray
from eblime.domains.background import Background
from eblime.domains.frames import Frame, as_frame
from eblime.domains.sparse_frame import SparseFrame

__all__ = ["UserDrawing", "UserPerturb", "draw_by_user"]

UserPerturb = Callable[[np.random.Generator, int, Any], Any]
_BLOCK = 1024


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UserDrawing:
    """The user's rows below the background and the row itself."""

    features: Sequence[str]
    frame: Frame  # the background, the row itself, the user's rows
    itself: int  # where the row stands
    masks: FloatArray  # (N, p) as the regression sees them
    origin: FloatArray  # (p,) and the row itself
    sizes: Sequence[int] = (8192,)

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.features)

    def inputs(self, requests: FloatArray) -> Any:
        """Rows by number, the row itself for -1 and for the first."""
        numbers = requests[:, 0].astype(np.intp)
        places = np.where(numbers > 0, self.itself + 1 + numbers, self.itself)
        return self.frame.gather(np.repeat(places[:, None], len(self.frame.names), axis=1), {})


def draw_by_user(
    rng: np.random.Generator,
    n: int,
    perturb: UserPerturb,
    *,
    background: Background,
    frame: Frame,
    row: Sequence[Any],
    features: Sequence[str],
    continuous: bool,
) -> UserDrawing:
    """Ask the user's function for n rows, and see them as the regression does."""
    d, itself = len(background.columns), background.n_rows
    own = frame.gather(np.full((1, d), itself), {})
    joined: Any = frame
    for start in range(0, n, _BLOCK):
        count = min(_BLOCK, n - start)
        made = as_frame(perturb(rng, count, own))
        if isinstance(made, SparseFrame) or (made.n_rows, len(made.names)) != (count, d):
            raise ValueError(
                f"`perturb` must return {count} rows of {d} columns when asked for {count}; got "
                f"{made.n_rows} rows of {len(made.names)}."
            )
        joined = joined.joined(made)
    masks = np.empty((n + 1, len(features)))  # the row itself first
    for j, feature in enumerate(background.features):
        inside = np.ones(n + 1, dtype=bool)
        for c in feature.columns:
            column = background.columns[c]
            inside &= column.same(joined.column(c)[0][itself:], row[c])
        masks[:, j] = inside
        if continuous and feature.scale is not None:
            mean, sd = feature.scale
            masks[:, j] = (joined.column(feature.columns[0])[0][itself:] - mean) / sd
    if not np.isfinite(masks).all():
        raise ValueError(
            "`perturb` must return numbers that are not missing with representation='continuous'."
        )
    origin, masks = masks[0], masks[1:]
    masks[0] = origin
    return UserDrawing(features=features, frame=joined, itself=itself, masks=masks, origin=origin)
