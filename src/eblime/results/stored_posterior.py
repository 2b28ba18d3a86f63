"""The posterior in a file: what is stored of it, and how it is read back.

A method that the reader has is fitted again, and the result is compared with a summary. If the
method is missing, or fitting it would take more than a few seconds, the posterior is rebuilt from
the summary, which has the exact table of the importances, and from draws.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._field_checks import Check, check_fields, number, optional, text
from eblime._warn import warn_user
from eblime.answers import Answers
from eblime.core.fit_quality import score_range
from eblime.core.laws import Draws, DrawsLaw, PointMass, PointValue
from eblime.methods.regression import fit_each, is_quick
from eblime.posterior import Posterior
from eblime.protocols import Method
from eblime.results.explanation import Explanation

__all__ = ["StoredLaw", "StoredMethod", "draws_to_store", "read_posterior", "summarise"]

_LEVEL = 0.95  # of the stored intervals
_MOST_DRAWS, _MOST_NUMBERS = 4_000, 4_000_000  # draws that are stored, and numbers in them
_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")  # those of NumPy
_NEAR = 1e-6  # of a standard deviation, by which a refit may differ


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoredMethod:
    """A placeholder for a method that this installation does not have."""

    name: str

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """Refused: the method is not installed."""
        raise ValueError(
            f"{self.name} is not installed here. Choose another method, or install the package "
            "that provides it."
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoredHeldOut:
    """A held-out R^2 that was computed before."""

    r2: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoredLaw:
    """Means, standard deviations and 95 % intervals as they were; draws for everything else."""

    mean: NDArray[np.float64]  # (p,)
    columns: Mapping[str, NDArray[np.float64]]  # of a table with 95 % intervals, (p,) each
    drawn: DrawsLaw

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.mean)

    @property
    def sd(self) -> NDArray[np.float64]:
        """Standard deviations, (p,)."""
        return self.columns["sd"]

    def quantile(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """Quantiles, (K,) -> (K, p); those of the 95 % interval are not of the draws."""
        tail = (1 - _LEVEL) / 2
        if np.array_equal(q, [tail, 1 - tail]):  # no draws need to be sorted
            return np.stack([self.columns["low"], self.columns["high"]])
        found = self.drawn.quantile(q)
        found[q == tail], found[q == 1 - tail] = self.columns["low"], self.columns["high"]
        return found

    def prob_positive(self) -> NDArray[np.float64]:
        """P(beta_j > 0), (p,)."""
        return self.columns["prob_positive"]

    def __getattr__(self, name: str) -> Any:
        """Everything else: the covariance, densities, joint probabilities and draws."""
        if name.startswith("__"):  # of copy and pickle, before there are fields
            raise AttributeError(name)
        return getattr(self.drawn, name)


def summarise(post: Posterior) -> dict[str, Any]:
    """What a printed table shows; a refit is compared with it, or it replaces the refit."""
    return {
        "name": post.method,
        "estimand": post.estimand,
        "mean": post.mean,
        "r2": post.r2,
        "r2_held_out": post.r2_held_out,
        "ess": post.ess,
        "intercept": post.intercept,
        **post.columns(_LEVEL),
    }


def draws_to_store(explanation: Explanation, *, encoded: bool) -> NDArray[Any] | None:
    """Draws for a reader who does not have the method or would have to wait for a refit.

    `encoded` says whether the file has the method. None if every reader fits it again.
    """
    post, method = explanation.posterior, explanation.method
    if not post.has_spread:
        return None
    law = post.law.drawn if isinstance(post.law, StoredLaw) else post.law
    ours = encoded and type(method).__module__.startswith("eblime.")
    repeatable = explanation.generator is not None or not isinstance(law, DrawsLaw)
    quick = is_quick(method, explanation.answers, exhaustive=explanation.exhaustive)
    if ours and repeatable and quick:
        return None
    if isinstance(law, DrawsLaw):
        small = law.draws.beta.astype(np.float32)
        return small if (small == law.draws.beta).all() else law.draws.beta
    n = min(_MOST_DRAWS, max(2, _MOST_NUMBERS // post.n_features))
    return post.sample(n, rng=0).astype(np.float32)


def read_posterior(
    method: Method | None,
    answers: Answers,
    summary: Mapping[str, Any],
    *,
    draws: NDArray[Any] | None,
    generator: Mapping[str, Any] | None,
    exhaustive: bool,
    refit: bool,
) -> Posterior:
    """The posterior of a file: `summary` and `draws` are of `summarise` and `draws_to_store`.

    `method` is None if it is not installed. With `refit` it is fitted even if that takes long, by
    a generator in the stored state.
    """
    check_fields(summary, _SUMMARY, "`summary.")
    lost = draws is not None and generator is None  # draws that cannot be made again
    if method is None or not (
        refit or (is_quick(method, answers, exhaustive=exhaustive) and not lost)
    ):
        return _stored_posterior(answers, summary, draws, exhaustive=exhaustive)
    found = fit_each(method, _generator_in(generator), [answers], exhaustive=exhaustive)[0]
    _compare(found, summary)
    if isinstance(found.held_out, float) or summary["r2_held_out"] is None:
        return found
    return dataclasses.replace(found, held_out=StoredHeldOut(r2=float(summary["r2_held_out"])))


def _generator_in(state: Mapping[str, Any] | None) -> np.random.Generator:
    """A generator in the given state; that of seed 0 if None."""
    if state is None:
        return np.random.default_rng(0)
    kind = state["bit_generator"]
    if kind not in _GENERATORS:
        raise ValueError(f"`generator` must be one of {', '.join(_GENERATORS)}; got {kind!r:.40}")
    bits = getattr(np.random, kind)(0)
    bits.state = state
    return np.random.Generator(bits)


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


def _stored_posterior(
    answers: Answers, summary: Mapping[str, Any], draws: NDArray[Any] | None, *, exhaustive: bool
) -> Posterior:
    """The posterior without a fit."""
    law: Any = PointMass(mean=summary["mean"], method=summary["name"])
    if "sd" in summary:
        if draws is None:
            raise ValueError(
                f"fitting {summary['name']!s:.40} again to {answers.n_masks} masks of "
                f"{answers.n_features} features may take long; if you trust the file, pass "
                "refit=True"
            )
        check_fields(summary, _COLUMNS, "`summary.")
        drawn = DrawsLaw(draws=Draws(beta=np.asarray(draws, dtype=np.float64)))
        if drawn.n_features != answers.n_features or not np.isfinite(drawn.draws.beta).all():
            raise ValueError("`draws` must be finite, with one column per feature")
        columns = {name: summary[name] for name in ("sd", "low", "high", "prob_positive")}
        law = StoredLaw(mean=summary["mean"], columns=columns, drawn=drawn)
    held_out: Any = summary["r2_held_out"]
    if held_out is not None:  # all masks leave nothing to hold out
        held_out = float(held_out) if exhaustive else StoredHeldOut(r2=float(held_out))
    return Posterior(
        law=law,
        estimand=summary["estimand"],
        method=summary["name"],
        n_masks=answers.n_masks,
        r2=float(summary["r2"]),
        held_out=held_out,
        score_range=score_range(answers.scores, answers.weights),
        ess=float(summary["ess"]),
        extras={"intercept": PointValue(value=float(summary["intercept"]))},
    )


def _is_column(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim == 1


_COLUMN = Check(must="a float64 array of one axis", holds=_is_column, axes=("p",))
_SUMMARY = {
    "name": text(),
    "estimand": text(),
    "mean": _COLUMN,
    "r2": number(high=1.0, nan=True),
    "r2_held_out": optional(number(high=1.0, nan=True)),
    "ess": number(low=0.0),
    "intercept": number(),
}
_COLUMNS = dict.fromkeys(("mean", "sd", "low", "high", "prob_positive"), _COLUMN)
