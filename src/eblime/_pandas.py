"""Import pandas where it is needed; if it is missing, the error names the extra to install."""

from __future__ import annotations

from typing import Any

__all__ = ["import_pandas"]


def import_pandas() -> Any:
    """The package pandas."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("A data frame needs pandas: pip install 'eblime[frame]'.") from error
    return pd
