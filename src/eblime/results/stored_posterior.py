"""The posterior in a file: what is stored of it, and how it is read back.

A method that every reader has is fitted again, and the result is compared with a summary. For any
other method, draws are stored and the posterior is rebuilt from them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._field_checks import number
from eblime._warn import warn_user
from eblime.answers import Answers
from eblime.core.draws import Draws, DrawsLaw
from eblime.core.fit_quality import score_range
from eblime.core.point import PointMass, PointValue
from eblime.methods.regression import fit_each, with_all_masks
from eblime.posterior import Posterior
from eblime.protocols import Law, Method
from eblime.results.explanation import Explanation
from eblime.results.generator import generator_in

__all__ = ["StoredMethod", "read_posterior", "stored_draws", "summarise"]

_DRAWS = 4_000  # stored for methods that a reader may not have
_NEAR = 1e-6  # of a standard deviation, by which a refit may differ


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoredMethod:
    """A placeholder for a method that this installation does not have."""

    name: str

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """Refused: the method is not installed."""
        raise ValueError(
            f"{self.name} is not installed here; its posterior was rebuilt from stored draws. "
            "Choose another method, or install the package that provides it."
        )


def summarise(post: Posterior, *, ours: bool) -> dict[str, Any]:
    """The numbers that a refit is compared with, and that replace it if the method is unknown.

    `ours` says whether every installation of eblime has the method.
    """
    found: dict[str, Any] = {"name": post.method, "estimand": post.estimand, "mean": post.mean}
    found |= {"r2": post.r2, "ess": post.ess, "intercept": post.intercept}
    if not ours:  # a reader who has the method computes it again
        found["r2_held_out"] = post.r2_held_out
    return found | ({"sd": post.sd} if post.has_spread else {})


def stored_draws(explanation: Explanation, *, ours: bool) -> NDArray[Any] | None:
    """Draws that a reader needs: the method may be missing there, or its draws be lost."""
    post = explanation.posterior
    if not post.has_spread:
        return None
    if isinstance(post.law, DrawsLaw) and (explanation.generator is None or not ours):
        return post.law.draws.beta
    return None if ours else post.sample(_DRAWS, rng=0).astype(np.float32)


def read_posterior(
    method: Method | None,
    answers: Answers,
    summary: Mapping[str, Any],
    *,
    draws: NDArray[Any] | None,
    generator: Mapping[str, Any] | None,
    exhaustive: bool,
) -> Posterior:
    """The posterior of a file.

    Parameters
    ----------
    method
        The method of the file; None if it is not installed.
    answers
        The answers of the file.
    summary, draws
        What `summarise` and `stored_draws` returned.
    generator
        State of the generator before the fit; None if it was not stored.
    exhaustive
        Whether all masks were asked.
    """
    if method is None:
        return _rebuilt(answers, summary, draws)
    posterior = fit_each(method, generator_in(generator), [answers], exhaustive=exhaustive)[0]
    if draws is not None and generator is None and isinstance(posterior.law, DrawsLaw):
        known = DrawsLaw(draws=Draws(beta=draws), source=posterior.law.source)
        posterior = dataclasses.replace(posterior, law=known, r2=float(summary["r2"]))
        posterior = with_all_masks(posterior, answers) if exhaustive else posterior
    _compare(posterior, summary)
    return posterior


def _compare(posterior: Posterior, summary: Mapping[str, Any]) -> None:
    """Warn if a refit gives other importances than those of the file."""
    largest = np.abs(summary["mean"]).max()
    gap = np.abs(posterior.mean - summary["mean"])
    if not (gap <= _NEAR * (summary.get("sd", largest) + largest) + 1e-300).all():
        warn_user(
            "Fitting the stored answers again gives other importances than when the file was "
            f"written (largest difference {gap.max():.3g}): this version of eblime computes "
            f"{posterior.method} differently."
        )


def _rebuilt(answers: Answers, summary: Mapping[str, Any], draws: NDArray[Any] | None) -> Posterior:
    """The posterior of a method that is not installed."""
    law: Law
    if draws is None:
        law = PointMass(mean=np.asarray(summary["mean"], dtype=float), method=summary["name"])
    else:
        law = DrawsLaw(draws=Draws(beta=np.asarray(draws, dtype=np.float64)))
    return Posterior(
        law=law,
        estimand=summary["estimand"],
        method=summary["name"],
        n_masks=answers.n_masks,
        r2=float(summary["r2"]),
        held_out=_known_r2(summary.get("r2_held_out")),
        score_range=score_range(answers.scores, answers.weights),
        ess=float(summary["ess"]),
        extras={"intercept": PointValue(value=float(summary["intercept"]))},
    )


def _known_r2(value: Any) -> float | None:
    """A held-out R^2 of a file, checked."""
    if value is not None and not number(high=1.0, nan=True).holds(value):
        raise ValueError(f"`r2_held_out` must be a number <= 1 or null; got {value!r:.40}")
    return None if value is None else float(value)
