"""Splitting a text into tokens: words, sentences, characters, or what the user defines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

__all__ = ["TOKENS", "Span", "Tokens", "coarser_spans", "find_spans", "unspaced_word"]

TOKENS = ("word", "sentence", "char")
Tokens = str | re.Pattern[str] | Callable[[str], Any]
Span = tuple[int, int]  # start and end of a token

# Characters of scripts without spaces, and emoji, are one token each.
_SIGNS = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_EMOJI = "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
# These belong to the character before them: accents, variation selectors, skin tones.
_JOINED = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u20d0-\u20ff\ufe00-\ufe0f\U0001f3fb-\U0001f3ff"
# Scripts of South and Southeast Asia, whose vowel signs \w leaves out. Sentence marks are excluded.
_INDIC = "\u0900-\u0963\u0966-\u0e4e\u0e50-\u0f03\u0f18-\u109f\u1780-\u17d3\u17dd-\u17ff"
_LETTERS = rf"(?:(?:(?![{_SIGNS}])\w|[{_INDIC}])[{_JOINED}]*)+"
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
_PATTERNS = {"word": _WORD, "sentence": _SENTENCE, "char": _CHAR}
# Thai, Lao, Burmese and Khmer have no spaces between words: a run this long is several words.
_UNSPACED = re.compile("[\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u109f\u1780-\u17d3]{9,}")
_CHUNK = 20  # tokens per chunk, about as many as in a sentence
_LONG_SENTENCE = 100  # tokens


def find_spans(text: str, tokens: Tokens) -> list[Span]:
    """Start and end of each token, in order and without overlap.

    Parameters
    ----------
    text
        The text.
    tokens
        "word", "sentence", "char", a regular expression that matches tokens, or a function from
        the text to tokens, as strings in their order or as (start, end).
    """
    if callable(tokens):
        spans = _spans_of(text, tokens(text))
    else:
        try:
            known = _PATTERNS.get(tokens, tokens) if isinstance(tokens, str) else tokens
            pattern = re.compile(known)
        except re.error as error:
            raise ValueError(
                f"`tokens` must be 'word', 'sentence', 'char', a regular expression or a function; "
                f"got {tokens!r}, which is not a valid regular expression: {error}."
            ) from error
        spans = [match.span() for match in pattern.finditer(text) if match.end() > match.start()]
    if not spans:
        finder = "the function in `tokens`" if callable(tokens) else f"tokens={tokens!r}"
        advice = " tokens='char' finds all characters." if isinstance(tokens, str) else ""
        raise ValueError(f"`text` must have at least one token; {finder} finds none.{advice}")
    return spans


def coarser_spans(text: str, spans: Sequence[Span], most: int) -> tuple[list[Span], str]:
    """Merge tokens into at most `most` longer features, and name their kind.

    They are sentences if there are at most `most` of them, with 100 tokens or fewer on average.
    Otherwise they are chunks of about 20 tokens.
    """
    sentences = find_spans(text, "sentence")
    if len(spans) <= _LONG_SENTENCE * len(sentences) and len(sentences) <= most:
        return sentences, "sentence"
    count = max(1, min(most, round(len(spans) / _CHUNK)))
    ends = [len(spans) * k // count for k in range(count + 1)]
    return [(spans[a][0], spans[b - 1][1]) for a, b in pairwise(ends)], "chunk"


def unspaced_word(text: str, spans: Sequence[Span]) -> str | None:
    """The first token that is probably several words of a script without spaces."""
    return next((text[a:b] for a, b in spans if _UNSPACED.search(text, a, b)), None)


def _spans_of(text: str, tokens: Any) -> list[Span]:
    """Tokens of the user's function: pairs (start, end), or strings that are found in order."""
    if not isinstance(tokens, Iterable):
        raise TypeError(
            f"`tokens` must return strings or pairs (start, end); got {type(tokens).__name__}."
        )
    spans, end = [], 0
    for token in tokens:
        span = _find(text, token, end) if isinstance(token, str) else _pair(token)
        if not end <= span[0] < span[1] <= len(text):
            raise ValueError(
                "`tokens` must return pairs (start, end) in order, without overlap and inside the "
                f"text; got {token}."
            )
        spans.append(span)
        end = span[1]
    return spans


def _pair(token: Any) -> Span:
    """Start and end of a token that is not a string."""
    try:
        start, end = token
        return int(start), int(end)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`tokens` must return strings or pairs (start, end); got {token!r:.60}."
        ) from error


def _find(text: str, token: str, start: int) -> Span:
    """The first occurrence of a token from a position on."""
    found = text.find(token, start)
    if found < 0 or not token:
        raise ValueError(
            f"`tokens` must return parts of the text in their order; got {token!r:.60}, "
            f"which does not occur after character {start}."
        )
    return found, found + len(token)
