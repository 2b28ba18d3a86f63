"""`fit`: the regression alone, for masks and scores that you already have."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eblime import registry
from eblime._checks import as_generator, check_masks, check_scores, check_weights
from eblime._threads import few_threads
from eblime._types import RNGLike
from eblime.answers import Answers
from eblime.posterior import Posterior
from eblime.protocols import Method

_MOST_WORK = 3e8  # multiplications of a fit that nobody waits for, roughly


def as_method(method: str | Method) -> Method:
    """The method of that name, or the object itself."""
    if isinstance(method, str):
        return registry.find("methods", method)()
    if isinstance(method, type) or not isinstance(method, Method):
        known = ", ".join(repr(name) for name in registry.names("methods"))
        raise TypeError(
            f"`method` must be one of {known} or an object such as EBLIME(); got {method!r}."
        )
    return method


def fit_each(
    method: Method, rng: np.random.Generator, answers: Sequence[Answers]
) -> tuple[Posterior, ...]:
    """Fit several targets; each gets the numbers that it would get alone, to the last bit.

    Every fit of the library passes here, and limits the threads of linear algebra. Features that
    are fixed are left out, and have importance zero. The targets may be of several inputs if the
    method says that it draws nothing (`fits_together`).
    """
    if any(target.n_masks < 2 for target in answers):
        raise ValueError("A fit needs at least 2 masks; got 1. One score says nothing.")
    varying, together = [target.varying for target in answers], fits_together(method)
    n, p = varying[0].masks.shape
    with few_threads(float(n) * p * min(n, p)):
        if together is not None:
            fitted = together(varying)
        else:
            streams = [*(deepcopy(rng) for _ in answers[1:]), rng]
            fitted = [method.fit(*pair) for pair in zip(streams, varying, strict=True)]
    pairs = zip(fitted, answers, strict=True)
    return tuple(posterior.with_fixed(target.fixed) for posterior, target in pairs)


def fits_together(method: Any) -> Callable[[Sequence[Answers]], Sequence[Posterior]] | None:
    """What fits several targets of one or several inputs at once; None if each is fitted alone."""
    return method.fit_targets if getattr(method, "fits_together", False) else None


def is_quick(method: Method, answers: Answers) -> bool:
    """Whether a fit takes a second or so, by the number of masks, features and draws.

    A method with a limit on its masks (`most_masks`) solves a system with one row per mask, unless
    it has all of them.
    """
    n, p = answers.n_masks, answers.n_varying
    work = 1e5 * p + 40.0 * p**2 + 50.0 * p * _sum_of_counts(method)  # p^2: of ranking draws
    if getattr(method, "most_masks", None) is None:
        work += n * p * min(n, p)
    elif n != 2.0**p or answers.noisy:
        work += n**2 * (3 * n + 10 * p) + 300 * p**2
    return bool(work <= _MOST_WORK)


def _sum_of_counts(settings: object) -> int:
    """The sum of all whole numbers among settings, such as numbers of draws."""
    if dataclasses.is_dataclass(settings):
        fields = dataclasses.fields(settings)
        return sum(_sum_of_counts(getattr(settings, field.name)) for field in fields)
    return abs(settings) if type(settings) is int else 0


def fit(
    masks: ArrayLike,
    scores: ArrayLike,
    weights: ArrayLike | None = None,
    method: str | Method = "eblime",
    *,
    rng: RNGLike = 0,
) -> Posterior:
    """Importances with intervals, from N masks and the model's scores of them.

    Parameters
    ----------
    masks
        Shape (N, p): 1 where a feature is shown, 0 where it is hidden. Other numbers are taken as
        they are, such as standardised values of columns.
    scores
        Shape (N,): the model's score of each mask. `methods.fit_targets` takes several targets.
    weights
        Shape (N,): how much each mask counts, such as its closeness to the input; all ones if None.
        "quadrature" needs none: it has a kernel of its own.
    method
        "eblime", "eblime-ridge", "eblime-paper", "bayeslime", "baylime", "bayesshap", "lime",
        "quadrature", or an object such as `EBLIME(scale=2.0)`.
    rng
        Seed or generator for the methods that draw; the exact ones ignore it.

    Returns
    -------
    Posterior
        Mean, intervals, probabilities, rankings and draws of the importances.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rng = np.random.default_rng(0)
    >>> masks = rng.integers(0, 2, size=(60, 3))
    >>> scores = 0.5 * masks[:, 0] - 0.2 * masks[:, 2] + 0.05 * rng.normal(size=60)
    >>> post = eblime.fit(masks, scores)
    >>> post.interval(0.95).round(2)
    array([[ 0.46,  0.51],
           [-0.03,  0.02],
           [-0.24, -0.18]])
    """
    return _fit(masks, scores, weights, method, rng, ndim=1)[0]


def fit_targets(
    masks: ArrayLike,
    scores: ArrayLike,
    weights: ArrayLike | None = None,
    method: str | Method = "eblime",
    *,
    rng: RNGLike = 0,
) -> tuple[Posterior, ...]:
    """Posteriors of several targets, scores of shape (N, T), from one decomposition of the masks.

    Parameters and method names are those of `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> masks = np.random.default_rng(0).integers(0, 2, size=(50, 3))
    >>> scores = masks @ np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    >>> first, second = eblime.methods.fit_targets(masks, scores)
    >>> first.mean.round(2) + 0.0, second.mean.round(2) + 0.0
    (array([1., 0., 0.]), array([0., 2., 0.]))
    """
    return _fit(masks, scores, weights, method, rng, ndim=2)


def _fit(
    masks: Any, scores: Any, weights: Any, method: Any, rng: RNGLike, *, ndim: int
) -> tuple[Posterior, ...]:
    """Check and fit the answers; a method may refuse weights that contradict its own."""
    checked = check_masks(masks)
    columns = np.atleast_2d(check_scores(scores, len(checked), ndim=ndim).T)
    near = check_weights(weights, len(checked))
    answers = [Answers(masks=checked, scores=column, weights=near) for column in columns]
    chosen = as_method(method)
    check = getattr(chosen, "check_weights", None)
    if weights is not None and check is not None:
        check(checked, near)
    return fit_each(chosen, as_generator(rng), answers)
