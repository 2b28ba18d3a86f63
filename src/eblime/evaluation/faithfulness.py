"""A league of faithfulness: many methods, several measures, equal model calls.

No measure decides alone, and measures are not averaged: insertion and deletion reward the order of
the features, infidelity their sizes, the pointing game what people look for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime._checks import check_choice, check_count
from eblime._progress import Progress
from eblime._types import FloatArray
from eblime.evaluation.contestants import CONTESTANTS, applies, available
from eblime.evaluation.faulty_parts import PARTS
from eblime.evaluation.games import Game
from eblime.evaluation.metrics import (
    HIGHER_IS_BETTER,
    comprehensiveness,
    deletion_auc,
    infidelity,
    insertion_auc,
    max_sensitivity,
    pointing_game,
    prediction_gap,
    relevance_mass,
    sufficiency,
)
from eblime.evaluation.scores import mean_interval
from eblime.evaluation.study import Row, run_study, study_generator, to_table
from eblime.evaluation.subjects import SUBJECTS, LeagueSubject

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["faithfulness", "paired_gaps", "standings"]

_INFIDELITY_MASKS = 200
_TOLERANCE = 4  # pixels around a defect, of 128; the pointing game has 15 for photos of about 500


def faithfulness(
    dataset: str,
    *,
    n: int = 100,
    items: int = 30,
    methods: Sequence[str] = tuple(CONTESTANTS),
    nearby: int = 3,
    top: int = 5,
    seed: int = 0,
    jobs: int = 1,
    out: str | os.PathLike[str] | None = None,
    progress: Progress = None,
) -> pd.DataFrame:
    """Measure how faithful the explanations of several methods are.

    Parameters
    ----------
    dataset
        "photos" (EfficientNet-Lite0), "stored-photos" (its stored answers, 11 to 13 superpixels),
        "tiles", "drilled" (parts with a known defect), "german", "compas" (random forests) or
        "rt-polarity" (logistic regression of TF-IDF).
    n
        Number of masks that each method may ask about.
    items
        Number of inputs.
    methods
        Names of `CONTESTANTS`. Those whose package is missing are left out with a warning. Oracles,
        which ask all masks, are left out of inputs with more than 13 features; `lime-table` and
        `eblime-table`, which draw rows, of inputs that are not rows.
    nearby
        Number of inputs close by for max-sensitivity; 0 leaves it out. Texts have none.
    top
        How many columns are perturbed for PGI.
    seed, jobs, out, progress
        As for `coverage`.

    Returns
    -------
    pandas.DataFrame
        One row per input and method: `calls`, the number of different masks that it asked about,
        and one column for each measure of `eblime.evaluation.metrics`; missing where it does not
        apply.

    Examples
    --------
    >>> from eblime.evaluation.faithfulness import faithfulness
    >>> table = faithfulness(
    ...     "compas", n=50, items=1, methods=["eblime", "lime"], nearby=0
    ... )  # doctest: +SKIP
    >>> table["method"].tolist()  # doctest: +SKIP
    ['eblime', 'lime']
    """
    check_choice("dataset", dataset, tuple(SUBJECTS))
    for name in methods:
        check_choice("methods", name, tuple(CONTESTANTS))
    for name, value in (("n", n), ("items", items), ("top", top)):
        check_count(name, value)
    if nearby < 0:
        raise ValueError(f"`nearby` must be >= 0; got {nearby}.")
    settings = {
        "dataset": dataset,
        "n": int(n),
        "methods": available(methods),
        "nearby": int(nearby),
        "top": int(top),
        "seed": int(seed),
    }
    if jobs > 1 and dataset in PARTS:  # train the networks once, here, and not in every process
        for number in range(items):
            SUBJECTS[dataset](number)
    rows = run_study(
        faithfulness_rows, settings, range(items), out=out, jobs=jobs, progress=progress
    )
    return to_table(rows)


def faithfulness_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """All rows of one input; they depend only on the settings and the number."""
    subject = SUBJECTS[settings["dataset"]](number)
    rows = []
    for name in settings["methods"]:
        if not applies(name, subject.game):
            continue
        found, calls = _explained(name, subject.game, settings, number, 0)
        row: Row = {
            "dataset": settings["dataset"],
            "item": number,
            "method": name,
            "features": subject.game.n_features,
            "calls": calls,
        }
        row |= measures(subject, found, top=settings["top"], seed=settings["seed"])
        if settings["nearby"] and subject.nearby is not None:
            close = [
                _explained(
                    name, subject.nearby(study_generator(settings, number, k)), settings, number, k
                )[0]
                for k in range(1, settings["nearby"] + 1)
            ]
            row["sensitivity"] = max_sensitivity(found, np.array(close))
        rows.append(row)
    return rows


def measures(
    subject: LeagueSubject, attribution: FloatArray, *, top: int, seed: int
) -> dict[str, float]:
    """All measures of one attribution that apply to the input, without max-sensitivity."""
    game = subject.game
    rng = np.random.default_rng([seed, 1])  # the same masks for all methods
    found = {
        "insertion": insertion_auc(game, attribution),
        "deletion": deletion_auc(game, attribution),
        "infidelity": infidelity(game, attribution, rng, _INFIDELITY_MASKS),
    }
    if subject.kind == "text":
        found["comprehensiveness"] = comprehensiveness(game, attribution)
        found["sufficiency"] = sufficiency(game, attribution)
    if subject.predict is not None:
        k = min(top, len(attribution) - 1)
        for name, important in (("pgi", True), ("pgu", False)):
            found[name] = prediction_gap(
                subject.predict, game.full, attribution, top=k, important=important
            )
    if subject.region is not None and subject.labels is not None:
        heat = attribution[subject.labels]
        found["pointing"] = pointing_game(heat, subject.region, tolerance=_TOLERANCE)
        found["mass"] = relevance_mass(heat, subject.region)
    return found


def standings(table: pd.DataFrame) -> pd.DataFrame:
    """The mean of each measure over inputs and its standard error, by data set and method.

    Columns: dataset, method, measure, mean, se, items, calls.

    Examples
    --------
    >>> import pandas as pd
    >>> from eblime.evaluation.faithfulness import standings
    >>> table = pd.DataFrame(
    ...     {
    ...         "dataset": "photos",
    ...         "item": [0, 1, 0, 1],
    ...         "method": ["eblime", "eblime", "lime", "lime"],
    ...         "calls": 100,
    ...         "deletion": [0.2, 0.4, 0.3, 0.7],
    ...     }
    ... )
    >>> standings(table)[["method", "measure", "mean", "se"]].round(2).values.tolist()
    [['eblime', 'deletion', 0.3, 0.1], ['lime', 'deletion', 0.5, 0.2]]
    """
    rows = []
    for (dataset, method), part in table.groupby(["dataset", "method"], sort=False):
        for measure in HIGHER_IS_BETTER:
            values = part[measure].dropna().to_numpy() if measure in part else np.empty(0)
            if len(values):
                se = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
                rows.append(
                    {
                        "dataset": dataset,
                        "method": method,
                        "measure": measure,
                        "mean": float(values.mean()),
                        "se": float(se),
                        "items": len(values),
                        "calls": float(part["calls"].mean()),
                    }
                )
    return to_table(rows)


def paired_gaps(table: pd.DataFrame, method: str) -> pd.DataFrame:
    """How much worse a method is than each other one, input by input.

    Columns: dataset, measure, other, gap (positive: `method` is worse), low, high and items. `low`
    and `high` are Student's 95 % interval of the mean difference, over the inputs that both have.

    Examples
    --------
    >>> import pandas as pd
    >>> from eblime.evaluation.faithfulness import paired_gaps
    >>> table = pd.DataFrame(
    ...     {
    ...         "dataset": "photos",
    ...         "item": [0, 1, 0, 1],
    ...         "method": ["eblime", "eblime", "lime", "lime"],
    ...         "deletion": [0.2, 0.4, 0.3, 0.7],
    ...     }
    ... )
    >>> gaps = paired_gaps(table, "lime")  # less deletion is better
    >>> gaps[["other", "gap", "items"]].round(2).values.tolist()
    [['eblime', 0.2, 2]]
    """
    rows = []
    for dataset, part in table.groupby("dataset", sort=False):
        for measure, higher in HIGHER_IS_BETTER.items():
            if measure not in part or part[measure].isna().all():
                continue
            wide = part.pivot(index="item", columns="method", values=measure)
            if method not in wide:
                continue
            for other in wide.columns.drop(method, errors="ignore"):
                gap = (wide[other] - wide[method]).dropna().to_numpy() * (1 if higher else -1)
                if len(gap) > 1:
                    low, high = mean_interval(gap)
                    row = {"dataset": dataset, "measure": measure, "other": other}
                    row |= {"gap": float(gap.mean()), "low": low, "high": high}
                    rows.append({**row, "items": len(gap)})
    return to_table(rows)


def _explained(
    name: str, game: Game, settings: Mapping[str, Any], number: int, run: int
) -> tuple[FloatArray, int]:
    """The attribution of a contestant and how many different masks it asked about."""
    own = game.again()
    rng = study_generator(settings, number, run, list(CONTESTANTS).index(name) + 1)
    return CONTESTANTS[name][0](own, settings["n"], rng), own.calls
