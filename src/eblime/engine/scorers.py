"""Scorers: how a model is called with perturbed inputs, by their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from eblime._types import FloatArray, IntArray
from eblime.engine.calls import Caller, Calls
from eblime.engine.neighbourhood import masks_at
from eblime.models.scores import as_scores
from eblime.protocols import (
    Composite,
    MaskScorer,
    Model,
    Neighbourhood,
    RenderedScene,
    RenderingModel,
    Scene,
)

__all__ = ["RowScorer", "scorer_of"]

_SIZES = (4, 8, 16, 32, 64, 128, 256)
_BATCH_BYTES = 64 << 20  # a batch whose size is tuned stays below this


class RowScorer(Protocol):
    """Scores perturbed inputs of one subject by number."""

    @property
    def ways(self) -> int: ...  # noqa: D102

    @property
    def overlaps(self) -> bool: ...  # noqa: D102

    @property
    def sizes(self) -> Sequence[int]: ...  # noqa: D102

    def launch(self, neighbourhood: Neighbourhood, rows: IntArray, way: int = 0) -> Any: ...  # noqa: D102

    def fetch(self, launched: Any) -> Any: ...  # noqa: D102


@contextmanager
def scorer_of(
    model: Model, scene: Scene, neighbourhood: Neighbourhood, calls: Calls
) -> Iterator[RowScorer]:
    """Open a model for a scene: on its own device where it can render, else through batches.

    A model that is called with a timeout, with retries or several times at once gets batches.
    """
    caller = Caller(model=model, calls=calls)
    if isinstance(model, RenderingModel) and isinstance(scene, Composite) and calls.plain:
        with model.scorer(scene) as scorer:
            yield _MaskScorer(scorer)
    elif isinstance(scene, RenderedScene):
        yield _MaskScorer(_BatchScorer(caller, scene))
    else:
        yield _PlainScorer(caller, neighbourhood.sizes)


class _MaskScorer:
    """Scores by number with a scorer that takes masks."""

    def __init__(self, scorer: MaskScorer) -> None:
        self._scorer = scorer
        self.ways, self.overlaps, self.sizes = scorer.ways, scorer.overlaps, scorer.sizes

    def launch(self, neighbourhood: Neighbourhood, rows: IntArray, way: int = 0) -> Any:
        """Look up the masks and launch."""
        return self._scorer.launch(masks_at(neighbourhood.masks, rows), way)

    def fetch(self, launched: Any) -> Any:
        """The scores, in main memory."""
        return self._scorer.fetch(launched)


class _BatchScorer:
    """Renders into one batch that is reused, and calls the model with it."""

    ways = 1
    overlaps = False

    def __init__(self, caller: Caller, scene: RenderedScene) -> None:
        self._caller, self._scene = caller, scene
        self._batch, self._renderer = scene.batch(1), scene.renderer()
        most = max(1, _BATCH_BYTES // max(1, self._batch.nbytes))
        self.sizes: Sequence[int] = tuple(size for size in _SIZES if size <= most) or (1,)

    def launch(self, masks: FloatArray, way: int = 0) -> Any:
        """Render and ask; a batch that the model may still be reading is not used again."""
        if len(self._batch) < len(masks) or not self._caller.calls.plain:
            self._batch = self._scene.batch(len(masks))
        batch = self._batch[: len(masks)]
        self._renderer.render(masks, batch)
        if not self._caller.waits:
            return self._caller.start(batch)
        return as_scores(self._caller(batch))

    def fetch(self, launched: Any) -> Any:
        """The scores, which are there already."""
        return launched


class _PlainScorer:
    """Calls the model with inputs that the neighbourhood makes: texts, rows of a table."""

    ways = 1
    overlaps = False

    def __init__(self, caller: Caller, sizes: Sequence[int]) -> None:
        self._caller = caller
        self.sizes = sizes

    def launch(self, neighbourhood: Neighbourhood, rows: IntArray, way: int = 0) -> Any:
        """Make the inputs and ask."""
        batch = neighbourhood.inputs(rows)
        if not self._caller.waits:
            return self._caller.start(batch)
        return as_scores(self._caller(batch))

    def fetch(self, launched: Any) -> Any:
        """The scores, which are there already."""
        return launched
