"""A worker explains the inputs of a part and writes the part.

The result depends on the run's settings and the part's number alone.
"""

from __future__ import annotations

import inspect
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import islice, pairwise
from typing import Any

import numpy as np

from eblime import registry
from eblime._digest import UnknownContentError, digest_of
from eblime._repr import brief_repr, short_repr
from eblime._text import printable
from eblime._threads import available_cores, few_threads
from eblime._types import RNGLike
from eblime.batch.folder import (
    Rows,
    count_failures,
    entry_rows,
    part_files,
    part_numbers,
    read_part,
    write_part,
)
from eblime.batch.inputs import Inputs, has_rows, is_sparse
from eblime.batch.location import Location, arrow
from eblime.engine.cache import model_name
from eblime.engine.calls import Caller, Calls, call_model
from eblime.engine.loop import (
    Talk,
    advance,
    aim,
    converse,
    explain,
    first_question,
    reply_from,
    score_of_input,
    send,
)
from eblime.engine.questions import Draft, Question, Reply, open_books
from eblime.engine.settings import LoopSettings, stop_settings
from eblime.engine.state import State
from eblime.engine.targets import check_targets, scores_of
from eblime.explainers.base import BaseExplainer
from eblime.protocols import DeviceModel, RenderedScene, Stop, Subject
from eblime.results.explanation import Explanation
from eblime.results.storage import pack
from eblime.stopping.rule import FIRST

__all__ = [
    *("Job", "Worker", "check_explainer", "explain_together", "explainer_settings", "group_size"),
    *("on_gpu", "setting_text", "with_python_handler"),
]

Result = list[Explanation] | BaseException
# the model is compared by its name and by what it returns; the others do not change a result
_LEFT_OUT = ("model", "progress", "cache", "calls")
_ASKED = 9  # inputs of a part whose predictions are compared
_NEAR = 0.02  # relative difference that another device may cause
_DIGITS = 1e-6  # of a prediction: the last digits of single precision
_SHOWN = 200  # characters of a setting
_ROWS = 32_768  # perturbed inputs in one call, at most
_INPUTS = 256  # inputs that share a call, at most
_IN_TURN = 8  # with a stop rule: as many times more inputs take turns, so that calls stay full
_KEPT = 100  # inputs whose whole explanations are saved without being asked for
_KEPT_VIEWS = 1_000  # the same for inputs to look at, such as photos and texts,
_KEPT_BYTES = 1 << 30  # while all up to this one would have fewer bytes if they were as large


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A run as it is sent to its workers."""

    explainer: Any  # or a function that creates it
    inputs: Inputs
    settings: Mapping[str, Any]
    folder: Location
    run: str  # the id of the run
    resumed: bool  # some parts are finished, perhaps by another model
    timeout: float | None = None  # seconds per input
    until: Stop | None = None  # the rule that ends the questions about an input

    def name(self, number: int) -> str:
        """The name of an input; its number if the name cannot be read."""
        try:
            return printable(self.inputs.name(number))
        except Exception:
            return str(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Does parts: in its own process, in a Ray actor, or in the driver."""

    job: Job
    explainer: BaseExplainer
    about: Mapping[str, str]  # the settings of the explainer
    calls: Calls  # those of the explainer, with the stored answers of its model

    @classmethod
    def start(cls, job: Job) -> Worker:
        """Create the explainer, and check that its model is the one that the run began with."""
        arrow()  # imported here, where the delay does not count as time spent on an input
        explainer = make_explainer(job.explainer)
        if job.settings["keep"] and explainer.domain not in registry.names("domains"):
            raise TypeError(
                f"`keep=True` needs a registered domain; got {explainer.domain!r}. Register it "
                "with `eblime.registry.register`, or by an entry point of its package."
            )
        calls = replace(explainer.loop.calls, partial=False)
        about = explainer_settings(explainer)
        if (name := model_name(explainer.model, calls.cache)) is not None:
            about["model"] = name
        worker = cls(job=job, explainer=explainer, about=about, calls=calls)
        check_targets(job.settings["targets"], explainer.labels)
        stop_settings(explainer.loop, job.until, job.settings.get("max_masks"))
        if job.resumed:
            _compare_model(worker)
        return worker

    def do(self, part: int) -> int:
        """Explain the inputs of a part and write them; returns how many failed."""
        [(_, failed)] = self.do_parts([part])
        return failed

    def do_parts(
        self, parts: Sequence[int], begin: Callable[[int], object] = lambda part: None
    ) -> Iterator[tuple[int, int]]:
        """Do parts; yields (part, number of failed inputs) after each, and calls `begin` before."""
        scores = scores_of(self.job.settings["targets"], self.explainer.labels)
        if on_gpu(self.explainer) and not scores:  # these ask about each input first
            yield from self._pipeline(parts, begin)
            return
        for part in parts:
            begin(part)
            rows = self.explain_rows(part_numbers(self.job.settings, part))
            yield part, self.write(part, rows)

    def explain_rows(self, numbers: Sequence[int]) -> Rows:
        """Explain inputs; returns their rows."""
        return [row for found in self.explain_inputs(numbers) for row in self.rows(found)]

    def write(self, part: int, rows: Rows) -> int:
        """Write the rows of a part; returns how many inputs failed."""
        write_part(self.job.folder, self.job.run, part, rows, self.about)
        return count_failures(rows)

    def rows(self, found: Mapping[int, Result]) -> Rows:
        """The rows of inputs; also saves whole explanations if the run keeps them."""
        for number, result in found.items():
            if self._keeps(number) and not isinstance(result, BaseException):
                for explanation in result:
                    packed = pack(explanation)
                    if self._keeps(number, len(packed)):
                        kept = f"explanations/{number}-{explanation.target}.eblime"
                        (self.job.folder / kept).write(packed)
        entries = [(number, self.job.name(number), result) for number, result in found.items()]
        with few_threads(0):  # more threads may add numbers in another order
            return entry_rows(entries, self.job.settings["prob"])

    def _keeps(self, number: int, size: int = 0) -> bool:
        """Whether whole explanations of an input, of `size` bytes, are saved."""
        keep = self.job.settings["keep"]
        if keep is not None:
            return bool(keep)
        domain = registry.get("domains", self.explainer.domain)
        if domain is None or number < _KEPT:
            return domain is not None
        shown = domain.picture not in ("intervals", "values")
        return shown and number < _KEPT_VIEWS and number * size < _KEPT_BYTES

    @property
    def loop(self) -> LoopSettings:
        """The settings of the loop, with batch sizes that do not depend on the machine."""
        settings = self.job.settings
        limited = stop_settings(self.explainer.loop, self.job.until, settings.get("max_masks"))
        return replace(limited, steady=True, calls=self.calls)

    def subject(self, number: int) -> Subject:
        """Read an input, so that it can be perturbed."""
        return self.explainer.subject(self.explainer.input_of(self.job.inputs.get(number)))

    def explain_inputs(self, numbers: Sequence[int]) -> Iterator[dict[int, Result]]:
        """Explanations by number, or errors; inputs that share model calls come together."""
        most = group_size(self.loop)
        group: dict[int, Subject | BaseException] = {}
        count = 0  # of subjects
        large: dict[type, bool] = {}  # whether scenes have arrays, too large to share a call
        for number in numbers:
            group[number] = subject = _attempt(self.subject, number)
            if isinstance(subject, BaseException):
                continue
            count += 1
            kind = type(subject.scene)
            if kind not in large:  # the check itself is slow
                large[kind] = isinstance(subject.scene, RenderedScene)
            if large[kind] or count == most:
                yield self._explain_group(group)
                group, count = {}, 0
        if group:
            yield self._explain_group(group)

    def _explain_group(self, group: Mapping[int, Subject | BaseException]) -> dict[int, Result]:
        """Explain inputs with shared model calls; one at a time if that fails.

        Those that could not be read have an error in place of their subject, and keep it.
        """
        targets, loop = self.job.settings["targets"], self.loop
        subjects = {n: s for n, s in group.items() if not isinstance(s, BaseException)}

        def explain_alone(number: int) -> list[Explanation]:
            rng = self._seed(number)
            return [*explain(loop, subjects[number], targets, rng, progress=False).values()]

        found: dict[int, Result] = {n: s for n, s in group.items() if isinstance(s, BaseException)}
        if len(subjects) > 1:
            rngs = [self._seed(number) for number in subjects]
            made = _attempt(explain_together, loop, list(subjects.values()), targets, rngs)
            if not isinstance(made, BaseException):
                pairs = zip(subjects, made, strict=True)
                found |= {number: list(entry.values()) for number, entry in pairs}
        for number in subjects:
            if number not in found:
                found[number] = _attempt(explain_alone, number)
        return {number: found[number] for number in group}

    def _seed(self, number: int) -> np.random.SeedSequence:
        """The seed of an input; it depends on the seed of the run and the number alone."""
        return np.random.SeedSequence(self.job.settings["seed"], spawn_key=(number,))

    def _pipeline(
        self, parts: Sequence[int], begin_part: Callable[[int], object]
    ) -> Iterator[tuple[int, int]]:
        """Keep a GPU busy: threads read inputs ahead of it, and fit and write behind it.

        Only this thread asks the model. It goes on with the next part while one is finished.
        """
        loop, ahead = self.loop, max(2, min(8, available_cores() - 1))
        following = dict(pairwise(parts))

        def begin(number: int) -> tuple[Subject, Talk, Question]:
            subject = self.subject(number)
            talk = converse(loop, subject, self.job.settings["targets"], self._seed(number))
            return subject, talk, first_question(talk)

        def conclude(number: int, talk: Talk, reply: Reply) -> Question | Rows:
            found = advance(talk, reply)
            if isinstance(found, Question):  # of a design that asks in rounds
                return found
            return self.rows({number: list(found.values())})

        def ask(number: int, begun: Future[tuple[Subject, Talk, Question]]) -> Future[Any]:
            subject, talk, question = begun.result()
            return pool.submit(conclude, number, talk, reply_from(loop, subject, question))

        def finish(
            number: int, begun: Future[tuple[Subject, Talk, Question]], step: Future[Any]
        ) -> Rows:
            found, (subject, talk, _) = step.result(), begun.result()
            while isinstance(found, Question):
                found = conclude(number, talk, reply_from(loop, subject, found))
            rows: Rows = found
            return rows

        def write(part: int, rows: Rows) -> tuple[int, int]:
            failed = self.write(part, rows)
            if part in following:
                begin_part(following[part])
            return part, failed

        for part in parts[:1]:
            begin_part(part)
        todo = ((part, n) for part in parts for n in part_numbers(self.job.settings, part))
        with ThreadPoolExecutor(ahead) as pool:
            reading: deque[tuple[int, int, Any]] = deque()
            fitting: deque[tuple[int, int, Any, Any]] = deque()
            writing: deque[Future[tuple[int, int]]] = deque()
            rows: Rows = []
            try:
                while True:
                    wanted = islice(todo, ahead - len(reading))
                    reading.extend((*entry, pool.submit(begin, entry[1])) for entry in wanted)
                    if not reading and not fitting:
                        break
                    if reading:
                        part, number, begun = reading.popleft()
                        fitting.append((part, number, begun, _attempt(ask, number, begun)))
                    if not reading or len(fitting) > ahead:
                        part, number, begun, step = fitting.popleft()
                        failed = isinstance(step, BaseException)
                        found = step if failed else _attempt(finish, number, begun, step)
                        failed = isinstance(found, BaseException)
                        rows += self.rows({number: found}) if failed else found
                        if number == part_numbers(self.job.settings, part)[-1]:
                            writing.append(pool.submit(write, part, rows))
                            rows = []
                    while writing and writing[0].done():
                        yield writing.popleft().result()
                for last in writing:
                    yield last.result()
            finally:
                pool.shutdown(cancel_futures=True)


def _compare_model(worker: Worker) -> None:
    """Refuse an explainer or a model that differs from the one of the first and last part.

    The model is asked about a few inputs, and must answer at least once. If its name and that of
    the model of the run are not known, one input is explained again. This also compares what the
    code of functions does not show, such as other functions that they call.
    """
    job = worker.job
    files = [*part_files(job.folder).items()]
    answers, certain = [], True
    for part, name in dict.fromkeys([*files[:1], *files[-1:]]):
        try:
            table, about = read_part(job.folder, job.run, part, name)
        except (OSError, ValueError):  # a damaged part is done again
            continue
        for setting in sorted({*about, *worker.about}):
            before, now = about.get(setting), worker.about.get(setting)
            if before != now and not (setting == "model" and None in (before, now)):
                raise ValueError(
                    f"{job.folder} was created with {setting}={before}; this call has "
                    f"{setting}={now}. Use another folder, or the explainer of the run."
                )
        good = table[table["error"].isna()]
        first = good[good["input"] == good["input"].min()]
        size = float((first["mean"].abs() + 0.1 * first["prediction"].abs()).max())
        for row in good.drop_duplicates("input")[:_ASKED].itertuples():
            allowed = _NEAR * (0.1 * abs(row.prediction) + size) + 1e-9
            ask = partial(_predict, worker, int(row.input), int(row.target))
            what = f"prediction for {row.name!r}"
            answers.append(_is_same(worker, what, np.array([row.prediction]), ask, allowed))
        if certain and len(first) and None in (about.get("model"), worker.about.get("model")):
            certain = False
            allowed = _NEAR * float(max(first["mean"].abs().max(), first["sd"].max()))
            allowed += _DIGITS * float(first["prediction"].abs().max())
            ask = partial(_explain_again, worker, int(first["input"].iloc[0]))
            what = f"importances of {first['name'].iloc[0]!r}"
            answers.append(_is_same(worker, what, first["mean"].to_numpy(), ask, allowed))
    if answers and not any(answers):
        raise RuntimeError(
            f"The model failed on all inputs of {job.folder} that it was asked about, so it cannot "
            "be compared with the model of the run. `eblime.open_run` reads the run without a "
            "model."
        )


def _is_same(
    worker: Worker, what: str, before: Any, ask: Callable[[], Any], allowed: float
) -> bool:
    """Refuse a model that returns other numbers, unless it is random; False if it fails."""
    found = _attempt(ask)
    if isinstance(found, BaseException) or _are_near(found, before, allowed):
        return not isinstance(found, BaseException)
    again = _attempt(ask)
    if not isinstance(again, BaseException) and _are_near(again, found, allowed):
        raise ValueError(
            f"{worker.job.folder} was created with another model, or with functions that do "
            f"something else: its stored {what} is {_in_words(before)}; the model now returns "
            f"{_in_words(found)}. Use another folder, or the explainer of the run."
        )
    return True


def _are_near(one: Any, other: Any, allowed: float) -> bool:
    """Whether numbers are the same but for a small difference."""
    return len(one) == len(other) and bool((np.abs(one - other) <= allowed).all())


def _in_words(numbers: Any) -> str:
    """The first of some numbers."""
    shown = ", ".join(f"{number:.4g}" for number in numbers[:3]) or "no such output"
    return f"{shown}, ..." if len(numbers) > 3 else shown


def _predict(worker: Worker, number: int, target: int) -> Any:
    """The score of an input, (1,); empty if there is no such output."""
    loop = replace(worker.loop, calls=replace(worker.loop.calls, cache=None))
    loop, subject, _ = aim(loop, worker.subject(number), worker.job.settings["targets"])
    return np.asarray(score_of_input(loop, subject))[target : target + 1]


def _explain_again(worker: Worker, number: int) -> Any:
    """The importances of an input, without stored answers."""
    [found] = replace(worker, calls=replace(worker.calls, cache=None)).explain_inputs([number])
    result = found[number]
    if isinstance(result, BaseException):
        raise result
    return np.concatenate([explanation.posterior.mean for explanation in result])


def _attempt(call: Callable[..., Any], *args: Any) -> Any:
    """The result of a call, or its error; a model that calls `sys.exit` has failed, too."""
    try:
        return call(*args)
    except BaseException as error:
        if _ends_the_run(error):
            raise
        return error


def _ends_the_run(error: BaseException | None) -> bool:
    """Whether an error ends the whole call: it comes from the handler of a signal, such as Ctrl-C.

    A model that raises `KeyboardInterrupt` or `SystemExit` itself has failed.
    """
    if error is None or isinstance(error, Exception):
        return False
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = {getattr(handler, "__code__", None) for handler in handlers} - {None}
    if any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__)):
        return True
    return _ends_the_run(error.__context__)


@contextmanager
def with_python_handler() -> Iterator[None]:
    """Handle Ctrl-C by a function that `_ends_the_run` finds in the traceback of an error."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# Several inputs in one model call


def group_size(settings: LoopSettings) -> int:
    """How many inputs may share a call.

    1 if the user's batch size has no room for two, or if several calls are under way at once: an
    input is then split among them.
    """
    if settings.calls.concurrency > 1:
        return 1
    first = settings.n_masks if settings.until is None else FIRST
    together = (settings.calls.batch_size or _ROWS) // (first + 1)
    return min(max(1, together if settings.until is None else together * _IN_TURN), _INPUTS)


def explain_together(
    settings: LoopSettings,
    subjects: Sequence[Subject],
    targets: Any,
    rngs: Sequence[RNGLike],
) -> list[dict[int, Explanation]]:
    """Explain several inputs with few model calls.

    The numbers are the same as explaining each input alone: every input has its own generator, and
    the score of a row must not depend on the other rows of its batch. A call is no larger
    than memory has room for. Inputs that are asked about in rounds take turns: a call has the next
    questions of as many inputs as fit in, and an input that needs fewer rounds leaves earlier.
    """
    talks = [
        converse(settings, subject, targets, rng)
        for subject, rng in zip(subjects, rngs, strict=True)
    ]
    waiting = {k: first_question(talk) for k, talk in enumerate(talks)}
    found: dict[int, dict[int, Explanation]] = {}
    while waiting:
        numbers = _next_group(settings, waiting)
        questions = [waiting.pop(k) for k in numbers]
        if len(numbers) == 1:  # in batches of its own
            replies = [reply_from(settings, subjects[numbers[0]], questions[0])]
        else:
            replies = _replies(settings, questions)
        unfitted: dict[int, State] = {}
        for k, reply in zip(numbers, replies, strict=True):
            step = send(talks[k], reply)
            if isinstance(step, Question):
                waiting[k] = step  # behind those that wait already
            elif isinstance(step, State):
                unfitted[k] = step
            else:
                found[k] = step
        for k, state in zip(unfitted, State.fit_all([*unfitted.values()]), strict=True):
            end = advance(talks[k], state)
            assert not isinstance(end, Question)
            found[k] = end
    return [found[k] for k in range(len(subjects))]


def _next_group(settings: LoopSettings, waiting: Mapping[int, Question]) -> list[int]:
    """Numbers of the inputs that share the next call: the first, and others as long as they fit."""
    group: list[int] = []
    total = 0
    for k, question in waiting.items():
        size = len(question.rows) + 1
        room = min((settings.calls.batch_size or _ROWS), question.neighbourhood.room)
        if not group or total + size <= room:
            group.append(k)
            total += size
    return group


def _replies(settings: LoopSettings, questions: Sequence[Question]) -> list[Reply]:
    """The replies to several questions, from few calls; stored answers are not asked again."""
    with open_books(settings) as book_of:
        drafts = [Draft(question, book_of(question.neighbourhood)) for question in questions]
        asking = [draft for draft in drafts if len(draft.again) or len(draft.asked)]
        replied = dict(zip(map(id, asking), _enter_scores(settings, asking), strict=True))
    sent = [replied.get(id(draft), (0, 0)) for draft in drafts]
    return [
        draft.reply(batch_size=size, calls=calls)
        for draft, (size, calls) in zip(drafts, sent, strict=True)
    ]


def _enter_scores(settings: LoopSettings, drafts: Sequence[Draft]) -> list[tuple[int, int]]:
    """Ask what the drafts ask about; returns the size of each, and its inputs in all attempts."""
    rows = [np.concatenate([draft.again, draft.asked]) for draft in drafts]
    batches = [d.question.neighbourhood.inputs(some) for d, some in zip(drafts, rows, strict=True)]
    try:
        joined = [(_join(batches), drafts)] if batches else []
    except (TypeError, ValueError):  # such as arrays of different lengths
        joined = [(batch, [draft]) for batch, draft in zip(batches, drafts, strict=True)]
    found = []
    for batch, group in joined:
        sizes = [len(draft.again) + len(draft.asked) for draft in group]
        tries = [
            draft.question.budget // size
            for draft, size in zip(group, sizes, strict=True)
            if draft.question.budget is not None
        ]
        limit = sum(sizes) * min(tries) if tries else sys.maxsize
        caller = Caller(settings.model, settings.calls, limit)
        scores = call_model(caller, batch, sum(sizes))
        for draft, some in zip(group, np.split(scores, np.cumsum(sizes)[:-1]), strict=True):
            n = len(draft.again)
            draft.check_again(some[:n])
            draft.enter(slice(0, len(draft.asked)), some[n:])
            found.append((len(some), len(some) * caller.sent // sum(sizes)))
    return found


def _join(batches: Sequence[Any]) -> Any:
    """Batches of the same type as one batch."""
    first = batches[0]
    if len(batches) == 1:
        return first
    if isinstance(first, list):
        return [entry for batch in batches for entry in batch]
    if isinstance(first, np.ndarray):
        return np.concatenate(batches)
    if is_sparse(first):
        from scipy import sparse

        return sparse.vstack(batches, format="csr")
    if has_rows(first):
        import pandas as pd

        return pd.concat(batches, ignore_index=True)
    import narwhals as nw

    return nw.concat([nw.from_native(batch) for batch in batches], how="vertical").to_native()


# The explainer of a run


def check_explainer(given: Any) -> None:
    """Refuse objects that are neither an explainer nor a function that may create one."""
    if isinstance(given, BaseExplainer):
        return
    got = type(given).__name__
    if callable(given):
        try:
            inspect.signature(given).bind()
            return
        except ValueError:  # a function of a compiled module does not tell
            return
        except TypeError:  # as a model
            got += " that needs arguments"
    raise TypeError(
        "`explainer` must be an explainer, such as ImageExplainer or TabularExplainer, or a "
        f"function without arguments that creates one; got {got}."
    )


def make_explainer(given: Any) -> BaseExplainer:
    """The explainer itself, or what a function that creates one returns."""
    check_explainer(given)
    made = given if isinstance(given, BaseExplainer) else given()
    if not isinstance(made, BaseExplainer):
        raise TypeError(
            "`explainer` must create an explainer, such as ImageExplainer or TabularExplainer; "
            f"it returned {type(made).__name__}."
        )
    return made


def on_gpu(explainer: Any) -> bool:
    """Whether the model of an explainer runs on a GPU; False if it is not created yet."""
    if not isinstance(explainer, BaseExplainer):
        return False
    model = explainer.loop.model
    return isinstance(model, DeviceModel) and model.on_gpu


def explainer_settings(explainer: Any) -> dict[str, str]:
    """The settings of an explainer that decide its results, except its model, as strings."""
    calls = explainer.loop.calls
    found = {"kind": type(explainer).__name__, "batch_size": str(calls.batch_size)}
    if calls.max_calls is not None:
        found["max_calls"] = str(calls.max_calls)
    for entry in fields(explainer):
        value = getattr(explainer, entry.name)
        if entry.name == "labels" and value is not None:
            named = sorted(value.items()) if isinstance(value, Mapping) else enumerate(value)
            value = [(int(column), str(label)) for column, label in named]
        if entry.name == "settings":  # of a domain
            value = dict(sorted(value.items()))
        if entry.init and entry.name not in _LEFT_OUT:
            found[entry.name] = setting_text(value)
    return found


def setting_text(value: Any) -> str:
    """A setting as a short string that is the same in every process, with a digest of its content.

    The digest has the code of functions. If the content cannot be read, there is none.
    """
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, str) and len(value) <= _SHOWN:
        return repr(value)
    try:
        digest = digest_of(value, code=True)[:16]
    except UnknownContentError:
        digest = ""
    words = short_repr(value)
    return f"{words if len(words) <= _SHOWN else brief_repr(value)} {digest}".strip()
