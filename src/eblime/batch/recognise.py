"""Whether a worker is the one that a run began with: its explainer, and what its model says."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np

from eblime.batch.folder import part_names, read_part
from eblime.batch.inputs import generator_of
from eblime.batch.spool import content, is_frame

__all__ = ["description", "recognise"]

_ASKED = 8  # more inputs of a part by which a model is recognised
_NEAR = 0.02  # of an importance's spread and size, by which another device may differ
_SILENT = ("model", "progress", "labels")  # settings that change no number


def recognise(worker: Any) -> None:
    """Refuse an explainer or a model that is not the one of the parts that are done."""
    names = part_names(worker.folder)
    for name in dict.fromkeys([*names[:1], *names[-1:]]):
        try:
            table, about = read_part(worker.folder, name)
        except (OSError, ValueError):  # a damaged part is done again, and tells nothing
            continue
        for setting in sorted({*about, *worker.about}):
            there, now = about.get(setting), worker.about.get(setting)
            if about and there != now:
                raise ValueError(
                    f"{worker.folder} is a run with another {setting!r}: {there} there, {now} now. "
                    "Take another folder, or the explainer it has."
                )
        _compare(worker, table)


def _compare(worker: Any, table: Any) -> None:
    """Explain the first good input of a part again, and ask about some others."""
    good = table[table["error"].isna()]
    if good.empty:
        return
    number, target = int(good["input"].iloc[0]), int(good["target"].iloc[0])
    rows = good[(good["input"] == number) & (good["target"] == target)]
    said = float(rows["prediction"].iloc[0])
    known = np.append(rows["mean"].to_numpy(dtype=float), said)
    sd = np.append(rows["sd"].fillna(0.0).to_numpy(dtype=float), 0.0)
    largest = np.abs(known[:-1]).max() + 0.1 * abs(said)
    allowed = _NEAR * (np.where(np.isfinite(sd), sd, 0.0) + largest) + 1e-9
    _refuse_another(worker.folder, rows, known, allowed, lambda: _again(worker, number, target))
    others = good.drop_duplicates("input")[1 : 1 + _ASKED]
    for place in range(len(others)):
        row = others[place : place + 1]
        known = row["prediction"].to_numpy(dtype=float)
        asked = partial(_said, worker, int(row["input"].iloc[0]), int(row["target"].iloc[0]))
        _refuse_another(
            worker.folder, row, known, _NEAR * (0.1 * np.abs(known) + largest) + 1e-9, asked
        )


def _refuse_another(
    folder: Any, row: Any, known: Any, allowed: Any, ask: Callable[[], Any]
) -> None:
    """Refuse a model that answers otherwise, and the same way twice: else chance is in it."""
    found = ask()
    if found is None or _close(found, known, allowed):
        return
    again = ask()
    if again is not None and _close(again, found, allowed):
        raise ValueError(
            f"{folder} is a run with another model: of {row['name'].iloc[0]!r} it says "
            f"{known[-1]:.4g} there and {found[-1]:.4g} now"
            + (", with other importances." if len(known) > 1 else ".")
        )


def _said(worker: Any, number: int, target: int) -> Any:
    """What the model says of an input; None where that fails."""
    try:
        scene = worker.scene(number)
        return worker.inquiry.original(scene)[target : target + 1]
    except Exception:
        return None


def _again(worker: Any, number: int, target: int) -> Any:
    """The importances of an input, and what is said of it; None where that fails."""
    try:
        rng = generator_of(worker.settings["seed"], number)
        scene = worker.scene(number)
        by_column = replace(worker.inquiry, labels=None)  # a label may be a number too
        made = by_column.explain(scene, [target], rng)
    except Exception:
        return None
    return np.append(made[target].posterior.mean, made[target].prediction)


def _close(found: Any, known: Any, allowed: Any) -> bool:
    """Whether numbers are the same, up to what another device makes of them."""
    return found.shape == known.shape and bool((np.abs(found - known) <= allowed).all())


def description(explainer: Any) -> dict[str, str]:
    """What decides an explainer's numbers besides its model, each setting in a few words."""
    told = {"kind": type(explainer).__name__}
    for entry in fields(explainer):
        if entry.name not in _SILENT and not entry.name.startswith("_"):
            value = getattr(explainer, entry.name)
            if isinstance(value, np.ndarray) or is_frame(value) or hasattr(value, "tocsr"):
                words = hashlib.sha256(content(value)).hexdigest()
            elif hasattr(value, "write_ipc"):  # a polars frame
                words = hashlib.sha256(content(value.to_pandas())).hexdigest()
            else:
                words = repr(value).split(" at 0x")[0]
                words = words if len(words) <= 200 else hashlib.sha256(words.encode()).hexdigest()
            told[entry.name] = words
    return told
