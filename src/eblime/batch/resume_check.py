"""Check that a resumed run uses the explainer and the model that it was created with."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np

from eblime.batch.entries import content, is_frame, is_sparse
from eblime.batch.folder import part_files, read_part
from eblime.batch.inputs import generator_of
from eblime.domains.record import Domain
from eblime.engine.loop import explain, score_of_input

__all__ = ["check_same_model", "explainer_settings"]

_ASKED = 8  # further inputs of a part whose predictions are compared
_NEAR = 0.02  # relative difference that another device may cause
# the model is compared by its predictions; the others do not change a result
_LEFT_OUT = ("model", "progress", "cache", "calls")


def check_same_model(worker: Any, *, explain: bool = True) -> None:
    """Refuse an explainer or a model that differs from the one of the finished parts.

    Parameters
    ----------
    worker
        Its explainer and model are compared with the first and the last finished part.
    explain
        Also explain one input of each part again. False only compares a few predictions, which is
        cheap; the model must then answer at least one of them.
    """
    files = [*part_files(worker.job.folder).items()]
    compared = answered = 0
    for part, name in dict.fromkeys([*files[:1], *files[-1:]]):
        try:
            table, about = read_part(worker.job.folder, worker.job.run, part, name)
        except (OSError, ValueError):  # a damaged part is done again
            continue
        _check_settings(worker, about)
        good = table[table["error"].isna()]
        if not good.empty:
            answers = _compare(worker, good, explain=explain)
            compared, answered = compared + len(answers), answered + sum(answers)
    if compared and not answered and not explain:
        raise RuntimeError(
            f"The model failed on all {compared} inputs of {worker.job.folder} that it was asked "
            "about, so it cannot be compared with the model of the run. `eblime.open_run` reads "
            "the run without a model."
        )


def _check_settings(worker: Any, about: Mapping[str, str]) -> None:
    """Refuse an explainer whose settings differ from those of a finished part."""
    for setting in sorted({*about, *worker.about}):
        before, now = about.get(setting), worker.about.get(setting)
        if about and before != now:
            raise ValueError(
                f"{worker.job.folder} was created with {setting}={before}; this call has "
                f"{setting}={now}. Use another folder, or the explainer of the run."
            )


def _compare(worker: Any, good: Any, *, explain: bool) -> list[bool]:
    """Compare the model with some rows of a part; returns which inputs the model answered."""
    number, target = int(good["input"].iloc[0]), int(good["target"].iloc[0])
    rows = good[(good["input"] == number) & (good["target"] == target)]
    prediction = float(rows["prediction"].iloc[0])
    means = rows["mean"].to_numpy(dtype=float)
    largest = np.abs(means).max() + 0.1 * abs(prediction)
    answers = []
    if explain:
        sd = np.append(rows["sd"].fillna(0.0).to_numpy(dtype=float), 0.0)
        allowed = _NEAR * (np.where(np.isfinite(sd), sd, 0.0) + largest) + 1e-9
        again = partial(_explained_again, worker, number, target)
        known = np.append(means, prediction)
        answers = [_refuse_another(worker.job.folder, rows, known, allowed, again)]
    others = good.drop_duplicates("input")[int(explain) : 1 + _ASKED]
    for k in range(len(others)):
        row = others[k : k + 1]
        known = row["prediction"].to_numpy(dtype=float)
        asked = partial(_prediction, worker, int(row["input"].iloc[0]), int(row["target"].iloc[0]))
        allowed = _NEAR * (0.1 * np.abs(known) + largest) + 1e-9
        answers.append(_refuse_another(worker.job.folder, row, known, allowed, asked))
    return answers


def _refuse_another(
    folder: Any, row: Any, known: Any, allowed: Any, ask: Callable[[], Any]
) -> bool:
    """Refuse a model whose answers differ, unless they are random; False if it does not answer."""
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


def _prediction(worker: Any, number: int, target: int) -> Any:
    """The model's prediction for an input; None if that fails."""
    try:
        return score_of_input(_asking(worker), worker.subject(number))[target : target + 1]
    except Exception:
        return None


def _explained_again(worker: Any, number: int, target: int) -> Any:
    """The importances and the prediction of an input; None if that fails."""
    try:
        rng = generator_of(worker.job.settings["seed"], number)
        by_column = replace(_asking(worker), labels=None)  # a label may also be a number
        made = explain(by_column, worker.subject(number), [target], rng, progress=False)
    except Exception:
        return None
    return np.append(made[target].posterior.mean, made[target].prediction)


def _asking(worker: Any) -> Any:
    """The settings of the loop without stored answers: the model itself is compared."""
    return replace(worker.loop, calls=replace(worker.loop.calls, cache=None))


def _close(found: Any, known: Any, allowed: Any) -> bool:
    """Whether numbers agree, up to the difference that another device may cause."""
    return found.shape == known.shape and bool((np.abs(found - known) <= allowed).all())


def explainer_settings(explainer: Any) -> dict[str, str]:
    """The settings of an explainer that decide its results, except its model, as strings."""
    calls = explainer.loop.calls
    found = {"kind": type(explainer).__name__, "batch_size": str(calls.batch_size)}
    if calls.max_calls is not None:
        found["max_calls"] = str(calls.max_calls)
    for entry in fields(explainer):
        if entry.name not in _LEFT_OUT and not entry.name.startswith("_"):
            found[entry.name] = _as_string(entry.name, getattr(explainer, entry.name))
    return found


def _as_string(name: str, value: Any) -> str:
    """A setting as a short string that is the same in every process."""
    if name == "labels" and isinstance(value, Mapping):
        value = {int(column): str(label) for column, label in sorted(value.items())}
    elif name == "labels" and value is not None:
        value = [str(label) for label in value]
    elif name == "settings" and isinstance(value, Mapping):  # of a domain
        value = {str(key): _as_string("", value[key]) for key in sorted(value, key=str)}
    if isinstance(value, Domain):
        return value.name
    if isinstance(value, tuple):  # such as ("entropy", labels)
        value = tuple(
            item if isinstance(item, (str, int, float)) else _as_string("", item) for item in value
        )
    if isinstance(value, np.ndarray) or is_frame(value) or is_sparse(value):
        return hashlib.sha256(content(value)).hexdigest()
    if hasattr(value, "write_ipc"):  # a polars frame
        return hashlib.sha256(content(value.to_pandas())).hexdigest()
    words = repr(value).split(" at 0x")[0]
    return words if len(words) <= 200 else hashlib.sha256(words.encode()).hexdigest()
