"""Protocols of one input: its features, its neighbourhood, and how it is rendered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from eblime._types import FloatArray, IntArray

__all__ = [
    "ALL_HIDDEN",
    "INPUT_ITSELF",
    "Composite",
    "Described",
    "MaskedScene",
    "Neighbourhood",
    "RenderedScene",
    "Renderer",
    "Scene",
    "Subject",
    "masks_at",
]

INPUT_ITSELF = -1  # the row number of the input itself in a neighbourhood
ALL_HIDDEN = -2  # the row number of the input with every feature hidden


def masks_at(masks: FloatArray, rows: IntArray) -> FloatArray:
    """Masks by number: ones for the input itself, zeros for everything hidden."""
    if rows.size and rows.min() >= 0:
        return masks[rows]
    found = np.ones((len(rows), masks.shape[1]))
    found[rows == ALL_HIDDEN] = 0
    inside = rows >= 0
    found[inside] = masks[rows[inside]]
    return found


class Scene(Protocol):
    """One input cut into features: the part of it that an explanation keeps.

    Examples
    --------
    The scene of a text:

    >>> import eblime
    >>> explainer = eblime.TextExplainer(lambda texts: [len(t) for t in texts])
    >>> scene = explainer.explain("good film").scene
    >>> scene.domain, scene.n_features, scene.features
    ('text', 2, ["word 'good'", "word 'film'"])
    """

    @property
    def domain(self) -> str:
        """Name of the domain it belongs to, such as "image"; see `eblime.registry`."""

    @property
    def n_features(self) -> int:
        """Number of features, p."""

    @property
    def features(self) -> Sequence[str]:
        """A readable name for each feature."""


class Subject(Protocol):
    """One input that was read and can be perturbed.

    Examples
    --------
    An explainer reads an input into a subject:

    >>> import numpy as np
    >>> import eblime
    >>> explainer = eblime.TextExplainer(lambda texts: [len(t) for t in texts])
    >>> subject = explainer.subject("good film")
    >>> subject.scene.n_features
    2
    >>> len(subject.neighbourhood(np.random.default_rng(0)).masks)
    0
    """

    @property
    def scene(self) -> Scene:
        """What an explanation keeps of the input."""

    def neighbourhood(self, rng: np.random.Generator) -> Neighbourhood:
        """The perturbed inputs around it: none yet."""


class Neighbourhood(Protocol):
    """Perturbed inputs around one input, numbered from 0; it grows by `extend`.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> from eblime.protocols import ALL_HIDDEN, INPUT_ITSELF
    >>> explainer = eblime.TextExplainer(lambda texts: [len(t) for t in texts])
    >>> rng = np.random.default_rng(0)
    >>> near = explainer.subject("a good film").neighbourhood(rng)
    >>> near = near.extend(rng, np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
    >>> near.inputs(np.array([0, 1, INPUT_ITSELF, ALL_HIDDEN]))
    ['a  film', ' good ', 'a good film', '  ']
    """

    @property
    def masks(self) -> FloatArray:
        """The perturbed inputs as the regression sees them, (N, p)."""

    @property
    def closeness(self) -> FloatArray:
        """The perturbed inputs as the kernel sees them, (N, p): ones are the input itself."""

    @property
    def sampling_weights(self) -> FloatArray:
        """Factors of the kernel's weights, (N,); they correct for inputs drawn more often."""

    @property
    def exact(self) -> bool:
        """Whether a mask determines the perturbed input; False where chance fills in the rest."""

    @property
    def sizes(self) -> Sequence[int]:
        """Batch sizes worth trying, increasing."""

    @property
    def room(self) -> int:
        """How many inputs fit into memory in one model call."""

    def extend(self, rng: np.random.Generator, wanted: FloatArray | int) -> Neighbourhood:
        """Add perturbed inputs: one per mask, or a number of them drawn by the domain's own law."""

    def inputs(self, rows: IntArray) -> Any:
        """A batch of perturbed inputs by number, `INPUT_ITSELF` and `ALL_HIDDEN` among them."""

    @property
    def scope(self) -> Any:
        """What decides an input besides its key: the scene."""

    def keys(self, rows: IntArray) -> Sequence[bytes]:
        """A key for each perturbed input by number: the same key is the same input, asked once."""


@runtime_checkable
class Described(Scene, Protocol):
    """A scene that knows more about its features than their names.

    Examples
    --------
    The details of a row are columns of its table:

    >>> import numpy as np
    >>> import eblime
    >>> from eblime.protocols import Described
    >>> rows = np.random.default_rng(0).random((50, 2))
    >>> explainer = eblime.TabularExplainer(lambda table: table[:, 0], rows, names=["a", "b"])
    >>> e = explainer.explain(rows[0])
    >>> isinstance(e.scene, Described), sorted(e.scene.details())
    (True, ['bin', 'column', 'value'])
    """

    def details(self) -> Mapping[str, Sequence[Any]]:
        """Columns of a table with one entry per feature: where it is, or the value it has."""


@runtime_checkable
class MaskedScene(Scene, Protocol):
    """A scene whose perturbed inputs follow from masks alone: texts, series.

    Examples
    --------
    A series whose features are its two halves:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import eblime
    >>> from eblime.domains import Domain
    >>> @dataclass(frozen=True)
    ... class Halves:
    ...     series: np.ndarray
    ...     domain = "halves"
    ...     features = ("first half", "second half")
    ...     n_features = 2
    ...     sizes = (256,)
    ...
    ...     def inputs(self, masks):
    ...         return self.series * masks.repeat(len(self.series) // 2, axis=1)
    >>> halves = Domain(name="halves", feature="half", scene=Halves, read=Halves)
    >>> ends = lambda batch: 2 * batch[:, 0] + batch[:, -1]
    >>> eblime.Explainer(ends, halves).explain(np.ones(8)).posterior.mean.round(1)
    array([2., 1.])
    """

    @property
    def sizes(self) -> Sequence[int]:
        """Batch sizes worth trying, increasing."""

    def inputs(self, masks: FloatArray) -> Any:
        """A batch with one perturbed input per mask, 1 shown and 0 hidden."""


@runtime_checkable
class RenderedScene(Scene, Protocol):
    """A scene that writes perturbed inputs into arrays: images.

    Examples
    --------
    Three lamps that a mask switches on; `Renderer` is the second class:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import eblime
    >>> from eblime.domains import Domain
    >>> @dataclass(frozen=True)
    ... class Lamps:
    ...     watts: np.ndarray
    ...     domain = "lamps"
    ...     features = ("red", "green", "blue")
    ...     n_features = 3
    ...
    ...     def batch(self, n):
    ...         return np.empty((n, 3))
    ...
    ...     def renderer(self):
    ...         return Switch(self.watts)
    >>> @dataclass(frozen=True)
    ... class Switch:
    ...     watts: np.ndarray
    ...
    ...     def render(self, masks, out):
    ...         np.multiply(masks, self.watts, out=out)
    >>> lamps = Domain(name="lamps", feature="lamp", scene=Lamps, read=Lamps)
    >>> total = lambda batch: batch.sum(axis=1)
    >>> eblime.Explainer(total, lamps).explain(np.array([5.0, 2.0, 1.0])).posterior.mean.round(1)
    array([5., 2., 1.])
    """

    def batch(self, n: int) -> NDArray[Any]:
        """An empty batch of n inputs, for the renderer to write into."""

    def renderer(self) -> Renderer:
        """Writes perturbed inputs into a batch; created once and used many times."""


class Renderer(Protocol):
    """Writes perturbed inputs of one scene.

    Examples
    --------
    The renderer of an image, which is an array of zeros where it is hidden:

    >>> import numpy as np
    >>> import eblime
    >>> grid = ("grid", {"rows": 1, "columns": 2})
    >>> explainer = eblime.ImageExplainer(lambda batch: batch[:, 0, 0], segmentation=grid, hide=0)
    >>> scene = explainer.subject(np.ones((2, 4))).scene
    >>> batch = scene.batch(1)
    >>> scene.renderer().render(np.array([[1.0, 0.0]]), batch)
    >>> batch[0]
    array([[1., 1., 0., 0.],
           [1., 1., 0., 0.]])
    """

    def render(self, masks: FloatArray, out: NDArray[Any]) -> None:
        """Write one perturbed input per row of `masks`, 1 shown and 0 hidden, into `out`."""


@runtime_checkable
class Composite(Protocol):
    """A scene made of two arrays and a label per element: shown where the mask is 1.

    Examples
    --------
    The scene of an image:

    >>> import numpy as np
    >>> import eblime
    >>> from eblime.protocols import Composite
    >>> grid = ("grid", {"rows": 1, "columns": 2})
    >>> explainer = eblime.ImageExplainer(lambda batch: batch[:, 0, 0], segmentation=grid, hide=0)
    >>> scene = explainer.subject(np.ones((2, 4))).scene
    >>> isinstance(scene, Composite)
    True
    >>> scene.labels
    array([[0, 0, 1, 1],
           [0, 0, 1, 1]])
    """

    shown: NDArray[Any]  # the input itself
    hidden: NDArray[Any]  # everything hidden, same shape and dtype
    labels: NDArray[np.intp]  # (H, W) the feature of each pixel
    channel_axis: int | None  # axis of the channels in `shown`, None for a grey image
