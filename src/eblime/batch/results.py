"""`open_run`: the results of a run, read one part at a time."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from eblime import registry
from eblime._checks import check_level
from eblime._text import name_outputs
from eblime._types import FloatArray, IntArray
from eblime._warn import warn_user
from eblime.batch import folder as run_folder
from eblime.batch.location import Location, TemporaryFolder, arrow
from eblime.core.fit_quality import ROUNDING
from eblime.core.overall import Overall, fit_overall, overall_interval
from eblime.results.explanation import Explanation
from eblime.results.storage import unpack

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.dataset
    from matplotlib.axes import Axes

By = str | Mapping[Any, Any] | Sequence[Any] | None
Found = dict[Any, dict[str, Overall]]  # group -> feature -> importance over its inputs
_ESTIMATES = ["input", "target", "label", "prediction", "place", "feature"]
_ESTIMATES += ["mean", "sd", "estimate", "se"]
_SUMMARY = ["low", "high", "mean", "mean_low", "mean_high"]
_SUMMARY += [f"{sign}{end}" for sign in ("positive", "negative") for end in ("", "_low", "_high")]
_COMPARISON = ["feature", "mean_abs", "other_mean_abs", "difference", "low", "high"]
_COMPARISON += ["mean_difference", "mean_low", "mean_high", "inputs", "other_inputs"]
_SINGLE = 1e-6  # relative error of numbers in single precision, with a margin


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
    settings = run_folder.read_manifest(location)["settings"]
    done, count = run_folder.part_files(location), -(-settings["count"] // settings["part_size"])
    missing = count - len(done)
    if missing:  # not listed, as a manifest may claim any number of parts
        found = sum(len(run_folder.part_numbers(settings, part)) for part in done)
        warn_user(
            f"{location} has {found} of {settings['count']} inputs: {missing} of {count} parts are "
            "missing. Call `eblime.explain_many`, or `eblime batch --resume`, again to finish it."
        )
    return Run(location=location)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Run:
    """The results of a run so far; `explain_many` and `open_run` return it.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).random((30, 3))
    >>> score = lambda table: 2 * table[:, 0] - table[:, 2]
    >>> explainer = eblime.TabularExplainer(score, rows, names=["a", "b", "c"], n_masks=50)
    >>> run = eblime.explain_many(explainer, rows[:6], progress=False)
    >>> run.summary()["feature"].tolist()
    ['a', 'c', 'b']
    """

    location: Location
    temporary: TemporaryFolder | None = field(default=None, compare=False)  # which holds it

    @property
    def folder(self) -> Path | str:
        """The path of the run folder, or its address in a store."""
        return self.location.local_path or str(self.location)

    @property
    def settings(self) -> run_folder.Settings:
        """The settings of the run."""
        settings: run_folder.Settings = run_folder.read_manifest(self.location)["settings"]
        return settings

    def scan(self) -> pyarrow.dataset.Dataset:
        """All rows as a lazy pyarrow dataset, which pandas, polars and DuckDB read in pieces.

        Every file is first compared with its checksum, which reads the whole run once. Those of a
        run without a folder are gone when the run is.
        """
        from pyarrow import dataset

        for _ in self._tables([]):
            pass
        schema, (system, path) = arrow()[0].schema(run_folder.COLUMNS), self.location.open()
        paths = [f"{path}/{name}" for name in run_folder.part_files(self.location).values()]
        return dataset.dataset(paths, schema=schema, format="parquet", filesystem=system)

    def _tables(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        files = run_folder.part_files(self.location).values()
        if not files:
            raise FileNotFoundError(f"{self.location} has no finished part yet.")
        run = run_folder.read_manifest(self.location)["run"]
        wanted = None if columns is None else [*columns, "error"]
        return run_folder.map_parts(
            lambda name: run_folder.read_table(self.location, run, name, wanted), files
        )

    def frame(self, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """One row per input, target and feature, as a pandas frame; failures are left out.

        Columns that no input has, such as pixels for a table or the question for an image, are left
        out unless they are named. The whole run is read into memory; `pieces` reads one part after
        another.

        Parameters
        ----------
        columns
            Names of the columns to read, which takes less memory; None reads all.
        """
        order = ["input", "target", "place"]
        wanted = None if columns is None else list(dict.fromkeys([*columns, *order]))
        rows = _explained(self._tables(wanted)).sort_values(order, ignore_index=True)
        if columns is not None:
            return rows[list(columns)]
        return rows.drop(
            columns=[c for c in ("question", *run_folder.DETAILS) if rows[c].isna().all()]
        )

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """The rows of `frame`, one part at a time; all rows of an input are in the same part."""
        return (_explained([table]) for table in self._tables(columns))

    def failures(self) -> pd.DataFrame:
        """The failed inputs and their error messages."""
        tables = self._tables(["input", "name"])
        failed = [table.filter(table.column("error").is_valid()) for table in tables]
        found: pd.DataFrame = arrow()[0].concat_tables(failed).to_pandas()
        return found.sort_values("input", ignore_index=True)

    def explanation(self, number: int, target: int | None = None) -> Explanation:
        """One whole explanation, if the run has saved it; `target=None` is the first output."""
        kept = (self.location / "explanations").files()
        own = (name for name in kept if name.startswith(f"{number}-"))
        names = sorted(own, key=lambda name: (len(name), name))  # 7-2 before 7-10
        name = f"{number}-{target}.eblime" if target is not None else next(iter(names), "")
        if name not in kept:
            count, failures = self.settings["count"], self.failures()
            why = "keep=True saves them."
            if not 0 <= number < count:
                why = f"its inputs are 0 to {count - 1}."
            elif number in set(failures["input"]):
                why = f"it failed: {failures.set_index('input')['error'][number]}"
            what = f"input {number}" + ("" if target is None else f", output {target}")
            raise FileNotFoundError(f"{self.location} has no explanation of {what}; {why}")
        file = self.location / f"explanations/{name}"
        run_folder.refuse_links(self.location, [f"explanations/{name}"])
        found, seed = unpack(file.read(), file), self.settings["seed"]
        spawned = f"SeedSequence({seed}, spawn_key=({number},))"  # no other input has it
        if (found.provenance.get("seed"), f"{number}-{found.target}.eblime") != (spawned, name):
            raise ValueError(
                f"{file} must be the explanation of input {number} of this run; it belongs to "
                "another input or output, or to another run. It was renamed or copied; remove it."
            )
        return found

    def summary(self, prob: float = 0.95, *, by: By = None) -> pd.DataFrame:
        """Importance of each feature over all inputs, with intervals, without sampling noise.

        Parameters
        ----------
        prob
            Probability of the intervals.
        by
            How to group the inputs: "label" for the explained class; the name of a column of the
            table, for its values; a list or array with the group of each input; or a dictionary
            from an input's number or name to its group. Inputs without a group are left out.

        Returns
        -------
        DataFrame
            One row per feature, the most important first; with `by`, per `group` and feature.

            - `mean_abs`, `low`, `high`: the mean of the absolute importance and its interval.
            - `mean`, `mean_low`, `mean_high`: the mean importance.
            - `positive`, `negative`: the share of inputs with an importance above and below zero,
              each with `_low` and `_high`.
            - `inputs`: how many inputs have the feature.
            - `output`: without `by`, what the importances are for. With `targets="predicted"` it is
              the predicted class of each input, and means over several classes mix their signs.

        Notes
        -----
        The importances of single inputs have errors, and their absolute values would count them: a
        column that the model does not use would get an importance. So the distribution of the true
        importances over the inputs is fitted to the least-squares estimates and their standard
        errors (columns `estimate` and `se` of `frame`), and its mean size is given. The interval
        begins at zero if the estimates are no larger than their errors.

        The intervals are about these inputs, each explained with infinitely many masks. They do not
        predict other inputs. Several outputs of one input are averaged, as if their errors were the
        same; use `by="label"` to keep classes apart.

        With fewer masks than features there are no least-squares estimates. Posterior means and
        standard deviations serve instead; as they are shrunk, `mean_abs` is then too small.
        """
        level = check_level("prob", prob)
        found, labels = self._importances(by)
        table = _summary_table(found, level, grouped=by is not None)
        if by is not None:
            return table
        return table.assign(output=name_outputs(labels, predicted=self.settings["targets"] == 1))

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
            are left out of both. A warning says if the two estimate different quantities.
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
        """
        level = check_level("prob", prob)
        if (other is None) == (by is None):
            raise ValueError("`compare` needs either `other`, a run, or `by`, groups of inputs.")
        if other is not None and groups is not None:
            raise ValueError("`groups` are two groups of `by`; leave them out with `other`.")
        if other is None:
            found, _ = self._importances(by)
            wanted = list(found if groups is None else groups)  # if there are only two, those
            if len(wanted) != 2 or wanted[0] == wanted[1] or not set(wanted) <= set(found):
                listed = ", ".join(repr(group) for group in [*found][:12])
                raise ValueError(f"`groups` must be two of {listed}; got {groups!r:.80}.")
            return _comparison_table(found[wanted[0]], found[wanted[1]], level)
        if not isinstance(other, Run):
            raise TypeError(f"`other` must be a run, from `open_run`; got {type(other).__name__}.")
        common = None
        if self.settings["inputs"] == other.settings["inputs"]:
            common = np.intersect1d(self.frame(["input"]), other.frame(["input"]))
            if not common.size:
                raise ValueError("The runs must have explained an input in common; got none.")
            words: set[str] = set()
            for run in (self, other):
                with suppress(FileNotFoundError, ValueError):  # the explanation is not saved
                    words.add(run.explanation(int(common[0])).estimand)
            if len(words) > 1:
                warn_user("The runs estimate different quantities, so compare ranks, not sizes.")
        one, two = (
            run._importances(None, common, seed)[0].get("all", {})
            for seed, run in enumerate((self, other))
        )
        return _comparison_table(one, two, level)

    def _importances(
        self, by: By, only: IntArray | None = None, seed: int = 0
    ) -> tuple[Found, Counter[str]]:
        """Importance of each feature over the inputs of each group, or over `only` some inputs.

        With how many explanations each output has.
        """
        columns, group_of = _grouping(by, int(self.settings["count"]))
        rows = _explained(self._tables([*_ESTIMATES, *columns]))
        if only is not None:
            rows = rows[np.isin(rows["input"], only)]
        table = _estimates(rows.assign(group=group_of(rows)))
        found: Found = defaultdict(dict)
        rng, columns = np.random.default_rng(seed), ["estimate", "se", "weight"]
        for (group, feature), own in table.groupby(["group", "feature"], sort=False)[columns]:
            found[group][str(feature)] = fit_overall(rng, *own.to_numpy().T)
        return found, Counter(rows["label"][rows["place"] == 0])

    def pool(self) -> Run:
        """Fit every input again with a prior that is learnt from all inputs; no model call.

        Returns the pooled run, which is stored in the folder `pooled` of this one. It has the same
        inputs, and importances of the same quantity, with other intervals. Call it again when the
        run has changed.

        It needs the whole explanations of all inputs (`keep=True`), by `EBLIME()`. The notes of
        `eblime.EBLIME.pool` have the prior.
        """
        from eblime.batch.pool import pool

        return pool(self)

    def plot(self, kind: str = "beeswarm", *, ax: Axes | None = None, **settings: Any) -> Axes:
        """Draw the importances of all inputs; returns matplotlib Axes.

        Kinds: "beeswarm" (one point per input and feature) and "dependence" (importance against the
        value of one column, `feature="age"`). `settings` are passed to the function of
        `eblime.plot` that draws.
        """
        return registry.find("run_plots", kind)(self, ax=ax, **settings)

    def __repr__(self) -> str:
        return f"Run(folder={str(self.folder)!r})"


def _explained(tables: Iterable[Any]) -> pd.DataFrame:
    """The rows of parts, without failed inputs."""
    rows = arrow()[0].concat_tables(tables)
    explained = rows.filter(rows.column("error").is_null()).drop_columns(["error"])
    found: pd.DataFrame = explained.to_pandas(use_threads=False)
    return found


# Importance over the inputs of a run, and differences between runs or groups


def _estimates(rows: pd.DataFrame) -> pd.DataFrame:
    """Estimate, standard error and weight of every row; rows without an estimate are left out.

    Where there were too few masks for least squares, the posterior mean and standard deviation
    serve instead, and a point estimate counts as exact.
    """
    known = rows["estimate"].notna() & rows["se"].notna()
    table = rows[["input", "feature", "group"]].assign(
        estimate=rows["estimate"].where(known, rows["mean"]).astype(float),
        se=rows["se"].where(known, rows["sd"].fillna(0.0)).astype(float),
    )
    # At least the error of rounding: else the estimate 1e-17 of a feature that the model does not
    # use would count as different from zero, where all masks were asked.
    outputs = table["estimate"].abs().groupby([rows["input"], rows["target"]], sort=False)
    least = np.maximum(_SINGLE * outputs.transform("max"), ROUNDING * rows["prediction"].abs())
    table["se"] = np.maximum(table["se"], least)
    table = table[np.isfinite(table["estimate"]) & np.isfinite(table["se"])]
    table = table[table["group"].notna()]
    # several rows if several outputs were explained, or if a word occurs twice
    same = table.groupby(["group", "feature", "input"], sort=False)["se"]
    weighted: pd.DataFrame = table.assign(weight=1.0 / same.transform("size"))
    return weighted


def _grouping(by: By, count: int) -> tuple[list[str], Callable[[Any], Any]]:
    if by is None:
        return [], lambda _: "all"
    if isinstance(by, str):
        if by == "label":
            return [], lambda rows: rows["label"]
        return ["value", "bin"], lambda rows: _groups_of_column(rows, by)
    if isinstance(by, Mapping):
        if not by:
            raise ValueError("`by` must name the group of at least one input; got an empty one.")
        return ["name"], lambda rows: rows["input"].map(by).fillna(rows["name"].map(by))
    listed = np.asarray(by, dtype=object)
    if listed.shape != (count,):
        raise ValueError(
            f"`by` must have one group for each of the {count} inputs; got shape {listed.shape}."
        )
    return [], lambda rows: listed[rows["input"].to_numpy()]


def _groups_of_column(rows: pd.DataFrame, column: str) -> pd.Series[Any]:
    """The bin, or else the value, that the row of a table has in a column."""
    own = rows[rows["feature"] == column].drop_duplicates("input").set_index("input")
    groups = own["bin"].fillna(own["value"])
    if len(rows) and not groups.notna().any():
        raise ValueError(
            f'`by` must be "label", a column of the table, or the group of each input; got '
            f"{column!r:.60}."
        )
    return rows["input"].map(groups)


def _summary_table(found: Found, prob: float, *, grouped: bool) -> pd.DataFrame:
    """One row per group and feature, the most important first in each group."""
    import pandas as pd

    rows: list[tuple[Any, ...]] = []
    for group, feature, entry in ((g, f, e) for g in found for f, e in found[g].items()):
        mean = _around(entry.mean, entry.mean_se, prob)
        size = float(np.median(entry.size)), entry.n, *entry.size_interval(prob)
        shares = (_middle(draws, prob) for draws in (entry.positive, entry.negative))
        rows.append((group, feature, *size, *mean, *chain(*shares)))
    rows.sort(key=lambda row: (str(row[0]), -row[2]))
    table = pd.DataFrame(rows, columns=["group", "feature", "mean_abs", "inputs", *_SUMMARY])
    return table if grouped else table.drop(columns="group")


def _comparison_table(
    first: Mapping[str, Overall], second: Mapping[str, Overall], prob: float
) -> pd.DataFrame:
    """One row per feature that both have, the clearest difference first."""
    import pandas as pd

    rows = []
    for feature in (name for name in first if name in second):
        one, two = first[feature], second[feature]
        apart = (one.size[:, None] - two.size[None]).reshape(-1, one.size.shape[1])
        sizes = (float(np.median(entry.size)) for entry in (one, two))
        mean = _around(one.mean - two.mean, float(np.hypot(one.mean_se, two.mean_se)), prob)
        rows.append((feature, *sizes, *_middle(apart, prob), *mean, one.n, two.n))
    if not rows:
        raise ValueError("The two must have a feature in common; got none.")
    table = pd.DataFrame(rows, columns=_COMPARISON)
    clear = np.maximum(table["low"].to_numpy(), -table["high"].to_numpy())
    return table.iloc[np.argsort(-clear, kind="stable")].reset_index(drop=True)


def _middle(draws: FloatArray, prob: float) -> tuple[float, float, float]:
    """The median of draws, and their interval."""
    return float(np.median(draws)), *overall_interval(draws, prob)


def _around(mean: float, se: float, prob: float) -> tuple[float, float, float]:
    """A mean, and its interval by its standard error."""
    reach = float(stats.norm.ppf((1 + prob) / 2)) * se
    return mean, mean - reach, mean + reach
