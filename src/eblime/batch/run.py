"""`explain_many`: explain many inputs into a run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from math import isqrt
from typing import Any

import numpy as np

from eblime._checks import check_count, check_level, check_number
from eblime._digest import digest_of
from eblime._progress import Progress, check_progress, progress_reporter
from eblime.batch import folder as run_folder
from eblime.batch.inputs import ENDINGS, Inputs, as_inputs, is_picture, store_inputs
from eblime.batch.location import Location, TemporaryFolder, arrow
from eblime.batch.results import Run
from eblime.batch.worker import Job, about_explainer, make_explainer, setting_text
from eblime.batch.workers import Count, Workers, do_parts
from eblime.engine.settings import check_max_masks
from eblime.engine.targets import check_one_class
from eblime.explainers.base import BaseExplainer
from eblime.protocols import Stop
from eblime.scores import Targets
from eblime.stopping.rules import as_rule

_PARTS = 10_000  # the most parts of a run of large inputs whose part size is not given


def explain_many(
    explainer: Any,
    inputs: Any,
    out: str | os.PathLike[str] | None = None,
    *,
    targets: Targets | str | None = None,
    rng: int = 0,
    overwrite: bool = False,
    workers: Count | Workers = 1,
    part_size: int | None = None,
    prob: float = 0.95,
    keep: bool | None = None,
    pool: bool = False,
    until: Stop | str | None = None,
    max_masks: int | None = None,
    max_failures: int | None = None,
    retry: bool = False,
    progress: Progress = None,
) -> Run:
    """Explain many inputs; with a folder, `out`, a second call resumes the run.

    Resuming with other settings, inputs, labels or predictions of the model raises an error, also
    if the run is finished. A model without a `model_id` in its cache explains one finished input
    again, unless it is an ONNX file; other importances are refused, too.

    Parameters
    ----------
    explainer
        An explainer, or a function without arguments that creates one. With several workers each
        process calls the function, so that a model on a GPU need not be sent to it. If the function
        has an attribute `about`, a string or a dictionary, it is stored with the settings.
    inputs
        A folder of photos or .txt files, a .csv, .tsv, .parquet or .jsonl file, a folder of
        .parquet files, the address of one of these in an object store, a frame, an array, or any
        sequence or iterable, such as `dataset.iter_rows()` of Ray. Inputs that cannot be read by
        number are first stored in the run folder, a chunk at a time.
    out
        The run folder, or an address such as s3://bucket/run; not the folder of the inputs. None
        is a temporary folder, for up to some thousand inputs, which is removed with its last `Run`
        or when Python ends.
    targets
        The class to explain, or a list of outputs; "predicted" for the predicted class of each
        input, or how many of its highest outputs. None is the only output, or the second of two
        classes; with more classes it is refused. For images also boxes and regions of
        `eblime.scores`, the detector's or the network's own if none is given.
    rng
        A seed: input i draws from `SeedSequence(rng, spawn_key=(i,))`, so neither the order nor the
        number of workers nor restarts change a number.
    overwrite
        Whether to begin anew where the folder has a run, whose files are deleted.
    workers
        Number of worker processes, "auto" for as many as cores and memory allow, or an
        `eblime.batch.Workers`, which also has a timeout per input and the settings of Ray. With 1
        the calling process does the work.
    part_size
        Number of inputs in a part, the unit that is stored and resumed. The rows or texts of a part
        share batches. The default is 8 for images and files and 64 for rows and texts, and
        larger for very many inputs: 1,000 for a million rows.
    prob
        Probability of the intervals.
    keep
        Whether to save whole explanations, for pages and `Run.explanation`. None saves those of
        the first 100 rows, or of the first 1,000 images, texts and so on (fewer if they would
        take more than 1 GB), if their domain is registered.
    pool
        Whether to keep all explanations and return the pooled run, `Run.pool`.
    until
        A stop rule such as `TopK(5)`, as for `explain`: each input is asked about in rounds until
        it is reached. Several workers need a rule that can be pickled, as those of eblime.
    max_masks
        The most masks for each input with `until`, as for `explain`; None is 5,000.
    max_failures
        Stop when more inputs have failed, counting earlier calls; None never stops.
    retry
        Do parts with failed inputs again; the files of these inputs may have been replaced.
        Batches that fail are sent again by the explainer's `Calls(retry=...)`.
    progress
        None shows a bar on a terminal if the work takes longer than a second; True always does,
        False never; or a function of (done, total).

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).random((20, 3))
    >>> explainer = eblime.TabularExplainer(lambda table: table[:, 0], rows, n_masks=50)
    >>> run = eblime.explain_many(explainer, rows[:4], progress=False)
    >>> run.summary()["feature"].tolist()[0]
    'column 0'
    """
    arrow()  # a missing package is reported before anything is read or written
    if isinstance(explainer, BaseExplainer) or not callable(explainer):
        make_explainer(explainer)
    processes = workers if isinstance(workers, Workers) else Workers(workers)
    processes.check()
    check_count("rng", rng, minimum=0)
    check_count("part_size", 1 if part_size is None else part_size)
    if max_failures is not None:
        check_number("max_failures", max_failures, zero=True)
    check_progress(progress)
    if isinstance(targets, str):
        targets = 1 if targets == "predicted" else [targets]
    if targets is None and isinstance(explainer, BaseExplainer):
        check_one_class(explainer.loop.model, explainer.labels)
    if out is None and processes.engine == "ray":
        raise ValueError("`out` must be a folder that every node of Ray sees; got None.")
    rule = None if until is None else as_rule(until)
    check_max_masks(max_masks, rule)
    created = isinstance(explainer, BaseExplainer)
    settings: dict[str, Any] = {
        # those that a function chooses are known when the first part is done
        **(about_explainer(explainer) if created else {"explainer": None, "model": None}),
        "targets": targets,
        "seed": rng,
        "prob": check_level("prob", prob),
        "keep": pool or keep,
        "about": None if created else getattr(explainer, "about", None),
    }
    if rule is not None:
        settings |= {"until": setting_text(rule), "max_masks": max_masks}
    try:
        settings = json.loads(json.dumps(settings, allow_nan=False, default=_plain))
    except (AttributeError, TypeError, ValueError) as error:
        raise TypeError(f"`about` and `targets` must hold what JSON can store: {error}.") from error
    temporary = None
    if out is None:
        temporary = TemporaryFolder()
        out = temporary.path
    folder = Location.of(out)
    given = as_inputs(inputs, folder, getattr(explainer, "endings", ENDINGS))
    run_folder.refuse_links(folder)
    with folder.lock():
        run_folder.remove_leftovers(folder)
        if overwrite:
            run_folder.refuse_links(folder / "pooled")
            for place in (folder, folder / "pooled"):
                run_folder.remove_run(place)
        stored = store_inputs(given, folder) if isinstance(given, Iterator) else given
        begun = run_folder.read_manifest(folder) if run_folder.part_files(folder) else None
        size = begun["settings"]["part_size"] if begun else _part_size(stored)
        settings |= {"count": len(stored), "inputs": stored.fingerprint}
        settings["part_size"] = int(part_size or size)
        run, done = digest_of(settings)[:16], {}
        if begun:
            run, known = begun["run"], begun["settings"]
            if retry:  # the files of failed inputs may have been replaced
                known = {**known, "inputs": stored.fingerprint}
            run_folder.refuse_difference(folder, known, settings)
            settings |= known
            done = run_folder.done_parts(folder, run, retry=retry)
        if not begun or settings != begun["settings"]:
            run_folder.write_manifest(folder, run, settings)
        job = Job(
            explainer=explainer,
            inputs=stored,
            settings=settings,
            folder=folder,
            run=run,
            resumed=bool(done),
            until=rule,
        )
        found = _finish(job, done, processes, max_failures, progress)
    found = replace(found, temporary=temporary)
    return found.pool() if pool else found


def _finish(
    job: Job,
    done: Mapping[int, int],
    workers: Workers,
    max_failures: int | None,
    progress: Progress,
) -> Run:
    """Do the unfinished parts of a run, with a progress bar; if there are none, check the model.

    `done` has the finished parts, with the number of failed inputs in each.
    """
    count, size = job.settings["count"], job.settings["part_size"]
    with progress_reporter(progress, count, unit="input") as show:
        failed = sum(done.values())
        finished = sum(len(run_folder.part_numbers(job.settings, part)) for part in done)
        todo = [part for part in range(-(-count // size)) if part not in done]

        def report() -> None:
            show(finished, failed)
            if max_failures is not None and failed > max_failures:
                raise RuntimeError(
                    f"{failed} inputs have failed, more than the {max_failures} allowed; if `out` "
                    f"is given, eblime.open_run({str(job.folder)!r}).failures() lists them. Use "
                    "retry=True (--retry) to try them again."
                )

        report()
        try:
            with closing(do_parts(job, todo, workers)) as results:
                for part, rows, about in results:
                    if not (job.resumed or finished):
                        run_folder.write_manifest(job.folder, job.run, {**job.settings, **about})
                    run_folder.write_part(job.folder, job.run, part, rows)
                    finished += len(run_folder.part_numbers(job.settings, part))
                    failed += sum("error" in row for row in rows)
                    report()
        finally:  # a worker that was killed may have left a temporary file
            run_folder.remove_leftovers(job.folder)
    return Run(location=job.folder)


def _part_size(inputs: Inputs) -> int:
    """The part size of a new run, smaller for files, pictures and arrays of two or more axes.

    A million rows are a thousand parts: few files, and little to repeat after a crash.
    """
    first, count = None, len(inputs)
    with suppress(Exception):  # reported when the input is explained
        first = inputs.get(0)
    array = getattr(first, "ndim", 0) >= 2 and not hasattr(first, "tocsr")
    large = array or isinstance(first, os.PathLike) or is_picture(first)
    return max(8, -(-count // _PARTS)) if large else max(64, isqrt(count))


def _plain(setting: Any) -> Any:
    """A number of NumPy, or a score, as JSON has it."""
    return setting.item() if isinstance(setting, np.generic) else setting.text
