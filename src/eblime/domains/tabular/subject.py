"""Tables: columns or groups of them as features, hidden ones drawn from the background's law.

Every perturbed row is put together from rows of the background: `places[i, j]` says from which row
feature j of input i is taken. Drawn apart for each feature that is lime's bin law; drawn once for
the whole row it keeps the correlations. Blocks have generators of their own, so that no batch size
changes a number and N = 100,000 rows never exist at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray, IntArray
from eblime.domains.tabular.background import (
    Background,
    Feature,
    TableSettings,
    narrowed,
    prepare,
)
from eblime.domains.tabular.binning import within_bins
from eblime.domains.tabular.custom import UserPerturb, empty_user_neighbourhood
from eblime.domains.tabular.frames import Frame, is_missing
from eblime.domains.tabular.row import read_row
from eblime.domains.tabular.scene import TableScene
from eblime.domains.tabular.sparse_frame import SparseFrame
from eblime.protocols import INPUT_ITSELF, Neighbourhood

__all__ = [
    "PERTURB",
    "REPRESENTATIONS",
    "TableNeighbourhood",
    "TableSubject",
    "open_row",
]

PERTURB = ("bins", "normal", "rows")
REPRESENTATIONS = ("binary", "continuous")
_BLOCK = 1024
_BATCH_BYTES = 32 << 20

_KEPT = 1 << 21  # entries of blocks that are kept between looking at them and asking

Block = tuple[IntArray, FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableSubject:
    """One row against its background."""

    background: Background
    frame: Frame  # the background, and the row itself at the end
    row: Sequence[Any]
    scene: TableScene
    same: NDArray[np.bool_]  # (p, n + 1) whether a row of `frame` is in the row's bins
    continuous: bool  # numbers on their scale, rather than in the row's bin or not
    around: bool  # where continuous: sample around the row rather than the mean
    perturb: str | UserPerturb

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return self.scene.n_features

    @property
    def itself(self) -> int:
        """Position of the row in `frame`."""
        return self.background.n_rows

    def neighbourhood(self, rng: np.random.Generator) -> Neighbourhood:
        """No perturbed rows yet; their seed is drawn here."""
        if callable(self.perturb):
            return empty_user_neighbourhood(
                self.perturb,
                background=self.background,
                frame=self.frame,
                row=self.row,
                continuous=self.continuous,
            )
        entropy = tuple(int(number) for number in rng.integers(0, 2**32, size=4))
        masks = np.empty((0, self.n_features))
        return TableNeighbourhood(subject=self, entropy=entropy, masks=masks, imposed=None)

    def value(self, feature: Feature) -> float:
        """The row's number for a feature that is a column of numbers."""
        return float(self.row[feature.columns[0]])

    def unseen(self) -> IntArray:
        """Features whose bin no row of the background is in, such as a category it does not have.

        Chance would never show them, so that a fair coin does.
        """
        scaled = [j for j, _ in self.numeric()] if self.continuous else []
        absent = np.flatnonzero(~self.same[:, :-1].any(axis=1))
        return np.setdiff1d(absent, scaled)

    def numeric(self) -> list[tuple[int, Feature]]:
        """Features whose numbers are drawn from normal laws: single columns of numbers."""
        if not self.continuous and self.perturb != "normal":
            return []
        return [
            (j, feature)
            for j, feature in enumerate(self.background.features)
            if feature.scale is not None and not is_missing(self.row[feature.columns[0]])
        ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableNeighbourhood:
    """Rows drawn from the background, made in blocks when they are needed."""

    subject: TableSubject
    entropy: tuple[int, ...]
    masks: FloatArray  # (N, p) as the regression sees them
    imposed: bool | None  # masks come from a design, so that shown features keep the row's values
    kept: dict[int, Block] = field(default_factory=dict)  # blocks already made, where they are few

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return self.subject.n_features

    @property
    def closeness(self) -> FloatArray:
        """How near each perturbed row is to the row; ones are the row itself."""
        return np.asarray(self.masks + (1 - self.origin))

    @property
    def exact(self) -> bool:
        """Always False: chance chooses the values of what is hidden."""
        return False

    @property
    def origin(self) -> FloatArray:
        """The row as the regression sees it: ones, or its place on the scale of each number."""
        origin = np.ones(self.n_features)
        if self.subject.continuous:
            for j, feature in self.subject.numeric():
                origin[j] = _standard(self.subject.value(feature), feature)
        return origin

    def extend(self, rng: np.random.Generator, wanted: FloatArray | int) -> TableNeighbourhood:
        """Add perturbed rows: by masks of a design, or a number of them by the bins' own law.

        The first row drawn by the bins' own law is the row itself.
        """
        imposed = not isinstance(wanted, (int, np.integer))
        if self.imposed not in (None, imposed):
            raise ValueError("`design` must return either masks or numbers in all rounds.")
        grown = replace(self, imposed=imposed)
        more = wanted if imposed else grown._by_chance(int(wanted))
        masks = np.concatenate([self.masks, np.asarray(more, dtype=np.float64)])
        masks.flags.writeable = False
        if masks.size > _KEPT:
            grown.kept.clear()
        return replace(grown, masks=masks)

    def repeats(self, rows: IntArray) -> NDArray[np.bool_]:
        """Always False: each perturbed row is asked about, the row itself among them."""
        return np.zeros(len(rows), dtype=bool)

    def _by_chance(self, n: int) -> FloatArray:
        """How the regression sees the next n rows."""
        start, end = len(self.masks), len(self.masks) + n
        found = np.empty((n, self.n_features))
        for block in range(start // _BLOCK, -(-end // _BLOCK)):
            first, last = max(start, block * _BLOCK), min(end, (block + 1) * _BLOCK)
            found[first - start : last - start] = self.seen(block)[
                first - block * _BLOCK : last - block * _BLOCK
            ]
        if start == 0:
            found[0] = self.origin
        return found

    @property
    def sizes(self) -> Sequence[int]:
        """One large batch, as large as memory allows: models of tables like them large."""
        width = len(self.subject.background.column_feature)
        return (max(256, min(8192, _BATCH_BYTES // (8 * width))),)

    @property
    def room(self) -> int:
        """Rows that memory has room for in one call."""
        return max(256, _BATCH_BYTES // (8 * len(self.subject.background.column_feature)))

    def inputs(self, rows: IntArray) -> Any:
        """Perturbed rows by number, in a table of the background's kind."""
        numbers, source = rows, self.subject
        if (numbers < INPUT_ITSELF).any():
            raise ValueError("A row of a table has no version with everything hidden.")
        places = np.full((len(numbers), source.n_features), source.itself, dtype=np.intp)
        fresh = {
            feature.columns[0]: np.full(len(numbers), source.value(feature))
            for _, feature in source.numeric()
        }
        drawn = numbers if self.imposed else np.where(numbers == 0, -1, numbers)
        for block in np.unique(drawn[drawn >= 0] // _BLOCK):
            inside = np.flatnonzero((drawn >= 0) & (drawn // _BLOCK == block))
            within = drawn[inside] - block * _BLOCK
            taken, made = self._block(int(block))
            taken = taken[within]
            if self.imposed:
                taken = np.where(self.masks[drawn[inside]] > 0.5, source.itself, taken)
            places[inside] = taken
            for j, feature in source.numeric():
                own = taken[:, j] == source.itself
                values = np.where(own, source.value(feature), made[within, j])
                fresh[feature.columns[0]][inside] = values
        return source.frame.gather(source.background.spread(places), fresh)

    def seen(self, block: int) -> FloatArray:
        """A block as the regression sees it: in the row's bin or not, or a place on a scale."""
        source = self.subject
        taken, made = self._block(block)
        ordered = source.same.ravel()
        offsets = source.same.shape[1] * np.arange(source.n_features)
        found = ordered.take(taken + offsets).astype(np.float64)
        if source.continuous:
            for j, feature in source.numeric():
                found[:, j] = _standard(made[:, j], feature)
        return np.asarray(found)

    def _block(self, block: int) -> Block:
        """Rows of the background to take, and numbers made afresh, both (_BLOCK, p)."""
        if block in self.kept:
            return self.kept[block]
        made = self._drawn(block)
        if (len(self.kept) + 1) * _BLOCK * self.n_features <= _KEPT:
            self.kept[block] = made
        return made

    def _drawn(self, block: int) -> Block:
        """The block from its own generator: the same whenever it is made."""
        source, p = self.subject, self.n_features
        rng = np.random.default_rng([*self.entropy, block])
        n = source.background.n_rows
        if source.perturb == "rows":
            taken = np.repeat(rng.integers(0, n, size=(_BLOCK, 1)), p, axis=1)
        elif self.imposed:
            taken = self._others(rng)
        else:
            taken = rng.integers(0, n, size=(_BLOCK, p))
        numeric = source.numeric()
        made = np.empty((_BLOCK, p) if numeric else (_BLOCK, 0))
        for j, feature in numeric:
            if source.continuous:
                centre, sd = feature.scale or (0.0, 1.0)
                centre = source.value(feature) if source.around else centre
                made[:, j] = centre + sd * rng.standard_normal(_BLOCK)
            else:
                column = source.background.columns[feature.columns[0]]
                made[:, j] = within_bins(rng, column, column.codes[taken[:, j]])
        unseen = source.unseen()
        if unseen.size and not self.imposed:
            own = rng.integers(0, 2, size=(_BLOCK, unseen.size)) == 1
            taken[:, unseen] = np.where(own, source.itself, taken[:, unseen])
        return taken, made

    def _others(self, rng: np.random.Generator) -> IntArray:
        """Rows whose value is in another bin than the row's, feature by feature."""
        chance = rng.random((_BLOCK, self.n_features))
        taken = np.full(chance.shape, self.subject.itself, dtype=np.intp)
        for j, same in enumerate(self.subject.same):
            others = np.flatnonzero(~same)
            if others.size:
                taken[:, j] = others[(chance[:, j] * others.size).astype(np.intp)]
        return taken


def open_row(
    row: Any,
    table: Background | SparseFrame,
    settings: TableSettings,
    *,
    representation: str,
    around: bool,
    perturb: str | UserPerturb,
) -> TableSubject:
    """One row, ready to be perturbed."""
    if isinstance(table, SparseFrame):
        background, values = _sparse_row(row, table, settings)
    else:
        background, values = table, read_row(row, table)
    background = background.for_row(values)
    continuous = representation == "continuous"
    listed = background.features
    scene = TableScene(
        features=[background.label(feature, values, continuous) for feature in listed],
        columns=[feature.name for feature in listed],
        values=[feature.written(values) for feature in listed],
    )
    return TableSubject(
        background=background,
        frame=background.frame.extended(values),
        row=values,
        scene=scene,
        same=background.same(values),
        continuous=continuous,
        around=around,
        perturb=perturb,
    )


def _sparse_row(
    row: Any, table: SparseFrame, settings: TableSettings
) -> tuple[Background, list[Any]]:
    """A row of a sparse matrix: its features are the columns where it is not zero."""
    width = table.matrix.shape[1]
    dense = np.asarray(row.toarray() if hasattr(row, "toarray") else row, dtype=float).ravel()
    if len(dense) != width:
        raise ValueError(f"`row` must have {width} columns; got {len(dense)}.")
    columns = np.flatnonzero(dense)
    if not columns.size:
        raise ValueError("`row` must have a column that is not zero; all are.")
    background = prepare(table.seen(columns), narrowed(settings, table.names, columns))
    return background, [float(value) for value in dense[columns]]


def _standard(values: Any, feature: Feature) -> Any:
    """Numbers on the scale of their column."""
    mean, sd = feature.scale or (0.0, 1.0)
    return (values - mean) / sd
