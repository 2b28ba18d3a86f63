"""Tables: columns or groups of them as features, hidden ones drawn from the background's law.

Every perturbed row is put together from rows of the background: `places[i, j]` says from which row
feature j of input i is taken. Drawn apart for each feature that is lime's bin law; drawn once for
the whole row it keeps the correlations. Blocks have generators of their own, so that no batch size
changes a number and N = 100,000 rows never exist at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray, IntArray
from eblime.domains.background import (
    Background,
    Feature,
    TableSettings,
    narrowed,
    prepare,
)
from eblime.domains.binning import within_bins
from eblime.domains.frames import Frame, is_missing
from eblime.domains.row import read_row
from eblime.domains.sparse_frame import SparseFrame
from eblime.domains.tabular_user import UserPerturb, draw_by_user
from eblime.protocols import Design, Drawn

__all__ = ["PERTURB", "REPRESENTATIONS", "TableDrawing", "TableScene", "TableSource", "open_row"]

PERTURB = ("bins", "normal", "rows")
REPRESENTATIONS = ("binary", "continuous")
_BLOCK = 1024
_BATCH_BYTES = 32 << 20

_KEPT = 1 << 21  # entries of blocks that are kept between looking at them and asking

Block = tuple[IntArray, FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableScene:
    """What an explanation keeps of a row: its features in words, and its values."""

    features: Sequence[str]
    columns: Sequence[str]  # name of each feature, without its bin
    values: Sequence[str]  # and its value in the row

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.features)

    def details(self) -> dict[str, list[str]]:
        """The column of each feature, the row's value and its bin."""
        return {
            "column": list(self.columns),
            "value": list(self.values),
            "bin": list(self.features),
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableSource:
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
    def features(self) -> Sequence[str]:
        """The features in words."""
        return self.scene.features

    @property
    def itself(self) -> int:
        """Where the row stands in `frame`."""
        return self.background.n_rows

    def draw(self, rng: np.random.Generator, n: int, design: Design | None) -> Drawn:
        """Draw n rows, the first of them the row itself; a design says which features to hide."""
        if callable(self.perturb):
            return draw_by_user(
                rng,
                n,
                self.perturb,
                background=self.background,
                frame=self.frame,
                row=self.row,
                features=self.features,
                continuous=self.continuous,
            )
        entropy = tuple(int(number) for number in rng.integers(0, 2**32, size=4))
        if design is not None:
            masks = np.asarray(design(rng, n, self.n_features), dtype=np.float64)
            return TableDrawing(source=self, entropy=entropy, masks=masks, imposed=True)
        masks = np.empty((n, self.n_features))
        kept: dict[int, Block] | None = {} if masks.size <= _KEPT else None
        drawing = TableDrawing(source=self, entropy=entropy, masks=masks, imposed=False, kept=kept)
        for start in range(0, n, _BLOCK):
            part = masks[start : start + _BLOCK]
            part[:] = drawing.seen(start // _BLOCK)[: len(part)]
        masks[0] = drawing.origin
        return drawing

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
        """Features whose numbers are made afresh: all single columns of numbers, or none."""
        if not self.continuous and self.perturb != "normal":
            return []
        return [
            (j, feature)
            for j, feature in enumerate(self.background.features)
            if feature.scale is not None and not is_missing(self.row[feature.columns[0]])
        ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableDrawing:
    """Rows drawn from the background, made in blocks when they are asked for."""

    source: TableSource
    entropy: tuple[int, ...]
    masks: FloatArray  # (N, p) as the regression sees them
    imposed: bool  # by a design: shown features keep the row's own values
    kept: dict[int, Block] | None = None  # blocks already made, where they are few

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return self.source.n_features

    @property
    def features(self) -> Sequence[str]:
        """The features in words."""
        return self.source.features

    @property
    def origin(self) -> FloatArray:
        """The row as the regression sees it: ones, or its place on the scale of each number."""
        origin = np.ones(self.n_features)
        if self.source.continuous:
            for j, feature in self.source.numeric():
                origin[j] = _standard(self.source.value(feature), feature)
        return origin

    @property
    def sizes(self) -> Sequence[int]:
        """One large batch, as large as memory allows: models of tables like them large."""
        width = len(self.source.background.column_feature)
        return (max(256, min(8192, _BATCH_BYTES // (8 * width))),)

    @property
    def room(self) -> int:
        """Rows that memory has room for in one call."""
        return max(256, _BATCH_BYTES // (8 * len(self.source.background.column_feature)))

    def inputs(self, requests: FloatArray) -> Any:
        """Rows by number, -1 for the row itself, in a table of the background's kind."""
        numbers, source = requests[:, 0].astype(np.intp), self.source
        places = np.full((len(numbers), source.n_features), source.itself, dtype=np.intp)
        fresh = {
            feature.columns[0]: np.full(len(numbers), source.value(feature))
            for _, feature in source.numeric()
        }
        drawn = numbers if self.imposed else np.where(numbers == 0, -1, numbers)
        for block in np.unique(drawn[drawn >= 0] // _BLOCK):
            inside = np.flatnonzero((drawn >= 0) & (drawn // _BLOCK == block))
            rows = drawn[inside] - block * _BLOCK
            taken, made = self._block(int(block))
            taken = taken[rows]
            if self.imposed:
                taken = np.where(self.masks[drawn[inside]] > 0.5, source.itself, taken)
            places[inside] = taken
            for j, feature in source.numeric():
                own = taken[:, j] == source.itself
                values = np.where(own, source.value(feature), made[rows, j])
                fresh[feature.columns[0]][inside] = values
        return source.frame.gather(source.background.spread(places), fresh)

    def seen(self, block: int) -> FloatArray:
        """A block as the regression sees it: in the row's bin or not, or a place on a scale."""
        source = self.source
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
        if self.kept is None:
            return self._drawn(block)
        if block not in self.kept:
            self.kept[block] = self._drawn(block)
        return self.kept[block]

    def _drawn(self, block: int) -> Block:
        """The block from its own generator: the same whenever it is made."""
        source, p = self.source, self.n_features
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
        taken = np.full(chance.shape, self.source.itself, dtype=np.intp)
        for j, same in enumerate(self.source.same):
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
) -> TableSource:
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
    return TableSource(
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
