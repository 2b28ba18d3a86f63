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
    package: str, homes: Mapping[str, Iterable[str]], modules: Iterable[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose public names live in its modules.

    Parameters
    ----------
    package
        Name of the package.
    homes
        The public names in each module, which is without the name of the package.
    modules
        Modules that are attributes of the package too, imported on first use.

    Examples
    --------
    >>> found, listed = lazy_names("eblime.designs", {"masks": ["bernoulli"]})
    >>> found("bernoulli").__name__, listed()
    ('bernoulli', ['bernoulli'])
    """
    module = lazy_modules(package, tuple(modules))
    home_of = {name: home for home, names in homes.items() for name in names}

    def getattr_(name: str) -> object:
        if name not in home_of:
            return module(name)
        return getattr(import_module(f"{package}.{home_of[name]}"), name)

    def dir_() -> list[str]:
        return sorted({*home_of, *modules})

    return getattr_, dir_
