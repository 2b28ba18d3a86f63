"""`explain_many` and `open_run`: a run from its inputs to its folder, and back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special, stats

from eblime._checks import check_choice, check_count, check_level
from eblime._progress import Progress, telling
from eblime.batch.folder import done_parts, locked, open_folder, read_manifest
from eblime.batch.inputs import as_inputs
from eblime.batch.local import run_local
from eblime.explanation import Explanation

__all__ = ["Run", "explain_many", "open_run"]

ENGINES = ("local", "ray")


def explain_many(
    explainer: Any,
    inputs: Any,
    out: str | os.PathLike[str],
    *,
    targets: int | Sequence[int | str] = 1,
    seed: int = 0,
    engine: str = "local",
    workers: int = 1,
    part_size: int = 64,
    prob: float = 0.95,
    keep: bool = False,
    together: bool = True,
    max_failures: int | None = None,
    about: str | None = None,
    progress: Progress = False,
) -> Run:
    """Explain many inputs into a folder; called again, it does what is not done yet.

    Parameters
    ----------
    explainer
        An explainer, or a function without arguments that makes one: with several workers each
        process makes its own, so that a model on a GPU need not travel.
    inputs
        A folder of photos or .txt files, a .csv, .parquet or .jsonl file, a frame, an array, or any
        sequence.
    out
        The folder of the run.
    targets
        How many of the highest outputs to explain, or which.
    seed
        Input i draws from `SeedSequence(seed, spawn_key=(i,))`: neither order nor workers nor
        restarts change a number.
    engine, workers
        "local" processes, or "ray"; how many.
    part_size
        Inputs in a part, the unit that is done or not.
    prob
        Level of the intervals.
    keep
        Whether to save whole explanations beside the rows.
    together
        Let the perturbed rows or texts of several inputs share model calls.
    max_failures
        Stop when more inputs than that have failed; None goes on.
    about
        What this run is, in your words: resuming under another is refused.
    progress
        True for a bar, or a function that is told (done, total).
    """
    check_choice("engine", engine, ENGINES)
    if not (isinstance(seed, (int, np.integer)) and seed >= 0):
        raise ValueError(f"`seed` must be a whole number >= 0; got {seed!r}.")
    for name, value in (("workers", workers), ("part_size", part_size)):
        check_count(name, value)
    listed = as_inputs(inputs)
    folder = Path(out)
    count = len(listed)
    settings = {
        "explainer": _described(explainer),
        "targets": _plain_targets(targets),
        "seed": int(seed),
        "part_size": int(part_size),
        "prob": check_level("prob", prob),
        "keep": bool(keep),
        "together": bool(together),
        "count": count,
        "inputs": listed.fingerprint,
        "about": about,
    }
    open_folder(folder, settings)
    parts = range(-(-count // part_size))
    run = Run(folder=folder)
    with locked(folder), telling(progress, count, unit="input") as tell:
        done = done_parts(folder, parts)
        todo = [part for part in parts if part not in done]
        failed = len(run.failures()) if done else 0
        finished = sum(min(part_size, count - part * part_size) for part in done)
        tell(finished)
        for part, lost in _engine(engine)(explainer, listed, settings, todo, folder, workers):
            failed += lost
            finished += min(part_size, count - part * part_size)
            tell(finished)
            if max_failures is not None and failed > max_failures:
                raise RuntimeError(
                    f"{failed} inputs have failed, more than the {max_failures} allowed; "
                    f"open_run({str(folder)!r}).failures() lists them, and the run can be resumed."
                )
        missing = set(parts) - done_parts(folder, parts)
        if missing:
            raise RuntimeError(f"Parts {sorted(missing)[:5]} are missing; call again to do them.")
    return run


def open_run(path: str | os.PathLike[str]) -> Run:
    """A run that was made before, finished or not."""
    folder = Path(path)
    read_manifest(folder)
    return Run(folder=folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a run has found so far."""

    folder: Path

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the run."""
        return dict(read_manifest(self.folder)["settings"])

    def scan(self) -> Any:
        """All rows, lazily: a pyarrow dataset, which pandas, polars and DuckDB read in pieces."""
        from pyarrow import dataset

        paths = [str(path) for path in sorted(self.folder.glob("part-*.parquet"))]
        if not paths:
            raise FileNotFoundError(f"{self.folder} has no finished part yet.")
        return dataset.dataset(paths, format="parquet")

    def frame(self) -> Any:
        """One row an input, target and feature, as a pandas frame; failures are left out."""
        table = self.scan().to_table().to_pandas()
        good = table[table["error"].isna()].drop(columns="error")
        whole = {name: "int64" for name in ("input", "target", "place", "n_masks")}
        good = good.astype(whole)  # rows of failures had none of them
        return good.sort_values(["input", "target", "place"], ignore_index=True)

    def failures(self) -> Any:
        """Inputs that failed, and what their error said."""
        table = self.scan().to_table(columns=["input", "name", "error"]).to_pandas()
        return table[table["error"].notna()].sort_values("input", ignore_index=True)

    def explanation(self, number: int, target: int | None = None) -> Explanation:
        """One whole explanation, where the run kept them."""
        from eblime.storage import load

        pattern = f"{number}-{'*' if target is None else target}.eblime"
        paths = sorted((self.folder / "explanations").glob(pattern))
        if not paths:
            raise FileNotFoundError(
                f"{self.folder} has no explanation of input {number}; keep=True saves them."
            )
        return load(paths[0])

    def summary(self, prob: float = 0.95) -> Any:
        """Global importance: the mean size of beta over inputs, with its own credible interval.

        Each size is taken as a folded normal of the posterior's mean and sd; the mean over inputs
        adds up their moments, and targets of one input, which share its masks, count as one. The
        interval says how well these inputs are known, not how other inputs would be.
        """
        tail = stats.norm.ppf((1 + check_level("prob", prob)) / 2)
        rows = self.frame()
        sd = rows["sd"].fillna(0.0).to_numpy(dtype=float)
        mean = rows["mean"].to_numpy(dtype=float)
        size, variance = _folded(mean, sd)
        rows = rows.assign(size=size, spread=np.sqrt(variance))
        each = rows.groupby(["feature", "input"], sort=False)[["size", "spread"]].mean()
        each["total"] = each["spread"] ** 2
        grouped = each.groupby(level="feature", sort=False)
        found = grouped.agg(
            mean_abs=("size", "mean"), inputs=("size", "size"), total=("total", "sum")
        )
        spread = np.sqrt(found.pop("total")) / found["inputs"]
        found["low"] = (found["mean_abs"] - tail * spread).clip(lower=0)
        found["high"] = found["mean_abs"] + tail * spread
        return found.sort_values("mean_abs", ascending=False).reset_index()


def _described(explainer: Any) -> str:
    """What decides an explainer's numbers, as far as it can be told; a function by its name."""
    if hasattr(explainer, "n_masks"):
        names = ("n_masks", "design", "kernel", "method", *explainer._about)
        told = {name: repr(getattr(explainer, name)) for name in names}
        return f"{type(explainer).__name__} " + ", ".join(
            f"{name}={words.split(' at 0x')[0][:200]}" for name, words in told.items()
        )
    return f"made by {getattr(explainer, '__qualname__', type(explainer).__qualname__)}"


def _plain_targets(targets: Any) -> int | list[int | str]:
    """Targets as JSON has them."""
    if isinstance(targets, (int, np.integer)):
        return int(targets)
    listed = [targets] if isinstance(targets, str) else list(targets)
    return [int(t) if isinstance(t, (int, np.integer)) else str(t) for t in listed]


def _folded(mean: Any, sd: Any) -> tuple[Any, Any]:
    """Mean and variance of |x| for normals."""
    ratio = np.divide(mean, sd, out=np.full_like(mean, np.inf), where=sd > 0)
    bulk = np.where(sd > 0, np.sqrt(2 / np.pi) * sd * np.exp(-np.minimum(ratio**2, 1e3) / 2), 0.0)
    size = bulk + np.abs(mean) * special.erf(np.abs(ratio) / np.sqrt(2))
    return size, np.maximum(mean**2 + sd**2 - size**2, 0.0)


def _engine(name: str) -> Any:
    """The function that does parts."""
    if name == "local":
        return run_local
    from eblime.batch.on_ray import run_on_ray

    return run_on_ray
