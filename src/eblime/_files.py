"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under another name in the same folder, sync it, and rename it.

    A crash may leave a file `.NAME.*.tmp` behind.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "It must be a file; there is a folder", str(path))
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    created = _create(temporary, path)
    try:
        with created as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):  # such as a full disk
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def _create(temporary: Path, path: Path) -> BinaryIO:
    """Create a file with the usual permissions; an error names the folder or the final path.

    The system applies the umask. To read it, a process would have to change it for all its threads.
    """
    try:
        return temporary.open("xb")
    except FileNotFoundError as error:
        raise OSError(error.errno, "There is no such folder", str(path.parent)) from error
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
