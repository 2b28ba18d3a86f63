"""A worker explains the inputs of a part.

The result depends on the run's settings and the part's number alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from eblime import registry
from eblime._digest import UnknownContentError, digest_of
from eblime._repr import short_repr
from eblime._threads import available_cores, few_threads
from eblime._types import FloatArray
from eblime.batch import folder as run_folder
from eblime.batch.inputs import Inputs
from eblime.batch.location import Location, arrow
from eblime.engine.cache import model_name
from eblime.engine.drive import drive, group_size, run, score_of_input
from eblime.engine.explain import explanations, fit_together
from eblime.engine.session import Session
from eblime.engine.settings import LoopSettings, stop_settings
from eblime.engine.targets import ONE_CLASS, UnchosenClassError, check_one_class, check_targets
from eblime.explainers.base import BaseExplainer
from eblime.protocols import Stop
from eblime.results.explanation import Explanation
from eblime.results.storage import pack
from eblime.scores import scores_of

Done = tuple[int, run_folder.Rows, run_folder.Settings]  # a part, its rows, and `Worker.about`
Result = Mapping[int, Explanation] | Exception
T = TypeVar("T")
# the model is compared by its name and by what it returns; the others do not change a result
_LEFT_OUT = ("model", "progress", "cache", "calls")
_FITTED = 16  # inputs that are fitted together, at least: so many are fitted fastest
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
    settings: run_folder.Settings
    folder: Location
    run: str  # the id of the run
    resumed: bool  # some parts are finished, perhaps by another model
    until: Stop | None = None  # the rule that ends the questions about an input


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Does parts: in its own process, in a Ray actor, or in the driver."""

    job: Job
    explainer: BaseExplainer
    about: run_folder.Settings  # `explainer`, its settings, and `model`, the name of its model
    loop: LoopSettings  # with batch sizes that do not depend on the machine
    kept: int  # inputs whose whole explanations are saved unless the run says otherwise
    ahead: int  # threads that keep a GPU busy: they read inputs ahead of it and fit behind it

    @classmethod
    def start(cls, job: Job) -> Worker:
        """Create the explainer, and check that its model is the one that the run began with."""
        arrow()  # imported here, where the delay does not count as time spent on an input
        explainer = make_explainer(job.explainer)
        domain = registry.get("domains", explainer.domain)
        if job.settings["keep"] and domain is None:
            raise TypeError(
                f"`keep=True` needs a registered domain; got {explainer.domain!r}. Register it "
                "with `eblime.registry.register`, or by an entry point of its package."
            )
        asked_first = scores_of(job.settings["targets"], explainer.labels)
        if job.settings["targets"] is None:
            check_one_class(explainer.loop.model, explainer.labels)
        elif not asked_first:
            check_targets(job.settings["targets"], explainer.labels)
        limited = stop_settings(explainer.loop, job.until, job.settings.get("max_masks"))
        loop = replace(limited, steady=True, calls=replace(limited.calls, partial=False))
        about = about_explainer(explainer)
        kept = 0
        if domain is not None:
            kept = _KEPT if domain.picture in ("intervals", "means") else _KEPT_VIEWS
        busy = on_gpu(explainer) and not asked_first
        ahead = max(2, min(8, available_cores() - 1)) if busy else 0
        worker = cls(job=job, explainer=explainer, about=about, loop=loop, kept=kept, ahead=ahead)
        if job.resumed:
            run_folder.refuse_difference(
                job.folder, {name: job.settings[name] for name in about}, about
            )
            _compare_model(worker)
        return worker

    def do_parts(self, parts: Sequence[int]) -> Generator[Done]:
        """Each part, as it is finished; a GPU goes on with the next one while one is finished."""
        settings, rows = self.job.settings, dict[int, run_folder.Rows]()
        for span in [parts] if self.ahead else [[part] for part in parts]:
            numbers = [n for part in span for n in run_folder.part_numbers(settings, part)]
            for number, some in self.explain_inputs(numbers):
                rows[number] = some
                part = number // settings["part_size"]
                whole = run_folder.part_numbers(settings, part)
                if len(rows) >= len(whole) and rows.keys() >= {*whole}:
                    yield part, [row for n in whole for row in rows.pop(n)], self.about

    def rows(self, number: int, found: Result) -> run_folder.Rows:
        """The rows of an input; also saves its whole explanations if the run keeps them."""
        name, prob = self.job.inputs.name(number), self.job.settings["prob"]
        if isinstance(found, Exception):
            return run_folder.rows_of_input(number, name, found, prob)
        keep = self.job.settings["keep"]
        for target, explanation in found.items():
            file = self.job.folder / f"explanations/{number}-{target}.eblime"
            if keep or (keep is None and number < self.kept):
                packed = pack(explanation)
                if keep or number < _KEPT or number * len(packed) < _KEPT_BYTES:
                    file.write(packed)
        with few_threads(0):  # more threads may add numbers in another order
            return run_folder.rows_of_input(number, name, found.values(), prob)

    def explain_inputs(self, numbers: Sequence[int]) -> Iterator[tuple[int, run_folder.Rows]]:
        """Numbers and rows of inputs, as they end; threads read and fit while a GPU is busy."""
        number_of: dict[Session, int] = {}
        unread: list[tuple[int, run_folder.Rows]] = []

        def sessions() -> Iterator[Session]:
            begun = mapped(partial(_attempt, self.begin), numbers)
            for number, session in zip(numbers, begun, strict=True):
                if isinstance(session, Session):
                    number_of[session] = number
                    yield session
                else:
                    unread.append((number, self.rows(number, session)))

        def conclude(ended: Sequence[Session]) -> list[tuple[int, run_folder.Rows]]:
            fit_together(ended)
            results = [(number_of.pop(each), _attempt(explanations, each)) for each in ended]
            return [(number, self.rows(number, found)) for number, found in results]

        together, least = self.ahead or group_size(self.loop), 1 if self.ahead else _FITTED
        with ThreadPoolExecutor(self.ahead) if self.ahead else nullcontext() as pool:
            mapped: Any = partial(run_folder.map_ahead, pool, self.ahead) if pool else map
            ends = drive(sessions(), together=together, pool=pool, keep_errors=True, least=least)
            for found in chain(mapped(conclude, ends), [[]]):
                yield from found
                while unread:
                    yield unread.pop()

    def begin(self, number: int) -> Session:
        """Read an input and choose the first masks; the seed depends on the input alone."""
        x = self.explainer.input_of(self.job.inputs.get(number))
        wanted = self.job.settings["targets"]
        chosen = 1 if wanted is None else wanted
        settings, subject, targets = self.explainer.prepare(x, chosen, self.loop)
        targets = ONE_CLASS if wanted is None else targets
        seed = np.random.SeedSequence(self.job.settings["seed"], spawn_key=(number,))
        return Session.begin(settings, subject, targets, seed)


def _compare_model(worker: Worker) -> None:
    """Refuse a model that differs from the one of the first and last part.

    The model is asked about a few inputs, and must answer at least once. If its name and that of
    the model of the run are not known, one input is explained again. This also compares what the
    code of functions does not show, such as other functions that they call.
    """
    calls = replace(worker.loop.calls, cache=None)
    job, worker = worker.job, replace(worker, loop=replace(worker.loop, calls=calls))
    files = [*run_folder.part_files(job.folder).values()]
    answers, certain = [], None not in (job.settings["model"], worker.about["model"])
    for name in dict.fromkeys([*files[:1], *files[-1:]]):
        table = run_folder.read_table(job.folder, job.run, name).to_pandas(use_threads=False)
        good = table[table["error"].isna()]
        first = good[good["input"] == good["input"].min()]
        size = float((first["mean"].abs() + 0.1 * first["prediction"].abs()).max())
        for row in good.drop_duplicates("input")[:_ASKED].itertuples():
            allowed = _NEAR * (0.1 * abs(row.prediction) + size) + 1e-9
            ask = partial(_ask_again, worker, int(row.input), int(row.target))
            what = f"prediction for {row.name!r}"
            answers.append(_is_same(worker, what, np.array([row.prediction]), ask, allowed))
        if not certain and len(first):
            certain = True
            allowed = _NEAR * float(max(first["mean"].abs().max(), first["sd"].max()))
            allowed += _DIGITS * float(first["prediction"].abs().max())
            ask = partial(_ask_again, worker, int(first["input"].iloc[0]))
            what = f"importances of {first['name'].iloc[0]!r}"
            answers.append(_is_same(worker, what, first["mean"].to_numpy(), ask, allowed))
    if answers and not any(answers):
        raise RuntimeError(
            f"The model failed on all inputs of {job.folder} that it was asked about, so it cannot "
            "be compared with the model of the run. `eblime.open_run` reads the run without a "
            "model."
        )


def _is_same(
    worker: Worker, what: str, before: FloatArray, ask: Callable[[], FloatArray], allowed: float
) -> bool:
    """Refuse a model that returns other numbers, unless it is random; False if it fails."""

    def same(one: FloatArray, other: FloatArray) -> bool:
        return len(one) == len(other) and np.allclose(one, other, rtol=0, atol=allowed)

    found = _attempt(ask)
    if isinstance(found, Exception) or same(found, before):
        return not isinstance(found, Exception)
    again = _attempt(ask)
    if not isinstance(again, Exception) and same(again, found):
        raise ValueError(
            f"{worker.job.folder} was created with another model, or with functions that do "
            f"something else: its stored {what} is {_in_words(before)}; the model now returns "
            f"{_in_words(found)}. Use another folder, or the explainer of the run."
        )
    return True


def _in_words(numbers: FloatArray) -> str:
    return ", ".join(f"{number:.4g}" for number in numbers[:3]) or "no such output"


def _ask_again(worker: Worker, number: int, target: int | None = None) -> FloatArray:
    """The importances of an input, or its score for a target, (1,): empty without such a target."""
    session = worker.begin(number)
    if target is not None:
        return score_of_input(session.settings, session.subject)[target : target + 1]
    run(session, progress=False)
    return np.concatenate([found.posterior.mean for found in explanations(session).values()])


def _attempt(call: Callable[..., T], *args: object) -> T | Exception:
    try:
        return call(*args)
    except UnchosenClassError as error:  # the same for every input
        raise ValueError(str(error)) from None
    except Exception as error:
        return error


# The explainer of a run


def make_explainer(given: object) -> BaseExplainer:
    """The explainer itself, or what a function that creates one returns."""
    made = given() if callable(given) and not isinstance(given, BaseExplainer) else given
    if not isinstance(made, BaseExplainer):
        raise TypeError(
            "`explainer` must be an explainer, such as ImageExplainer or TabularExplainer, or a "
            f"function without arguments that creates one; got {type(made).__name__}."
        )
    return made


def on_gpu(explainer: object) -> bool:
    """Whether the model of an explainer runs on a GPU; False if it is not created yet."""
    model = explainer.loop.model if isinstance(explainer, BaseExplainer) else None
    return bool(getattr(model, "on_gpu", False))


def about_explainer(explainer: BaseExplainer) -> run_folder.Settings:
    """The settings of an explainer that decide its results, as strings, and its model's name."""
    calls = explainer.loop.calls
    found = {"kind": type(explainer).__name__, "batch_size": str(calls.batch_size)}
    if calls.max_calls is not None:
        found["max_calls"] = str(calls.max_calls)
    for name in (entry.name for entry in fields(explainer) if entry.init):
        if name not in _LEFT_OUT:
            found[name] = setting_text(getattr(explainer, name))
    return {"explainer": found, "model": model_name(explainer.model, calls.cache)}


def setting_text(value: object) -> str:
    """A setting as a short string that is the same in every process, with a digest of its content.

    The digest has the code of functions. If the content cannot be read, there is none.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    words = short_repr(value)[:_SHOWN]
    with suppress(UnknownContentError):
        words += f" {digest_of(value)[:16]}"
    return words
