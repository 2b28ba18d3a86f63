"""`open_run`: the results of a run, read one part at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime import registry
from eblime._checks import check_level
from eblime._types import IntArray
from eblime._warn import warn_user
from eblime.batch.folder import (
    map_parts,
    missing_parts,
    part_count,
    part_files,
    part_numbers,
    part_schema,
    read_manifest,
    read_part,
    read_table,
)
from eblime.batch.location import Location, arrow
from eblime.batch.overall import By, Found, compared, overall_by_feature, summarised
from eblime.results.explanation import Explanation
from eblime.results.storage import unpack

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.dataset
    from matplotlib.axes import Axes

__all__ = ["Run", "open_run"]


def open_run(path: str | os.PathLike[str]) -> Run:
    """Open a run folder; a warning says if parts of the run are missing.

    Reading a damaged file raises `DamagedFileError`, a `ValueError`; calling `explain_many` again
    replaces the file. A part of another run raises a `ValueError`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).random((20, 3))
    >>> explainer = eblime.TabularExplainer(lambda table: table[:, 0], rows, n_masks=50)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = eblime.explain_many(explainer, rows[:4], f"{folder}/run", progress=False)
    ...     len(eblime.open_run(f"{folder}/run").failures())
    0
    """
    location = Location.of(path)
    settings = read_manifest(location)["settings"]
    missing = missing_parts(location, range(part_count(settings)))
    if missing:
        without = sum(len(part_numbers(settings, part)) for part in missing)
        warn_user(
            f"{location} has {settings['count'] - without} of {settings['count']} inputs: part "
            f"{missing[0]} {f'and {len(missing) - 1} more are' if missing[1:] else 'is'} missing. "
            "Call `explain_many`, or `eblime batch --resume`, again to finish the run."
        )
    return Run(location=location)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Run:
    """The results of a run so far.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).random((30, 3))
    >>> score = lambda table: 2 * table[:, 0] - table[:, 2]
    >>> explainer = eblime.TabularExplainer(score, rows, names=["a", "b", "c"], n_masks=50)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = eblime.explain_many(explainer, rows[:6], f"{folder}/run", progress=False)
    ...     overall = run.summary()
    ...     rows_of_run = run.frame()
    >>> overall["feature"].tolist()
    ['a', 'c', 'b']
    >>> rows_of_run.columns[:4].tolist(), len(rows_of_run)
    (['input', 'name', 'target', 'label'], 18)
    """

    location: Location

    @property
    def folder(self) -> Path | str:
        """The path of the run folder, or its address in a store."""
        return self.location.local_path or self.location.address

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the run."""
        return dict(read_manifest(self.location)["settings"])

    def scan(self, *, verify: bool = True) -> pyarrow.dataset.Dataset:
        """All rows as a lazy pyarrow dataset, which pandas, polars and DuckDB read in pieces.

        Parameters
        ----------
        verify
            Compare every file with its checksum first, which reads the whole run once.
        """
        from pyarrow import dataset

        run, files = self._parts()
        if verify:
            for _ in map_parts(lambda *file: len(read_table(self.location, run, *file)), files):
                pass
        system, path = self.location.open()
        paths = [f"{path}/{name}" for name in files.values()]
        return dataset.dataset(paths, schema=part_schema(), format="parquet", filesystem=system)

    def _parts(self) -> tuple[str, dict[int, str]]:
        """The id of the run, and the files of the finished parts, at least one."""
        files = part_files(self.location)
        if not files:
            raise FileNotFoundError(f"{self.location} has no finished part yet.")
        return read_manifest(self.location)["run"], files

    def frame(self) -> pd.DataFrame:
        """One row per input, target and feature, as a pandas frame; failures are left out.

        The whole run is read into memory; `pieces` reads one part after another.
        """
        import pandas as pd

        rows = pd.concat(self.pieces(), ignore_index=True)
        return rows.sort_values(["input", "target", "place"], ignore_index=True)

    def pieces(self) -> Iterator[pd.DataFrame]:
        """The rows of `frame`, one part at a time; all rows of an input are in the same part."""
        integers = {name: "int64" for name in ("input", "target", "place", "n_masks")}
        run, files = self._parts()
        for part, name in files.items():
            rows, _ = read_part(self.location, run, part, name)
            good = rows[rows["error"].isna()].drop(columns="error")
            yield good.astype(integers)  # failed inputs have nulls there

    def failures(self) -> pd.DataFrame:
        """The failed inputs and their error messages."""
        pa, _ = arrow()
        run, files = self._parts()

        def failed(part: int, name: str) -> Any:
            table = read_table(self.location, run, part, name).select(["input", "name", "error"])
            return table.filter(table.column("error").is_valid())

        table: pd.DataFrame = pa.concat_tables(map_parts(failed, files)).to_pandas()
        return table.sort_values("input", ignore_index=True)

    def explanation(self, number: int, target: int | None = None) -> Explanation:
        """One whole explanation, if the run has saved it; None is the first output."""
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
        return unpack((folder / names[0]).read(), folder / names[0])

    def summary(self, prob: float = 0.95, *, by: By = None) -> pd.DataFrame:
        """Importance of each feature over all inputs, with intervals, without sampling noise.

        Parameters
        ----------
        prob
            Probability of the intervals.
        by
            How to group the inputs: "label" for the explained class; the name of a column of the
            table, for its bins; a list or array with the group of each input; or a dictionary from
            an input's number or name to its group. Inputs without a group are left out.

        Returns
        -------
        DataFrame
            One row per feature, the most important first; with `by`, per `group` and feature.

            - `mean_abs`, `low`, `high`: the mean of the absolute importance and its interval.
            - `mean`, `mean_low`, `mean_high`: the mean importance.
            - `positive`, `negative`: the share of inputs with an importance above and below zero,
              each with `_low` and `_high`.
            - `inputs`: how many inputs have the feature.

        Notes
        -----
        The importances of single inputs have errors, and their absolute values would count them: a
        column that the model does not use would get an importance. So the distribution of the true
        importances over the inputs is fitted to the least-squares estimates and their standard
        errors (columns `estimate` and `se` of `frame`), and its mean size is given. The interval
        begins at zero if the estimates are no larger than their errors.

        The intervals are about these inputs, each explained with infinitely many masks. They do not
        predict other inputs. Several outputs of one input are averaged, as if their errors were the
        same; use `by="label"` to keep classes apart. Of a run with more than 2,000 inputs, a sample
        is fitted, and corrected by the mean absolute estimate of all.

        With fewer masks than features there are no least-squares estimates. Posterior means and
        standard deviations serve instead; as they are shrunk, `mean_abs` is then too small.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import eblime
        >>> rows = np.random.default_rng(0).random((30, 3))
        >>> score = lambda table: 2 * table[:, 0] - table[:, 2]
        >>> explainer = eblime.TabularExplainer(score, rows, names=["a", "b", "c"], n_masks=50)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run = eblime.explain_many(explainer, rows[:6], f"{folder}/run", progress=False)
        ...     overall = run.summary()
        >>> overall["feature"].tolist(), overall["inputs"].tolist()
        (['a', 'c', 'b'], [6, 6, 6])
        """
        level = check_level("prob", prob)
        return summarised(self._overall(by), level, grouped=by is not None)

    def compare(
        self,
        other: Run | None = None,
        *,
        by: By = None,
        groups: tuple[Any, Any] | None = None,
        prob: float = 0.95,
    ) -> pd.DataFrame:
        """Difference in importance between two runs, or between two groups of this run's inputs.

        Parameters
        ----------
        other
            A run of another model. If both runs have the same inputs, those that failed in either
            are left out of both.
        by
            Without `other`: how to group the inputs, as for `summary`.
        groups
            The two groups to compare; may be left out if there are only two.
        prob
            Probability of the intervals.

        Returns
        -------
        DataFrame
            One row per feature that both have, the clearest difference first: `mean_abs` and
            `other_mean_abs`; their `difference` with `low` and `high`; `mean_difference` with
            `mean_low` and `mean_high`; `inputs` and `other_inputs`.

        Notes
        -----
        The intervals are about these inputs, as those of `summary`. The errors of the two are
        treated as independent. Two runs with the same seed share their masks, so the errors of
        similar models partly cancel, and the intervals are then too wide rather than too narrow.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import eblime
        >>> rows = np.random.default_rng(0).random((30, 3))
        >>> score = lambda table: 2 * table[:, 0] - table[:, 2]
        >>> explainer = eblime.TabularExplainer(score, rows, names=["a", "b", "c"], n_masks=50)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run = eblime.explain_many(explainer, rows[:6], f"{folder}/run", progress=False)
        ...     differences = run.compare(by=["low"] * 3 + ["high"] * 3)
        >>> differences.columns[:3].tolist()
        ['feature', 'mean_abs', 'other_mean_abs']
        """
        level = check_level("prob", prob)
        if (other is None) == (by is None):
            raise ValueError("`compare` needs either `other`, a run, or `by`, groups of inputs.")
        if other is not None and groups is not None:
            raise ValueError("`groups` are two groups of `by`; leave them out with `other`.")
        if other is None:
            found = self._overall(by)
            pair = _two_groups(found, groups)
            first, second = ({f: v for (g, f), v in found.items() if g == name} for name in pair)
            return compared(first, second, level)
        one, two = self._paired(other)
        return compared(
            {feature: entry for (_, feature), entry in one.items()},
            {feature: entry for (_, feature), entry in two.items()},
            level,
        )

    def _overall(self, by: By, only: Callable[[Any], Any] | None = None) -> Found:
        """Importance over inputs by (group, feature)."""
        return overall_by_feature(self.pieces(), int(self.settings["count"]), by, only)

    def _paired(self, other: Run) -> tuple[Found, Found]:
        """Importance over the inputs of both runs; over those in common if they are the same."""
        if not isinstance(other, Run):
            raise TypeError(f"`other` must be a run, from `open_run`; got {type(other).__name__}.")
        if self.settings["inputs"] != other.settings["inputs"]:
            return self._overall(None), other._overall(None)
        common = np.intersect1d(self._explained(), other._explained())
        if not len(common):
            raise ValueError("The runs must have explained an input in common; got none.")
        both = partial(np.isin, test_elements=common)
        return self._overall(None, both), other._overall(None, both)

    def _explained(self) -> IntArray:
        """Numbers of the inputs that did not fail."""
        return np.concatenate([rows["input"].unique() for rows in self.pieces()])

    def plot(self, kind: str = "beeswarm", *, ax: Axes | None = None, **settings: Any) -> Axes:
        """Draw the importances of all inputs; returns matplotlib Axes.

        Kinds: "beeswarm" (one point per input and feature) and "dependence" (importance against the
        value of one column, `feature="age"`). `settings` are passed to the function of
        `eblime.plot` that draws.
        """
        return registry.find("run_plots", kind)(self, ax=ax, **settings)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        """The folder, and how many of its inputs are done and failed."""
        try:
            settings = self.settings
            count, parts = settings["count"], part_files(self.location)
            done = sum(len(part_numbers(settings, part)) for part in parts)
            failed = len(self.failures()) if parts else 0
        except (OSError, ValueError, KeyError, TypeError, ImportError) as error:
            return f"Run(folder={str(self.folder)!r}, unreadable: {type(error).__name__})"
        return f"Run(folder={str(self.folder)!r}, inputs={count}, done={done}, failed={failed})"


def _two_groups(found: Found, groups: tuple[Any, Any] | None) -> tuple[Any, Any]:
    """The groups to compare: those named, or the only two that there are."""
    known = list(dict.fromkeys(group for group, _ in found))
    wanted = known if groups is None else list(groups)
    if len(wanted) != 2 or wanted[0] == wanted[1] or not set(wanted) <= set(known):
        listed = ", ".join(repr(group) for group in known[:12])
        raise ValueError(f"`groups` must be two of {listed}; got {groups!r:.80}.")
    return wanted[0], wanted[1]
