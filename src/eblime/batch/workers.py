"""Where parts are done: in the calling process, in other processes, or in actors of Ray.

The calling process writes the parts, so each engine can resume the run of the other. With Ray,
every node must see the run folder: on a shared file system, or in an object store.

A part whose worker crashes or hangs is done again, one input at a time. An input is recorded as
failed only if it crashes or hangs alone, so a worker that is killed by accident costs time but no
result. A worker that has grown is replaced. Every input has its own random generator, so no number
depends on how a part was done.
"""

from __future__ import annotations

import logging
import math
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from eblime._checks import check_choice, check_count, check_number
from eblime._threads import available_cores, free_memory, limit_threads
from eblime.batch.folder import Rows, Settings, part_numbers, refuse_difference, rows_of_input
from eblime.batch.worker import Done, Job, Worker, on_gpu
from eblime.explainers.base import BaseExplainer

Count = int | Literal["auto"]
TRIES = 3  # deaths of workers that were starting
GROWTH = 1 << 30  # bytes that a worker may grow after its first task before it is replaced
_LOOK = 0.5  # seconds between checks for workers that are late
_MEMORY = 1 << 30  # bytes that a worker with its model is expected to need


@dataclass(frozen=True, slots=True)
class Workers:
    """How many workers a run has, where they are, and how long each may take for an input.

    Parameters
    ----------
    count
        Number of workers. "auto" is as many as cores and memory allow, and one if the model runs
        on a GPU. One local worker without a timeout is the calling process.
    timeout
        Seconds per input; an input that takes longer is recorded as failed. The inputs of a part
        share this time at first. If it is too short for all of them, they are explained one at a
        time, each with the whole time. None waits without a limit.
    engine
        "local" for processes on this machine, or "ray".
    cpus, gpus
        What each Ray actor claims; by default an equal share of the cores, at most one, and no GPU.

    Examples
    --------
    >>> from eblime.batch import Workers
    >>> Workers(4, timeout=60)
    Workers(count=4, timeout=60, engine='local', cpus=None, gpus=None)
    """

    count: Count = 1
    timeout: float | None = None
    engine: str = "local"
    cpus: float | None = None
    gpus: float | None = None

    def check(self) -> None:
        """Refuse settings that cannot work."""
        if self.count != "auto":
            check_count("workers", self.count)
        if self.timeout is not None:
            check_number("timeout", self.timeout)
        check_choice("engine", self.engine, ("local", "ray"))
        if self.engine == "local" and (self.cpus is not None or self.gpus is not None):
            raise ValueError("`cpus` and `gpus` are for `engine` 'ray'.")


class WorkerCrash(RuntimeError):
    """A worker's process has ended; the message is "", or how it did in parentheses."""


def do_parts(job: Job, parts: Sequence[int], workers: Workers) -> Generator[Done]:
    """Do parts; yields each as it is done. Without parts, check a model."""
    start: Callable[[], Handle]
    if workers.engine == "ray":
        ray = _ray()
        count, share = _room(ray, len(parts), workers)
        options = {"num_cpus": share, "num_gpus": workers.gpus or 0}
        packed = ray.put(_pack(job, ray.cloudpickle.dumps))
        start = partial(_Actor, ray, options, packed, max(1, round(share)))
    else:
        count = workers.count if workers.count != "auto" else _worker_count(job, len(parts))
        if not parts or (count == 1 and workers.timeout is None):
            return Worker.start(job).do_parts(parts)
        sent = _pack(job, pickle.dumps)
        start = partial(_Process, sent, max(1, available_cores() // count))
    lanes = [_Lane(job, start, workers.timeout) for _ in range(max(1, min(count, len(parts))))]
    return _do_in_lanes(lanes, parts)


def _do_in_lanes(lanes: Sequence[_Lane], parts: Sequence[int]) -> Generator[Done]:
    """Do parts in as many threads as lanes, each of which waits for a worker."""
    idle, waiting = [*lanes], [*parts]

    def do_part(part: int) -> Done:
        lane = idle.pop()
        waiting.remove(part)
        try:
            return part, lane.do_part(part), lane.about
        finally:
            idle.append(lane)
            if not waiting:  # a worker of a lost node may need the room
                lane.drop()

    with ThreadPoolExecutor(len(lanes)) as pool:
        try:
            if not parts:
                lanes[0].begin()
            for done in as_completed([pool.submit(do_part, part) for part in parts]):
                yield done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for lane in lanes:
                lane.close()


def _pack(job: Job, dumps: Callable[[Job], bytes]) -> bytes:
    try:
        return dumps(job)
    except Exception as error:
        raise TypeError(
            "`explainer` must be picklable with several workers or a timeout; pass a function of a "
            f"module that creates it ({type(error).__name__}: {error})."
        ) from error


def _worker_count(job: Job, parts: int) -> int:
    """How many processes cores, memory and parts allow; one if the model runs on a GPU."""
    torch = sys.modules.get("torch")
    created_later = not isinstance(job.explainer, BaseExplainer)
    if on_gpu(job.explainer) or (created_later and torch is not None and torch.cuda.is_available()):
        return 1
    return max(1, min(available_cores(), (free_memory() or 8 << 30) // _MEMORY, parts))


class _Lane:
    """One worker at a time, which another one replaces if it crashes, hangs or has grown."""

    def __init__(self, job: Job, start: Callable[[], Handle], timeout: float | None) -> None:
        self._job, self._start, self._timeout = job, start, timeout
        self._alone = False  # set if parts need longer than the timeout, though no input does
        self._worker: Handle | None = None
        self._closed = False
        self.about: Settings = {}
        self._memory = 0  # bytes held after the first task

    def do_part(self, part: int) -> Rows:
        """The rows of a part, which is done one input at a time if need be."""
        late, numbers = False, part_numbers(self._job.settings, part)
        if not self._alone:
            try:
                return self._ask(*numbers)
            except (WorkerCrash, TimeoutError) as error:
                late = isinstance(error, TimeoutError)
        rows: Rows = []
        for number in numbers:
            failure: Exception
            try:
                rows += self._ask(number)
                continue
            except WorkerCrash as error:
                failure = RuntimeError(f"The worker process crashed{error} on this input.")
            except TimeoutError:
                limit = f"the timeout of {self._timeout:g} s"
                failure = TimeoutError(f"This input was not explained within {limit}.")
            name, prob = self._job.inputs.name(number), self._job.settings["prob"]
            rows += rows_of_input(number, name, failure, prob)
        self._alone = self._alone or (late and not any("error" in row for row in rows))
        return rows

    def _ask(self, *numbers: int) -> Rows:
        """The rows of inputs, by the worker or by a new one."""
        worker = self._worker or self.begin()
        try:
            rows, memory = worker.ask("do", *numbers, timeout=self._timeout)
        except (WorkerCrash, TimeoutError):
            self.drop()
            if self._closed:
                raise CancelledError from None
            raise
        self._memory = self._memory or memory
        if memory > self._memory + GROWTH:
            self.drop()
        found: Rows = rows
        return found

    def begin(self) -> Handle:
        """Start a worker and create its explainer."""
        for _ in range(TRIES):
            worker = self._worker = self._start()
            if self._closed:  # which killed no worker, or this one
                break
            try:
                about, self._memory = worker.ask("begin", *worker.sent), 0
                refuse_difference(self._job.folder, self.about, about)  # a file may have changed
                self.about = about
                return worker
            except WorkerCrash as error:
                crash = error
                self.drop()
        if self._closed:
            self.drop()
            raise CancelledError
        raise RuntimeError(
            f"Worker processes died {TRIES} times while they started{crash}. Is the call in a "
            'script under `if __name__ == "__main__":`? Does the model crash or run out of memory '
            "while it is loaded?"
        )

    def drop(self) -> None:
        """End the worker, also while it works; another one replaces it if there is more to do."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()

    def close(self) -> None:
        """End the worker, which none replaces."""
        self._closed = True
        self.drop()


class _Server:
    """What a worker does in its own process, or as an actor of Ray."""

    def __init__(self, path: Sequence[str] = ()) -> None:
        sys.path += [entry for entry in path if entry not in sys.path]  # of the calling process

    def begin(self, packed: bytes, threads: int) -> Settings:
        """Create the explainer; returns what is known of it."""
        limit_threads(threads)
        try:
            self._worker = Worker.start(pickle.loads(packed))
        except Exception as error:
            text = str(error) or type(error).__name__
            raise RuntimeError(f"The explainer cannot be created in a worker: {text}") from None
        limit_threads(threads)  # for libraries that the model has loaded, too
        return self._worker.about

    def do(self, *numbers: int) -> tuple[Rows, int]:
        """The rows of inputs, and the bytes held; 0 where the system does not report them."""
        rows, held = dict(self._worker.explain_inputs(numbers)), 0
        with suppress(OSError):
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
            held = pages * os.sysconf("SC_PAGE_SIZE")
        return [row for number in numbers for row in rows[number]], held


class _Process:
    """A process with a pipe, which ends when the process does."""

    def __init__(self, *sent: Any) -> None:
        self.sent = sent  # what the explainer is created from
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other,))
        self._process.start()
        other.close()

    def ask(self, what: str, *args: Any, timeout: float | None = None) -> Any:
        """The result of a function of `_Server`; raises `WorkerCrash` or `TimeoutError`."""
        left = math.inf if timeout is None else timeout
        try:
            self._pipe.send((what, args))
            while not self._pipe.poll(min(_LOOK, left)):
                left -= _LOOK  # while the whole run stands still, as by Ctrl-Z, no time passes
                if left <= 0:
                    raise TimeoutError
                if self._process.exitcode is not None and not self._pipe.poll():
                    raise EOFError  # a process that it started has the pipe, too
            found = self._pipe.recv()
        except (EOFError, ConnectionError):
            raise WorkerCrash(f" ({self._ending()})") from None
        if isinstance(found, Exception):
            raise found
        return found

    def _ending(self) -> str:
        self._process.join(_LOOK)
        code = self._process.exitcode
        if code is None or code >= 0:
            return f"exit code {code}"
        hint = ", perhaps out of memory" if -code == signal.SIGKILL else ""
        return f"{signal.strsignal(-code)}, signal {-code}{hint}"

    def kill(self) -> None:
        """End the process at once; an unfinished part is done again."""
        self._process.kill()
        self._process.join()


def _serve(pipe: Any) -> None:
    """In a new process: do what is asked, until the process that asks has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    server = _Server()
    with suppress(EOFError):
        while True:
            what, args = pipe.recv()
            try:
                found = getattr(server, what)(*args)
            except Exception as error:
                known = type(error).__module__ == "builtins"
                found = error if known else RuntimeError(f"{type(error).__name__}: {error}")
            pipe.send(found)


def _exit_with_parent() -> None:
    """End this process when its parent ends, even if that is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class _Actor:
    """An actor of Ray, with the functions of `_Process`."""

    def __init__(self, ray: Any, options: dict[str, float], *sent: Any) -> None:
        self.sent, self._ray = sent, ray
        self._actor = ray.remote(_Server).options(**options).remote([*sys.path, os.getcwd()])  # noqa: PTH109

    def ask(self, what: str, *args: Any, timeout: float | None = None) -> Any:
        """As that of a process."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(getattr(self._actor, what).remote(*args), timeout=timeout)
        except errors.GetTimeoutError:
            raise TimeoutError from None
        except errors.RayActorError:
            raise WorkerCrash from None
        except errors.RayTaskError as error:
            raise error.as_instanceof_cause() from None
        except errors.RayError as error:
            raise RuntimeError(f"Ray failed; the run can be resumed. {error}") from error

    def kill(self) -> None:
        """End the actor."""
        self._ray.kill(self._actor)


Handle = _Process | _Actor


def _room(ray: Any, parts: int, workers: Workers) -> tuple[int, float]:
    """How many actors, and the cores that each claims; more than the cluster has is refused."""
    has = ray.cluster_resources()
    cores, devices = float(has.get("CPU", 1.0)), float(has.get("GPU", 0.0))
    gpus = workers.gpus or 0.0
    if workers.count == "auto":
        room = cores / (workers.cpus or 1.0)
        count = max(1, min(int(min(room, devices / gpus) if gpus else room), parts))
    else:
        count = workers.count
    share = min(1.0, cores / count) if workers.cpus is None else workers.cpus
    if count * share > cores or count * gpus > devices:
        raise ValueError(
            f"The cluster has {cores:g} cores and {devices:g} GPUs: too few for {count} workers "
            f"of {share:g} cores and {gpus:g} GPUs each."
        )
    return count, share


def _ray() -> Any:
    """Ray, connected to the running cluster, or else started on this machine."""
    try:
        import ray
    except ImportError as error:
        raise ImportError("The Ray engine needs Ray: pip install 'eblime[ray]'.") from error
    if not ray.is_initialized():
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # messages about its own processes
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        try:
            ray.init(address="auto", **quiet)
        except ConnectionError:
            if os.environ.get("RAY_ADDRESS"):  # the user asked for this cluster
                raise
            ray.init(include_dashboard=False, **quiet)
    return ray
