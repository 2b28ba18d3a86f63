"""Language models: they answer prompts, and say how probable a given answer is.

`TransformersModel` is a network of transformers in this process, `ServerModel` one behind an
OpenAI-compatible address. Both use greedy decoding unless a temperature is given.
"""

from __future__ import annotations

import base64
import inspect
import ipaddress
import json
import math
import os
import re
import threading
import urllib.request
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit

import numpy as np

from eblime._checks import HUGE, check_count, check_number
from eblime._lazy import import_extra
from eblime._repr import short_repr
from eblime._text import printable
from eblime._types import FloatArray
from eblime.models.conversion import descends
from eblime.models.likelihood import ROUNDING
from eblime.models.torch import evaluation

if TYPE_CHECKING:
    import torch

Spans = list[tuple[int, int]]
Tokens = Sequence[Sequence[int]]  # of each prompt

_TOKENS = 8192  # in one forward pass, with the padding
_TOKENS_CPU = 600  # the padding of larger batches costs a CPU more than they save
_LOGITS = 1 << 26  # in one forward pass
_LONGEST_ERROR = 300  # characters of a server's message
_LONGEST_REPLY = 8_000_000  # bytes
_LONGEST_WAIT = 600.0  # seconds for a part of a reply; `Calls(timeout=)` limits the whole of it
_SHORTEST_SECRET = 8  # characters; "EMPTY" and the like are no secrets, and occur in answers
_NOWHERE: deque[dict[str, int]] = deque(maxlen=0)
USED = ContextVar("USED", default=_NOWHERE)  # what servers say of the tokens of each request


def as_language_model(obj: object) -> Any:
    """Wrap a language model: see `PromptExplainer` for what it may be. None if it scores prompts.

    Examples
    --------
    >>> as_language_model("http://localhost:8000/v1#qwen")
    ServerModel(url='http://localhost:8000/v1', model='qwen')
    """
    if isinstance(obj, str) and obj.startswith(("http://", "https://")):
        url, _, name = obj.partition("#")
        if not urlsplit(url).path.rstrip("/").endswith("/v1"):
            host = urlsplit(url).hostname
            raise ValueError(f"The address of a server must end in /v1; that of {host} does not.")
        return ServerModel(url, name or None)
    if isinstance(obj, tuple) and len(obj) == 2:
        return TransformersModel(*obj)
    if isinstance(obj, (str, os.PathLike)):
        return TransformersModel.load(obj)
    able = any(hasattr(obj, name) for name in ("generate", "token_log_probs"))
    if able and not descends(obj, "torch", "Module"):
        return obj
    if not able and not hasattr(obj, "base_url"):  # as a client of a server has
        return None
    raise TypeError(
        "A language model must be the pair (model, tokenizer) of transformers, its folder, the "
        "address of a server such as 'http://localhost:8000/v1', or an object with the methods "
        f"`generate`, `token_log_probs` and `token_spans`; got {type(obj).__name__}."
    )


def _check_generation(model: TransformersModel | ServerModel) -> None:
    check_count("max_new_tokens", model.max_new_tokens)
    check_number("temperature", model.temperature, zero=True)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TransformersModel:
    """A causal language model of transformers with its tokenizer.

    The network runs on its own device and in its own precision, in eval mode and without gradients.
    Prompts are batched with padding on the left, and an answer is scored by one forward pass.

    `chat` says whether a prompt that is a text becomes the message of a user, in the tokenizer's
    chat template; None does so if there is one. A `temperature` of 0 always takes the most probable
    token; above it, tokens are drawn. `max_new_tokens` limits an answer.

    Examples
    --------
    >>> from eblime.models.language import TransformersModel
    >>> TransformersModel.load("no/such/folder")
    Traceback (most recent call last):
        ...
    ValueError: There is no folder no/such/folder; a server needs its http address.
    """

    model: Any
    tokenizer: Any
    chat: bool | None = field(default=None, kw_only=True)
    max_new_tokens: int = field(default=256, kw_only=True)
    temperature: float = field(default=0.0, kw_only=True)

    batch_sizes: ClassVar[Sequence[int]] = (4, 16, 64)

    def __post_init__(self) -> None:
        _check_generation(self)
        kind, config = type(self.model).__name__, getattr(self.model, "config", None)
        seq2seq = getattr(config, "is_encoder_decoder", config is None)
        if seq2seq or not descends(self.model, "torch", "Module"):
            raise TypeError(f"`model` must be a causal language model, a decoder; got {kind}.")
        if not getattr(self.tokenizer, "is_fast", False):
            kind = type(self.tokenizer).__name__
            raise TypeError(f"`tokenizer` must be a fast tokenizer of transformers; got {kind}.")
        if self.chat and not getattr(self.tokenizer, "chat_template", None):
            raise ValueError("`chat` needs a tokenizer with a chat template; this one has none.")

    def __repr__(self) -> str:
        names = ", ".join(type(part).__name__ for part in (self.model, self.tokenizer))
        return f"TransformersModel({names})"

    @classmethod
    def load(cls, folder: str | os.PathLike[str], **settings: Any) -> TransformersModel:
        """Read a model and its tokenizer from a folder; nothing is downloaded."""
        if not Path(folder).is_dir():
            raise ValueError(f"There is no folder {folder}; a server needs its http address.")
        transformers = import_extra("transformers", "llm")
        kinds = transformers.AutoModelForCausalLM, transformers.AutoTokenizer
        parts = (kind.from_pretrained(folder, local_files_only=True) for kind in kinds)
        return cls(*parts, **settings)

    @property
    def context(self) -> int | None:
        """The most tokens that a prompt and its answer may have together."""
        most = getattr(self.model.config, "max_position_embeddings", None)
        known = most, getattr(self.tokenizer, "model_max_length", None)  # 1e30 if it is not known
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
        found: list[FloatArray] = [np.empty(0)] * len(prompts)
        with evaluation(self.model) as device:
            for places, rows in self._batches(prompts, len(wanted)):
                scored = self._score([row + wanted[:-1] for row in rows], wanted, device)
                for k, values in zip(places, scored, strict=True):
                    found[k] = values
        return found

    def generate(self, prompts: Sequence[str]) -> list[str]:
        """The model's answers, of at most `max_new_tokens` tokens."""
        # given one by one, they replace the model's own; those for draws would be warned about
        greedy = {"do_sample": False, "temperature": 1.0, "top_p": 1.0, "top_k": 50}
        draws = {"do_sample": True, "temperature": self.temperature}
        settings = {**(draws if self.temperature else greedy), "num_beams": 1}
        settings["pad_token_id"], limit = self._padding, self.context or math.inf
        found = [""] * len(prompts)
        with evaluation(self.model) as device:
            for places, rows in self._batches(prompts, self.max_new_tokens, logits=1):
                tokens, mask = self._pad(rows, device)
                settings["max_new_tokens"] = int(min(self.max_new_tokens, limit - tokens.shape[1]))
                new = self.model.generate(tokens, attention_mask=mask, **settings)
                for k, ids in zip(places, new[:, tokens.shape[1] :].tolist(), strict=True):
                    found[k] = self.tokenizer.decode(ids, skip_special_tokens=True)
        return found

    def _encode(self, text: str, *, special: bool = False) -> list[int]:
        return [int(k) for k in self.tokenizer(text, add_special_tokens=special)["input_ids"]]

    def _prompt(self, prompt: Any) -> list[int]:
        """The tokens of a prompt, in the chat template if there is one."""
        tokenizer, options = self.tokenizer, {"tokenize": False, "add_generation_prompt": True}
        usual = self.chat is not False and getattr(tokenizer, "chat_template", None)
        if usual or not isinstance(prompt, str):
            return self._encode(tokenizer.apply_chat_template(_messages(prompt), **options))
        ids = self._encode(prompt, special=True)
        if ids and ids[-1] == tokenizer.eos_token_id and not prompt.endswith(tokenizer.eos_token):
            ids.pop()  # the answer goes on from here
        return ids or [self._padding if tokenizer.bos_token_id is None else tokenizer.bos_token_id]

    @property
    def _padding(self) -> int:
        """A token for the places that the model does not look at."""
        known = (self.tokenizer.pad_token_id, self.tokenizer.eos_token_id, 0)
        return next(int(token) for token in known if token is not None)

    def _batches(
        self, prompts: Sequence[str], n: int, logits: int | None = None
    ) -> Iterator[tuple[list[int], list[list[int]]]]:
        """Prompts of similar length to give to the model at once: their places and their tokens.

        `n` tokens are added to each, and `logits` of them have logits at once; None is all.
        """
        rows = [self._prompt(prompt) for prompt in prompts]
        order = sorted(range(len(rows)), key=lambda k: -len(rows[k]))
        tokens = _TOKENS_CPU if self.model.device.type == "cpu" else _TOKENS
        most = max(1, _LOGITS // (getattr(self.model.config, "vocab_size", 1) * (logits or n)))
        while order:
            size = min(most, max(1, tokens // (len(rows[order[0]]) + n)))
            places, order = order[:size], order[size:]
            yield places, [rows[k] for k in places]

    def _pad(self, rows: Tokens, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        import torch

        gaps = [max(map(len, rows)) - len(row) for row in rows]
        pairs = list(zip(gaps, rows, strict=True))
        tokens = [[self._padding] * gap + [*row] for gap, row in pairs]
        mask = [[0] * gap + [1] * len(row) for gap, row in pairs]
        return torch.tensor(tokens, device=device), torch.tensor(mask, device=device)

    def _score(self, rows: Tokens, wanted: list[int], device: torch.device) -> FloatArray:
        """Log probabilities of the wanted tokens, the first of which follows each row, (n, m).

        The last of the wanted tokens is not in the rows: nothing follows it.
        """
        import torch

        (tokens, mask), m = self._pad(rows, device), len(wanted)
        known = inspect.signature(self.model.forward).parameters
        options: dict[str, object] = {"use_cache": False} if "use_cache" in known else {}
        if "position_ids" in known:  # the padding has no positions
            options["position_ids"] = (mask.cumsum(dim=1) - 1).clamp(min=0)
        if "logits_to_keep" in known:
            options["logits_to_keep"] = m
        logits = self.model(tokens, attention_mask=mask, **options).logits[:, -m:].float()
        chosen = logits[:, torch.arange(m, device=device), torch.tensor(wanted, device=device)]
        values = (chosen - logits.logsumexp(dim=-1)).cpu().numpy()
        return np.asarray(values, dtype=np.float64)


def _messages(prompt: Any) -> list[dict[str, Any]]:
    """A text as the message of a user; the messages of a chat as they are."""
    return [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)


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


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Redirects are errors: the key is for the server that the user named."""

    def redirect_request(self, *args: object) -> None:
        return None


# How prompts are sent, and whether the log probabilities of an answer come back, best first. Those
# of `prompt_logprobs` are vLLM's.
_WAYS = (("chat", True), ("text", True), ("chat", False), ("text", False))
_CHATS = (_WAYS[0], _WAYS[2])
_PROBING = threading.Lock()
_REFUSED = {  # field -> what a refusal says of it, and what to send instead
    "max_tokens": (re.compile("max_completion_tokens"), "max_completion_tokens"),
    "temperature": (re.compile("temperature.*(?:support|default|deprecated)", re.I), ""),
}
_UNSUPPORTED = {400, 404, 405, 415, 422, 501}
_AGAIN = {408, 409, 425, 429}  # and all from 500


@dataclass(frozen=True, slots=True, repr=False)
class ServerModel:
    """A language model behind an OpenAI-compatible address.

    Each prompt is one request, so that `Calls(concurrency=8, retry=5, timeout=60)` is about single
    prompts; `Retry-After` is respected. What the server supports is found by one short request for
    each way until one works, and remembered:

    1. a chat with `prompt_logprobs`, as vLLM has it: a prompt is the message of a user;
    2. `/completions` with `prompt_logprobs`: the prompt is sent as it is, so that a chat template,
       if the model needs one, belongs into the prompt;
    3. text alone, of a chat or of `/completions`: answers can be compared (`score="similarity"`).

    The key is read from the environment for each request and kept nowhere. It is sent only over
    https or to this computer, and removed from all that the server returns, if it has at least 8
    characters. Redirects are not followed, and only https goes through a proxy.

    A request that fails is sent again, three times by default; a wrong key or a prompt that is too
    long is an error at once. A reply has at most 8 MB. A list of messages needs chats.

    `model` is its name on the server, None the only one there; `key_name` the name of the
    environment variable with the key, and None sends no key; `options` are other fields of each
    request, such as {"seed": 1}, where None leaves a field out.

    Examples
    --------
    >>> from eblime.models.language import ServerModel
    >>> ServerModel("http://localhost:8000/v1", model="qwen", temperature=0.7)
    ServerModel(url='http://localhost:8000/v1', model='qwen', temperature=0.7)
    """

    url: str
    model: str | None = None
    key_name: str | None = field(default="OPENAI_API_KEY", kw_only=True)
    max_new_tokens: int = field(default=256, kw_only=True)
    temperature: float = field(default=0.0, kw_only=True)
    options: Mapping[str, object] | None = field(default=None, kw_only=True)
    _memory: dict[Any, Any] = field(default_factory=dict, init=False, compare=False)

    batch_sizes: ClassVar[Sequence[int]] = (1,)

    def __post_init__(self) -> None:
        _check_generation(self)
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("`url` must be the address of a server: 'http://localhost:8000/v1'.")
        if parts.username or parts.password or parts.query:
            raise ValueError("`url` must not have a password or a key in it; see `key_name`.")
        if self.key_name not in (None, "OPENAI_API_KEY", *os.environ):
            raise ValueError("`key_name` must be the name of an environment variable that is set.")
        self._key()

    __repr__ = short_repr

    def generate(self, prompts: Sequence[str]) -> list[str]:
        """The model's answers, of at most `max_new_tokens` tokens, one request each."""
        form, _ = self._find_way(prompts)
        place = ("message", "content") if form == "chat" else ("text",)
        settings: Any = {"max_tokens": self.max_new_tokens, "temperature": self.temperature}
        found = []
        for prompt in prompts:
            reply = self._ask_prompt(form, prompt, **settings)
            USED.get().append({"cut": _find(reply, "choices", 0, "finish_reason") == "length"})
            text = _find(reply, "choices", 0, *place, kind=str)
            if text is None:
                reason = _short(_find(reply, "choices", 0, "finish_reason"))
                raise self._error(f"returned no text (reason: {reason})", retry_after=0)
            found.append(text)
        return found

    def token_log_probs(self, prompts: Sequence[str], answer: str) -> list[FloatArray]:
        """The log probability of each token of the answer, given each prompt."""
        if not answer.strip():
            raise ValueError("`answer` must not be empty.")
        form, scores = self._find_way(prompts)
        if not scores:
            raise self._error('has no `prompt_logprobs`, as vLLM has: use score="similarity"')
        found = []
        for prompt in prompts:
            spans, values = self._score(form, prompt, answer)
            if self._memory.setdefault(f"spans of {answer}", spans) != spans:
                wrong = "cuts the answer into other tokens after another prompt"
                raise self._error(f"{wrong}: end the prompt with a line break")
            found.append(values)
        return found

    def token_spans(self, answer: str) -> Spans:
        """Where the tokens of an answer begin and end in it; a request if it was not scored yet."""
        if f"spans of {answer}" not in self._memory:
            self.token_log_probs(["."], answer)
        spans: Spans = self._memory[f"spans of {answer}"]
        return spans

    def _find_way(self, prompts: Sequence[Any]) -> tuple[str, bool]:
        """What the server supports, found by the first call; other threads wait for it."""
        known = self._memory
        chats = not all(isinstance(prompt, str) for prompt in prompts)
        ways = _CHATS if chats else _WAYS
        with _PROBING:
            if "model" not in known:
                known["model"] = self.model or self._only_model()
            for form, scores in () if ways in known else ways:
                try:
                    if scores:
                        self._score(form, "Say yes.\n", "yes")
                    else:
                        self._ask_prompt(form, "Say yes.", max_tokens=1)
                except ServerError as error:
                    if error.status not in _UNSUPPORTED or (form, scores) == ways[-1]:
                        raise
                else:
                    known[ways] = form, scores
                    break
        found: tuple[str, bool] = known[ways]
        return found

    def _only_model(self) -> str:
        entries = _find(self._ask("/models"), "data", kind=list) or []
        names = [str(_find(entry, "id")) for entry in entries]
        if len(names) != 1:
            known = _short(", ".join(names[:10])) or "none"
            wrong = f"needs the name of one of the models of the server: {known}"
            raise self._error(f"{wrong}. Add its name to the address: {self.url}#name")
        return names[0]

    def _score(self, form: str, prompt: Any, answer: str) -> tuple[Spans, FloatArray]:
        reply = self._ask_prompt(form, prompt, answer, max_tokens=1, prompt_logprobs=0)
        entries = [
            next(iter(entry.values()), None) if isinstance(entry, dict) else None
            for entry in _find(reply, "prompt_logprobs", kind=list)
            or _find(reply, "choices", 0, "prompt_logprobs", kind=list)
            or []
        ]
        tokens = [_find(entry, "decoded_token", kind=str) or "" for entry in entries]
        first, spans = _match(tokens, answer)
        if not spans:
            wrong = "returned no log probabilities that belong to the tokens of the answer"
            raise self._error(wrong, retry_after=0, status=501)
        logs = [_find(entry, "logprob") for entry in entries[first:]]
        for log in logs:
            if type(log) not in (int, float) or not -HUGE <= log <= ROUNDING:
                raise self._error(
                    f"must return log probabilities, finite numbers <= 0; it returned {log!r:.40}"
                )
        return spans, np.minimum(np.array(logs, dtype=np.float64), 0.0)

    def _ask_prompt(self, form: str, prompt: Any, answer: str = "", **settings: object) -> Any:
        """The reply to a prompt, and the beginning of an answer to it, with one choice."""
        body: dict[str, Any] = {"temperature": 0.0, **settings}
        path = "/chat/completions" if form == "chat" else "/completions"
        if form == "text":
            body["prompt"] = prompt + answer
        else:
            body["messages"] = _messages(prompt)
        if form == "chat" and answer:
            body["messages"].append({"role": "assistant", "content": answer})
            body |= {"add_generation_prompt": False, "continue_final_message": True}
        reply = self._ask(path, body)
        choices = _find(reply, "choices", kind=list) or []
        if len(choices) != 1:
            raise self._error(f"must return one choice, not {len(choices)}", retry_after=0)
        return reply

    def _ask(self, path: str, body: Mapping[str, object] | None = None) -> Any:
        """Send one request, and return what the reply has.

        A server may want another name for `max_tokens`, or no `temperature`: if it says so, the
        request is sent again without them, and so are all that follow.
        """
        found = self._fetch(path, self._data(body))
        for name, (said, other) in _REFUSED.items():
            if isinstance(found, ServerError) and name in (body or ()) and said.search(str(found)):
                self._memory[f"name of {name}"] = other
                found = self._fetch(path, self._data(body))
        if isinstance(found, ServerError):  # raised here, where no frame of a traceback has the key
            raise found
        usage: dict[str, Any] = _find(found, "usage", kind=dict) or {}
        USED.get().append({name: n for name, n in usage.items() if type(n) is int})
        return found

    def _data(self, body: Mapping[str, object] | None) -> bytes | None:
        if body is None:
            return None
        known = self._memory
        sent = {known.get(f"name of {name}", name): value for name, value in body.items()}
        fields = {"model": known.get("model"), **sent, **(self.options or {}), "": None}
        return json.dumps({k: value for k, value in fields.items() if value is not None}).encode()

    def _error(self, words: str, *, retry_after: float = math.inf, status: int = 0) -> ServerError:
        message = f"The server at {self.url} {words}."
        return ServerError(message, retry_after=retry_after, status=status)

    def _fetch(self, path: str, data: bytes | None) -> Any:
        """What the server returns, or the error that says what is wrong with it.

        All that comes from a server passes `clean`, which removes the key.
        """
        headers = {"Content-Type": "application/json", "User-Agent": "eblime"}
        if key := self._key():
            headers["Authorization"] = f"Bearer {key}"
        secrets = [key, quote(key, safe=""), base64.b64encode(key.encode()).decode().rstrip("=")]

        def clean(text: str) -> str:
            for secret in secrets if len(key) >= _SHORTEST_SECRET else ():
                text = text.replace(secret, "***")
            return text

        request = urllib.request.Request(self.url.rstrip("/") + path, data, headers)
        try:
            status, reason, pause, raw = _exchange(request)
        except (OSError, HTTPException, UnicodeError) as error:
            cause = getattr(error, "reason", error)
            words = _short(clean(str(cause)) or type(cause).__name__)
            return self._error(f"did not answer: {words}", retry_after=0)
        try:
            content = json.loads(clean(json.dumps(json.loads(raw))))
        except (ValueError, RecursionError):
            content = None  # such as a page
        if status // 100 != 2:
            return self._refusal(status, content, clean(reason), pause)
        if content is None:
            wrong = "JSON" if len(raw) <= _LONGEST_REPLY else f"at most {_LONGEST_REPLY:,} bytes"
            return self._error(f"must return {wrong}", retry_after=0)
        return content

    def _refusal(self, status: int, content: object, reason: str, pause: str | None) -> ServerError:
        content = _find(content, "error") or content
        text = _short(_find(content, "message") or content or reason).rstrip(". ")
        wait, message = _seconds(pause), f"refused with status {status}"
        if status in (401, 403):
            known = "the key in" if self._key() else "no key is in"
            variable = f"{known} the environment variable {self.key_name}"
            message += f" ({variable if self.key_name else 'no key was sent'})"
        if wait:
            message += f" and asks to wait {wait:g} s"
        again = status in _AGAIN or status >= 500
        if not again or _find(content, "code") == "insufficient_quota":
            wait = math.inf
        return self._error(f"{message}: {text}", retry_after=wait, status=status)

    def _key(self) -> str:
        """The key in the environment; empty if there is none."""
        key, parts = os.environ.get(self.key_name or "", "").strip(), urlsplit(self.url)
        safe = parts.scheme == "https" or _is_this_computer(str(parts.hostname))
        if not key or (safe and key.isascii() and key.isprintable() and " " not in key):
            return key
        del key  # so that no frame of a traceback has it
        name = f"The key in the environment variable {self.key_name}"
        if safe:
            raise ValueError(f"{name} must be printable ASCII characters without spaces.")
        where = f"only over https or to this computer, not to {self.url}"
        raise ValueError(f"{name} is sent {where}. Use https, or set key_name=None to send none.")


# Plain http does not go through a proxy, which would see the key.
_PROXIES = {name: url for name, url in urllib.request.getproxies().items() if name == "https"}
_OPENER = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler(_PROXIES))


def _exchange(request: urllib.request.Request) -> tuple[int, str, str | None, bytes]:
    """Send a request: status, reason, `Retry-After` and the beginning of the body of the reply."""
    try:
        reply = _OPENER.open(request, timeout=_LONGEST_WAIT)
    except HTTPError as error:  # which is a reply, too
        reply = error
    with reply:
        pause, raw = reply.headers.get("Retry-After"), reply.read(_LONGEST_REPLY + 1)
    return reply.status, str(reply.reason), pause, raw


def _find(reply: Any, *path: str | int, kind: type = object) -> Any:
    """What stands at a place in a reply, such as "choices", 0, "text"; None if it is not there."""
    for key in path:
        try:
            reply = reply[key]
        except (KeyError, IndexError, TypeError):
            return None
    return reply if isinstance(reply, kind) else None


def _short(text: object) -> str:
    return printable(text)[:_LONGEST_ERROR]


def _is_this_computer(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _seconds(header: str | None) -> float:
    with suppress(ValueError):
        return max(0.0, float(header or 0))
    return 0.0


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
