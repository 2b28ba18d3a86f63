"""Perturbed inputs that were drawn in advance, such as those of lime and the rows of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from eblime._types import BoolArray, FloatArray, IntArray
from eblime.domains.record import Domain
from eblime.protocols import Scene


class Drawn:
    """Perturbed inputs that were drawn in advance: a `Subject` and its `Neighbourhood` in one.

    The first one is the input itself. The model is asked about each of them, even if two are the
    same. `data` is what the regression sees, (N, p); `make` makes a batch for the
    model from their numbers.
    """

    def __init__(
        self, scene: Scene, data: FloatArray, make: Callable[[IntArray], object], n: int = 0
    ) -> None:
        names = {name: getattr(scene, name) for name in ("domain", "features", "n_features")}
        self.input, self.scene = scene, SimpleNamespace(**names)  # `make` renders, not the engine
        self.exact = scene.domain != "tabular"  # chance fills in what a mask of a row leaves open
        self.data, self.make, self.masks = data, make, data[:n]
        self.closeness = self.masks - data[0] + 1
        self.scope = scene
        self.whole: object = self.scene  # with `fixed`, as `Subject` has them
        self.fixed: BoolArray | None = None
        self.sizes = (len(data),)

    def neighbourhood(self, rng: np.random.Generator) -> Drawn:
        """None of them yet."""
        return self

    def extend(self, rng: np.random.Generator, wanted: FloatArray | int) -> Drawn:
        """All of them."""
        return Drawn(self.input, self.data, self.make, len(self.data))

    def inputs(self, rows: IntArray) -> Any:
        """A batch of perturbed inputs by number."""
        return self.make(np.maximum(rows, 0))

    def keys(self, rows: IntArray) -> list[bytes]:
        """The numbers as keys; the input itself is the first one."""
        keys: list[bytes] = np.maximum(rows, 0).astype(np.int64).view("V8").tolist()
        return keys


DRAWN = Domain(
    name="drawn",
    feature="feature",
    scene=Drawn,
    read=lambda x: x,
    design=SimpleNamespace(next=lambda _, known: None if known.n_masks else 1),  # one round
)
