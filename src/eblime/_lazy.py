"""Modules imported on first use."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType

__all__ = ["lazy_modules"]


def lazy_modules(package: str, names: tuple[str, ...]) -> Callable[[str], ModuleType]:
    """A `__getattr__` for a package: `package.name` imports the module of that name."""

    def getattr_(name: str) -> ModuleType:
        if name in names:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return getattr_
