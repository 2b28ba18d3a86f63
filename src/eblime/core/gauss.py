"""A rule of many nodes reduced to a few: Gauss quadrature of a discrete measure."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh_tridiagonal

from eblime._types import FloatArray

__all__ = ["gauss_rule"]


def gauss_rule(x: FloatArray, weights: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of at most n points that integrate as the measure does, both (n,).

    Polynomials of degree up to `2 n - 1` are integrated exactly, and a smooth function nearly so.
    The measure has the nodes `x` and the positive `weights`, which sum to one.

    Notes
    -----
    Lanczos with full reorthogonalisation gives the Jacobi matrix of the measure; its eigenvalues
    are the nodes (Golub and Welsch, 1969).

    Examples
    --------
    >>> nodes, weights = gauss_rule(np.array([0.0, 1.0, 2.0]), np.array([0.25, 0.5, 0.25]), 2)
    >>> nodes.round(4), weights.round(4), round(float(weights @ nodes**3), 9)
    (array([0.2929, 1.7071]), array([0.5, 0.5]), 2.5)
    """
    centre = float(weights @ x)
    width = float(np.sqrt(weights @ (x - centre) ** 2))
    if width <= 1e-12 * max(1.0, abs(centre)):
        return np.array([centre]), np.ones(1)
    place = (x - centre) / width
    vectors = np.sqrt(weights / weights.sum())[None]
    diagonal, off_diagonal = [], []
    for _ in range(n):
        moved = place * vectors[-1]
        diagonal.append(float(moved @ vectors[-1]))
        for _ in range(2):  # the second time removes what rounding left the first time
            moved = moved - (vectors @ moved) @ vectors
        size = float(np.linalg.norm(moved))
        if size < 1e-10:
            break
        off_diagonal.append(size)
        vectors = np.vstack([vectors, moved / size])
    n_found = len(diagonal)
    nodes, rows = eigh_tridiagonal(np.array(diagonal), np.array(off_diagonal[: n_found - 1]))
    return centre + width * nodes, rows[0] ** 2
