"""Whether an explainer and its model are those that a run was created with."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np

from eblime.batch.folder import part_names, read_part
from eblime.batch.inputs import generator_of
from eblime.batch.spool import content, is_frame
from eblime.engine.loop import explain, score_of_input

__all__ = ["description", "recognise"]

_ASKED = 8  # more inputs of a part by which a model is recognised
_NEAR = 0.02  # of an importance's spread and size, by which another device may differ
_SILENT = ("model", "progress")  # settings that are compared by other means, or change nothing


def recognise(worker: Any, *, explain: bool = True) -> None:
    """Refuse an explainer or a model that differs from the one that made the finished parts.

    Parameters
    ----------
    worker
        Its explainer, model and inputs are compared with the first and the last finished part.
    explain
        Also explain one input of each again. Without it the model is asked about a few inputs
        only, which is cheap, and must answer: nothing else will show that it cannot.
    """
    names = part_names(worker.folder)
    compared = answered = 0
    for name in dict.fromkeys([*names[:1], *names[-1:]]):
        try:
            table, about = read_part(worker.folder, name)
        except (OSError, ValueError):  # a damaged part is done again
            continue
        for setting in sorted({*about, *worker.about}):
            there, now = about.get(setting), worker.about.get(setting)
            if about and there != now:
                raise ValueError(
                    f"{worker.folder} was created with {setting}={there}; this call has "
                    f"{setting}={now}. Use another folder, or the explainer of the run."
                )
        good = table[table["error"].isna()]
        if not good.empty:
            answers = _compare(worker, good, explain=explain)
            compared, answered = compared + len(answers), answered + sum(answers)
    if compared and not answered and not explain:
        raise RuntimeError(
            f"The model failed on all {compared} inputs of {worker.folder} that it was asked "
            "about, so it cannot be compared with the model of the run. `eblime.open_run` reads "
            "the run without a model."
        )


def _compare(worker: Any, good: Any, *, explain: bool) -> list[bool]:
    """Ask about some inputs of a part, explain its first one again; returns which were answered."""
    number, target = int(good["input"].iloc[0]), int(good["target"].iloc[0])
    rows = good[(good["input"] == number) & (good["target"] == target)]
    said = float(rows["prediction"].iloc[0])
    means = rows["mean"].to_numpy(dtype=float)
    largest = np.abs(means).max() + 0.1 * abs(said)
    answers = []
    if explain:
        sd = np.append(rows["sd"].fillna(0.0).to_numpy(dtype=float), 0.0)
        allowed = _NEAR * (np.where(np.isfinite(sd), sd, 0.0) + largest) + 1e-9
        again = partial(_again, worker, number, target)
        answers = [_refuse_another(worker.folder, rows, np.append(means, said), allowed, again)]
    others = good.drop_duplicates("input")[int(explain) : 1 + _ASKED]
    for place in range(len(others)):
        row = others[place : place + 1]
        known = row["prediction"].to_numpy(dtype=float)
        asked = partial(_said, worker, int(row["input"].iloc[0]), int(row["target"].iloc[0]))
        allowed = _NEAR * (0.1 * np.abs(known) + largest) + 1e-9
        answers.append(_refuse_another(worker.folder, row, known, allowed, asked))
    return answers


def _refuse_another(
    folder: Any, row: Any, known: Any, allowed: Any, ask: Callable[[], Any]
) -> bool:
    """Refuse a model whose answers differ, unless they are random; False if it gives none."""
    found = ask()
    if found is None or _close(found, known, allowed):
        return found is not None
    again = ask()
    if again is not None and _close(again, found, allowed):
        now = f"{found[-1]:.4g}" if found.size else "no such output"
        raise ValueError(
            f"{folder} was created with another model: its stored prediction for "
            f"{row['name'].iloc[0]!r} is {known[-1]:.4g}; the model now returns {now}"
            + (", with other importances." if len(known) > 1 else ".")
        )
    return True


def _said(worker: Any, number: int, target: int) -> Any:
    """What the model says of an input; None where that fails."""
    try:
        return score_of_input(worker.loop, worker.subject(number))[target : target + 1]
    except Exception:
        return None


def _again(worker: Any, number: int, target: int) -> Any:
    """The importances of an input, and what is said of it; None where that fails."""
    try:
        rng = generator_of(worker.settings["seed"], number)
        by_column = replace(worker.loop, labels=None)  # a label may be a number too
        made = explain(by_column, worker.subject(number), [target], rng, progress=False)
    except Exception:
        return None
    return np.append(made[target].posterior.mean, made[target].prediction)


def _close(found: Any, known: Any, allowed: Any) -> bool:
    """Whether numbers are the same, up to what another device makes of them."""
    return found.shape == known.shape and bool((np.abs(found - known) <= allowed).all())


def description(explainer: Any) -> dict[str, str]:
    """The settings of an explainer that decide its results, besides its model, each as a string."""
    told = {"kind": type(explainer).__name__}
    for entry in fields(explainer):
        if entry.name not in _SILENT and not entry.name.startswith("_"):
            told[entry.name] = _described(entry.name, getattr(explainer, entry.name))
    return told


def _described(name: str, value: Any) -> str:
    """A setting as a short string that is the same in every process."""
    if name == "labels" and isinstance(value, Mapping):
        value = {int(column): str(label) for column, label in sorted(value.items())}
    elif name == "labels" and value is not None:
        value = [str(label) for label in value]
    if isinstance(value, np.ndarray) or is_frame(value) or hasattr(value, "tocsr"):
        return hashlib.sha256(content(value)).hexdigest()
    if hasattr(value, "write_ipc"):  # a polars frame
        return hashlib.sha256(content(value.to_pandas())).hexdigest()
    words = repr(value).split(" at 0x")[0]
    return words if len(words) <= 200 else hashlib.sha256(words.encode()).hexdigest()
