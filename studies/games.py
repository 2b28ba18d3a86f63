"""A game: the score of a model as a function of which features are shown.

Every study that compares methods asks a game. All methods then see the same features, the same
hidden versions and the same model, and differ in the masks that they ask and in what they make of
the answers. With at most 13 features there are 8,192 masks: an `AnswerTable` has the scores of all,
so that the truth is exact and no later study of sampling calls a model.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import eblime
from eblime._files import write_whole
from eblime._types import FloatArray
from eblime.designs.masks import bernoulli, exhaustive
from eblime.games import PLAYERS
from studies.data.files import cache_folder, digest

__all__ = ["AnswerTable", "Game", "TableRow", "ask_all_masks", "cached_answers", "game_explainer"]

_BATCH = 256  # masks in one call


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableRow:
    """A row of a table and a model of rows, for methods that draw rows instead of masks."""

    own: Any  # a pandas frame with the row
    table: Any  # a pandas frame, the background
    predict: Callable[[Any], FloatArray]  # the score of each row of a frame
    per_mask: int  # rows that the game asks for one mask
    asked: list[int] = field(default_factory=list)  # rows of each call

    def __call__(self, rows: Any) -> FloatArray:
        """Scores of rows, counted."""
        self.asked.append(len(rows))
        return np.asarray(self.predict(rows), dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Game:
    """A function from masks, (n, p), to scores, (n,). Answers are kept, and asked once.

    Examples
    --------
    >>> game = Game(score=lambda masks: masks @ [1.0, 2.0], n_features=2)
    >>> game(np.array([[1.0, 0.0], [1.0, 1.0]]))
    array([1., 3.])
    """

    score: Callable[[FloatArray], FloatArray]
    n_features: int
    row: TableRow | None = None  # where the features are the columns of a table
    known: dict[bytes, float] = field(default_factory=dict)  # answers by mask

    def __call__(self, masks: Any) -> FloatArray:
        """Scores of masks."""
        asked = np.asarray(masks, dtype=np.float64).reshape(-1, self.n_features)
        keys = [row.tobytes() for row in np.packbits(asked > 0.5, axis=1)]
        first = {key: k for k, key in enumerate(keys) if key not in self.known}
        rows = list(first.values())
        for start in range(0, len(rows), _BATCH):
            some = rows[start : start + _BATCH]
            scores = np.asarray(self.score(asked[some]), dtype=np.float64).ravel()
            self.known.update(zip((keys[k] for k in some), scores.tolist(), strict=True))
        return np.array([self.known[key] for key in keys])

    @property
    def full(self) -> float:
        """The score of the input itself."""
        return float(self(np.ones((1, self.n_features)))[0])

    @property
    def calls(self) -> int:
        """Different masks that were asked about; rows asked directly count by their share."""
        rows = 0 if self.row is None else sum(self.row.asked) / self.row.per_mask
        return len(self.known) + round(rows)

    def again(self) -> Game:
        """The same game with nothing asked yet; answers that this one knows cost no model call."""
        row = None if self.row is None else replace(self.row, asked=[])
        return Game(score=self, n_features=self.n_features, row=row)


def game_explainer(score: Callable[[FloatArray], FloatArray], **settings: Any) -> eblime.Explainer:
    """An explainer of games; the input of `explain` is the number of features.

    Examples
    --------
    >>> ask = game_explainer(lambda masks: masks @ [1.0, 2.0, 0.0], n_masks=8, method="lime")
    >>> ask.explain(3).posterior.mean.round(2)
    array([1., 2., 0.])
    """
    return eblime.Explainer(
        score, PLAYERS, **{"design": "bernoulli", "progress": False, **settings}
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnswerTable:
    """Scores of all 2^p masks; mask k shows feature j if bit j of k is set."""

    scores: FloatArray  # (2^p,)

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.scores).bit_length() - 1

    def whole(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """All masks, their scores and weights."""
        masks = exhaustive(np.random.default_rng(0), 0, self.n_features)
        return masks, self.scores, eblime.kernels.ExponentialKernel()(masks)

    def question(self, n: int) -> tuple[eblime.Explainer, int, int]:
        """An explainer that asks n masks of the table, its input and its target."""
        return game_explainer(self.look_up, n_masks=n), self.n_features, 0

    def look_up(self, masks: FloatArray) -> FloatArray:
        """Scores of masks, (n, p) -> (n,)."""
        numbers = (masks @ 2.0 ** np.arange(self.n_features)).astype(np.intp)
        return np.asarray(self.scores[numbers])

    def sample(self, rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """N random masks, drawn as in lime (each bit is a fair coin), their scores and weights."""
        masks = bernoulli(rng, n, self.n_features)
        return masks, self.look_up(masks), eblime.kernels.ExponentialKernel()(masks)


def ask_all_masks(
    model: Any, image: NDArray[Any], labels: NDArray[np.intp], target: int, hide: Any = 0
) -> AnswerTable:
    """Score every mask of an image with a model."""
    explainer = eblime.ImageExplainer(
        model,
        segmentation=labels,
        hide=hide,
        n_masks=2 ** (int(labels.max()) + 1),
        design="exhaustive",
        method="lime",
        progress=False,
    )
    return AnswerTable(scores=explainer.explain(image, target=target).scores)


def cached_answers(
    study: str, name: str, identity: Sequence[Any], ask: Callable[[], AnswerTable]
) -> AnswerTable:
    """Read a table from the cache folder; if it is missing, call `ask` and store the result.

    `identity` holds everything that the scores depend on: the image, its superpixels, the model's
    weights. A table is read only if all of it is the same.
    """
    path = cache_folder() / "answers" / study / f"{name}-{digest(*identity)[:12]}.npy"
    if path.exists():
        return AnswerTable(scores=np.load(path, allow_pickle=False))
    table = ask()
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    np.save(buffer, table.scores, allow_pickle=False)
    write_whole(path, buffer.getvalue())
    return table
