"""Warnings that point at the user's own line, however deep in the library they arise."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parent)


def warn_user(message: str) -> None:
    """Warn at the innermost line of code that is outside this package."""
    frame, level = sys._getframe(1), 2  # level 1 is this function, 2 the one that calls it
    while frame.f_back is not None and _is_ours(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def _is_ours(filename: str) -> bool:
    """Whether code belongs to this package; generated constructors are in "<string>"."""
    return filename.startswith((_PACKAGE, "<string>"))
