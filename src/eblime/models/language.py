"""Language models: they answer prompts, and say how probable a given answer is.

`TransformersModel` is a network of transformers in this process, `ServerModel` one behind an
OpenAI-compatible address. Both use greedy decoding unless a temperature is given.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import re
import threading
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable
from urllib.error import HTTPError
from urllib.parse import urlsplit

import numpy as np

from eblime._checks import check_count, check_number
from eblime._repr import short_repr
from eblime._types import FloatArray
from eblime.models.conversion import descends
from eblime.models.torch import evaluation

__all__ = ["LanguageModel", "ServerError", "ServerModel", "TransformersModel", "as_language_model"]

Spans = list[tuple[int, int]]

_TOKENS = 8192  # in one forward pass, with the padding
_TOKENS_CPU = 600  # the padding of larger batches costs a CPU more than they save
_LOGITS = 1 << 26  # in one forward pass
_LONGEST_ERROR = 300  # characters of a server's message


@runtime_checkable
class LanguageModel(Protocol):
    """What a language model must provide.

    It may also have `count_tokens(text)`, `context`, the most tokens of a prompt with its answer,
    and `batch_sizes`, the numbers of prompts per call worth trying.
    """

    def generate(self, prompts: Sequence[str]) -> list[str]:
        """The model's answers."""

    def token_log_probs(self, prompts: Sequence[str], answer: str) -> list[FloatArray]:
        """The log probability of each token of the answer, given each prompt."""

    def token_spans(self, answer: str) -> Spans:
        """Where these tokens begin and end in the answer."""


def as_language_model(obj: Any, /, *, model: str | None = None, **settings: Any) -> LanguageModel:
    """Wrap a language model.

    Parameters
    ----------
    obj
        The pair (model, tokenizer) of transformers, the folder of such a model, the address of an
        OpenAI-compatible server, which ends in /v1, or an object with the methods of
        `LanguageModel`.
    model
        Name of the model on the server; None is the only one there. It may also follow the address:
        "http://localhost:8000/v1#qwen".
    **settings
        Other settings of `TransformersModel` or `ServerModel`.

    Examples
    --------
    >>> as_language_model("http://localhost:8000/v1", model="qwen")
    ServerModel(url='http://localhost:8000/v1', model='qwen')
    """
    if isinstance(obj, str) and obj.startswith(("http://", "https://")):
        url, _, name = obj.partition("#")
        if not urlsplit(url).path.rstrip("/").endswith("/v1"):
            host = urlsplit(url).hostname
            raise ValueError(f"The address of a server must end in /v1; that of {host} does not.")
        return ServerModel(url=url, model=model or name or None, **settings)
    if model is not None:
        raise TypeError("`model` is for servers only: the name of one of their models.")
    if isinstance(obj, tuple) and len(obj) == 2:
        return TransformersModel(*obj, **settings)
    if isinstance(obj, (str, os.PathLike)):
        return TransformersModel.load(obj, **settings)
    able = any(hasattr(obj, name) for name in ("generate", "token_log_probs"))
    if able and not descends(obj, "torch", "Module") and not settings:
        return obj  # type: ignore[no-any-return]
    raise TypeError(
        "A language model must be the pair (model, tokenizer) of transformers, its folder, the "
        "address of a server such as 'http://localhost:8000/v1', or an object with the methods "
        f"`generate`, `token_log_probs` and `token_spans`; got {type(obj).__name__}."
    )


def _check_generation(max_new_tokens: int, temperature: float) -> None:
    """Refuse settings of the generation that cannot work."""
    check_count("max_new_tokens", max_new_tokens)
    check_number("temperature", temperature, zero=True)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TransformersModel:
    """A causal language model of transformers with its tokenizer.

    The network runs on its own device and in its own precision, in eval mode and without gradients.
    Prompts are batched with padding on the left, and an answer is scored by one forward pass.

    Parameters
    ----------
    model
        Such as `AutoModelForCausalLM.from_pretrained(...)`.
    tokenizer
        A fast tokenizer, such as `AutoTokenizer.from_pretrained(...)`.
    chat
        Whether a prompt is the message of a user, put into the tokenizer's chat template. None does
        so if the tokenizer has a template; False gives the model the prompt as it is.
    max_new_tokens
        Longest answer to generate.
    temperature
        0 always takes the most probable token; above it, tokens are drawn.

    Examples
    --------
    >>> TransformersModel.load("no/such/folder")
    Traceback (most recent call last):
        ...
    ValueError: A language model of transformers must be a folder; there is none at no/such/folder.
    """

    model: Any
    tokenizer: Any
    chat: bool | None = field(default=None, kw_only=True)
    max_new_tokens: int = field(default=256, kw_only=True)
    temperature: float = field(default=0.0, kw_only=True)

    batch_sizes: ClassVar[Sequence[int]] = (4, 16, 64)

    def __post_init__(self) -> None:
        """Refuse settings, networks and tokenizers that cannot work."""
        _check_generation(self.max_new_tokens, self.temperature)
        config = getattr(self.model, "config", None)
        if not descends(self.model, "torch", "Module") or config is None:
            kind = type(self.model).__name__
            raise TypeError(f"`model` must be a causal language model of transformers; got {kind}.")
        if getattr(config, "is_encoder_decoder", False):
            raise TypeError(f"`model` must be a decoder alone; {type(self.model).__name__} is not.")
        if not getattr(self.tokenizer, "is_fast", False):
            kind = type(self.tokenizer).__name__
            raise TypeError(f"`tokenizer` must be a fast tokenizer of transformers; got {kind}.")
        if self.chat and not getattr(self.tokenizer, "chat_template", None):
            raise ValueError("`chat` needs a tokenizer with a chat template; this one has none.")

    def __repr__(self) -> str:
        """The names of the classes, not the whole network."""
        names = ", ".join(type(part).__name__ for part in (self.model, self.tokenizer))
        return f"TransformersModel({names})"

    @classmethod
    def load(
        cls, folder: str | os.PathLike[str], *, gguf_file: str | None = None, **settings: Any
    ) -> TransformersModel:
        """Read a model and its tokenizer from a folder; nothing is downloaded."""
        if not Path(folder).is_dir():
            raise ValueError(
                f"A language model of transformers must be a folder; there is none at {folder}."
            )
        try:
            from transformers import AutoModelForCausalLM, AutoTokenizer
        except ImportError as error:
            message = "transformers is not installed: pip install 'eblime[llm]'."
            raise ImportError(message) from error
        options = {"local_files_only": True, **({"gguf_file": gguf_file} if gguf_file else {})}
        model = AutoModelForCausalLM.from_pretrained(folder, **options)
        return cls(model, AutoTokenizer.from_pretrained(folder, **options), **settings)

    @property
    def context(self) -> int | None:
        """The most tokens that a prompt and its answer may have together."""
        config = self.model.config
        known = [
            getattr(config, "max_position_embeddings", None),
            getattr(self.tokenizer, "model_max_length", None),  # 1e30 if it is not known
        ]
        return min((int(n) for n in known if n is not None and 0 < n < 1e9), default=None)

    def count_tokens(self, text: str) -> int:
        """Number of tokens of a text, without those of the chat template."""
        return len(self._encode(text))

    def token_spans(self, answer: str) -> Spans:
        """Where the tokens of an answer begin and end in it."""
        found = self.tokenizer(answer, add_special_tokens=False, return_offsets_mapping=True)
        return [(int(start), int(end)) for start, end in found["offset_mapping"]]

    def token_log_probs(self, prompts: Sequence[str], answer: str) -> list[FloatArray]:
        """The log probability of each token of the answer, given each prompt."""
        wanted = self._encode(answer)
        if not wanted:
            raise ValueError("`answer` must not be empty.")
        rows = [self._prompt(prompt) for prompt in prompts]
        self._check_length(max(map(len, rows), default=0), len(wanted))
        found: list[Any] = [None] * len(rows)
        with evaluation(self.model) as device:
            for batch in self._batches(rows, len(wanted)):
                scored = self._score([rows[k] + wanted[:-1] for k in batch], wanted, device)
                for k, values in zip(batch, scored, strict=True):
                    found[k] = values
        return found

    def generate(self, prompts: Sequence[str]) -> list[str]:
        """The model's answers, of at most `max_new_tokens` tokens."""
        rows = [self._prompt(prompt) for prompt in prompts]
        self._check_length(max(map(len, rows), default=0), 1)
        # given one by one, they replace the model's own; those for draws would be warned about
        greedy = {"do_sample": False, "temperature": 1.0, "top_p": 1.0, "top_k": 50}
        draws = {"do_sample": True, "temperature": self.temperature}
        settings = {**(draws if self.temperature else greedy), "num_beams": 1}
        settings["pad_token_id"], limit = self._padding, self.context or math.inf
        found = [""] * len(rows)
        with evaluation(self.model) as device:
            for batch in self._batches(rows, self.max_new_tokens, logits=1):
                tokens, mask = self._pad([rows[k] for k in batch], device)
                settings["max_new_tokens"] = int(min(self.max_new_tokens, limit - tokens.shape[1]))
                new = self.model.generate(tokens, attention_mask=mask, **settings)
                for k, ids in zip(batch, new[:, tokens.shape[1] :].tolist(), strict=True):
                    found[k] = self.tokenizer.decode(ids, skip_special_tokens=True)
        return found

    def _encode(self, text: str, *, special: bool = False) -> list[int]:
        """The tokens of a text."""
        return [int(k) for k in self.tokenizer(text, add_special_tokens=special)["input_ids"]]

    def _prompt(self, prompt: str) -> list[int]:
        """The tokens of a prompt, in the chat template if there is one."""
        tokenizer = self.tokenizer
        if self.chat or (self.chat is None and getattr(tokenizer, "chat_template", None)):
            message = [{"role": "user", "content": str(prompt)}]
            text = tokenizer.apply_chat_template(
                message, tokenize=False, add_generation_prompt=True
            )
            return self._encode(text)
        ids = self._encode(prompt, special=True)
        if ids and ids[-1] == tokenizer.eos_token_id and not prompt.endswith(tokenizer.eos_token):
            ids.pop()  # the answer goes on from here
        return ids or [self._padding if tokenizer.bos_token_id is None else tokenizer.bos_token_id]

    @property
    def _padding(self) -> int:
        """A token for the places that the model does not look at."""
        known = (self.tokenizer.pad_token_id, self.tokenizer.eos_token_id, 0)
        return next(int(token) for token in known if token is not None)

    def _check_length(self, prompt: int, answer: int) -> None:
        """Refuse prompts that the model cannot read together with the answer."""
        limit = self.context
        if limit is not None and prompt + answer > limit:
            raise ValueError(
                f"A prompt and its answer must fit into the {limit:,} tokens that the model can "
                f"read; they have {prompt:,} and {answer:,}."
            )

    def _batches(
        self, rows: Sequence[Sequence[int]], n: int, logits: int | None = None
    ) -> Iterator[list[int]]:
        """Numbers of prompts to give to the model at once, of similar length.

        `n` tokens are added to each, and `logits` of them have logits at once; None is all.
        """
        order = sorted(range(len(rows)), key=lambda k: -len(rows[k]))
        vocabulary = getattr(self.model.config, "vocab_size", 1)
        tokens = _TOKENS_CPU if self.model.device.type == "cpu" else _TOKENS
        most = max(1, _LOGITS // (vocabulary * (logits or n)))
        while order:
            size = min(most, max(1, tokens // (len(rows[order[0]]) + n)))
            yield order[:size]
            order = order[size:]

    def _pad(self, rows: Sequence[Sequence[int]], device: Any) -> tuple[Any, Any]:
        """Tokens and attention mask, (n, longest), padded on the left."""
        import torch

        tokens = np.full((len(rows), max(map(len, rows))), self._padding)
        mask = np.zeros_like(tokens)
        for k, row in enumerate(rows):
            tokens[k, tokens.shape[1] - len(row) :] = row
            mask[k, tokens.shape[1] - len(row) :] = 1
        return torch.from_numpy(tokens).to(device), torch.from_numpy(mask).to(device)

    def _score(self, rows: Sequence[Sequence[int]], wanted: list[int], device: Any) -> FloatArray:
        """Log probabilities of the wanted tokens, the first of which follows each row, (n, m).

        The last of the wanted tokens is not in the rows: nothing follows it.
        """
        import torch

        (tokens, mask), m = self._pad(rows, device), len(wanted)
        known = inspect.signature(self.model.forward).parameters
        options: dict[str, Any] = {"use_cache": False} if "use_cache" in known else {}
        if "position_ids" in known:  # the padding has no positions
            options["position_ids"] = (mask.cumsum(dim=1) - 1).clamp(min=0)
        if "logits_to_keep" in known:
            options["logits_to_keep"] = m
        logits = self.model(tokens, attention_mask=mask, **options).logits[:, -m:].float()
        chosen = logits[:, torch.arange(m, device=device), torch.tensor(wanted, device=device)]
        values = (chosen - logits.logsumexp(dim=-1)).cpu().numpy()
        return np.asarray(values, dtype=np.float64)


class ServerError(RuntimeError):
    """A server refused, failed, or returned something else than was asked for.

    Attributes
    ----------
    retry_after
        Seconds to wait before another try; infinite if another try would fail too.
    """

    def __init__(self, message: str, *, retry_after: float = 0.0, status: int = 0) -> None:
        super().__init__(message)
        self.retry_after, self.status = retry_after, status


class _Memory:
    """What was learned about a server; a copy in another process learns it again."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.way = self.model = ""
        self.spans: dict[str, Spans] = {}

    def __reduce__(self) -> Any:
        return (_Memory, ())


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Redirects are errors: the key is for the server that the user named."""

    def redirect_request(self, *args: Any) -> None:
        return None


# What a server may support, best first: the log probabilities of a chat's prompt (vLLM), those of
# a plain prompt, as OpenAI's `echo` or as vLLM's `prompt_logprobs`; then text alone.
_WAYS = ("chat prompt_logprobs", "echo", "prompt_logprobs", "chat", "text")
_SCORING = _WAYS[:3]
_UNSUPPORTED = {400, 404, 405, 415, 422, 501}
_AGAIN = {408, 409, 425, 429}  # and all from 500


@dataclass(frozen=True, slots=True, repr=False)
class ServerModel:
    """A language model behind an OpenAI-compatible address.

    Each prompt is one request, so that `Calls(concurrency=8, retry=5, timeout=60)` is about single
    prompts; `Retry-After` is respected. What the server supports is found by one short request for
    each way until one works, and remembered:

    1. a chat with `prompt_logprobs`, as vLLM has it: a prompt is the message of a user;
    2. `/completions` with `echo` and `logprobs`, or with `prompt_logprobs`: the prompt is sent as
       it is, so that a chat template, if the model needs one, belongs into the prompt;
    3. text alone, of a chat or of `/completions`: answers can be compared (`score="similarity"`).

    The key is read from the environment for each request and kept nowhere.

    Parameters
    ----------
    url
        Such as "http://localhost:8000/v1".
    model
        Name of the model on the server; None is the only one there.
    key_name
        Name of the environment variable with the key, if it is set.
    max_new_tokens, temperature
        As for `TransformersModel`.
    timeout
        Seconds without an answer after which the connection is closed.
    options
        Other fields of each request, such as {"seed": 1}; None leaves a field out.

    Examples
    --------
    >>> ServerModel("http://localhost:8000/v1", model="qwen", temperature=0.7)
    ServerModel(url='http://localhost:8000/v1', model='qwen', temperature=0.7)
    """

    url: str
    model: str | None = None
    key_name: str = field(default="OPENAI_API_KEY", kw_only=True)
    max_new_tokens: int = field(default=256, kw_only=True)
    temperature: float = field(default=0.0, kw_only=True)
    timeout: float = field(default=600.0, kw_only=True)
    options: Mapping[str, Any] | None = field(default=None, kw_only=True)
    _memory: _Memory = field(default_factory=_Memory, init=False, compare=False)

    batch_sizes: ClassVar[Sequence[int]] = (1,)

    def __post_init__(self) -> None:
        """Refuse settings that cannot work; no message has a key in it."""
        _check_generation(self.max_new_tokens, self.temperature)
        check_number("timeout", self.timeout)
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("`url` must be the address of a server: 'http://localhost:8000/v1'.")
        if parts.username or parts.password or parts.query:
            raise ValueError(
                "`url` must not have a password or a key in it: set an environment variable, and "
                "give its name as `key_name`."
            )
        if not re.fullmatch(r"[A-Za-z_]\w*", self.key_name) or (
            self.key_name != "OPENAI_API_KEY" and self.key_name not in os.environ
        ):
            raise ValueError("`key_name` must be the name of an environment variable that is set.")

    def __repr__(self) -> str:
        """The settings that were changed; never the key."""
        return short_repr(self)

    def generate(self, prompts: Sequence[str]) -> list[str]:
        """The model's answers, of at most `max_new_tokens` tokens, one request each."""
        way = self._find_way()
        return [self._text(way, str(prompt), self.max_new_tokens) for prompt in prompts]

    def token_log_probs(self, prompts: Sequence[str], answer: str) -> list[FloatArray]:
        """The log probability of each token of the answer, given each prompt."""
        if not answer.strip():
            raise ValueError("`answer` must not be empty.")
        way = self._find_way()
        if way not in _SCORING:
            raise ServerError(
                f"The server at {self.url} returns texts, but no log probabilities of a given "
                'answer: use score="similarity", or a server with `echo` or `prompt_logprobs`, '
                "such as vLLM.",
                retry_after=math.inf,
            )
        found = []
        for prompt in prompts:
            spans, values = self._score(way, str(prompt), answer)
            if self._memory.spans.setdefault(answer, spans) != spans:
                raise ServerError(
                    "The server cuts the answer into other tokens if the prompt before it is "
                    "another one: end the prompt with a line break.",
                    retry_after=math.inf,
                )
            found.append(values)
        return found

    def token_spans(self, answer: str) -> Spans:
        """Where the tokens of an answer begin and end in it; a request if it was not scored yet."""
        if answer not in self._memory.spans:
            self.token_log_probs(["."], answer)
        return self._memory.spans[answer]

    def _find_way(self) -> str:
        """What the server supports, found by the first call; other threads wait for it."""
        memory = self._memory
        with memory.lock:
            if not memory.model:
                memory.model = self.model or self._only_model()
            for way in () if memory.way else _WAYS:
                try:
                    if way in _SCORING:
                        self._score(way, "Say yes.\n", "yes")
                    else:
                        self._text(way, "Say yes.", 1, empty=True)
                except ServerError as error:
                    if error.status not in _UNSUPPORTED or way == _WAYS[-1]:
                        raise
                else:
                    memory.way = way
                    break
            return memory.way

    def _only_model(self) -> str:
        """The name of the only model on the server."""
        try:
            names = [str(entry["id"]) for entry in self._ask("/models")["data"]]
        except (KeyError, TypeError):
            names = []
        if len(names) != 1:
            known = ", ".join(names[:10]) or "none"
            raise ServerError(
                f"The model must be one of those of the server: {known}. Add its name to the "
                f"address: {self.url}#name.",
                retry_after=math.inf,
            )
        return names[0]

    def _text(self, way: str, prompt: str, most: int, *, empty: bool = False) -> str:
        """The model's answer to one prompt."""
        body: dict[str, Any] = {"max_tokens": most, "temperature": self.temperature}
        if way.startswith("chat"):
            body["messages"] = [{"role": "user", "content": prompt}]
            choice = self._choice(self._ask("/chat/completions", body))
            text = (choice.get("message") or {}).get("content")
        else:
            choice = self._choice(self._ask("/completions", {**body, "prompt": prompt}))
            text = choice.get("text")
        if not isinstance(text, str) and not empty:
            reason = choice.get("finish_reason")
            raise ServerError(f"The server at {self.url} returned no text (reason: {reason}).")
        return str(text)

    def _score(self, way: str, prompt: str, answer: str) -> tuple[Spans, FloatArray]:
        """The tokens of an answer and their log probabilities, given one prompt."""
        body: dict[str, Any] = {"max_tokens": 1, "temperature": 0.0}
        if way.startswith("chat"):
            body["messages"] = [
                {"role": "user", "content": prompt},
                {"role": "assistant", "content": answer},
            ]
            body |= {"add_generation_prompt": False, "continue_final_message": True}
            path = "/chat/completions"
        else:
            body["prompt"], path = prompt + answer, "/completions"
        body |= {"echo": True, "logprobs": 1} if way == "echo" else {"prompt_logprobs": 0}
        reply = self._ask(path, body)
        try:
            for tokens, values in _scored_tokens(reply, self._choice(reply)):
                first, spans = _match(tokens, answer)
                if spans:
                    return spans, np.array([float(v) for v in values[first:]], dtype=np.float64)
        except (AttributeError, KeyError, TypeError, ValueError, StopIteration):
            pass  # not of this form
        raise ServerError(
            f"The server at {self.url} returned no log probabilities that belong to the tokens of "
            "the answer.",
            status=501,
        )

    def _choice(self, reply: Any) -> dict[str, Any]:
        """The only choice in a reply."""
        choices = reply.get("choices") if isinstance(reply, dict) else None
        if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
            number = len(choices) if isinstance(choices, list) else "no"
            raise ServerError(
                f"The server at {self.url} must return one choice; it returned {number}."
            )
        return choices[0]

    def _ask(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send one request, and return what the reply has."""
        failure: ServerError
        try:
            with _OPENER.open(self._request(path, body), timeout=self.timeout) as reply:
                raw = reply.read()
            return json.loads(raw)
        except HTTPError as error:
            failure = self._refusal(error)
        except ValueError:
            text = self._clean(_plain(raw[:1000].decode(errors="replace")))
            failure = ServerError(
                f"The server at {self.url} must return JSON; it returned {text[:60]!r}."
            )
        except (OSError, HTTPException) as error:  # timeouts and cut connections, too
            reason = getattr(error, "reason", error)
            failure = ServerError(
                f"The server at {self.url} did not answer: "
                f"{self._clean(str(reason) or type(reason).__name__)}."
            )
        raise failure  # outside of the handler: no frame that knows the key belongs to it

    def _request(self, path: str, body: Mapping[str, Any] | None) -> urllib.request.Request:
        """A request; with the key, if there is one."""
        headers = {"Content-Type": "application/json", "User-Agent": "eblime"}
        if os.environ.get(self.key_name):
            headers["Authorization"] = f"Bearer {os.environ[self.key_name]}"
        data = None
        if body is not None:
            fields = {"model": self._memory.model, **body, **(self.options or {})}
            fields = {name: value for name, value in fields.items() if value is not None}
            data = json.dumps(fields).encode()
        return urllib.request.Request(self.url.rstrip("/") + path, data, headers)

    def _refusal(self, error: HTTPError) -> ServerError:
        """The error of a reply with a status that is not 200."""
        status, text, code = error.code, "", None
        try:
            with error:
                text = error.read(1 << 16).decode(errors="replace")
            detail = json.loads(text)
            detail = detail.get("error", detail)
            code = detail.get("code") if isinstance(detail, dict) else None
            text = str(detail.get("message", detail) if isinstance(detail, dict) else detail)
        except (OSError, HTTPException, ValueError, AttributeError):  # cut, or a page of HTML
            text = _plain(text)
        wait = _seconds(error.headers.get("Retry-After"))
        message = f"The server at {self.url} refused with status {status}"
        if status in (401, 403):
            known = "the key in" if os.environ.get(self.key_name) else "no key is in"
            message += f" ({known} the environment variable {self.key_name})"
        if wait:
            message += f" and asks to wait {wait:g} s"
        again = (status in _AGAIN or status >= 500) and code != "insufficient_quota"
        return ServerError(
            f"{message}: {self._clean(text)[:_LONGEST_ERROR] or error.reason}".rstrip(". ") + ".",
            retry_after=wait if again else math.inf,
            status=status,
        )

    def _clean(self, text: str) -> str:
        """A text without the key."""
        key = os.environ.get(self.key_name)
        return text.replace(key, "***") if key else text


_OPENER = urllib.request.build_opener(_NoRedirect)


def _plain(page: str) -> str:
    """The text of a page of HTML, on one line."""
    return " ".join(re.sub(r"<(style|script).*?</\1>|<[^>]*>", " ", page, flags=re.S).split())


def _seconds(header: str | None) -> float:
    """The seconds of a `Retry-After`, which has seconds or a date; 0 if it has neither."""
    if not header:
        return 0.0
    try:
        seconds = float(header)
    except ValueError:
        try:
            there = parsedate_to_datetime(header)
        except ValueError:
            return 0.0
        seconds = (there - datetime.now(there.tzinfo or timezone.utc)).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0


def _scored_tokens(reply: Any, choice: Mapping[str, Any]) -> Iterator[tuple[list[str], list[Any]]]:
    """Texts and log probabilities of the tokens of the prompt, as a reply has them.

    An echo also has the token that was generated, in one of two ways of counting.
    """
    entries = reply.get("prompt_logprobs") or choice.get("prompt_logprobs")
    if entries:
        found = [next(iter(entry.values())) if entry else {} for entry in entries]
        yield [e.get("decoded_token") or "" for e in found], [e.get("logprob") for e in found]
        return
    echo, usage = choice["logprobs"], reply.get("usage") or {}
    tokens, values = echo["tokens"], echo["token_logprobs"]
    if len(tokens) != len(values):
        raise ValueError("wrong lengths")
    for n in (usage.get("prompt_tokens"), len(tokens) - usage.get("completion_tokens", 1)):
        if n and n <= len(tokens):
            yield tokens[:n], values[:n]


def _match(tokens: Sequence[str], answer: str) -> tuple[int, Spans]:
    """The tokens at the end that are the answer: the first of them, and where each is in it.

    White space does not count: servers differ in where they show it. No spans if there is no match.
    """
    wanted, first, text = "".join(answer.split()), len(tokens), ""
    while first and len(text) < len(wanted):
        first -= 1
        text = "".join(tokens[first].split()) + text
    if text != wanted:
        return first, []
    spans, end = [], 0
    for token in tokens[first:]:
        piece = token.strip()
        start = max(end, answer.find(piece, end)) if piece else end
        end = start + len(piece)
        spans.append((start, end))
    return first, spans
