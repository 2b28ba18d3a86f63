"""Designs that decide all masks at once.

| name | masks | without replacement |
|---|---|---|
| `bernoulli` | a fair coin for each feature | no |
| `sizes` | the number of hidden features is uniform: lime's for texts | no |
| `paired` | complementary pairs, all equally likely | yes |
| `stratified` | complementary pairs, each size in proportion to its number of masks | yes |
| `leverage` | complementary pairs, all sizes equally likely | yes |
| `exhaustive` | all 2^p masks | yes |

`designs/sizes.py` has two more, which draw the number of shown features first.

A design without replacement asks a mask again only after it has asked all 2^p. Except for `sizes`,
all have the same estimand: the weighted linear fit to all 2^p masks. `sizes` has lime's law of
masks, in which those that hide one feature are as frequent as those that hide half of them.
"""

from __future__ import annotations

import numpy as np

from eblime._types import FloatArray
from eblime.answers import Proposal
from eblime.designs.pairs import any_pairs, pairs_by_size, proposal

__all__ = [
    "MOST_EXHAUSTIVE",
    "bernoulli",
    "exhaustive",
    "is_exhaustive",
    "leverage",
    "paired",
    "sizes",
    "stratified",
]

MOST_EXHAUSTIVE = 20  # features that an exhaustive design may have: a million masks


def bernoulli(rng: np.random.Generator, n_masks: int, p: int) -> FloatArray:
    """Show or hide each feature by a fair coin; the input itself is the first row.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.designs import bernoulli
    >>> bernoulli(np.random.default_rng(0), 100, 4)[0]
    array([1., 1., 1., 1.])
    """
    masks = rng.integers(0, 2, size=(n_masks, p)).astype(np.float64)
    masks[0] = 1
    return masks


def paired(rng: np.random.Generator, n_masks: int, p: int) -> Proposal:
    """Complementary pairs without replacement: a mask, then the mask of all that it hides.

    All features are shown equally often. What is even in the complement, such as interactions of
    two features, cancels out of the importances. The first pair is the input itself and everything
    hidden; their weights correct for being asked always.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.designs import paired
    >>> paired(np.random.default_rng(0), 4, 3).masks
    array([[1., 1., 1.],
           [0., 0., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    return proposal(rng, n_masks, p, any_pairs)


def stratified(rng: np.random.Generator, n_masks: int, p: int) -> Proposal:
    """Complementary pairs without replacement, each size in proportion to its number of masks.

    The number of masks of each size is what `paired` has on average, rounded up or down. The first
    pair is the input itself and everything hidden.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.designs import stratified
    >>> stratified(np.random.default_rng(0), 6, 4).masks.shape
    (6, 4)
    """

    def every_pair_alike(log_pairs: FloatArray) -> FloatArray:
        return np.asarray(np.exp(log_pairs - log_pairs.max()))

    return proposal(rng, n_masks, p, pairs_by_size(every_pair_alike))


def leverage(rng: np.random.Generator, n_masks: int, p: int) -> Proposal:
    """Complementary pairs without replacement, all sizes from 1 to p - 1 equally likely.

    The sampling probabilities of Leverage SHAP (Musco and Witter, 2025): best with the kernel
    "shapley", which weighs small and large masks most. The weights correct for them, so that other
    kernels keep their estimand, with a smaller effective sample size. The first pair is the input
    itself and everything hidden.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.designs import leverage
    >>> proposal = leverage(np.random.default_rng(0), 6, 4)
    >>> proposal.masks.sum(axis=0)
    array([3., 3., 3., 3.])
    >>> proposal.sampling_weights.shape
    (6,)
    """

    def every_size_alike(log_pairs: FloatArray) -> FloatArray:
        shares = np.full(len(log_pairs), 2.0)
        if p % 2 == 0:
            shares[-1] = 1.0  # a pair of two masks of the same size
        return shares

    return proposal(rng, n_masks, p, pairs_by_size(every_size_alike))


def exhaustive(rng: np.random.Generator, n_masks: int, p: int) -> FloatArray:
    """All 2^p masks, whatever `n_masks` is: no sampling error is left. The input is the last row.

    Row k shows feature j where bit j of k is set.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.designs import exhaustive
    >>> len(np.unique(exhaustive(np.random.default_rng(0), 8, 3), axis=0))
    8
    """
    if p > MOST_EXHAUSTIVE:
        raise ValueError(
            f"An exhaustive design must have at most {MOST_EXHAUSTIVE} features; got {p}, which is "
            f"2^{p} masks. Take design='bernoulli' or fewer segments."
        )
    return ((np.arange(2**p)[:, None] >> np.arange(p)) & 1).astype(np.float64)


def sizes(rng: np.random.Generator, n_masks: int, p: int) -> FloatArray:
    """Hide a number of features that is uniform on 1 .. p, chosen at random: lime's for texts.

    The input itself is the first row.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.designs.masks import sizes
    >>> sizes(np.random.default_rng(0), 6, 4).shape
    (6, 4)
    """
    keys = rng.random((n_masks, p))
    hidden = rng.integers(1, p + 1, size=n_masks)
    limit = np.take_along_axis(np.sort(keys, axis=1), hidden[:, None] - 1, axis=1)
    masks = (keys > limit).astype(np.float64)
    masks[0] = 1
    return masks


def is_exhaustive(masks: FloatArray) -> bool:
    """Whether the masks are all 2^p masks, each once."""
    n, p = masks.shape
    if p > MOST_EXHAUSTIVE or n != 2**p or not np.isin(masks, (0, 1)).all():
        return False
    return bool(len(np.unique(masks @ 2.0 ** np.arange(p))) == n)
