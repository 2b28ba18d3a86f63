"""The answer of a language model, with the sources that each of its sentences rests on."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from eblime import registry
from eblime._checks import check_level, check_number
from eblime._table import format_chance
from eblime._text import count_noun, printable
from eblime.results.explanation import Explanation
from eblime.results.export import as_json

_LONGEST_QUOTE = 200  # characters of a source in a footnote


class Citation(NamedTuple):
    """A source of a sentence."""

    source: str
    text: str
    mean: float
    low: float
    high: float
    share: float
    certainty: float


class CitedSentence(NamedTuple):
    """A sentence, with the sources that it rests on: the most important first."""

    text: str
    sources: Sequence[Citation]
    explanation: Explanation


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Citations:
    """The sentences of an answer with their sources, as `PromptExplainer.cite` returns them.

    An entry of `sentences` has its `text`, its `sources` and its `explanation`. A source has its
    name (`source`), `text`, `mean`, `low` and `high`, its `share` of the importances above zero,
    and its `certainty`, the probability that its own importance is above zero.

    Examples
    --------
    >>> import eblime
    >>> class Echo:
    ...     def generate(self, prompts):
    ...         return ["It opened in 1889." if "1889" in p else "No idea." for p in prompts]
    >>> notes = {"guide": "It opened in 1889.", "menu": "Fish soup."}
    >>> explainer = eblime.PromptExplainer(Echo(), notes, score="similarity")
    >>> cited = explainer.cite("When did it open?")
    >>> print(cited)
    It opened in 1889.
      100%  guide, P(>0) >.99
    >>> cited.sentences[0].sources[0].text
    'It opened in 1889.'
    """

    sentences: Sequence[CitedSentence]
    prob: float  # of the intervals that leave out zero

    @property
    def scene(self) -> Any:
        """The prompt: its `question`, `answer` and `sources`."""
        return self.sentences[0].explanation.scene

    @property
    def sources(self) -> dict[str, list[tuple[int, Citation]]]:
        """Each source that is cited, with the sentences that rest on it by number from 1."""
        found: dict[str, list[tuple[int, Citation]]] = {}
        for number, sentence in enumerate(self.sentences, start=1):
            for one in sentence.sources:
                found.setdefault(one.source, []).append((number, one))
        return found

    @property
    def pieces(self) -> list[tuple[str, CitedSentence, list[int]]]:
        """The text before each sentence, the sentence, and the numbers of its sources from 1."""
        found, rest, names = [], self.scene.answer, list(self.sources)
        for sentence in self.sentences:
            before, _, rest = rest.partition(sentence.text)
            numbers = [names.index(one.source) + 1 for one in sentence.sources]
            found.append((before, sentence, numbers))
        return found

    def to_json(self) -> str:
        """The sentences and their sources as JSON text, for a log."""
        scene, sentences = self.scene, []
        for text, sources, e in self.sentences:
            numbers = {"grounded": e.grounded, "r2_held_out": e.posterior.r2_held_out}
            named = [one._asdict() for one in sources]
            sentences.append({"text": text, **numbers, "sources": named})
        found = {"schema": "eblime.citations/1", "question": scene.question, "answer": scene.answer}
        found |= {"score": scene.score, "prob": self.prob, "sentences": sentences}
        return as_json({**found, "provenance": self.sentences[0].explanation.provenance})

    def to_markdown(self) -> str:
        """The answer with a footnote for each source, and a mark where no source is certain."""
        text = ""
        for before, sentence, numbers in self.pieces:
            marks = "".join(f"[^{number}]" for number in numbers)
            own = (before + sentence.text).replace("[^", r"\[^")  # no footnotes of its own
            text += own + (marks or " *(no certain source)*")
        for number, (name, uses) in enumerate(self.sources.items(), start=1):
            shares = ", ".join(f"{one.share:.0%} of sentence {k}" for k, one in uses)
            text += "" if number > 1 else "\n"
            short = _plain(name.partition(" '")[0])  # without its first words
            text += f"\n[^{number}]: **{short}** ({shares}): {_plain(uses[0][1].text)}"
        return f"{text}\n"

    def to_html(
        self, path: str | os.PathLike[str] | None = None, *, title: str | None = None
    ) -> str:
        """One self-contained page with the answer and its sources; written to `path` if given."""
        return registry.find("pages", "citations")(self, path, title)

    def __repr__(self) -> str:
        sentences = count_noun(len(self.sentences), "sentence")
        return f"Citations({sentences}, {len(self.sources)} of {self.scene.n_features} sources)"

    def __str__(self) -> str:
        """Each sentence with its sources below it."""
        lines = []
        for text, sources, _ in self.sentences:
            lines.append(printable(" ".join(text.split())))
            for one in sources:
                chance = format_chance(one.certainty)
                lines.append(f"  {one.share:4.0%}  {printable(one.source)}, P(>0) {chance}")
            lines += [] if sources else ["        no certain source"]
        return "\n".join(lines)


def cite(ask: Callable[[], Mapping[int, Explanation]], prob: float, min_share: float) -> Citations:
    """The citations in the explanations of an answer and, if there are several, its sentences."""
    check_level("prob", prob)
    check_number("min_share", min_share, zero=True)
    if min_share > 1:
        raise ValueError(f"`min_share` must be at most 1, all of the importance; got {min_share}.")
    sentences = []
    found = [*ask().values()]
    for e in found[1:] or found:
        post, scene, texts = e.posterior, cast("Any", e.scene), e.details()["text"]
        if not post.has_spread:
            raise ValueError(f"`method` must give intervals for citations; {post.method} does not.")
        low, high, chance = (post.columns(prob)[name] for name in ("low", "high", "prob_positive"))
        shares = post.mean / max(post.mean.clip(0).sum(), 1e-300)
        numbers = np.column_stack([post.mean, low, high, shares, chance]).tolist()
        certain = [j for j in post.order() if low[j] > 0 and shares[j] >= min_share]
        sources = [Citation(str(e.features[j]), texts[j], *numbers[j]) for j in certain]
        start, end = scene.spans[e.target]
        sentences.append(CitedSentence(scene.answer[start:end], sources, e))
    return Citations(sentences=sentences, prob=prob)


def _plain(text: str) -> str:
    """The beginning of a text on one line, without meaning in Markdown."""
    flat = " ".join(text.split())
    short = flat if len(flat) <= _LONGEST_QUOTE else f"{flat[: _LONGEST_QUOTE - 1]}…"
    return re.sub(r"([\\`*_\[\]<>#|~])", r"\\\1", short)
