"""Modules and public names of packages, imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import ModuleType

__all__ = ["lazy_modules", "lazy_names"]


def lazy_modules(package: str, names: tuple[str, ...]) -> Callable[[str], ModuleType]:
    """A `__getattr__` for a package: `package.name` imports the module of that name."""

    def getattr_(name: str) -> ModuleType:
        if name in names:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return getattr_


def lazy_names(
    package: str, homes: Mapping[str, str], modules: Iterable[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose public names live in its modules.

    Parameters
    ----------
    package
        Name of the package.
    homes
        The module of each public name, without the name of the package.
    modules
        Modules that are attributes of the package too, imported on first use.

    Examples
    --------
    >>> found, listed = lazy_names("eblime.designs", {"bernoulli": "masks"})
    >>> found("bernoulli").__name__, listed()
    ('bernoulli', ['bernoulli'])
    """
    module = lazy_modules(package, tuple(modules))

    def getattr_(name: str) -> object:
        if name not in homes:
            return module(name)
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    def dir_() -> list[str]:
        return sorted({*homes, *modules})

    return getattr_, dir_
