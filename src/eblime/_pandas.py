"""pandas, imported when it is first used; if it is missing, the error names the extra to install.

Functions that need it write `from eblime._pandas import pd`, so that type checkers know the frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eblime._lazy import import_extra

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["pd"]


def read_csv(source: object, suffix: str, **options: object) -> Any:
    """Read a file separated by commas, or by tabs if it ends in ".tsv", with every digit kept."""
    pandas = __getattr__("pd")
    if int(pandas.__version__.split(".")[0]) < 3:  # since then it is the default
        options["float_precision"] = "round_trip"
    return pandas.read_csv(source, sep="\t" if suffix == ".tsv" else ",", **options)


def __getattr__(name: str) -> Any:
    """The package pandas, for `pd`."""
    if name != "pd":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_extra("pandas", "frame")
