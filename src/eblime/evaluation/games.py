"""A game: the score of a model as a function of which features are shown.

Every study that compares methods asks a game. All methods then see the same features, the same
hidden versions and the same model, and differ in the masks that they ask and in what they make of
the answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from eblime._types import FloatArray
from eblime.domains.players import PLAYERS
from eblime.explainers.general import Explainer

__all__ = ["Game", "TableRow", "game_explainer"]

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


def game_explainer(score: Callable[[FloatArray], FloatArray], **settings: Any) -> Explainer:
    """An explainer of games; the input of `explain` is the number of features.

    Examples
    --------
    >>> ask = game_explainer(lambda masks: masks @ [1.0, 2.0, 0.0], n_masks=8, method="lime")
    >>> ask.explain(3).posterior.mean.round(2)
    array([1., 2., 0.])
    """
    return Explainer(score, PLAYERS, **{"design": "bernoulli", "progress": False, **settings})
