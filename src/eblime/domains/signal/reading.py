"""Reading signals: arrays, series, frames and files as channels of samples, with their times."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from eblime._checks import check_names, check_number
from eblime._types import FloatArray
from eblime._warn import warn_user
from eblime.domains.arrays import as_numbers, check_finite
from eblime.domains.readers import read_file, read_mat, read_npy

# a column with the times, such as "time", "t" or "Time [ms]"
_TIME = re.compile(r"(?:time|t|timestamp|datetime|date)(?:\s*[\[(](\w{1,20})[\])])?", re.IGNORECASE)
_UNNAMED = ("", "Unnamed: 0")  # an index that pandas wrote, and what it calls such a column


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recording:
    """The samples of a signal, the names of its channels, and when they were taken."""

    signal: FloatArray  # (C, T)
    channels: Sequence[str]  # (C,) names
    times: FloatArray | None = None  # (T,) increasing; None where samples are only numbered
    unit: str = ""  # of the times, such as "s"; empty if it is not known
    start: str = ""  # date and time of time 0 in ISO 8601, for times in seconds; empty without one
    flat: bool = False  # whether it came, and the model gets it, without an axis of channels

    @property
    def n_samples(self) -> int:
        """Number of samples of each channel, T."""
        return int(self.signal.shape[1])

    @property
    def rate(self) -> float:
        """Samples per unit of time; 1 without times."""
        if self.times is None or self.n_samples == 1:
            return 1.0
        return float((self.n_samples - 1) / (self.times[-1] - self.times[0]))


def read_recording(
    source: object,
    *,
    rate: float | None = None,
    channels: Sequence[str] | None = None,
    key: str | None = None,
) -> Recording:
    """Read and check a signal; source and settings are those of `SignalExplainer`."""
    if isinstance(source, (str, os.PathLike)):
        if key is not None and not str(source).lower().endswith(".mat"):
            raise ValueError(f"`key` is for .mat files; got {str(source)!r}.")
        found = read_file(Path(source), _READERS | {".mat": partial(_read_mat, key=key)})
    else:
        found = _read_columns(source) or _read_array(source)
    _check_samples(found.signal)
    if channels is not None:
        found = replace(found, channels=check_names("channels", channels, len(found.signal)))
    return found if rate is None else _with_rate(found, rate)


def _with_rate(found: Recording, rate: float) -> Recording:
    """A recording with its samples per second, which must not differ from its own times."""
    check_number("rate", rate)
    if found.times is None:
        unit, rate = ("us", rate / 1e6) if rate >= 1e6 else ("s", rate)
        return replace(found, times=np.arange(found.signal.shape[1]) / rate, unit=unit)
    if found.unit in ("s", "") and not np.isclose(found.rate, rate, rtol=1e-3):
        raise ValueError(
            "`rate` must be left out, or equal to that of the signal's own times, "
            f"{found.rate:g}; got {rate:g}."
        )
    return found


def _check_samples(signal: FloatArray) -> None:
    """Refuse a signal that is too short or not finite; warn about one that may be transposed."""
    n_channels, n = signal.shape
    if n < 2 or not n_channels:
        raise ValueError(
            f"`signal` must have at least 2 samples; got {n} in {n_channels} channels."
        )
    check_finite("signal", signal)
    if n_channels > n:
        warn_user(
            f"The signal is read as {n_channels} channels of {n} samples each. If it is the other "
            "way round, pass `signal.T`."
        )


def _read_array(source: object) -> Recording:
    values = as_numbers("signal", source, (1, 2), "(T,) or (C, T)", "a series, a frame or a path")
    samples = np.array(np.atleast_2d(values), dtype=np.float64)  # a copy: the explanation keeps it
    channels = [*map(str, range(len(samples)))]
    return Recording(signal=samples, channels=channels, flat=values.ndim == 1)


def _read_columns(source: object) -> Recording | None:
    """A series or a frame of any library that narwhals reads; None for other objects."""
    import narwhals as nw

    native: object = nw.from_native(source, pass_through=True, eager_only=True, allow_series=True)
    if isinstance(native, nw.Series):
        names, series = [native.name or "0"], [native]
    elif isinstance(native, nw.DataFrame):
        names, series = native.columns, [*native.iter_columns()]
    else:
        return None
    names = check_names("columns", names, len(names))
    columns = {name: one.to_numpy() for name, one in zip(names, series, strict=True)}
    index = nw.maybe_get_index(native)
    if index is not None:
        index = np.asarray(index.tz_localize(None) if getattr(index, "tz", None) else index)
    return _from_columns(columns, "`signal`", index, flat=isinstance(native, nw.Series))


def _from_columns(
    columns: dict[str, np.ndarray],
    owner: str,
    index: np.ndarray | None = None,
    *,
    flat: bool = False,
) -> Recording:
    """Columns as channels; one that is called time, if there are others, has the times.

    Without one, the index has them, if it is not the numbers of the rows. A first column without a
    name is an index that pandas wrote.
    """
    first = next(iter(columns), None)
    if first in _UNNAMED and len(columns) > 1:
        index = columns.pop(first)
    matches: dict[str, Any] = {name: _TIME.fullmatch(name.strip()) for name in columns}
    clock = next((name for name in columns if matches[name] and len(columns) > 1), None)
    names = [name for name in columns if name != clock]
    signal = [_channel(columns[name], f"column {name!r} of {owner}") for name in names]
    if not signal or not len(signal[0]):
        raise ValueError(f"{owner} must have at least one column and not be empty.")
    found = Recording(signal=np.array(signal), channels=names, flat=flat)
    if clock is not None:
        unit = matches[clock][1] or ""
        return _with_times(found, columns[clock], unit, f"column {clock!r} of {owner}")
    if index is None or np.array_equal(index, np.arange(len(index))):
        return found
    return _with_times(found, index, "", f"the index of {owner}")


def _channel(values: np.ndarray, place: str) -> FloatArray:
    """A column of real numbers; missing ones become NaN."""
    try:
        if values.dtype.kind in "cMmSU":
            raise TypeError
        return values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{place} must have real numbers; got dtype {values.dtype}.") from error


def _with_times(found: Recording, stamps: np.ndarray, unit: str, place: str) -> Recording:
    """A recording with its times: dates become seconds after the first one."""
    if stamps.dtype.kind in "OSU":
        try:
            stamps = stamps.astype("datetime64[ns]")
        except (TypeError, ValueError):
            return found  # names of rows
    start = ""
    if stamps.dtype.kind in "Mm":
        if np.isnat(stamps).any():
            raise ValueError(f"{place} must have a time for each sample; some are missing.")
        if stamps.dtype.kind == "M":
            start = str(stamps[0].astype("datetime64[ns]"))
            stamps = stamps - stamps[0]
        stamps, unit = stamps / np.timedelta64(1, "s"), "s"
    times = stamps.astype(np.float64)
    wrong = np.flatnonzero(~(np.diff(times) > 0))  # also NaN
    if len(wrong):
        raise ValueError(
            f"{place} must increase from sample to sample; sample {wrong[0] + 1} does not come "
            "after the one before. Sort the rows, or leave the times out."
        )
    return replace(found, times=times, unit=unit, start=start)


def _read_wav(path: Path) -> Recording:
    """A .wav file; whole numbers become floats from -1 to 1, as in audio packages."""
    from scipy.io import wavfile

    rate, values = wavfile.read(path)
    if values.dtype == np.uint8:
        values = (values - 128.0) / 128
    elif values.dtype.kind == "i":
        values = values / -float(np.iinfo(values.dtype).min)
    found = _read_array(values.T)
    return replace(found, times=np.arange(found.signal.shape[1]) / rate, unit="s")


def _read_mat(path: Path, key: str | None = None) -> Recording:
    """An array of a .mat file; samples are in the longer of its two directions."""
    value = np.asarray(read_mat(path, key, axes=(1, 2)).values)
    value = value.T if value.ndim == 2 and value.shape[0] > value.shape[1] else value
    return _read_array(value[0] if len(value) == 1 else value)


def _read_csv(path: Path) -> Recording:
    """A .csv file with one column per channel, with or without a header.

    Values may be separated by semicolons or tabs; then a comma is a decimal one.
    """
    with path.open(encoding="utf-8-sig") as stream:
        head = stream.readline()
    mark = next((mark for mark in ";\t" if mark in head), ",")
    cells = np.loadtxt(
        path, str, delimiter=mark, quotechar='"', comments=None, encoding="utf-8-sig", ndmin=2
    )
    cells = np.char.strip(cells)
    values = cells if mark == "," else np.char.replace(cells, ",", ".")
    named = _csv_column(values[0]).dtype.kind != "f"
    names = cells[0].tolist() if named else [*map(str, range(cells.shape[1]))]
    names = check_names("columns", names, len(names))
    columns = dict(zip(names, map(_csv_column, values[int(named) :].T), strict=True))
    found = _from_columns(columns, repr(str(path)))
    return replace(found, flat=len(found.signal) == 1)


def _csv_column(texts: np.ndarray) -> np.ndarray:
    """Cells as numbers, empty ones as NaN; else as dates, or as texts."""
    for found, dtype in ((np.where(texts == "", "nan", texts), "f8"), (texts, "datetime64[ns]")):
        try:
            return found.astype(dtype)
        except ValueError:
            pass
    return texts


_READERS: dict[str, Callable[[Path], Recording]] = {
    ".wav": _read_wav,
    ".csv": _read_csv,
    ".npy": lambda path: _read_array(read_npy(path).values),
    ".mat": _read_mat,
}
SIGNAL_ENDINGS = tuple(_READERS)
