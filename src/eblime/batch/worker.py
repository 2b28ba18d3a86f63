"""A worker explains the inputs of a part and writes the part.

The result depends on the run's settings and the part's number alone.
"""

from __future__ import annotations

import inspect
import signal
import threading
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from eblime import registry
from eblime._digest import UnknownContentError, digest_of
from eblime._repr import brief_repr, short_repr
from eblime._text import printable
from eblime._threads import available_cores, few_threads
from eblime.batch.folder import (
    Rows,
    count_failures,
    map_ahead,
    part_files,
    part_numbers,
    read_part,
    rows_of_input,
    write_part,
)
from eblime.batch.inputs import Inputs
from eblime.batch.location import Location, arrow
from eblime.engine.cache import model_name
from eblime.engine.calls import Calls
from eblime.engine.drive import Inline, drive, group_size, run, score_of_input
from eblime.engine.explain import explanations, fit_together
from eblime.engine.session import Session
from eblime.engine.settings import LoopSettings, stop_settings
from eblime.engine.targets import check_targets, scores_of
from eblime.explainers.base import BaseExplainer
from eblime.protocols import Stop, Subject
from eblime.results.explanation import Explanation
from eblime.results.storage import pack

Result = Mapping[int, Explanation] | BaseException
# the model is compared by its name and by what it returns; the others do not change a result
_LEFT_OUT = ("model", "progress", "cache", "calls")
_ASKED = 9  # inputs of a part whose predictions are compared
_NEAR = 0.02  # relative difference that another device may cause
_DIGITS = 1e-6  # of a prediction: the last digits of single precision
_SHOWN = 200  # characters of a setting
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

    def do_parts(self, parts: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Do parts; yields (part, number of failed inputs) after each.

        Threads keep a GPU busy: they read inputs ahead of it, fit and write behind it, and it goes
        on with the next part while one is finished.
        """
        if not self._keeps_gpu_busy:
            for part in parts:
                numbers = part_numbers(self.job.settings, part)
                yield part, self.write(part, self.explain_rows(numbers))
            return
        owner = {n: part for part in parts for n in part_numbers(self.job.settings, part)}
        left = Counter(owner.values())
        rows = defaultdict[int, Rows](list)
        ahead = max(2, min(8, available_cores() - 1))

        def explained(pool: Executor) -> Iterator[int]:
            for found in self.explain_inputs([*owner], pool, ahead):
                for number, some in found.items():
                    part = owner[number]
                    rows[part] += some
                    left[part] -= 1
                    if not left[part]:
                        yield part

        def write(part: int) -> tuple[int, int]:
            return part, self.write(part, sorted(rows.pop(part), key=lambda row: row["input"]))

        with ThreadPoolExecutor(ahead) as pool:
            try:
                yield from map_ahead(pool, write, explained(pool), ahead, eager=True)
            finally:
                pool.shutdown(cancel_futures=True)

    @property
    def _keeps_gpu_busy(self) -> bool:
        """Whether the model runs on a GPU, and is not asked before an input is explained."""
        scores = scores_of(self.job.settings["targets"], self.explainer.labels)
        return on_gpu(self.explainer) and not scores

    def explain_rows(self, numbers: Sequence[int]) -> Rows:
        """Explain inputs; returns their rows."""
        found = {n: rows for some in self.explain_inputs(numbers) for n, rows in some.items()}
        return [row for number in numbers for row in found[number]]

    def write(self, part: int, rows: Rows) -> int:
        """Write the rows of a part; returns how many inputs failed."""
        write_part(self.job.folder, self.job.run, part, rows, self.about)
        return count_failures(rows)

    def rows(self, number: int, found: Result) -> Rows:
        """The rows of an input; also saves its whole explanations if the run keeps them."""
        if self._keeps(number) and not isinstance(found, BaseException):
            for target, explanation in found.items():
                packed = pack(explanation)
                if self._keeps(number, len(packed)):
                    (self.job.folder / f"explanations/{number}-{target}.eblime").write(packed)
        results = found if isinstance(found, BaseException) else found.values()
        with few_threads(0):  # more threads may add numbers in another order
            return rows_of_input(number, self.job.name(number), results, self.job.settings["prob"])

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

    def prepare(self, number: int) -> tuple[LoopSettings, Subject, Any]:
        """Read an input, so that it can be perturbed."""
        x = self.explainer.input_of(self.job.inputs.get(number))
        return self.explainer.prepare(x, self.job.settings["targets"], self.loop)

    def explain_inputs(
        self, numbers: Sequence[int], pool: Executor | None = None, ahead: int = 0
    ) -> Iterator[dict[int, Rows]]:
        """The rows of inputs by number; those that share model calls come together."""
        number_of: dict[Session, int] = {}
        unread: dict[int, Result] = {}
        pool = pool or Inline()

        def sessions() -> Iterator[Session]:
            begun = map_ahead(pool, partial(_attempt, self.begin), numbers, ahead)
            for number, session in zip(numbers, begun, strict=True):
                if isinstance(session, Session):
                    number_of[session] = number
                    yield session
                else:
                    unread[number] = session

        def conclude(ended: Sequence[Session]) -> dict[int, Rows]:
            fit_together(ended)
            results = {number_of.pop(session): _attempt(explanations, session) for session in ended}
            return {number: self.rows(number, found) for number, found in results.items()}

        together = ahead or group_size(self.loop)
        ends = drive(
            sessions(),
            together=together,
            pool=pool,
            keeps=_is_kept,
        )
        for found in chain(map_ahead(pool, conclude, ends, ahead, eager=True), [{}]):
            yield found | {n: self.rows(n, unread.pop(n)) for n in [*unread]}

    def begin(self, number: int) -> Session:
        """Read an input and choose the first masks."""
        settings, subject, targets = self.prepare(number)
        return Session.begin(settings, subject, targets, self._seed(number))

    def _seed(self, number: int) -> np.random.SeedSequence:
        """The seed of an input; it depends on the seed of the run and the number alone."""
        return np.random.SeedSequence(self.job.settings["seed"], spawn_key=(number,))


def _compare_model(worker: Worker) -> None:
    """Refuse an explainer or a model that differs from the one of the first and last part.

    The model is asked about a few inputs, and must answer at least once. If its name and that of
    the model of the run are not known, one input is explained again. This also compares what the
    code of functions does not show, such as other functions that they call.
    """
    job, worker = worker.job, replace(worker, calls=replace(worker.calls, cache=None))
    files = [*part_files(job.folder).values()]
    answers, certain = [], True
    for name in dict.fromkeys([*files[:1], *files[-1:]]):
        try:
            table, about = read_part(job.folder, job.run, name)
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


def _is_kept(error: BaseException) -> bool:
    """Whether an error is recorded for its input, and the run goes on."""
    return not _ends_the_run(error)


def _are_near(one: Any, other: Any, allowed: float) -> bool:
    """Whether numbers are the same but for a small difference."""
    return len(one) == len(other) and bool((np.abs(one - other) <= allowed).all())


def _in_words(numbers: Any) -> str:
    """The first of some numbers."""
    shown = ", ".join(f"{number:.4g}" for number in numbers[:3]) or "no such output"
    return f"{shown}, ..." if len(numbers) > 3 else shown


def _predict(worker: Worker, number: int, target: int) -> Any:
    """The score of an input, (1,); empty if there is no such output."""
    settings, subject, _ = worker.prepare(number)
    return np.asarray(score_of_input(settings, subject))[target : target + 1]


def _explain_again(worker: Worker, number: int) -> Any:
    """The importances of an input."""
    session = worker.begin(number)
    run(session, progress=False)
    return np.concatenate([found.posterior.mean for found in explanations(session).values()])


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


# The explainer of a run


def check_explainer(given: Any) -> None:
    """Refuse objects that are neither an explainer nor a function that may create one."""
    if isinstance(given, BaseExplainer):
        return
    try:
        inspect.signature(given).bind()
    except ValueError:  # a function of a compiled module does not tell
        return
    except TypeError as error:
        got = type(given).__name__ + (" that needs arguments" if callable(given) else "")
        raise TypeError(
            "`explainer` must be an explainer, such as ImageExplainer or TabularExplainer, or a "
            f"function without arguments that creates one; got {got}."
        ) from error


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
    return bool(getattr(explainer.loop.model, "on_gpu", False))


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
