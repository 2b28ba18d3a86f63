"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under another name in the same folder, sync it, and rename it.

    A crash may leave a file `.NAME.*.tmp` behind.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "It must be a file; there is a folder", str(path))
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:  # with the usual permissions
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, FileNotFoundError):
            raise OSError(error.errno, "There is no such folder", str(path.parent)) from error
        if isinstance(error, OSError):  # such as a full disk
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
