"""A prediction as a cooperative game: a function from coalitions of features to scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eblime._checks import as_floats, check_count
from eblime._types import FloatArray
from eblime.domains.record import Domain
from eblime.engine.drive import answer
from eblime.engine.questions import Question, Reply
from eblime.engine.targets import check_targets
from eblime.explainers.choice import explainer_class
from eblime.scores import Target

__all__ = ["PLAYERS", "Game", "game", "stored_game"]


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Game:
    """A function from coalitions, (n, p) of True and False, to scores, (n,).

    A player is a feature of the input; a coalition shows its players and hides the others. Answers
    are kept: a coalition is asked once. `eblime.game` makes one, and `stored_game` one that knows
    its values.

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

    players: Sequence[str]  # names
    known: dict[bytes, float] = field(default_factory=dict)  # by coalition, packed into bits
    ask: Callable[[FloatArray, Reply | None], Reply] | None = None  # None if the values are stored
    calls: int = 0  # inputs that the model was asked about
    opening: Reply | None = None  # the first reply

    @property
    def n_players(self) -> int:
        """Number of players: the features of the input."""
        return len(self.players)

    def __call__(self, coalitions: ArrayLike) -> FloatArray:
        """Scores of coalitions, (n, p) or one of (p,); only those not yet known are asked."""
        masks = np.atleast_2d(as_floats("coalitions", coalitions))
        if masks.shape[1:] != (self.n_players,) or not np.isin(masks, (0, 1)).all():
            raise ValueError(
                f"`coalitions` must be True or False with shape (n, {self.n_players}); got shape "
                f"{masks.shape}."
            )
        keys = _keys(masks)
        unknown = {key: k for k, key in enumerate(keys) if key not in self.known}
        rows = sorted(unknown.values())
        if rows and self.ask is not None:
            reply = self.ask(masks[rows], self.opening)
            self.calls += reply.calls
            self.opening = self.opening or reply
            self.known.update(
                zip((keys[k] for k in rows), reply.scores[:, 0].tolist(), strict=True)
            )
        return np.array([self.known[key] for key in keys])

    def __repr__(self) -> str:
        """One line: how many players, and the model calls so far or the stored values."""
        count = f"n_values={len(self.known)}" if self.ask is None else f"calls={self.calls}"
        return f"Game(n_players={self.n_players}, {count})"


def game(
    model: Any, x: Any, *, explainer: Any = None, target: Target = None, **settings: Any
) -> Game:
    """A prediction as a cooperative game: a function from coalitions of features to scores.

    shapiq's approximators take it as their game. Coalitions are scored in batches like the masks of
    an explanation. Each is asked once; `calls` counts the inputs that the model was asked about.

    Parameters
    ----------
    model
        Anything that scores a batch of inputs; see `as_model`.
    x
        The input: a text, an image, or with `background` a row of a table.
    explainer
        An explainer whose settings are used. None chooses one by the input and the settings, as
        `compare` does.
    target
        Column number or label of the model's output; None is the highest for the input itself.
    settings
        Settings of the explainer, such as `segmentation`, `hide` and `cache`.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> shout = lambda texts: [float(t.isupper()) for t in texts]
    >>> played = eblime.game(shout, "ALL IS well")
    >>> played(np.array([[True, True, True], [True, True, False]]))
    array([0., 1.])
    >>> played.n_players, played.calls
    (3, 2)
    """
    kind = explainer_class(model, x, explainer, settings)
    given = {"model": model, **settings}
    chosen = kind(**given) if explainer is None else replace(explainer, **given)
    loop = chosen.loop
    targets = 1 if target is None else [target]
    check_targets(targets, loop.labels)
    subject = chosen.subject(x)
    if not subject.neighbourhood(np.random.default_rng(0)).exact:
        raise ValueError(
            "`x` must be an input that its mask decides; an input of the domain "
            f"{chosen.domain!r} has many for a mask."
        )

    def ask(masks: FloatArray, opening: Reply | None) -> Reply:
        rng = np.random.default_rng(0)
        question = Question(
            settings=loop,
            scene=subject.scene,
            neighbourhood=subject.neighbourhood(rng).extend(rng, masks),
            targets=targets,
            opening=opening,
        )
        return answer(question)

    return Game(players=subject.scene.features, ask=ask)


def stored_game(values: ArrayLike) -> Game:
    """A game from stored values, which serves as a model.

    Parameters
    ----------
    values
        The values of all 2^p coalitions in counting order, the first player the lowest bit.

    Examples
    --------
    The game of three players that is worth 1 if the first two take part:

    >>> import eblime
    >>> from eblime.games import PLAYERS, stored_game
    >>> both = stored_game([0, 0, 0, 1, 0, 0, 0, 1])
    >>> both([[True, True, False], [True, False, True]])
    array([1., 0.])
    >>> method = eblime.Quadrature(index="shapley")
    >>> eblime.Explainer(both, PLAYERS, method=method).explain(both).posterior.mean.round(3)
    array([0.5, 0.5, 0. ])
    """
    table = as_floats("values", values)
    p = table.size.bit_length() - 1
    if p < 1 or table.shape != (2**p,) or not np.isfinite(table).all():
        raise ValueError(
            f"`values` must be 2^p finite numbers, one for each coalition; got shape {table.shape}."
        )
    masks = np.arange(2**p)[:, None] >> np.arange(p) & 1
    known = dict(zip(_keys(masks), table.tolist(), strict=True))
    return Game(players=_numbered(p), known=known)


def _keys(masks: np.ndarray) -> list[bytes]:
    return [row.tobytes() for row in np.packbits(masks > 0, axis=1)]


def _numbered(p: int) -> list[str]:
    return [f"player {j}" for j in range(p)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayersScene:
    """The players by name; the model gets masks of zeros and ones."""

    features: Sequence[str]

    domain = "players"
    sizes = (4096,)  # batch sizes worth trying

    @property
    def n_features(self) -> int:
        """Number of players."""
        return len(self.features)

    def inputs(self, masks: FloatArray) -> FloatArray:
        """The masks themselves."""
        return masks


def read_players(x: object) -> PlayersScene:
    """The players of a game with an attribute `players`, by their names, or by their number."""
    found = getattr(x, "players", x)
    if isinstance(found, (int, np.integer)):
        check_count("x", found)  # type: ignore[arg-type]  # NumPy integers are checked too
        found = _numbered(int(found))
    if not isinstance(found, (list, tuple)) or not found:
        raise TypeError(
            "`x` must be a game with `players`, a list of their names, or their number; got "
            f"{x!r:.60}."
        )
    return PlayersScene(features=tuple(map(str, found)))


PLAYERS = Domain(
    name="players", feature="player", scene=PlayersScene, read=read_players, design="orthogonal"
)
