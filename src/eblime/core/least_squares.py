"""Weighted least squares without shrinkage, with standard errors that allow for unequal noise.

A Bayesian posterior mean is shrunk towards zero, which is right for one input but adds up over many
of them. Averages over inputs start from these estimates instead.
"""

from __future__ import annotations

import numpy as np

from eblime._types import FloatArray
from eblime.core.pairs import find_pairs

__all__ = ["least_squares"]

_RANK = 1e-9  # smallest singular value that counts, relative to the largest


def least_squares(
    masks: FloatArray, scores: FloatArray, weights: FloatArray, *, intercept: bool
) -> tuple[FloatArray, FloatArray] | None:
    """Estimate and standard error of each importance, each (p,).

    None if the masks do not determine every importance, with at least two answers to spare.

    Notes
    -----
    The standard errors are those of HC3: residuals divided by one minus their leverage. If masks
    come in complementary pairs (`find_pairs`), a pair counts as one observation.

    Examples
    --------
    >>> masks = np.array([[1, 1], [1, 0], [0, 1], [0, 0], [1, 0], [0, 1]], dtype=float)
    >>> estimate, se = least_squares(masks, masks @ [2.0, -1.0], np.ones(6), intercept=True)
    >>> estimate.round(3), se.round(3)
    (array([ 2., -1.]), array([0., 0.]))
    """
    rows = weights > 0
    root, drawn = np.sqrt(weights[rows]), masks[rows]
    columns = np.column_stack([np.ones(len(drawn)), drawn]) if intercept else drawn
    n, p = columns.shape
    if n < p + 2:
        return None
    basis, size, directions = np.linalg.svd(root[:, None] * columns, full_matrices=False)
    if size[-1] <= _RANK * size[0]:
        return None
    solve = (directions.T / size) @ basis.T  # (p, n)
    target = root * scores[rows]
    estimate = solve @ target
    residual = target - basis @ (basis.T @ target)
    spare = np.maximum(1 - (basis**2).sum(axis=1), 1e-6)
    influence = solve * (residual / spare)
    pairs = find_pairs(drawn)
    if pairs is not None:
        influence[:, pairs.first] += influence[:, pairs.second]
        influence[:, pairs.second] = 0.0
    se = np.sqrt((influence**2).sum(axis=1))
    return estimate[int(intercept) :], se[int(intercept) :]
