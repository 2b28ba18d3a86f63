"""A row as a game: hidden columns come from rows of the background, all from the same row.

The value of a mask is the mean score over the rows of the background, which shap calls
interventional. It is exact where all of them are used. Otherwise each mask gets a few rows at
random, and chance is part of an answer; the two ends, the row itself and everything hidden, are
exact even then. A mask and its complement, one below the other, share their rows, and every row
of the background is used equally often, up to one: both make the answers less noisy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from eblime._types import BoolArray, FloatArray, IntArray
from eblime.domains.tabular.frames import row_keys, table_kind
from eblime.domains.tabular.neighbourhood import RowContext
from eblime.protocols import MeanBatch, masks_at

__all__ = ["MOST_ROWS", "GameNeighbourhood"]

MOST_ROWS = 100  # of the background, for each mask, unless the user says otherwise
_ROOM = 32_768  # rows in one model call, about


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GameNeighbourhood:
    """Masks of one row, whose scores are means over rows of the background."""

    context: RowContext
    rows_per_mask: int
    seed: int  # decides which rows of the background a mask gets
    masks: FloatArray  # (N, p)

    exact_ends = True

    @property
    def exact(self) -> bool:
        """Whether a mask determines its score: every row of the background is used."""
        return self.rows_per_mask == self.context.background.n_rows

    @property
    def closeness(self) -> FloatArray:
        """The masks: a mask of ones is the row itself."""
        return self.masks

    @property
    def sampling_weights(self) -> FloatArray:
        """Ones: a design chooses the masks."""
        return np.ones(len(self.masks))

    @property
    def cost(self) -> int:
        """Rows that the model is asked about for one mask."""
        return self.rows_per_mask

    def affordable(self, n_rows: int) -> int:
        """How many masks can be asked with so many rows, everything hidden among them."""
        return (n_rows - self.context.background.n_rows) // self.rows_per_mask + 1

    @property
    def room(self) -> int:
        """Masks in one model call."""
        return max(1, _ROOM // self.rows_per_mask)

    @property
    def sizes(self) -> Sequence[int]:
        """One large batch."""
        return (self.room,)

    @property
    def scope(self) -> tuple[str, ...]:
        """The kind of table, and digests of the row and of the background."""
        frame = self.context.frame
        every = np.arange(self.context.background.n_rows + 1)[:, None]
        rows = frame.gather(np.repeat(every, len(frame.names), axis=1), {})
        digest = hashlib.blake2b(b"".join(row_keys(rows)), digest_size=16).hexdigest()
        groups = str([feature.columns for feature in self.context.background.features])
        return (*table_kind(rows), digest, groups)

    def keys(self, rows: IntArray) -> list[bytes]:
        """The masks, packed into bits, with the rows of the background that each gets."""
        masks = masks_at(self.masks, rows) > 0.5
        sources = self._sources(rows, masks)
        return [
            np.packbits(mask).tobytes() + some.tobytes()
            for mask, some in zip(masks, sources, strict=True)
        ]

    def extend(self, rng: np.random.Generator, wanted: FloatArray | int) -> GameNeighbourhood:
        """Add masks of a design."""
        if isinstance(wanted, (int, np.integer)):
            raise ValueError(
                "`design` must return masks if perturb='background'; it returned a number."
            )
        masks = np.concatenate([self.masks, np.asarray(wanted, dtype=np.float64)])
        masks.flags.writeable = False
        return replace(self, masks=masks)

    def inputs(self, rows: IntArray) -> MeanBatch:
        """The rows that the scores of some masks are means of, in a table."""
        context = self.context
        masks = masks_at(self.masks, rows) > 0.5
        sources = self._sources(rows, masks)
        sizes = np.array([len(some) for some in sources])
        taken = np.where(
            np.repeat(masks, sizes, axis=0), context.itself, np.concatenate(sources)[:, None]
        )
        columns = context.background.by_column(taken)
        table = context.background.frame.gather(columns, {}, context.last)
        return MeanBatch(inputs=table, sizes=sizes)

    def _sources(self, rows: IntArray, masks: BoolArray) -> list[IntArray]:
        """Rows of the background for each mask by number: one for the row itself, all, or k."""
        everything = np.arange(self.context.background.n_rows)
        drawn = [everything] * len(rows) if self.exact else self._draw(rows // 2)
        return [
            everything[:1] if mask.all() else some if mask.any() else everything
            for mask, some in zip(masks, drawn, strict=True)
        ]

    def _draw(self, pairs: IntArray) -> list[IntArray]:
        """The rows of pairs of masks by number: the next k of random orders of all rows."""
        n, k = self.context.background.n_rows, self.rows_per_mask
        places = np.maximum(pairs, 0)[:, None] * k + np.arange(k)
        cycles, which = np.unique(places // n, return_inverse=True)
        orders = [np.random.default_rng([self.seed, c]).permutation(n) for c in cycles.tolist()]
        return list(np.sort(np.stack(orders)[which.reshape(places.shape), places % n], axis=1))
