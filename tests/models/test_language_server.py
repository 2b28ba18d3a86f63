"""Language models behind an address: a real server on localhost, which fails as services do."""

import json
import pickle
import re
import threading
import time
import zlib
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import eblime
from eblime.engine.calls import Caller
from eblime.models.language import ServerError, ServerModel, as_language_model

ANSWER = "It opened in 1889."
PROMPTS = [f"The tower opened in {year}. When did it open?" for year in range(1880, 1890)]
SECRET = "sk-very-secret-0123"
ALL_WAYS = ("chat prompt_logprobs", "echo", "prompt_logprobs", "chat", "text")


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
        kind = "prompt_logprobs" if "prompt_logprobs" in body else "echo" if "echo" in body else ""
        way = " ".join(filter(None, ["chat" if chat else "", kind])) or "text"
        if way not in self.server.ways:
            return self.reply({"error": {"message": f"{way} is not supported"}}, 400)
        if chat:
            *_, last = messages = body["messages"]
            assert len(messages) == 1 or body["continue_final_message"]
            prompt = messages[0]["content"]
            tokens = [(f"<user>{prompt}<assistant>", None)]
            before, text = prompt, last["content"] if len(messages) == 2 else ""
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
        usage = {"prompt_tokens": len(tokens), "completion_tokens": 1}
        reply = {"choices": [choice], "usage": usage}
        if kind == "echo":
            names, values = zip(*tokens, (" end", -0.5), strict=True)
            choice["logprobs"] = {"tokens": list(names), "token_logprobs": list(values)}
        elif kind:
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
    """One log probability less than tokens."""

    def change(reply):
        reply["choices"][0]["logprobs"]["token_logprobs"].pop()
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


@pytest.mark.parametrize("first", range(3))
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
def test_failures_are_errors_that_name_the_server(serve, failure):
    """Without retries there is one sentence; with one, the right answer."""
    service = serve(["echo"], failures={2: failure, 3: failure})  # after the probes of two ways
    model = ServerModel(service.url, "tiny", timeout=0.5)
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
        refusal(503, "come back in 2099", {"Retry-After": "Wed, 21 Oct 2099 07:28:00 GMT"}),
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


def test_a_past_date_of_retry_after_is_no_pause(serve):
    """Nor is nonsense."""
    past = {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}
    service = serve(
        failures={1: refusal(503, "a", past), 2: refusal(503, "b", {"Retry-After": "x"})}
    )
    model = ServerModel(service.url, "tiny")
    for _ in range(2):
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
    with pytest.raises(TypeError, match="`model` is for servers only"):
        as_language_model((1, 2), model="tiny")


def test_no_key_is_said(serve, monkeypatch):
    """A server that wants a key."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    service = serve(failures={0: refusal(401, "key, please")})

    with pytest.raises(ServerError, match="no key is in the environment variable OPENAI_API_KEY"):
        ServerModel(service.url, "tiny").generate(["Hi"])


def test_a_cache_needs_a_name_for_a_server(tmp_path):
    """What is behind an address can change; nothing is asked before."""
    url = "http://127.0.0.1:9/v1"
    explainer = eblime.PromptExplainer(url, NOTES, cache=tmp_path / "answers.db")

    with pytest.raises(TypeError, match=r"needs `model_id`.*what ServerModel returns can depend"):
        explainer.explain("When?", answer=ANSWER)


def test_tokens_that_depend_on_the_prompt_are_refused(serve):
    """The same tokens are scored for every prompt."""
    model = ServerModel(serve(["echo"]).url, "tiny")
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
    model = ServerModel(service.url, "tiny", timeout=0.5)
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
