"""The protocols of the library on one page: what each kind of part must provide.

What a part may have in addition is in docs/reference/index.md.

x --Domain--> Subject --> Neighbourhood --Design--> masks --in batches--> Model --> scores
                                             `--Kernel--> weights
Answers (masks, scores, weights, ends) --Method--> Posterior --Stop?--> next round, or Explanation
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eblime._types import FloatArray, IntArray, RNGLike

if TYPE_CHECKING:
    from eblime.answers import Answers, Proposal
    from eblime.core.laws import Draws
    from eblime.posterior import Posterior

__all__ = [
    *("ALL_HIDDEN", "INPUT_ITSELF", "Design", "Kernel", "Law", "MaskDesign"),
    *("MeanBatch", "Method", "Model", "Neighbourhood", "RenderedScene"),
    *("ScalarLaw", "Scene", "Stop", "Subject"),
]


INPUT_ITSELF = -1  # the row number of the input itself in a neighbourhood
ALL_HIDDEN = -2  # the row number of the input with every feature hidden


def masks_at(masks: FloatArray, rows: IntArray) -> FloatArray:
    """Masks by number: ones for the input itself, zeros for everything hidden."""
    found = np.ones((len(rows), masks.shape[1]))
    found[rows == ALL_HIDDEN] = 0
    found[rows >= 0] = masks[rows[rows >= 0]]
    return found


class Scene(Protocol):
    """One input cut into features: the part of it that an explanation keeps."""

    @property
    def domain(self) -> str:
        """Name of the domain it belongs to, such as "image"; see `eblime.registry`."""

    @property
    def n_features(self) -> int:
        """Number of features, p."""

    @property
    def features(self) -> Sequence[str]:
        """A readable name for each feature."""


@runtime_checkable
class Subject(Protocol):
    """One input that was read and can be perturbed.

    It may also have `whole`, a scene with more features, and `fixed`, which of these no perturbed
    input changes, as booleans: an explanation has all of them, and theirs are zero.
    """

    @property
    def scene(self) -> Scene:
        """What an explanation keeps of the input."""

    def neighbourhood(self, rng: np.random.Generator) -> Neighbourhood:
        """The perturbed inputs around it: none yet."""


class Neighbourhood(Protocol):
    """Perturbed inputs around one input, numbered from 0; it grows by `extend`.

    It may also have `closeness`, what the kernel sees in place of the masks, (N, p), in which ones
    are the input itself; `scope`, what decides an input besides its key, if that is not the scene;
    and `affordable(n)`, how many perturbed inputs n model calls are enough for.
    """

    @property
    def masks(self) -> FloatArray:
        """The perturbed inputs as the regression sees them, (N, p)."""

    @property
    def exact(self) -> bool:
        """Whether a mask determines the perturbed input; False where chance fills in the rest."""

    @property
    def sizes(self) -> Sequence[int]:
        """Batch sizes worth trying, increasing; the largest fits into memory."""

    def extend(self, rng: np.random.Generator, wanted: FloatArray | int) -> Neighbourhood:
        """Add perturbed inputs: one per mask, or a number of them drawn by the domain's own law."""

    def inputs(self, rows: IntArray) -> Any:
        """A batch of perturbed inputs by number, `INPUT_ITSELF` and `ALL_HIDDEN` among them."""

    def keys(self, rows: IntArray) -> Sequence[bytes]:
        """A key for each perturbed input by number: the same key is the same input, asked once."""


@runtime_checkable
class RenderedScene(Scene, Protocol):
    """A scene of two arrays and a label per element, shown where the mask is 1: images."""

    shown: np.ndarray  # the input itself
    hidden: np.ndarray  # everything hidden, same shape and dtype
    labels: NDArray[np.intp]  # (H, W) the feature of each pixel
    channel_axis: int | None  # axis of the channels in `shown`, None for a grey image

    def batch(self, n: int) -> np.ndarray:
        """An empty batch of n inputs, for the renderer to write into."""

    def renderer(self) -> Any:
        """An object whose `render(masks, out)` writes one perturbed input per mask into `out`.

        It is created once and used many times.
        """


def is_rendered(scene: object) -> TypeGuard[RenderedScene]:
    """Whether a scene is a `RenderedScene`; asks its class, so that no property is computed."""
    return hasattr(type(scene), "renderer")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeanBatch:
    """A batch whose scores are means over groups of inputs that follow each other.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.protocols import MeanBatch
    >>> batch = MeanBatch(inputs=["a", "b", "c"], sizes=np.array([2, 1]))
    >>> batch.means(np.array([[1.0], [3.0], [5.0]]))
    array([[2.],
           [5.]])
    """

    inputs: Any  # what the model gets
    sizes: IntArray  # (n,) how many inputs each group has
    link: Callable[[FloatArray], FloatArray] | None = None  # of the means, such as log-odds

    @property
    def n_inputs(self) -> int:
        """Number of inputs that the model gets."""
        return int(self.sizes.sum())

    def means(self, scores: FloatArray) -> FloatArray:
        """Scores of all inputs, (n_inputs, outputs), as means over the groups, (n, outputs)."""
        starts = np.cumsum(self.sizes) - self.sizes
        found = np.add.reduceat(scores, starts, axis=0) / self.sizes[:, None]
        return found if self.link is None else self.link(found)


class Model(Protocol):
    """A black box: a batch of n inputs in, scores of shape (n, outputs) or (n,) out.

    A model may also have `ranked = False`, if its highest output is not the prediction, and
    `about(scene)`, a dictionary of words about how it takes an input, for the provenance; or one
    in `decided`, about all inputs.
    """

    def __call__(self, batch: Any) -> Any:
        """Score a batch."""


MaskDesign = Callable[[np.random.Generator, int, int], "FloatArray | Proposal"]  # rng, n_masks, p
Kernel = Callable[[FloatArray], FloatArray]  # closeness (N, p) -> weights (N,)
Stop = Callable[["Posterior", "Answers"], "str | None"]  # the reason to stop, or None


@runtime_checkable
class Design(Protocol):
    """Decides which masks to ask about next, round by round."""

    def next(
        self, rng: np.random.Generator, answers: Answers
    ) -> FloatArray | Proposal | int | None:
        """Masks to ask about next, (n, p) zeros and ones, given the answers so far.

        Masks alone must be drawn evenly; a `Proposal` has weights that correct for uneven draws. A
        number asks for inputs drawn by the domain's own law (tables). None ends the questions.
        """


@runtime_checkable
class Method(Protocol):
    """Turns answers into a posterior of the importances."""

    @property
    def name(self) -> str:
        """Name of the method in tables and reports."""

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """The posterior of one target."""


class ScalarLaw(Protocol):
    """The law of a single number, such as lambda, sigma^2 or the intercept."""

    @property
    def mean(self) -> float:
        """Its mean."""

    @property
    def median(self) -> float:
        """Its median."""

    def quantile(self, q: ArrayLike) -> FloatArray:
        """Quantiles, in the shape of `q`."""

    def cdf(self, x: ArrayLike) -> FloatArray:
        """P(number <= x), in the shape of `x`."""

    def sample(self, n: int, rng: RNGLike = None) -> FloatArray:
        """Independent draws, shape (n,)."""


class Law(Protocol):
    """The joint law of p importances; `eblime.laws` has normal laws, draws and point estimates."""

    @property
    def has_spread(self) -> bool:
        """Whether there is uncertainty: False for a point estimate."""

    @property
    def n_features(self) -> int:
        """Number of features, p."""

    @property
    def mean(self) -> FloatArray:
        """Means, (p,)."""

    @property
    def sd(self) -> FloatArray:
        """Standard deviations, (p,)."""

    @property
    def cov(self) -> FloatArray:
        """Covariances, (p, p)."""

    def quantile(self, q: FloatArray) -> FloatArray:
        """Marginal quantiles, (K,) -> (K, p)."""

    def hdi(self, prob: float) -> FloatArray:
        """Highest-density intervals, (p, 2)."""

    def pdf(self, x: FloatArray) -> FloatArray:
        """Marginal densities; `x` broadcasts against (p,)."""

    def cdf(self, x: FloatArray) -> FloatArray:
        """P(beta_j <= x); `x` broadcasts against (p,)."""

    def prob_positive(self) -> FloatArray:
        """P(beta_j > 0), (p,)."""

    def prob_greater(self) -> FloatArray:
        """P(beta_i > beta_j), (p, p)."""

    def draw(self, rng: np.random.Generator, n: int) -> Draws:
        """Independent draws of the importances, and of what else the law knows."""
