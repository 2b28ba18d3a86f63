"""Rows perturbed by the user's own function, called in blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray, IntArray
from eblime.domains.tabular.background import Background
from eblime.domains.tabular.frames import Frame, as_frame
from eblime.domains.tabular.sparse_frame import SparseFrame
from eblime.protocols import INPUT_ITSELF

__all__ = ["UserNeighbourhood", "UserPerturb", "empty_user_neighbourhood"]

UserPerturb = Callable[[np.random.Generator, int, Any], Any]
_BLOCK = 1024


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UserNeighbourhood:
    """Rows of the user's function, below the background and the row itself."""

    perturb: UserPerturb
    background: Background
    frame: Frame  # the background, the row itself, the user's rows
    row: Sequence[Any]
    continuous: bool
    masks: FloatArray  # (N, p) as the regression sees them
    origin: FloatArray  # (p,) the row itself as the regression sees it

    @property
    def closeness(self) -> FloatArray:
        """How near each row is to the row explained: ones are the row itself."""
        return np.asarray(self.masks + (1 - self.origin))

    @property
    def exact(self) -> bool:
        """Always False: the function may draw at random."""
        return False

    @property
    def sizes(self) -> Sequence[int]:
        """One large batch."""
        return (8192,)

    @property
    def room(self) -> int:
        """The largest batch."""
        return 8192

    def extend(self, rng: np.random.Generator, wanted: FloatArray | int) -> UserNeighbourhood:
        """Add rows of the user's function; the first of all is the row itself."""
        if not isinstance(wanted, (int, np.integer)):
            raise ValueError("`design` must be None where `perturb` is a function.")
        d, itself, joined = len(self.background.columns), self.background.n_rows, self.frame
        own = joined.gather(np.full((1, d), itself), {})
        for start in range(0, int(wanted), _BLOCK):
            count = min(_BLOCK, int(wanted) - start)
            made = as_frame(self.perturb(rng, count, own))
            if isinstance(made, SparseFrame) or (made.n_rows, len(made.names)) != (count, d):
                raise ValueError(
                    f"`perturb` must return {count} rows of {d} columns when asked for {count}; "
                    f"got {made.n_rows} rows of {len(made.names)}."
                )
            joined = joined.joined(made)
        masks = _seen(self.background, joined, self.row, self.continuous)
        origin, masks = masks[0], masks[1:]
        masks[0] = origin
        masks.flags.writeable = False
        return replace(self, frame=joined, masks=masks, origin=origin)

    def inputs(self, rows: IntArray) -> Any:
        """Rows by number."""
        if (rows < INPUT_ITSELF).any():
            raise ValueError("A row of a table has no version with everything hidden.")
        itself = self.background.n_rows
        places = np.where(rows > 0, itself + 1 + rows, itself)
        return self.frame.gather(np.repeat(places[:, None], len(self.frame.names), axis=1), {})

    def repeats(self, rows: IntArray) -> NDArray[np.bool_]:
        """Always False: each perturbed row is asked about, the row itself among them."""
        return np.zeros(len(rows), dtype=bool)


def empty_user_neighbourhood(
    perturb: UserPerturb,
    *,
    background: Background,
    frame: Frame,
    row: Sequence[Any],
    continuous: bool,
) -> UserNeighbourhood:
    """No rows yet."""
    p = len(background.features)
    return UserNeighbourhood(
        perturb=perturb,
        background=background,
        frame=frame,
        row=row,
        continuous=continuous,
        masks=np.empty((0, p)),
        origin=np.ones(p),
    )


def _seen(background: Background, frame: Frame, row: Sequence[Any], continuous: bool) -> FloatArray:
    """The row itself and the user's rows as the regression sees them."""
    itself = background.n_rows
    masks = np.empty((frame.n_rows - itself, len(background.features)))
    for j, feature in enumerate(background.features):
        inside = np.ones(len(masks), dtype=bool)
        for c in feature.columns:
            column = background.columns[c]
            inside &= column.same(frame.column(c)[0][itself:], row[c])
        masks[:, j] = inside
        if continuous and feature.scale is not None:
            mean, sd = feature.scale
            masks[:, j] = (frame.column(feature.columns[0])[0][itself:] - mean) / sd
    if not np.isfinite(masks).all():
        raise ValueError(
            "`perturb` must return numbers that are not missing with representation='continuous'."
        )
    return masks
