"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under another name in the same folder, sync it, and rename it.

    A crash may leave a file `.NAME.*.tmp` behind.
    """
    handle, temporary = _beside(path)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _beside(path: Path) -> tuple[int, Path]:
    """Open a temporary file in the folder of a path; an error names the folder or the path."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    except FileNotFoundError as error:
        raise OSError(error.errno, "There is no such folder", str(path.parent)) from error
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    return handle, Path(name)


def _umask() -> int:
    """The permission bits that new files must not have; reading it requires setting it briefly."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
