"""`PromptExplainer`: the answers of a language model, by the sources in its prompt."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from math import isnan
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from eblime._checks import as_generator, check_choice, check_count
from eblime._types import RNGLike
from eblime.domains.masked import MaskedSubject
from eblime.domains.prompt import (
    PromptScene,
    as_chat,
    open_documents,
    open_sources,
    place_sources,
    read_documents,
    read_prompt,
    read_sources,
    tool_results,
)
from eblime.domains.tabular.row import as_mapping
from eblime.engine.cache import open_cache
from eblime.engine.calls import Caller, Calls, ModelError, model_error
from eblime.engine.explain import Source
from eblime.engine.settings import LoopSettings
from eblime.explainers.base import BaseExplainer, ExplainSettings, list_settings, spend
from eblime.models.asynchronous import in_thread
from eblime.models.language import USED, ServerModel, as_language_model
from eblime.models.likelihood import AnswerScore
from eblime.protocols import Kernel
from eblime.results.citations import Citations, cite
from eblime.results.explanation import Explanation
from eblime.scores import Target

if TYPE_CHECKING:
    from typing_extensions import Unpack

_COLUMNS = ("question", "answer", "sources")
_TOKENS = ("prompt_tokens", "completion_tokens", "cut")  # cut is a number of answers
_SERVER = Calls(retry=3, timeout=600.0)  # of requests to a server, unless the user says otherwise


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PromptExplainer(BaseExplainer):
    """Explains the answer of a language model, by the sources in its prompt.

    The model is asked about prompts in which some sources are left out. The importance of a source
    is how much higher the score is with it than without it, on average over all sets of the others.

    Parameters
    ----------
    model
        A language model: the pair (model, tokenizer) of transformers, the address of a server such
        as "http://localhost:8000/v1", or an object with the methods `generate`,
        `token_log_probs` and `token_spans`. Or any function that scores a list of prompts; then
        its scores are explained, and the answer is only shown.
    sources
        Texts, in their order in the prompt; a dictionary or a pandas series from names to texts;
        documents of LangChain or LlamaIndex; the messages of a chat, each with a "role" and a
        "content"; or one text, which `segmentation` cuts. Or the path of a folder, whose .txt and
        .md files are the sources, of a .json or .jsonl file with a list of texts or of objects with
        a "text", or of a file with one text. None takes the results of tools in `prompt`.
    prompt
        The template of the prompt, with {sources} and {question} in it; or the messages of a chat,
        which have them in their texts and are else sent as they are, with roles, images and calls
        of tools. Instead of {sources}, the name of each source in braces may be where it belongs.
    segmentation
        How one text is cut into sources: "sentence", "paragraph" or "turn" (of a chat).
    separator
        Text between two sources in the prompt. The pieces of one text keep their own.
    score
        The score of an answer, for a language model: "mean" is the mean log probability of its
        tokens, "total" their sum, "logit" the logit of its probability. "similarity" asks for a new
        answer and compares it with the first: the mean of token F1 and edit similarity. A function
        (new answer, first answer) -> number, such as a judge, compares them in another way.
    system
        A message of the system before the prompt, which then is a chat.
    samples
        How often each prompt is scored, for answers or scores that vary by chance: a score is the
        mean, and each of them a call.
    groups
        "similar" leaves out sources with nearly the same text together, as one feature.
    levels
        2 takes `sources` as documents, each a list of chunks or a text that `segmentation` cuts.
        Half of the masks choose the documents that count most; these are opened, and the other half
        explains their chunks and all other documents.
    n_masks, design, kernel, method, progress, labels, calls, cache
        See `eblime.explainers.base.BaseExplainer`.

    Notes
    -----
    A mask is a prompt to score. With the kernel "uniform" all sets of sources count the same. The
    functions of a model and `score` may be `async def`. Requests to servers that fail or
    take more than ten minutes are sent again three times, unless `calls` says otherwise.

    Examples
    --------
    >>> import eblime
    >>> notes = ["The tower opened in 1889.", "It is in Paris.", "Paris lies on the Seine."]
    >>> score = lambda prompts: [float("1889" in prompt) for prompt in prompts]
    >>> explainer = eblime.PromptExplainer(score, notes)
    >>> e = explainer.explain("When did it open?", answer="In 1889.")
    >>> print(e.as_list(top=1)[0][0])
    source 1 'The tower opened in 1889.'
    """

    sources: Any = None
    prompt: str | Sequence[Mapping[str, Any]] = "{sources}\n\n{question}"
    segmentation: str = "paragraph"
    separator: str = "\n\n"
    score: str | Callable[[str, str], Any] = "mean"
    _: KW_ONLY
    system: str | None = None
    samples: int = 1
    groups: Literal["similar"] | None = None
    levels: Literal[1, 2] = 1
    n_masks: int | Literal["auto"] = 64
    kernel: str | Kernel | None = "uniform"

    domain = "prompt"
    about = ("prompt", "segmentation", "score", "system", "samples", "groups", "levels")
    max_masks = 2_000  # prompts cost time or money

    def __post_init__(self) -> None:
        check_count("samples", self.samples)
        check_choice("groups", self.groups or "similar", ("similar",))
        check_count("levels", self.levels, maximum=2)
        if self.sources is None:
            self._normalise(**tool_results(self.prompt))
        prompt = as_chat(self.prompt, self.system)
        self._normalise(sources=open_sources(self.sources))
        if self.sources is not None:
            read = self._sources if self.levels == 1 else self._documents
            known = read(self.sources)  # documents have no places of their own
            place_sources(prompt, known[0] if self.levels == 1 else [])
        language = self.model.language if self._is_language else as_language_model(self.model)
        if language is not None:
            model = AnswerScore(language=language, score=self.score)
            model.check()
            usual = _SERVER if isinstance(language, ServerModel) else Calls()
            self._normalise(model=model, labels=["answer"], calls=usual.merge(self.calls))
        elif self.score != "mean":
            raise ValueError("`score` is for a language model; this `model` returns scores itself.")
        self._make_loop()

    def subject(self, x: Any) -> MaskedSubject:
        """Read a question; a language model answers it if it comes without an answer."""
        return self.prepare(x, 1, self.loop)[1]

    @list_settings
    def explain(
        self,
        x: object = None,
        target: Target = None,
        rng: RNGLike = 0,
        *,
        answer: str | None = None,
        **settings: Unpack[ExplainSettings],
    ) -> Explanation:
        """Explain the answer to a question, or a part of it.

        Parameters
        ----------
        x
            The question; None if `prompt` has no {question}. Or a dictionary with the keys
            "question", "answer" and "sources", each of which may be missing.
        target
            What to explain: None is the whole answer, a number k > 0 its sentence k, and a text or
            a pair (start, end) that part of it. If the model is a function, a column of its scores.
        answer
            The answer to explain. None asks the model for its answer to the prompt with all
            sources: one more call, which a cache saves the next time.
        rng, n_masks, until, max_masks, max_seconds, calls, cache, progress
            See `TextExplainer.explain`; `max_masks` is 2,000 by default.
        """
        whole = 0 if target is None and self._is_language else target
        return BaseExplainer.explain(self, self._row(x, answer), whole, rng, **settings)

    @list_settings
    def explain_targets(
        self,
        x: Any = None,
        targets: Any = None,
        rng: RNGLike = 0,
        *,
        answer: str | None = None,
        **settings: Unpack[ExplainSettings],
    ) -> dict[int, Explanation]:
        """Explain several parts of the answer to a question, from one set of model calls.

        Parameters
        ----------
        x, rng, answer, n_masks, until, max_masks, max_seconds, calls, cache, progress
            See `explain`; a stop rule must be reached for every target.
        targets
            Numbers of sentences, with 0 for the whole answer, and parts of the answer as for
            `explain`; None is the whole answer and each of its sentences.
        """
        used: deque[dict[str, int]] = deque()
        USED.set(used)
        x = self._row(x, answer)
        explain: Any = _explain_levels if self.levels == 2 else BaseExplainer.explain_targets
        found: dict[int, Explanation] = explain(self, x, targets, rng, **settings)
        tokens = {name: sum(reply.get(name, 0) for reply in used) for name in _TOKENS}
        more = {"tokens": tokens} if used else {}
        return {k: replace(e, provenance={**e.provenance, **more}) for k, e in found.items()}

    @list_settings
    def cite(
        self,
        x: Any = None,
        rng: RNGLike = 0,
        *,
        answer: str | None = None,
        prob: float = 0.95,
        min_share: float = 0.05,
        **settings: Unpack[ExplainSettings],
    ) -> Citations:
        """The answer to a question, each sentence with the sources that it rests on.

        A sentence rests on a source if the interval of its importance is above zero. All come from
        one set of model calls.

        Parameters
        ----------
        x, rng, answer, n_masks, until, max_masks, max_seconds, calls, cache, progress
            See `explain`; a stop rule must be reached for every sentence.
        prob
            Probability of the intervals.
        min_share
            Sources with a smaller share of the importances above zero are left out.
        """
        if not self._is_language:
            raise ValueError("`cite` needs a language model, which scores each sentence.")
        ask = partial(self.explain_targets, x, None, rng, answer=answer, **settings)
        return cite(ask, prob, min_share)

    async def acite(self, *args: Any, **settings: Any) -> Citations:
        """`cite` in a thread, so that other tasks of the event loop go on meanwhile."""
        return await asyncio.wrap_future(in_thread(lambda: self.cite(*args, **settings)))

    def prepare(
        self, x: Any, targets: Any, settings: LoopSettings
    ) -> tuple[LoopSettings, MaskedSubject, Any]:
        """Read the question and its answer, for which the model may be asked, and cut that."""
        if self.levels == 2:
            raise ValueError("`levels` must be 1, except for `explain`, `explain_targets`, `cite`.")
        scene = self._scene(self._row(x))
        if self._is_language and not scene.answer:
            answer, spent = _generate(self.model, scene, settings.calls)
            scene, settings = scene.with_answer(answer), spend(settings, spent)
        most = settings.calls.max_calls
        if most is not None:  # the design must know how many masks can be asked
            room = most // self.samples - 2  # without the prompts with all sources and with none
            settings = replace(settings, n_masks=max(1, min(settings.masks_for(), room)))
        if self._is_language and targets != 1:  # a run explains whole answers
            scene, targets, labels = scene.with_targets(targets)
            settings = replace(settings, labels=labels)
        varies = self.samples > 1 or getattr(self.model, "generates", False)
        wanted = 3 if targets is None else targets
        return settings, MaskedSubject(scene=scene, exact=not varies), wanted

    def source_of(self, explanation: Explanation, x: Any) -> Source:
        """Where a loaded explanation comes from, with the parts of the answer."""
        found, scene = BaseExplainer.source_of(self, explanation, x), explanation.scene
        return replace(found, subject=replace(cast("MaskedSubject", found.subject), scene=scene))

    def input_again(self, x: Any, explanation: Explanation) -> Any:
        """The question with the answer that was explained."""
        scene: Any = explanation.scene
        return self._row(x, scene.answer or None)

    @property
    def _is_language(self) -> bool:
        return isinstance(self.model, AnswerScore)

    def _row(self, x: object, answer: str | None = None) -> Mapping[str, object]:
        """The question, and what comes with it."""
        row = as_mapping(x)
        row = row if isinstance(row, Mapping) else {"question": x}
        unknown = [str(key) for key in row if key not in _COLUMNS]
        if "question" not in row and unknown:
            raise ValueError(f'A row must have a column "question"; got {", ".join(unknown)}.')
        known = {key: row.get(key) for key in _COLUMNS}
        known |= {} if answer is None else {"answer": answer}
        return {  # a table has NaN where a row has no answer
            key: value
            for key, value in known.items()
            if not (value is None or (isinstance(value, float) and isnan(value)))
        }

    def _documents(self, sources: object) -> Any:
        return read_documents(sources, self.segmentation)

    def _sources(self, sources: object) -> Any:
        return read_sources(sources, segmentation=self.segmentation, separator=self.separator)

    def _scene(self, row: Mapping[str, Any]) -> PromptScene:
        """The prompt and its answer, if there is one."""
        scene = read_prompt(
            row.get("question"),
            self._sources(row.get("sources", self.sources)),
            prompt=as_chat(self.prompt, self.system),
            groups=self.groups,
            score=getattr(self.model, "words", ""),
            cost=self.samples,
        )
        scene = scene.with_answer(row["answer"]) if "answer" in row else scene
        _check_context(getattr(self.model, "language", None), scene)
        return scene


def _generate(model: AnswerScore, scene: PromptScene, calls: Calls) -> tuple[str, int]:
    """The answer to the prompt with all sources, from the cache if it is there, and the calls."""
    if not hasattr(model.language, "generate"):
        raise ValueError("`answer` must be given: the model has no method `generate`.")
    prompt = scene.prompt([True] * scene.n_features)
    key = json.dumps(prompt).encode()
    with open_cache(calls.cache, model) as section_of:
        section = section_of("written answers")
        if section is not None and (known := section.read_text(key)) is not None:
            return known, 0
        try:
            (answer,) = (caller := Caller(model.generate, calls)).answer([prompt], 1)
        except Exception as error:
            raise model_error(1, error) from error
        if not isinstance(answer, str) or not answer.strip():
            raise ModelError(
                "The model's answer to the prompt with all sources is empty; give `answer`."
            )
        if section is not None:
            section.write_text(key, answer)
    return answer, caller.sent


def _check_context(language: object, scene: PromptScene) -> None:
    """Refuse a prompt that is longer than the model can read."""
    count, limit = getattr(language, "count_tokens", None), getattr(language, "context", None)
    if count is None or limit is None:
        return
    tokens = count(scene.text) + (count(scene.answer) if scene.answer else 0)
    if tokens > limit:
        texts = scene.details()["text"]
        longest = max(range(scene.n_features), key=lambda j: len(texts[j]))
        raise ValueError(
            f"The prompt must fit into the {limit:,} tokens that the model can read; with "
            f"the answer it has {tokens:,}. The longest of its {scene.n_features} sources, "
            f"{scene.features[longest]}, has {count(texts[longest]):,}."
        )


def _explain_levels(
    explainer: PromptExplainer, row: Any, targets: Any, rng: RNGLike, **settings: Any
) -> dict[int, Explanation]:
    """Choose documents with half of the masks, and explain their chunks with the other half.

    Nothing but the choice of documents comes from the first half, so that the intervals are those
    of one design.
    """
    documents = explainer._documents(row.get("sources", explainer.sources))
    closed = open_documents(documents, (), explainer.separator)
    plain = replace(explainer, sources=closed, levels=1)
    plain._normalise(loop=replace(plain.loop, crowded=True))  # as is usual here
    loop = explainer._loop_for(cast("ExplainSettings", settings))
    half, most = max(1, loop.masks_for() // 2), loop.calls.max_calls

    def explain(row: Any, rng: RNGLike, limit: Any, **settings: Any) -> dict[int, Explanation]:
        settings |= {"n_masks": half, "calls": replace(loop.calls, max_calls=limit)}
        return BaseExplainer.explain_targets(plain, row, targets, rng, **settings)

    row = {name: value for name, value in row.items() if name != "sources"}
    first = explain(row, rng, most and max(1, most // 2), progress=settings.get("progress"))
    one = first[min(first)]
    spent, scene = one.provenance["model_calls"], cast("PromptScene", one.scene)
    sizes = np.max([abs(e.posterior.mean) for e in first.values()], axis=0)[list(scene.groups)]
    order = [name for _, name in sorted(zip(-sizes, documents, strict=True))]
    order = [name for name in order if len(documents[name]) > 1]
    room = np.cumsum([len(documents[name]) for name in order]) <= half / 2
    opened = order[: max(1, room.sum())]
    row |= {"sources": open_documents(documents, opened, explainer.separator)}
    row |= {"answer": scene.answer} if scene.answer else {}
    found = explain(row, as_generator(rng).spawn(1)[0], most and max(1, most - spent), **settings)
    for k, e in found.items():
        made, calls = e.provenance, spent + e.provenance["model_calls"]
        changed = {"model_calls": calls, "seed": one.provenance["seed"], "opened": opened}
        changed |= {"input": {**made["input"], "levels": 2}}
        found[k] = replace(e, provenance={**made, **changed})
    return found
