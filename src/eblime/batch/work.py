"""One part of a run: a function of the run's settings and the part's number alone."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from eblime._text import printable
from eblime._threads import available_cores
from eblime.batch.folder import COLUMNS, DETAILS, write_part
from eblime.batch.inputs import Inputs, generator_of
from eblime.batch.place import Place
from eblime.batch.recognise import description, recognise
from eblime.batch.together import explain_together, group_size
from eblime.explainer import ImageExplainer, TabularExplainer, TextExplainer
from eblime.explanation import Explanation
from eblime.inquiry import Inquiry, Plan
from eblime.storage import packed

__all__ = ["Explainer", "Job", "Worker", "check_explainer", "made_explainer", "on_gpu"]

Explainer = ImageExplainer | TabularExplainer | TextExplainer
Result = list[Explanation] | Exception


def check_explainer(given: Any) -> None:
    """Refuse what is neither an explainer nor a function that may make one."""
    if not (isinstance(given, Explainer) or callable(given)):
        raise TypeError(
            "`explainer` must be an ImageExplainer, TabularExplainer or TextExplainer, or a "
            f"function that makes one; got {type(given).__name__}."
        )


def made_explainer(given: Any) -> Explainer:
    """An explainer, or what a function that makes one returns."""
    check_explainer(given)
    made = given if isinstance(given, Explainer) else given()
    if not isinstance(made, Explainer):
        raise TypeError(
            "`explainer` must make an ImageExplainer, TabularExplainer or TextExplainer; "
            f"it made {type(made).__name__}."
        )
    return made


def on_gpu(explainer: Any) -> bool:
    """Whether an explainer holds a network that lives on a GPU."""
    model = getattr(explainer, "model", None)
    module: Any = getattr(model, "module", None)
    if not hasattr(module, "parameters"):
        return False
    if getattr(model, "device", "auto") not in ("auto", "cpu"):
        return True
    first = next(module.parameters(), None)
    return first is not None and first.device.type != "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A run as it travels to whoever does its parts."""

    explainer: Any  # or a function that makes it
    inputs: Inputs
    settings: Mapping[str, Any]
    folder: Place
    resumed: bool  # some parts were done before, by whom is to be seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Whoever does parts: a process, an actor, or the driver itself."""

    explainer: Explainer
    inputs: Inputs
    settings: Mapping[str, Any]
    folder: Place
    about: Mapping[str, str] = field(default_factory=dict)  # what decides the explainer's numbers

    @classmethod
    def begin(cls, job: Job) -> Worker:
        """Make the explainer, and see that its model is the one that the run began with."""
        made = made_explainer(job.explainer)
        worker = cls(
            explainer=made,
            inputs=job.inputs,
            settings=job.settings,
            folder=job.folder,
            about=description(made),
        )
        if job.resumed:
            recognise(worker)
        return worker

    def do(self, part: int) -> int:
        """Explain the inputs of a part and write them; returns how many failed."""
        size = self.settings["part_size"]
        numbers = range(part * size, min((part + 1) * size, self.settings["count"]))
        rows: dict[str, list[Any]] = {column: [] for column, _ in COLUMNS}
        failed = 0
        for number, result in self._explained(numbers):
            name = self._name(number)
            if isinstance(result, Exception):
                failed += 1
                words = " ".join(str(result).split()) or "no word"
                told = printable(f"{type(result).__name__}: {words}")
                known = {"input": number, "name": name, "error": told}
                for column, values in rows.items():
                    values.append(known.get(column))
                continue
            for explanation in result:
                _add_rows(rows, explanation, number, name, self.settings["prob"])
                if self.settings["keep"]:
                    kept = f"explanations/{number}-{explanation.target}.eblime"
                    (self.folder / kept).write(packed(explanation))
        write_part(self.folder, part, rows, self.about)
        return failed

    @property
    def inquiry(self) -> Inquiry:
        """How inputs are asked about: the same way whoever asks, and without a bar for each."""
        return replace(self.explainer.inquiry, steady=True, progress=False)

    def _name(self, number: int) -> str:
        """What people call an input; its number where it cannot be read."""
        try:
            return printable(self.inputs.name(number))
        except Exception:
            return str(number)

    def _get(self, number: int) -> Any:
        """An input; the text of a row, where texts are explained."""
        entry = self.inputs.get(number)
        if isinstance(self.explainer, TextExplainer) and not isinstance(entry, str):
            if "text" not in entry:
                known = ", ".join(map(str, entry.keys()))
                raise ValueError(f'A row must have a column "text"; it has {known}.')
            return entry["text"]
        return entry

    def _explained(self, numbers: Sequence[int]) -> Iterator[tuple[int, Result]]:
        """Explanations by number, or what went wrong; together where that can be."""
        inquiry, most = self.inquiry, 1
        if on_gpu(self.explainer):
            yield from self._pipelined(inquiry, numbers)
            return
        if self.settings["together"] and not isinstance(self.explainer, ImageExplainer):
            most = group_size(inquiry)
        scenes: dict[int, Any] = {}
        for number in numbers:
            try:
                scenes[number] = self.scene(number)
            except Exception as error:
                yield number, error
                continue
            if len(scenes) == most:
                yield from self._answered(inquiry, scenes).items()
                scenes = {}
        yield from self._answered(inquiry, scenes).items()

    def scene(self, number: int) -> Any:
        """An input, read and cut."""
        return self.explainer.scene(self._get(number))

    def _pipelined(self, inquiry: Inquiry, numbers: Sequence[int]) -> Iterator[tuple[int, Result]]:
        """For a GPU, which must not wait: inputs are cut ahead of it, lines fitted behind."""
        seed, ahead = self.settings["seed"], max(2, min(8, available_cores() - 1))

        def prepared(number: int) -> tuple[Plan, np.random.Generator, float]:
            start, rng = time.perf_counter(), generator_of(seed, number)
            return inquiry.plan(self.scene(number), rng), rng, start

        with ThreadPoolExecutor(ahead) as pool:
            todo = iter(numbers)
            plans = deque((n, pool.submit(prepared, n)) for n in islice(todo, ahead))
            found: deque[tuple[int, Future[dict[int, Explanation]]]] = deque()
            while plans:
                number, plan = plans.popleft()
                plans.extend((n, pool.submit(prepared, n)) for n in islice(todo, 1))
                try:
                    made, rng, start = plan.result()
                    asked = inquiry.ask(made, self.settings["targets"])
                    future = pool.submit(inquiry.conclude, made, asked, rng, rng, start)
                except Exception as error:
                    future = Future()
                    future.set_exception(error)
                found.append((number, future))
                if len(found) > ahead:
                    yield _settled(*found.popleft())
            for entry in found:
                yield _settled(*entry)

    def _answered(self, inquiry: Inquiry, scenes: Mapping[int, Any]) -> dict[int, Result]:
        """Scenes in few model calls; each by itself where that fails, or where there is one."""
        targets, seed = self.settings["targets"], self.settings["seed"]
        if len(scenes) > 1:
            rngs = [generator_of(seed, number) for number in scenes]
            try:
                made = explain_together(inquiry, list(scenes.values()), targets, rngs)
                return {
                    number: list(entry.values()) for number, entry in zip(scenes, made, strict=True)
                }
            except Exception:  # whose fault it was shows when each is asked about by itself
                pass
        found: dict[int, Result] = {}
        for number, scene in scenes.items():
            try:
                made_alone = inquiry.explain(scene, targets, generator_of(seed, number))
                found[number] = list(made_alone.values())
            except Exception as error:
                found[number] = error
        return found


def _settled(number: int, future: Future[dict[int, Explanation]]) -> tuple[int, Result]:
    """What came of an input."""
    try:
        return number, list(future.result().values())
    except Exception as error:
        return number, error


def _add_rows(
    rows: dict[str, list[Any]], explanation: Explanation, number: int, name: str, prob: float
) -> None:
    """One more row for each feature."""
    post = explanation.posterior
    count = post.n_features
    spread = post.columns(prob)
    shared = {
        "input": number,
        "name": name,
        "target": explanation.target,
        "label": explanation.label,
        "prediction": explanation.prediction,
        "r2": post.r2,
        "ess": post.ess,
        "n_masks": post.n_masks,
        "error": None,
    }
    for column, value in shared.items():
        rows[column] += [value] * count
    columns = getattr(explanation.scene, "columns", explanation.features)
    rows["feature"] += map(str, columns)
    rows["place"] += range(count)
    rows["mean"] += post.mean.tolist()
    for column in ("sd", "low", "high", "prob_positive"):
        rows[column] += spread[column].tolist() if spread else [None] * count
    details = explanation.details()
    for column in DETAILS:
        rows[column] += details.get(column, [None] * count)
