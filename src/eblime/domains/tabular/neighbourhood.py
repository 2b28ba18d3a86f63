"""Perturbed rows: drawn from the background, by the user's own function, or by a game.

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

from eblime._types import BoolArray, FloatArray, IntArray
from eblime.domains.repeats import Words, first_equal
from eblime.domains.tabular.background import Background, Feature
from eblime.domains.tabular.binning import draw_in_bins
from eblime.domains.tabular.cells import is_missing
from eblime.domains.tabular.frames import Frame, SparseFrame, as_frame, row_keys, table_kind
from eblime.protocols import INPUT_ITSELF, MeanBatch, masks_at

__all__ = [
    *("BACKGROUND_ROWS", "MOST_ROWS", "PERTURB", "GameNeighbourhood", "RowContext"),
    *("TableNeighbourhood", "UserNeighbourhood", "UserPerturb"),
]

PERTURB = ("bins", "normal", "rows", "background")
UserPerturb = Callable[[np.random.Generator, int, Any], Any]

_BLOCK = 1024  # rows that are drawn together, or per call of the user's function
_CACHED = 1 << 21  # numbers in cached blocks, at most
_BATCH_BYTES = 32 << 20
_LARGEST = 8192  # rows per model call: models of tables are fastest with large batches

BACKGROUND_ROWS = 200  # that a game keeps of a larger background, unless a mask needs more
MOST_ROWS = 100  # of the background, for each mask of a game, unless the user says otherwise
_ROOM = 32_768  # rows in one model call of a game, about

_RARE = 0.1  # share of the perturbed rows in either state of a feature, at least
_FORCED = 0.5  # share of the perturbed rows that are forced, at most
_UNLIKELY = 1e-6  # an expected number of repeated rows that need not be looked for
_GOLDEN = (np.sqrt(5) - 1) / 2  # multiples of it, modulo one, are spread evenly

Block = tuple[IntArray, FloatArray]  # row numbers (n, p), new numbers (k, n)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowContext:
    """One row and the background it is compared with."""

    background: Background  # with the features of this row
    last: Any  # the row as `Frame.gather` takes it, after the rows of the background
    values: Sequence[Any]  # of the row, by column
    states: IntArray  # (p,) bins of the row
    continuous: bool  # numbers are standardised; otherwise a feature is in the row's bin or not

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.background.features)

    @property
    def itself(self) -> int:
        """The number of the row, after those of the background."""
        return self.background.n_rows

    @property
    def frame(self) -> Frame:
        """The rows of the background, and then the row itself; a copy."""
        return self.background.frame.append_row(self.values)

    def same(self, j: int) -> BoolArray:
        """Whether each row of the background is in the row's bin of a feature, (n,)."""
        states = self.background.tables.states[self.background.numbers[j]]
        return np.asarray(states == self.states[j])

    def shares(self) -> FloatArray:
        """The share of the background in the row's bin of each feature, (p,)."""
        tables, n = self.background.tables, self.background.n_rows
        pairs = zip(self.background.numbers, self.states, strict=True)
        return np.array([tables.counts[k].get(int(state), 0) for k, state in pairs]) / n

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
    def of(cls, inside: FloatArray, features: IntArray) -> Strata:
        """The strata of a row, none if every state of every feature is frequent enough.

        `inside` is the share of the background in the row's bin, by feature, (p,); `features` are
        those that are binary.
        """
        inside = inside[features]
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
        if not self.features.size:
            return np.ones(len(masks))
        rare = (masks[:, self.features] > 0.5) == self.states
        return np.asarray(1 / (1 - self.shares.sum() + rare @ (self.shares / self.chances)))


def _scope(near: TableNeighbourhood | UserNeighbourhood) -> tuple[str, ...]:
    """The kind of table and its columns: a model sees nothing else besides the row."""
    return table_kind(near.inputs(np.array([INPUT_ITSELF])))


def _keys(near: TableNeighbourhood | UserNeighbourhood, rows: IntArray) -> list[bytes]:
    """The perturbed rows themselves, or digests of them, made in pieces that fit into memory."""
    pieces = [rows[k : k + near.room] for k in range(0, len(rows), near.room)]
    return [key for some in pieces for key in row_keys(near.inputs(some))]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableNeighbourhood:
    """Rows drawn from the background; blocks are drawn when they are needed."""

    context: RowContext
    perturb: str  # "bins", "normal" or "rows"
    around: bool  # with continuous features: sample around the row, not around the mean
    entropy: tuple[int, ...]  # seed of the blocks
    normal: IntArray  # features whose numbers come from normal distributions
    absent: IntArray  # binary features whose state no row of the background has
    strata: Strata  # binary features that seldom vary
    masks: FloatArray  # (N, p) as the regression sees them
    by_design: bool | None = None  # whether a design chose the masks; None while there are none
    cache: dict[int, Block] = field(default_factory=dict)

    exact = False  # the values of hidden features are random

    @classmethod
    def empty(
        cls, context: RowContext, perturb: str, *, around: bool, rng: np.random.Generator
    ) -> TableNeighbourhood:
        """No rows yet; the seed of the random rows is drawn here."""
        normal = []
        if context.continuous or perturb == "normal":
            normal = [
                j
                for j, feature in enumerate(context.background.features)
                if feature.scale is not None and not is_missing(context.values[feature.columns[0]])
            ]
        binary = np.arange(context.n_features)
        if context.continuous:
            binary = np.delete(binary, normal)
        inside = context.shares()
        return cls(
            context=context,
            perturb=perturb,
            around=around,
            entropy=tuple(int(number) for number in rng.integers(0, 2**32, size=4)),
            normal=np.array(normal, dtype=np.intp),
            absent=binary[inside[binary] == 0],
            strata=Strata.of(inside, binary),
            masks=np.empty((0, context.n_features)),
        )

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return self.context.n_features

    @property
    def closeness(self) -> FloatArray:
        """How close each perturbed row is to the row; ones are the row itself."""
        return np.asarray(self.masks + (1 - self.origin)) if self.context.continuous else self.masks

    @property
    def sampling_weights(self) -> FloatArray:
        """Weights that correct for the rows that were forced to vary, (N,); ones if none were."""
        return np.ones(len(self.masks)) if self.by_design else self.strata.weights(self.masks)

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

    scope = property(_scope)
    keys = _keys

    def repeats(self, rows: IntArray) -> IntArray | None:
        """For each number, the position of the first one with the same row; None asks for keys."""
        background, last, drawn = self.context.background, self.context.last, self._drawn(rows)
        if not self._may_repeat(len(rows)):
            first, itself = np.arange(len(rows)), np.flatnonzero(drawn < 0)
            first[itself] = itself[:1]
            return first
        if not background.frame.keeps_kind(last):
            return None  # words of whole numbers and of fractions are not comparable
        own = background.frame.words_of(last)

        def words_of(positions: IntArray) -> Words:
            sources, new_values = self._values(drawn[positions])
            words: Words = background.tables.words.gather(background.by_column(sources), {}, own)
            for column, numbers in new_values.items():
                words[:, column] = numbers.view(np.uint64)
            return words

        return first_equal(len(rows), words_of, min(_BLOCK, self.room))

    def _may_repeat(self, n: int) -> bool:
        """Whether two of n rows, or one of them and the row itself, can be expected to be equal.

        The square root of the probability that two rows have the same value is at least the
        probability of every single value.
        """
        if self.by_design or self.perturb == "rows":
            return True
        tables, numbers = self.context.background.tables, self.context.background.numbers
        same = tables.repeats[numbers]
        same[self.normal] = tables.repeats_of_draws[numbers[self.normal]]
        if self.context.continuous:
            columns = [f.columns[0] for _, f in self._normal_features()]
            same[self.normal] = [tables.columns[c].limits is not None for c in columns]
        same[self.absent] = same[self.strata.features] = 1.0
        return bool(n * np.sqrt(same.prod()) > _UNLIKELY)

    def extend(self, rng: np.random.Generator, wanted: FloatArray | int) -> TableNeighbourhood:
        """Add perturbed rows: one per mask of a design, or a number of random ones.

        The first random row is the row itself.
        """
        by_design = not isinstance(wanted, (int, np.integer))
        if self.by_design not in (None, by_design):
            raise ValueError("`design` must return either masks or numbers in all rounds.")
        masks = np.array(wanted, np.float64) if by_design else self._random_masks(int(wanted))
        if len(self.masks):
            masks = np.concatenate([self.masks, masks])
        masks.flags.writeable = False
        if masks.size > _CACHED:
            self.cache.clear()
        return replace(self, masks=masks, by_design=by_design)

    def inputs(self, rows: IntArray) -> Any:
        """Perturbed rows by number, in a table of the background's kind."""
        _refuse_hidden(rows)
        background = self.context.background
        sources, new_values = self._values(self._drawn(rows))
        return background.frame.gather(background.by_column(sources), new_values, self.context.last)

    def _drawn(self, rows: IntArray) -> IntArray:
        """Numbers of rows, that of the row itself where it is the first random one."""
        return rows if self.by_design else np.where(rows == 0, INPUT_ITSELF, rows)

    def _values(self, drawn: IntArray) -> tuple[IntArray, dict[int, FloatArray]]:
        """Where the values of rows come from, (n, p), and the new numbers of columns."""
        itself, blocks = self.context.itself, drawn // _BLOCK  # that of the row itself is -1
        features = [feature for _, feature in self._normal_features()]
        own = np.array([self.context.number(feature) for feature in features])[:, None]
        sources = np.empty((len(drawn), self.n_features), dtype=np.min_scalar_type(itself))
        made = np.empty((len(features), len(drawn)))
        for block in np.unique(blocks):
            inside = _as_slice(np.flatnonzero(blocks == block))
            if block < 0:
                sources[inside], made[:, inside] = itself, own
                continue
            numbers = drawn[inside] - block * _BLOCK
            taken, new = self._block(int(block), int(numbers.max()) + 1)
            within = _as_slice(numbers)
            sources[inside], made[:, inside] = taken[within], new[:, within]
        if self.by_design:
            sources[masks_at(self.masks, drawn) > 0.5] = itself
        if self.by_design or self.absent.size:
            np.copyto(made, own, where=itself == sources[:, self.normal].T)
        return sources, {f.columns[0]: numbers for f, numbers in zip(features, made, strict=True)}

    def _normal_features(self) -> list[tuple[int, Feature]]:
        """The features of `normal`, with their numbers."""
        return [(j, self.context.background.features[j]) for j in self.normal.tolist()]

    def _random_masks(self, n: int) -> FloatArray:
        """The next n random rows as the regression sees them."""
        start, end = len(self.masks), len(self.masks) + n
        found = np.empty((n, self.n_features))
        for block in range(start // _BLOCK, -(-end // _BLOCK)):
            offset = block * _BLOCK
            first, last = max(start, offset), min(end, offset + _BLOCK)
            taken, made = self._block(block, last - offset)
            some = slice(first - offset, last - offset)
            self._see(taken[some], made[:, some], found[first - start : last - start])
        if start == 0:
            found[0] = self.origin
        return found

    def _see(self, taken: IntArray, made: FloatArray, masks: FloatArray) -> None:
        """Fill in rows as the regression sees them: in the row's bin or not, or standardised."""
        context, states = self.context, self.context.background.tables.states
        places = states.shape[1] * context.background.numbers
        found = states.ravel().take(taken + places, mode="clip")
        np.equal(found, context.states.astype(states.dtype), out=masks)
        if self.absent.size:
            masks[:, self.absent] = taken[:, self.absent] == context.itself
        if context.continuous:
            for (j, feature), numbers in zip(self._normal_features(), made, strict=True):
                masks[:, j] = feature.standardise(numbers)

    def _block(self, block: int, n: int) -> Block:
        """The first n rows of a block, or more, from the cache if they are there."""
        if block in self.cache and len(self.cache[block][0]) >= n:
            return self.cache[block]
        drawn = self._draw(block, n)
        if (len(self.cache) + 1) * _BLOCK * self.n_features <= _CACHED:
            self.cache[block] = drawn
        return drawn

    def _draw(self, block: int, wanted: int) -> Block:
        """Draw a block with its own generator: the result is always the same.

        Where nothing else is drawn, the first rows of a block do not need the others.
        """
        rng = np.random.default_rng([*self.entropy, block])
        background, p = self.context.background, self.n_features
        random = not self.by_design
        alone = not (
            self.normal.size or (random and (self.absent.size or self.strata.features.size))
        )
        size = wanted if alone else _BLOCK
        if self.perturb == "rows":
            taken = np.repeat(rng.integers(0, background.n_rows, size=(size, 1)), p, axis=1)
        elif self.by_design:
            taken = self._rows_in_other_bins(rng, size)
        else:
            taken = rng.integers(0, background.n_rows, size=(size, p))
        if random:
            self._force(taken, block)
        made = self._new_numbers(rng, taken, wanted)
        if random and self.absent.size:
            # a random row of the background never shows a new category: half of the rows do
            own = rng.integers(0, 2, size=(_BLOCK, self.absent.size)) == 1
            taken[:, self.absent] = np.where(own, self.context.itself, taken[:, self.absent])
        # few bytes: what is allocated anew for each explanation takes as long as the arithmetic
        return taken[:wanted].astype(np.min_scalar_type(self.context.itself)), made

    def _force(self, taken: IntArray, block: int) -> None:
        """Replace sources of a block, in place, so that features that seldom vary do.

        It has generators of its own: without such features the draws do not depend on it.
        """
        strata = self.strata
        if not strata.features.size:
            return
        start = np.random.default_rng([*self.entropy, 0, 2]).random()
        chosen = strata.assign(start, block * _BLOCK + np.arange(_BLOCK))
        rng = np.random.default_rng([*self.entropy, block, 1])
        for k, (j, state) in enumerate(zip(strata.features, strata.states, strict=True)):
            rows = np.flatnonzero(chosen == k)
            rare = np.flatnonzero(self.context.same(j) == state)
            drawn = rng.choice(rare, size=len(rows))
            if self.perturb == "rows":
                taken[rows] = drawn[:, None]
            else:
                taken[rows, j] = drawn

    def _new_numbers(self, rng: np.random.Generator, taken: IntArray, n: int) -> FloatArray:
        """Numbers of the first n rows of a block from normal distributions, (k, n)."""
        context, background = self.context, self.context.background
        size = (len(self.normal), _BLOCK)
        if not self.normal.size:
            return np.empty((0, n))
        features = [feature for _, feature in self._normal_features()]
        columns = [background.columns[feature.columns[0]] for feature in features]
        if not context.continuous:
            numbers, tables = background.numbers[self.normal][:, None], background.tables
            bins = tables.states[numbers, taken[:n, self.normal].T].astype(np.intp)
            missing, whole = bins < 0, np.array([column.limits is not None for column in columns])
            bins += numbers * tables.bin_laws.shape[2]
            made = draw_in_bins(tables.bin_laws, bins, rng.random(size)[:, :n], whole)
            made[missing] = np.nan
            return made
        scales = np.array([feature.scale for feature in features])
        centre = np.array([context.number(f) for f in features]) if self.around else scales[:, 0]
        made = centre[:, None] + scales[:, 1:] * rng.standard_normal(size)[:, :n]
        for numbers, column in zip(made, columns, strict=True):
            if column.limits is not None:
                numbers[:] = numbers.round().clip(*column.limits) + 0.0  # no -0.0
        return np.asarray(made)

    def _rows_in_other_bins(self, rng: np.random.Generator, n: int) -> IntArray:
        """For each feature, n rows whose value is in a different bin than the row's."""
        chance = rng.random((n, self.n_features))
        taken = np.full(chance.shape, self.context.itself, dtype=np.intp)
        for j in range(self.n_features):
            others = np.flatnonzero(~self.context.same(j))
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

    scope = property(_scope)
    keys = _keys

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
        for c in np.flatnonzero(context.background.column_feature == context.n_features).tolist():
            column = context.background.columns[c]
            if not column.same(frame.column(c).values[itself:], context.values[c]).all():
                raise ValueError(
                    f"`perturb` must not change column {column.name!r}, which is the same in the "
                    "row and in all rows of the background. Add rows to the background in which "
                    "it differs."
                )
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GameNeighbourhood:
    """A row as a game: hidden columns come from rows of the background, all from the same row.

    The value of a mask is the mean score over the rows of the background, which shap calls
    interventional. It is exact where all of them are used. Otherwise each mask gets a few rows at
    random, and chance is part of an answer; the two ends, the row itself and everything hidden, are
    exact even then. A mask and its complement, one below the other, share their rows, and every row
    of the background is used equally often, up to one: both make the answers less noisy.
    """

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
    def scope(self) -> tuple[Any, ...]:
        """The kind of table, the row and the background."""
        frame = self.context.frame
        every = np.arange(self.context.background.n_rows + 1)[:, None]
        rows = frame.gather(np.repeat(every, len(frame.names), axis=1), {})
        groups = str([feature.columns for feature in self.context.background.features])
        return (*table_kind(rows), row_keys(rows), groups)

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


def _as_slice(numbers: IntArray) -> IntArray | slice:
    """Increasing numbers as a slice, if none of them is left out: it makes no copy."""
    first, last = int(numbers[0]), int(numbers[-1])
    return slice(first, last + 1) if last - first + 1 == len(numbers) else numbers


def _refuse_hidden(rows: IntArray) -> None:
    """Refuse to hide everything."""
    if (rows < INPUT_ITSELF).any():
        raise ValueError("A row of a table has no version with everything hidden.")
