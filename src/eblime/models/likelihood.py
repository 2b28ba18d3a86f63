"""Scores of an answer, given prompts: how likely a language model finds it, or says it again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np

from eblime._checks import check_choice
from eblime._types import BoolArray, FloatArray
from eblime.models.asynchronous import awaited

SCORES = {  # name -> what it is, in words
    "mean": "the mean log probability of the answer's tokens",
    "total": "the log probability of the answer",
    "logit": "the logit of the probability of the answer",
    "similarity": "the similarity of a new answer to the answer",
}
ROUNDING = 1e-3  # of a log probability that is nearly 0
_LARGEST = -1e-7  # log probability of a logit: single precision knows no probability nearer to 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerScore:
    """A language model as a function from prompts to scores of the parts of their answers.

    Prompts are strings with two more attributes, the `answer` and the `spans` of its parts; there
    is one output for each part. A part is scored given the prompt and what is before it.
    """

    ranked = False  # the outputs are parts of an answer

    language: Any  # as `as_language_model` returns it
    score: str | Callable[[str, str], Any] = "mean"  # a name in `SCORES`, or a function

    @property
    def generates(self) -> bool:
        """Whether it compares new answers, rather than reading probabilities."""
        return callable(self.score) or self.score == "similarity"

    @property
    def words(self) -> str:
        """What the score is."""
        if callable(self.score):
            name = getattr(self.score, "__name__", type(self.score).__name__)
            return f"the {name.replace('_', ' ')} of a new answer and the answer"
        return SCORES[self.score]

    @property
    def batch_sizes(self) -> Sequence[int] | None:
        """Numbers of prompts per call worth trying; None if the language model does not say."""
        return getattr(self.language, "batch_sizes", None)

    def check(self) -> None:
        """Refuse a score that does not exist, or that the language model cannot give."""
        if not callable(self.score):
            check_choice("score", self.score, tuple(SCORES))
        needed = "generate" if self.generates else "token_log_probs"
        if not callable(getattr(self.language, needed, None)):
            raise TypeError(
                f"`model` must have a method `{needed}` for score={self.score!r}; "
                f"{type(self.language).__name__} has none."
            )

    def __call__(self, prompts: Sequence[Any]) -> FloatArray:
        """Scores, (prompts, parts)."""
        groups = groupby(prompts, key=attrgetter("answer"))  # a run has several in a batch
        return np.concatenate([self._scores(list(group), answer) for answer, group in groups])

    def generate(self, batch: Sequence[Any]) -> Any:
        """New answers to prompts; those of an `async def` are awaited."""
        return awaited(self.language.generate(batch))

    def _compare(self, new: str, answer: str, parts: Sequence[str]) -> list[float]:
        """How similar a new answer is to an answer, and its nearest sentences to parts of it."""
        compare = self.score if callable(self.score) else similarity
        pieces = re.split(r"(?<=[.!?])\s+", new) if parts else []
        pairs = [(new, answer), *((piece, part) for part in parts for piece in pieces)]
        found = [float(awaited(compare(*pair))) for pair in pairs]
        nearest = np.reshape(found[1:], (len(parts), len(pieces))).max(axis=1, initial=-np.inf)
        return [found[0], *nearest.tolist()]

    def _scores(self, prompts: Sequence[Any], answer: str) -> FloatArray:
        """Scores of prompts with the same answer."""
        spans = prompts[0].spans
        plain = [str(prompt) if isinstance(prompt, str) else list(prompt) for prompt in prompts]
        if self.generates:
            parts = [answer[a:b] for a, b in spans[1:]]
            return np.array([self._compare(new, answer, parts) for new in self.generate(plain)])
        returned = awaited(self.language.token_log_probs(plain, answer))
        logs = [np.asarray(row, dtype=np.float64) for row in returned]
        # a server knows the tokens of an answer when it has scored it
        tokens = self.language.token_spans(answer)
        wrong = [row for row in logs if row.shape != (len(tokens),) or (row > ROUNDING).any()]
        if wrong or len(logs) != len(plain):
            raise ValueError(
                f"`token_log_probs` must return the log probabilities of {len(tokens)} tokens, "
                f"which are <= 0, for each of {len(plain)} prompts; it returned {len(logs)} rows"
                f"{f', one of which is {wrong[0].tolist()!r:.60}' if wrong else ''}."
            )
        members = _members(tokens, spans)  # (parts, tokens)
        totals = np.array(logs) @ members.T
        if self.score == "logit":
            totals = np.minimum(totals, _LARGEST)
            return np.asarray(totals - np.log(-np.expm1(totals)))
        return totals / members.sum(axis=1) if self.score == "mean" else totals


def _members(tokens: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]]) -> BoolArray:
    starts, ends = np.array(tokens).reshape(-1, 2).T
    found = np.array([(starts < end) & (ends > start) for start, end in spans])
    found[0] = True
    empty = np.flatnonzero(~found.any(axis=1))
    if empty.size:
        raise ValueError(f"The part {spans[empty[0]]} of the answer has no token of the model.")
    return found


def similarity(new: str, answer: str) -> float:
    """How similar two texts are, from 0 to 1: the mean of token F1 and edit similarity.

    Token F1 is about which words they share, however often; edit similarity is about the words
    that are in the same order, of all words.

    Examples
    --------
    >>> from eblime.models.likelihood import similarity
    >>> similarity("It is in Paris.", "it is in Paris"), similarity("No idea.", "it is in Paris")
    (1.0, 0.0)
    """
    one, other = _words(new), _words(answer)
    if not one or not other:
        return float(one == other)
    shared = (Counter(one) & Counter(other)).total()
    f1 = 2 * shared / (len(one) + len(other))
    return (f1 + SequenceMatcher(None, one, other, autojunk=False).ratio()) / 2


def _words(text: str) -> list[str]:
    """Words in lower case; signs where there are no words."""
    return re.findall(r"\w+", text.lower()) or re.findall(r"\S", text)
