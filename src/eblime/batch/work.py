"""One part of a run: a function of the run's settings and the part's number alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eblime._text import printable
from eblime.batch.folder import COLUMNS, write_part
from eblime.batch.inputs import Inputs
from eblime.batch.together import explain_together
from eblime.explainer import ImageExplainer, TabularExplainer, TextExplainer
from eblime.explanation import Explanation

__all__ = ["Explainer", "do_part", "generator_of", "made_explainer"]

Explainer = ImageExplainer | TabularExplainer | TextExplainer
Maker = Explainer | Callable[[], Explainer]


def made_explainer(given: Any) -> Explainer:
    """An explainer, or what a function that makes one returns."""
    kinds = (ImageExplainer, TabularExplainer, TextExplainer)
    made = given if isinstance(given, kinds) else given() if callable(given) else given
    if not isinstance(made, kinds):
        raise TypeError(
            "`explainer` must be an ImageExplainer, TabularExplainer or TextExplainer, or a "
            f"function that makes one; got {type(made).__name__}."
        )
    return made


def generator_of(seed: int, number: int) -> np.random.Generator:
    """The generator of an input: order, workers and restarts cannot change it."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))


def do_part(
    explainer: Explainer, inputs: Inputs, settings: Mapping[str, Any], part: int, folder: Path
) -> int:
    """Explain the inputs of a part and write them; returns how many failed."""
    size = settings["part_size"]
    numbers = range(part * size, min((part + 1) * size, settings["count"]))
    found = _explained(explainer, inputs, settings, numbers)
    rows: dict[str, list[Any]] = {column: [] for column, _ in COLUMNS}
    failed = 0
    for number in numbers:
        name, result = inputs.name(number), found[number]
        if isinstance(result, Exception):
            failed += 1
            words = " ".join(str(result).split()) or "no word"
            told = printable(f"{type(result).__name__}: {words}")
            known = {"input": number, "name": name, "error": told}
            for column, values in rows.items():
                values.append(known.get(column))
            continue
        for explanation in result:
            _add_rows(rows, explanation, number, name, settings["prob"])
            if settings["keep"]:
                place = folder / "explanations" / f"{number}-{explanation.target}.eblime"
                place.parent.mkdir(exist_ok=True)
                explanation.save(place)
    write_part(folder, part, rows)
    return failed


def _explained(
    explainer: Explainer, inputs: Inputs, settings: Mapping[str, Any], numbers: Sequence[int]
) -> dict[int, list[Explanation] | Exception]:
    """Explanations by number, or what went wrong; together where that can be."""
    found: dict[int, list[Explanation] | Exception] = {}
    given: dict[int, Any] = {}
    for number in numbers:
        try:
            given[number] = inputs.get(number)
        except Exception as error:
            found[number] = error
    targets = settings["targets"]
    if settings["together"] and not isinstance(explainer, ImageExplainer):
        found |= _together(explainer, given, settings)
    for number, entry in given.items():
        if number in found:
            continue
        try:
            rng = generator_of(settings["seed"], number)
            found[number] = list(explainer.explain_targets(entry, targets, rng).values())
        except Exception as error:
            found[number] = error
    return found


def _together(
    explainer: TabularExplainer | TextExplainer,
    given: Mapping[int, Any],
    settings: Mapping[str, Any],
) -> dict[int, list[Explanation] | Exception]:
    """Inputs in few model calls; nothing where that fails, so that each is tried by itself."""
    failed: dict[int, list[Explanation] | Exception] = {}
    scenes = {}
    for number, entry in given.items():
        try:
            scenes[number] = explainer.scene(entry)
        except Exception as error:
            failed[number] = error
    rngs = [generator_of(settings["seed"], number) for number in scenes]
    try:
        found = explain_together(
            explainer.inquiry, list(scenes.values()), settings["targets"], rngs
        )
    except Exception:
        return failed
    return failed | {
        number: list(entry.values()) for number, entry in zip(scenes, found, strict=True)
    }


def _add_rows(
    rows: dict[str, list[Any]], explanation: Explanation, number: int, name: str, prob: float
) -> None:
    """One more row for each feature."""
    post = explanation.posterior
    count = post.n_features
    nothing: list[float | None] = [None] * count
    spread: tuple[list[Any], ...] = (nothing, nothing, nothing, nothing)
    if post.has_spread:
        ends = post.interval(prob)
        spread = tuple(
            entry.tolist() for entry in (post.sd, ends[:, 0], ends[:, 1], post.prob_positive())
        )
    shared = {
        "input": number,
        "name": name,
        "target": explanation.target,
        "label": explanation.label,
        "prediction": explanation.prediction,
        "r2": post.r2,
        "ess": post.ess,
        "n_masks": post.n_masks,
        "error": None,
    }
    for column, value in shared.items():
        rows[column] += [value] * count
    columns = getattr(explanation.scene, "columns", explanation.features)
    rows["feature"] += map(str, columns)
    rows["place"] += range(count)
    rows["mean"] += post.mean.tolist()
    for column, values in zip(("sd", "low", "high", "prob_positive"), spread, strict=True):
        rows[column] += values
