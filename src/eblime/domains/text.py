"""Texts: words, sentences or characters as features, hidden by removal or by a mask token.

Everything that is not hidden stays as it was, to the byte: separators, line ends, direction marks,
emoji.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from eblime._checks import check_text
from eblime._field_checks import MOST_FEATURES, NAMES, check_object, list_of, whole
from eblime._field_checks import text as text_of
from eblime._types import FloatArray
from eblime._warn import warn_user
from eblime.domains.record import Domain

TOKENS = ("word", "sentence", "char")
Tokens = str | re.Pattern[str] | Callable[[str], object]
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
    "|(?=\n\\s*\n|\n\\s*(?:[-*\u2022]|\\d{1,3}[.)])\\s)|\\Z)",
    re.DOTALL,
)
# A sentence goes on after a title, an initial or the number of a list, and after some abbreviations
# if a small letter or a digit follows, which is the last character here.
_GOES_ON = re.compile(
    r"(?:(?:\b(?:Dr|Mr|Mrs|Ms|Prof|St|Mt|e\.g|i\.e|cf|vs)|(?:^|[\s(])[A-Z]|^\d{1,3})\.\s+\S"
    r"|\b(?:[A-Z]\.[A-Z]|etc|al|approx|Inc|Ltd|Co|a\.m|p\.m)\.\s+[a-z]"
    r"|\b(?:No|Fig|Figs|Eq|Sec|Vol|pp|p|ca)\.\s+\d)$"
)
_CHAR = re.compile(rf"\S[{_JOINED}]*(?:\u200d\S[{_JOINED}]*)*")
_PATTERNS = {"word": _WORD, "sentence": _SENTENCE, "char": _CHAR}
# Thai, Lao, Burmese and Khmer have no spaces between words: a run this long is several words.
_UNSPACED = re.compile("[\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u109f\u1780-\u17d3]{9,}")
_CHUNK = 20  # tokens per chunk, about as many as in a sentence
_LONG_SENTENCE = 100  # tokens
_BLOCK = 1 << 20  # tokens of texts that are joined together


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TextScene:
    """A text cut into pieces: separators, which stay, and tokens, which belong to features."""

    features: Sequence[str]  # readable names
    pieces: Sequence[str]  # joined, they are the text
    owners: Sequence[int]  # feature of each piece, -1 for a separator
    mask: str  # replaces a hidden token; empty to remove it

    domain = "text"
    sizes = (64, 512, 4096)  # batch sizes worth trying, increasing

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.features)

    @property
    def text(self) -> str:
        """The text itself."""
        return "".join(self.pieces)

    def inputs(self, masks: FloatArray) -> list[str]:
        """One text per mask."""
        tokens = [k for k, owner in enumerate(self.owners) if owner >= 0]
        tails = ["".join(self.pieces[a + 1 : b]) for a, b in pairwise([*tokens, len(self.pieces)])]
        shown = np.array(
            [self.pieces[k] + tail for k, tail in zip(tokens, tails, strict=True)], "O"
        )
        hidden = np.array([self.mask + tail for tail in tails], "O")
        owners, start = np.take(self.owners, tokens), "".join(self.pieces[: tokens[0]])
        step, texts = max(1, _BLOCK // len(tokens)), list[str]()
        for k in range(0, len(masks), step):
            rows = np.where((masks[k : k + step] > 0.5).take(owners, axis=1), shown, hidden)
            texts += [start + "".join(row) for row in rows.tolist()]
        return texts


def read_text_file(path: Path) -> str:
    """A text file as it is, line ends included."""
    try:
        return path.read_bytes().decode("utf8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{str(path)!r} must be a text in UTF-8: {error}.") from error


def read_text(
    x: object, *, tokens: Tokens = "word", bag: bool = True, hide: str = "", most: int | None = 500
) -> TextScene:
    """Cut a text into features; the settings are those of `TextExplainer`.

    With more than `most` words or characters it is cut into sentences instead, or into chunks of
    about 20 tokens if its sentences are too long or too many, with a warning.
    """
    text = check_text("text", x, empty=False)
    spans = find_spans(text, tokens)
    bag = bag and tokens != "sentence"
    count = len({text[a:b] for a, b in spans}) if bag else len(spans)
    kind = tokens if isinstance(tokens, str) and tokens in TOKENS else "token"
    if kind == "word":
        _warn_unspaced(text, spans)
    if most is not None and count > most and kind in ("word", "char"):
        coarse, coarse_kind = coarser_spans(text, spans, most)
        said = f"{count} different {kind}s" if bag else f"{count} {kind}s"
        alone = 'tokens="sentence" to silence this warning, or ' * (coarse_kind == "sentence")
        pattern = r"\w+" if kind == "word" else r"\S"
        warn_user(
            f"The text has {said}, more than {most}: its {len(coarse)} {coarse_kind}s are "
            f'explained instead. Set {alone}tokens=r"{pattern}" to explain {kind}s.'
        )
        spans, bag, kind = coarse, False, coarse_kind
    return _scene(text, spans, bag, kind, hide)


def _warn_unspaced(text: str, spans: Sequence[Span]) -> None:
    """Warn about a script without spaces between words, which only a dictionary can split."""
    word = next((text[a:b] for a, b in spans if _UNSPACED.search(text, a, b)), None)
    if word is not None:
        warn_user(
            f"The text is in a script without spaces between words: {word[:30]!r} is treated as "
            "one word. Pass a function that finds words as `tokens`, such as "
            "pythainlp.tokenize.word_tokenize, or set tokens='char'."
        )


def _scene(text: str, spans: Sequence[Span], bag: bool, kind: str, hide: str) -> TextScene:
    starts = {start for start, _ in spans}
    bounds = sorted({0, len(text), *chain.from_iterable(spans)})
    pieces = [text[a:b] for a, b in pairwise(bounds)]
    feature_of: dict[Any, int] = {}  # a token, or its position -> feature
    owners = [
        feature_of.setdefault(piece if bag else start, len(feature_of)) if start in starts else -1
        for start, piece in zip(bounds, pieces, strict=False)
    ]
    words = [text[a:b] for a, b in spans]
    features = _names(list(feature_of) if bag else words, Counter(words), kind, bag)
    return TextScene(features=features, pieces=pieces, owners=owners, mask=hide)


def _names(words: Sequence[str], counts: Counter[str], kind: str, bag: bool) -> list[str]:
    """Names of the features: `word 'refund' x3`, or `word 'refund' #2` for one occurrence."""
    seen: Counter[str] = Counter()
    names = []
    for word in words:
        flat = " ".join(word.split())
        shown = flat if len(flat) <= 60 else f"{flat[:59]}…"
        seen[word] += 1
        which = f" x{counts[word]}" if bag else f" #{seen[word]}"
        names.append(f"{kind} '{shown}'{which if counts[word] > 1 else ''}")
    return names


def as_finder(tokens: Tokens) -> Callable[[str], object]:
    """A function from a text to its tokens: the user's own, or one that finds a pattern."""
    if callable(tokens):
        return tokens
    try:
        pattern = re.compile(_PATTERNS.get(tokens, tokens) if isinstance(tokens, str) else tokens)
    except (re.error, TypeError) as error:
        raise ValueError(
            "`tokens` must be 'word', 'sentence', 'char', a regular expression or a function; got "
            f"{tokens!r}: {error}."
        ) from error
    return lambda text: [m.span() for m in pattern.finditer(text) if m.end() > m.start()]


def find_spans(text: str, tokens: Tokens) -> list[Span]:
    """Start and end of each token, in order and without overlap; see `read_text`."""
    spans: list[Span] = []
    for start, end in _spans_of(text, as_finder(tokens)(text)):
        goes_on = spans and tokens == "sentence" and _GOES_ON.search(text[spans[-1][0] : start + 1])
        spans.append((spans.pop()[0] if goes_on else start, end))
    if not spans:
        raise ValueError(
            f"`text` must have at least one token; tokens={tokens!r:.80} finds none. tokens='char' "
            "finds all characters."
        )
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


def _spans_of(text: str, tokens: Any) -> list[Span]:
    """Tokens of the user's function: pairs (start, end), or strings that are found in order."""
    spans, end = [], 0
    for token in tokens if isinstance(tokens, Iterable) else [tokens]:
        try:
            start = text.find(token, end) if isinstance(token, str) else int(token[0])
            stop = start + len(token) if isinstance(token, str) else int(token[1])
        except (TypeError, ValueError, IndexError) as error:
            raise TypeError(
                f"`tokens` must return strings or pairs (start, end); got {token!r:.60}."
            ) from error
        if not end <= start < stop <= len(text):
            raise ValueError(
                "`tokens` must return parts of the text, or pairs (start, end), in order and "
                f"without overlap; got {token!r:.60} after character {end}."
            )
        spans.append((start, stop))
        end = stop
    return spans


_MOST_PIECES = 1 << 22
_FIELDS = {
    "features": NAMES,
    "pieces": list_of(text_of(), "n", most=_MOST_PIECES),
    "owners": list_of(whole(-1, MOST_FEATURES - 1), "n", most=_MOST_PIECES),
    "mask": text_of(),
}
_RULES = {"pieces that belong to its features": lambda s: max(s.owners, default=-1) < s.n_features}

TEXT = Domain(
    name="text",
    feature="word",
    scene=TextScene,
    check_scene=lambda scene: check_object(scene, _FIELDS, _RULES),
    picture="text",
)
