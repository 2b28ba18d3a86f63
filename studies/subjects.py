"""What the league of faithfulness explains: real inputs and models, as games."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import eblime
from eblime._types import FloatArray, IntArray
from eblime.domains.image.scene import ImageScene, read_image
from eblime.domains.text import read_text
from studies.data.faulty_parts import faulty_parts
from studies.data.photos import photo_classifier
from studies.data.tabular import table_and_forest
from studies.games import Game, TableRow

__all__ = [
    "SIGNALS",
    "SUBJECTS",
    "LeagueSubject",
    "image_subject",
    "row_subject",
    "text_subject",
]

_IMAGES = 8  # in one model call
_REFERENCE = 10  # rows of the background that stand for a hidden column
_PERTURBED = 50  # rows whose values are used for prediction gaps


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeagueSubject:
    """One input with its model, and what is known about it."""

    kind: str  # "image", "table", "text" or "signal"
    game: Game
    nearby: Callable[[np.random.Generator], Game] | None = None  # the game of an input close by
    labels: NDArray[np.intp] | None = None  # (H, W) the feature of each pixel
    region: NDArray[np.bool_] | None = None  # (H, W) where the defect is
    predict: Callable[[IntArray], FloatArray] | None = None  # scores with some columns perturbed


def image_subject(
    model: Any,
    image: NDArray[np.uint8],
    *,
    superpixels: int,
    target: int | None = None,
    region: NDArray[np.bool_] | None = None,
    noise: int = 5,
) -> LeagueSubject:
    """An image cut by SLIC; a hidden superpixel shows its mean colour.

    An image close by has noise that is uniform on -noise .. noise grey levels, and the same
    superpixels. The target None is the highest output.
    """
    compactness = 100.0 if image.ndim == 2 else 10.0  # grey scans have speckle
    cut: Any = ("slic", {"n_segments": superpixels, "compactness": compactness})
    scene = read_image(image, segmentation=cut, hide="mean")
    column = int(np.argmax(np.asarray(model(image[None]))[0])) if target is None else target

    def nearby(rng: np.random.Generator) -> Game:
        added = image + rng.integers(-noise, noise + 1, size=image.shape)
        close = np.clip(added, 0, 255).astype(np.uint8)
        return _image_game(model, read_image(close, segmentation=scene.labels, hide="mean"), column)

    return LeagueSubject(
        kind="image",
        game=_image_game(model, scene, column),
        nearby=nearby,
        labels=scene.labels,
        region=region,
    )


def _image_game(model: Any, scene: ImageScene, target: int) -> Game:
    """The score of a class as a function of the superpixels that are shown."""
    renderer = scene.renderer()

    def score(masks: FloatArray) -> FloatArray:
        found = []
        for start in range(0, len(masks), _IMAGES):
            some = masks[start : start + _IMAGES]
            batch = scene.batch(len(some))
            renderer.render(some, batch)
            found.append(np.asarray(model(batch))[:, target])
        return np.concatenate(found)

    return Game(score=score, n_features=scene.n_features)


def row_subject(
    predict: Callable[[Any], FloatArray], table: Any, row: int, rng: np.random.Generator
) -> LeagueSubject:
    """A row of a pandas frame; a hidden column takes its values from ten rows of the table.

    The score of a mask is the mean over these rows, as for `shap.KernelExplainer`; it counts as one
    call. A row close by has its numbers moved by a normal step of 5 % of the column's standard
    deviation. `predict` returns the score of each row.
    """
    reference = table.iloc[rng.choice(len(table), _REFERENCE, replace=False)]
    others = table.iloc[rng.choice(len(table), _PERTURBED, replace=False)]
    own = table.iloc[[row]]
    numbers = [name for name in table.columns if table[name].dtype.kind in "iuf"]

    def nearby(rng: np.random.Generator) -> Game:
        moved = own.copy()
        for name in numbers:
            step = 0.05 * float(table[name].std()) * float(rng.standard_normal())
            moved[name] = moved[name].astype(float) + step
        return _row_game(predict, moved, reference, table)

    def perturbed(columns: IntArray) -> FloatArray:
        mask = np.ones((1, table.shape[1]))
        mask[0, columns] = 0
        return np.asarray(predict(_mix_rows(own, others, mask)))

    game = _row_game(predict, own, reference, table)
    return LeagueSubject(kind="table", game=game, nearby=nearby, predict=perturbed)


def _row_game(predict: Callable[[Any], FloatArray], own: Any, reference: Any, table: Any) -> Game:
    """The mean score over reference rows as a function of the columns that are kept."""

    def score(masks: FloatArray) -> FloatArray:
        scores = np.asarray(predict(_mix_rows(own, reference, masks)), dtype=np.float64)
        return np.asarray(scores.reshape(len(masks), len(reference)).mean(axis=1))

    row = TableRow(own=own, table=table, predict=predict, per_mask=len(reference))
    return Game(score=score, n_features=own.shape[1], row=row)


def _mix_rows(own: Any, reference: Any, masks: FloatArray) -> Any:
    """All reference rows for each mask, with the row's own values in the columns that are shown."""
    import pandas as pd

    n, m = len(masks), len(reference)
    columns = {}
    for j, name in enumerate(own.columns):
        other = np.tile(reference[name].to_numpy(), n)
        shown = np.repeat(masks[:, j] > 0.5, m)
        columns[name] = np.where(shown, own[name].to_numpy()[0], other)
    return pd.DataFrame(columns)


def text_subject(predict: Callable[[list[str]], FloatArray], text: str) -> LeagueSubject:
    """A text by its words; hidden words are removed. `predict` returns the score of each text."""
    scene = read_text(text)

    def score(masks: FloatArray) -> FloatArray:
        return np.asarray(predict(scene.inputs(masks)))

    return LeagueSubject(kind="text", game=Game(score=score, n_features=scene.n_features))


def _photo(number: int) -> LeagueSubject:
    """A photo with EfficientNet-Lite0; its most likely class is explained."""
    from studies.data.photos import photo_set, read_square

    image = read_square(photo_set("mixed")[number].path)
    return image_subject(photo_classifier(), image, superpixels=30)


def _stored(number: int) -> LeagueSubject:
    """A photo with stored answers to all masks."""
    from studies.data.stored import stored_photos
    from studies.games import AnswerTable

    table = AnswerTable(scores=stored_photos()[number])
    return LeagueSubject(kind="image", game=Game(score=table.look_up, n_features=table.n_features))


def _part(dataset: str) -> Callable[[int], LeagueSubject]:
    """A function that loads a faulty part with its defect; drilled holes take turns."""

    def load(number: int) -> LeagueSubject:
        order = np.arange(192).reshape(8, 24).T.ravel() if dataset == "drilled" else None
        found = faulty_parts(dataset).part(number if order is None else int(order[number]))
        return image_subject(
            found.model, found.image, superpixels=40, target=1, region=found.defect
        )

    return load


def _row(name: str) -> Callable[[int], LeagueSubject]:
    """A function that loads a row that the forest was not trained on; the class is the second."""

    def load(number: int) -> LeagueSubject:
        table, model, rows = table_and_forest(name)
        rng = np.random.default_rng([7, number])
        return row_subject(
            lambda frame: model.predict_proba(frame)[:, 1], table.data, int(rows[number]), rng
        )

    return load


@lru_cache(maxsize=1)
def _sentiment() -> tuple[Any, list[str]]:
    """Logistic regression on TF-IDF of four fifths of rt-polarity, and texts of the rest."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    from studies.data.text import rt_polarity

    texts, labels = rt_polarity()
    order = np.random.default_rng(0).permutation(len(texts))
    train, rest = order[: len(order) * 4 // 5], order[len(order) * 4 // 5 :]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000))
    model.fit([texts[k] for k in train], [labels[k] for k in train])
    return model, [texts[k] for k in rest if 8 <= len(set(texts[k].split())) <= 30]


def _text(number: int) -> LeagueSubject:
    """A sentence of 8 to 30 words, explained for the class that is predicted."""
    model, texts = _sentiment()
    column = int(np.argmax(model.predict_proba([texts[number]])[0]))
    return text_subject(lambda some: model.predict_proba(some)[:, column], texts[number])


@lru_cache(maxsize=1)
def _signals(name: str) -> tuple[Any, Any]:
    """A classifier trained on a data set of aeon, and signals (n, C, T) that it has not seen."""
    try:
        from aeon import datasets
        from aeon.classification import convolution_based
    except ImportError as error:
        raise ImportError("signals of aeon need it: pip install aeon") from error
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    data, _, kind = name.rpartition(" ")
    load = datasets.load_gunpoint if data == "GunPoint" else datasets.load_basic_motions
    regression = make_pipeline(StandardScaler(), LogisticRegression())  # has probabilities
    kernels = 500 if kind == "Rocket" else 2000  # Rocket's take longer
    settings = {"n_kernels": kernels, "estimator": regression, "random_state": 0}
    model = getattr(convolution_based, f"{kind}Classifier")(**settings)
    signals, classes = load(split="train")
    return model.fit(signals, classes), load(split="test")[0]


def _signal(name: str, cut: Any) -> Callable[[int], LeagueSubject]:
    """A function that loads a signal; the class that is predicted is explained."""

    def load(number: int) -> LeagueSubject:
        model, signals = _signals(name.removesuffix(", cells"))
        order = np.random.default_rng(0).permutation(len(signals))
        explainer = eblime.SignalExplainer(model, cut, progress=False)
        played = eblime.game(model, signals[order[number]], explainer=explainer)
        return LeagueSubject(kind="signal", game=Game(score=played, n_features=played.n_players))

    return load


# signals of aeon with its classifiers, by windows of all channels, or by windows of each channel
_CUTS = {
    "GunPoint": ("windows", {"n": 20}),
    "BasicMotions": ("windows", {"n": 20}),
    "BasicMotions, cells": ("cells", {"n": 5}),
}
SIGNALS = {
    f"{data.split(',')[0]} {kind}{', cells' if ',' in data else ''}": cut
    for data, cut in _CUTS.items()
    for kind in ("Rocket", "MiniRocket")
}

# name -> how to load an input by its number
SUBJECTS: dict[str, Callable[[int], LeagueSubject]] = {
    "photos": _photo,
    "stored-photos": _stored,
    "tiles": _part("tiles"),
    "drilled": _part("drilled"),
    "german": _row("german"),
    "compas": _row("compas"),
    "rt-polarity": _text,
    **{name: _signal(name, cut) for name, cut in SIGNALS.items()},
}
