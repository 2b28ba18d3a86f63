"""The seams of the library, one page: what a part must offer to take its place.

x --domain--> Scene --Design--> masks --render--> Model --> scores
`--Kernel--> weights
(masks, scores, weights) --Method--> Posterior
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray

if TYPE_CHECKING:
    from eblime.core.posterior import Posterior

__all__ = [
    "Composite",
    "Described",
    "Design",
    "Drawn",
    "Kernel",
    "Made",
    "Method",
    "Model",
    "Rendered",
    "Renderer",
    "RenderingModel",
    "Scene",
    "Scorer",
    "Source",
]


class Scene(Protocol):
    """One input cut into features: what an explanation keeps of it."""

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        ...

    @property
    def features(self) -> Sequence[str]:
        """A name for each feature, as people read it."""
        ...


@runtime_checkable
class Described(Scene, Protocol):
    """A scene that knows more of its features than their names."""

    def details(self) -> Mapping[str, Sequence[Any]]:
        """Columns of a table with one entry per feature: where it is, or the value it has."""
        ...


@runtime_checkable
class Rendered(Scene, Protocol):
    """A scene that writes itself into arrays, some features hidden: images."""

    def batch(self, n: int) -> NDArray[Any]:
        """An empty batch of n inputs, for the renderer to write into."""
        ...

    def renderer(self) -> Renderer:
        """What writes perturbed inputs into a batch; made once and used many times."""
        ...


class Renderer(Protocol):
    """Writes perturbed inputs of one scene."""

    def render(self, masks: FloatArray, out: NDArray[Any]) -> None:
        """Write one perturbed input for each row of `masks`, 1 shown and 0 hidden, into `out`."""
        ...


@runtime_checkable
class Made(Scene, Protocol):
    """A scene that makes the inputs it is asked for, whatever they are: texts, rows of a table."""

    @property
    def sizes(self) -> Sequence[int]:
        """Batch sizes worth trying, increasing."""
        ...

    def inputs(self, requests: FloatArray) -> Any:
        """One perturbed input for each request: a mask, or what `Drawn.draw` numbered."""
        ...


@runtime_checkable
class Drawn(Made, Protocol):
    """Inputs drawn at random, which only then have masks: rows of a table.

    Requests are the numbers of the inputs drawn, -1 for the input itself.
    """

    @property
    def masks(self) -> FloatArray:
        """The inputs as the regression sees them, (N, p)."""
        ...

    @property
    def origin(self) -> FloatArray:
        """And the input itself, (p,)."""
        ...


@runtime_checkable
class Source(Scene, Protocol):
    """An input that can be drawn around."""

    @property
    def scene(self) -> Scene:
        """What an explanation keeps."""
        ...

    def draw(self, rng: np.random.Generator, n: int, design: Design | None) -> Drawn:
        """Draw n inputs; a design says which features to hide, None leaves it to chance."""
        ...


@runtime_checkable
class Composite(Protocol):
    """A scene that is two arrays and a label for each element: shown where the mask is 1."""

    shown: NDArray[Any]  # the input itself
    hidden: NDArray[Any]  # everything hidden, same shape and dtype
    labels: NDArray[np.intp]  # (H, W) which feature a pixel belongs to
    channel_axis: int | None  # axis of the channels in `shown`, None for a grey image


class Model(Protocol):
    """A black box: a batch of n inputs in, scores of shape (n, outputs) or (n,) out."""

    def __call__(self, batch: Any) -> Any:
        """Score a batch."""
        ...


class Scorer(Protocol):
    """Scores masks of one scene; may know several ways of computing the same."""

    @property
    def ways(self) -> int:
        """In how many ways it can compute, such as memory layouts; the fastest will be kept."""
        ...

    @property
    def overlaps(self) -> bool:
        """Whether a batch may be launched while another is under way, as on a GPU."""
        ...

    @property
    def sizes(self) -> Sequence[int]:
        """Batch sizes worth trying, increasing."""
        ...

    def launch(self, masks: FloatArray, way: int = 0) -> Any:
        """Start scoring masks; on a GPU this returns at once, and another batch can be launched.

        What comes back has a shape, (n, outputs), and its columns can be picked by a list.
        """
        ...

    def fetch(self, launched: Any) -> Any:
        """What was launched, or columns of it, as an array at home."""
        ...


@runtime_checkable
class RenderingModel(Protocol):
    """A model that renders composites itself, such as on a GPU, so that only masks travel."""

    def scorer(self, scene: Composite) -> AbstractContextManager[Scorer]:
        """Open the model for one scene; what it changed in itself is undone on leaving."""
        ...


Design = Callable[[np.random.Generator, int, int], FloatArray]  # rng, n_masks, p -> (N, p)
Kernel = Callable[[FloatArray], FloatArray]  # masks (N, p) -> weights (N,)


class Method(Protocol):
    """A way to turn answered masks into importances."""

    @property
    def name(self) -> str:
        """How tables and reports call the method."""
        ...

    def fit(
        self,
        rng: np.random.Generator,
        masks: FloatArray,
        scores: FloatArray,
        weights: FloatArray,
    ) -> tuple[Posterior, ...]:
        """Fit every target, shape (N, T), from one decomposition of the masks: T posteriors."""
        ...
