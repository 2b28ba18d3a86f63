"""Slow and flaky models: retries, timeouts, calls at once, budgets, Ctrl-C."""

import asyncio
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from together import explain_together

import eblime
from eblime.engine.calls import Caller, Calls, as_retry, check_scores, model_error
from eblime.models.asynchronous import wait_for

TEXT = "one two three four five six seven eight nine ten eleven twelve"


def score(texts):
    """A score of words."""
    return [("two" in t) + 0.5 * ("seven" in t) - 0.01 * len(t) for t in texts]


class Flaky:
    """Fails at the first tries of every batch."""

    def __init__(self, failures, error=ConnectionError):
        self.left, self.failures, self.error, self.tries = failures, failures, error, 0

    def __call__(self, texts):
        """Fail, or answer."""
        self.tries += 1
        if self.left:
            self.left -= 1
            raise self.error("busy")
        self.left = self.failures
        return score(texts)


FAST = eblime.Retry(times=2, wait=0.001)
PATIENT = eblime.Retry(times=100, wait=0.001)  # more than a busy machine can make late


def test_failed_calls_are_repeated():
    """As often as allowed; the numbers are those of a model that never fails."""
    plain = eblime.TextExplainer(score).explain(TEXT)
    found = eblime.TextExplainer(Flaky(2), calls=eblime.Calls(retry=FAST)).explain(TEXT)

    assert_array_equal(found.posterior.mean, plain.posterior.mean)
    with pytest.raises(eblime.ModelError, match=r"failed on .*masks .*: ConnectionError: busy"):
        eblime.TextExplainer(Flaky(3), calls=eblime.Calls(retry=FAST)).explain(TEXT)
    with pytest.raises(eblime.ModelError, match="busy"):
        eblime.TextExplainer(Flaky(1)).explain(TEXT)


ROWS = np.random.default_rng(0).random((30, 3))


def first(rows):
    """A score of rows."""
    return rows[:, 0].copy()


def test_a_repeated_call_gets_the_same_batch():
    """Also after a call that changed it, as one that scales its rows in place, and failed."""
    tries = []

    def model(rows):
        rows *= 2
        tries.append(len(rows))
        if len(tries) % 2:
            raise ConnectionError("busy")
        return rows[:, 0] / 2

    calls = eblime.Calls(batch_size=30, retry=FAST)
    found = eblime.TabularExplainer(model, ROWS, n_masks=100, calls=calls).explain(ROWS[0], rng=0)
    plain = eblime.TabularExplainer(first, ROWS, n_masks=100).explain(ROWS[0], rng=0)

    assert_array_equal(found.scores, plain.scores)


def test_a_batch_that_cannot_be_copied_is_passed_on():
    """As a list of locks or open files, which a domain of another package may make."""
    batch = [threading.Lock()]
    caller = Caller(lambda given: [given is batch], Calls(retry=FAST))

    assert caller.answer(batch, 1) == [True]


@pytest.mark.parametrize(("is_async", "concurrency"), [(False, 1), (True, 1), (True, 8)])
def test_a_model_may_fill_the_same_array_again(is_async, concurrency):
    """As one that writes into a buffer, `out=`: answers are copied."""
    buffer = np.empty(5_000)

    def model(rows):
        buffer[: len(rows)] = first(rows)
        return buffer[: len(rows)]

    async def later(rows):
        return model(rows)

    calls = eblime.Calls(batch_size=20, concurrency=concurrency)
    asked = later if is_async else model
    found = eblime.TabularExplainer(asked, ROWS, n_masks=200, calls=calls).explain(ROWS[0], rng=0)
    plain = eblime.TabularExplainer(first, ROWS, n_masks=200).explain(ROWS[0], rng=0)

    assert found.prediction == plain.prediction
    assert_array_equal(found.scores, plain.scores)


def test_only_some_errors_are_repeated():
    """A programming error is not; nor is a lack of memory."""
    for error in (TypeError, MemoryError):
        model = Flaky(1, error)
        with pytest.raises(eblime.ModelError, match=error.__name__):
            eblime.TextExplainer(model, calls=eblime.Calls(batch_size=50)).explain(
                TEXT,
                calls=eblime.Calls(retry=eblime.Retry(wait=0, on=(ConnectionError, MemoryError))),
            )
        assert model.tries == 1


def test_pauses_grow():
    """By a factor of two and some chance, up to the longest."""
    retry = eblime.Retry(times=9000, wait=1.0, longest=5.0)

    for failures, base in ((1, 1.0), (2, 2.0), (3, 4.0), (9, 5.0), (5000, 5.0)):
        assert base <= retry.pause(OSError(), failures) <= min(1.1 * base, 5.0)
    assert eblime.Retry(times=9000, wait=0).pause(OSError(), 5000) == 0
    assert eblime.Retry(wait=1.0, longest=0).pause(OSError(), 1) == 0
    assert retry.pause(OSError(), 9001) is None


@pytest.mark.parametrize(("seconds", "tries"), [(0.05, 3), (None, 3), (5.0, 1), (np.inf, 1)])
def test_an_error_may_say_how_long_to_wait(seconds, tries):
    """The pause is as long as it says; what is longer than allowed is not repeated."""

    class BusyError(Exception):
        retry_after = seconds

    asked = []

    def model(batch):
        asked.append(time.perf_counter())
        raise BusyError

    caller = Caller(model, Calls(retry=eblime.Retry(times=2, wait=0.0, longest=1.0)))
    with pytest.raises(BusyError):
        caller.answer([1], 1)

    assert len(asked) == tries
    assert (np.diff(asked) >= (seconds or 0)).all()


def test_narrow_numpy_numbers_are_settings():
    """They are compared without an overflow."""
    assert 1 <= eblime.Retry(wait=np.float32(0.5)).pause(OSError(), 2) <= 1.1


def test_a_pause_that_is_negative_is_refused():
    """The message says what must hold."""
    with pytest.raises(ValueError, match="`wait` must be finite and >= 0; got -1"):
        eblime.Retry(wait=-1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"retry": -1}, "`retry` must be >= 0"),
        ({"retry": "often"}, "`retry` must be a whole number"),
        ({"timeout": 0}, "`timeout` must be finite and > 0"),
        ({"concurrency": 0}, "`concurrency` must be >= 1"),
        ({"max_calls": 0}, "`max_calls` must be >= 1"),
        ({"max_calls": 10}, "`max_calls` must be at least 15 for an input with 12 features"),
        ({"batch_size": 0}, "`batch_size` must be >= 1"),
    ],
)
def test_settings_that_cannot_work_are_refused_before_any_call(settings, message):
    """In the constructor or before the model is asked."""
    asked = []

    def model(texts):
        asked.extend(texts)
        return score(texts)

    with pytest.raises((TypeError, ValueError), match=message):
        eblime.TextExplainer(model).explain(TEXT, calls=eblime.Calls(**settings))
    assert asked == []


def test_a_budget_below_the_number_of_all_masks_is_refused_for_an_exhaustive_design():
    """Before the model is asked."""
    explainer = eblime.TextExplainer(score, design="exhaustive", calls=eblime.Calls(max_calls=100))
    with pytest.raises(ValueError, match="at least 4096, the number of all masks"):
        explainer.explain(TEXT)


def test_settings_of_explain_replace_those_of_the_explainer(tmp_path):
    """Where they differ from the default; `cache=` is a short form."""
    own = eblime.Calls(cache=tmp_path / "a.db", retry=2, max_calls=100)
    merged = own.merge(eblime.Calls(max_calls=50, concurrency=3), tmp_path / "b.db")

    assert merged == eblime.Calls(cache=tmp_path / "b.db", retry=2, max_calls=50, concurrency=3)
    explainer = eblime.TextExplainer(score, calls=own, cache=tmp_path / "c.db")
    assert explainer.loop.calls == eblime.Calls(cache=tmp_path / "c.db", retry=2, max_calls=100)
    e = eblime.TextExplainer(score, calls=eblime.Calls(max_calls=100, batch_size=10)).explain(
        TEXT, calls=eblime.Calls(max_calls=50)
    )
    assert (e.provenance["model_calls"], e.provenance["batch_size"]) == (50, 10)


def test_only_a_record_of_calls_is_accepted():
    """In the constructor and in `explain`; the message says what to write."""
    message = r"`calls` must be an eblime\.Calls, such as"
    with pytest.raises(TypeError, match=message):
        eblime.TextExplainer(score, calls={"retry": 3})
    with pytest.raises(TypeError, match=message):
        eblime.TextExplainer(score).explain(TEXT, calls=3)


def test_explain_takes_a_number_of_masks():
    """It replaces the explainer's."""
    explainer = eblime.TextExplainer(score, n_masks=500)

    assert len(explainer.explain(TEXT, n_masks=60).masks) == 60
    assert len(explainer.explain_targets(TEXT, [0], n_masks=60)[0].masks) == 60
    assert len(explainer.explain(TEXT).masks) == 500
    with pytest.raises(ValueError, match="`n_masks` must be >= 2"):
        explainer.explain(TEXT, n_masks=0)


def test_a_call_that_takes_too_long_fails():
    """The error names the masks; the hanging call keeps nothing from ending."""
    stuck = threading.Event()

    def model(texts):
        stuck.wait(60)
        return score(texts)

    with pytest.raises(eblime.ModelError, match=r"masks \d+ to .*TimeoutError: no answer within"):
        eblime.TextExplainer(model, calls=eblime.Calls(timeout=0.05)).explain(TEXT)
    stuck.set()


def test_a_timeout_may_be_longer_than_clocks_count():
    """It is then no limit, and no error."""

    def model(texts):
        time.sleep(0.01)
        return score(texts)

    caller = Caller(model, Calls(timeout=1e12))

    assert caller.answer([TEXT], 1) == score([TEXT])


def test_a_call_that_took_too_long_is_repeated():
    """Where retries are allowed."""
    tries, stuck = [], threading.Event()

    def model(texts):
        tries.append(len(texts))
        if len(tries) == 1:
            stuck.wait(60)
        return score(texts)

    found = eblime.TextExplainer(model, calls=eblime.Calls(timeout=0.5, retry=PATIENT)).explain(
        TEXT
    )
    stuck.set()

    assert_array_equal(found.scores, eblime.TextExplainer(score).explain(TEXT).scores)


def test_a_timeout_error_of_the_model_itself_is_passed_on():
    """It is not taken for ours."""

    def model(texts):
        raise TimeoutError("gateway")

    with pytest.raises(eblime.ModelError, match="gateway"):
        eblime.TextExplainer(model, calls=eblime.Calls(timeout=5)).explain(TEXT)


def test_an_answer_at_the_last_moment_is_used():
    """One that comes after the wait has ended, but before the call is given up."""

    class LateFuture(Future):
        def result(self, timeout=None):
            """Answer when the wait has ended."""
            if timeout is None:
                return super().result()
            self.set_result([0.5])
            raise NotYet

    assert wait_for(LateFuture(), 5) == [0.5]


class Gate:
    """Counts how many calls are under way, and lets them pass when enough are."""

    def __init__(self, wanted):
        self.wanted, self.now, self.most = wanted, 0, 0
        self.changed = threading.Condition()

    def __call__(self, texts):
        """Wait until `wanted` calls have been under way at once."""
        with self.changed:
            self.now += 1
            self.most = max(self.most, self.now)
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.most >= self.wanted, timeout=30)
            self.now -= 1
        return score(texts)


@pytest.mark.parametrize("batch_size", [None, 1, 7])
def test_calls_run_at_once(batch_size):
    """As many as allowed, no more, with the same numbers in the same order."""
    gate = Gate(4)
    plain = eblime.TextExplainer(score, n_masks=200).explain(TEXT)
    found = eblime.TextExplainer(
        gate, n_masks=200, calls=eblime.Calls(concurrency=4, batch_size=batch_size)
    ).explain(TEXT)

    assert gate.most == 4
    assert_array_equal(found.scores, plain.scores)
    assert_array_equal(found.posterior.mean, plain.posterior.mean)


def test_async_calls_run_at_once():
    """In one event loop."""
    now, most, loops, enough = 0, 0, set(), asyncio.Event()

    async def model(texts):
        nonlocal now, most
        now += 1
        most = max(most, now)
        loops.add(id(asyncio.get_running_loop()))
        if most >= 8:
            enough.set()
        await asyncio.wait_for(enough.wait(), 60)
        now -= 1
        return score(texts)

    explainer = eblime.TextExplainer(model, n_masks=200, calls=eblime.Calls(concurrency=8))
    found = explainer.explain(TEXT)

    assert most == 8
    assert len(loops) == 1
    assert_array_equal(found.scores, eblime.TextExplainer(score, n_masks=200).explain(TEXT).scores)


def test_async_calls_have_timeouts_and_retries():
    """A coroutine that hangs is cancelled."""
    cancelled, tries = [], []

    async def model(texts):
        tries.append(1)
        if len(tries) == 1:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.append(1)
                raise
        return score(texts)

    explainer = eblime.TextExplainer(
        model, calls=eblime.Calls(timeout=0.2, retry=PATIENT), n_masks=50
    )
    explainer.explain(TEXT)

    assert cancelled == [1]
    tries.clear()
    with pytest.raises(TimeoutError, match="no answer within"):
        Caller(explainer.model, Calls(timeout=0.05)).answer([TEXT], 1)


def test_errors_of_calls_at_once_name_their_masks():
    """And end the explanation."""

    def model(texts):
        if any("three" not in t for t in texts):
            raise ValueError("no three")
        return score(texts)

    with pytest.raises(eblime.ModelError, match=r"failed on mask \d+: ValueError: no three"):
        eblime.TextExplainer(model, calls=eblime.Calls(concurrency=3, batch_size=1)).explain(TEXT)


def test_answers_of_calls_under_way_are_kept_when_one_fails(tmp_path):
    """Also those that come after the failure."""
    both, lock, threads = threading.Barrier(2), threading.Lock(), []

    def model(texts):
        if texts[0] == TEXT:  # the first call, with the input itself
            return score(texts)
        with lock:
            threads.append(threading.current_thread())
            number = len(threads)
        both.wait(60)  # two calls are under way
        if number == 1:
            raise ValueError("busy")
        threads[0].join(60)  # so that the failure comes first
        return score(texts)

    cache = eblime.AnswerCache(tmp_path / "answers.db", model_id="busy")
    explainer = eblime.TextExplainer(
        model, calls=eblime.Calls(concurrency=3, batch_size=10), cache=cache
    )
    with pytest.raises(eblime.ModelError, match="busy"):
        explainer.explain(TEXT, calls=eblime.Calls(max_calls=30))

    assert len(cache) == 20


def test_images_are_called_at_once():
    """Every call has a batch of its own."""
    image = np.random.default_rng(0).random((16, 16))
    settings = {"segmentation": ("grid", {"rows": 3, "columns": 4}), "n_masks": 200}

    def model(batch):
        before = batch.mean(axis=(1, 2))
        time.sleep(0.002)
        return np.stack([before, batch.mean(axis=(1, 2))], axis=1)

    plain = eblime.ImageExplainer(model, **settings).explain(image, 0)
    for more in ({"concurrency": 8}, {"timeout": 30}, {"retry": 1}):
        for target in (0, 1):
            calls = eblime.Calls(**more)
            found = eblime.ImageExplainer(model, **settings).explain(image, target, calls=calls)
            assert_array_equal(found.scores, plain.scores)


def test_networks_can_have_timeouts():
    """A torch network then gets batches instead of masks, with about the same scores."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3))
    image = np.random.default_rng(0).random((8, 8)).astype(np.float32)
    settings = {"segmentation": ("grid", {"rows": 2, "columns": 3}), "n_masks": 200}
    plain = eblime.ImageExplainer(network, **settings).explain(image)
    found = eblime.ImageExplainer(
        network, **settings, calls=eblime.Calls(timeout=60, concurrency=2)
    ).explain(image)

    np.testing.assert_allclose(found.scores, plain.scores, rtol=1e-5)
    assert network.training


@pytest.mark.parametrize("together", [False, True])
def test_a_budget_ends_the_questions(together):
    """What was answered is explained, and the explanation says so."""
    asked = []

    def model(texts):
        asked.extend(texts)
        return score(texts)

    calls = eblime.Calls(max_calls=100)
    explainer = eblime.TextExplainer(model, design="bernoulli", n_masks=1000, calls=calls)
    if together:
        subjects = [explainer.subject(TEXT), explainer.subject(TEXT[4:])]
        rngs = [np.random.default_rng(0), np.random.default_rng(1)]
        found = [entry[0] for entry in explain_together(explainer.loop, subjects, 1, rngs)]
    else:
        found = [explainer.explain(TEXT)]

    assert len(asked) == 100 * len(found)
    for e in found:
        assert "max_calls" in e.provenance["stopped"]
        assert e.provenance["model_calls"] == 100
        assert len(np.unique(e.masks, axis=0)) == 100
        assert_array_equal(e.scores, score(e.scene.inputs(e.masks)))
        fitted = eblime.fit(e.masks, e.scores, e.weights)
        assert_array_equal(fitted.mean, e.posterior.mean)
    assert (
        "stopped"
        not in eblime.TextExplainer(score, calls=eblime.Calls(max_calls=5000))
        .explain(TEXT)
        .provenance
    )


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("together", [False, True])
def test_a_budget_counts_every_attempt(together, concurrency):
    """Inputs of repeated calls too: the model never gets more than it allows."""
    sent, failed, lock = [], set(), threading.Lock()

    def model(texts):
        with lock:
            sent.append(len(texts))
            if len(sent) % 3 == 1 and tuple(texts) not in failed:  # or all tries of one might fail
                failed.add(tuple(texts))
                raise ConnectionError("busy")
        return score(texts)

    calls = eblime.Calls(max_calls=100, retry=FAST, batch_size=10, concurrency=concurrency)
    explainer = eblime.TextExplainer(model, calls=calls)
    if together:
        rngs = [np.random.default_rng(k) for k in range(2)]
        subjects = [explainer.subject(TEXT), explainer.subject(TEXT[4:])]
        found = [entry[0] for entry in explain_together(explainer.loop, subjects, 1, rngs)]
    else:
        found = [explainer.explain(TEXT)]

    assert sum(sent) <= 100 * len(found)
    assert sum(e.provenance["model_calls"] for e in found) == sum(sent)
    for e in found:
        assert "max_calls" in e.provenance["stopped"]
        assert 20 < len(np.unique(e.masks, axis=0)) < 100
        assert_array_equal(e.scores, score(e.scene.inputs(e.masks)))


def test_a_budget_that_is_used_up_by_failures_names_the_failure():
    """If there are too few answers to explain."""
    calls = eblime.Calls(max_calls=40, retry=eblime.Retry(times=50, wait=0.0), batch_size=10)
    with pytest.raises(eblime.ModelError, match="ConnectionError: busy"):
        eblime.TextExplainer(Flaky(1000), calls=calls).explain(TEXT)


def test_a_budget_leaves_no_room_for_all_masks():
    """Then a sample is asked instead, not the first masks of all."""
    e = eblime.TextExplainer(score, calls=eblime.Calls(max_calls=100)).explain(
        "one two three four five six seven"
    )

    assert not e.exhaustive
    assert 0.3 < e.masks.mean() < 0.7


class Interrupted:
    """A user presses Ctrl-C at some call."""

    def __init__(self, at):
        self.left = at

    def __call__(self, texts):
        """Answer some calls."""
        self.left -= len(texts)
        if self.left < 0:
            raise KeyboardInterrupt
        return score(texts)


@pytest.mark.parametrize("text", [TEXT, "one two three four five six seven eight nine"])
def test_ctrl_c_returns_what_there_is(text):
    """If the user wants that, and there is enough."""
    calls = eblime.Calls(batch_size=10)
    e = eblime.TextExplainer(Interrupted(200), calls=calls).explain(
        text, calls=eblime.Calls(partial=True)
    )

    assert e.provenance["stopped"] == "interrupted by the user"
    assert 100 <= len(e.masks) < 1000
    assert 0.2 < e.masks.mean() < 0.8
    assert_array_equal(e.scores, score(e.scene.inputs(e.masks)))
    with pytest.raises(KeyboardInterrupt):
        eblime.TextExplainer(Interrupted(200), calls=calls).explain(text)
    with pytest.raises(KeyboardInterrupt):
        eblime.TextExplainer(Interrupted(10), calls=calls).explain(
            text, calls=eblime.Calls(partial=True)
        )


def test_scores_too_large_to_be_fitted_are_refused():
    """As `fit` and files refuse them: their squares would overflow."""
    explainer = eblime.TextExplainer(lambda texts: [1e300 * ("good" in t) for t in texts])

    with pytest.raises(eblime.ModelError, match=r"at most 1e\+100 in size; for .* is 1e\+300"):
        explainer.explain("a good film")


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        ([-1], "the input itself"),
        ([-1, 4], "the input itself and mask 4"),
        ([3, 7, 5], "masks 3 to 7"),
        (4, "a batch of 4"),
    ],
)
def test_errors_name_the_masks_of_their_batch(rows, place):
    """By number; the input itself has none, and calls that inputs share have only a size."""
    numbers = rows if isinstance(rows, int) else np.array(rows)
    n = rows if isinstance(rows, int) else len(rows)

    with pytest.raises(eblime.ModelError, match=f"for {place} it returned shape"):
        check_scores(np.zeros((n + 1, 2)), numbers)
    with pytest.raises(eblime.ModelError, match=f"2 before, and 3 for {place}"):
        check_scores(np.zeros((n, 3)), numbers, 2)
    assert str(model_error(numbers, KeyError("x"))).startswith(f"The model failed on {place}: Key")


def test_the_first_score_that_is_not_finite_is_named():
    """Its mask and its output; a huge one with the limit."""
    scores = np.zeros((3, 2))
    scores[1, 1] = np.nan
    with pytest.raises(eblime.ModelError, match="finite scores; for mask 7 output 1 is nan"):
        check_scores(scores, np.array([-1, 7, 8]))
    scores[1, 1] = -1e200
    with pytest.raises(eblime.ModelError, match=r"finite scores, at most .* for mask 7 output 1"):
        check_scores(scores, np.array([-1, 7, 8]))


def test_a_number_of_repetitions_is_a_retry() -> None:
    """0 is none, and a `Retry` is itself."""
    assert as_retry(2) == eblime.Retry(times=2)
    assert as_retry(FAST) is FAST
    assert as_retry(0) is as_retry(None) is None
