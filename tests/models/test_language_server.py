"""Language models behind an address: a real server on localhost, which fails as services do."""

import asyncio
import base64
import json
import logging
import os
import pickle
import re
import subprocess
import sys
import threading
import time
import traceback
import zlib
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from commands import run_command

import eblime
from eblime.engine.calls import Caller
from eblime.explainers import prompt
from eblime.models import language
from eblime.models.language import ServerError, ServerModel, as_language_model

ANSWER = "It opened in 1889."
PROMPTS = [f"The tower opened in {year}. When did it open?" for year in range(1880, 1890)]
SECRET = "sk-very-secret-0123"
ALL_WAYS = ("chat prompt_logprobs", "prompt_logprobs", "chat", "text")


def cut(text):
    """Tokens: words, each with the space before it, and punctuation."""
    return re.findall(r"\s?\w+|\s?[^\w\s]|\s", text)


def log_prob(before, token):
    """The log probability of a token after a text: any number that depends on both."""
    return -(1 + zlib.crc32(f"{before}|{token}".encode()) % 1000) / 100


def expected(prompt, answer=ANSWER):
    """The log probabilities of the tokens of an answer."""
    tokens = cut(answer)
    return [log_prob(prompt + "".join(tokens[:k]), token) for k, token in enumerate(tokens)]


class Service(ThreadingHTTPServer):
    """A server that speaks the protocol.

    `failures` are what happens to requests by number, from 0; `requests` counts those about each
    prompt that were answered.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, ways=ALL_WAYS, *, models=("tiny",), latency=0.0, failures=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.ways, self.models, self.latency = ways, models, latency
        self.failures, self.bodies, self.keys = dict(failures or {}), [], []
        self.answered, self.busy, self.most = Counter(), 0, 0
        self.lock = threading.Lock()

    @property
    def url(self):
        """The address."""
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request, client_address):
        """Clients that hang up are no news."""


class Handler(BaseHTTPRequestHandler):
    """One request."""

    def log_message(self, *args):
        """Say nothing."""

    def do_GET(self):
        """The names of the models."""
        self.reply({"data": [{"id": name} for name in self.server.models]})

    def do_POST(self):
        """A prompt: fail as planned, or answer."""
        service = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with service.lock:
            number = len(service.bodies)
            service.bodies.append(body)
            service.keys.append(self.headers.get("Authorization"))
            service.busy += 1
            service.most = max(service.most, service.busy)
            failure = service.failures.get(number)
        try:
            time.sleep(service.latency)
            if failure is not None:
                return failure(self)
            self.answer(body)
        finally:
            with service.lock:
                service.busy -= 1

    def answer(self, body, change=lambda reply: reply):
        """What a working server returns."""
        chat = self.path == "/v1/chat/completions"
        kind = "prompt_logprobs" if "prompt_logprobs" in body else ""
        way = " ".join(filter(None, ["chat" if chat else "", kind])) or "text"
        if way not in self.server.ways:
            return self.reply({"error": {"message": f"{way} is not supported"}}, 400)
        if chat:
            *_, last = messages = body["messages"]
            goes_on = body.get("continue_final_message", False)
            prompt = messages[0]["content"]
            tokens = [(f"<user>{prompt}<assistant>", None)]
            before, text = prompt, last["content"] if goes_on else ""
        else:
            prompt = body["prompt"]
            tokens, before, text = [("<s>", None)], "", prompt
        for token in cut(text):
            # the numbers of an answer depend on its prompt, not on how it was sent
            tokens.append((token, log_prob(before, token)))
            before += token
        with self.server.lock:
            self.server.answered[json.dumps(body, sort_keys=True)] += 1
        shown = [{"7": {"logprob": v, "decoded_token": t}} if v else None for t, v in tokens]
        choice = {"index": 0, "finish_reason": "length"}
        reply = {"choices": [choice]}
        if kind:
            (reply if chat else choice)["prompt_logprobs"] = shown
        words = f"It has {len(prompt)} letters."
        choice.update({"message": {"content": words}} if chat else {"text": words})
        return self.reply(change(reply))

    def reply(self, content, status=200, headers=()):
        """Send a reply: an object as JSON, or bytes as they are."""
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


def busy(handler):
    """Too many requests."""
    handler.reply({"error": {"message": "slow down"}}, 429, {"Retry-After": "0.3"})


def broken(handler):
    """An error of the server, as a page."""
    page = b"<html><style>b {}</style><title>Bad gateway</title>"
    handler.reply(page, 502, {"Content-Type": "text/html"})


def hangs_up(handler):
    """The connection ends in the middle of the reply."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')


def stays_silent(handler):
    """No answer for longer than anyone waits."""
    time.sleep(1.0)


def two_choices(handler):
    """More choices than asked for."""
    body = handler.server.bodies[-1]
    handler.answer(body, lambda reply: {**reply, "choices": 2 * reply["choices"]})


def short_list(handler):
    """The last token is missing."""

    def change(reply):
        reply["choices"][0]["prompt_logprobs"].pop()
        return reply

    handler.answer(handler.server.bodies[-1], change)


def not_json(handler):
    """A page where JSON should be."""
    handler.reply(b"<!doctype html><p>Please log in")


FAILURES = (busy, broken, hangs_up, stays_silent, two_choices, not_json)


@pytest.fixture
def serve():
    """A function that starts a server, which is stopped after the test."""
    started = []

    def start(*args, **settings):
        service = Service(*args, **settings)
        threading.Thread(target=service.serve_forever, args=(0.01,), daemon=True).start()
        started.append(service)
        return service

    yield start
    for service in started:
        service.shutdown()
        service.server_close()


@pytest.mark.parametrize("first", range(2))
def test_each_way_gives_the_log_probabilities_of_the_answer(serve, first):
    """What the server supports is found by short requests, and remembered."""
    service = serve(ALL_WAYS[first:])
    model = as_language_model(service.url)
    found = model.token_log_probs(PROMPTS, ANSWER)

    np.testing.assert_allclose(found, [expected(prompt) for prompt in PROMPTS])
    assert len(service.bodies) == first + 1 + len(PROMPTS)
    assert [ANSWER[a:b] for a, b in model.token_spans(ANSWER)] == [
        "It",
        "opened",
        "in",
        "1889",
        ".",
    ]
    assert len(service.bodies) == first + 1 + len(PROMPTS)
    assert model.generate(PROMPTS[:1]) == [f"It has {len(PROMPTS[0])} letters."]
    assert {body["model"] for body in service.bodies} == {"tiny"}
    assert {body["temperature"] for body in service.bodies} == {0.0}


@pytest.mark.parametrize("way", ["chat", "text"])
def test_a_server_of_texts_says_which_score_is_possible(serve, way):
    """It generates; log probabilities are refused, and no retry can help."""
    model = ServerModel(serve([way]).url)

    assert model.generate(PROMPTS[:1]) == [f"It has {len(PROMPTS[0])} letters."]
    with pytest.raises(ServerError, match='use score="similarity"') as caught:
        model.token_log_probs(PROMPTS, ANSWER)
    assert caught.value.retry_after == np.inf


def test_spans_can_come_first(serve):
    """They cost one request if the answer was not scored yet."""
    service = serve()
    model = ServerModel(service.url, "tiny")

    assert len(model.token_spans(ANSWER)) == len(expected("."))
    assert len(service.bodies) == 2


def test_the_only_model_is_taken_and_one_of_several_must_be_named(serve):
    """Their names are in the message."""
    service = serve(models=("small", "large"))

    with pytest.raises(ServerError, match=r"server: small, large\. Add its name .*/v1#name"):
        ServerModel(service.url).generate(["Hi"])
    ServerModel(service.url, "large", options={"seed": 3, "max_tokens": None}).generate(["Hi"])
    assert service.bodies[-1]["model"] == "large"
    assert service.bodies[-1]["seed"] == 3
    assert "max_tokens" not in service.bodies[-1]
    as_language_model(f"{service.url}#small").generate(["Hi"])
    assert service.bodies[-1]["model"] == "small"


@pytest.mark.parametrize("failure", [*FAILURES, short_list])
def test_failures_are_errors_that_name_the_server(serve, monkeypatch, failure):
    """Without retries there is one sentence; with one, the right answer."""
    # after the requests that find out what the server supports
    service = serve(["prompt_logprobs"], failures={2: failure, 3: failure})
    monkeypatch.setattr(language, "_LONGEST_WAIT", 0.5)
    model = ServerModel(service.url, "tiny")
    with pytest.raises(ServerError, match=r"^The server at http://127.0.0.1:\d+/v1 ") as caught:
        model.token_log_probs(PROMPTS[:1], ANSWER)
    assert "<" not in str(caught.value)

    calls = eblime.Calls(retry=eblime.Retry(times=2, wait=0.01))
    caller = Caller(lambda prompts: model.token_log_probs(prompts, ANSWER), calls)
    start = time.perf_counter()
    np.testing.assert_allclose(caller.answer(PROMPTS[:1], 1), [expected(PROMPTS[0])])
    assert caller.sent == 2
    assert time.perf_counter() - start >= (0.3 if failure is busy else 0.0)


def test_a_failure_of_the_probe_is_no_lack_of_support(serve):
    """A busy server may support everything."""
    service = serve(failures={0: busy, 1: broken})
    model = ServerModel(service.url, "tiny")
    for _ in range(2):
        with pytest.raises(ServerError, match=r"status (429|502)"):
            model.token_log_probs(PROMPTS[:1], ANSWER)

    np.testing.assert_allclose(model.token_log_probs(PROMPTS[:1], ANSWER), [expected(PROMPTS[0])])
    assert "prompt_logprobs" in service.bodies[-1]


def refusal(status, message, headers=(), **more):
    """A failure with a status and a message."""
    return lambda handler: handler.reply({"error": {"message": message, **more}}, status, headers)


@pytest.mark.parametrize(
    "failure",
    [
        refusal(401, "wrong key"),
        refusal(400, "maximum context length is 4096 tokens"),
        refusal(429, "pay first", code="insufficient_quota"),
        refusal(429, "come back tomorrow", {"Retry-After": "86400"}),
        lambda handler: handler.reply(b"", 307, {"Location": "http://127.0.0.1:9/v1"}),
    ],
)
def test_what_another_try_cannot_mend_is_not_repeated(serve, failure):
    """The message of the server is shown at once."""
    service = serve(failures=dict.fromkeys(range(1, 99), failure))
    model = ServerModel(service.url, "tiny")
    caller = Caller(lambda prompts: model.token_log_probs(prompts, ANSWER), eblime.Calls(retry=5))

    with pytest.raises(ServerError, match=r"refused with status \d+.*: .+\.$"):
        caller.answer(PROMPTS[:1], 1)
    assert len(service.bodies) == 2


def test_a_retry_after_that_is_no_number_is_no_pause(serve):
    """Such as a date."""
    wrong = {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}
    model = ServerModel(serve(failures={1: refusal(503, "a", wrong)}).url, "tiny")
    with pytest.raises(ServerError) as caught:
        model.token_log_probs(PROMPTS[:1], ANSWER)
    assert caught.value.retry_after == 0


def test_a_server_that_is_not_there():
    """The message has the address and the reason."""
    with pytest.raises(ServerError, match=r"127.0.0.1:9/v1 did not answer: .*refused"):
        ServerModel("http://127.0.0.1:9/v1", "tiny").generate(["Hi"])


def test_the_key_comes_from_the_environment_and_stays_there(serve, monkeypatch, tmp_path):
    """It is sent, and is in no repr, pickle, message, traceback, cache or file."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    leak = refusal(401, f"Incorrect API key provided: {SECRET}")
    service = serve(failures={4: leak})
    model = ServerModel(service.url, "tiny")
    cache = eblime.AnswerCache(tmp_path / "answers.db", model_id="tiny")
    explainer = eblime.PromptExplainer(model, NOTES, n_masks=30, cache=cache)
    with pytest.raises(eblime.ModelError, match=r"key in the environment.* \*\*\*") as caught:
        explainer.explain("When did it open?")
    e = explainer.explain("When did it open?")
    e.save(tmp_path / "e.eblime")
    (tmp_path / "e.html").write_text(e.to_html(), encoding="utf8")
    locals_ = [repr(frame.frame.f_locals) for frame in caught.traceback]
    cause = caught.value.__cause__

    assert set(service.keys) == {f"Bearer {SECRET}"}
    assert all(SECRET not in text for text in locals_ if "SECRET" not in text)
    assert cause.__context__ is None
    shown = [repr(model), str(caught.value), str(cause), repr(e), e.to_json(), repr(explainer)]
    assert all(SECRET not in text for text in shown)
    assert SECRET.encode() not in pickle.dumps(model)
    assert pickle.loads(pickle.dumps(model)) == model
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 3
    assert all(SECRET.encode() not in path.read_bytes() for path in files)


def test_other_keys_have_other_names(serve, monkeypatch):
    """A key in place of its name is refused, and not shown."""
    monkeypatch.setenv("OTHER_KEY", "abc")
    service = serve()
    ServerModel(service.url, "tiny", key_name="OTHER_KEY").generate(["Hi"])

    assert set(service.keys) == {"Bearer abc"}
    for wrong in (SECRET, "skverysecret"):
        with pytest.raises(ValueError, match="`key_name` must be the name") as caught:
            ServerModel(service.url, key_name=wrong)
        assert wrong not in str(caught.value)
    for url in (f"http://me:{SECRET}@127.0.0.1/v1", f"http://127.0.0.1/v1?key={SECRET}"):
        with pytest.raises(ValueError, match="must not have a password or a key") as caught:
            as_language_model(url)
        assert SECRET not in str(caught.value)
    with pytest.raises(ValueError, match="must end in /v1"):
        as_language_model("http://127.0.0.1:8000")


@pytest.mark.parametrize("key", [f"{SECRET}\n", f" {SECRET}\r\n"])
def test_white_space_around_a_key_is_not_sent(serve, monkeypatch, key):
    """As a key has it that was read from a file."""
    monkeypatch.setenv("OPENAI_API_KEY", key)
    service = serve()
    ServerModel(service.url, "tiny").generate(["Hi"])

    assert set(service.keys) == {f"Bearer {SECRET}"}


@pytest.mark.parametrize("wrong", [" a", "\na", "\x7f", "\u00e9"])
def test_a_key_that_cannot_be_sent_is_refused_unseen(monkeypatch, wrong):
    """Neither the message nor a frame of the traceback has it."""
    monkeypatch.setenv("OPENAI_API_KEY", f"{SECRET}{wrong}0")

    with pytest.raises(ValueError, match="OPENAI_API_KEY must be printable ASCII") as caught:
        ServerModel("http://127.0.0.1:9/v1", "tiny")
    frames = [entry.frame.f_locals for entry in caught.traceback[1:]]
    assert all(SECRET not in text for text in (str(caught.value), repr(frames)))


def test_a_key_that_became_wrong_is_refused_unseen(serve, monkeypatch):
    """It is read again for each request; the error is about the key, not about the server."""
    service = serve()
    model = ServerModel(service.url, "tiny")
    monkeypatch.setenv("OPENAI_API_KEY", f"{SECRET}\n0")

    with pytest.raises(ValueError, match="must be printable ASCII") as caught:
        model.generate(["Hi"])
    frames = [entry.frame.f_locals for entry in caught.traceback[1:]]
    assert all(SECRET not in text for text in (str(caught.value), repr(frames)))
    assert not service.bodies


@pytest.mark.parametrize("host", ["models.example.com", "localhost.example.com", "192.168.0.7"])
def test_a_key_is_not_sent_in_plain_text(monkeypatch, host):
    """To other computers only over https; without a key all addresses are allowed."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)

    with pytest.raises(ValueError, match=r"only over https or to this computer.*key_name=None"):
        as_language_model(f"http://{host}/v1")
    for url, settings in ((f"https://{host}/v1", {}), (f"http://{host}/v1", {"key_name": None})):
        assert ServerModel(url, **settings).url == url
    for here in ("localhost", "127.0.0.2", "[::1]"):
        assert as_language_model(f"http://{here}/v1")


def test_no_key_is_sent_without_a_name(serve, monkeypatch):
    """`key_name=None`, although the variable is set."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    service = serve()
    ServerModel(service.url, "tiny", key_name=None).generate(["Hi"])

    assert set(service.keys) == {None}


def test_a_proxy_does_not_see_the_key(serve):
    """Requests to this computer go there, whatever the environment says of http."""
    service, proxy = serve(), serve()
    code = f"""
from eblime.models.language import ServerModel
ServerModel({service.url!r}, "tiny").generate(["Hi"])"""
    environment = {"http_proxy": proxy.url, "OPENAI_API_KEY": SECRET}
    subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, check=True)

    assert service.bodies
    assert not proxy.bodies


@pytest.mark.parametrize(
    ("name", "said"),
    [("OPENAI_API_KEY", "no key is in the environment variable OPENAI"), (None, "no key was sent")],
)
def test_no_key_is_said(serve, monkeypatch, name, said):
    """A server that wants a key."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    service = serve(failures={0: refusal(401, "key, please")})

    with pytest.raises(ServerError, match=said):
        ServerModel(service.url, "tiny", key_name=name).generate(["Hi"])


def sent_key(handler):
    """The key that a request brought, also as it is in base64."""
    key = handler.headers["Authorization"].removeprefix("Bearer ")
    return f"{key} {base64.b64encode(key.encode()).decode()}"


def leak_in_reason(handler):
    """In the words beside the status."""
    handler.send_response(401, f"Bad key {sent_key(handler)}")
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def leak_in_status(handler):
    """In a line that is no status."""
    handler.wfile.write(f"{sent_key(handler)}\r\n\r\n".encode())


def leak_in_error(handler):
    """In the message of an error."""
    handler.reply({"error": {"message": {"headers": {sent_key(handler): 1}}}}, 400)


def leak_in_page(handler):
    """In a page instead of JSON."""
    handler.reply(f"<p>{sent_key(handler)}</p>".encode())


def leak_in_answer(handler):
    """In a text that was generated."""
    words = {"content": f"You sent {sent_key(handler)}."}

    def change(reply):
        reply["choices"][0]["message"] = words
        return reply

    handler.answer(handler.server.bodies[-1], change)


def leak_in_finish_reason(handler):
    """In the reason why there is no text."""

    def change(reply):
        reply["choices"][0].update(message={}, finish_reason=sent_key(handler))
        return reply

    handler.answer(handler.server.bodies[-1], change)


def leak_in_log_probability(handler):
    """In place of a number; text is generated."""
    body = handler.server.bodies[-1]

    def change(reply):
        for entry in reply.get("prompt_logprobs", [])[1:]:
            entry["7"]["logprob"] = sent_key(handler)
        return reply

    handler.answer(body, change)


@pytest.mark.parametrize(
    "leak",
    [
        *(leak_in_reason, leak_in_status, leak_in_error, leak_in_page, leak_in_answer),
        *(leak_in_finish_reason, leak_in_log_probability),
    ],
)
@pytest.mark.filterwarnings("ignore")  # failed inputs
@pytest.mark.slow
def test_a_key_that_a_server_returns_is_in_no_output(
    serve, monkeypatch, capsys, caplog, tmp_path, leak
):
    """Of the command line and of a run: files, tables, messages, tracebacks and logs."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("\n\n".join(NOTES[:3]))
    (tmp_path / "q.txt").write_text("When?")
    (tmp_path / "all.jsonl").write_text('{"question": "When?"}\n{"question": "Where?"}\n')
    service = serve(failures=dict.fromkeys(range(1, 999), leak))
    options = ("--sources", "notes.txt", "--model", f"{service.url}#tiny")
    words = [run_command(capsys, "explain", "prompt", "q.txt", *options)]
    words += [
        run_command(
            *(capsys, "batch", "prompt", "all.jsonl", *options),
            *("--out", "run", "--workers", "1", "--keep"),
        )
    ]
    run = eblime.open_run("run")
    tables = [run.failures().to_csv(), *([] if len(run.failures()) else [run.frame().to_csv()])]
    explainer = eblime.PromptExplainer(ServerModel(service.url, "tiny"), NOTES[:3])
    try:
        e = explainer.explain("When?")
        words.append((repr(e), str(e), e.to_json(), e.to_html()))
    except eblime.ModelError as error:
        words.append("".join(traceback.format_exception(error)))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]

    shown = repr((words, tables, caplog.text, [path.read_bytes() for path in files]))
    assert "***" in shown or leak is leak_in_page  # a page is not shown at all
    assert set(service.keys) == {f"Bearer {SECRET}"}
    for form in (SECRET, base64.b64encode(SECRET.encode()).decode().rstrip("=")):
        assert form not in shown


def drip(handler):
    """A right reply, but a little at a time."""
    body = b" " * 60 + b'{"choices": [{"message": {"content": "Hi"}}]}'
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    for k in range(len(body)):
        time.sleep(0.05)
        handler.wfile.write(body[k : k + 1])


def drip_headers(handler):
    """A right reply, but with headers that take long."""
    handler.send_response(200)
    for k in range(60):
        time.sleep(0.05)
        handler.send_header(f"Name-{k}", "x")
        handler.flush_headers()
    handler.send_header("Content-Length", "45")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [{"message": {"content": "Hi"}}]}')


@pytest.mark.parametrize("slow", [drip, drip_headers])
def test_the_timeout_is_that_of_the_whole_request(serve, slow):
    """Not that of one part of a reply that comes in many."""
    model = ServerModel(serve(failures={1: slow}).url, "tiny")
    caller = Caller(model.generate, eblime.Calls(timeout=0.5))

    with pytest.raises(TimeoutError, match=r"no answer within the timeout of 0\.5 s"):
        caller.answer(["Hi"], 1)


def test_only_the_beginning_of_a_long_reply_is_read(serve):
    """A server cannot fill the memory: the connection is closed before the end."""
    sent = []

    def long(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(10**10))
        handler.end_headers()
        try:
            for _ in range(200):
                sent.append(handler.wfile.write(b" " * 10**6))  # noqa: PERF401 - until it fails
        except OSError:
            sent.append(None)

    service = serve(failures={1: long})
    model = ServerModel(service.url, "tiny")
    with pytest.raises(ServerError, match="return at most 8,000,000 bytes"):
        model.generate(["Hi"])
    assert len(sent) < 200


@pytest.mark.parametrize("wrong", [0.5, True, False, "-0.5", None, float("nan"), -float("inf")])
def test_log_probabilities_are_numbers_that_are_not_positive(serve, wrong):
    """A probability, for example, is not the logarithm of one."""

    def change(reply):
        reply["prompt_logprobs"][-1]["7"]["logprob"] = wrong
        return reply

    change_last = {2: lambda handler: handler.answer(handler.server.bodies[-1], change)}
    model = ServerModel(serve(failures=change_last).url, "tiny")
    model.token_log_probs(PROMPTS[:1], ANSWER)
    with pytest.raises(ServerError, match=r"finite numbers <= 0; it returned") as caught:
        model.token_log_probs(PROMPTS[:1], ANSWER)
    assert caught.value.retry_after == np.inf


def test_a_log_probability_of_zero_may_be_rounded_up(serve):
    """Single precision: 1e-6 is 0."""

    def change(reply):
        reply["prompt_logprobs"][-1]["7"]["logprob"] = 1e-6
        return reply

    service = serve(failures={1: lambda handler: handler.answer(handler.server.bodies[-1], change)})
    (found,) = ServerModel(service.url, "tiny").token_log_probs(PROMPTS[:1], ANSWER)

    assert found[-1] == 0


def test_a_message_in_an_odd_form_is_no_text(serve):
    """A list in place of the message."""
    odd = lambda handler: handler.reply({"choices": [{"message": ["Hi"]}]})  # noqa: E731
    model = ServerModel(serve(failures={1: odd}).url, "tiny")

    with pytest.raises(ServerError, match="returned no text"):
        model.generate(["Hi"])


def test_a_cache_needs_a_name_for_a_server(tmp_path):
    """What is behind an address can change; nothing is asked before."""
    url = "http://127.0.0.1:9/v1"
    explainer = eblime.PromptExplainer(url, NOTES, cache=tmp_path / "answers.db")

    with pytest.raises(TypeError, match=r"needs `model_id`.*what it returns can depend"):
        explainer.explain("When?", answer=ANSWER)


def test_tokens_that_depend_on_the_prompt_are_refused(serve):
    """The same tokens are scored for every prompt."""
    model = ServerModel(serve(["prompt_logprobs"]).url, "tiny")
    model.token_log_probs(["When?"], "yes, 1889")

    with pytest.raises(ServerError, match=r"the tokens of the answer|other tokens"):
        model.token_log_probs(["When? un"], "yes, 1889")


def test_white_space_may_be_shown_anywhere(serve, monkeypatch):
    """Some servers show words without the space before them."""
    whole = cut
    monkeypatch.setitem(globals(), "cut", lambda text: [t.strip() or t for t in whole(text)])
    model = ServerModel(serve(["prompt_logprobs"]).url, "tiny")
    (found,) = model.token_log_probs(["When?\n"], ANSWER)

    assert len(found) == 5
    assert [ANSWER[a:b] for a, b in model.token_spans(ANSWER)] == [
        "It",
        "opened",
        "in",
        "1889",
        ".",
    ]


NOTES = [f"Note {k} is about the year {1800 + k}." for k in range(20)]


def explain(service, n):
    """An explanation from n prompts, 8 at once with retries."""
    calls = eblime.Calls(concurrency=8, retry=eblime.Retry(times=5, wait=0.05))
    model = ServerModel(service.url, "tiny")
    explainer = eblime.PromptExplainer(model, NOTES, n_masks=n, calls=calls, progress=False)
    return explainer.explain("When did it open?", answer=ANSWER)


def check_answers(service, e):
    """All scores are right, and no prompt was answered twice."""
    prompts = [str(prompt) for prompt in e.scene.inputs(e.masks)]
    np.testing.assert_allclose(e.scores, [np.mean(expected(prompt)) for prompt in prompts])
    assert set(service.answered.values()) == {1}
    assert 2 <= service.most <= 9  # never more; the server sees the end of a cut connection late
    assert e.provenance["model_calls"] == len(service.bodies) - 1  # all but the probe


def test_several_at_once_with_failures_give_all_answers_once(serve):
    """One request in ten fails, each in another way."""
    failures = {5 + 10 * k: failure for k, failure in enumerate((busy, broken, hangs_up, not_json))}
    service = serve(latency=0.01, failures=failures)

    check_answers(service, explain(service, 60))


@pytest.mark.slow
def test_failures_cost_little_time(serve, record_property):
    """5 % failures with 8 at once; 1.3 of the time that the calls need without any is the goal."""
    rng = np.random.default_rng(0)
    numbers = rng.permutation(np.arange(2, 160))[:8]
    kinds = (broken, hangs_up, busy, not_json)
    service = serve(latency=0.2, failures={int(k): kinds[j % 4] for j, k in enumerate(numbers)})
    start = time.perf_counter()
    e = explain(service, 160)
    seconds = time.perf_counter() - start

    check_answers(service, e)
    ideal = 0.2 * (160 + 2) / 8
    print(f"{seconds:.2f} s, ideal {ideal:.2f} s, ratio {seconds / ideal:.2f}")
    record_property("ratio", seconds / ideal)


# --- chats, other names of fields, what was used --------------------------------------------------

CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "When?"}]


def test_the_messages_of_a_chat_are_sent_as_they_are(serve):
    """With the answer to score as one more; a server without chats is found out."""
    service = serve(["chat"])
    model = ServerModel(service.url, "tiny")
    model.generate([CHAT])

    assert service.bodies[-1]["messages"] == CHAT
    with pytest.raises(ServerError, match="chat is not supported"):
        ServerModel(serve(["prompt_logprobs", "text"]).url, "tiny").generate([CHAT])
    service = serve()
    messages = [{"role": "user", "content": "When?"}]
    (found,) = ServerModel(service.url, "tiny").token_log_probs([messages], ANSWER)
    np.testing.assert_allclose(found, expected("When?"))
    assert service.bodies[-1]["messages"] == [*messages, {"role": "assistant", "content": ANSWER}]


def demands(*words):
    """A refusal of each request that has one of some fields, as newer models do."""

    def fail(handler):
        body = handler.server.bodies[-1]
        for name, said in words:
            if name in body:
                return handler.reply({"error": {"message": said}}, 400)
        return handler.answer(body)

    return dict.fromkeys(range(99), fail)


def test_fields_that_a_model_refuses_are_sent_by_another_name(serve):
    """One more request each, by the message of the server; then it is remembered."""
    words = (
        ("max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        ("temperature", "Unsupported value: 'temperature' does not support 0. Only the default."),
    )
    service = serve(["chat"], failures=demands(*words))
    model = ServerModel(service.url, "tiny", max_new_tokens=9)
    model.generate(["Hi"])
    before = len(service.bodies)
    model.generate(["Ho"])

    assert len(service.bodies) == before + 1
    assert service.bodies[-1]["max_completion_tokens"] == 9
    assert not {"max_tokens", "temperature"} & {*service.bodies[-1]}
    text = ServerModel(serve(["chat"], failures=demands(("n", "no"))).url, "tiny")
    assert text.generate(["Hi"])
    other = serve(["chat"], failures=demands(("max_tokens", "max_tokens must be at most 5")))
    with pytest.raises(ServerError, match="must be at most 5"):
        ServerModel(other.url, "tiny").generate(["Hi"])


def test_a_server_is_asked_again_three_times_unless_said_otherwise(serve):
    """A service that fails now and then needs no settings."""
    failures = {5 + 3 * k: broken for k in range(3)}
    service = serve(failures=failures)
    explainer = eblime.PromptExplainer(f"{service.url}#tiny", NOTES[:3])

    assert len(explainer.explain("When?").masks) == 8
    assert explainer.calls.retry == 3
    never = eblime.PromptExplainer(explainer.model, NOTES, calls=eblime.Calls(retry=0))
    service.failures = dict.fromkeys(range(999), broken)
    with pytest.raises(eblime.ModelError, match="502"):
        never.explain("When?", answer="Then.")


def test_tokens_are_counted_with_probes_and_several_at_once(serve):
    """As the server says; explanations at the same time do not mix."""

    def usage(handler):
        used = {"prompt_tokens": 10, "completion_tokens": 1, "other": "x"}
        handler.answer(handler.server.bodies[-1], lambda reply: {**reply, "usage": used})

    service = serve(latency=0.01, failures=dict.fromkeys(range(999), usage))
    calls = eblime.Calls(concurrency=4)
    explainer = eblime.PromptExplainer(f"{service.url}#tiny", NOTES[:3], calls=calls)
    first = explainer.explain("When?")

    async def both():
        questions = (explainer.aexplain(f"When {k}?", answer="Then.") for k in range(2))
        return await asyncio.gather(*questions)

    found = asyncio.run(both())
    probe = 1

    assert first.provenance["model_calls"] == 9
    assert first.provenance["tokens"] == {
        "prompt_tokens": 10 * (9 + probe),
        "completion_tokens": 9 + probe,
        "cut": 1,
    }
    assert [e.provenance["tokens"]["prompt_tokens"] for e in found] == [80, 80]


def test_a_redirect_to_another_host_is_not_followed(serve, monkeypatch):
    """Neither the request nor the key goes there."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    other = serve()
    for status in (301, 302, 307, 308):
        there = {"Location": f"http://localhost:{other.server_port}/v1/chat/completions"}
        away = lambda handler, s=status, to=there: handler.reply(b"", s, to)  # noqa: E731
        service = serve(failures=dict.fromkeys(range(9), away))
        with pytest.raises(ServerError, match=f"status {status}"):
            ServerModel(service.url, "tiny").generate(["Hi"])

    assert not other.bodies
    assert not other.keys


def test_a_request_has_a_longest_time_without_settings(serve, monkeypatch):
    """For the whole of a reply that comes in drops, headers included."""
    monkeypatch.setattr(prompt, "_SERVER", eblime.Calls(timeout=0.5))
    service = serve(failures=dict.fromkeys(range(1, 99), drip_headers))
    explainer = eblime.PromptExplainer(f"{service.url}#tiny", NOTES[:3])

    with pytest.raises(eblime.ModelError, match=r"no answer within the timeout of 0\.5 s"):
        explainer.explain("When?")


@pytest.mark.slow
def test_eight_questions_at_once_take_little_longer_than_one(serve, record_property):
    """In one event loop; 1.3 of the time that the calls need is the goal."""
    service = serve(latency=0.2)
    model = ServerModel(service.url, "tiny")
    explainer = eblime.PromptExplainer(model, NOTES[:12], n_masks=32, progress=False)

    async def every():
        return await asyncio.gather(*(explainer.aexplain(f"When {k}?") for k in range(8)))

    explainer.explain("When?", answer="Then.")
    start = time.perf_counter()
    found = asyncio.run(every())
    seconds = time.perf_counter() - start
    ideal = 0.2 * 35  # the answer, both ends and 32 masks, one after the other

    assert all(len(e.masks) == 34 for e in found)
    print(f"{seconds:.2f} s, ideal {ideal:.2f} s, ratio {seconds / ideal:.2f}")
    record_property("ratio", seconds / ideal)
