"""Warnings that point at the user's own line, however deep in the library they arise."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parent)


def warn_user(message: str) -> None:
    """Warn at the innermost line of code that is outside this package."""
    frame, level = sys._getframe(1), 2  # level 1 is this function, 2 the one that calls it
    ours = (_PACKAGE, "<string>")  # where generated constructors are
    while frame.f_back is not None and frame.f_code.co_filename.startswith(ours):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)
