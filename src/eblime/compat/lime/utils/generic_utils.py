"""What lime has at `lime.utils.generic_utils`."""

from __future__ import annotations

import inspect
from typing import Any

__all__ = ["has_arg"]

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def has_arg(fn: Any, arg_name: Any) -> bool:
    """Whether a callable accepts a keyword argument of that name."""
    try:
        parameters = inspect.signature(fn).parameters
    except ValueError:  # compiled code may hide its signature
        parameters = inspect.signature(fn.__call__).parameters
    return arg_name in parameters and parameters[arg_name].kind in _NAMED
