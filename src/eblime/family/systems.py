"""S-LIME, DLIME and averaged explanations, and what all systems share.

A system takes an explainer for the model, the background and the budget of model calls, and returns
an explanation of the explainer's features. `eblime.compare` finds systems by their names in the
registry, those of other packages too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.cluster import hierarchy

from eblime._checks import as_generator, check_count, check_number
from eblime._types import FloatArray, IntArray, RNGLike
from eblime.answers import Answers
from eblime.domains.drawn import DRAWN, Drawn
from eblime.domains.masked import MaskedSubject
from eblime.domains.tabular.table import SparseTable, Table, as_table
from eblime.engine.targets import target_of
from eblime.explainers.base import BaseExplainer
from eblime.explainers.general import Explainer
from eblime.explainers.tabular import TabularExplainer
from eblime.kernels import as_kernel
from eblime.methods.regression import as_method
from eblime.posterior import Posterior
from eblime.protocols import Method
from eblime.results.explanation import Explanation, NotRefitted
from eblime.scores import Target
from eblime.stopping.lars import LarsStable

if TYPE_CHECKING:
    import pandas as pd


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

    def check(self, explainer: BaseExplainer, x: object) -> None:
        """Refuse settings that cannot work."""
        check_count("k", self.k)

    def explain(
        self, explainer: BaseExplainer, x: object, target: Target = None, rng: RNGLike = 0
    ) -> Explanation:
        """Explain the input; the explainer's number of masks is the most that are asked."""
        asking = replace(explainer, method="lime")
        rule = LarsStable(min(self.k, asking.subject(x).scene.n_features))
        found: Explanation = asking.explain(
            x, target, rng, until=rule, max_masks=explainer.loop.masks_for()
        )
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class DLIME:
    """DLIME: rows of the background instead of random ones (Zafar and Khan, 2019).

    The background, in standard deviations of its columns, is cut into clusters by Ward's method. A
    row belongs to the cluster of its nearest neighbour, and the rows of that cluster are what the
    model is asked about. A feature is that a number is in the row's quartile. Nothing is left to
    chance, unless the background has more rows than the explainer's `n_masks`.

    Parameters
    ----------
    n_clusters
        Number of clusters; 2 in the original.
    method
        The regression on the rows of the cluster; "eblime" has intervals.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(200, 3)) + 8 * rng.integers(0, 2, size=(200, 1))
    >>> explainer = eblime.TabularExplainer(lambda x: x[:, 0], rows)
    >>> e = eblime.family.DLIME().explain(explainer, rows[0])
    >>> len(e.masks), e.features[int(np.argmax(e.posterior.mean))]
    (97, 'column 0 ≈ 8.12573')
    """

    n_clusters: int = 2
    method: str | Method = "lime"

    def check(self, explainer: BaseExplainer, x: object) -> None:
        """Refuse inputs other than rows of numbers, and settings that cannot work."""
        known = NumberRows.of(explainer, x, "DLIME").sample(explainer.loop.masks_for() - 1, 0)
        check_count("n_clusters", self.n_clusters, maximum=len(known.background))
        as_method(self.method)  # is refused if it cannot work

    def explain(
        self, explainer: BaseExplainer, x: object, target: Target = None, rng: RNGLike = 0
    ) -> Explanation:
        """Explain the row by real rows; a cache is not used."""
        self.check(explainer, x)
        known = NumberRows.of(explainer, x, "DLIME").sample(explainer.loop.masks_for() - 1, rng)
        near = known.background[self.neighbours(known.background, known.row)]
        return known.explain(explainer, near, target, rng, method=self.method)

    def neighbours(self, rows: FloatArray, row: FloatArray) -> IntArray:
        """Numbers of the rows, (n, p), in the cluster of a row, (p,)."""
        scale = spread(rows)
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
    def of(cls, explainer: BaseExplainer, x: object, name: str) -> NumberRows:
        """Read background and row for a system; each feature must be one column of numbers."""
        if not isinstance(explainer, TabularExplainer):
            raise TypeError(
                f"{name} needs rows of numbers, from a TabularExplainer; got "
                f"{type(explainer).__name__}."
            )
        subject = explainer.subject(x)
        whole, owner = as_table(explainer.background, explainer.names), subject.scene.owner
        if isinstance(whole, SparseTable):
            raise TypeError(f"{name} needs a dense background; got a sparse matrix.")
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

    def rows_of(self, numbers: FloatArray) -> object:
        """Rows of numbers as the model knows them: a table of the background's kind.

        Columns that are not features have the values of the explained row.
        """
        return self.table.with_numbers(dict(zip(self.columns.tolist(), numbers.T, strict=True)))

    def explain(
        self,
        explainer: BaseExplainer,
        rows: FloatArray,
        target: Target,
        rng: RNGLike,
        *,
        method: str | Method = "lime",
    ) -> Explanation:
        """Ask the model about the explained row and then about these rows, and fit the answers.

        The regression sees whether numbers are in the row's quartile of the background.
        """
        every = np.concatenate([self.row[None], rows])
        cuts = np.percentile(self.background, [25, 50, 75], axis=0)
        bins = np.sum(every[:, None] > cuts, axis=1)
        seen = (bins == bins[0]).astype(np.float64)
        drawn = Drawn(self.subject.scene, seen, lambda numbers: self.rows_of(every[numbers]))
        drawn.whole, drawn.fixed = self.subject.whole, self.subject.fixed
        asking = Explainer(
            explainer.model,
            DRAWN,
            n_masks=max(2, len(every)),
            kernel=explainer.kernel,
            method=method,
            progress=explainer.progress,
            labels=explainer.labels,
            calls=replace(explainer.loop.calls, cache=None),
        )
        return replace(asking.explain(drawn, target, rng), source=None)


def spread(rows: FloatArray) -> FloatArray:
    """Standard deviations of columns, 1 for constant ones."""
    sd = rows.std(axis=0)
    return np.where(sd > 0, sd, 1.0)


def explanation_like(
    reference: Explanation, posterior: Posterior, rows: FloatArray, scores: FloatArray, calls: int
) -> Explanation:
    """An explanation of the input and target of another one, by a system that asked about rows."""
    about, fixed = reference.provenance, reference.answers.fixed
    features = reference.answers.varying.features
    answers = Answers(masks=rows, scores=scores, weights=np.ones(len(rows)), features=features)
    return replace(
        reference,
        posterior=posterior.with_fixed(fixed),
        answers=answers.with_fixed(fixed, reference.features),
        method=NotRefitted(name=posterior.method),
        provenance={name: about[name] for name in ("input", "seed", "versions")}
        | {"method": posterior.method, "model_calls": calls},
        generator=None,
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
    def error(self) -> FloatArray:
        """Standard error of `mean` through the sampling of masks."""
        runs = np.prod(self.importances.shape[:3])
        return np.asarray(self.spread["sampling_sd"] / np.sqrt(runs))

    @property
    def spread(self) -> dict[str, FloatArray]:
        """Standard deviations of one explanation: in all and by source.

        "sampling_sd" is between runs with other masks; beyond it "width_sd" is between widths of
        the kernel, "input_sd" between inputs, and "interaction_sd" what only a width and an input
        together have; "sd" is all of them.
        """
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
        parts = {
            "sampling_sd": within,
            "width_sd": np.maximum((by_width - error) / (b * r), 0.0),
            "input_sd": np.maximum((by_input - error) / (a * r), 0.0),
            "interaction_sd": np.maximum((both - within) / r, 0.0),
        }
        every = {"sd": np.sum(list(parts.values()), axis=0), **parts}
        return {name: np.sqrt(variance) for name, variance in every.items()}

    def to_frame(self) -> pd.DataFrame:
        """One row per feature: the mean, its error, the whole spread and its sources."""
        from eblime._pandas import pd

        columns = {"mean": self.mean, "error": self.error, **self.spread}
        return pd.DataFrame({"feature": list(self.features), **columns})


def averaged(
    explainer: BaseExplainer,
    x: object,
    *,
    target: int | str | None = None,
    runs: int = 10,
    widths: Sequence[float] = (0.5, 1.0, 2.0),
    similar: Sequence[object] = (),
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
    check_count("widths", len(widths))
    for factor in widths:
        check_number("widths", factor)
    generator, kernel = as_generator(rng), as_kernel(explainer.kernel)
    found, output = [], target
    features: tuple[str, ...] = ()
    for factor in widths:

        def widened(closeness: FloatArray, power: float = factor**-2.0) -> FloatArray:
            return np.asarray(kernel(closeness) ** power)

        changed = replace(explainer, kernel=widened)
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
