"""A prediction as a cooperative game: from coalitions of features to scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from eblime._checks import check_coalitions
from eblime._types import FloatArray
from eblime.engine.loop import reply_from
from eblime.engine.plan import Reply
from eblime.engine.settings import LoopSettings, Question
from eblime.models.adapt import has_ranked_outputs
from eblime.protocols import Subject

__all__ = ["Game"]


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Game:
    """A function from coalitions, (n, p) of True and False, to scores, (n,).

    A player is a feature of the input; a coalition shows its players and hides the others. Answers
    are kept: a coalition is asked once. `eblime.game` makes one.

    Examples
    --------
    >>> import eblime
    >>> played = eblime.game(lambda texts: [float(t.isupper()) for t in texts], "ALL IS well")
    >>> played.players
    ["word 'ALL'", "word 'IS'", "word 'well'"]
    >>> played([True, True, False])
    array([1.])
    >>> played
    Game(n_players=3, calls=2)
    """

    settings: LoopSettings
    subject: Subject
    target: int | str | None = None  # output; None is the highest for the input itself
    calls: int = 0  # inputs that the model was asked about
    _opening: Reply | None = field(default=None, init=False)
    _known: dict[bytes, float] = field(default_factory=dict, init=False)

    @property
    def n_players(self) -> int:
        """Number of players: the features of the input."""
        return self.subject.scene.n_features

    @property
    def players(self) -> Sequence[str]:
        """Names of the players."""
        return self.subject.scene.features

    def __call__(self, coalitions: ArrayLike) -> FloatArray:
        """Scores of coalitions, (n, p) or one of (p,); only those not yet known are asked."""
        masks = check_coalitions(coalitions, self.n_players)
        keys = [row.tobytes() for row in np.packbits(masks > 0, axis=1)]
        unknown = {key: k for k, key in enumerate(keys) if key not in self._known}
        if unknown:
            rows = sorted(unknown.values())
            scores = self._ask(masks[rows])
            self._known.update({keys[k]: float(s) for k, s in zip(rows, scores, strict=True)})
        return np.array([self._known[key] for key in keys])

    def _ask(self, masks: FloatArray) -> FloatArray:
        """Scores of masks that are all different, from the model or its cache."""
        rng = np.random.default_rng(0)
        question = Question(
            neighbourhood=self.subject.neighbourhood(rng).extend(rng, masks),
            rows=np.arange(len(masks)),
            targets=1 if self.target is None else [self.target],
            labels=self.settings.labels,
            ranked=has_ranked_outputs(self.settings.model),
            opening=self._opening,
        )
        reply = reply_from(self.settings, self.subject, question)
        self.calls += reply.calls
        self._opening = self._opening or reply
        return np.asarray(reply.scores[:, 0])

    def __repr__(self) -> str:
        """One line: how many players, and the model calls so far."""
        return f"Game(n_players={self.n_players}, calls={self.calls})"
