"""`game`: a prediction as a cooperative game, for other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from eblime.engine.calls import CacheLike
from eblime.engine.game import Game
from eblime.engine.targets import Target, check_targets
from eblime.explainers.base import BaseExplainer
from eblime.explainers.image import ImageExplainer
from eblime.explainers.text import TextExplainer

__all__ = ["game"]


def game(
    model: Any,
    x: Any,
    *,
    explainer: Any = None,
    target: Target = None,
    cache: CacheLike = None,
    **settings: Any,
) -> Game:
    """A prediction as a cooperative game: a function from coalitions of features to scores.

    shapiq's approximators take it as their game. Coalitions are scored in batches like the masks of
    an explanation. Each is asked once; `calls` counts the inputs that the model was asked about.

    Parameters
    ----------
    model
        Anything that scores a batch of inputs; see `as_model`.
    x
        The input: a text, or an image.
    explainer
        `ImageExplainer`, `TextExplainer` or another class of explainers; or an explainer, whose
        settings are used. None chooses by the input. For a row of a table a mask does not decide
        the input, and there is no game.
    target
        Column number or label of the model's output; None is the highest for the input itself.
    cache
        As for `ImageExplainer`.
    settings
        Settings of the explainer, such as `segmentation` and `hide`.

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
    chosen = _explainer(model, x, explainer, settings)
    loop = chosen.loop
    targets = 1 if target is None else [target]
    check_targets(targets, loop.labels)
    subject = chosen.subject(x)
    if not subject.neighbourhood(np.random.default_rng(0)).exact:
        raise _no_game(chosen.domain)
    calls = loop.calls.merge(None, cache)
    return Game(settings=replace(loop, calls=calls), subject=subject, target=target)


def _explainer(model: Any, x: Any, explainer: Any, settings: dict[str, Any]) -> BaseExplainer:
    """The explainer that reads the input."""
    if isinstance(explainer, BaseExplainer):
        return replace(explainer, model=model, **settings)  # type: ignore[type-var]
    made = _class_for(x, settings) if explainer is None else explainer
    if not (isinstance(made, type) and issubclass(made, BaseExplainer)):
        raise TypeError(
            f"`explainer` must be an explainer or a class such as ImageExplainer; got {made!r:.60}."
        )
    maker: Any = made
    found: BaseExplainer = maker(model, **settings)
    return found


def _class_for(x: Any, settings: Mapping[str, Any]) -> type[BaseExplainer]:
    """The explainer for an input: texts are strings, and arrays with two or more axes images."""
    if isinstance(x, str):
        return TextExplainer
    is_row = isinstance(x, (Mapping, list)) or getattr(x, "ndim", None) == 1
    if is_row or "background" in settings:
        raise _no_game("tabular")
    return ImageExplainer


def _no_game(domain: str) -> ValueError:
    """The error for an input whose hidden features are filled in by chance."""
    return ValueError(
        f"`x` must be an input that its mask decides; an input of the domain {domain!r} has many "
        "for a mask. Use Explanation.to_shapiq, or an imputer of shapiq."
    )
