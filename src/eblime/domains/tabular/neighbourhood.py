"""Perturbed rows: drawn from the background, or by the user's own function.

Every row that is drawn is assembled from rows of the background: for each feature a row number is
drawn, and the feature's values are taken from that row. Drawing a number per feature gives lime's
bins; drawing one number for the whole row keeps the correlations.

A random row of the background shows a category of 1 % of the rows once in a hundred draws. So some
perturbed rows are forced into the rare state of such a feature, and `sampling_weights` undo this: a
weighted average over the perturbed rows estimates the same quantity as before.

Rows are drawn in blocks. Each block has its own generator, so no batch size changes a number and
100,000 perturbed rows are never in memory at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._types import BoolArray, FloatArray, IntArray
from eblime.domains.tabular.background import Background, Feature
from eblime.domains.tabular.cells import is_missing
from eblime.domains.tabular.frames import Frame, SparseFrame, as_frame, row_keys, table_kind
from eblime.protocols import INPUT_ITSELF

__all__ = ["PERTURB", "RowContext", "TableNeighbourhood", "UserNeighbourhood", "UserPerturb"]

PERTURB = ("bins", "normal", "rows", "background")
UserPerturb = Callable[[np.random.Generator, int, Any], Any]

_BLOCK = 1024  # rows that are drawn together, or per call of the user's function
_CACHED = 1 << 21  # numbers in cached blocks, at most
_BATCH_BYTES = 32 << 20
_LARGEST = 8192  # rows per model call: models of tables are fastest with large batches

_RARE = 0.1  # share of the perturbed rows in either state of a feature, at least
_FORCED = 0.5  # share of the perturbed rows that are forced, at most
_GOLDEN = (np.sqrt(5) - 1) / 2  # multiples of it, modulo one, are spread evenly

Block = tuple[IntArray, FloatArray]  # row numbers (_BLOCK, p), new numbers (_BLOCK, p)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowContext:
    """One row and the background it is compared with."""

    background: Background  # with the features of this row
    frame: Frame  # the rows of the background, and then the row itself
    values: Sequence[Any]  # of the row, by column
    same: NDArray[np.bool_]  # (p, n + 1) whether a row of `frame` is in the row's bins
    continuous: bool  # numbers are standardised; otherwise a feature is in the row's bin or not

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.background.features)

    @property
    def itself(self) -> int:
        """Position of the row in `frame`."""
        return self.background.n_rows

    def number(self, feature: Feature) -> float:
        """The row's number for a feature that is a single column of numbers."""
        return float(self.values[feature.columns[0]])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Strata:
    """The rare states of k features, and how often each is forced."""

    features: IntArray  # (k,)
    states: BoolArray  # (k,) True where it is rare to be in the row's bin
    chances: FloatArray  # (k,) probability of the rare state in a row that is not forced
    shares: FloatArray  # (k,) share of the rows that are forced into the rare state

    @classmethod
    def of(cls, same: NDArray[np.bool_], features: IntArray) -> Strata:
        """The strata of a row, none if every state of every feature is frequent enough.

        `same` says whether each row of the background is in the row's bins, by feature, (p, n);
        `features` are those that are binary.
        """
        inside = same[features].mean(axis=1)
        chances = np.minimum(inside, 1 - inside)
        rare = (chances > 0) & (chances < _RARE)
        shares = (_RARE - chances[rare]) / (1 - chances[rare])
        return cls(
            features=features[rare],
            states=inside[rare] < 0.5,
            chances=chances[rare],
            shares=shares * min(1.0, _FORCED / shares.sum()) if rare.any() else shares,
        )

    def assign(self, start: float, rows: IntArray) -> IntArray:
        """The stratum of each row, by its number; k where a row is not forced.

        Every run of rows has nearly the right number of each stratum. If `start` is uniform on
        (0, 1), each row on its own is in a stratum with exactly the probability of its share.
        """
        place = (start + _GOLDEN * rows) % 1.0
        return np.asarray(np.searchsorted(np.cumsum(self.shares), place, side="right"))

    def weights(self, masks: FloatArray) -> FloatArray:
        """Sampling weights, (N, p) -> (N,): the chance of a row without forcing over that with it.

        The chance of a row with forcing is a mixture over the strata, so no weight is above
        `1 / (1 - _FORCED)`.
        """
        rare = (masks[:, self.features] > 0.5) == self.states
        return np.asarray(1 / (1 - self.shares.sum() + rare @ (self.shares / self.chances)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableNeighbourhood:
    """Rows drawn from the background; blocks are drawn when they are needed."""

    context: RowContext
    perturb: str  # "bins", "normal" or "rows"
    around: bool  # with continuous features: sample around the row, not around the mean
    entropy: tuple[int, ...]  # seed of the blocks
    masks: FloatArray  # (N, p) as the regression sees them
    by_design: bool | None = None  # whether a design chose the masks; None while there are none
    cache: dict[int, Block] = field(default_factory=dict)

    exact = False  # the values of hidden features are random

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
    def origin(self) -> FloatArray:
        """The row as the regression sees it, (p,): ones, or standardised numbers."""
        origin = np.ones(self.n_features)
        if self.context.continuous:
            for j, feature in self._normal_features():
                origin[j] = feature.standardise(self.context.number(feature))
        return origin

    @property
    def sizes(self) -> Sequence[int]:
        """One large batch, as memory allows."""
        return (min(_LARGEST, self.room),)

    @property
    def room(self) -> int:
        """Rows that fit into memory in one model call."""
        return max(256, _BATCH_BYTES // (8 * len(self.context.background.column_feature)))

    @property
    def scope(self) -> tuple[str, ...]:
        """The kind of table and its columns: a model sees nothing else besides the row."""
        return table_kind(self.inputs(np.array([INPUT_ITSELF])))

    def keys(self, rows: IntArray) -> list[bytes]:
        """The perturbed rows themselves, or digests of them."""
        return _keys(self, rows)

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

    def inputs(self, rows: IntArray) -> Any:
        """Perturbed rows by number, in a table of the background's kind."""
        _refuse_hidden(rows)
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

    def _binary_features(self) -> IntArray:
        """Features that are either in the row's bin or not."""
        binary = np.ones(self.n_features, dtype=bool)
        if self.context.continuous:
            binary[[j for j, _ in self._normal_features()]] = False
        return np.flatnonzero(binary)

    def _strata(self) -> Strata:
        """The binary features that seldom vary."""
        return Strata.of(self.context.same[:, :-1], self._binary_features())

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
                found[:, j] = feature.standardise(made[:, j])
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
        if not self.by_design:
            self._keep_new_levels(rng, taken)
        return taken, made

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

    def _keep_new_levels(self, rng: np.random.Generator, taken: IntArray) -> None:
        """Keep values that the background does not have, such as a new category, in place.

        A random row of the background never shows them: half of the perturbed rows do.
        """
        absent = np.flatnonzero(~self.context.same[:, :-1].any(axis=1))
        new_levels = np.intersect1d(absent, self._binary_features())
        if new_levels.size:
            own = rng.integers(0, 2, size=(_BLOCK, new_levels.size)) == 1
            taken[:, new_levels] = np.where(own, self.context.itself, taken[:, new_levels])

    def _new_numbers(self, rng: np.random.Generator, taken: IntArray) -> FloatArray:
        """Numbers from normal distributions, (_BLOCK, p); without columns if there are none."""
        context, features = self.context, self._normal_features()
        made = np.empty((_BLOCK, self.n_features if features else 0))
        for j, feature in features:
            column = context.background.columns[feature.columns[0]]
            if context.continuous:
                centre, sd = feature.scale or (0.0, 1.0)
                centre = context.number(feature) if self.around else centre
                numbers = centre + sd * rng.standard_normal(_BLOCK)
                made[:, j] = (
                    numbers if column.limits is None else numbers.round().clip(*column.limits)
                )
            else:
                made[:, j] = column.draw(rng, column.codes[taken[:, j]])
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UserNeighbourhood:
    """Rows from the user's function, which is called in blocks."""

    context: RowContext
    perturb: UserPerturb
    frame: Frame  # the rows of the background, the row itself, the rows of the function
    masks: FloatArray  # (N, p) as the regression sees them
    origin: FloatArray  # (p,) the row itself as the regression sees it

    exact = False  # the function may draw at random
    sizes = (_LARGEST,)  # of a batch
    room = _LARGEST

    @property
    def closeness(self) -> FloatArray:
        """How close each perturbed row is to the row; ones are the row itself."""
        return np.asarray(self.masks + (1 - self.origin))

    @property
    def sampling_weights(self) -> FloatArray:
        """Ones: the function decides how often a row is drawn."""
        return np.ones(len(self.masks))

    @property
    def scope(self) -> tuple[str, ...]:
        """The kind of table and its columns: a model sees nothing else besides the row."""
        return table_kind(self.inputs(np.array([INPUT_ITSELF])))

    def keys(self, rows: IntArray) -> list[bytes]:
        """The perturbed rows themselves, or digests of them."""
        return _keys(self, rows)

    def extend(self, rng: np.random.Generator, wanted: FloatArray | int) -> UserNeighbourhood:
        """Add rows from the function; the first of all is replaced by the row itself."""
        if not isinstance(wanted, (int, np.integer)):
            raise ValueError("`design` must be None if `perturb` is a function.")
        frame = self.frame
        for start in range(0, int(wanted), _BLOCK):
            frame = frame.append(self._call(rng, min(_BLOCK, int(wanted) - start)))
        seen = self._masks(frame)
        origin, masks = seen[0], seen[1:]
        masks[0] = origin
        masks.flags.writeable = False
        return replace(self, frame=frame, masks=masks, origin=origin)

    def inputs(self, rows: IntArray) -> Any:
        """Perturbed rows by number, in a table of the background's kind."""
        _refuse_hidden(rows)
        itself = self.context.itself
        sources = np.where(rows > 0, itself + 1 + rows, itself)
        return self.frame.gather(np.repeat(sources[:, None], len(self.frame.names), axis=1), {})

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

    def _masks(self, frame: Frame) -> FloatArray:
        """The row itself and the rows of the function as the regression sees them."""
        context, itself = self.context, self.context.itself
        masks = np.empty((frame.n_rows - itself, context.n_features))
        for j, feature in enumerate(context.background.features):
            values = {c: frame.column(c).values[itself:] for c in feature.columns}
            if context.continuous and feature.scale is not None:
                masks[:, j] = feature.standardise(values[feature.columns[0]])
                continue
            columns = context.background.columns
            inside = [columns[c].same(some, context.values[c]) for c, some in values.items()]
            masks[:, j] = np.all(inside, axis=0)
        if not np.isfinite(masks).all():
            raise ValueError(
                "`perturb` must return numbers that are not missing if representation='continuous'."
            )
        return masks


def _keys(neighbourhood: TableNeighbourhood | UserNeighbourhood, rows: IntArray) -> list[bytes]:
    """Keys of perturbed rows by number, made in pieces that fit into memory."""
    room = neighbourhood.room
    pieces = [rows[k : k + room] for k in range(0, len(rows), room)]
    return [key for some in pieces for key in row_keys(neighbourhood.inputs(some))]


def _refuse_hidden(rows: IntArray) -> None:
    """Refuse to hide everything."""
    if (rows < INPUT_ITSELF).any():
        raise ValueError("A row of a table has no version with everything hidden.")
