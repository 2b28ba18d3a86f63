"""Designs that look at the answers so far, round by round.

`Adaptive` chooses the masks that reduce the posterior variance of `Quadrature` most. `Focused` and
`Information` ask complementary pairs for regressions: the first round has a third of them, all
equally likely. Later rounds prefer some pairs, and weigh each by the inverse of its chance, so that
given the answers so far a weighted sum over a round is right on average: the estimand is that of
evenly drawn masks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from eblime._checks import as_floats, check_count, check_number
from eblime._types import FloatArray
from eblime.answers import Answers, Proposal
from eblime.core.indices import Index
from eblime.core.quadrature import Table, mask_keys, read_table, root_of_part
from eblime.core.walsh import Parameters, Part, fit_parameters
from eblime.designs.masks import (
    MOST_EXHAUSTIVE,
    cap_shares,
    exhaustive,
    paired,
    pool_of_pairs,
    round_randomly,
)
from eblime.methods.quadrature import MOST_MASKS, Quadrature
from eblime.protocols import Method

_POOL = 600  # pairs that compete in a round
_FIRST = 32  # pairs of the first round, at most, unless there are many features
_ROUNDING = 1e-9  # of a variance: smaller ones cannot be told from zero
_TRIES = 20  # times to look for masks that were not asked yet


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
        takes. All masks are used if 2^p is no more than `n_masks`. Where chance fills in hidden
        values, as for tables, they are then asked repeatedly, up to `n_masks`.
    method
        The `Quadrature` whose index the masks are chosen for.
    early
        Whether a stop rule may end the questions. All masks are then asked only after most were
        asked in rounds.

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
    early: bool = False

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

    def ending_early(self) -> Adaptive:
        """The same design for questions that a stop rule may end."""
        return replace(self, early=True)

    def next(self, rng: np.random.Generator, answers: Answers) -> FloatArray | None:
        """The masks of the next round, (n, p), pairs one below the other."""
        p, asked = answers.n_features, answers.n_masks // 2
        total = max(1, min(self.n_masks, MOST_MASKS) // 2)
        most = 2 * total if answers.noisy else self.n_masks
        everything = p <= MOST_EXHAUSTIVE and 2**p <= most
        if everything and answers.noisy and (not self.early or 2 * asked >= 2**p):
            return self._all_again(rng, p, asked, total - asked)
        if not asked:
            if everything and not self.early:
                return exhaustive(rng, self.n_masks, p)
            first = min(total, max(2 * p, min(total // 3, _FIRST)))
            whole, by_size = np.ones((1, p)), getattr(self.method, "index", None) == "shapley"
            others = _new_pairs(rng, mask_keys(whole).tolist(), first - 1, p, by_size=by_size)
            return _pairs(np.concatenate([whole, others]))  # the input itself is among them
        wanted = max(4, -(-asked // 3))
        if everything and asked + wanted > min(3 * 2**p // 8, total):
            every = _every_pair(p)
            chosen = every[~np.isin(mask_keys(every), mask_keys(_first_shown(answers.masks)))]
        elif (wanted := min(total - asked, wanted)) <= 0:
            return None
        else:
            pool, index = _pool(rng, answers.masks), self.method.functional(p)
            table = read_table(
                answers.masks, answers.scores, noisy=answers.noisy, ends=answers.exact_ends
            )
            chosen = choose(table, index, pool, wanted)
        return _pairs(chosen) if len(chosen) else None

    def _all_again(
        self, rng: np.random.Generator, p: int, asked: int, left: int
    ) -> FloatArray | None:
        """All masks, as often as pairs are left; in growing rounds if a stop rule may end them."""
        half = _every_pair(p)
        n = min(left, len(half) * max(1, asked // (3 * len(half)))) if self.early else left
        if n <= 0:
            return None
        times, rest = divmod(n, len(half))
        return _pairs(np.concatenate([np.tile(half, (times, 1)), rng.permutation(half)[:rest]]))


def _pairs(half: FloatArray) -> FloatArray:
    """Each mask, followed by its complement."""
    return np.stack([half, 1 - half], axis=1).reshape(-1, half.shape[1])


def _every_pair(p: int) -> FloatArray:
    """Of each pair of masks the one that shows the first feature, (2^(p - 1), p)."""
    return exhaustive(np.random.default_rng(0), 2**p, p)[1::2]


def _pool(rng: np.random.Generator, asked: FloatArray) -> FloatArray:
    """Masks that compete: half of them coin tosses, half with sizes that are uniform."""
    p = asked.shape[1]
    known = mask_keys(_first_shown(asked)).tolist()
    tossed = _new_pairs(rng, known, _POOL // 2, p, by_size=False)
    known += mask_keys(tossed).tolist() if len(tossed) else []
    return np.concatenate([tossed, _new_pairs(rng, known, _POOL // 2, p, by_size=True)])


def _new_pairs(
    rng: np.random.Generator, known: list[Any], n: int, p: int, *, by_size: bool
) -> FloatArray:
    """Up to n distinct masks whose pair is not known; fewer where few are left."""
    seen, found = set(known), np.empty((0, p))
    for _ in range(_TRIES):
        if len(found) >= n:
            break
        keys = rng.random((2 * n + 8, p))
        shown = rng.integers(0, p + 1, size=(len(keys), 1))
        drawn = keys.argsort(axis=1).argsort(axis=1) < shown if by_size else keys < 0.5
        masks = _first_shown(drawn.astype(np.float64))
        fresh = []
        for row, key in enumerate(mask_keys(masks).tolist()):
            if key not in seen:
                seen.add(key)
                fresh.append(row)
        found = np.concatenate([found, masks[fresh]])
    return found[:n]


def _first_shown(masks: FloatArray) -> FloatArray:
    """Of each pair the mask that shows the first feature."""
    return np.where(masks[:, :1] > 0, masks, 1 - masks)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Focused:
    """BayesLIME's focused sampling: pairs where the prediction is least certain are likelier.

    Candidates are drawn evenly. Among them the chance of a pair is proportional to
    `exp(sd / temperature)`, with sd the predictive standard deviation of a line fitted to the
    answers so far. Unlike BayesLIME's, the weights correct for it. Within a round no mask is asked
    twice; a later round may ask one again.

    Parameters
    ----------
    n_masks
        Number of masks.
    temperature
        Of the softmax, in units of the scores' spread. BayesLIME has 5e-4 for probabilities, which
        is .0025 where their spread is .2.
    explore
        Share of the pairs that are drawn evenly. No weight is above its inverse.
    rounds
        Number of rounds after the first.
    pool
        Number of candidate pairs in a round; all pairs if there are no more.

    Examples
    --------
    >>> import eblime
    >>> from eblime.designs import Focused
    >>> score = lambda texts: [("good" in text) / (1 + ("bad" in text)) for text in texts]
    >>> text = "a good film with a bad story about three people in an old house"
    >>> focused = Focused(n_masks=200, explore=0.5)
    >>> eblime.TextExplainer(score, design=focused).explain(text).provenance["rounds"]
    5
    """

    n_masks: int
    temperature: float = 0.0025
    explore: float = 0.5
    rounds: int = 4
    pool: int = 5_000

    def __post_init__(self) -> None:
        """Refuse settings that no design can have."""
        check_number("temperature", self.temperature)
        _check_rounds(self.n_masks, self.explore, self.rounds)
        check_count("pool", self.pool)

    def next(self, rng: np.random.Generator, answers: Answers) -> Proposal | None:
        """The pairs of the next round, and None once `n_masks` are answered."""
        count = _pairs_now(self.n_masks, self.rounds, answers)
        if count is None:
            return None
        if answers.n_masks == 0:
            return paired(rng, count, answers.n_features)
        pool = pool_of_pairs(rng, max(self.pool, count), answers.n_features)
        count = min(count, len(pool))
        sd = _predictive_sd(answers, pool)
        log_chance = sd / self.temperature
        softmax = np.exp(log_chance - logsumexp(log_chance))
        shares = (1 - self.explore) * softmax + self.explore / len(pool)
        chance = cap_shares(float(count), shares, np.ones(len(pool)))
        order = rng.permutation(len(pool))
        taken = order[round_randomly(rng, chance[order]) == 1]
        return _proposal(pool[taken], count / (len(pool) * chance[taken]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Information:
    """Pairs that are expected to reduce the variance of the importances most are likelier.

    For a regression the reduction does not depend on the answer: a mask x with V the covariance of
    the coefficients reduces the variance of `c'beta` by `(c'Vx)^2 / (1 + x'Vx)`. Each pair is
    chosen from a few candidates of its own with a chance proportional to it, and V is updated after
    each choice. The weights correct for the choice. No mask is asked twice within a round.

    Under the default kernel all masks are almost equally informative about a line, and this design
    is hardly better than `paired`. It helps a question about few features after an uneven start.

    Parameters
    ----------
    n_masks
        Number of masks.
    contrast
        The question, one number per feature: the variance of `contrast @ beta` matters. None is
        the sum of the variances of all importances.
    explore
        Share of the pairs that are drawn evenly. No weight is above its inverse.
    rounds
        Number of rounds after the first.
    candidates
        For each pair to choose; fewer if there are not enough pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.answers import Answers
    >>> from eblime.designs import Information
    >>> design = Information(n_masks=60, contrast=(1.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    >>> design.next(np.random.default_rng(0), Answers.none("abcdefg")).masks.shape
    (20, 7)
    """

    n_masks: int
    contrast: tuple[float, ...] | None = None
    explore: float = 0.25
    rounds: int = 4
    candidates: int = 16

    def __post_init__(self) -> None:
        """Refuse settings that no design can have."""
        _check_rounds(self.n_masks, self.explore, self.rounds)
        check_count("candidates", self.candidates)
        if self.contrast is not None:
            contrast = as_floats("contrast", self.contrast)
            if contrast.ndim != 1 or not np.isfinite(contrast).all() or not contrast.any():
                raise ValueError(
                    "`contrast` must be finite numbers, one per feature and not all zero; got "
                    f"{self.contrast!r:.80}."
                )

    def next(self, rng: np.random.Generator, answers: Answers) -> Proposal | None:
        """The pairs of the next round, and None once `n_masks` are answered."""
        p = answers.n_features
        question = np.eye(p) if self.contrast is None else np.array([self.contrast], dtype=float)
        if question.shape[1] != p:
            raise ValueError(
                f"`contrast` must have one number for each of the {p} features; "
                f"got {question.shape[1]}."
            )
        count = _pairs_now(self.n_masks, self.rounds, answers)
        if count is None:
            return None
        if answers.n_masks == 0:
            return paired(rng, count, p)
        pool = pool_of_pairs(rng, count * self.candidates, p)
        blocks = np.array_split(rng.permutation(len(pool)), min(count, len(pool)))
        cov, chosen, weights = _ridge(answers)[1], [], []
        for block in blocks:
            rows = _with_ones(np.concatenate([pool[block], 1 - pool[block]]))
            turned = rows @ cov  # (2 candidates, 1 + p)
            left = 1 + np.sum(turned * rows, axis=1)
            gain = (np.sum((turned[:, 1:] @ question.T) ** 2, axis=1) / left).reshape(2, -1).sum(0)
            even = np.full(len(block), 1 / len(block))
            shares = gain / gain.sum() if gain.sum() > 0 else even
            chance = (1 - self.explore) * shares + self.explore * even
            taken = rng.choice(len(block), p=chance / chance.sum())
            chosen.append(pool[block[taken]])
            weights.append(len(blocks) / (len(pool) * chance[taken]))
            cov = _update(_update(cov, rows[taken]), rows[len(block) + taken])
        return _proposal(np.array(chosen), np.array(weights))


def _check_rounds(n_masks: int, explore: float, rounds: int) -> None:
    """Refuse what no design in rounds can have."""
    check_count("n_masks", n_masks)
    check_count("rounds", rounds)
    check_number("explore", explore)
    if explore > 1:
        raise ValueError(f"`explore` must be at most 1; got {explore}.")


def _pairs_now(n_masks: int, rounds: int, answers: Answers) -> int | None:
    """How many masks to ask in the first round, or pairs in a later one; None at the end.

    The first round has at least twice as many masks as features, where `n_masks` allows it; an odd
    mask is among them.
    """
    later = (n_masks - max(n_masks // 3, min(n_masks, 2 * answers.n_features))) // 2  # in pairs
    if answers.n_masks == 0:
        return n_masks - 2 * later
    left = (n_masks - answers.n_masks) // 2
    return min(left, -(-later // rounds)) if left > 0 else None


def _proposal(masks: FloatArray, weights: FloatArray) -> Proposal:
    """Pairs from one mask of each, with the weight of each pair."""
    return Proposal(masks=_pairs(masks), sampling_weights=np.repeat(weights, 2))


def _predictive_sd(answers: Answers, pool: FloatArray) -> FloatArray:
    """Standard deviation of the prediction for the masks of each pair, in the scores' spread."""
    missed, cov = _ridge(answers)
    weights, scores = answers.weights, answers.scores
    centred = scores - np.average(scores, weights=weights)
    spread = float(weights @ centred**2)
    if spread == 0:
        return np.zeros(len(pool))
    sigma = float(np.sqrt(weights @ missed**2 / spread))
    both = [np.einsum("ij,jk,ik->i", rows, cov, rows) for rows in map(_with_ones, (pool, 1 - pool))]
    return np.asarray(sigma * np.mean(np.sqrt(1 + np.array(both)), axis=0))


def _ridge(answers: Answers) -> tuple[FloatArray, FloatArray]:
    """Residuals and unscaled covariance of a line with ridge parameter 1, intercept first."""
    rows = _with_ones(answers.masks)
    weighted = rows.T * answers.weights
    cov = np.asarray(np.linalg.inv(weighted @ rows + np.eye(len(weighted))), dtype=np.float64)
    return answers.scores - rows @ (cov @ (weighted @ answers.scores)), cov


def _with_ones(masks: FloatArray) -> FloatArray:
    """Masks with a first column of ones, for the intercept."""
    return np.column_stack([np.ones(len(masks)), masks])


def _update(cov: FloatArray, row: FloatArray) -> FloatArray:
    """The covariance once a row of weight one was answered."""
    turned = cov @ row
    return np.asarray(cov - np.outer(turned, turned) / (1 + row @ turned))
