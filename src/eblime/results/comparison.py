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
from eblime.results.notes import prediction_r2

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHOWN = 5  # features in a printed table
_POOR = 0.1  # held-out R^2 below which a linear fit predicts nothing
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

    first: IntArray  # (K,)
    second: IntArray  # (K,)
    sizes: FloatArray | None  # (K,) pixels or characters; None for features
    areas: tuple[FloatArray, FloatArray]  # of the features of both, (p,) each


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

    Two ways to hide a word, of which the model takes no notice:

    >>> both = eblime.compare(good, "a good film", hide=["", "[MASK]"])
    >>> both.methods
    ("hide=''", 'hide=[MASK]')
    >>> both.sensitivity(top=1)["top_jaccard"].tolist()
    [1.0, 1.0]

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
        """Refuse explanations that are not of the same prediction."""
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
        """Any of the explanations, for what they share."""
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
        return _unit(*(entry.scene for entry in self.explanations.values()))

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
        if method not in self.explanations:
            known = ", ".join(repr(name) for name in self.methods)
            raise KeyError(f"There is no method {method!r} in this comparison; it has {known}.")
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
        places = np.array([ranks(mean) for mean in self._means().values()])
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
        rows = []
        for first, second in combinations(self.methods, 2):
            found = self._measures(first, second, top, prob)
            rows.append((first, second, *(found[name] for name in _MEASURES)))
        return pd.DataFrame(rows, columns=["first", "second", *_MEASURES])

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
        """The rows of `sensitivity`."""
        check_count("top", top)
        check_level("prob", prob)
        first, *others = self.methods
        seeds = self._other_seeds(top)
        lowest = np.quantile(seeds, _RARE, axis=0) if len(seeds) else None
        typical = np.median(seeds, axis=0) if len(seeds) else np.full(3, np.nan)
        chance = 0.0 if self._first.exhaustive else 1 - prob if len(seeds) else np.nan
        r2 = prediction_r2(self._first.posterior)
        tau, overlap, signs = map(float, typical)
        rows = [Effect("seed", "another seed", tau, overlap, signs, chance, r2, None)]
        for name in others:
            found = self._measures(first, name, top, prob)
            agreed = np.array([found["kendall"], found["top_jaccard"]])
            matters = None
            if lowest is not None and np.isfinite(agreed[1]):
                matters = bool((agreed < lowest[:2] - 1e-12).any())
            setting = self.settings.get(name, METHOD)
            rows.append(
                Effect(
                    setting=setting,
                    choice=name.removeprefix(f"{setting}="),
                    r2=prediction_r2(self[name].posterior),
                    matters=matters,
                    **found,
                )
            )
        return rows

    def _placed(self) -> list[Scene]:
        """Those that can be compared with the first: windows of a signal, but not its bands."""
        scenes = (entry.scene for entry in self.explanations.values())
        return [scene for scene in scenes if _unit(self._first.scene, scene)]

    def _cells(self, first: str, second: str) -> _Cells | None:
        """Where two explanations are compared; None if they cannot be."""
        scenes = self[first].scene, self[second].scene
        placed = self._placed()
        together = all(any(scene is one for one in placed) for scene in scenes)
        unit = _unit(*(placed if together else scenes))
        if unit is None:
            return None
        if unit == "feature":
            every, ones = np.arange(scenes[0].n_features), np.ones(scenes[0].n_features)
            return _Cells(every, every, None, (ones, ones))
        owners = np.stack([np.asarray(_owners(scene)) for scene in scenes])
        (one, other), sizes = np.unique(owners, axis=1, return_counts=True)
        areas = [
            np.bincount(row[row >= 0], minlength=scene.n_features).astype(float)
            for row, scene in zip(owners, scenes, strict=True)
        ]
        return _Cells(one, other, sizes.astype(float), (areas[0], areas[1]))

    def _measures(self, first: str, second: str, top: int, prob: float) -> dict[str, float]:
        """How far two explanations agree; NaN where their features cannot be compared."""
        cells = self._cells(first, second)
        if cells is None:
            return dict.fromkeys(_MEASURES, float("nan"))
        posts = self[first].posterior, self[second].posterior
        found = _agreement(cells, posts[0].mean, posts[1].mean, top)
        changed = float("nan")
        if all(post.has_spread for post in posts):
            ours, theirs = (
                [_at(row / area, owners) for row in (post.mean, *post.interval(prob).T)]
                for post, area, owners in zip(posts, cells.areas, cells[:2], strict=True)
            )
            beyond = differs(ours[0], theirs[0], ours[1:], theirs[1:])
            changed = float(np.average(beyond, weights=cells.sizes))
        return dict(zip(_MEASURES, (found[1], found[2], found[0], changed), strict=True))

    def _other_seeds(self, top: int) -> FloatArray:
        """Kendall's tau, overlap and equal signs of the first and of seeds imagined, (n, 3).

        If the posterior is right, the truth is a draw of it, and the means from other masks differ
        from the truth as much again: they are the sum of two draws, minus the mean.
        """
        post, name = self._first.posterior, self.methods[0]
        cells = self._cells(name, name)
        if self._first.exhaustive:
            return np.ones((1, 3))
        if cells is None or not post.has_spread:
            return np.empty((0, 3))
        most = _SEEDS if cells.sizes is None else _MOST_PAIRS // len(cells[0]) ** 2
        n = max(40, min(_SEEDS, most))
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
        draw = registry.find("displays", "comparison")
        return draw(self.explanations, top=top, prob=prob, ax=ax)  # type: ignore[no-any-return]

    def pictures(self, top: int = 5) -> Figure:
        """The pictures of all explanations side by side, such as maps; a matplotlib figure."""
        return registry.find("displays", "pictures")(self, top=top)  # type: ignore[no-any-return]

    def to_html(
        self, path: str | os.PathLike[str] | None = None, *, title: str | None = None
    ) -> str:
        """One self-contained page: how far the explanations agree, and each of them."""
        return registry.find("displays", "page")(self, path, title=title)  # type: ignore[no-any-return]

    def to_json(self, top: int = 5, prob: float = 0.95) -> str:
        """The numbers of `sensitivity` as JSON text, in the layout of docs/reference/json.md."""
        rows = [
            {
                k: None if isinstance(v, float) and np.isnan(v) else v
                for k, v in row._asdict().items()
            }
            for row in self._effects(top, prob)
        ]
        found = {"label": self._first.label, "prediction": self._first.prediction, "top": top}
        found |= {"prob": prob, "first": self.methods[0], "unit": self.unit, "rows": rows}
        found |= {"model_calls": self.total_calls, "notes": self.notes(top, prob)}
        return json.dumps(found, indent=2, allow_nan=False)

    def table(self, top: int = _SHOWN, prob: float = 0.95) -> str:
        """The most important features as text: mean and interval for each method."""
        check_count("top", top)
        order = self.order()[:top]
        features = self._first.features
        names = [printable(features[j]) for j in order]
        columns = [[name if len(name) <= 36 else f"{name[:35]}…" for name in names]]
        columns += [self._column(entry, order, prob) for entry in self.explanations.values()]
        return "\n".join(line.rstrip() for line in align(["feature", *self.methods], columns))

    def sensitivity_table(self, top: int = _SHOWN, prob: float = 0.95, *, between: str = "") -> str:
        """`sensitivity` as text, a star where a choice matters more than another seed.

        The columns are aligned, or separated by `between`.
        """
        rows = self._effects(top, prob)
        head = ["agreement with first", "Kendall's tau", f"top-{top} overlap"]
        head += ["same signs", "changed", "R²", ""]
        columns = [[printable(self.methods[0])] + [_name(row) for row in rows]]
        for name in ("kendall", "top_jaccard", "same_signs", "changed", "r2"):
            values = [getattr(row, name) for row in rows]
            cells = ["-" if np.isnan(value) else f"{value:.2f}" for value in values]
            columns.append(["", *cells])
        columns[-1][:2] = [columns[-1][1], ""]  # another seed has no fit of its own
        columns.append(["", *("*" if row.matters else "" for row in rows)])
        if between:
            return "\n".join(map(between.join, [head, *zip(*columns, strict=True)]))
        return "\n".join(line.rstrip() for line in align(head, columns))

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
        unit, notes = _unit(*self._placed()), list[str]()
        apart = [row for row in others if np.isnan(row.top_jaccard)]
        others = [row for row in others if row not in apart]
        if not others:
            return [
                "The features of the explanations differ, and they have no place in the input "
                "by which to compare them."
            ]
        far = sorted(
            (row for row in others if row.matters is not False),
            key=lambda row: np.nan_to_num(row.kendall) + row.top_jaccard,
        )
        seen = list(dict.fromkeys(row.setting for row in far))
        expected = f"tau {seed.kendall:.2f}, overlap {seed.top_jaccard:.2f}"
        if far:
            most = far[0]
            against = f"between two seeds it would be about {expected}"
            if np.isnan(seed.top_jaccard):
                method = self._first.posterior.method
                against = f"{method} has no intervals, so the effect of the seed is unknown"
            notes.append(
                f"{most.setting} matters most here: with {_name(most)} the rankings agree by tau "
                f"{most.kendall:.2f} and the top features overlap by {most.top_jaccard:.2f}; "
                f"{against}."
            )
            if seen[1:] and far[0].matters:
                notes.append(f"These matter more than the seed, too: {', '.join(seen[1:])}.")
        rest = [row.setting for row in others if row.setting not in seen]
        if rest:
            named = ", ".join(dict.fromkeys(rest))
            about = "" if far else f" ({expected})"
            notes.append(f"Matters no more than another seed would: {named}{about}.")
        if unit != "feature":
            notes.append(
                f"The features differ, so all rows compare the importance per {unit}, and the "
                f"overlap of the top features is that of their {unit}s."
            )
        if apart:
            named = ", ".join(map(_name, apart))
            notes.append(f"Not compared, as their features have no place in the input: {named}.")
        poor = [name for name, e in self.explanations.items() if prediction_r2(e.posterior) < _POOR]
        if poor:
            notes.append(
                f"The linear fit does not predict the model with {', '.join(poor)}: do not rely on "
                "these importances."
            )
        return notes

    @staticmethod
    def _column(entry: Explanation, order: IntArray, prob: float) -> list[str]:
        """One method's column of a table."""
        post = entry.posterior
        means = [f"{post.mean[j]:+.3g}" for j in order]
        if not post.has_spread:
            return means
        ends = post.select(order).interval(prob)
        return [f"{m} [{a:.3g}, {b:.3g}]" for m, (a, b) in zip(means, ends, strict=True)]

    def _means(self) -> dict[str, FloatArray]:
        """The importances by method."""
        return {name: entry.posterior.mean for name, entry in self.explanations.items()}

    def _repr_html_(self) -> str:
        """What a notebook shows: one row per feature, one column per method."""
        return registry.find("displays", "notebook")(self)  # type: ignore[no-any-return]

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


_MEASURES = ("top_jaccard", "same_signs", "kendall", "changed")


def _name(row: Effect) -> str:
    """The choice with its setting, unless it speaks for itself."""
    plain = row.setting in ("seed", METHOD)
    return printable(row.choice if plain else f"{row.setting}={row.choice}")


def _owners(scene: Scene) -> IntArray | None:
    """The feature of each pixel or character of an input, -1 for none; None if it has no places."""
    known: Any = scene
    labels = getattr(known, "labels", None)
    if isinstance(labels, np.ndarray):
        return labels.ravel()
    if not (hasattr(known, "owners") and hasattr(known, "pieces")):
        return None
    return np.repeat(np.asarray(known.owners, dtype=np.intp), [len(one) for one in known.pieces])


def _unit(*scenes: Scene) -> str | None:
    """What the rankings of some explanations are compared by; None if they cannot be."""
    if all(_same_features(scenes[0], other) for other in scenes[1:]):
        return "feature"
    owners = [_owners(scene) for scene in scenes]
    if any(one is None or owners[0] is None or len(one) != len(owners[0]) for one in owners):
        return None
    return _UNITS.get(scenes[0].domain, "element")


def _same_features(first: Scene, second: Scene) -> bool:
    """Whether the features are the same: by their places, columns or frequencies, or names."""
    ours, theirs = _owners(first), _owners(second)
    if ours is not None and theirs is not None and np.array_equal(ours, theirs):
        return True
    if any(getattr(scene, "labels", None) is not None for scene in (first, second)):
        return False  # names of superpixels say only where they are, about
    names = []
    for scene in (first, second):
        known: Any = getattr(scene, "details", dict)()
        names.append(list(known.get("column") or known.get("low_frequency") or scene.features))
    return bool(names[0] == names[1])


def _at(values: NDArray[Any], features: IntArray) -> FloatArray:
    """Values of features at each cell, zero where there is no feature."""
    return np.append(values, 0.0)[features]


def _agreement(
    cells: _Cells, one: FloatArray, other: FloatArray, top: int
) -> tuple[float, float, float]:
    """Kendall's tau, overlap of the top features, and share of equal signs among them."""
    first, second = _at(one / cells.areas[0], cells[0]), _at(other / cells.areas[1], cells[1])
    ours = ranks(one) <= top
    order = np.argsort(ranks(other))
    area = np.cumsum(cells.areas[1][order])
    count = int(np.abs(area - cells.areas[0][ours].sum()).argmin()) + 1
    theirs = ranks(other) <= count
    a, b = _at(ours, cells[0]) > 0, _at(theirs, cells[1]) > 0
    sizes = np.ones(len(a)) if cells.sizes is None else cells.sizes
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
