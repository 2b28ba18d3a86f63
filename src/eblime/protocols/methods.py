"""Protocols of designs, stop rules, methods and the laws that they return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from eblime._types import FloatArray, RNGLike

if TYPE_CHECKING:
    from eblime.answers import Answers, Proposal
    from eblime.core.indices import Index
    from eblime.core.laws import Draws
    from eblime.posterior import Posterior

__all__ = [
    "Design",
    "DesignParts",
    "Kernel",
    "Law",
    "MaskDesign",
    "Method",
    "MethodParts",
    "ScalarLaw",
    "SharedMethod",
    "Stop",
]

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

    A function that returns all masks at once may have `for_kernel`.

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
    """The joint law of p importances. `eblime.laws` has normal laws, draws and point estimates.

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
