"""Averaged LIME: repeated explanations, and where their differences come from (Zhang et al., 2019).

Three things change an explanation: the masks that chance drew, the width of the kernel, and which
of several similar inputs is explained. Explanations for all combinations, several times each, are
split into these sources by an analysis of variance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime._checks import as_generator, check_count, check_number
from eblime._types import FloatArray, RNGLike
from eblime.engine.targets import Target, target_of
from eblime.family.systems import explanation_like
from eblime.kernels import as_kernel
from eblime.laws import normal_law
from eblime.posterior import Posterior
from eblime.results.explanation import Explanation

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["AveragedExplanation", "AveragedLIME", "averaged"]


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
    >>> found.mean.round(1), found.importances.shape
    (array([ 0. ,  0.7,  0. ,  0. , -0.2, -0.2,  0. ]), (3, 1, 3, 7))
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
        self._part(explainer).check()

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
