"""BayesLIME's focused sampling, with weights that correct for the choice of the masks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from eblime._checks import check_count, check_number
from eblime._types import FloatArray
from eblime.answers import Answers, Proposal
from eblime.designs.adaptive import in_pairs
from eblime.designs.arrays import orthogonal
from eblime.designs.masks import cap_shares, pool_of_pairs, round_randomly

_ROUNDS = 4  # after the first
_CANDIDATES = 5_000  # pairs in a round


@dataclass(frozen=True, slots=True, kw_only=True)
class Focused:
    """BayesLIME's focused sampling: pairs where the prediction is least certain are likelier.

    A third of the masks are orthogonal. In four later rounds the chance of one of
    5,000 candidates is proportional to `exp(sd / temperature)`, with sd the predictive standard
    deviation of a line fitted to the answers so far. Unlike BayesLIME's, each pair is weighed by
    the inverse of its chance, so that the estimand is that of evenly drawn masks. Within a round no
    mask is asked twice.

    Parameters
    ----------
    n_masks
        Number of masks.
    temperature
        Of the softmax, in units of the scores' spread. BayesLIME has 5e-4 for probabilities, which
        is .0025 where their spread is .2.
    explore
        Share of the pairs that are drawn evenly. No weight is above its inverse.

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

    def __post_init__(self) -> None:
        check_count("n_masks", self.n_masks)
        check_number("temperature", self.temperature)
        check_number("explore", self.explore)
        if self.explore > 1:
            raise ValueError(f"`explore` must be at most 1; got {self.explore}.")

    def next(self, rng: np.random.Generator, answers: Answers) -> Proposal | None:
        """The pairs of the next round, and None once `n_masks` are answered."""
        n, p = self.n_masks, answers.n_features
        later = (n - max(n // 3, min(n, 2 * p))) // 2  # pairs after the first round
        if answers.n_masks == 0:
            masks = orthogonal(rng, n - 2 * later, p)
            weights = np.ones(len(masks))  # the ends are always asked, and count less for it
            masks[:2], weights[:2] = [[1.0], [0.0]][: len(masks)], len(masks) / 2.0**p
            return Proposal(masks=masks, sampling_weights=weights)
        left = (n - answers.n_masks) // 2
        if left <= 0:
            return None
        count = min(left, -(-later // _ROUNDS))
        pool = pool_of_pairs(rng, max(_CANDIDATES, count), p)
        count = min(count, len(pool))
        sd = _predictive_sd(answers, pool)
        log_chance = sd / self.temperature
        softmax = np.exp(log_chance - logsumexp(log_chance))
        shares = (1 - self.explore) * softmax + self.explore / len(pool)
        chance = cap_shares(float(count), shares, np.ones(len(pool)))
        order = rng.permutation(len(pool))
        taken = order[round_randomly(rng, chance[order]) == 1]
        weights = count / (len(pool) * chance[taken])
        return Proposal(masks=in_pairs(pool[taken]), sampling_weights=np.repeat(weights, 2))


def _predictive_sd(answers: Answers, pool: FloatArray) -> FloatArray:
    """Standard deviation of the prediction for the masks of each pair, in the scores' spread."""
    weights, scores = answers.weights, answers.scores
    rows, *both = (np.insert(masks, 0, 1, axis=1) for masks in (answers.masks, pool, 1 - pool))
    weighted = rows.T * weights  # a line with ridge parameter 1, intercept first
    cov = np.linalg.inv(weighted @ rows + np.eye(len(weighted)))
    missed = scores - rows @ (cov @ (weighted @ scores))
    centred = scores - np.average(scores, weights=weights)
    spread = float(weights @ centred**2)
    if spread == 0:
        return np.zeros(len(pool))
    sigma = float(np.sqrt(weights @ missed**2 / spread))
    sizes = [np.einsum("ij,jk,ik->i", ends, cov, ends) for ends in both]
    return np.asarray(sigma * np.mean(np.sqrt(1 + np.array(sizes)), axis=0))
