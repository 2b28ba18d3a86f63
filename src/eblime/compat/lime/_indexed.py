"""Texts cut into words or characters, with lime's attributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from eblime.domains.text import TextScene, read_text

__all__ = ["IndexedCharacters", "IndexedString"]


class Pieces:
    """A text as a list of pieces, some of which are features.

    `as_list` and `as_np` are the pieces, `string_start` where each starts, `inverse_vocab` the
    word of each feature, and `positions` the pieces that belong to it: a list for each feature
    with `bow`, one number otherwise.
    """

    def __init__(
        self, raw: str, pieces: Sequence[str], is_feature: Sequence[bool], bow: bool, mask: str
    ) -> None:
        if not isinstance(raw, str):
            raise TypeError(f"The text must be a string; got {type(raw).__name__}.")
        self.raw = raw
        self.bow = bow
        self.mask_string = mask
        self.as_list = list(pieces)
        self.as_np = np.array(self.as_list)
        starts = np.cumsum([0, *(len(piece) for piece in self.as_list)])[:-1]
        self.string_start = starts if len(self.as_list) else np.zeros(1, dtype=int)
        places: dict[Any, list[int]] = {}
        for k, piece in enumerate(self.as_list):
            if is_feature[k]:
                places.setdefault(piece if bow else k, []).append(k)
        self.inverse_vocab = [self.as_list[found[0]] for found in places.values()]
        found = list(places.values())
        self.positions: Any = found if bow else np.array([place[0] for place in found], dtype=int)

    def raw_string(self) -> str:
        """The text."""
        return self.raw

    def num_words(self) -> int:
        """Number of features."""
        return len(self.inverse_vocab)

    def word(self, id_: int) -> str:
        """The word of a feature."""
        return self.inverse_vocab[id_]

    def string_position(self, id_: int) -> Any:
        """Where the occurrences of a feature start in the text."""
        return self.string_start[np.atleast_1d(self.positions[id_])]

    def inverse_removing(self, words_to_remove: Iterable[int]) -> str:
        """The text without some features; without `bow` the mask string takes their place."""
        removed = {k for j in words_to_remove for k in np.atleast_1d(self.positions[j]).tolist()}
        instead = "" if self.bow else self.mask_string
        return "".join(instead if k in removed else part for k, part in enumerate(self.as_list))

    def scene(self) -> TextScene:
        """The text as an explanation keeps it; features are numbered as here."""
        owned = sorted(k for place in self.positions for k in np.atleast_1d(place).tolist())
        if not owned:
            raise ValueError("`text_instance` must have at least one word.")
        starts = self.string_start
        spans = [(int(starts[k]), int(starts[k]) + len(self.as_list[k])) for k in owned]
        hide = "" if self.bow else self.mask_string
        return read_text(self.raw, tokens=lambda _: spans, bag=self.bow, hide=hide, most=None)


class IndexedString(Pieces):
    """A text cut into words.

    Parameters
    ----------
    raw_string
        The text.
    split_expression
        A regular expression of what is between words, or a function from the text to its words.
    bow
        Whether all occurrences of a word are one feature.
    mask_string
        Takes the place of a hidden word without `bow`; None is "UNKWORDZ".
    """

    def __init__(
        self,
        raw_string: str,
        split_expression: str | Callable[[str], Iterable[str]] = r"\W+",
        bow: bool = True,
        mask_string: str | None = None,
    ) -> None:
        if callable(split_expression):
            words = [word for word in split_expression(raw_string) if word]
            pieces = _around(raw_string, words)
            known = set(words)
            is_word = [piece in known for piece in pieces]
        else:
            gap = re.compile(f"(?:{split_expression})|$")
            pieces = _split(raw_string, gap)
            is_word = [gap.match(piece) is None for piece in pieces]
        mask = "UNKWORDZ" if mask_string is None else mask_string
        Pieces.__init__(self, raw_string, pieces, is_word, bow, mask)


class IndexedCharacters(Pieces):
    """A text cut into characters; parameters as in `IndexedString`, the default mask is chr(0)."""

    def __init__(self, raw_string: str, bow: bool = True, mask_string: str | None = None) -> None:
        mask = chr(0) if mask_string is None else mask_string
        Pieces.__init__(self, raw_string, list(raw_string), [True] * len(raw_string), bow, mask)


def _split(text: str, gap: re.Pattern[str]) -> list[str]:
    """Words and the gaps between them, in order; empty ones are left out."""
    borders = sorted({0, len(text), *(end for match in gap.finditer(text) for end in match.span())})
    return [text[a:b] for a, b in pairwise(borders)]


def _around(text: str, words: Sequence[str]) -> list[str]:
    """The words and what is between them, in order."""
    pieces, end = [], 0
    for word in words:
        start = text.find(word, end)
        if start < 0:
            raise ValueError(
                "`split_expression` must return parts of the text in their order; got "
                f"{word!r:.60}, which does not occur after character {end}."
            )
        pieces += [text[end:start]] if start > end else []
        pieces.append(word)
        end = start + len(word)
    return pieces + ([text[end:]] if end < len(text) else [])
