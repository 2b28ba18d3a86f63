"""The protocols of the library on one page: what each kind of part must provide.

x --Domain--> Subject --> Neighbourhood --Design--> masks --in batches--> Model --> scores
                                             `--Kernel--> weights
Answers (masks, scores, weights, ends) --Method--> Posterior --Stop?--> next round, or Explanation
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eblime._types import FloatArray, IntArray, RNGLike

if TYPE_CHECKING:
    from eblime.answers import Answers, Proposal
    from eblime.core.indices import Index
    from eblime.core.laws import Draws
    from eblime.posterior import Posterior

__all__ = [
    *("ALL_HIDDEN", "INPUT_ITSELF", "Composite", "Described", "Design", "DesignParts"),
    *("DeviceModel", "Kernel", "Law", "MaskDesign", "MaskScorer", "MaskedScene", "MeanBatch"),
    *(
        "Method",
        "MethodParts",
        "Model",
        "Neighbourhood",
        "RenderedScene",
        "Renderer",
        "RenderingModel",
    ),
    *("ScalarLaw", "Scene", "SharedMethod", "Stop", "Subject"),
]


INPUT_ITSELF = -1  # the row number of the input itself in a neighbourhood
ALL_HIDDEN = -2  # the row number of the input with every feature hidden


def masks_at(masks: FloatArray, rows: IntArray) -> FloatArray:
    """Masks by number: ones for the input itself, zeros for everything hidden."""
    if rows.size and rows.min() >= 0:
        return masks[_as_slice(rows)]
    found = np.ones((len(rows), masks.shape[1]))
    found[rows == ALL_HIDDEN] = 0
    inside = np.flatnonzero(rows >= 0)
    found[_as_slice(inside)] = masks[_as_slice(rows[inside])]
    return found


def _as_slice(rows: IntArray) -> IntArray | slice:
    """Numbers that follow each other as a slice, which copies nothing; others as they are."""
    if rows.size and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def has_exact_ends(near: Neighbourhood) -> bool:
    """Whether the scores of the input itself and of everything hidden have no chance in them."""
    return near.exact or getattr(near, "exact_ends", False)


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


@runtime_checkable
class Subject(Protocol):
    """One input that was read and can be perturbed.

    It may also have `whole`, a scene with more features, and `fixed`, which of these no perturbed
    input changes, as booleans: an explanation has all of them, and theirs are zero.

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
        """A key for each perturbed input by number: the same key is the same input, asked once.

        A neighbourhood may also have `repeats(rows)`: for each number the position of the first one
        with the same input, or None. It is used instead of the keys where answers are not stored.
        """


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

    @property
    def n_inputs(self) -> int:
        """Number of inputs that the model gets."""
        return int(self.sizes.sum())

    def means(self, scores: FloatArray) -> FloatArray:
        """Scores of all inputs, (n_inputs, outputs), as means over the groups, (n, outputs)."""
        starts = np.cumsum(self.sizes) - self.sizes
        return np.asarray(np.add.reduceat(scores, starts, axis=0) / self.sizes[:, None])


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


MaskDesign = Callable[[np.random.Generator, int, int], "FloatArray | Proposal"]  # rng, n_masks, p
Kernel = Callable[[FloatArray], FloatArray]  # closeness (N, p) -> weights (N,)
Stop = Callable[["Posterior", "Answers"], "str | None"]  # the reason to stop, or None


@runtime_checkable
class Design(Protocol):
    """Decides which masks to ask about next, round by round.

    Examples
    --------
    A design that asks in two rounds, first about each word alone, then about all pairs of words:

    >>> from itertools import combinations
    >>> import numpy as np
    >>> import eblime
    >>> class AloneThenPairs:
    ...     def next(self, rng, answers):
    ...         alone = np.eye(answers.n_features)
    ...         if answers.n_masks == 0:
    ...             return alone
    ...         if answers.n_masks == len(alone):
    ...             return np.array([i + j for i, j in combinations(alone, 2)])
    ...         return None
    >>> count = lambda texts: [len(t.split()) for t in texts]
    >>> e = eblime.TextExplainer(count, design=AloneThenPairs()).explain("one two three four")
    >>> len(e.masks), e.provenance["rounds"]
    (10, 2)
    """

    def next(
        self, rng: np.random.Generator, answers: Answers
    ) -> FloatArray | Proposal | int | None:
        """Masks to ask about next, (n, p) zeros and ones, given the answers so far.

        Masks alone must be drawn evenly; a `Proposal` has weights that correct for uneven draws. A
        number asks for inputs drawn by the domain's own law (tables). None ends the questions.
        """


class DesignParts(Protocol):
    """What a design may have in addition to `next`; each part is optional.

    A function that returns all masks at once may have `for_kernel`, `all_masks`, `law`,
    `keeps_order` and `first_look`.

    Examples
    --------
    The design "adaptive" chooses its masks for one method:

    >>> import eblime
    >>> from eblime.designs import Adaptive
    >>> Adaptive(n_masks=64).for_method(eblime.Quadrature(index="shapley")).method.index
    'shapley'
    """

    def for_method(self, method: Method) -> Design:
        """The design for an explainer's method; refuses a method that it does not suit.

        Without it, the design does not depend on the method.
        """

    def for_kernel(self, kernel: str | Kernel | None) -> Design | MaskDesign:
        """The design for an explainer's kernel. Without it, masks do not depend on the kernel."""

    def all_masks(self, rng: np.random.Generator, n_masks: int, p: int) -> Proposal:
        """All 2^p masks, weighted as often as n_masks draws are expected to contain each.

        They take the place of a design given by its name where 2^p <= n_masks. Without it, all
        masks count the same: right for designs that draw evenly or correct for their draws.
        """

    @property
    def law(self) -> str:
        """How much each mask counts, in words, for a design that does not correct for its draws.

        It completes "the scores of all masks, ...". Without it, all masks count the same.
        """

    @property
    def keeps_order(self) -> bool:
        """Whether the first masks must be asked first, because they are balanced among themselves.

        Without it, masks that are all drawn at once are asked in random order if a stop rule may
        end the questions.
        """

    def first_look(self, p: int) -> int | None:
        """How many masks a stop rule first looks at, 32 or 48; None is the usual number.

        Without it, it is at least 64. The rounds that follow keep the error rate of rules up to
        2,000 masks.
        """

    def ending_early(self) -> Design:
        """The design in rounds that suit a stop rule.

        Without it, a design that decides all masks at once is asked in growing rounds, and one with
        rounds of its own keeps them.
        """


@runtime_checkable
class Method(Protocol):
    """Turns answers into a posterior of the importances.

    Examples
    --------
    A method of least squares with normal errors:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import eblime
    >>> from eblime.laws import normal_law
    >>> @dataclass(frozen=True)
    ... class LeastSquares:
    ...     name = "least squares"
    ...
    ...     def fit(self, rng, answers):
    ...         x = np.column_stack([np.ones(answers.n_masks), answers.masks])
    ...         gram = np.linalg.pinv(x.T @ x)
    ...         beta = gram @ x.T @ answers.scores
    ...         noise = np.mean((answers.scores - x @ beta) ** 2) + 1e-12
    ...         law = normal_law(beta[1:], noise * gram[1:, 1:])
    ...         return eblime.Posterior.from_law(law, answers, method=self.name)
    >>> score = lambda texts: [2.0 * ("good" in t) + ("fine" in t) for t in texts]
    >>> explainer = eblime.TextExplainer(score, method=LeastSquares())
    >>> explainer.explain("good and fine").posterior.mean.round(1) + 0.0
    array([2., 0., 1.])
    """

    @property
    def name(self) -> str:
        """Name of the method in tables and reports."""

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """The posterior of one target."""


class MethodParts(Protocol):
    """What a method may have in addition to `name` and `fit`; each part is optional.

    Examples
    --------
    `Quadrature` has a limit on its masks, and asks about both ends:

    >>> import eblime
    >>> eblime.Quadrature().most_masks, eblime.Quadrature().ends
    (3000, 'useful')
    """

    @property
    def has_spread(self) -> bool:
        """Whether it states its uncertainty, which stop rules need; True by default."""

    @property
    def ends(self) -> Literal["required", "useful", "unused"]:
        """Whether the scores of the input itself and with everything hidden are needed.

        The loop asks about both in the first round, unless they are "unused", the default. Where
        masks do not decide the inputs, as for tables, it refuses a method that requires them.
        """

    @property
    def counts_repeats(self) -> bool:
        """Whether a mask that occurs twice counts twice; False by default.

        If so, and if all masks were used and are few, each is repeated, so that priors do not
        matter where nothing is unknown.
        """

    @property
    def most_masks(self) -> int:
        """The largest number of masks that it takes, unless these are all masks; no limit."""

    def check_features(self, p: int) -> None:
        """Refuse an input with p features, before the model is called."""

    def functional(self, p: int) -> Index:
        """The linear functional of the function of the mask that the importances are.

        The design "adaptive" chooses masks for it, and refuses a method without it.
        """

    def with_kernel(self, kernel: str | Kernel | None) -> Method:
        """The method with an explainer's kernel, unless it has its own.

        A method with this part has no use for weights: `check_weights` refuses weights that
        contradict its kernel.
        """

    def check_weights(self, masks: FloatArray, weights: FloatArray) -> None:
        """Refuse weights that contradict its kernel."""


@runtime_checkable
class SharedMethod(Method, Protocol):
    """A method that fits several targets of the same masks for little more than the cost of one.

    Examples
    --------
    `EBLIME` decomposes the masks once for all targets:

    >>> import numpy as np
    >>> import eblime
    >>> from eblime.answers import Answers
    >>> from eblime.protocols import SharedMethod
    >>> method = eblime.EBLIME()
    >>> isinstance(method, SharedMethod)
    True
    >>> rng = np.random.default_rng(0)
    >>> masks = rng.integers(0, 2, size=(50, 2)).astype(float)
    >>> targets = [Answers(masks=masks, scores=masks[:, j], weights=np.ones(50)) for j in range(2)]
    >>> [post.mean.round(1) + 0.0 for post in method.fit_targets(rng, targets)]
    [array([1., 0.]), array([0., 1.])]
    """

    def fit_targets(
        self, rng: np.random.Generator, answers: Sequence[Answers]
    ) -> tuple[Posterior, ...]:
        """The posteriors of several targets, which share masks and weights."""


class ScalarLaw(Protocol):
    """The law of a single number, such as lambda, sigma^2 or the intercept.

    Examples
    --------
    The intercept of a fit has such a law:

    >>> import numpy as np
    >>> import eblime
    >>> masks = np.random.default_rng(0).integers(0, 2, size=(50, 2))
    >>> law = eblime.fit(masks, 0.5 + masks @ [1.0, 0.0]).intercept_law
    >>> round(law.mean, 1), law.quantile([0.25, 0.75]).round(1)
    (0.5, array([0.5, 0.5]))
    """

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
    """The joint law of p importances; `eblime.laws` has normal laws, draws and point estimates.

    Examples
    --------
    A posterior asks its law for everything that it reports:

    >>> import numpy as np
    >>> import eblime
    >>> from eblime.answers import Answers
    >>> from eblime.laws import normal_law
    >>> law = normal_law(np.array([1.0, -0.2]), np.diag([0.01, 0.04]))
    >>> masks = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> answers = Answers(masks=masks, scores=masks @ law.mean, weights=np.ones(4))
    >>> post = eblime.Posterior.from_law(law, answers, method="by hand")
    >>> post.interval(0.95).round(2)
    array([[ 0.8 ,  1.2 ],
           [-0.59,  0.19]])
    """

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
