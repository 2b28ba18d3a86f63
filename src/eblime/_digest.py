"""Digests of content: the same for the same content in every process, and another for any other.

A value is pickled into a hash. Arrays and tables count by their values, sets in sorted order, and
what occurs twice counts twice, so that a copy has the digest of the original.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
import sysconfig
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import PurePath
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

_PLAIN = {type(None), bool, int, float, complex, str, bytes, bytearray, list, tuple, dict}
_PACKAGES = {"site-packages", "dist-packages"}
_STANDARD = {sysconfig.get_paths()[kind] for kind in ("stdlib", "platstdlib")}
_CODE = ("co_code", "co_consts", "co_names", "co_varnames", "co_argcount", "co_flags")


class UnknownContentError(TypeError):
    """An object whose content cannot be digested for certain."""


def digest_of(value: Any, *, code: bool = False) -> str:
    """A digest of a value's content, 32 hexadecimal digits.

    Parameters
    ----------
    value
        Plain data, arrays and tables, or objects of Python, NumPy and eblime made of them.
    code
        Allow functions and objects of other packages and of the user too. A function counts by its
        code, its defaults and the variables that it encloses, and so does a class of the user's.
        What they call does not count, so the digest may miss a change.

    Raises
    ------
    UnknownContentError
        If the value has something in it that its pickle does not describe for certain.
    """
    return _digest(value, code, frozenset())


def _digest(value: Any, code: bool, inside: frozenset[int]) -> str:
    """A digest of a value in functions and classes that are being digested, by their ids."""
    pickler = _Pickler(code, inside)
    try:
        pickler.dump(value)
    except UnknownContentError:
        raise
    except Exception as error:  # whatever the methods of other packages raise
        raise UnknownContentError(f"its content cannot be read: {error}") from error
    return pickler.found.hexdigest()


class _Pickler(pickle.Pickler):
    """Pickles into a hash, and looks at every object on the way."""

    def __init__(self, code: bool, inside: frozenset[int]) -> None:
        self.found = hashlib.blake2b(digest_size=16)
        super().__init__(SimpleNamespace(write=self.found.update), protocol=5)
        self.fast = True  # no references: two equal lists are pickled as one list that occurs twice
        self._code, self._inside = code, inside

    def persistent_id(self, value: Any) -> Any:
        """What to pickle instead of an object; None pickles the object itself."""
        kind = type(value)
        if kind in _PLAIN:
            return None
        if kind is np.ndarray and not value.dtype.hasobject:
            numbers = hashlib.blake2b(value.tobytes(), digest_size=16)
            return ("array", repr(value.dtype), value.shape, numbers.digest())
        if kind in (set, frozenset):
            return ("set", sorted(_digest(x, self._code, self._inside) for x in value))
        if isinstance(value, CodeType):
            return ("code", [getattr(value, name) for name in _CODE])
        if isinstance(value, ModuleType) and self._code:
            return ("module", value.__name__)
        if (table := _columns(value)) is not None:
            return ("table", kind.__qualname__, table)
        named = value if getattr(value, "__qualname__", "") else kind
        origin = _origin(getattr(named, "__module__", None) or kind.__module__)
        if origin != "standard" and not self._code:
            what = "class" if isinstance(named, type) else "function"
            raise UnknownContentError(
                f"the {what} {named.__qualname__} of {named.__module__} is code, which may change"
            )
        if isinstance(value, FunctionType):
            if origin == "standard" and value.__qualname__.isidentifier():
                return None
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            return self._once(value, value.__code__, value.__defaults__, cells)
        if origin != "standard" and hasattr(value, "__wrapped__"):  # as by `functools.lru_cache`
            return ("wrapped", value.__wrapped__)
        if isinstance(value, type) and not origin:
            return self._once(value, value.__bases__, *_members(value))
        return None

    def _once(self, value: Any, *parts: Any) -> tuple[str, ...]:
        name = value.__qualname__  # the module `__main__` has another name in a worker process
        if id(value) in self._inside:
            return ("again", name)
        return (name, _digest(parts, self._code, self._inside | {id(value)}))


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    for name, value in sorted(vars(kind).items()):
        if isinstance(value, (property, cached_property)):
            value = value.fget if isinstance(value, property) else value.func
        hidden = name.startswith(("__", "_abc_")) or hasattr(value, "__objclass__")
        if isinstance(value, FunctionType) or not hidden:
            yield name, value


def _columns(value: Any) -> Any:
    """A table of another package as plain data and arrays; None for other objects."""
    if isinstance(value, type):
        return None
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


@lru_cache
def _origin(module: str) -> str:
    """Whether a module is "standard" (Python, NumPy, eblime), a "package", or the user's: ""."""
    top = module.partition(".")[0]
    if top in ("numpy", "eblime") or top in sys.builtin_module_names:
        return "standard"
    found = getattr(sys.modules.get(module, sys.modules.get(top)), "__file__", None)
    path = PurePath("" if top == "__main__" else found or "")
    if not _PACKAGES.isdisjoint(path.parts):
        return "package"
    return "standard" if any(map(path.is_relative_to, _STANDARD)) else ""
