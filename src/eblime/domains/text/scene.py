"""Texts: words, sentences or characters as features, hidden by leaving them out or by a mask.

What is not hidden stays as it was, to the byte: separators, line ends, direction marks, emoji.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise
from typing import Any

import numpy as np

from eblime._field_checks import MOST_FEATURES, NAMES, Layout, Rule, check_object, list_of, whole
from eblime._field_checks import text as text_of
from eblime._types import FloatArray
from eblime.domains.record import Domain

__all__ = ["TEXT", "TOKENS", "TextScene", "Tokens", "read_text"]

TOKENS = ("word", "sentence", "char")
Tokens = str | re.Pattern[str] | Callable[[str], Any]

# scripts written without spaces come one sign at a time, and so do emoji
_SIGNS = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_EMOJI = "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
# what is joined to a sign: accents, variation selectors, skin tones
_JOINED = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u20d0-\u20ff\ufe00-\ufe0f\U0001f3fb-\U0001f3ff"
# scripts whose vowel signs \w leaves out, but for the marks that end their sentences
_SOUTHERN = "\u0900-\u0963\u0966-\u0e4e\u0e50-\u0f03\u0f18-\u109f\u1780-\u17d3\u17dd-\u17ff"
_LETTERS = rf"(?:(?:(?![{_SIGNS}])\w|[{_SOUTHERN}])[{_JOINED}]*)+"
_WORD = re.compile(
    rf"[{_SIGNS}]|[\U0001f1e6-\U0001f1ff]{{2}}|[{_EMOJI}][{_JOINED}]*(?:\u200d[{_EMOJI}][{_JOINED}]*)*"
    rf"|{_LETTERS}(?:['\u2019]{_LETTERS})*"
)
_SENTENCE = re.compile(
    "\\S.*?(?:[.!?\u2026]+[\"'\u201d\u2019)\\]]*(?=\\s|$)|[\u3002\uff01\uff1f]+[\u300d\u300f\uff09]*"
    "|(?=\n\\s*\n)|\\Z)",
    re.DOTALL,
)
_CHAR = re.compile(rf"\S[{_JOINED}]*(?:\u200d\S[{_JOINED}]*)*")
# Thai, Lao, Myanmar and Khmer have no spaces between words: a run that is no single word
_UNSPACED = re.compile("[\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u109f\u1780-\u17d3]{9,}")
_CHUNK = 20  # tokens of a chunk, about as many as a sentence has
_PATTERNS = {"word": _WORD, "sentence": _SENTENCE, "char": _CHAR}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TextScene:
    """A text cut into pieces: separators, which stay, and tokens, which belong to features."""

    features: Sequence[str]  # the features in words
    pieces: Sequence[str]  # joined, they are the text
    owners: Sequence[int]  # feature of each piece, -1 for a separator
    mask: str  # what stands for a hidden token; empty where it is left out

    @property
    def domain(self) -> str:
        """The name of the domain: "text"."""
        return "text"

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.features)

    @property
    def text(self) -> str:
        """The text itself."""
        return "".join(self.pieces)

    @property
    def sizes(self) -> Sequence[int]:
        """Batch sizes worth trying."""
        return (64, 512, 4096)

    def inputs(self, masks: FloatArray) -> list[str]:
        """One text for each mask."""
        shown = np.ones((len(masks), self.n_features + 1), dtype=np.uint8)
        shown[:, :-1] = masks > 0.5
        pieces, flags = list(self.pieces), shown[:, list(self.owners)]
        if self.mask:  # before every piece its mask, shown where the piece is not
            pieces = [part for piece in pieces for part in (self.mask, piece)]
            flags = np.stack([1 - flags, flags], axis=2).reshape(len(flags), -1)
        return ["".join(compress(pieces, row.tobytes())) for row in np.ascontiguousarray(flags)]


def read_text(
    text: Any, *, tokens: Tokens = "word", bag: bool = True, hide: str = "", most: int | None = 500
) -> TextScene:
    """Cut a text into features.

    Parameters
    ----------
    text
        The text.
    tokens
        "word", "sentence", "char", a regular expression that matches tokens, or a function from
        the text to tokens, as strings in their order or as (start, end).
    bag
        All occurrences of a token are one feature; otherwise each is one.
    hide
        What stands for a hidden token; nothing by default.
    most
        A text of more features than that is cut into sentences instead, or into chunks of about 20
        tokens where it has no usable sentences, with a warning.
    """
    if not isinstance(text, str):
        raise TypeError(f"`text` must be a string; got {type(text).__name__}.")
    if not text.strip():
        raise ValueError("`text` must not be empty.")
    spans = _spans(text, tokens)
    bag_of = bag and tokens != "sentence"
    count = len({text[a:b] for a, b in spans}) if bag_of else len(spans)
    kind = tokens if isinstance(tokens, str) and tokens in TOKENS else "token"
    if kind == "word":
        _warn_unspaced(text, spans)
    if most is not None and count > most and kind != "sentence":
        coarse, found = _coarser(text, spans, most)
        if found == "sentence":
            plural, advice = "sentences", 'Set tokens="sentence" to silence this warning, or'
        else:
            size = round(len(spans) / len(coarse))
            plural, advice = f"chunks of about {size} {kind}s", "Set"
        warnings.warn(
            f"The text has {count} different {kind}s, more than `most` ({most}): its {len(coarse)} "
            f"{plural} are explained instead. {advice} `most=None` to explain {kind}s.",
            stacklevel=4,
        )
        spans = coarse
        bag_of, kind = False, found
    return _scene(text, spans, bag_of, kind, hide)


def _coarser(
    text: str, spans: Sequence[tuple[int, int]], most: int
) -> tuple[list[tuple[int, int]], str]:
    """Fewer features than tokens: sentences, or chunks of tokens where there are no usable ones.

    Sentences are usable if there are at most `most` and they have 100 tokens or fewer on average.
    """
    sentences = _spans(text, "sentence")
    if len(spans) <= 100 * len(sentences) and len(sentences) <= most:
        return sentences, "sentence"
    count = max(1, min(most, round(len(spans) / _CHUNK)))
    ends = [len(spans) * k // count for k in range(count + 1)]
    return [(spans[a][0], spans[b - 1][1]) for a, b in pairwise(ends)], "chunk"


def _warn_unspaced(text: str, spans: Sequence[tuple[int, int]]) -> None:
    """Warn about a script without spaces between words, which only a dictionary finds."""
    long = next((text[a:b] for a, b in spans if _UNSPACED.search(text, a, b)), None)
    if long is not None:
        warnings.warn(
            f"The text is in a script without spaces between words: {long[:30]!r} is taken for one "
            "word. Pass a function that finds words as `tokens`, such as "
            "pythainlp.tokenize.word_tokenize, or set tokens='char'.",
            stacklevel=5,
        )


def _spans(text: str, tokens: Tokens) -> list[tuple[int, int]]:
    """Where the tokens are, in order and apart."""
    if callable(tokens):
        spans = _told(text, tokens(text))
    else:
        try:
            known = _PATTERNS.get(tokens, tokens) if isinstance(tokens, str) else tokens
            pattern = re.compile(known)
        except re.error as error:
            raise ValueError(
                f"`tokens` must be 'word', 'sentence', 'char', a regular expression or a function; "
                f"got {tokens!r}, which is no regular expression: {error}."
            ) from error
        spans = [match.span() for match in pattern.finditer(text) if match.end() > match.start()]
    if not spans:
        raise ValueError(f"`text` must have at least one token; {tokens!r} finds none in it.")
    return spans


def _told(text: str, found: Any) -> list[tuple[int, int]]:
    """Tokens of the user's function: pairs of places, or strings that are found in order."""
    spans, end = [], 0
    for token in found:
        if isinstance(token, str):
            start = text.find(token, end)
            if start < 0 or not token:
                raise ValueError(
                    f"`tokens` must return pieces of the text in their order; got {token!r:.60}, "
                    f"which does not come after character {end}."
                )
            span = (start, start + len(token))
        else:
            span = (int(token[0]), int(token[1]))
            if not end <= span[0] < span[1] <= len(text):
                raise ValueError(
                    f"`tokens` must return places in order, apart and inside the text; got {token}."
                )
        spans.append(span)
        end = span[1]
    return spans


def _scene(
    text: str, spans: Sequence[tuple[int, int]], bag: bool, kind: str, hide: str
) -> TextScene:
    """Pieces and their features."""
    pieces, owners, end = [], [], 0
    place: dict[Any, int] = {}
    words: list[str] = []
    counts: list[int] = []
    for k, (start, stop) in enumerate(spans):
        if start > end:
            pieces.append(text[end:start])
            owners.append(-1)
        token = text[start:stop]
        j = place.setdefault(token if bag else k, len(place))
        if j == len(words):
            words.append(token)
            counts.append(0)
        counts[j] += 1
        pieces.append(token)
        owners.append(j)
        end = stop
    if end < len(text):
        pieces.append(text[end:])
        owners.append(-1)
    features = _named(words, counts, kind, bag)
    return TextScene(features=features, pieces=pieces, owners=owners, mask=hide)


def _named(words: Sequence[str], counts: Sequence[int], kind: str, bag: bool) -> list[str]:
    """`word 'refund' x3`, or for positions `word 'refund' #2`."""
    seen: dict[str, int] = {}
    total = {word: words.count(word) for word in set(words)} if not bag else {}
    names = []
    for word, count in zip(words, counts, strict=True):
        flat = " ".join(word.split())
        shown = flat if len(flat) <= 60 else f"{flat[:59]}…"
        seen[word] = seen.get(word, 0) + 1
        again = f" #{seen[word]}" if not bag and total[word] > 1 else ""
        names.append(f"{kind} '{shown}'{f' x{count}' if count > 1 else again}")
    return names


_MOST_PIECES = 1 << 22  # of a text
_LAYOUT = Layout(
    fields={
        "features": NAMES,
        "pieces": list_of(text_of(), "n", most=_MOST_PIECES),
        "owners": list_of(whole(-1, MOST_FEATURES - 1), "n", most=_MOST_PIECES),
        "mask": text_of(),
    },
    rules=[
        Rule(
            must="pieces that belong to its features",
            holds=lambda scene: max(scene.owners, default=-1) < scene.n_features,
        )
    ],
)

TEXT = Domain(
    name="text",
    feature="word",
    scene=TextScene,
    explainer="eblime.explainers.text:TextExplainer",
    check_scene=lambda scene: check_object(scene, _LAYOUT),
    view="eblime.reporting.views:text_view",
    picture="text",
    command="eblime.cli.text:COMMAND",
)
