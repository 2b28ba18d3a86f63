"""Digests of content: the same for the same content in every process, and another for any other.

A value is pickled into a hash. Arrays and tables count by their values, sets in sorted order, and
what occurs twice counts twice, so that a copy has the digest of the original.
"""

from __future__ import annotations

import hashlib
import pickle
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np

_PLAIN = {type(None), bool, int, float, complex, str, bytes, bytearray, list, tuple, dict}
_CODE = ("co_code", "co_consts", "co_names", "co_varnames", "co_argcount", "co_flags")


class UnknownContentError(TypeError):
    """An object whose content cannot be digested for certain."""


def digest_of(value: object) -> str:
    """A digest of a value's content, 32 hexadecimal digits.

    A function counts by its code, its defaults and the variables that it encloses, a class by its
    name. What they call does not count, so the digest may miss a change. What cannot be pickled,
    such as an open file, raises an `UnknownContentError`.
    """
    pickler = _Pickler()
    try:
        pickler.dump(value)
    except Exception as error:  # whatever the methods of other packages raise
        raise UnknownContentError(f"its content cannot be read: {error}") from error
    return pickler.found.hexdigest()


class _Pickler(pickle.Pickler):
    """Pickles into a hash, and looks at every object on the way."""

    def __init__(self) -> None:
        self.found = hashlib.blake2b(digest_size=16)
        super().__init__(SimpleNamespace(write=self.found.update), protocol=5)
        self.fast = True  # no references: two equal lists are pickled as one list that occurs twice

    def persistent_id(self, value: Any) -> Any:
        """What to pickle instead of an object; None pickles the object itself."""
        kind = type(value)
        if kind in _PLAIN:
            return None
        if kind is np.ndarray and not value.dtype.hasobject:
            numbers = hashlib.blake2b(value.tobytes(), digest_size=16)
            return ("array", repr(value.dtype), value.shape, numbers.digest())
        if kind in (set, frozenset):
            return ("set", sorted(map(digest_of, value)))
        if isinstance(value, type):  # the module `__main__` has another name in a worker process
            return ("class", value.__qualname__)
        if isinstance(value, FunctionType):
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            return ("function", value.__qualname__, value.__code__, value.__defaults__, cells)
        if isinstance(value, CodeType):
            return ("code", [getattr(value, name) for name in _CODE])
        if (table := _columns(value)) is not None:
            return ("table", kind.__qualname__, table)
        return None


def _columns(value: Any) -> Any:
    """A table of another package as plain data and arrays; None for other objects."""
    if hasattr(value, "tocsr"):
        rows = value.tocsr()
        return rows.shape, rows.indptr, rows.indices, rows.data
    if hasattr(value, "iloc"):  # a frame or a series of pandas
        frame = value.to_frame() if value.ndim == 1 else value
        columns = [_series(frame.iloc[:, k]) for k in range(frame.shape[1])]
        return frame.columns.tolist(), frame.index.tolist(), columns
    if hasattr(value, "to_arrow"):  # of polars
        value = value.to_arrow()
    if hasattr(value, "to_pylist"):
        return str(getattr(value, "schema", None) or value.type), value.to_pylist()
    return None


def _series(series: Any) -> tuple[Any, ...]:
    """The dtype of a series of pandas, its categories if any, and its values."""
    dtype = series.dtype
    known = [*getattr(dtype, "categories", ())], getattr(dtype, "ordered", None)
    plain = isinstance(dtype, np.dtype) and not dtype.hasobject
    return str(dtype), known, series.to_numpy() if plain else series.tolist()
