"""The methods of the league: ours and those of other packages, at equal model calls.

A contestant is a function of (game, n, rng) that may ask the game about n masks, besides the input
itself and everything hidden, and returns one number per feature. Those for tables draw rows of
their own, as many as n masks would cost. Other packages are imported where they are used.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime._types import FloatArray
from eblime.designs.masks import MOST_EXHAUSTIVE, bernoulli, exhaustive
from eblime.explainers.tabular import TabularExplainer
from studies.games import Game, TableRow, game_explainer
from studies.pairs import paired

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CONTESTANTS", "applies", "available", "missing_package"]

Contestant = Callable[[Game, int, np.random.Generator], FloatArray]


def ours(method: str, design: Any, game: Game, n: int, rng: np.random.Generator) -> FloatArray:
    """A method of this library with one of its designs."""
    explainer = game_explainer(game, n_masks=n, method=method, design=design)
    return explainer.explain(game.n_features, rng=rng).posterior.mean


def lime(game: Game, n: int, rng: np.random.Generator) -> FloatArray:
    """The regression of the package lime, with the masks and the kernel of its image explainer."""
    from lime.lime_base import LimeBase

    masks = bernoulli(rng, n, game.n_features)
    similar = masks.mean(axis=1) ** 0.5  # the cosine of a mask and the mask of ones
    kernel = partial(_lime_kernel, width=0.25)
    base = LimeBase(kernel, random_state=np.random.RandomState(int(rng.integers(2**31))))
    found = base.explain_instance_with_data(
        masks, game(masks)[:, None], 1 - similar, 0, game.n_features, feature_selection="none"
    )
    values = np.zeros(game.n_features)
    for feature, weight in found[1]:
        values[feature] = weight
    return values


def _lime_kernel(distance: FloatArray, width: float) -> FloatArray:
    """The kernel of lime."""
    return np.sqrt(np.exp(-(distance**2) / width**2))


def kernel_shap(game: Game, n: int, rng: np.random.Generator) -> FloatArray:
    """`shap.KernelExplainer` with everything hidden as the background."""
    import shap

    p = game.n_features
    state = np.random.get_state()  # noqa: NPY002 - shap draws from the global generator
    np.random.seed(int(rng.integers(2**31)))  # noqa: NPY002
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            explainer = shap.KernelExplainer(game, np.zeros((1, p)))
            found = explainer.shap_values(np.ones((1, p)), nsamples=n, silent=True)
    finally:
        np.random.set_state(state)  # noqa: NPY002
    return np.asarray(found, dtype=np.float64).reshape(p)


def captum(name: str, game: Game, n: int, rng: np.random.Generator) -> FloatArray:
    """`captum.attr.Lime` or `captum.attr.KernelShap` with everything hidden as the baseline."""
    import torch
    from captum import attr

    def forward(masks: Any) -> Any:
        return torch.from_numpy(game(masks.numpy()))

    p = game.n_features
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(int(rng.integers(2**31)))
        found = getattr(attr, name)(forward).attribute(
            torch.ones(1, p), baselines=torch.zeros(1, p), n_samples=n, perturbations_per_eval=n
        )
    return np.asarray(found.numpy(), dtype=np.float64).reshape(p)


def eblime_table(game: Game, n: int, rng: np.random.Generator) -> FloatArray:
    """`TabularExplainer`: as many rows as the game asks for n masks."""
    row = _row(game)
    explainer = TabularExplainer(
        row, row.table, n_masks=n, rows_per_mask=row.per_mask, progress=False
    )
    return explainer.explain(row.own.iloc[0], rng=rng).posterior.mean


def lime_table(game: Game, n: int, rng: np.random.Generator) -> FloatArray:
    """`LimeTabularExplainer` with its defaults: as many rows as the game asks for n masks."""
    from lime.lime_tabular import LimeTabularExplainer

    row = _row(game)
    codes = _Codes(words={j: sorted(set(row.table[name])) for j, name in _word_columns(row.table)})

    def predict(numbers: FloatArray) -> FloatArray:
        scores = row(codes.decoded(numbers, row.table))
        return np.stack([1 - scores, scores], axis=1)

    explainer = LimeTabularExplainer(
        codes.encoded(row.table),
        categorical_features=list(codes.words),
        categorical_names=codes.words,
        random_state=int(rng.integers(2**31)),
    )
    itself = codes.encoded(row.own)[0]
    found = explainer.explain_instance(
        itself, predict, num_features=game.n_features, num_samples=n * row.per_mask
    )
    values = np.zeros(game.n_features)
    for feature, weight in found.as_map()[1]:
        values[feature] = weight
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class _Codes:
    """Numbers in place of words, which lime's tables cannot have."""

    words: dict[int, list[Any]]  # by column: the word of each number

    def encoded(self, frame: pd.DataFrame) -> FloatArray:
        """A frame as numbers, (n, columns)."""
        columns = [
            [self.words[j].index(value) for value in frame[name]]
            if j in self.words
            else frame[name]
            for j, name in enumerate(frame.columns)
        ]
        return np.array(columns, dtype=np.float64).T

    def decoded(self, numbers: FloatArray, table: pd.DataFrame) -> pd.DataFrame:
        """Numbers, (n, columns), as a frame like the table."""
        frame = table.iloc[:0].reindex(range(len(numbers)))
        for j, name in enumerate(frame.columns):
            values = numbers[:, j]
            frame[name] = [self.words[j][int(k)] for k in values] if j in self.words else values
        return frame


def _row(game: Game) -> TableRow:
    """The row of a game about the columns of a table."""
    if game.row is None:
        raise ValueError("`game` must be about a row of a table; its features are not columns.")
    return game.row


def _word_columns(table: Any) -> list[tuple[int, str]]:
    """Numbers and names of the columns that do not hold numbers."""
    return [(j, name) for j, name in enumerate(table) if table[name].dtype.kind not in "iufb"]


def rise(game: Game, n: int, rng: np.random.Generator) -> FloatArray:
    """The mean score of the masks that show a feature (Petsiuk et al. 2018), on features.

    Minus the mean score of all masks, which changes no order and makes the sign mean something.
    """
    masks = rng.integers(0, 2, size=(n, game.n_features)).astype(np.float64)
    scores = game(masks)
    shown = np.maximum(masks.sum(axis=0), 1)
    return np.asarray((scores @ masks) / shown - scores.mean())


def random(game: Game, n: int, rng: np.random.Generator) -> FloatArray:
    """Normal numbers: the bottom of every table."""
    return rng.standard_normal(game.n_features)


def oracle(game: Game, n: int, rng: np.random.Generator) -> FloatArray:
    """Slopes of lime's weighted line through all 2^p masks: no sampling error."""
    return ours("lime", "exhaustive", game, n, rng)


def oracle_shapley(game: Game, n: int, rng: np.random.Generator) -> FloatArray:
    """The Shapley values, from all 2^p masks."""
    p = game.n_features
    masks = exhaustive(rng, 0, p)
    scores = game(masks)
    size = masks.sum(axis=1).astype(np.intp)
    weight = np.array([1.0 / (p * _choose(p - 1, k)) for k in range(p)])
    numbers = np.arange(2**p)
    values = np.empty(p)
    for j in range(p):
        without = numbers[masks[:, j] == 0]
        gain = scores[without + 2**j] - scores[without]
        values[j] = (weight[size[without]] * gain).sum()
    return values


def _choose(n: int, k: int) -> float:
    """The binomial coefficient."""
    return float(np.prod(np.arange(n - k + 1, n + 1) / np.arange(1, k + 1)))


# name -> (function, package that it needs)
CONTESTANTS: dict[str, tuple[Contestant, str | None]] = {
    "eblime": (partial(ours, "eblime", paired), None),
    "quadrature": (partial(ours, "quadrature", paired), None),
    "quadrature+adaptive": (partial(ours, "quadrature", "adaptive"), None),
    "bayesshap": (partial(ours, "bayesshap", "leverage"), None),
    "eblime-table": (eblime_table, None),
    "lime": (lime, "lime"),
    "lime-table": (lime_table, "lime"),
    "shap": (kernel_shap, "shap"),
    "captum-lime": (partial(captum, "Lime"), "captum"),
    "captum-shap": (partial(captum, "KernelShap"), "captum"),
    "rise": (rise, None),
    "random": (random, None),
    "oracle": (oracle, None),
    "oracle-shapley": (oracle_shapley, None),
}
MOST_ORACLE = min(13, MOST_EXHAUSTIVE)  # features for which all masks are asked


def applies(name: str, game: Game) -> bool:
    """Whether a contestant can explain a game: rows need a table, oracles few features."""
    if name.endswith("-table"):
        return game.row is not None
    return not name.startswith("oracle") or game.n_features <= MOST_ORACLE


def missing_package(name: str) -> str | None:
    """The package that a contestant needs and that is not installed; None if there is none."""
    package = CONTESTANTS[name][1]
    return package if package is not None and find_spec(package) is None else None


def available(names: Sequence[str]) -> list[str]:
    """Those of the contestants whose packages are installed; warns about the others."""
    found = []
    for name in names:
        package = missing_package(name)
        if package is None:
            found.append(name)
        else:
            warnings.warn(
                f"{name!r} is left out: it needs {package}, which is not installed.", stacklevel=3
            )
    return found
