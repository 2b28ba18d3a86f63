"""The Ray engine: parts stream through a pool of actors, each holding its own explainer.

Ray Data schedules and retries; what is written is what the local engine writes, by the same
function, so that either engine can go on with the other's run. The folder must be one that every
node sees.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eblime.batch.inputs import Inputs
from eblime.batch.work import do_part, made_explainer

__all__ = ["run_on_ray"]


class _Worker:
    """An actor: the explainer is made once, and does parts."""

    def __init__(
        self, explainer: Any, inputs: Inputs, settings: Mapping[str, Any], folder: str
    ) -> None:
        self._explainer = made_explainer(explainer)
        self._inputs, self._settings, self._folder = inputs, settings, Path(folder)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[int]]:
        """Do the parts of a batch, and tell how many inputs failed in each."""
        parts = [int(part) for part in batch["part"]]
        failed = [
            do_part(self._explainer, self._inputs, self._settings, part, self._folder)
            for part in parts
        ]
        return {"part": parts, "failed": failed}


def run_on_ray(
    explainer: Any,
    inputs: Inputs,
    settings: Mapping[str, Any],
    parts: Sequence[int],
    folder: Path,
    workers: int,
) -> Iterator[tuple[int, int]]:
    """Do parts on a Ray cluster, the one that is there or one on this machine."""
    if not parts:
        return
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
    # a pool that claims every core would leave none for Ray Data to read with, and hang
    cores = float(ray.cluster_resources().get("CPU", 1.0))
    share = min(1.0, 0.8 * cores / workers)
    given = ray.data.from_items([{"part": part} for part in parts], override_num_blocks=len(parts))
    done = given.map_batches(
        _Worker,
        fn_constructor_args=(explainer, inputs, dict(settings), str(folder.resolve())),
        batch_size=1,
        concurrency=workers,
        num_cpus=share,
    )
    for row in done.iter_rows():
        yield int(row["part"]), int(row["failed"])
