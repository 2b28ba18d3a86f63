"""Parquet files that carry a checksum of all their bytes.

The checksum lies in front of the footer. Parquet readers find the footer from the end of the file
and the data by offsets from its beginning, so every reader still reads the file.
"""

from __future__ import annotations

import hashlib

from eblime.batch.place import Place

__all__ = ["DamagedFileError", "checked", "sealed"]

_MARK = b"eblime sha256:"
_SEAL = len(_MARK) + hashlib.sha256().digest_size
_END = 8  # the length of the footer in four bytes, and PAR1


class DamagedFileError(ValueError):
    """A file of a run whose contents do not match its checksum."""


def sealed(content: bytes) -> bytes:
    """A Parquet file with its checksum inside."""
    place = _footer(content)
    return content[:place] + _MARK + hashlib.sha256(content).digest() + content[place:]


def checked(file: Place) -> bytes:
    """The content of a sealed Parquet file; one that has changed since it was written is refused.

    Raises
    ------
    DamagedFileError
        If a byte differs, or the file has no checksum.
    OSError
        If the file cannot be read.
    """
    content = file.read()
    view, place = memoryview(content), _footer(content)
    seal = view[max(place - _SEAL, 0) : max(place, 0)]
    found = hashlib.sha256(view[: max(place - _SEAL, 0)])
    found.update(view[max(place, 0) :])
    if seal != _MARK + found.digest():
        raise DamagedFileError(
            f"{file} is damaged: its contents do not match its checksum. Call `explain_many`, or "
            "`eblime batch --resume`, again: damaged files are made again."
        )
    return content


def _footer(content: bytes) -> int:
    """Where the footer begins, as the end of the file says; negative if that cannot be."""
    return len(content) - _END - int.from_bytes(content[-_END:-4], "little")
