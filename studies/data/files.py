"""Data files: from a local folder, from the cache, or downloaded from their public source."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["cache_folder", "digest", "find", "local_folder"]


def digest(*parts: Any) -> str:
    """A digest of content: of the files of a path, of the values of an array, of other text."""
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            files = sorted(part.rglob("*")) if part.is_dir() else [part]
            contents = [(path.name, path.read_bytes()) for path in files if path.is_file()]
        elif isinstance(part, np.ndarray):
            contents = [(f"{part.dtype} {part.shape}", np.ascontiguousarray(part).tobytes())]
        else:
            contents = [("", str(part).encode())]
        for name, content in contents:
            found.update(f"{name} {len(content)} ".encode() + content)
    return found.hexdigest()


def local_folder() -> Path | None:
    """The folder in the environment variable EBLIME_DATA; None if it is not set."""
    named = os.environ.get("EBLIME_DATA")
    if not named:
        return None
    folder = Path(named)
    if not folder.is_dir():
        raise FileNotFoundError(f"EBLIME_DATA must be an existing folder; got {named!r}.")
    return folder


def cache_folder() -> Path:
    """The folder for downloaded data and trained models; created if it is missing.

    It is EBLIME_CACHE if that is set, else a folder `eblime` in the user's cache folder.
    """
    named = os.environ.get("EBLIME_CACHE")
    folder = Path(named) if named else _user_cache()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def find(relative: str, url: str | None = None, sha256: str | None = None) -> Path:
    """The path of a data file, which is downloaded to the cache if it is missing.

    Parameters
    ----------
    relative
        Path below EBLIME_DATA, and below the cache folder.
    url
        Where to download the file; None if it must be provided by the user.
    sha256
        Checksum of the file. A file in the cache that does not match is downloaded again.
    """
    folder = local_folder()
    if folder is not None and (folder / relative).exists():
        return folder / relative
    path = cache_folder() / relative
    if url is not None:
        return _download(url, path, sha256)
    if path.exists():
        return path
    raise FileNotFoundError(
        f"{relative} was not found and cannot be downloaded. Put it into a folder, and set "
        "EBLIME_DATA to that folder."
    )


def _download(url: str, path: Path, sha256: str | None) -> Path:
    """Download a file if it is not in the cache; a wrong checksum is an error."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError("Downloading data needs pooch: pip install pooch.") from error
    known = None if sha256 is None else f"sha256:{sha256}"
    try:
        return Path(pooch.retrieve(url, known, fname=path.name, path=path.parent))
    except OSError as error:  # includes the errors of requests
        raise ConnectionError(
            f"{url} cannot be downloaded ({error}). Without a network, put the file at {path}, or "
            "set EBLIME_DATA to a folder that has it."
        ) from error


def _user_cache() -> Path:
    """The folder of eblime in the cache folder of the operating system."""
    try:
        import platformdirs
    except ImportError as error:
        raise ImportError(
            "The default cache folder needs platformdirs: pip install platformdirs. Or set "
            "EBLIME_CACHE to a folder."
        ) from error
    return Path(platformdirs.user_cache_path("eblime", appauthor=False))
