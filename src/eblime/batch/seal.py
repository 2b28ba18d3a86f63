"""Parquet files that carry a checksum of all their bytes.

The checksum is stored before the footer. Parquet readers find the footer from the end of the file
and the data by offsets from its beginning, so every Parquet reader can still read the file.
"""

from __future__ import annotations

import hashlib

from eblime.batch.location import Location

__all__ = ["DamagedFileError", "checked", "sealed"]

_MARK = b"eblime sha256:"
_SEAL = len(_MARK) + hashlib.sha256().digest_size
_END = 8  # the length of the footer in four bytes, and PAR1


class DamagedFileError(ValueError):
    """A file of a run whose contents do not match its checksum."""


def sealed(content: bytes) -> bytes:
    """A Parquet file with its checksum inside."""
    footer = _footer(content)
    return content[:footer] + _MARK + hashlib.sha256(content).digest() + content[footer:]


def checked(file: Location) -> bytes:
    """The content of a sealed Parquet file, after its checksum was verified.

    Raises
    ------
    DamagedFileError
        If a byte differs, or the file has no checksum.
    OSError
        If the file cannot be read.
    """
    content = file.read()
    view, footer = memoryview(content), _footer(content)
    seal = view[max(footer - _SEAL, 0) : max(footer, 0)]
    found = hashlib.sha256(view[: max(footer - _SEAL, 0)])
    found.update(view[max(footer, 0) :])
    if seal != _MARK + found.digest():
        raise DamagedFileError(
            f"{file} is damaged: its contents do not match its checksum. Call `explain_many`, or "
            "`eblime batch --resume`, again to replace damaged files."
        )
    return content


def _footer(content: bytes) -> int:
    """Where the footer begins, according to the end of the file; negative if damaged."""
    return len(content) - _END - int.from_bytes(content[-_END:-4], "little")
