"""`open_run`: the results of a run, read one part at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special, stats

from eblime._checks import check_level
from eblime.batch.folder import (
    map_parts,
    part_names,
    part_schema,
    read_manifest,
    read_part,
    read_table,
)
from eblime.batch.location import Location, arrow
from eblime.batch.seal import checked
from eblime.results.explanation import Explanation
from eblime.results.storage import unpacked

__all__ = ["Run", "open_run"]


def open_run(path: str | os.PathLike[str]) -> Run:
    """Open a run folder, finished or not.

    Reading a damaged file raises `DamagedFileError`, a `ValueError`; calling `explain_many` again
    replaces the file.
    """
    location = Location.of(path)
    read_manifest(location)
    return Run(location=location)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Run:
    """The results of a run so far."""

    location: Location

    @property
    def folder(self) -> Path | str:
        """The path of the run folder, or its address in a store."""
        return self.location.local_path or self.location.address

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the run."""
        return dict(read_manifest(self.location)["settings"])

    def scan(self, *, verify: bool = True) -> Any:
        """All rows as a lazy pyarrow dataset, which pandas, polars and DuckDB read in pieces.

        Parameters
        ----------
        verify
            Compare every file with its checksum first, which reads the whole run once.
        """
        from pyarrow import dataset

        names = self._parts()
        if verify:
            for _ in map_parts(lambda name: len(checked(self.location / name)), names):
                pass
        system, path = self.location.open()
        paths = [f"{path}/{name}" for name in names]
        return dataset.dataset(paths, schema=part_schema(), format="parquet", filesystem=system)

    def _parts(self) -> list[str]:
        """The files of the finished parts, at least one."""
        names = part_names(self.location)
        if not names:
            raise FileNotFoundError(f"{self.location} has no finished part yet.")
        return names

    def frame(self) -> Any:
        """One row per input, target and feature, as a pandas frame; failures are left out.

        The whole run is read into memory; `pieces` reads one part after another.
        """
        import pandas as pd

        rows = pd.concat(self.pieces(), ignore_index=True)
        return rows.sort_values(["input", "target", "place"], ignore_index=True)

    def pieces(self) -> Iterator[Any]:
        """The rows of `frame`, one part at a time; all rows of an input are in the same part."""
        integers = {name: "int64" for name in ("input", "target", "place", "n_masks")}
        for name in self._parts():
            rows, _ = read_part(self.location, name)
            good = rows[rows["error"].isna()].drop(columns="error")
            yield good.astype(integers)  # failed inputs have nulls there

    def failures(self) -> Any:
        """The failed inputs and their error messages."""
        pa, _ = arrow()
        rows = pa.concat_tables(map_parts(self._failed, self._parts()))
        return rows.to_pandas().sort_values("input", ignore_index=True)

    def _failed(self, name: str) -> Any:
        """The failed inputs of a part."""
        table = read_table(self.location, name).select(["input", "name", "error"])
        return table.filter(table.column("error").is_valid())

    def explanation(self, number: int, target: int | None = None) -> Explanation:
        """One whole explanation of a run with keep=True; None is the first output."""
        folder = self.location / "explanations"
        if target is None:
            kept = [name for name in folder.files() if name.startswith(f"{number}-")]
            names = sorted(kept, key=lambda name: (len(name), name))  # 7-2 before 7-10
        else:
            names = [f"{number}-{target}.eblime"]
        if not names or (folder / names[0]).kind() == "nothing":
            raise FileNotFoundError(
                f"{self.location} has no explanation of input {number}; keep=True saves them."
            )
        return unpacked((folder / names[0]).read(), folder / names[0])

    def summary(self, prob: float = 0.95) -> Any:
        """Mean absolute importance of each feature over all inputs, with a credible interval.

        Parameters
        ----------
        prob
            Probability of the intervals.

        Returns
        -------
        DataFrame
            One row per feature, the most important first: `feature`, `mean_abs`, `inputs` (how
            many inputs have the feature), `low` and `high`.

        Notes
        -----
        An importance is approximated by a normal with its posterior mean and standard deviation,
        so its absolute value is a folded normal. Inputs are independent. Several targets of one
        input share its masks, so their average counts as one value. The interval covers the
        uncertainty of the explanations of these inputs; it does not predict other inputs.
        """
        import pandas as pd

        tail = stats.norm.ppf((1 + check_level("prob", prob)) / 2)
        totals = pd.DataFrame({"size": [], "variance": [], "inputs": []})
        for rows in self.pieces():
            totals = totals.add(_totals(rows), fill_value=0.0)
        found = pd.DataFrame(
            {
                "mean_abs": totals["size"] / totals["inputs"],
                "inputs": totals["inputs"].astype("int64"),
            }
        )
        spread = np.sqrt(totals["variance"]) / totals["inputs"]
        found["low"] = (found["mean_abs"] - tail * spread).clip(lower=0)
        found["high"] = found["mean_abs"] + tail * spread
        found.index.name = "feature"
        return found.sort_values("mean_abs", ascending=False).reset_index()

    def __repr__(self) -> str:
        """The folder, and how many of its inputs are done and failed."""
        try:
            settings = self.settings
            count, size = int(settings["count"]), int(settings["part_size"])
            parts = [int(name.split("-")[1].split(".")[0]) for name in part_names(self.location)]
            done = sum(min(size, max(count - part * size, 0)) for part in parts)
            failed = len(self.failures()) if parts else 0
        except (OSError, ValueError, KeyError, TypeError, ImportError) as error:
            return f"Run(folder={str(self.folder)!r}, unreadable: {type(error).__name__})"
        return f"Run(folder={str(self.folder)!r}, inputs={count}, done={done}, failed={failed})"


def _totals(rows: Any) -> Any:
    """Sums over inputs by feature: absolute values, their variances, and the number of inputs."""
    sd = rows["sd"].fillna(0.0).to_numpy(dtype=float)
    size, variance = _folded(rows["mean"].to_numpy(dtype=float), sd)
    rows = rows.assign(size=size, spread=np.sqrt(variance))
    each = rows.groupby(["feature", "input"], sort=False)[["size", "spread"]].mean()
    each["variance"] = each["spread"] ** 2
    return each.groupby(level="feature", sort=False).agg(
        size=("size", "sum"), variance=("variance", "sum"), inputs=("size", "size")
    )


def _folded(mean: Any, sd: Any) -> tuple[Any, Any]:
    """Mean and variance of |x| for a normal x."""
    ratio = np.divide(mean, sd, out=np.full_like(mean, np.inf), where=sd > 0)
    bulk = np.where(sd > 0, np.sqrt(2 / np.pi) * sd * np.exp(-np.minimum(ratio**2, 1e3) / 2), 0.0)
    size = bulk + np.abs(mean) * special.erf(np.abs(ratio) / np.sqrt(2))
    return size, np.maximum(mean**2 + sd**2 - size**2, 0.0)
