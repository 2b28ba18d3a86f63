"""Several explanations of one prediction, side by side: by methods, or by choices of a setting."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eblime import registry
from eblime._checks import check_count, check_level
from eblime._table import align
from eblime._text import paragraph, printable
from eblime._types import BoolArray, FloatArray, IntArray
from eblime.core.overall import kendall, ranks
from eblime.protocols import Scene
from eblime.results.explanation import Explanation
from eblime.results.export import without_nan
from eblime.results.notes import prediction_r2

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHOWN = 5  # features in a printed table
_UNITS = {"image": "pixel", "signal": "sample", "volume": "voxel"} | dict.fromkeys(
    ("prompt", "text"), "character"
)
_SEEDS, _MOST_PAIRS = 400, 1 << 26  # other seeds that are imagined, and pairs of features for them
_RARE = 0.025  # share of seeds that agree less than a choice that matters, by either measure
METHOD = "method"  # the setting of a comparison of methods


class Effect(NamedTuple):
    """How far an explanation agrees with the first of a comparison."""

    setting: str  # in which they differ
    choice: str
    kendall: float
    top_jaccard: float
    same_signs: float
    changed: float
    r2: float  # of the fit, held out
    matters: bool | None  # more than another seed would; None if that is not known


class _Cells(NamedTuple):
    """Where two explanations are compared: at features, or at parts of the input.

    A part has one feature of each, -1 for none, and counts by its size.
    """

    owners: IntArray  # (2, K)
    sizes: FloatArray  # (K,) pixels or characters; ones for features
    areas: list[FloatArray]  # of the features of both, (p,) each


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Comparison:
    """Explanations of one input side by side; made by `eblime.compare`.

    They differ in the method or in a setting. Explanations by two models can be compared, too, if
    they have the same kind of input and the same target.

    Examples
    --------
    >>> import eblime
    >>> good = lambda texts: [float("good" in text) for text in texts]
    >>> both = eblime.compare(good, "a good film", ["eblime", "lime"])
    >>> both.methods
    ('eblime', 'lime')

    Two models:

    >>> models = {"new": good, "old": lambda texts: [0.8 * ("good" in text) for text in texts]}
    >>> found = {k: eblime.TextExplainer(m).explain("a good film") for k, m in models.items()}
    >>> eblime.results.Comparison(explanations=found).agreement(top=1)["top_jaccard"].tolist()
    [1.0]
    """

    explanations: Mapping[str, Explanation]  # by name; the first is what others are compared with
    settings: Mapping[str, str] = field(default_factory=dict)
    """The setting in which an explanation differs from the first; "method" where it is not here."""

    def __post_init__(self) -> None:
        if not self.explanations:
            raise ValueError("A comparison must have at least one explanation.")
        first = self._first
        for name, other in self.explanations.items():
            if other.scene.domain != first.scene.domain or other.target != first.target:
                raise ValueError(
                    "All explanations must be of the same kind of input and target; "
                    f"{name!r} differs."
                )

    @property
    def _first(self) -> Explanation:
        return next(iter(self.explanations.values()))

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods or choices, in the order in which they were given."""
        return tuple(self.explanations)

    @property
    def unit(self) -> str | None:
        """What rankings are compared by: "feature", or "pixel" if the superpixels differ.

        It is "character" for texts with different tokens; None if the features differ and have no
        place in the input.
        """
        found = [self._owners(self.methods[0], name) for name in self.methods]
        return None if None in found else self._place or "feature"

    @property
    def model_calls(self) -> dict[str, int]:
        """How many inputs the model was asked about for each method.

        Methods with the same number and the same design share one set of answers.
        """
        return {name: int(e.provenance["model_calls"]) for name, e in self.explanations.items()}

    @property
    def total_calls(self) -> int:
        """How many inputs the model was asked about for all of them, shared answers once."""
        sets = {id(e.answers): int(e.provenance["model_calls"]) for e in self.explanations.values()}
        return sum(sets.values())

    def __getitem__(self, method: str) -> Explanation:
        """The explanation of a method."""
        return self.explanations[method]

    def __iter__(self) -> Iterator[str]:
        """The names of the methods."""
        return iter(self.explanations)

    def __len__(self) -> int:
        """The number of methods."""
        return len(self.explanations)

    def order(self) -> IntArray:
        """Features by their mean rank over the methods, the most important first."""
        if self.unit != "feature":
            raise ValueError("The explanations must have the same features to be put in one order.")
        places = np.array([ranks(e.posterior.mean) for e in self.explanations.values()])
        return np.argsort(places.mean(axis=0), kind="stable")

    def to_frame(self, prob: float = 0.95) -> pd.DataFrame:
        """One row per feature and method: feature, method, mean, low, high and rank.

        The column `method` is called `choice` if other settings than the method differ. `low` and
        `high` are NaN for a point estimate. Rank 1 has the largest absolute mean.
        """
        from eblime._pandas import pd

        check_level("prob", prob)
        parts, kind = [], "choice" if self.settings else METHOD
        for name, entry in self.explanations.items():
            post = entry.posterior
            ends = post.interval(prob) if post.has_spread else np.full((post.n_features, 2), np.nan)
            columns = {"feature": list(map(str, entry.features)), kind: name, "mean": post.mean}
            columns |= {"low": ends[:, 0], "high": ends[:, 1], "rank": ranks(post.mean)}
            parts.append(pd.DataFrame(columns))
        return pd.concat(parts, ignore_index=True)

    def agreement(self, top: int = 5, prob: float = 0.95) -> pd.DataFrame:
        """How far each pair of methods agrees, one row per pair.

        Columns: `top_jaccard`, the Jaccard index of the `top` features of both; `same_signs`, the
        share of equal signs among the features in either top; `kendall`, Kendall's tau between the
        rankings of all features by absolute mean; `changed`, the share of features whose
        difference is larger than both credible intervals allow, NaN for a point estimate.

        If the features differ, pixels (or characters) take their place: rankings and differences
        are those of the importance per pixel, and the overlap is that of the areas, with as many
        features of the second as come nearest to the area of the first's `top`.
        """
        from eblime._pandas import pd

        check_count("top", top)
        check_level("prob", prob)
        pairs = combinations(self.methods, 2)
        rows = [(*pair, *self._measures(*pair, top, prob)) for pair in pairs]
        names = ["first", "second", "kendall", "top_jaccard", "same_signs", "changed"]
        found = pd.DataFrame(rows, columns=names)
        return found[[*names[:2], "top_jaccard", "same_signs", "kendall", "changed"]]

    def sensitivity(self, top: int = 5, prob: float = 0.95) -> pd.DataFrame:
        """How far the explanation depends on each choice, one row for each but the first.

        Every row is the agreement with the first explanation, measured as in `agreement`, with the
        `setting` and the `choice`, the held-out `r2`, and whether it `matters`: whether the
        rankings or the overlap agree less than they would for 97.5 % of other seeds. The first row,
        "seed", has the agreement to be expected from another seed (medians). It follows from the
        posterior of the first explanation and costs no model call; without intervals it is NaN.
        """
        from eblime._pandas import pd

        return pd.DataFrame(self._effects(top, prob), columns=Effect._fields)

    def _effects(self, top: int = 5, prob: float = 0.95) -> list[Effect]:
        check_count("top", top)
        check_level("prob", prob)
        first, *others = self.methods
        lowest, typical = np.quantile(self._other_seeds(top), [_RARE, 0.5], axis=0)
        known, r2 = np.isfinite(lowest[1]), prediction_r2(self._first.posterior)
        chance = 0.0 if self._first.exhaustive else 1 - prob if known else np.nan
        tau, overlap, signs = map(float, typical)
        rows = [Effect("seed", "another seed", tau, overlap, signs, chance, r2, None)]
        for name in others:
            found, matters = self._measures(first, name, top, prob), None
            if known and np.isfinite(found[1]):
                matters = bool((np.array(found[:2]) < lowest[:2] - 1e-12).any())
            setting, r2 = self.settings.get(name, METHOD), prediction_r2(self[name].posterior)
            rows.append(Effect(setting, name.removeprefix(f"{setting}="), *found, r2, matters))
        return rows

    def _owners(self, first: str, second: str) -> list[IntArray] | None:
        """The features of both at each feature or place; None if they cannot be compared."""
        scenes = self[first].scene, self[second].scene
        if self._place is not None:
            found = [*map(_places, scenes)]
            return found if 0 < found[0].size == found[1].size else None
        return [np.arange(scenes[0].n_features)] * 2 if _same_features(*scenes) else None

    def _cells(self, first: str, second: str) -> _Cells | None:
        """Where two explanations are compared; None if they cannot be."""
        rows = self._owners(first, second)
        if rows is None:
            return None
        owners, sizes = np.unique(rows, axis=1, return_counts=True)
        areas = [
            np.bincount(row[row >= 0], minlength=self[name].scene.n_features).astype(float)
            for row, name in zip(rows, (first, second), strict=True)
        ]
        return _Cells(owners, sizes.astype(float), areas)

    @property
    def _place(self) -> str | None:
        """The unit of all comparisons, if some features differ and have a place in the input."""
        first, others = self._first.scene, [e.scene for e in self.explanations.values()]
        places = [_places(scene) for scene in others if not _same_features(first, scene)]
        size = _places(first).size
        shared = any(0 < found.size == size for found in places)
        return _UNITS.get(first.domain, "element") if shared else None

    def _measures(
        self, first: str, second: str, top: int, prob: float
    ) -> tuple[float, float, float, float]:
        cells = self._cells(first, second)
        if cells is None:
            return (np.nan,) * 4
        posts = self[first].posterior, self[second].posterior
        found = _agreement(cells, posts[0].mean, posts[1].mean, top)
        changed = float("nan")
        if all(post.has_spread for post in posts):
            ours, theirs = (
                [_at(row / area, owners) for row in (post.mean, *post.interval(prob).T)]
                for post, area, owners in zip(posts, cells.areas, cells.owners, strict=True)
            )
            beyond = differs(ours[0], theirs[0], ours[1:], theirs[1:])
            changed = float(np.average(beyond, weights=cells.sizes))
        return (*found, changed)

    def _other_seeds(self, top: int) -> FloatArray:
        """Kendall's tau, overlap and equal signs of the first and of seeds imagined, (n, 3).

        One row of NaN if there are no intervals or nothing to compare.
        If the posterior is right, the truth is a draw of it, and the means from other masks differ
        from the truth as much again: they are the sum of two draws, minus the mean.
        """
        post, name = self._first.posterior, self.methods[0]
        cells = self._cells(name, name)
        if self._first.exhaustive:
            return np.ones((1, 3))
        if cells is None or not post.has_spread:
            return np.full((1, 3), np.nan)
        n = max(40, min(_SEEDS, _MOST_PAIRS // len(cells.sizes) ** 2))
        rng, mean = np.random.default_rng(0), post.mean
        means = post.sample(n, rng) + post.sample(n, rng) - mean
        return np.array([_agreement(cells, mean, other, top) for other in means])

    def plot(self, *, top: int = 10, prob: float = 0.95, ax: Axes | None = None) -> Axes:
        """Means and credible intervals of all methods, one group per feature.

        If the features differ, use `pictures`.
        """
        if self.unit != "feature":
            raise ValueError(
                "The explanations must have the same features for one plot; use `pictures()`."
            )
        return registry.find("charts", "comparison")(self.explanations, top=top, prob=prob, ax=ax)

    def pictures(self, top: int = 5) -> Figure:
        """The pictures of all explanations side by side, such as maps; a matplotlib figure."""
        return registry.find("figures", "pictures")(self, top=top)  # type: ignore[no-any-return]

    def to_html(
        self, path: str | os.PathLike[str] | None = None, *, title: str | None = None
    ) -> str:
        """One self-contained page: how far the explanations agree, and each of them."""
        return registry.find("pages", "page")(self, path, title=title)

    def to_json(self, top: int = 5, prob: float = 0.95) -> str:
        """The numbers of `sensitivity` as JSON text, in the layout of the reference."""
        rows = [row._asdict() for row in self._effects(top, prob)]
        found = {"label": self._first.label, "prediction": self._first.prediction, "top": top}
        found |= {"prob": prob, "first": self.methods[0], "unit": self.unit, "rows": rows}
        found |= {"model_calls": self.total_calls, "notes": self.notes(top, prob)}
        return json.dumps(without_nan(found), indent=2, allow_nan=False)

    def table(self, top: int = _SHOWN, prob: float = 0.95) -> str:
        """The most important features as text: mean and interval for each method."""
        return _as_text(self.table_cells(top, prob))

    def table_cells(self, top: int = _SHOWN, prob: float = 0.95) -> list[list[str]]:
        """The head and the rows of `table`."""
        check_count("top", top)
        order = self.order()[:top]
        names = [printable(self._first.features[j]) for j in order]
        columns = [[name if len(name) <= 36 else f"{name[:35]}…" for name in names]]
        columns += [self._column(entry, order, prob) for entry in self.explanations.values()]
        return [["feature", *self.methods], *map(list, zip(*columns, strict=True))]

    def sensitivity_table(self, top: int = _SHOWN, prob: float = 0.95) -> str:
        """`sensitivity` as text, a star where a choice matters more than another seed."""
        return _as_text(self.sensitivity_cells(top, prob))

    def sensitivity_cells(self, top: int = _SHOWN, prob: float = 0.95) -> list[list[str]]:
        """The head and the rows of `sensitivity_table`."""
        rows = self._effects(top, prob)
        head = ["agreement with first", "Kendall's tau", f"top-{top} overlap"]
        head += ["same signs", "changed", "R²", ""]
        found = [head, [printable(self.methods[0]), "", "", "", "", f"{rows[0].r2:.2f}", ""]]
        for row in rows:
            values = [row.kendall, row.top_jaccard, row.same_signs, row.changed, row.r2]
            cells = ["-" if np.isnan(value) else f"{value:.2f}" for value in values]
            found.append([_name(row), *cells, "*" if row.matters else ""])
        found[2][5] = ""  # another seed has no fit of its own
        return found

    def notes(self, top: int = _SHOWN, prob: float = 0.95) -> list[str]:
        """What a reader must know; the choice that matters most comes first."""
        estimands: dict[str, list[str]] = {}
        for name, entry in self.explanations.items():
            estimands.setdefault(entry.estimand, []).append(name)
        found = self._choice_notes(self._effects(top, prob)) if self.settings else []
        if len(estimands) == 1:
            return found
        named = [f"{', '.join(names)}: {what}" for what, names in estimands.items()]
        what = "explanations" if self.settings else "methods"
        different = f"The {what} estimate different quantities, so compare ranks, not sizes."
        return [*found, different, *named]

    def _choice_notes(self, rows: list[Effect]) -> list[str]:
        """Which choice matters most, and what the numbers are about."""
        seed, *others = rows
        apart = [row for row in others if np.isnan(row.top_jaccard)]
        others = [row for row in others if row not in apart]
        if not others:
            return [
                "The features of the explanations differ, and they have no place in the input "
                "by which to compare them."
            ]
        far = [row for row in others if row.matters] or others
        most = min(far, key=lambda row: np.nan_to_num(row.kendall) + row.top_jaccard)
        seeds = (
            f"between two seeds it would be about tau {seed.kendall:.2f}, overlap "
            f"{seed.top_jaccard:.2f}"
        )
        if np.isnan(seed.top_jaccard):
            method = self._first.posterior.method
            seeds = f"{method} has no intervals, so the effect of the seed is unknown"
        notes = [
            f"{most.setting} matters most here: with {_name(most)} the rankings agree by tau "
            f"{most.kendall:.2f} and the top features overlap by {most.top_jaccard:.2f}; {seeds}."
        ]
        if most.matters is False:
            notes.append("No choice matters more than another seed would.")
        if (unit := self._place) is not None:
            notes.append(
                f"The features differ, so all rows compare the importance per {unit}, and the "
                f"overlap of the top features is that of their {unit}s."
            )
        if apart:
            named = ", ".join(map(_name, apart))
            notes.append(f"Not compared, as their features have no place in the input: {named}.")
        return notes

    @staticmethod
    def _column(entry: Explanation, order: IntArray, prob: float) -> list[str]:
        post = entry.posterior
        means = [f"{post.mean[j]:+.3g}" for j in order]
        if not post.has_spread:
            return means
        ends = post.select(order).interval(prob)
        return [f"{m} [{a:.3g}, {b:.3g}]" for m, (a, b) in zip(means, ends, strict=True)]

    def _repr_html_(self) -> str:
        return registry.find("pages", "notebook")(self)

    def __repr__(self) -> str:
        """One line: the prediction and the methods."""
        return f"Comparison(label={self._first.label!r}, methods={list(self.methods)})"

    def __str__(self) -> str:
        """The prediction, how far choices agree, the first features by each, and notes."""
        first = self._first
        calls = ", ".join(f"{name} {n}" for name, n in self.model_calls.items())
        estimands = {e.estimand for e in self.explanations.values()}
        lines = [f"{printable(first.label)}: predicted {first.prediction:.4g}"]
        lines += [self.sensitivity_table()] if self.settings else []
        lines += [self.table()] if self.unit == "feature" else []
        total = f"; {self.total_calls} in all" if self.settings else ""
        sentences = [*estimands] if len(estimands) == 1 else []
        sentences += [f"Model calls: {calls}{total}", *map("Note: {}".format, self.notes())]
        return "\n".join([*lines, *map(paragraph, sentences)])


def _as_text(cells: list[list[str]]) -> str:
    head, *rows = cells
    columns = [list(column) for column in zip(*rows, strict=True)]
    return "\n".join(line.rstrip() for line in align(head, columns))


def _name(row: Effect) -> str:
    plain = row.setting in ("seed", METHOD)
    return printable(row.choice if plain else f"{row.setting}={row.choice}")


def _places(scene: Any) -> IntArray:
    """The feature of each pixel or character of an input, -1 for none; empty without places."""
    if isinstance(getattr(scene, "labels", None), np.ndarray):
        return np.asarray(scene.labels.ravel())
    lengths = [len(piece) for piece in getattr(scene, "pieces", ())]
    return np.repeat(np.asarray(getattr(scene, "owners", ()), dtype=np.intp), lengths)


def _same_features(first: Scene, second: Scene) -> bool:
    ours, theirs = (getattr(scene, "labels", None) for scene in (first, second))
    if ours is None or theirs is None:
        return ours is theirs and list(first.features) == list(second.features)
    return np.array_equal(ours, theirs)


def _at(values: NDArray[np.generic], features: IntArray) -> FloatArray:
    """Values of features at each cell, zero where there is no feature."""
    return np.append(values, 0.0)[features]


def _agreement(
    cells: _Cells, one: FloatArray, other: FloatArray, top: int
) -> tuple[float, float, float]:
    """Kendall's tau, overlap of the top features, and share of equal signs among them."""
    first, second = map(_at, (one / cells.areas[0], other / cells.areas[1]), cells.owners)
    ours = ranks(one) <= top
    order = np.argsort(ranks(other))
    area = np.cumsum(cells.areas[1][order])
    count = int(np.abs(area - cells.areas[0][ours].sum()).argmin()) + 1
    theirs = ranks(other) <= count
    a, b = (found > 0 for found in map(_at, (ours, theirs), cells.owners))
    sizes = cells.sizes
    same = np.sign(first) == np.sign(second)
    either = sizes[a | b].sum()
    return (
        kendall(first, second, cells.sizes),
        float(sizes[a & b].sum() / either),
        float(sizes[(a | b) & same].sum() / either),
    )


def differs(first: FloatArray, second: FloatArray, ours: Any, theirs: Any) -> BoolArray:
    """Whether two numbers with the intervals (low, high) differ by more than both allow.

    The interval of the difference comes from both intervals, of any shape, as if the errors were
    independent (Zou and Donner 2008).
    """
    difference = first - second
    down = np.hypot(first - ours[0], theirs[1] - second)
    up = np.hypot(ours[1] - first, second - theirs[0])
    return np.asarray((difference > down) | (-difference > up))
