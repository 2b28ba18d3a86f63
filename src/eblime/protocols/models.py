"""Protocols of models: what scores inputs, and what can render them itself."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

from eblime._types import FloatArray
from eblime.protocols.inputs import Composite

__all__ = [
    "DeviceModel",
    "MaskScorer",
    "Model",
    "RenderingModel",
]


class Model(Protocol):
    """A black box: a batch of n inputs in, scores of shape (n, outputs) or (n,) out.

    Examples
    --------
    A function is a model:

    >>> import eblime
    >>> def praise(texts):
    ...     return [float("good" in text) for text in texts]
    >>> eblime.TextExplainer(praise).explain("a good film").prediction
    1.0
    """

    def __call__(self, batch: Any) -> Any:
        """Score a batch."""


class MaskScorer(Protocol):
    """Scores masks of one scene; may know several ways of computing the same scores.

    Examples
    --------
    See `RenderingModel`, which opens one:

    >>> import numpy as np
    >>> class Switches:
    ...     ways = 1
    ...     overlaps = False
    ...     sizes = (64,)
    ...
    ...     def launch(self, masks, way=0):
    ...         return masks @ np.array([[5.0], [2.0]])
    ...
    ...     def fetch(self, launched):
    ...         return launched
    >>> scorer = Switches()
    >>> scorer.fetch(scorer.launch(np.array([[1.0, 0.0], [1.0, 1.0]])))
    array([[5.],
           [7.]])
    """

    @property
    def ways(self) -> int:
        """Number of ways to compute, such as memory layouts; the fastest is kept."""

    @property
    def overlaps(self) -> bool:
        """Whether a batch may be launched while another is running, as on a GPU."""

    @property
    def sizes(self) -> Sequence[int]:
        """Batch sizes worth trying, increasing."""

    def launch(self, masks: FloatArray, way: int = 0) -> Any:
        """Scores, (n, outputs), on a GPU still being computed; a list selects some columns."""

    def fetch(self, launched: Any) -> Any:
        """The launched scores, or some of their columns, as an array in main memory."""


@runtime_checkable
class RenderingModel(Protocol):
    """A model that renders composites itself, for example on a GPU, so that only masks travel.

    Examples
    --------
    The mean of an image, computed from the number of pixels of each superpixel:

    >>> from contextlib import contextmanager
    >>> import numpy as np
    >>> import eblime
    >>> class Brightness:
    ...     def __call__(self, batch):
    ...         return batch.mean(axis=(1, 2))
    ...
    ...     @contextmanager
    ...     def scorer(self, scene):
    ...         labels = scene.labels.ravel()
    ...         shown = np.bincount(labels, scene.shown.ravel()) / labels.size
    ...         hidden = np.bincount(labels, scene.hidden.ravel()) / labels.size
    ...         yield Sums(shown, hidden)
    >>> class Sums:
    ...     ways, overlaps, sizes = 1, False, (64,)
    ...
    ...     def __init__(self, shown, hidden):
    ...         self.shown, self.hidden = shown, hidden
    ...
    ...     def launch(self, masks, way=0):
    ...         return (masks @ self.shown + (1 - masks) @ self.hidden)[:, None]
    ...
    ...     def fetch(self, launched):
    ...         return launched
    >>> grid = ("grid", {"rows": 1, "columns": 2})
    >>> image = np.array([[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.5, 0.5]])
    >>> explainer = eblime.ImageExplainer(Brightness(), segmentation=grid, hide=0)
    >>> explainer.explain(image).posterior.mean.round(3)
    array([0.5  , 0.125])
    """

    def scorer(self, scene: Composite) -> AbstractContextManager[MaskScorer]:
        """Open the model for one scene; changes to the model are undone on exit."""


@runtime_checkable
class DeviceModel(Protocol):
    """A model that knows whether it runs on a GPU; a run then keeps the GPU busy.

    Examples
    --------
    >>> from eblime.protocols import DeviceModel
    >>> class Remote:
    ...     on_gpu = True
    ...
    ...     def __call__(self, batch):
    ...         return [len(text) for text in batch]
    >>> isinstance(Remote(), DeviceModel)
    True
    """

    @property
    def on_gpu(self) -> bool:
        """Whether it runs on a GPU."""
