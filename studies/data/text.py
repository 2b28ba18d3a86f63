"""Sentences from movie reviews, positive and negative (Pang and Lee 2005)."""

from __future__ import annotations

import hashlib
import tarfile

from studies.data.files import find, local_folder

__all__ = ["rt_polarity"]

_DIGESTS = {
    "pos": "4134882974a28d0c7b5151256f0e33a6169984ee7372c279e673f1114f475d58",
    "neg": "2d11cfbc790f1cd96d78339f41ce53ced1efa83cd22d37d6788fa3fe3d17e2fd",
}
_URL = "https://www.cs.cornell.edu/people/pabo/movie-review-data/rt-polaritydata.tar.gz"


def rt_polarity() -> tuple[list[str], list[str]]:
    """10,662 sentences, and "praise" or "blame" for each.

    Examples
    --------
    >>> from studies.data.text import rt_polarity
    >>> texts, labels = rt_polarity()  # doctest: +SKIP
    >>> len(texts), labels[0]  # doctest: +SKIP
    (10662, 'praise')
    """
    texts: list[str] = []
    labels: list[str] = []
    for ending, label in (("pos", "praise"), ("neg", "blame")):
        lines = _content(ending).decode("latin1").splitlines()
        texts += lines
        labels += [label] * len(lines)
    return texts, labels


def _content(ending: str) -> bytes:
    """A file of sentences: a local copy, or from the authors' archive and verified."""
    folder = local_folder()
    if folder is not None and (folder / "text" / f"rt-polarity.{ending}").exists():
        return (folder / "text" / f"rt-polarity.{ending}").read_bytes()
    with tarfile.open(find("text/rt-polaritydata.tar.gz", url=_URL)) as archive:
        name = next(n for n in archive.getnames() if n.endswith(f"rt-polarity.{ending}"))
        member = archive.extractfile(name)
        content = b"" if member is None else member.read()
    if hashlib.sha256(content).hexdigest() != _DIGESTS[ending]:
        raise ValueError(f"{name} in {_URL} does not match its checksum; the archive has changed.")
    return content
