"""`explain_many`: a run from its inputs to its folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from eblime._checks import check_choice, check_count, check_level
from eblime._progress import Progress, progress_reporter
from eblime._text import csv_text
from eblime.batch.folder import (
    check_manifest,
    done_parts,
    forget_parts,
    missing_parts,
    part_names,
    read_manifest,
    remove_temporary,
)
from eblime.batch.here import remove_marker
from eblime.batch.inputs import Inputs, Stream, as_inputs
from eblime.batch.local import Workers, run_local
from eblime.batch.place import Place
from eblime.batch.recognise import description
from eblime.batch.results import Run
from eblime.batch.work import Job, check_explainer, check_finished
from eblime.explainers.base import BaseExplainer

__all__ = ["explain_many"]

ENGINES = ("local", "ray")
_PARTS = 10_000  # a run has no more than so many, where their size is ours to choose


def explain_many(
    explainer: Any,
    inputs: Any,
    out: str | os.PathLike[str],
    *,
    targets: int | Sequence[int | str] = 1,
    seed: int = 0,
    engine: str = "local",
    workers: Workers = 1,
    cpus_per_worker: float | None = None,
    gpus_per_worker: float | None = None,
    part_size: int | None = None,
    prob: float = 0.95,
    keep: bool = False,
    together: bool = True,
    max_failures: int | None = None,
    timeout: float | None = None,
    retry: bool = False,
    about: str | Mapping[str, Any] | None = None,
    progress: Progress = None,
) -> Run:
    """Explain many inputs into a folder; called again, it does what is not done yet.

    Other settings, inputs or labels, or a model with other predictions, are refused, also if the
    run is finished.

    Parameters
    ----------
    explainer
        An explainer, or a function without arguments that makes one: with several workers each
        process makes its own, so that a model on a GPU need not travel.
    inputs
        A folder of photos or .txt files, a .csv, .tsv, .parquet or .jsonl file, a folder of
        .parquet files, an address of such in an object store, a frame, an array, any sequence,
        anything to iterate over, or a Ray Dataset. What cannot be read by number is laid down in
        the folder of the run first, a chunk at a time.
    out
        The folder of the run, or an address such as s3://bucket/run.
    targets
        How many of the highest outputs to explain, or which.
    seed
        Input i draws from `SeedSequence(seed, spawn_key=(i,))`: neither order nor workers nor
        restarts change a number.
    engine
        "local" processes, or "ray".
    workers
        How many; "auto" is as many as cores and memory have room for, one where a GPU does the
        work. One worker of the local engine is this process.
    cpus_per_worker, gpus_per_worker
        What an actor claims on Ray; None leaves Ray Data room to work, and no GPU.
    part_size
        Inputs in a part, the unit that is done or not; None is 8 images, or 64 rows or texts, more
        where there are very many.
    prob
        Level of the intervals.
    keep
        Whether to save whole explanations beside the rows.
    together
        Let the perturbed rows or texts of several inputs share model calls.
    max_failures
        Stop when more inputs than that have failed, also in earlier calls; None goes on.
    timeout
        Seconds for one input; one that takes longer is recorded as failed. Inputs that share model
        calls get that time together; where it is too short they are done one by one. Needs worker
        processes: with a timeout, `workers=1` is one beside this process. None waits for ever.
    retry
        Do parts with failures again, where what made them fail may have gone; files that were
        broken may be others then.
    about
        What this run is, in your words, or a dictionary: resuming under another is refused.
    progress
        None shows a bar on a terminal when the work takes longer than a second; True always, False
        never; or a function of (done, total).
    """
    check_explainer(explainer)
    check_choice("engine", engine, ENGINES)
    do_parts, check = _engine(engine, cpus_per_worker, gpus_per_worker)
    if not (isinstance(seed, (int, np.integer)) and seed >= 0):
        raise ValueError(f"`seed` must be a whole number >= 0; got {seed!r}.")
    if workers != "auto":
        check_count("workers", workers)
    if part_size is not None:
        check_count("part_size", part_size)
    if timeout is not None and not (isinstance(timeout, (int, float)) and 0 < timeout < np.inf):
        raise ValueError(f"`timeout` must be a number of seconds > 0, or None; got {timeout!r}.")
    settings = {
        "explainer": _described(explainer),
        "targets": _plain_targets(targets),
        "seed": int(seed),
        "prob": check_level("prob", prob),
        "keep": bool(keep),
        "together": bool(together),
        "about": dict(about) if isinstance(about, Mapping) else about,
    }
    given = as_inputs(inputs)
    folder = Place.of(out)
    folder.make()
    with folder.locked():
        listed = given.laid_down(folder) if isinstance(given, Stream) else given
        size = part_size or _part_size(folder, listed)
        settings |= {"count": len(listed), "inputs": listed.fingerprint, "part_size": size}
        check_manifest(folder, settings, new_inputs=retry)
        run = Run(place=folder)
        if retry:
            done = done_parts(folder, range(-(-len(listed) // size)))
            forget_parts(folder, [part for part, failures in done.items() if failures])
        failed = 0
        job = Job(
            explainer=explainer,
            inputs=listed,
            settings=settings,
            folder=folder,
            resumed=bool(part_names(folder)),
            timeout=timeout,
        )
        with (
            closing(_work(do_parts, check, job, workers)) as work,
            progress_reporter(progress, len(listed), unit="input") as report,
        ):
            for finished, failed in work:
                report(finished, failed)
                if max_failures is not None and failed > max_failures:
                    raise RuntimeError(
                        f"{failed} inputs have failed, more than the {max_failures} allowed; "
                        f"open_run({str(folder)!r}).failures() lists them. With retry=True "
                        "(--retry) they are tried again."
                    )
        log = folder / "failures.csv"
        if failed:
            log.write(csv_text(run.failures()).encode())
        elif log.kind() == "file":  # of an earlier call
            log.remove()
    return run


def _work(
    engine: Any, check: Callable[[Job], None], job: Job, workers: Workers
) -> Generator[tuple[int, int]]:
    """Do the parts that are missing; yields how many inputs are done, and how many failed.

    If none is missing, `check` refuses a model that is not the one of the run.
    """
    count, size = job.settings["count"], job.settings["part_size"]
    parts = range(-(-count // size))
    done = done_parts(job.folder, parts)
    failed = sum(done.values())
    finished = sum(min(size, count - part * size) for part in done)
    yield finished, failed
    todo = [part for part in parts if part not in done]
    if not todo:
        check(job)
    try:
        with closing(engine(job, todo, workers)) as told:
            for part, lost in told:
                failed += lost
                finished += min(size, count - part * size)
                yield finished, failed
    finally:  # a worker that was killed may have left a file
        remove_temporary(job.folder)
    missing = missing_parts(job.folder, parts)
    if missing:
        raise RuntimeError(f"Parts {missing[:5]} are missing; call again to do them.")
    remove_marker(job.folder)


def _part_size(folder: Place, inputs: Inputs) -> int:
    """That of the run if it has begun; else few images, or more rows or texts."""
    if (folder / "manifest.json").kind() == "file":
        return int(read_manifest(folder)["settings"]["part_size"])
    try:
        first = inputs.get(0)
    except Exception:
        first = None
    deep = getattr(first, "ndim", 0) >= 2 and not hasattr(first, "toarray")
    image = deep or isinstance(first, os.PathLike) or hasattr(first, "mode")
    return max(8 if image else 64, -(-len(inputs) // _PARTS))


def _described(explainer: Any) -> dict[str, str]:
    """What decides an explainer's numbers, as far as it is known here; a function by its name.

    What a function makes is known where it is made: parts say it, and whoever goes on compares.
    """
    if isinstance(explainer, BaseExplainer):
        return description(explainer)
    return {"made by": getattr(explainer, "__qualname__", type(explainer).__qualname__)}


def _plain_targets(targets: Any) -> int | list[int | str]:
    """Targets as JSON has them."""
    if isinstance(targets, (int, np.integer)):
        check_count("targets", int(targets))
        return int(targets)
    listed = [targets] if isinstance(targets, str) else list(targets)
    if not listed:
        raise ValueError("`targets` must list at least one output.")
    return [int(t) if isinstance(t, (int, np.integer)) else str(t) for t in listed]


def _engine(name: str, cpus: float | None, gpus: float | None) -> tuple[Any, Callable[[Job], None]]:
    """The functions that do parts, and that check the model of a finished run."""
    if name == "local":
        if cpus is not None or gpus is not None:
            raise ValueError("`cpus_per_worker` and `gpus_per_worker` are for engine='ray'.")
        return run_local, check_finished
    from functools import partial

    from eblime.batch.on_ray import check_on_ray, run_on_ray

    return (
        partial(run_on_ray, cpus=cpus, gpus=gpus),
        partial(check_on_ray, cpus=cpus, gpus=gpus),
    )
