"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under another name in the same folder, sync it, and rename it.

    A crash may leave a file `.NAME.*.tmp` behind.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "It must be a file; there is a folder", str(path))
    handle, temporary = _beside(path)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):  # such as a full disk
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def _beside(path: Path) -> tuple[int, Path]:
    """Create a temporary file in the folder of a path; an error names the folder or the path.

    The system sets its permissions, as for any new file: reading the umask means changing it, which
    other threads would see.
    """
    options = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    temporary = path.parent / f".{path.name}.{secrets.token_hex(8)}.tmp"
    try:
        return os.open(temporary, options, 0o666), temporary
    except FileNotFoundError as error:
        raise OSError(error.errno, "There is no such folder", str(path.parent)) from error
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
