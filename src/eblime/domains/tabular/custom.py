"""Rows perturbed by the user's own function, which is called in blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eblime._types import FloatArray, IntArray
from eblime.domains.tabular.context import RowContext, standardise
from eblime.domains.tabular.frame import Frame
from eblime.domains.tabular.frames import as_frame
from eblime.domains.tabular.keys import keys_in_pieces, table_kind
from eblime.domains.tabular.sparse_frame import SparseFrame
from eblime.protocols import INPUT_ITSELF

__all__ = ["UserNeighbourhood", "UserPerturb"]

UserPerturb = Callable[[np.random.Generator, int, Any], Any]
_BLOCK = 1024  # rows per call of the function


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UserNeighbourhood:
    """Rows from the user's function."""

    context: RowContext
    perturb: UserPerturb
    frame: Frame  # the rows of the background, the row itself, the rows of the function
    masks: FloatArray  # (N, p) as the regression sees them
    origin: FloatArray  # (p,) the row itself as the regression sees it

    @property
    def closeness(self) -> FloatArray:
        """How close each perturbed row is to the row; ones are the row itself."""
        return np.asarray(self.masks + (1 - self.origin))

    @property
    def sampling_weights(self) -> FloatArray:
        """Ones: the function decides how often a row is drawn."""
        return np.ones(len(self.masks))

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
        """Add rows from the function; the first of all is replaced by the row itself."""
        if not isinstance(wanted, (int, np.integer)):
            raise ValueError("`design` must be None if `perturb` is a function.")
        frame = self.frame
        for start in range(0, int(wanted), _BLOCK):
            frame = frame.append(self._call(rng, min(_BLOCK, int(wanted) - start)))
        seen = _masks(self.context, frame)
        origin, masks = seen[0], seen[1:]
        masks[0] = origin
        masks.flags.writeable = False
        return replace(self, frame=frame, masks=masks, origin=origin)

    def inputs(self, rows: IntArray) -> Any:
        """Perturbed rows by number, in a table of the background's kind."""
        if (rows < INPUT_ITSELF).any():
            raise ValueError("A row of a table has no version with everything hidden.")
        itself = self.context.itself
        sources = np.where(rows > 0, itself + 1 + rows, itself)
        return self.frame.gather(np.repeat(sources[:, None], len(self.frame.names), axis=1), {})

    @property
    def scope(self) -> tuple[str, ...]:
        """The kind of table and its columns: a model sees nothing else besides the row."""
        return table_kind(self.inputs(np.array([INPUT_ITSELF])))

    def keys(self, rows: IntArray) -> list[bytes]:
        """The perturbed rows themselves, or digests of them."""
        return keys_in_pieces(self.inputs, rows, self.room)

    def _call(self, rng: np.random.Generator, n: int) -> Frame:
        """Get n rows from the function, and check their shape."""
        d = len(self.frame.names)
        row = self.frame.gather(np.full((1, d), self.context.itself), {})
        returned = as_frame(self.perturb(rng, n, row))
        shape = (returned.n_rows, len(returned.names))
        if isinstance(returned, SparseFrame) or shape != (n, d):
            raise ValueError(
                f"`perturb` must return {n} rows of {d} columns when called with n={n}; "
                f"got {shape[0]} rows of {shape[1]}."
            )
        return returned


def _masks(context: RowContext, frame: Frame) -> FloatArray:
    """The row itself and the rows of the function as the regression sees them."""
    itself = context.itself
    masks = np.empty((frame.n_rows - itself, context.n_features))
    for j, feature in enumerate(context.background.features):
        inside = np.ones(len(masks), dtype=bool)
        for c in feature.columns:
            column = context.background.columns[c]
            inside &= column.same(frame.column(c)[0][itself:], context.values[c])
        masks[:, j] = inside
        if context.continuous and feature.scale is not None:
            masks[:, j] = standardise(frame.column(feature.columns[0])[0][itself:], feature)
    if not np.isfinite(masks).all():
        raise ValueError(
            "`perturb` must return numbers that are not missing if representation='continuous'."
        )
    return masks
