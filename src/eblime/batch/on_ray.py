"""The Ray engine: parts stream through a pool of actors, each holding its own explainer.

Ray Data schedules and retries; what is written is what the local engine writes, by the same
function, so that either engine can go on with the other's run. The folder must be one that every
node sees: a shared file system, or an object store.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eblime._threads import limit_threads
from eblime.batch.inputs import Inputs
from eblime.batch.local import check_travels
from eblime.batch.place import Place
from eblime.batch.work import Worker, on_gpu

__all__ = ["run_on_ray"]

_ROOM = 0.8  # of the cores: a pool that claims them all leaves none to read with, and hangs


class _Actor:
    """Makes the explainer once, and does parts."""

    def __init__(
        self, explainer: Any, inputs: Any, settings: Mapping[str, Any], folder: Place, threads: int
    ) -> None:
        import ray

        limit_threads(threads)
        self._worker: Worker | None = None
        try:
            self._worker = Worker.begin(explainer, ray.get(inputs), settings, folder)
        except Exception as error:  # told by the first part: here the actor would be made again
            self._error = error
        limit_threads(threads)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[int]]:
        """Do the parts of a batch, and tell how many inputs failed in each."""
        if self._worker is None:
            raise RuntimeError(f"The explainer cannot be made in a worker: {self._error}")
        parts = [int(part) for part in batch["part"]]
        return {"part": parts, "failed": [self._worker.do(part) for part in parts]}


def run_on_ray(
    explainer: Any,
    inputs: Inputs,
    settings: Mapping[str, Any],
    parts: Sequence[int],
    folder: Place,
    workers: int,
    cpus: float | None = None,
    gpus: float | None = None,
) -> Iterator[tuple[int, int]]:
    """Do parts on a Ray cluster, the one that is there or one on this machine."""
    if not parts:
        return
    if on_gpu(explainer):
        check_travels(explainer)
    ray = _ray()
    cores = float(ray.cluster_resources().get("CPU", 1.0))
    share = min(1.0, _ROOM * cores / workers) if cpus is None else cpus
    if share * workers > cores:
        raise ValueError(
            f"The cluster has {cores:g} cores, which is fewer than {workers} workers of {share:g}."
        )
    given = ray.data.from_items([{"part": part} for part in parts], override_num_blocks=len(parts))
    done = given.map_batches(
        _Actor,
        fn_constructor_args=(
            explainer,
            ray.put(inputs),
            dict(settings),
            folder,
            max(1, round(share)),
        ),
        batch_size=1,
        concurrency=workers,
        num_cpus=share,
        num_gpus=gpus,
    )
    try:
        for row in done.iter_rows():
            yield int(row["part"]), int(row["failed"])
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", None) or error
        raise RuntimeError(f"A part failed on Ray; the run can be resumed. {cause}") from error


def _ray() -> Any:
    """Ray, begun: on the cluster that is there, else on this machine."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ImportError("The Ray engine needs Ray: pip install 'eblime[ray]'.") from error
    ray.data.DataContext.get_current().enable_progress_bars = False  # the run has its own
    logging.getLogger("ray.data").setLevel(logging.WARNING)
    if not ray.is_initialized():
        try:
            ray.init(address="auto", log_to_driver=False)
        except ConnectionError:
            ray.init(log_to_driver=False, include_dashboard=False)
    return ray
