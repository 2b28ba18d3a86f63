"""What lime has at `lime.utils.generic_utils`."""

import inspect
from typing import Any


def has_arg(fn: Any, arg_name: Any) -> bool:
    """Whether a callable accepts a keyword argument of that name."""
    try:
        parameters = inspect.signature(fn).parameters
    except ValueError:  # compiled code may hide its signature
        parameters = inspect.signature(fn.__call__).parameters
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    return arg_name in parameters and parameters[arg_name].kind in kinds
