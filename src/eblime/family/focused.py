"""Designs in rounds for regressions, whose weights correct for the choice of their masks.

`Focused` and `Information` ask complementary pairs: the first round has a third of them, all
equally likely. Later rounds prefer some pairs, and weigh each by the inverse of its chance, so that
given the answers so far a weighted sum over a round is right on average: the estimand is that of
evenly drawn masks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from eblime._checks import as_floats, check_count, check_number
from eblime._types import FloatArray
from eblime.answers import Answers, Proposal
from eblime.designs.adaptive import in_pairs
from eblime.designs.masks import cap_shares, paired, pool_of_pairs, round_randomly


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
    >>> from eblime.family import Focused
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
    >>> from eblime.family import Information
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
    return Proposal(masks=in_pairs(masks), sampling_weights=np.repeat(weights, 2))


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
