"""Digests of content: data, functions and objects that are the same in every process.

A function is its code and whatever the code refers to: defaults, closures, globals. What a function
writes itself, such as a counter or a log, is left out: it changes from call to call.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import hashlib
import io
import pickle
import re
import sys
import sysconfig
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np

__all__ = ["UnknownContentError", "digest_of"]

Replace = Callable[[Any], Any]  # a value -> what to digest instead of it, or None

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), range)
_MUTABLE = (list, dict, set, deque)
_WRITING = {"append", "appendleft", "extend", "add", "update", "insert", "setdefault", "clear"}
_WRITING |= {"pop", "popleft", "remove", "discard"}
_STATELESS = ("threading", "_thread", "logging", "asyncio")  # modules of locks, loggers, ...
_INSTALLED = tuple(
    {sysconfig.get_paths()[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_PACKAGES = {"site-packages", "dist-packages"}


class UnknownContentError(TypeError):
    """An object whose content cannot be digested."""


def digest_of(value: Any, *, replace: Replace = lambda value: None) -> str:
    """A digest of a value's content, 32 hexadecimal digits.

    Parameters
    ----------
    value
        Plain data, arrays, functions, or objects made of them.
    replace
        Returns what to digest instead of a value, or None: for objects of other packages.

    Examples
    --------
    >>> digest_of([1, "a"]) == digest_of([1, "a"]), digest_of([1]) == digest_of([1.0])
    (True, False)
    >>> power = functools.partial(pow, 2)
    >>> digest_of(power) == digest_of(functools.partial(pow, 2)), digest_of(power) == digest_of(pow)
    (True, False)
    """
    return _Digester(replace).digest(value).hex()


class _Digester:
    """Digests values within values, each once."""

    def __init__(self, replace: Replace) -> None:
        self._replace = replace
        self._known: dict[int, bytes] = {}
        self._kept: list[Any] = []  # so that no id is used again
        self._written: set[str] = set()  # attributes that functions write

    def digest(self, value: Any) -> bytes:
        """The digest of a value."""
        if isinstance(value, _PLAIN):
            return _hash(type(value).__name__, repr(value).encode())
        if id(value) not in self._known:
            self._kept.append(value)
            self._known[id(value)] = b"cycle"
            self._known[id(value)] = self._of_object(value)
        return self._known[id(value)]

    def _joined(self, kind: str, values: Iterable[Any]) -> bytes:
        """The digest of several values in their order."""
        return _hash(kind, b"".join(self.digest(value) for value in values))

    def _of_object(self, value: Any) -> bytes:
        """The digest of anything that is not plain."""
        instead = self._replace(value)
        if instead is not None:
            return self._joined(_name(type(value)), [instead])
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            about = f"{value.dtype.str}{value.shape}".encode()
            return _hash("array", about, np.ascontiguousarray(value))
        if isinstance(value, np.ndarray):
            return self._joined("objects", [value.shape, value.tolist()])
        if isinstance(value, (np.generic, np.dtype, PurePath)):
            return _hash(type(value).__name__, repr(value).encode())
        if isinstance(value, (list, tuple, deque)):
            return self._joined(_name(type(value)), value)
        if isinstance(value, dict):
            return self._joined("dict", (part for pair in value.items() for part in pair))
        if isinstance(value, (set, frozenset)):
            return _hash("set", b"".join(sorted(self.digest(entry) for entry in value)))
        return self._of_code(value)

    def _of_code(self, value: Any) -> bytes:
        """The digest of functions, classes, modules and objects."""
        if isinstance(value, types.FunctionType):
            return self._joined("function", self._parts_of_function(value))
        if isinstance(value, types.CodeType):
            return self._joined("code", _parts_of_code(value))
        if isinstance(value, types.MethodType):
            return self._joined("method", [value.__self__, value.__name__])
        if isinstance(value, functools.partial):
            return self._joined("partial", [value.func, value.args, value.keywords])
        if isinstance(value, types.ModuleType):
            return self._joined("module", [value.__name__, _version(value.__name__)])
        if isinstance(value, types.BuiltinFunctionType) and not isinstance(
            value.__self__, (types.ModuleType, type(None))
        ):
            return self._joined("method", [value.__self__, value.__name__])
        if isinstance(value, (types.BuiltinFunctionType, np.ufunc)):
            return _hash("builtin", str(getattr(value, "__qualname__", value)).encode())
        if isinstance(value, type):
            return self._joined("class", self._parts_of_class(value))
        if isinstance(value, re.Pattern):
            return self._joined("pattern", [value.pattern, value.flags])
        return self._joined("object", self._parts_of_object(value))

    def _parts_of_function(self, function: types.FunctionType) -> Iterator[Any]:
        """Name, code, and what the code refers to."""
        yield _name(function)
        if _installed(function.__module__):
            yield _version(function.__module__)
            return
        yield from (function.__code__, function.__defaults__, function.__kwdefaults__)
        used, written, attributes, writes = _uses(function.__code__)
        if "." not in function.__qualname__.rpartition("<locals>.")[2]:  # methods write their own
            self._written |= attributes
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        inside = {name: cell.cell_contents for name, cell in cells if _is_full(cell)}
        outside = {name: function.__globals__[name] for name in used & {*function.__globals__}}
        for name, value in sorted({**outside, **inside}.items(), key=lambda pair: pair[0]):
            if name not in written and not (writes and isinstance(value, _MUTABLE)):
                yield from (name, value)

    def _parts_of_class(self, kind: type) -> Iterator[Any]:
        """Name, and for a class of the user's what its body defines."""
        yield _name(kind)
        if _installed(kind.__module__):
            yield _version(kind.__module__)
            return
        yield from (base for base in kind.__bases__)
        for name, value in sorted(vars(kind).items()):
            plain = getattr(value, "__func__", value)  # of a class or static method
            functions: list[Any] = [plain] if isinstance(plain, types.FunctionType) else []
            if isinstance(plain, property):
                functions = [part for part in (plain.fget, plain.fset) if part is not None]
            if functions or isinstance(value, (*_PLAIN, tuple, np.ndarray)):
                generated = name.startswith("__") and not functions
                yield from (() if generated else (name, *(functions or [value])))

    def _parts_of_object(self, value: Any) -> Iterator[Any]:
        """Class and state; the pickle of an object of an installed package."""
        kind = type(value)
        yield kind
        if kind.__module__.split(".")[0] in _STATELESS:
            yield getattr(value, "name", None) if kind.__module__ == "logging" else None
        elif dataclasses.is_dataclass(value):
            for entry in dataclasses.fields(value):
                yield from (entry.name, getattr(value, entry.name))
        elif not hasattr(value, "__dict__") or (
            _installed(kind.__module__) and kind is not types.SimpleNamespace
        ):
            yield from _pickled(value)
        else:
            written, writes = _attributes_written(kind)
            for name, part in sorted(vars(value).items()):
                log = writes and isinstance(part, _MUTABLE)
                if not log and name not in written | self._written:
                    yield from (name, part)


def _hash(kind: str, *parts: Any) -> bytes:
    """A digest of bytes of one kind."""
    found = hashlib.blake2b(kind.encode() + b"\0", digest_size=16)
    for part in parts:
        found.update(part)
    return found.digest()


def _name(value: Any) -> str:
    """The full name of a class or function."""
    return f"{value.__module__}.{value.__qualname__}"


def _is_full(cell: Any) -> bool:
    """Whether a closure's variable has a value yet."""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _installed(module: str | None) -> bool:
    """Whether a module belongs to Python or an installed package, whose version identifies it."""
    top = (module or "").split(".")[0]
    if top in sys.builtin_module_names or top in ("builtins", "eblime"):
        return True
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    other = not _PACKAGES.isdisjoint(
        PurePath(file).parts
    )  # a folder of packages besides Python's own
    return top != "__main__" and (other or file.startswith(_INSTALLED))


def _version(module: str) -> str:
    """The version of a package, as far as it says."""
    top = sys.modules.get(module.split(".")[0])
    return str(getattr(top, "__version__", ""))


class _Pickler(pickle.Pickler):
    """Pickles, and notes the user's own classes and functions: a pickle has only their names."""

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream, protocol=5)
        self.code: list[Any] = []

    def reducer_override(self, value: Any) -> Any:
        """Pickle as usual."""
        is_code = isinstance(value, (type, types.FunctionType))
        if is_code and not _installed(value.__module__):
            self.code.append(value)
        return NotImplemented


def _pickled(value: Any) -> Iterator[Any]:
    """An object as bytes, and the user's code in it."""
    stream = io.BytesIO()
    pickler = _Pickler(stream)
    try:
        pickler.dump(value)
    except Exception as error:
        raise UnknownContentError(
            f"a {_name(type(value))} cannot be compared by its content ({error})"
        ) from error
    yield stream.getvalue()
    yield from pickler.code


def _parts_of_code(code: types.CodeType) -> Iterator[Any]:
    """What a code object does, without file names and line numbers."""
    yield from (code.co_code, code.co_names, code.co_varnames, code.co_freevars)
    yield code.co_consts


class _Uses(NamedTuple):
    """What code reads and writes outside itself."""

    read: set[str]  # global names
    written: set[str]  # names of globals and of a closure
    attributes: set[str]  # attributes of objects that it writes
    writes: bool  # whether it changes containers


def _uses(code: types.CodeType) -> _Uses:
    """What code reads and writes, also in the functions inside it."""
    steps = [(step.opname, str(step.argval)) for step in dis.get_instructions(code)]
    found = _Uses(
        read={name for op, name in steps if op in ("LOAD_GLOBAL", "LOAD_NAME")},
        written={name for op, name in steps if op in ("STORE_GLOBAL", "STORE_DEREF")},
        attributes={name for op, name in steps if op == "STORE_ATTR"},
        writes=any(
            op in ("STORE_SUBSCR", "DELETE_SUBSCR")
            or (op in ("LOAD_METHOD", "LOAD_ATTR") and name in _WRITING)
            for op, name in steps
        ),
    )
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            more = _uses(inner)
            found = _Uses(*(mine | its for mine, its in zip(found, more, strict=True)))  # type: ignore[operator]
    return found


def _attributes_written(kind: type) -> tuple[set[str], bool]:
    """Attributes that methods change after `__init__`, and whether they change containers."""
    found: set[str] = set()
    writes = False
    for base in kind.__mro__:
        for name, method in vars(base).items():
            if isinstance(method, types.FunctionType) and name not in ("__init__", "__setstate__"):
                uses = _uses(method.__code__)
                found, writes = found | uses.attributes, writes or uses.writes
    return found, writes
