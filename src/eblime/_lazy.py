"""Imports on first use: public names of packages, and packages of extras."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_names(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package, by the lines of its `__init__.pyi`.

    A line `from eblime.plot.charts import means as means` is a public name of `eblime.plot`, and
    `from eblime.plot import charts as charts` a module, which is in `__dir__` but not in `__all__`.
    """
    module: Any = sys.modules[package]
    stub = os.path.join(module.__path__[0], "__init__.pyi")  # noqa: PTH118, for a fast import
    text = module.__spec__.loader.get_data(stub).decode()
    lines = [line.split() for line in text.splitlines() if line.startswith("from ")]
    homes = {line[3]: line[1] for line in lines}

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:
            return import_module(f"{package}.{name}")
        return getattr(import_module(homes[name]), name)

    return find, lambda: sorted(homes), [name for name in homes if homes[name] != package]


def import_extra(name: str, extra: str, *, safe_since: str = "") -> Any:
    """Import a package, or say which extra of eblime has it; unsafe versions are refused."""
    try:
        found = import_module(name)
    except ImportError as error:
        raise ImportError(f"{name} is not installed: pip install 'eblime[{extra}]'.") from error
    if safe_since and _numbers(found.__version__) < _numbers(safe_since):
        raise ImportError(
            f"{name} must be {safe_since} or later, as a file can make earlier versions run code; "
            f"got {found.__version__}: pip install -U 'eblime[{extra}]'."
        )
    return found


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]
