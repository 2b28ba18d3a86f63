"""S-LIME, DLIME and averaged LIME, and what all systems share.

A system takes an explainer for the model, the background and the budget of model calls, and returns
an explanation of the explainer's features. `eblime.compare` finds systems by their names in the
registry, those of other packages too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.cluster import hierarchy

from eblime._checks import as_generator, check_count, check_number
from eblime._types import FloatArray, IntArray, RNGLike
from eblime._version import __version__
from eblime.answers import Answers
from eblime.domains.drawn import DRAWN, Drawn
from eblime.domains.masked import MaskedSubject
from eblime.domains.tabular.table import Table, as_table
from eblime.engine.session import Session
from eblime.engine.settings import stop_settings
from eblime.engine.targets import Target, target_of
from eblime.explainers.general import Explainer
from eblime.explainers.tabular import TabularExplainer
from eblime.kernels import as_kernel
from eblime.laws import normal_law
from eblime.posterior import Posterior
from eblime.protocols import Method
from eblime.results.explanation import Explanation, NotRefitted
from eblime.stopping.lars import LarsStable

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS = 20_000  # the distances between all pairs of rows must fit into memory


@dataclass(frozen=True, slots=True, kw_only=True)
class SLIME:
    """S-LIME: LIME with more masks until the first `k` features of a lasso path are stable.

    Examples
    --------
    >>> import eblime
    >>> score = lambda texts: [("good" in t) - 0.2 * ("bad" in t) for t in texts]
    >>> methods = {"LIME": "lime", "S-LIME": eblime.family.SLIME(k=1)}
    >>> found = eblime.compare(score, "a good film with a bad end and some songs", methods)
    >>> found["S-LIME"].features[int(found["S-LIME"].posterior.mean.argmax())]
    "word 'good'"
    """

    k: int = 3

    def check(self, explainer: Any, x: Any) -> None:
        """Refuse settings that cannot work, and fewer masks than a first round has."""
        check_count("k", self.k)
        asking = replace(explainer, method="lime")
        settings = stop_settings(asking.loop, LarsStable(1), explainer.n_masks)
        try:
            Session.begin(settings, asking.subject(x), 1, 0)  # the first question
        except ValueError as error:
            raise ValueError(f"S-LIME has `n_masks` as its `max_masks`: {error}") from error

    def explain(
        self, explainer: Any, x: Any, target: Target = None, rng: RNGLike = 0
    ) -> Explanation:
        """Explain the input; the explainer's number of masks is the most that are asked."""
        asking = replace(explainer, method="lime")
        rule = LarsStable(min(self.k, asking.subject(x).scene.n_features))
        found: Explanation = asking.explain(x, target, rng, until=rule, max_masks=explainer.n_masks)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class DLIME:
    """DLIME: rows of the background instead of random ones (Zafar and Khan, 2019).

    The background is cut into clusters by Ward's method. A row belongs to the cluster of its
    nearest neighbour, and the rows of that cluster are what the model is asked about. Nothing is
    left to chance, unless the background has more rows than the explainer's `n_masks`.

    Parameters
    ----------
    n_clusters
        Number of clusters; 2 in the original.
    standardize
        Whether columns are divided by their standard deviations for distances; the original
        clusters the rows as they are.
    discretize
        Whether a feature is that a number is in the row's quartile, as in the original; otherwise
        it is the number, and importances are slopes per standard deviation.
    method
        The regression on the rows of the cluster; "eblime" has intervals.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(200, 3)) + 8 * rng.integers(0, 2, size=(200, 1))
    >>> explainer = eblime.TabularExplainer(lambda x: x[:, 0], rows)
    >>> e = eblime.family.DLIME(discretize=False).explain(explainer, rows[0])
    >>> len(e.masks), e.features[int(np.argmax(e.posterior.mean))]
    (97, 'column 0 ≈ 8.12573')
    """

    n_clusters: int = 2
    standardize: bool = True
    discretize: bool = True
    method: str | Method = "lime"

    def check(self, explainer: Any, x: Any) -> None:
        """Refuse inputs other than rows of numbers, and settings that cannot work."""
        known = NumberRows.of(explainer, x, "DLIME").sample(explainer.n_masks - 1, 0)
        check_count("n_clusters", self.n_clusters, maximum=len(known.background))
        if len(known.background) > _MOST_ROWS:
            raise ValueError(
                f"DLIME clusters at most {_MOST_ROWS} rows; got {len(known.background)}. Set a "
                "smaller `n_masks`, which takes a sample of them."
            )
        replace(explainer, method=self.method)  # is refused if it cannot work

    def explain(
        self, explainer: Any, x: Any, target: Target = None, rng: RNGLike = 0
    ) -> Explanation:
        """Explain the row by real rows; a cache is not used."""
        self.check(explainer, x)
        known = NumberRows.of(explainer, x, "DLIME").sample(explainer.n_masks - 1, rng)
        near = known.background[self.neighbours(known.background, known.row)]
        asking = replace(explainer, method=self.method)
        return known.explain(asking, near, target, rng, bins=self.discretize)

    def neighbours(self, rows: FloatArray, row: FloatArray) -> IntArray:
        """Numbers of the rows, (n, p), in the cluster of a row, (p,)."""
        sd = rows.std(axis=0) if self.standardize else np.ones(rows.shape[1])
        scale = np.where(sd > 0, sd, 1.0)
        clusters = np.zeros(len(rows), dtype=np.intp)
        if len(rows) > 1:
            tree = hierarchy.linkage(rows / scale, method="ward")
            clusters = hierarchy.cut_tree(tree, n_clusters=self.n_clusters).ravel()
        nearest = np.argmin(np.sum(((rows - row) / scale) ** 2, axis=1))
        return np.flatnonzero(clusters == clusters[nearest])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumberRows:
    """The rows of a background and the explained row as numbers, and the way back to tables.

    Columns in which nothing varies, which have importance zero, are left out of the numbers.
    """

    table: Table  # the whole background and then the row
    subject: MaskedSubject
    columns: IntArray  # (p,) of the table, one for each feature
    background: FloatArray  # (n, p)
    row: FloatArray  # (p,)

    @classmethod
    def of(cls, explainer: Any, x: Any, name: str) -> NumberRows:
        """Read background and row for a system; each feature must be one column of numbers."""
        if not isinstance(explainer, TabularExplainer):
            raise TypeError(
                f"{name} needs rows of numbers, from a TabularExplainer; got "
                f"{type(explainer).__name__}."
            )
        subject = explainer.subject(x)
        whole, owner = as_table(explainer.background, explainer.names), subject.scene.owner
        if explainer.groups:
            raise ValueError(f"{name} needs one feature per column. Leave out `groups`.")
        table = whole.append_row(subject.scene.table.last_row())
        columns = np.flatnonzero(owner >= 0)
        values = np.stack([_numbers(table, column, name) for column in columns.tolist()], axis=1)
        return cls(
            table=table, subject=subject, columns=columns, background=values[:-1], row=values[-1]
        )

    def sample(self, most: int, rng: RNGLike) -> NumberRows:
        """The same with at most that many background rows, drawn without replacement, in order."""
        n = len(self.background)
        if n <= most:
            return self
        chosen = as_generator(rng).choice(n, most, replace=False)
        return replace(self, background=self.background[np.sort(chosen)])

    def rows_of(self, numbers: FloatArray) -> Any:
        """Rows of numbers as the model knows them: a table of the background's kind.

        Columns that are not features have the values of the explained row.
        """
        return self.table.with_numbers(dict(zip(self.columns.tolist(), numbers.T, strict=True)))

    def explain(
        self,
        explainer: Any,
        rows: FloatArray,
        target: Target,
        rng: RNGLike,
        *,
        bins: bool = False,
    ) -> Explanation:
        """Ask the model about the explained row and then about these rows, and fit the answers.

        The regression sees whether numbers are in the row's quartile of the background, with
        `bins`, or the numbers in standard deviations.
        """
        every, whole = np.concatenate([self.row[None], rows]), self.subject.whole
        sd = self.background.std(axis=0)
        seen = every / np.where(sd > 0, sd, 1.0)
        if bins:
            from eblime.compat.lime.discretize import QuartileDiscretizer

            cut = QuartileDiscretizer(self.background, [], list(self.subject.scene.features))
            found = cut.discretize(every).astype(int)
            seen = (found == found[0]).astype(np.float64)
        drawn = Drawn(self.subject.scene, seen, lambda numbers: self.rows_of(every[numbers]))
        drawn.whole, drawn.fixed = whole, self.subject.fixed
        asking = Explainer(
            explainer.model,
            DRAWN,
            n_masks=max(2, len(every)),
            kernel=explainer.kernel,
            method=explainer.method,
            progress=explainer.progress,
            labels=explainer.labels,
            calls=replace(explainer.loop.calls, cache=None),
        )
        return replace(asking.explain(drawn, target, rng), source=None)


def provenance(method: str, about: Any, rng: RNGLike, calls: int) -> dict[str, Any]:
    """The record of an explanation by a system."""
    return {
        "input": dict(about),
        "method": method,
        "seed": int(rng) if isinstance(rng, (int, np.integer)) else "a generator",
        "model_calls": calls,
        "versions": {"eblime": __version__, "numpy": np.__version__},
    }


def explanation_like(
    reference: Explanation, posterior: Posterior, answers: Answers, rng: RNGLike, calls: int
) -> Explanation:
    """An explanation of the same input and target as another one, by a system."""
    return replace(
        reference,
        posterior=posterior,
        answers=answers,
        method=NotRefitted(name=posterior.method),
        exhaustive=False,
        provenance=provenance(posterior.method, reference.provenance["input"], rng, calls),
        generator=None,
        source=None,
    )


def _numbers(table: Table, column: int, name: str) -> FloatArray:
    """A column of the background and of the row as finite numbers, (n + 1,)."""
    values, kind = table.column(column)
    title = table.names[column]
    if kind != "number":
        raise TypeError(
            f"{name} needs rows of numbers; column {title!r} of `background` holds "
            f"{'times' if kind == 'time' else 'categories'}."
        )
    bad = ~np.isfinite(values)
    if bad.any():
        where, n = "`background`" if bad[:-1].any() else "the row", int(bad.sum())
        raise ValueError(
            f"{name} needs finite numbers; column {title!r} of {where} has {n} missing or infinite "
            "values."
        )
    return np.asarray(values, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AveragedExplanation:
    """The mean of repeated explanations, and their spread by source; all arrays are (p,).

    Examples
    --------
    >>> import eblime
    >>> score = lambda texts: [("two" in t) - 0.5 * ("five" in t) * ("six" in t) for t in texts]
    >>> explainer = eblime.TextExplainer(score, n_masks=50, method="lime")
    >>> text = "one two three four five six seven"
    >>> found = eblime.family.averaged(explainer, text, runs=3, widths=(0.5, 2.0))
    >>> found.to_frame().columns.tolist()
    ['feature', 'mean', 'error', 'sd', 'sampling_sd', 'width_sd', 'input_sd', 'interaction_sd']
    """

    features: tuple[str, ...]
    importances: FloatArray  # (widths, inputs, runs, p)

    @property
    def mean(self) -> FloatArray:
        """The averaged explanation."""
        return np.asarray(self.importances.mean(axis=(0, 1, 2)))

    @property
    def sampling_sd(self) -> FloatArray:
        """Standard deviation of one explanation between runs with other masks."""
        return np.asarray(self._sources()[0])

    @property
    def width_sd(self) -> FloatArray:
        """Standard deviation between widths of the kernel, beyond the sampling."""
        return np.asarray(self._sources()[1])

    @property
    def input_sd(self) -> FloatArray:
        """Standard deviation between inputs, beyond the sampling."""
        return np.asarray(self._sources()[2])

    @property
    def interaction_sd(self) -> FloatArray:
        """Standard deviation that only a width and an input together have."""
        return np.asarray(self._sources()[3])

    @property
    def sd(self) -> FloatArray:
        """Standard deviation of one explanation of any width and input: all sources together."""
        return np.asarray(np.sqrt(np.sum(self._sources() ** 2, axis=0)))

    @property
    def error(self) -> FloatArray:
        """Standard error of `mean` through the sampling of masks."""
        return np.asarray(self.sampling_sd / np.sqrt(np.prod(self.importances.shape[:3])))

    def to_frame(self) -> pd.DataFrame:
        """One row per feature: the mean, its error, the whole spread and its sources."""
        from eblime._pandas import pd

        names = ("mean", "error", "sd", "sampling_sd", "width_sd", "input_sd", "interaction_sd")
        columns = {name: getattr(self, name) for name in names}
        return pd.DataFrame({"feature": list(self.features), **columns})

    def _sources(self) -> FloatArray:
        """Spread by sampling, width, input, and width and input together, (4, p)."""
        y = self.importances
        a, b, r, p = y.shape
        cells = y.mean(axis=2)
        within = y.var(axis=2, ddof=1).mean(axis=(0, 1)) if r > 1 else np.zeros(p)
        rows, columns, centre = cells.mean(axis=1), cells.mean(axis=0), cells.mean(axis=(0, 1))
        left = cells - rows[:, None] - columns + centre
        both = r * np.sum(left**2, axis=(0, 1)) / max(1, (a - 1) * (b - 1))
        error = both if a > 1 and b > 1 else within
        by_width = b * r * np.sum((rows - centre) ** 2, axis=0) / max(1, a - 1)
        by_input = a * r * np.sum((columns - centre) ** 2, axis=0) / max(1, b - 1)
        parts = [within, (by_width - error) / (b * r), (by_input - error) / (a * r)]
        return np.asarray(np.sqrt(np.maximum(np.stack([*parts, (both - within) / r]), 0.0)))


def averaged(
    explainer: Any,
    x: Any,
    *,
    target: int | str | None = None,
    runs: int = 10,
    widths: Sequence[float] = (0.5, 1.0, 2.0),
    similar: Sequence[Any] = (),
    rng: RNGLike = 0,
) -> AveragedExplanation:
    """Explain an input many times; average the explanations and split their spread by source.

    Parameters
    ----------
    explainer
        Any explainer. The model is asked for `runs` explanations for each width and input.
    x
        The input.
    target
        As for `explain`; None is the highest output for `x`, and the same one for similar inputs.
    runs
        Explanations with other masks for each width and input; at least 2.
    widths
        Factors of the width of the explainer's kernel.
    similar
        More inputs with the same features, such as near rows of a table or crops of one image.
    rng
        Seed or generator.

    Examples
    --------
    >>> import eblime
    >>> from eblime.family import averaged
    >>> score = lambda texts: [("two" in t) - 0.5 * ("five" in t) * ("six" in t) for t in texts]
    >>> explainer = eblime.TextExplainer(score, n_masks=50, method="lime")
    >>> found = averaged(explainer, "one two three four five six seven", runs=3)
    >>> found.mean.round(1) + 0.0, found.importances.shape
    (array([ 0. ,  0.8,  0. ,  0. , -0.2, -0.2,  0. ]), (3, 1, 3, 7))
    """
    check_count("runs", runs, minimum=2)  # to measure a spread
    if not len(widths):
        raise ValueError("`widths` must have at least one factor.")
    for factor in widths:
        check_number("widths", factor)
    generator, kernel = as_generator(rng), as_kernel(explainer.kernel)
    found, output = [], target
    features: tuple[str, ...] = ()
    for factor in widths:
        changed = replace(explainer, kernel=_Widened(kernel=kernel, factor=float(factor)))
        for one in (x, *similar):
            for _ in range(runs):
                e = changed.explain(one, output, int(generator.integers(2**32)))
                output = target_of(e.target, explainer.labels)
                features = features or tuple(e.features)
                if len(e.features) != len(features):
                    raise ValueError(
                        f"`similar` must have the {len(features)} features of `x`; got "
                        f"{len(e.features)}."
                    )
                found.append(e.posterior.mean)
    shape = (len(widths), 1 + len(similar), runs, -1)
    return AveragedExplanation(features=features, importances=np.reshape(found, shape))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Widened:
    """A kernel with its width multiplied: `exp(-d^2 / (2 w^2))` to the power 1 / factor^2."""

    kernel: Callable[[FloatArray], FloatArray]
    factor: float

    def __call__(self, closeness: FloatArray) -> FloatArray:
        """Weights, (N, p) -> (N,)."""
        return np.asarray(self.kernel(closeness) ** (1 / self.factor**2))


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragedLIME:
    """Averaged LIME: the mean of several runs, which share the budget; normal intervals.

    Examples
    --------
    >>> import eblime
    >>> score = lambda texts: [("good" in t) - 0.2 * ("bad" in t) for t in texts]
    >>> methods = {"LIME": "lime", "averaged": eblime.family.AveragedLIME(runs=4)}
    >>> found = eblime.compare(score, "a good film with a bad end", methods, n_masks=100)
    >>> found["averaged"].as_list(top=1)[0][0]
    "word 'good'"
    """

    runs: int = 5

    def check(self, explainer: Any, x: Any) -> None:
        """Refuse settings that cannot work."""
        check_count("runs", self.runs)
        if self.runs < 2 or explainer.n_masks // self.runs < 2:
            raise ValueError(
                f"`runs` must be from 2 to half of the {explainer.n_masks} masks; got {self.runs}."
            )
        self._part(explainer)  # is refused if it cannot work

    def explain(
        self, explainer: Any, x: Any, target: Target = None, rng: RNGLike = 0
    ) -> Explanation:
        """Explain the input several times."""
        self.check(explainer, x)
        part = self._part(explainer)
        seeds = as_generator(rng).integers(2**32, size=self.runs).tolist()
        runs = [part.explain(x, target, seed) for seed in seeds]
        found = AveragedExplanation(
            features=tuple(runs[0].features),
            importances=np.array([[[run.posterior.mean for run in runs]]]),
        )
        posterior = Posterior.from_law(
            normal_law(found.mean, np.diag(found.error**2)),
            runs[0].answers,
            method="Averaged LIME",
            estimand=runs[0].posterior.estimand,
        )
        calls = sum(int(run.provenance["model_calls"]) for run in runs)
        return explanation_like(runs[0], posterior, runs[0].answers, rng, calls)

    def _part(self, explainer: Any) -> Any:
        """The explainer of one run."""
        return replace(explainer, method="lime", n_masks=explainer.n_masks // self.runs)
