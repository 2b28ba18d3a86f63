"""Prompts of a language model: the sources in them are the features, hidden by leaving them out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from eblime._checks import check_choice, check_text
from eblime._field_checks import LONGEST_TEXT, NAMES, check_object, list_of, text, whole
from eblime._types import FloatArray
from eblime.domains.record import Domain
from eblime.domains.text import Tokens, find_spans, read_text_file

_CUTS: Mapping[str, Tokens] = {
    "sentence": "sentence",
    "paragraph": re.compile(r"\S.*?(?=\n[^\S\n]*\n|\Z)", re.DOTALL),
    # a turn begins with a name and a colon: "User: ..."
    "turn": re.compile(r"\S.*?(?=\n[^\S\n]*[^\W\d][\w .'-]{0,39}:(?:\s|$)|\Z)", re.DOTALL),
}
SEGMENTATIONS = tuple(_CUTS)
_SHOWN = 48  # characters of a source in its name, and of a part of the answer in its label
_MOST_PARTS = 4096
_ENDINGS = (".txt", ".md")  # of the files of a folder of sources


class Prompt(str):
    """A prompt, and the answer whose score is wanted; to a function it is a string."""

    answer: str
    spans: Sequence[tuple[int, int]]  # start and end of the parts of the answer, the whole first


class Sources(NamedTuple):
    """The sources in their order, with names; joined by the separator they are in the prompt."""

    names: Sequence[str]
    texts: Sequence[str]
    separator: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PromptScene:
    """A prompt: sources, the text around them, and the answer that they are to explain."""

    features: Sequence[str]  # names of the sources
    sources: Sequence[str]  # their texts
    separator: str  # between two sources that are shown
    before: str  # text before the sources
    after: str  # and after them; the question is in one of the two
    question: str
    answer: str  # empty where the model is a function that does not need one
    starts: Sequence[int]  # of the parts of the answer, the first of which is the whole
    ends: Sequence[int]
    score: str  # what the score of a mask is, in words

    domain = "prompt"
    sizes = (1, 4, 16, 64)  # batch sizes worth trying, increasing

    @property
    def n_features(self) -> int:
        """Number of sources, p."""
        return len(self.features)

    @property
    def text(self) -> str:
        """The prompt with all sources."""
        return f"{self.before}{self.separator.join(self.sources)}{self.after}"

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Start and end of the parts of the answer, the whole first."""
        return list(zip(self.starts, self.ends, strict=True))

    @property
    def pieces(self) -> list[str]:
        """The prompt cut into sources and what is between them, as of a text."""
        between = [piece for source in self.sources for piece in (source, self.separator)]
        return [self.before, *between[:-1], self.after]

    @property
    def owners(self) -> list[int]:
        """The source that each piece is, -1 for others."""
        return [k // 2 if k % 2 else -1 for k in range(2 * self.n_features + 1)]

    def details(self) -> dict[str, Sequence[str]]:
        """The text of each source."""
        return {"text": self.sources}

    def inputs(self, masks: FloatArray) -> list[Prompt]:
        """One prompt per mask: the shown sources in their order, without the hidden ones."""
        prompts, spans = [], self.spans
        for shown in (masks > 0.5).tolist():
            sources = self.separator.join(compress(self.sources, shown))
            prompt = Prompt(f"{self.before}{sources}{self.after}")
            prompt.answer, prompt.spans = self.answer, spans
            prompts.append(prompt)
        return prompts


def open_sources(path: Path) -> object:
    """The sources that a path holds.

    Of a folder, the .txt and .md files by name, in the order of their names; of a .json or .jsonl
    file, a list or names with texts; else one text to cut.
    """
    files = sorted(path.iterdir()) if path.is_dir() else []
    texts = [file for file in files if file.suffix.lower() in _ENDINGS]
    if texts:
        return {file.name: read_text_file(file).rstrip("\r\n") for file in texts}
    if not path.is_file():
        raise FileNotFoundError(
            "`sources` must be a file of texts, or a folder with files that end in .txt or .md; "
            f"{str(path)!r} is not."
        )
    content, suffix = read_text_file(path).removeprefix("\ufeff"), path.suffix.lower()
    if suffix not in (".json", ".jsonl"):
        return content
    pieces = [content] if suffix == ".json" else content.split("\n")
    values = []
    for number, piece in enumerate(pieces, start=1):
        try:
            values += [json.loads(piece)] if piece.strip() else []
        except ValueError as error:
            where = f"{str(path)!r}, line {number}," if suffix == ".jsonl" else repr(str(path))
            raise ValueError(f"`sources`: {where} must be JSON: {error}.") from error
    if suffix == ".jsonl":
        return values
    if not values or not isinstance(values[0], (list, dict)):
        raise ValueError(f"`sources`: {str(path)!r} must hold a list, or an object of texts.")
    return values[0]


def read_sources(
    sources: object, *, segmentation: str = "paragraph", separator: str = "\n\n"
) -> Sources:
    """The sources with their names; the settings are those of `PromptExplainer`.

    A "turn" begins with a name and a colon. What is between two pieces of a text belongs to the
    first of them.
    """
    check_choice("segmentation", segmentation, SEGMENTATIONS)
    check_text("separator", separator)
    kind, names = "source", None
    if isinstance(sources, str):
        starts = [a for a, _ in find_spans(sources, _CUTS[segmentation])] if sources.strip() else []
        texts = [sources[a:b] for a, b in pairwise([0, *starts[1:], len(sources)]) if b]
        kind, separator = segmentation, ""
    elif isinstance(sources, Mapping):
        names, texts = [str(name) for name in sources], list(sources.values())
    elif isinstance(sources, Sequence):
        texts = [_text_of(source) if isinstance(source, Mapping) else source for source in sources]
        if any(isinstance(source, Mapping) and "text" not in source for source in sources):
            kind = "turn"
    else:
        raise TypeError(
            "`sources` must be a list of texts, a dictionary from names to texts, the messages of "
            f"a chat, a path, or one text; got {type(sources).__name__}."
        )
    if not texts:
        raise ValueError("`sources` must have at least one source; it is empty.")
    for number, source in enumerate(texts, start=1):
        if not (isinstance(source, str) and source.strip()):
            raise (ValueError if isinstance(source, str) else TypeError)(
                f"`sources` must be texts that are not empty; source {number} is {source!r:.60}."
            )
    if names is None:
        names = [f"{kind} {k} '{_brief(source)}'" for k, source in enumerate(texts, start=1)]
    return Sources(names=names, texts=texts, separator=separator)


def _text_of(source: Mapping[str, object]) -> Any:
    """The text of an object with a "text", or of a message of a chat."""
    if "text" in source:
        return source["text"]
    try:
        return f"{source['role']}: {source['content']}"
    except KeyError as error:
        raise ValueError(
            '`sources` must be texts, objects with a "text", or messages with a "role" and a '
            f'"content"; got {source!r:.60}.'
        ) from error


def _brief(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else f"{flat[: _SHOWN - 1]}…"


def check_template(prompt: object) -> None:
    """Refuse a template that does not say where the sources are."""
    prompt = check_text("prompt", prompt)
    if prompt.count("{sources}") != 1:
        raise ValueError(
            "`prompt` must contain {sources} once, where the sources are; it contains it "
            f"{prompt.count('{sources}')} times."
        )


def read_prompt(question: object, sources: Sources, *, prompt: str, score: str) -> PromptScene:
    """The prompt that asks a question, with no parts of the answer but the whole.

    `prompt` is the template; `score` says in words what the score is.
    """
    asked = "" if question is None else question
    asked = check_text("question", asked, empty="{question}" not in prompt)
    if asked and "{question}" not in prompt:
        raise ValueError(
            "`prompt` must contain {question}, where the question is; it does not. Leave out the "
            "question if it is one of the sources."
        )
    before, after = (part.replace("{question}", asked) for part in prompt.split("{sources}"))
    return PromptScene(
        features=sources.names,
        sources=sources.texts,
        separator=sources.separator,
        before=before,
        after=after,
        question=asked,
        answer="",
        starts=[0],
        ends=[0],
        score=score,
    )


def with_answer(scene: PromptScene, answer: object) -> PromptScene:
    """The scene with an answer."""
    answer = check_text("answer", answer, empty=False)
    return replace(scene, answer=answer, starts=[0], ends=[len(answer)])


def with_targets(scene: PromptScene, targets: Any) -> tuple[PromptScene, list[Any]]:
    """The scene with its sentences and the targets as parts of the answer, and their numbers.

    A target is the number of a part, or a text in the answer; None is the answer and each sentence.
    """
    sentences = find_spans(scene.answer, "sentence")
    spans = [(0, len(scene.answer)), *(sentences if len(sentences) > 1 else ())]
    count = len(spans)
    if targets is None or isinstance(targets, int):
        targets = range(count if targets is None else min(targets, count))
    found = []
    for target in targets:
        if isinstance(target, str) and target.isdecimal() and int(target) < count:
            target = int(target)  # as on the command line
        if isinstance(target, str):
            start = scene.answer.find(target)
            if start < 0 or not target.strip():
                raise ValueError(f"`target` must be a part of the answer; {target!r:.60} is not.")
            span = start, start + len(target)
            spans += [] if span in spans else [span]
            target = spans.index(span)
        found.append(target)
    return replace(scene, starts=[a for a, _ in spans], ends=[b for _, b in spans]), found


def part_labels(scene: PromptScene) -> list[str]:
    """Names of the parts of the answer."""
    sentences = find_spans(scene.answer, "sentence")
    labels = []
    for k, (start, end) in enumerate(scene.spans):
        kind = f"sentence {k}" if k <= len(sentences) > 1 else "part"
        labels.append(f"{kind if k else 'answer'} '{_brief(scene.answer[start:end])}'")
    return labels


_FIELDS = {
    "features": NAMES,
    "sources": list_of(text(), "p", most=1 << 16),
    **dict.fromkeys(("separator", "before", "after", "question", "answer", "score"), text()),
    **dict.fromkeys(("starts", "ends"), list_of(whole(0, LONGEST_TEXT), "parts", most=_MOST_PARTS)),
}
_RULES = {
    "parts inside the answer": lambda s: all(a <= b <= len(s.answer) for a, b in s.spans),
    "at least one part, the whole answer": lambda s: s.spans[:1] == [(0, len(s.answer))],
}

PROMPT = Domain(
    name="prompt",
    feature="source",
    scene=PromptScene,
    check_scene=lambda scene: check_object(scene, _FIELDS, _RULES),
    design="orthogonal",
    kernel="uniform",
    picture="text",
)
