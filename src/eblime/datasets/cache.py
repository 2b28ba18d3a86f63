"""Where data come from: a local copy, what was fetched before, or the public original."""

from __future__ import annotations

import hashlib
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

from eblime._files import write_whole

__all__ = ["cache_folder", "find", "local_folder"]


def local_folder() -> Path | None:
    """The folder that EBLIME_DATA names, None where it is not set."""
    named = os.environ.get("EBLIME_DATA")
    if not named:
        return None
    folder = Path(named)
    if not folder.is_dir():
        raise FileNotFoundError(f"EBLIME_DATA must name a folder; there is no {named!r}.")
    return folder


def cache_folder() -> Path:
    """Where fetched data and trained models are kept: EBLIME_CACHE, or the user's cache folder."""
    named = os.environ.get("EBLIME_CACHE")
    if named:
        folder = Path(named)
    elif sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA", Path.home())) / "eblime"
    elif sys.platform == "darwin":
        folder = Path.home() / "Library" / "Caches" / "eblime"
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eblime"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def find(relative: str, *, url: str | None, sha256: str | None = None) -> Path:
    """A data file: below EBLIME_DATA, in the cache, or fetched and checked.

    `relative` is its place below EBLIME_DATA; `url` None says that it cannot be fetched by itself.
    """
    folder = local_folder()
    if folder is not None and (folder / relative).exists():
        return folder / relative
    kept = cache_folder() / relative
    if kept.exists():
        return kept
    if url is None:
        raise FileNotFoundError(
            f"{relative} is not here, and cannot be fetched by itself: put it into a folder and "
            "name that folder in EBLIME_DATA."
        )
    return _fetched(url, kept, sha256)


def _fetched(url: str, kept: Path, sha256: str | None) -> Path:
    """Fetch a file; it appears whole and checked, or not at all."""
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            content = answer.read()
    except (urllib.error.URLError, TimeoutError, OSError) as error:
        raise ConnectionError(
            f"{url} cannot be fetched ({error}). Without a network, put the file at {kept}, or "
            "name a folder that has it in EBLIME_DATA."
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if sha256 is not None and found != sha256:
        raise ValueError(
            f"{url} is not the file that was expected: its SHA-256 must be {sha256}; got {found}."
        )
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_whole(kept, content)
    return kept
