"""Perturbed rows, drawn from the background.

Every perturbed row is assembled from rows of the background: for each feature a row number is
drawn, and the feature's values are taken from that row. Drawing a number per feature gives lime's
bins; drawing one number for the whole row keeps the correlations.

A feature that seldom varies is forced to vary in some rows; `sampling_weights` corrects for it.

Rows are drawn in blocks. Each block has its own generator, so no batch size changes a number and
100,000 perturbed rows are never in memory at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from eblime._types import FloatArray, IntArray
from eblime.domains.tabular.background import Feature
from eblime.domains.tabular.binning import within_bins
from eblime.domains.tabular.cells import is_missing
from eblime.domains.tabular.context import RowContext, standardise
from eblime.domains.tabular.keys import keys_in_pieces, table_kind
from eblime.domains.tabular.strata import Strata, find_strata
from eblime.protocols import INPUT_ITSELF

__all__ = ["PERTURB", "TableNeighbourhood"]

PERTURB = ("bins", "normal", "rows")

_BLOCK = 1024  # rows
_CACHED = 1 << 21  # numbers in cached blocks, at most
_BATCH_BYTES = 32 << 20

Block = tuple[IntArray, FloatArray]  # row numbers (_BLOCK, p), new numbers (_BLOCK, p)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableNeighbourhood:
    """Rows drawn from the background; blocks are drawn when they are needed."""

    context: RowContext
    perturb: str  # one of PERTURB
    around: bool  # with continuous features: sample around the row, not around the mean
    entropy: tuple[int, ...]  # seed of the blocks
    masks: FloatArray  # (N, p) as the regression sees them
    by_design: bool | None = None  # whether a design chose the masks; None while there are none
    cache: dict[int, Block] = field(default_factory=dict)

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return self.context.n_features

    @property
    def closeness(self) -> FloatArray:
        """How close each perturbed row is to the row; ones are the row itself."""
        return np.asarray(self.masks + (1 - self.origin))

    @property
    def sampling_weights(self) -> FloatArray:
        """Weights that correct for the rows that were forced to vary, (N,); ones if none were."""
        return np.ones(len(self.masks)) if self.by_design else self._strata().weights(self.masks)

    @property
    def exact(self) -> bool:
        """Always False: the values of hidden features are random."""
        return False

    @property
    def origin(self) -> FloatArray:
        """The row as the regression sees it, (p,): ones, or standardised numbers."""
        origin = np.ones(self.n_features)
        if self.context.continuous:
            for j, feature in self._normal_features():
                origin[j] = standardise(self.context.number(feature), feature)
        return origin

    @property
    def sizes(self) -> Sequence[int]:
        """One large batch, as memory allows: models of tables are fastest with large batches."""
        return (min(8192, self.room),)

    @property
    def room(self) -> int:
        """Rows that fit into memory in one model call."""
        return max(256, _BATCH_BYTES // (8 * len(self.context.background.column_feature)))

    def extend(self, rng: np.random.Generator, wanted: FloatArray | int) -> TableNeighbourhood:
        """Add perturbed rows: one per mask of a design, or a number of random ones.

        The first random row is the row itself.
        """
        by_design = not isinstance(wanted, (int, np.integer))
        if self.by_design not in (None, by_design):
            raise ValueError("`design` must return either masks or numbers in all rounds.")
        grown = replace(self, by_design=by_design)
        more = wanted if by_design else grown._random_masks(int(wanted))
        masks = np.concatenate([self.masks, np.asarray(more, dtype=np.float64)])
        masks.flags.writeable = False
        if masks.size > _CACHED:
            grown.cache.clear()
        return replace(grown, masks=masks)

    @property
    def scope(self) -> tuple[str, ...]:
        """The kind of table and its columns: a model sees nothing else besides the row."""
        return table_kind(self.inputs(np.array([INPUT_ITSELF])))

    def keys(self, rows: IntArray) -> list[bytes]:
        """The perturbed rows themselves, or digests of them."""
        return keys_in_pieces(self.inputs, rows, self.room)

    def inputs(self, rows: IntArray) -> Any:
        """Perturbed rows by number, in a table of the background's kind."""
        if (rows < INPUT_ITSELF).any():
            raise ValueError("A row of a table has no version with everything hidden.")
        context, features = self.context, self._normal_features()
        sources = np.full((len(rows), self.n_features), context.itself, dtype=np.intp)
        new_values = {
            feature.columns[0]: np.full(len(rows), context.number(feature))
            for _, feature in features
        }
        drawn = rows if self.by_design else np.where(rows == 0, INPUT_ITSELF, rows)
        for block in np.unique(drawn[drawn >= 0] // _BLOCK):
            inside = np.flatnonzero((drawn >= 0) & (drawn // _BLOCK == block))
            within = drawn[inside] - block * _BLOCK
            taken, made = self._block(int(block))
            taken = taken[within]
            if self.by_design:
                taken = np.where(self.masks[drawn[inside]] > 0.5, context.itself, taken)
            sources[inside] = taken
            for j, feature in features:
                own = taken[:, j] == context.itself
                numbers = np.where(own, context.number(feature), made[within, j])
                new_values[feature.columns[0]][inside] = numbers
        return context.frame.gather(context.background.by_column(sources), new_values)

    def _normal_features(self) -> list[tuple[int, Feature]]:
        """Features whose numbers come from normal distributions: single columns of numbers."""
        if not self.context.continuous and self.perturb != "normal":
            return []
        return [
            (j, feature)
            for j, feature in enumerate(self.context.background.features)
            if feature.scale is not None and not is_missing(self.context.values[feature.columns[0]])
        ]

    def _new_levels(self) -> IntArray:
        """Features with a value that the background does not have, such as a new category.

        A random row of the background never shows them, so they are kept with probability 1/2.
        """
        numeric = [j for j, _ in self._normal_features()] if self.context.continuous else []
        absent = np.flatnonzero(~self.context.same[:, :-1].any(axis=1))
        return np.setdiff1d(absent, numeric)

    def _random_masks(self, n: int) -> FloatArray:
        """The next n random rows as the regression sees them."""
        start, end = len(self.masks), len(self.masks) + n
        found = np.empty((n, self.n_features))
        for block in range(start // _BLOCK, -(-end // _BLOCK)):
            offset = block * _BLOCK
            first, last = max(start, offset), min(end, offset + _BLOCK)
            masks = self._block_masks(block)
            found[first - start : last - start] = masks[first - offset : last - offset]
        if start == 0:
            found[0] = self.origin
        return found

    def _block_masks(self, block: int) -> FloatArray:
        """A block as the regression sees it: in the row's bin or not, or standardised numbers."""
        context = self.context
        taken, made = self._block(block)
        offsets = context.same.shape[1] * np.arange(self.n_features)
        found = context.same.ravel().take(taken + offsets).astype(np.float64)
        if context.continuous:
            for j, feature in self._normal_features():
                found[:, j] = standardise(made[:, j], feature)
        return np.asarray(found)

    def _block(self, block: int) -> Block:
        """A block, from the cache if it is there."""
        if block in self.cache:
            return self.cache[block]
        drawn = self._draw(block)
        if (len(self.cache) + 1) * _BLOCK * self.n_features <= _CACHED:
            self.cache[block] = drawn
        return drawn

    def _draw(self, block: int) -> Block:
        """Draw a block with its own generator: the result is always the same."""
        rng = np.random.default_rng([*self.entropy, block])
        n, p = self.context.background.n_rows, self.n_features
        if self.perturb == "rows":
            taken = np.repeat(rng.integers(0, n, size=(_BLOCK, 1)), p, axis=1)
        elif self.by_design:
            taken = self._rows_in_other_bins(rng)
        else:
            taken = rng.integers(0, n, size=(_BLOCK, p))
        if not self.by_design:
            self._force(taken, block)
        made = self._new_numbers(rng, taken)
        new_levels = self._new_levels()
        if new_levels.size and not self.by_design:
            own = rng.integers(0, 2, size=(_BLOCK, new_levels.size)) == 1
            taken[:, new_levels] = np.where(own, self.context.itself, taken[:, new_levels])
        return taken, made

    def _strata(self) -> Strata:
        """The features that seldom vary, of those that are either in the row's bin or not."""
        binary = np.ones(self.n_features, dtype=bool)
        if self.context.continuous:
            binary[[j for j, _ in self._normal_features()]] = False
        return find_strata(self.context.same[:, :-1], np.flatnonzero(binary))

    def _force(self, taken: IntArray, block: int) -> None:
        """Replace sources of a block, in place, so that features that seldom vary do.

        It has generators of its own: without such features the draws do not depend on it.
        """
        strata = self._strata()
        if not strata.features.size:
            return
        start = np.random.default_rng([*self.entropy, 0, 2]).random()
        chosen = strata.assign(start, block * _BLOCK + np.arange(_BLOCK))
        rng = np.random.default_rng([*self.entropy, block, 1])
        for k, (j, state) in enumerate(zip(strata.features, strata.states, strict=True)):
            rows = np.flatnonzero(chosen == k)
            rare = np.flatnonzero(self.context.same[j, :-1] == state)
            drawn = rng.choice(rare, size=len(rows))
            if self.perturb == "rows":
                taken[rows] = drawn[:, None]
            else:
                taken[rows, j] = drawn

    def _new_numbers(self, rng: np.random.Generator, taken: IntArray) -> FloatArray:
        """Numbers from normal distributions, (_BLOCK, p); without columns if there are none."""
        context, features = self.context, self._normal_features()
        made = np.empty((_BLOCK, self.n_features if features else 0))
        for j, feature in features:
            if context.continuous:
                centre, sd = feature.scale or (0.0, 1.0)
                centre = context.number(feature) if self.around else centre
                made[:, j] = centre + sd * rng.standard_normal(_BLOCK)
            else:
                column = context.background.columns[feature.columns[0]]
                made[:, j] = within_bins(rng, column, column.codes[taken[:, j]])
        return made

    def _rows_in_other_bins(self, rng: np.random.Generator) -> IntArray:
        """For each feature, rows whose value is in a different bin than the row's."""
        chance = rng.random((_BLOCK, self.n_features))
        taken = np.full(chance.shape, self.context.itself, dtype=np.intp)
        for j, same in enumerate(self.context.same):
            others = np.flatnonzero(~same)
            if others.size:
                taken[:, j] = others[(chance[:, j] * others.size).astype(np.intp)]
        return taken
