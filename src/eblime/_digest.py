"""Digests of content: the same for the same content in every process, and another for any other.

A value is pickled into a hash. Arrays count by their numbers, sets in sorted order, and what occurs
twice counts twice, so that a copy has the digest of the original.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
import sysconfig
from collections.abc import Callable
from functools import lru_cache
from pathlib import PurePath
from types import SimpleNamespace
from typing import Any

import numpy as np

__all__ = ["UnknownContentError", "digest_of"]

Replace = Callable[[Any], Any]  # a value -> what to digest instead of it, or None

_PLAIN = {type(None), bool, int, float, complex, str, bytes, bytearray, list, tuple, dict}
_PACKAGES = {"site-packages", "dist-packages"}
_STANDARD = {sysconfig.get_paths()[kind] for kind in ("stdlib", "platstdlib")}


class UnknownContentError(TypeError):
    """An object whose content cannot be digested for certain."""


def digest_of(
    value: Any, *, own_classes: bool = False, replace: Replace = lambda value: None
) -> str:
    """A digest of a value's content, 32 hexadecimal digits.

    Parameters
    ----------
    value
        Plain data, arrays, or objects made of them. Functions and classes in it count by their name
        and the version of their package, so they must come from an installed package.
    own_classes
        Allow objects of other classes too, such as the user's own. They count by the name of their
        class and their attributes.
    replace
        Returns what to digest instead of an object, or None to digest the object itself.

    Raises
    ------
    UnknownContentError
        If the value has something in it that its pickle does not describe for certain.

    Examples
    --------
    >>> digest_of([1, "a"]) == digest_of([1, "a"]), digest_of([1]) == digest_of([1.0])
    (True, False)
    >>> digest_of(np.ones((2, 3))) == digest_of(np.ones((3, 2)).T)
    True
    """
    pickler = _Pickler(own_classes, replace)
    try:
        pickler.dump(value)
        pickler.dump(sorted((name, _version(name)) for name in pickler.packages - {"eblime"}))
    except UnknownContentError:
        raise
    except Exception as error:  # whatever the methods of other packages raise
        raise UnknownContentError(f"its content cannot be read: {error}") from error
    return pickler.found.hexdigest()


class _Pickler(pickle.Pickler):
    """Pickles into a hash, and looks at every object on the way."""

    def __init__(self, own_classes: bool, replace: Replace) -> None:
        self.found = hashlib.blake2b(digest_size=16)
        super().__init__(SimpleNamespace(write=self.found.update), protocol=5)
        self.fast = True  # no references: two equal lists are pickled as one list that occurs twice
        self._own_classes, self._replace = own_classes, replace
        self.packages: set[str] = set()

    def persistent_id(self, value: Any) -> Any:
        """What to pickle instead of an object; None pickles the object itself."""
        kind = type(value)
        if kind in _PLAIN:
            return None
        if kind is np.ndarray and not value.dtype.hasobject:
            numbers = hashlib.blake2b(value.tobytes(), digest_size=16)
            return ("array", repr(value.dtype), value.shape, numbers.digest())
        if kind in (set, frozenset):
            own, replace = self._own_classes, self._replace
            return ("set", sorted(digest_of(x, own_classes=own, replace=replace) for x in value))
        self._check(value)
        if isinstance(value, type):  # pickle finds one of an installed package by its name
            return ("class", value.__module__, value.__qualname__) if self._own_classes else None
        return self._replace(value)

    def _check(self, value: Any) -> None:
        """Refuse code that does not come from an installed package."""
        named = value if getattr(value, "__qualname__", "") else type(value)
        module = getattr(named, "__module__", None) or type(value).__module__
        if _is_installed(module):
            self.packages.add("" if self._own_classes else module.partition(".")[0])
        elif not self._own_classes or not isinstance(named, type):
            what = "class" if isinstance(named, type) else "function"
            raise UnknownContentError(
                f"the {what} {named.__qualname__} of {module} does not come from an installed "
                "package, and its code may change"
            )


@lru_cache
def _is_installed(module: str) -> bool:
    """Whether a module belongs to Python, to eblime or to an installed package."""
    top = module.partition(".")[0]
    if top in sys.builtin_module_names or top == "eblime":
        return True
    file = getattr(sys.modules.get(module, sys.modules.get(top)), "__file__", None)
    if file is None or top == "__main__":
        return False
    path = PurePath(file)
    return not _PACKAGES.isdisjoint(path.parts) or any(map(path.is_relative_to, _STANDARD))


def _version(package: str) -> str:
    """The version of a package, as far as it says."""
    return str(getattr(sys.modules.get(package), "__version__", ""))
