"""Time model calls: several at once against one at a time, and an explanation from stored answers.

The model is a function that sleeps 50 ms per call, as a hosted service would, and gets one text per
call. The second part explains a photo-like image with 1,000 outputs twice with the same cache.

    python -m studies speed-calls
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import eblime
from studies.speed.clock import versions
from studies.tables import head, row

LATENCY, AT_ONCE, MASKS, ROUNDS = 0.05, 16, 200, 5
TEXT = " ".join(f"word{k}" for k in range(40))


def score(texts: list[str]) -> list[float]:
    """A score of words."""
    return [("word3 " in text) - 0.5 * ("word7 " in text) for text in texts]


def service(texts: list[str]) -> list[float]:
    """A hosted model."""
    time.sleep(LATENCY)
    return score(texts)


async def async_service(texts: list[str]) -> list[float]:
    """A hosted model with an async client."""
    await asyncio.sleep(LATENCY)
    return score(texts)


def time_job(job: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of a job, and its result."""
    start = time.perf_counter()
    result = job()
    return time.perf_counter() - start, result


def calls_at_once() -> None:
    """One at a time, then in threads and in an event loop."""
    settings: dict[str, Any] = {"n_masks": MASKS, "progress": False}
    one = eblime.Calls(batch_size=1)
    base, first = time_job(
        lambda: eblime.TextExplainer(service, calls=one, **settings).explain(TEXT)
    )
    print(f"{first.provenance['model_calls']} calls of {1e3 * LATENCY:.0f} ms, one text per call\n")
    print(head(["", "seconds", "times faster"], right=1))
    print(row(["one at a time", f"{base:.2f}", "1.0"]))
    models = {"threads": service, "async def": async_service}
    for name, model in models.items():
        calls = eblime.Calls(batch_size=1, concurrency=AT_ONCE)
        explainer = eblime.TextExplainer(model, calls=calls, **settings)
        seconds, found = time_job(lambda explainer=explainer: explainer.explain(TEXT))
        assert np.array_equal(found.scores, first.scores)
        print(row([f"{AT_ONCE} at once, {name}", f"{seconds:.2f}", f"{base / seconds:.1f}"]))


def stored_answers() -> None:
    """The time of an explanation whose answers are all known, beside that of its parts."""
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (224, 224, 3), dtype=np.uint8)
    project = rng.random((3, 1000))
    asked = 0

    def model(batch: Any) -> Any:
        nonlocal asked
        asked += len(batch)
        return batch.mean(axis=(1, 2)) @ project

    grid = ("grid", {"rows": 6, "columns": 6})
    with tempfile.TemporaryDirectory() as folder:
        cache = eblime.AnswerCache(f"{folder}/answers.db", model_id="means")
        explainer = eblime.ImageExplainer(model, segmentation=grid, cache=cache, progress=False)
        once, first = time_job(lambda: explainer.explain(image))
        before = asked
        again = [time_job(lambda: explainer.explain(image)) for _ in range(ROUNDS)]
        read = min(time_job(lambda: explainer.subject(image))[0] for _ in range(ROUNDS))
        fit = min(time_job(lambda: first.refit(first.method))[0] for _ in range(ROUNDS))
        assert np.array_equal(again[0][1].posterior.mean, first.posterior.mean)
        size = cache.file.stat().st_size / 2**20
    best = min(seconds for seconds, _ in again)
    print(f"\n1,000 masks of a photo, 1,000 outputs, {size:.0f} MB of answers")
    print(f"first explanation: {1e3 * once:.0f} ms, {before} calls")
    print(f"again: {1e3 * best:.0f} ms, {asked - before} calls;", end=" ")
    print(f"reading the image takes {1e3 * read:.0f} ms of it and the fit {1e3 * fit:.0f} ms")


def run(options: argparse.Namespace) -> None:
    """Measure and print."""
    print(versions("eblime"), end="\n\n")
    calls_at_once()
    stored_answers()
