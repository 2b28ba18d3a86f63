"""A design that looks at the answers: the masks that reduce the variance of `Quadrature` most."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import solve_triangular

from eblime._checks import check_count
from eblime._types import FloatArray
from eblime.answers import Answers
from eblime.core.indices import Index
from eblime.core.quadrature import Table, read_table, root_of_part
from eblime.core.walsh import Parameters, Part, fit_parameters
from eblime.designs.masks import MOST_EXHAUSTIVE, distinct_pairs, exhaustive, fresh_pairs
from eblime.methods.quadrature import MOST_MASKS, Quadrature
from eblime.protocols import Method

_POOL = 600  # pairs that compete in a round
_FIRST = 32  # pairs of the first round, at most, unless there are many features
_ROUNDING = 1e-9  # of a variance: smaller ones cannot be told from zero


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive:
    """Complementary pairs of masks, chosen round by round for `Quadrature`.

    The first round asks pairs at random, the input itself and everything hidden among them. Each
    further round fits `Quadrature` to the answers so far and chooses, among 600 pairs at random,
    those that reduce the posterior variance of the importances most. Within a round no answer is
    needed to choose, so that batches stay full. The prior is on the function, so that choosing by
    the answers does not bias the posterior; a regression would need corrected weights.

    Parameters
    ----------
    n_masks
        How many masks to ask in all, rounded down to pairs, and at most the 3,000 that `Quadrature`
        takes. All masks are asked in the end if 2^p is no more than `n_masks`.
    method
        The `Quadrature` whose index the masks are chosen for.

    Examples
    --------
    >>> import eblime
    >>> from eblime.designs import Adaptive
    >>> score = lambda texts: [float("not" in t and "bad" in t) for t in texts]
    >>> explainer = eblime.TextExplainer(
    ...     score, method="quadrature", design=Adaptive(n_masks=64), n_masks=64
    ... )
    >>> e = explainer.explain("this film is really not so very bad")
    >>> len(e.masks), sorted(name for name, _ in e.as_list(top=2))
    (64, ["word 'bad'", "word 'not'"])
    """

    n_masks: int
    method: Quadrature = field(default_factory=Quadrature)

    def __post_init__(self) -> None:
        """Refuse a number of masks that no design can have."""
        check_count("n_masks", self.n_masks)

    def for_method(self, method: Method) -> Adaptive:
        """The design for an explainer's method, which must be `Quadrature`."""
        if getattr(method, "functional", None) is None:
            raise ValueError(
                "design='adaptive' must be used with method='quadrature', whose posterior is not "
                f"biased by masks chosen for their answers; got {method.name}."
            )
        return replace(self, method=method)  # type: ignore[arg-type]  # it has what is needed

    def next(self, rng: np.random.Generator, answers: Answers) -> FloatArray | None:
        """The masks of the next round, (n, p), pairs one below the other."""
        p, asked = answers.n_features, answers.n_masks // 2
        total = max(1, min(self.n_masks, MOST_MASKS) // 2)
        if not asked:
            first = min(total, max(2 * p, min(total // 3, _FIRST)))
            whole, by_size = np.ones((1, p)), getattr(self.method, "index", None) == "shapley"
            others = _draw_pairs(rng, whole, first - 1, by_size=by_size)
            return in_pairs(np.concatenate([whole, others]))  # the input itself is among them
        wanted = max(4, -(-asked // 3))
        everything = p <= MOST_EXHAUSTIVE and 2**p <= self.n_masks
        if everything and asked + wanted > min(3 * 2**p // 8, total):
            chosen = fresh_pairs(exhaustive(rng, 2**p, p), answers.masks)
        elif (wanted := min(total - asked, wanted)) <= 0:
            return None
        else:
            tossed = _draw_pairs(rng, answers.masks, _POOL // 2, by_size=False)
            known = np.concatenate([answers.masks, tossed])
            pool = np.concatenate([tossed, _draw_pairs(rng, known, _POOL // 2, by_size=True)])
            table = read_table(
                answers.masks, answers.scores, noisy=answers.noisy, ends=answers.exact_ends
            )
            chosen = choose(table, self.method.functional(p), pool, wanted)
        return in_pairs(chosen) if len(chosen) else None


def in_pairs(half: FloatArray) -> FloatArray:
    """Each mask, followed by its complement."""
    return np.stack([half, 1 - half], axis=1).reshape(-1, half.shape[1])


def _draw_pairs(
    rng: np.random.Generator, known: FloatArray, n: int, *, by_size: bool
) -> FloatArray:
    """One mask of each of n pairs that are not known: coin tosses, or all sizes equally likely."""
    p = known.shape[1]

    def draw(count: int) -> FloatArray:
        tosses, shown = rng.random((count, p)), rng.integers(0, p + 1, size=(count, 1))
        ranks = tosses.argsort(axis=1).argsort(axis=1)
        return np.where(ranks < shown if by_size else tosses < 0.5, 1.0, 0.0)

    return distinct_pairs(draw, n, p, known=known)


def choose(table: Table, index: Index, pool: FloatArray, n: int) -> FloatArray:
    """The n masks of the pool that reduce the variance of the index most, chosen greedily."""
    if not table.split or not table.unit or n >= len(pool):
        return pool[:n]
    parameters = fit_parameters(table.parts, table.prior())
    left = [
        _Left.of(part, parameters, number, index, 2 * pool - 1)
        for number, part in enumerate(table.parts)
    ]
    chosen: list[int] = []
    for _ in range(n):
        gain = np.sum([part.gain() for part in left], axis=0)
        gain[chosen] = -1.0
        best = int(np.argmax(gain))
        chosen.append(best)
        for part in left:
            part.observe(best)
    return pool[chosen]


@dataclass(slots=True, kw_only=True, eq=False)
class _Left:
    """What is left to learn of one part; changed in place as masks are chosen."""

    with_index: FloatArray  # (P, n) posterior covariance of the index with the pool
    within: FloatArray  # (n, n) posterior covariance of the pool
    nugget: float
    amplitude: float
    learnt: FloatArray  # (k, n) root of what the k masks chosen so far tell about the pool

    @classmethod
    def of(
        cls, part: Part, parameters: Parameters, number: int, index: Index, pool: FloatArray
    ) -> _Left:
        """Condition the prior on the answers, by a Cholesky root: an inverse is less exact."""
        walsh, nugget = parameters.walsh, parameters.nugget(number)
        root = root_of_part(part, parameters, number)
        to_pool = _solve(root, walsh.covariance(part, part.signs, pool))
        to_index = _solve(root, walsh.cross(part, index, part.signs).T)
        before = walsh.covariance(part, pool, pool)
        return cls(
            with_index=walsh.cross(part, index, pool) - to_index.T @ to_pool,
            within=before - to_pool.T @ to_pool,
            nugget=nugget + _ROUNDING * float(np.diag(before).max()),
            amplitude=float(np.mean(_solve(root, part.scores) ** 2)),
            learnt=np.empty((0, len(pool))),
        )

    def gain(self) -> FloatArray:
        """By how much each mask of the pool would reduce the trace of the covariance, (n,)."""
        known = np.sum(self.learnt**2, axis=0)
        spread = np.maximum(np.diag(self.within) - known, 0.0) + self.nugget
        return np.asarray(self.amplitude * (self.with_index**2).sum(axis=0) / spread)

    def observe(self, row: int) -> None:
        """Condition on one mask of the pool; its answer is not needed.

        The columns of a Cholesky root are kept instead of an updated covariance: rounding errors
        of rank-one updates grow from one choice to the next.
        """
        column = self.within[:, row] - self.learnt[:, row] @ self.learnt
        spread = max(float(column[row]), 0.0) + self.nugget
        root = column / np.sqrt(spread)
        self.with_index -= np.outer(self.with_index[:, row] / np.sqrt(spread), root)
        self.learnt = np.vstack([self.learnt, root])


def _solve(root: FloatArray, right: FloatArray) -> FloatArray:
    """The solution of `root x = right`, root a lower triangle."""
    return np.asarray(solve_triangular(root, right, lower=True))
