"""Tables of the studies about parts with flaws, signals, volumes and prompts."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from studies.hiding import page_tables
from studies.inspection import SUMMARIES
from studies.tables import frame_table, table

__all__ = ["inspection_part", "prompt_part", "signal_part"]


def inspection_part(found: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """What is found in parts with flaws, and what hidden parts show."""
    tables = {f"inspection-{name}": found[f"inspection-{name}"] for name in SUMMARIES}
    tables = {name: SUMMARIES[name.partition("-")[2]](rows) for name, rows in tables.items()}
    names = ("tiles", "ultrasonic", "signals")
    tables |= page_tables({name: found[f"hiding-{name}"] for name in names})
    return {name: frame_table(frame, "{:.2f}") for name, frame in tables.items()}


def signal_part(found: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """Planted truths, classifiers beside other methods, and times."""
    columns = {"features": "parts", "asked": "masks", "right": "planted part first"}
    columns |= {"coverage": "coverage", "top_1": "of the planted part"}
    planted = found["signals-planted"][list(columns)].rename(columns=columns)
    times = found["signals-speed"]
    signals = times[times["what"].str.startswith("signal, ")]
    ms = [
        [what.removeprefix("signal, "), f"{1000 * seconds:.3g}", f"{ratio:.3g}"]
        for what, seconds, ratio in signals[["what", "seconds", "ours_over_theirs"]].to_numpy()
    ]
    real = found["signals-real"]
    drawn = real["other"].isin(["LEFTIST", "KernelSHAP, shap"])  # those of the figure
    verdicts = real.loc[drawn, "eblime is"].value_counts()
    parts = {
        "signals-planted": frame_table(planted, "{:.3f}"),
        "signals-speed": table(["package", "ms", "eblime's time, of this"], ms),
        "signals-cells": str(verdicts.sum()),
    }
    for verdict in ("better", "worse", "undecided"):
        parts[f"signals-{verdict}"] = str(verdicts.get(verdict, 0))
    for what, seconds in times[["what", "seconds"]].to_numpy():
        if what.startswith("volume, "):
            parts[f"seconds-{what.removeprefix('volume, ')}"] = f"{seconds:.1f}"
    return parts


def prompt_part(found: pd.DataFrame) -> dict[str, str]:
    """Errors and coverage with a language model that was asked live, by the number of calls."""
    means = found.pivot_table(index="calls", columns="method", values=["error", "coverage"])
    columns = [("error", "ContextCite"), ("error", "EBLIME"), ("coverage", "EBLIME")]
    names = ["error, lasso", "error, EBLIME", "coverage"]
    shown = means[columns].set_axis(names, axis=1).reset_index()
    return {"prompts-live": frame_table(shown, "{:.2f}")}
