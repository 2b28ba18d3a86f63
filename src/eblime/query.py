"""Asking the model: in batches, checked answer by answer, with progress and a tuned batch size."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray
from eblime.protocols import Composite, Model, RenderingModel, Scene, Scorer

__all__ = ["Asked", "ModelError", "Progress", "ask", "ask_original", "scorer_of"]

Progress = bool | Callable[[int, int], object]

_SIZES = (4, 8, 16, 32, 64, 128, 256)
_BATCH_BYTES = 64 << 20  # a batch that tunes itself stays below this


class ModelError(RuntimeError):
    """The model failed, or answered something that is no score; the message says to which mask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the model answered."""

    scores: FloatArray  # (N, T)
    batch_size: int  # of the last full batch
    calls: int  # inputs that the model was asked about


@contextmanager
def scorer_of(model: Model, scene: Scene) -> Iterator[Scorer]:
    """Open a model for a scene: on its own device where it can render, else through batches."""
    if isinstance(model, RenderingModel) and isinstance(scene, Composite):
        with model.scorer(scene) as scorer:
            yield scorer
    else:
        yield _BatchScorer(model, scene)


def ask_original(scorer: Scorer, n_features: int) -> FloatArray:
    """The model's answer for the input itself, (outputs,)."""
    return np.asarray(_answer(scorer, np.ones((1, n_features)), 0, 0, None)[0])


def ask(
    scorer: Scorer,
    masks: FloatArray,
    original: FloatArray,
    columns: Sequence[int],
    *,
    batch_size: int | None,
    progress: Progress,
) -> Asked:
    """Scores of every mask for the chosen outputs; masks that show all are not asked again."""
    scores = np.empty((len(masks), len(columns)))
    whole = (masks == 1).all(axis=1)
    scores[whole] = original[list(columns)]
    todo = np.flatnonzero(~whole)
    tuner = _Tuner(scorer, batch_size)
    done = len(masks) - len(todo)
    with _reporting(progress, len(masks)) as report:
        report(done)
        while done < len(masks):
            size, way = tuner.choice
            rows = todo[done - len(masks) + len(todo) :][:size]
            start = time.perf_counter()
            answer = _answer(scorer, masks[rows], way, int(rows[0]), len(original))
            tuner.learn(len(rows), time.perf_counter() - start)
            scores[rows] = answer[:, list(columns)]
            done += len(rows)
            report(done)
    return Asked(scores=scores, batch_size=tuner.choice[0], calls=len(todo) + 1)


class _BatchScorer:
    """Renders into one batch that is used again and again, and asks the model with it."""

    ways = 1

    def __init__(self, model: Model, scene: Scene) -> None:
        self._model, self._scene = model, scene
        self._batch = scene.batch(1)
        most = max(1, _BATCH_BYTES // max(1, self._batch.nbytes))
        self.sizes: Sequence[int] = tuple(size for size in _SIZES if size <= most) or (1,)

    def __call__(self, masks: FloatArray, way: int = 0) -> NDArray[Any]:
        if len(self._batch) < len(masks):
            self._batch = self._scene.batch(len(masks))
        batch = self._batch[: len(masks)]
        self._scene.render(masks, batch)
        return np.asarray(self._model(batch))


class _Tuner:
    """Finds the fastest batch size, and way of computing, on the batches that are asked anyway.

    Two batches for each way at the smallest size, then larger ones as long as they gain.
    """

    def __init__(self, scorer: Scorer, batch_size: int | None) -> None:
        sizes = scorer.sizes if batch_size is None else (batch_size,)
        self._trials = [(sizes[0], way) for way in range(scorer.ways)]
        self._larger = list(sizes[1:])
        self._seconds: dict[tuple[int, int], list[float]] = {}
        self.choice = self._trials[0]
        self._settled = len(self._trials) == 1 and not self._larger

    def learn(self, n: int, seconds: float) -> None:
        """Note how long a batch took, and choose the next."""
        if self._settled or n < self.choice[0]:
            return
        self._seconds.setdefault(self.choice, []).append(seconds / n)
        if len(self._seconds[self.choice]) < 2:
            return
        best = min(self._seconds, key=lambda choice: min(self._seconds[choice]))
        untried = [choice for choice in self._trials if choice not in self._seconds]
        largest = max(size for size, _ in self._seconds)
        if untried:
            self.choice = untried[0]
        elif self._larger and best[0] == largest:  # still gaining
            self.choice = (self._larger.pop(0), best[1])
        else:
            self.choice, self._settled = best, True


def _answer(
    scorer: Scorer, masks: FloatArray, way: int, first: int, width: int | None
) -> FloatArray:
    """Ask about a few masks and check what comes back, (n, outputs)."""
    place = f"mask {first}" if len(masks) == 1 else f"masks {first} to {first + len(masks) - 1}"
    try:
        raw = scorer(masks, way)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"The model failed on {place}: {type(error).__name__}: {error}") from error
    try:
        scores = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"The model must return numbers; for {place} it returned {type(raw).__name__}."
        ) from error
    scores = scores[:, None] if scores.ndim == 1 else scores
    if scores.ndim != 2 or len(scores) != len(masks) or scores.shape[1] == 0:
        raise ModelError(
            f"The model must return scores of shape ({len(masks)}, outputs) for a batch of "
            f"{len(masks)}; for {place} it returned shape {np.shape(raw)}."
        )
    if width is not None and scores.shape[1] != width:
        raise ModelError(
            f"The model must return as many outputs for every mask; it returned {width} for the "
            f"input itself and {scores.shape[1]} for {place}."
        )
    bad = np.argwhere(~np.isfinite(scores))
    if bad.size:
        row, column = bad[0]
        raise ModelError(
            f"The model must return finite scores; for mask {first + row} output {column} is "
            f"{scores[row, column]}."
        )
    return scores


@contextmanager
def _reporting(progress: Progress, total: int) -> Iterator[Callable[[int], None]]:
    """A function that is told how many masks are answered: a bar, the user's, or none."""
    if progress is True:
        from tqdm import tqdm

        with tqdm(total=total, unit="mask", desc="asking the model") as bar:

            def advance(done: int) -> None:
                bar.update(done - bar.n)

            yield advance
    elif callable(progress):

        def tell(done: int) -> None:
            progress(done, total)

        yield tell
    else:
        yield lambda done: None
