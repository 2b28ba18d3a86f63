"""The protocols of the library on one page: what each kind of part must provide.

x --Domain--> Subject --> Neighbourhood --Design--> masks --in batches--> Model --> scores
                                             `--Kernel--> weights
Answers (masks, scores, weights, ends) --Method--> Posterior --Stop?--> next round, or Explanation
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eblime._types import FloatArray, IntArray, RNGLike

if TYPE_CHECKING:
    from eblime.answers import Answers, Proposal
    from eblime.core.draws import Draws
    from eblime.posterior import Posterior

__all__ = [
    "ALL_HIDDEN",
    "INPUT_ITSELF",
    "Composite",
    "Described",
    "Design",
    "DeviceModel",
    "Kernel",
    "Law",
    "MaskDesign",
    "MaskScorer",
    "MaskedScene",
    "Method",
    "Model",
    "Neighbourhood",
    "RenderedScene",
    "Renderer",
    "RenderingModel",
    "ScalarLaw",
    "Scene",
    "SharedMethod",
    "Stop",
    "Subject",
]

# ---------------------------------------------------------------- one input and its neighbours
INPUT_ITSELF = -1  # the row number of the input itself in a neighbourhood
ALL_HIDDEN = -2  # the row number of the input with every feature hidden


class Scene(Protocol):
    """One input cut into features: the part of it that an explanation keeps."""

    @property
    def domain(self) -> str:
        """Name of the domain it belongs to, such as "image"; see `eblime.registry`."""
        ...

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        ...

    @property
    def features(self) -> Sequence[str]:
        """A readable name for each feature."""
        ...


class Subject(Protocol):
    """One input that was read and can be perturbed."""

    @property
    def scene(self) -> Scene:
        """What an explanation keeps of the input."""
        ...

    def neighbourhood(self, rng: np.random.Generator) -> Neighbourhood:
        """The perturbed inputs around it: none yet."""
        ...


class Neighbourhood(Protocol):
    """Perturbed inputs around one input, numbered from 0; it grows by `extend`."""

    @property
    def masks(self) -> FloatArray:
        """The perturbed inputs as the regression sees them, (N, p)."""
        ...

    @property
    def closeness(self) -> FloatArray:
        """The perturbed inputs as the kernel sees them, (N, p): ones are the input itself."""
        ...

    @property
    def sampling_weights(self) -> FloatArray:
        """Factors of the kernel's weights, (N,); they correct for inputs drawn more often."""
        ...

    @property
    def exact(self) -> bool:
        """Whether a mask determines the perturbed input; False where chance fills in the rest."""
        ...

    @property
    def sizes(self) -> Sequence[int]:
        """Batch sizes worth trying, increasing."""
        ...

    @property
    def room(self) -> int: ...  # noqa: D102  how many inputs fit into memory in one model call

    def extend(self, rng: np.random.Generator, wanted: FloatArray | int) -> Neighbourhood:
        """Add perturbed inputs: one per mask, or a number of them drawn by the domain's own law."""
        ...

    def inputs(self, rows: IntArray) -> Any:
        """A batch of perturbed inputs by number, `INPUT_ITSELF` and `ALL_HIDDEN` among them."""
        ...

    @property
    def scope(self) -> Any: ...  # noqa: D102  what decides an input besides its key: the scene

    def keys(self, rows: IntArray) -> Sequence[bytes]:
        """A key for each perturbed input by number: the same key is the same input, asked once."""


@runtime_checkable
class Described(Scene, Protocol):
    """A scene that knows more about its features than their names."""

    def details(self) -> Mapping[str, Sequence[Any]]:
        """Columns of a table with one entry per feature: where it is, or the value it has."""
        ...


@runtime_checkable
class MaskedScene(Scene, Protocol):
    """A scene whose perturbed inputs follow from masks alone: texts, series."""

    @property
    def sizes(self) -> Sequence[int]:
        """Batch sizes worth trying, increasing."""
        ...

    def inputs(self, masks: FloatArray) -> Any:
        """A batch with one perturbed input per mask, 1 shown and 0 hidden."""
        ...


@runtime_checkable
class RenderedScene(Scene, Protocol):
    """A scene that writes perturbed inputs into arrays: images."""

    def batch(self, n: int) -> NDArray[Any]:
        """An empty batch of n inputs, for the renderer to write into."""
        ...

    def renderer(self) -> Renderer:
        """Writes perturbed inputs into a batch; created once and used many times."""
        ...


class Renderer(Protocol):
    """Writes perturbed inputs of one scene."""

    def render(self, masks: FloatArray, out: NDArray[Any]) -> None:
        """Write one perturbed input per row of `masks`, 1 shown and 0 hidden, into `out`."""
        ...


@runtime_checkable
class Composite(Protocol):
    """A scene made of two arrays and a label per element: shown where the mask is 1."""

    shown: NDArray[Any]  # the input itself
    hidden: NDArray[Any]  # everything hidden, same shape and dtype
    labels: NDArray[np.intp]  # (H, W) the feature of each pixel
    channel_axis: int | None  # axis of the channels in `shown`, None for a grey image


# ---------------------------------------------------------------- the model


class Model(Protocol):
    """A black box: a batch of n inputs in, scores of shape (n, outputs) or (n,) out."""

    def __call__(self, batch: Any) -> Any:
        """Score a batch."""
        ...


class MaskScorer(Protocol):
    """Scores masks of one scene; may know several ways of computing the same scores."""

    @property
    def ways(self) -> int:
        """Number of ways to compute, such as memory layouts; the fastest is kept."""
        ...

    @property
    def overlaps(self) -> bool:
        """Whether a batch may be launched while another is running, as on a GPU."""
        ...

    @property
    def sizes(self) -> Sequence[int]:
        """Batch sizes worth trying, increasing."""
        ...

    def launch(self, masks: FloatArray, way: int = 0) -> Any:
        """Scores, (n, outputs), on a GPU still being computed; a list selects some columns."""
        ...

    def fetch(self, launched: Any) -> Any:
        """The launched scores, or some of their columns, as an array in main memory."""
        ...


@runtime_checkable
class RenderingModel(Protocol):
    """A model that renders composites itself, for example on a GPU, so that only masks travel."""

    def scorer(self, scene: Composite) -> AbstractContextManager[MaskScorer]:
        """Open the model for one scene; changes to the model are undone on exit."""
        ...


@runtime_checkable
class DeviceModel(Protocol):
    """A model that knows whether it runs on a GPU; a run then keeps the GPU busy."""

    @property
    def on_gpu(self) -> bool:
        """Whether it runs on a GPU."""
        ...


# ---------------------------------------------------------------- what to ask, when to stop
MaskDesign = Callable[[np.random.Generator, int, int], "FloatArray | Proposal"]  # rng, n_masks, p
Kernel = Callable[[FloatArray], FloatArray]  # closeness (N, p) -> weights (N,)
Stop = Callable[["Posterior", "Answers"], "str | None"]  # the reason to stop, or None


class Design(Protocol):
    """Decides which masks to ask about next, round by round."""

    def next(
        self, rng: np.random.Generator, answers: Answers
    ) -> FloatArray | Proposal | int | None:
        """Masks to ask about next, (n, p) zeros and ones, given the answers so far.

        Masks alone must be drawn evenly; a `Proposal` has weights that correct for uneven draws. A
        number asks for inputs drawn by the domain's own law (tables). None ends the questions.
        """
        ...


# ---------------------------------------------------------------- from answers to importances


class Method(Protocol):
    """Turns answers into a posterior of the importances."""

    @property
    def name(self) -> str:
        """Name of the method in tables and reports."""
        ...

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """The posterior of one target."""
        ...


@runtime_checkable
class SharedMethod(Method, Protocol):
    """A method that fits several targets of the same masks for little more than the cost of one."""

    def fit_targets(
        self, rng: np.random.Generator, answers: Sequence[Answers]
    ) -> tuple[Posterior, ...]:
        """The posteriors of several targets, which share masks and weights."""
        ...


class ScalarLaw(Protocol):
    """The law of a single number, such as lambda, sigma^2 or the intercept."""

    @property
    def mean(self) -> float:
        """Its mean."""
        ...

    @property
    def median(self) -> float:
        """Its median."""
        ...

    def quantile(self, q: ArrayLike) -> FloatArray:
        """Quantiles, in the shape of `q`."""
        ...

    def cdf(self, x: ArrayLike) -> FloatArray:
        """P(number <= x), in the shape of `x`."""
        ...

    def sample(self, n: int, rng: RNGLike = None) -> FloatArray:
        """Independent draws, shape (n,)."""
        ...


class Law(Protocol):
    """The joint law of p importances. `eblime.laws` has normal laws, draws and point estimates."""

    @property
    def has_spread(self) -> bool: ...  # noqa: D102  False for a point estimate

    @property
    def n_features(self) -> int: ...  # noqa: D102

    @property
    def mean(self) -> FloatArray: ...  # noqa: D102  (p,)

    @property
    def sd(self) -> FloatArray: ...  # noqa: D102  (p,)

    @property
    def cov(self) -> FloatArray: ...  # noqa: D102  (p, p)

    def summary(self, prob: float) -> Mapping[str, FloatArray]:
        """`sd`, `low`, `high` and `prob_positive`, each (p,); empty for a point estimate."""
        ...

    def quantile(self, q: FloatArray) -> FloatArray: ...  # noqa: D102  (K,) -> (K, p)

    def hdi(self, prob: float) -> FloatArray: ...  # noqa: D102  (p, 2)

    def pdf(self, x: FloatArray) -> FloatArray: ...  # noqa: D102  x broadcasts against (p,)

    def cdf(self, x: FloatArray) -> FloatArray: ...  # noqa: D102  x broadcasts against (p,)

    def prob_positive(self) -> FloatArray: ...  # noqa: D102  (p,)

    def prob_greater(self) -> FloatArray: ...  # noqa: D102  (p, p)

    def draw(self, rng: np.random.Generator, n: int) -> Draws: ...  # noqa: D102
