"""Prompts of a language model: the sources in them are the features, hidden by leaving them out."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, pairwise, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from eblime._checks import check_choice, check_text
from eblime._field_checks import LONGEST_TEXT, NAMES, check_object, list_of, text, whole
from eblime._types import FloatArray
from eblime.domains.record import Domain
from eblime.domains.text import Span, Tokens, find_spans, read_text_file
from eblime.protocols import MeanBatch

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
_MARK, _MARKS = "\ue000{}\ue001", re.compile("\ue000(\\d+)\ue001")  # places of the sources
_NEAR = 0.5  # share of the shorter text's triples of words in the other, for equal texts


class Prompt(str):
    """A prompt, and the answer whose score is wanted; to a function it is a string."""

    answer: str
    spans: Sequence[Sequence[int]]  # start and end of the parts of the answer, the whole first


class Chat(list[dict[str, Any]]):
    """A prompt that is the messages of a chat; to a function it is a list."""

    answer: str
    spans: Sequence[Sequence[int]]


Sources = tuple[Sequence[str], Sequence[str], str]  # names, texts, and what is between them


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PromptScene:
    """A prompt: sources, the text around them, and the answer that they are to explain."""

    features: Sequence[str]  # names of the sources, or of groups of them
    sources: Sequence[str]  # texts of all sources, in their order
    groups: Sequence[int]  # the feature of each source
    around: Sequence[str]  # text before the sources, between their places, and after them
    separator: str  # between two sources, if all have the same place
    template: str  # the text or the messages of a chat, as JSON with marks in these places
    question: str
    answer: str  # empty where the model is a function that does not need one
    spans: Sequence[Sequence[int]]  # start and end of the parts of the answer, the whole first
    score: str  # what the score of a mask is, in words
    cost: int  # model calls for one mask

    domain = "prompt"
    sizes = (1, 4, 16, 64)  # batch sizes worth trying, increasing
    by_masks = True  # a mask decides the prompt, if not the answer; both ends are asked

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.features)

    @property
    def text(self) -> str:
        """The prompt with all sources; of a chat, its messages."""
        return "".join(self.pieces)

    @property
    def pieces(self) -> list[str]:
        """The prompt cut into sources and what is between them, as of a text."""
        between = self.around[1:-1] or [self.separator] * (len(self.sources) - 1)
        found = [self.around[0]]
        for source, after in zip(self.sources, [*between, self.around[-1]], strict=True):
            found += [source, after]
        return found

    @property
    def owners(self) -> list[int]:
        """The feature that each piece belongs to, -1 for none."""
        return [*(k for group in self.groups for k in (-1, group)), -1]

    def details(self) -> dict[str, Sequence[str]]:
        """The text of each feature."""
        texts: list[list[str]] = [[] for _ in self.features]
        for source, group in zip(self.sources, self.groups, strict=True):
            texts[group].append(source)
        return {"text": [self.separator.join(text) for text in texts]}

    def copies(self) -> list[list[int]]:
        """Groups of features whose texts are nearly equal."""
        first = similar_groups(self.details()["text"][:500])  # more would take long
        groups = [np.flatnonzero(np.equal(first, k)).tolist() for k in dict.fromkeys(first)]
        return [group for group in groups if len(group) > 1]

    def inputs(self, masks: FloatArray) -> Any:
        """One prompt per mask: the shown sources in their order, without the hidden ones."""
        prompts = [self.prompt(shown) for shown in (masks > 0.5).tolist()]
        if self.cost == 1:
            return prompts
        sizes = np.full(len(prompts), self.cost)
        return MeanBatch(inputs=[p for p in prompts for _ in range(self.cost)], sizes=sizes)

    def prompt(self, shown: Sequence[bool]) -> Prompt | Chat:
        """The prompt with the features that are shown."""
        kept = [
            _escaped(source) if shown[group] else None
            for source, group in zip(self.sources, self.groups, strict=True)
        ]
        whole = _escaped(self.separator).join(text for text in kept if text is not None)
        texts = kept if len(self.around) > 2 else [whole]
        filled = json.loads(_MARKS.sub(lambda mark: texts[int(mark[1])] or "", self.template))
        prompt = Prompt(filled) if isinstance(filled, str) else Chat(filled)
        prompt.answer, prompt.spans = self.answer, self.spans
        return prompt

    def with_answer(self, answer: object) -> PromptScene:
        """The scene with an answer."""
        answer = check_text("answer", answer, empty=False)
        return replace(self, answer=answer, spans=[[0, len(answer)]])

    def with_targets(self, targets: Any) -> tuple[PromptScene, list[int], list[str]]:
        """The scene with parts of its answer: the numbers of the targets, a label of each part.

        A target is the number of a part, a text in the answer, or its start and end; None is the
        answer and each sentence.
        """
        answer = self.answer
        sentences = find_spans(answer, "sentence")
        spans: list[Span] = [(0, len(answer)), *(sentences if len(sentences) > 1 else ())]
        kinds = ["answer", *(f"sentence {k}" for k in range(1, len(spans)))]
        if targets is None or isinstance(targets, int):
            targets = range(len(spans) if targets is None else min(targets, len(spans)))
        wanted = [_find_part(answer, spans, target) for target in targets]
        spans = list(dict.fromkeys([*spans, *wanted]))
        pairs = zip_longest(kinds, spans, fillvalue="part")
        labels = [f"{kind} '{_brief(answer[slice(*span)])}'" for kind, span in pairs]
        scene = replace(self, spans=[[*span] for span in spans])
        return scene, [spans.index(span) for span in wanted], labels


def _escaped(text: str) -> str:
    """A text as it is inside a string of JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def open_sources(sources: object) -> object:
    """Sources that can be read again and again, and those of a path.

    They are the .txt and .md files of a folder by name, the JSON of a file, or one text to cut.
    """
    if not isinstance(sources, os.PathLike):
        return list(sources) if isinstance(sources, Iterator) else sources
    path = Path(sources)
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
    values: list[Any] = []
    for number, piece in enumerate(
        [content] if suffix == ".json" else content.split("\n"), start=1
    ):
        try:
            values += [json.loads(piece)] if piece.strip() else []
        except ValueError as error:
            where = f"{str(path)!r}, line {number}," if suffix == ".jsonl" else repr(str(path))
            raise ValueError(f"`sources`: {where} must be JSON: {error}.") from error
    found = values if suffix == ".jsonl" or not values else values[0]
    if not (isinstance(found, (list, dict)) and found):
        raise ValueError(f"`sources`: {str(path)!r} must hold a list, or an object of texts.")
    return found


def read_sources(
    sources: object, *, segmentation: str = "paragraph", separator: str = "\n\n"
) -> Sources:
    """The sources with their names; the settings are those of `PromptExplainer`.

    What is between two pieces of a text belongs to the first of them.
    """
    check_choice("segmentation", segmentation, SEGMENTATIONS)
    check_text("separator", separator)
    kind, names = "source", None
    if isinstance(sources, str):
        starts = [a for a, _ in find_spans(sources, _CUTS[segmentation])] if sources.strip() else []
        texts: list[Any] = [sources[a:b] for a, b in pairwise([0, *starts[1:], len(sources)]) if b]
        kind, separator = segmentation, ""
        if len(starts) == 1:
            raise ValueError(
                f"`sources` is one text with one {segmentation}: set another of {SEGMENTATIONS} as "
                "`segmentation`, or pass a list of texts."
            )
    elif isinstance(sources, Mapping):
        names, texts = [str(name) for name in sources], list(sources.values())
    elif isinstance(sources, Iterable) and not hasattr(sources, "columns"):
        texts = [_text_of(source) for source in sources]
        if any(isinstance(source, Mapping) and "text" not in source for source in sources):
            kind = "turn"
    else:
        kind = type(sources).__name__
        raise TypeError(f"`sources` must be a list of texts, a dictionary, or a text; got {kind}.")
    if not texts:
        raise ValueError("`sources` must have at least one source; it is empty.")
    for number, source in enumerate(texts, start=1):
        if not (isinstance(source, str) and source.strip()):
            raise (ValueError if isinstance(source, str) else TypeError)(
                '`sources` must be texts, objects with a "text", or messages with a "role" and a '
                f'"content", that are not empty; source {number} is {source!r:.60}.'
            )
    if names is None:
        names = [f"{kind} {k} '{_brief(source)}'" for k, source in enumerate(texts, start=1)]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"`sources` must have different names; {twice[0]!r:.60} is there twice.")
    return names, texts, separator


def read_documents(sources: object, segmentation: str) -> dict[str, Sequence[str]]:
    """The chunks of each document, which is a list of them, or a text that is cut into them."""
    if not isinstance(sources, Mapping):
        names, texts, _ = read_sources(sources, segmentation=segmentation)
        sources = {name.partition(" '")[0]: each for name, each in zip(names, texts, strict=True)}
    found = {}
    for name, document in sources.items():
        if isinstance(document, str) and document.strip():
            spans = find_spans(document, _CUTS[segmentation])
            document = [document[a:b].strip() for a, b in spans]
        found[str(name)] = read_sources(document)[1]
    if all(len(chunks) == 1 for chunks in found.values()):
        raise ValueError("`sources` must have a document of several chunks for levels=2.")
    return found


def open_documents(
    documents: Mapping[str, Sequence[str]], opened: Container[str], separator: str
) -> dict[str, str]:
    """The sources of a prompt: the chunks of some documents, and the others as a whole."""
    found = {}
    for name, chunks in documents.items():
        if name in opened and len(chunks) > 1:
            for number, chunk in enumerate(chunks, start=1):
                found[f"{name}, chunk {number} '{_brief(chunk)}'"] = chunk
        else:
            found[name] = separator.join(chunks)
    return found


def _text_of(source: Any) -> Any:
    """The text of a document, of an object with a "text", or of a message of a chat.

    Documents of LangChain have a `page_content`, nodes of LlamaIndex a `text`.
    """
    if not isinstance(source, Mapping):
        return getattr(source, "page_content", None) or getattr(source, "text", source)
    is_turn = "text" not in source and "role" in source and "content" in source
    return f"{source['role']}: {source['content']}" if is_turn else source.get("text", source)


def _brief(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else f"{flat[: _SHOWN - 1]}…"


def as_chat(prompt: Any, system: str | None) -> Any:
    """The template as the user gave it, or the messages of a chat if a system has a message."""
    messages = [] if isinstance(prompt, str) else prompt
    if not (isinstance(messages, Sequence) and all("role" in message for message in messages)):
        raise TypeError('`prompt` must be a string, or a list of messages with a "role".')
    if system is None:
        return prompt
    first = {"role": "system", "content": check_text("system", system, empty=False)}
    return [first, *([{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt)]


def tool_results(prompt: Any) -> dict[str, Any]:
    """The messages with a placeholder for each result of a tool, and the results as sources."""
    found: dict[str, str] = {}
    messages = [] if isinstance(prompt, str) else [dict(each) for each in as_chat(prompt, None)]
    for message in messages:
        if message["role"] == "tool" and isinstance(message.get("content"), str):
            name = f"{message.get('name', 'tool')} result {len(found) + 1}"
            found[name], message["content"] = message["content"], f"{{{name}}}"
    return {"prompt": messages, "sources": found} if found else {}


def place_sources(
    prompt: Any, names: Sequence[str], question: str = ""
) -> tuple[str, str, list[str]]:
    """The prompt as text and as JSON with marks in the places of the sources, and whose they are.

    {sources} is the place of all of them; without it, each has its own by its name.
    """
    contents = [prompt] if isinstance(prompt, str) else [m.get("content") for m in prompt]
    whole = "\n".join(text for content in contents for text in _texts(content))
    by_name = "{sources}" not in whole and any(f"{{{name}}}" in whole for name in names)
    keys = list(names) if by_name else ["sources"]
    placeholder = re.compile(f"{{(question|{'|'.join(map(re.escape, keys))})}}")
    order = [key for key in placeholder.findall(whole) if key != "question"]
    if sorted(order) != sorted(keys):
        raise ValueError(
            "`prompt` must contain {sources} once, or each source once by its name in braces; it "
            f"contains {{sources}} {whole.count('{sources}')} times."
        )
    if question and "{question}" not in whole:
        raise ValueError(
            "`prompt` must contain {question}, unless the question is a source; it does not."
        )
    values = {key: _MARK.format(k) for k, key in enumerate(order)} | {"question": question}

    def fill(content: Any) -> Any:  # texts alone; everything else stays as it was
        if isinstance(content, str):
            return placeholder.sub(lambda found: values[found[1]], content)
        if not isinstance(content, Mapping):
            return content and [fill(part) for part in content]
        return {**content, **{k: fill(content[k]) for k in ("content", "text") if k in content}}

    filled = fill(prompt)
    chat = [] if isinstance(filled, str) else filled
    said = [" ".join([f"{m['role']}:", *_texts(m.get("content"))]) for m in chat]
    text = "\n\n".join(said) if chat else filled
    return text, json.dumps(filled, ensure_ascii=False), order


def _texts(content: Any) -> list[str]:
    """The texts in the content of a message; "[image]" stands for an image."""
    parts = [{"text": content}] if isinstance(content, str) else content or ()
    return [part.get("text", f"[{part.get('type')}]") for part in parts]


def similar_groups(texts: Sequence[str]) -> list[int]:
    """For each text the number of the first one of its group.

    It is in the group of the first text that it nearly equals: half of the triples of words of the
    shorter one are in the other.
    """
    known: list[set[tuple[str, ...]]] = []
    found: list[int] = []
    for source in texts:
        words = re.findall(r"\w+", source.lower())
        new = {tuple(words[j : j + 3]) for j in range(max(1, len(words) - 2))}
        near = (len(new & old) >= _NEAR * min(len(new), len(old)) for old in known)
        found.append(next(compress(found, near), len(found)))
        known.append(new)
    return found


def read_prompt(
    question: object, sources: Sources, *, prompt: Any, groups: str | None = None, **about: Any
) -> PromptScene:
    """The prompt that asks a question, with no parts of the answer but the whole.

    `prompt` is the template; `about` are the fields of the scene about the score.
    """
    names, texts, separator = sources
    asked = "" if question is None else question
    asked = check_text("question", asked, empty="{question}" not in str(prompt))
    text, template, order = place_sources(prompt, names, asked)
    if order != ["sources"]:  # each in its own place
        names, texts = order, [texts[names.index(name)] for name in order]
    first = similar_groups(texts) if groups else list(range(len(texts)))
    numbers = sorted(set(first))
    more = [f" and {first.count(k) - 1} like it" if first.count(k) > 1 else "" for k in numbers]
    return PromptScene(
        features=[f"{names[k]}{words}" for k, words in zip(numbers, more, strict=True)],
        sources=texts,
        groups=[numbers.index(k) for k in first],
        around=_MARKS.split(text)[::2],
        separator=separator,
        template=template,
        question=asked,
        answer="",
        spans=[[0, 0]],
        **about,
    )


def _find_part(answer: str, spans: Sequence[Span], target: Any) -> Span:
    """Start and end of a part of the answer, given by its number, its text or such a pair."""
    if isinstance(target, str) and target.isdecimal() and int(target) < len(spans):
        target = int(target)  # as on the command line
    if isinstance(target, int) and 0 <= target < len(spans):
        return spans[target]
    if isinstance(target, int):
        raise ValueError(
            f"`target` must be 0 or the number of one of {len(spans) - 1} sentences; got {target}."
        )
    places = [target]
    if isinstance(target, str) and target.strip():
        places = [match.span() for match in re.finditer(re.escape(target), answer)] or places
    span: Any = places[0]
    pair = isinstance(span, tuple) and [type(k) for k in span] == [int, int]
    if len(places) > 1 or not (pair and 0 <= span[0] < span[1] <= len(answer)):
        raise ValueError(
            "`target` must be the number of a sentence, a part that the answer has once, or its "
            f"start and end; got {target!r:.60}{f', at {places[:5]}' if places[1:] else ''}."
        )
    return span[0], span[1]


_FIELDS = {
    "features": NAMES,
    "sources": list_of(text(), "n", most=1 << 16),
    "groups": list_of(whole(0, 1 << 16), "n", most=1 << 16),
    "around": list_of(text(), "places", most=(1 << 16) + 1),
    **dict.fromkeys(("separator", "template", "question", "answer", "score"), text()),
    "spans": list_of(list_of(whole(0, LONGEST_TEXT), "ends", most=2), "parts", most=_MOST_PARTS),
    "cost": whole(1),
}
_RULES = {
    "groups that are its features": lambda s: {*s.groups} == {*range(s.n_features)},
    "one place, or one for each source": lambda s: len(s.around) in (2, len(s.sources) + 1),
    "parts inside the answer": lambda s: all(a <= b <= len(s.answer) for a, b in s.spans),
    "at least one part, the whole answer": lambda s: s.spans[:1] == [[0, len(s.answer)]],
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
