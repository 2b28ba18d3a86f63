"""UnRAVEL: a Gaussian process that chooses which rows to ask about (Saini and Prasad, 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from eblime._checks import as_floats, as_generator, check_choice, check_count, check_number
from eblime._types import FloatArray, RNGLike
from eblime.answers import Answers
from eblime.family.gaussian_process import (
    GaussianProcess,
    condition,
    fit_process,
    prior_logs,
    with_value,
)
from eblime.laws import normal_law
from eblime.models.adapt import as_model
from eblime.posterior import Posterior

__all__ = ["ActiveExplanation", "acquisition_value", "unravel"]

ACQUISITIONS = ("FUR", "UR")
_CANDIDATES = 400
_REFIT = 5  # points between fits of the parameters


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ActiveExplanation:
    """What UnRAVEL found about one row.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).normal(size=(100, 2))
    >>> found = eblime.family.unravel(lambda z: np.sin(2 * z[:, 0]), [0.0, 0.0], rows, n_calls=15)
    >>> found.rows.shape, found.scores.shape
    ((15, 2), (15,))
    >>> int(found.relevance.argmax())
    0
    """

    names: tuple[str, ...]
    rows: FloatArray  # (n, p) the rows that the model was asked about, in order
    scores: FloatArray  # (n,) its scores
    length_scales: FloatArray  # (p,) in standard deviations of the columns
    posterior: Posterior  # of the slopes at the row, per standard deviation of a column

    @property
    def relevance(self) -> FloatArray:
        """Importances without sign as published: 1 / length scale, the largest being 1."""
        inverse = 1 / self.length_scales
        return np.asarray(inverse / inverse.max())


def unravel(
    model: Any,
    x: ArrayLike,
    background: ArrayLike,
    *,
    n_calls: int = 50,
    acquisition: Literal["FUR", "UR"] = "FUR",
    interval: float = 1.0,
    target: int | None = None,
    names: Sequence[str] | None = None,
    rng: RNGLike = 0,
) -> ActiveExplanation:
    """Explain a row of a table by asking about the rows that tell a Gaussian process most.

    Parameters
    ----------
    model
        Anything that scores rows, as for `TabularExplainer`; it gets arrays of a single row.
    x
        The row, (p,) numbers.
    background
        Typical rows, (n, p): their standard deviations are the units of the columns.
    n_calls
        How many rows to ask about, `x` included.
    acquisition
        "FUR", faithful uncertainty reduction: the next row is uncertain and near `x`; how near is
        drawn anew each time, and nearer as time goes on. "UR": the most uncertain row of the box.
    interval
        The box goes this many standard deviations to each side of `x`.
    target
        Column of the model's output; None is the highest output for `x`.
    names
        Names of the columns.
    rng
        Seed or generator.

    Notes
    -----
    With s the standard deviation of the process, t the number of the step, d a draw from N(0, 1)
    for each column, and columns in standard deviations, FUR is `s(z) - |z - x - d / log(t)|`. The
    published code has one draw for all columns: the rows then lie along a diagonal, and slopes
    cannot be separated.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.family import unravel
    >>> rows = np.random.default_rng(0).normal(size=(100, 3))
    >>> found = unravel(lambda z: 2 * z[:, 0] - z[:, 1], [0.0, 0.0, 0.0], rows, n_calls=25)
    >>> (found.posterior.mean / rows.std(axis=0)).round(1) + 0.0
    array([ 2., -1.,  0.])
    """
    row, table = as_floats("x", x).ravel(), as_floats("background", background)
    if not np.isfinite(row).all():
        raise ValueError(f"`x` must be finite; got {row[~np.isfinite(row)][0]}.")
    if table.ndim != 2 or table.shape[1:] != row.shape or not np.isfinite(table).all():
        raise ValueError(
            f"`background` must be finite numbers with the {row.size} columns of `x`; got shape "
            f"{table.shape}."
        )
    check_choice("acquisition", acquisition, ACQUISITIONS)
    check_count("n_calls", n_calls, minimum=3)
    check_number("interval", interval)
    listed = [f"column {j}" for j in range(row.size)] if names is None else list(names)
    if len(listed) != row.size:
        raise ValueError(f"`names` must have {row.size} names; got {len(listed)}.")
    generator, sd = as_generator(rng), table.std(axis=0)
    unit = np.where(sd > 0, sd, 1.0)
    search = _Search(
        ask=_scorer(as_model(model), row, unit, target),
        acquisition=acquisition,
        interval=float(interval),
        rng=generator,
    )
    process, of_scores = search.run(n_calls, row.size)
    return _concluded(process, of_scores, row, unit, listed)


def acquisition_value(
    process: GaussianProcess, z: FloatArray, name: str, shift: FloatArray | float = 0.0
) -> FloatArray:
    """Values of an acquisition at points (m, p) around the origin, which is the row; (m,)."""
    spread = process.predict(z)[1]
    return spread if name == "UR" else spread - np.linalg.norm(z - shift, axis=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Search:
    """The loop: ask, update the process, choose the next point."""

    ask: Any  # a point, in standard deviations from the row -> score
    acquisition: str
    interval: float
    rng: np.random.Generator

    def run(self, n_calls: int, p: int) -> tuple[GaussianProcess, tuple[float, float]]:
        """The process after all calls, and the mean and the unit of its values."""
        points, scores = np.zeros((1, p)), np.array([self.ask(np.zeros(p))])
        logs = prior_logs(p)
        unit = (float(scores[0]), 1.0)
        process = condition(points, np.zeros(1), logs)
        for step in range(2, n_calls + 1):
            point = self.next(process, step)
            score = self.ask(point)
            scores = np.append(scores, score)
            if step % _REFIT and step < n_calls:
                process = with_value(process, point, (score - unit[0]) / unit[1])
                continue
            unit = (float(scores.mean()), float(scores.std()) or 1.0)
            points = np.concatenate([process.points, point[None]])
            process = fit_process(points, (scores - unit[0]) / unit[1], process.logs)
        return process, unit

    def next(self, process: GaussianProcess, step: int) -> FloatArray:
        """The point of the box with the largest value of the acquisition."""
        p, box = process.points.shape[1], self.interval
        shift = np.zeros(p)
        if self.acquisition == "FUR":
            shift = self.rng.standard_normal(p) / np.log(step)
        spread = self.rng.uniform(-box, box, size=(_CANDIDATES, p))
        near = np.clip(shift + 0.2 * box * self.rng.standard_normal((_CANDIDATES, p)), -box, box)
        candidates = np.concatenate([spread, near])
        values = acquisition_value(process, candidates, self.acquisition, shift)
        start = candidates[np.argmax(values)]

        def loss(z: FloatArray) -> float:
            return -float(acquisition_value(process, z[None], self.acquisition, shift)[0])

        found = optimize.minimize(
            loss, start, method="L-BFGS-B", bounds=[(-box, box)] * p, options={"maxiter": 10}
        )
        return np.asarray(found.x if found.fun <= -values.max() else start)


def _scorer(model: Any, row: FloatArray, sd: FloatArray, target: int | None) -> Any:
    """A function from a point, in standard deviations from the row, to the score."""
    first = np.asarray(model(row[None]), dtype=np.float64).reshape(1, -1)[0]
    column = int(np.argmax(first)) if target is None else target
    if not 0 <= column < len(first):
        raise ValueError(f"`target` must be a column from 0 to {len(first) - 1}; got {target}.")

    def ask(point: FloatArray) -> float:
        outputs = first
        if point.any():
            outputs = np.asarray(model((row + sd * point)[None]), dtype=np.float64).ravel()
        score = float(outputs[column])
        if not np.isfinite(score):
            raise ValueError(f"The model must return finite scores; it returned {score}.")
        return score

    return ask


def _concluded(
    process: GaussianProcess,
    unit: tuple[float, float],
    row: FloatArray,
    sd: FloatArray,
    names: list[str],
) -> ActiveExplanation:
    """The result: slopes at the row, and length scales."""
    mean, cov = process.slopes(np.zeros(len(row)))
    scores = unit[0] + unit[1] * process.values
    answers = Answers(
        masks=process.points, scores=scores, weights=np.ones(len(scores)), features=tuple(names)
    )
    posterior = Posterior.from_law(
        normal_law(unit[1] * mean, unit[1] ** 2 * cov),
        answers,
        method="UnRAVEL",
        estimand="slopes at the row, per standard deviation",
    )
    return ActiveExplanation(
        names=tuple(names),
        rows=row + sd * process.points,
        scores=scores,
        length_scales=process.lengths,
        posterior=posterior,
    )
