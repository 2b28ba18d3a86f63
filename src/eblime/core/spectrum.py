"""One eigendecomposition of the weighted masks, shared by every lambda and every target.

O(N p min(N, p)) time and O(N p) memory; the printed N x N forms live in tests/paper.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eblime._types import BoolArray, FloatArray
from eblime.core.fit_quality import is_constant

_CONDITION = 1e-8  # of squared singular values: squaring has cost no digit that matters
_LIGHT = 1e-8  # of the median weight: rows that weigh less say next to nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Spectrum:
    """Everything about the masks and their weights that depends on neither lambda nor the scores.

    A flat intercept is integrated out by centring: with `W` the weights, the masks become
    `A = W^1/2 (Z - 1 z_bar')`, where `z_bar` is the weighted mean of each column. Then
    `u' A = 0` for `u = W^1/2 1 / |W^1/2 1|`, and the reflection that takes `u` to the axis of the
    heaviest row h turns A into rows of which that one is zero:
    `root_i (z_i - z_h - (z_bar - z_h) / (1 + u_h))`. The rank is at most n - 1 by construction,
    and no row is the small difference of large numbers, however unequal the weights are.
    """

    masks: FloatArray  # (n, p)  the weighted (reflected) masks, rows of weight zero left out
    root: FloatArray  # (n,)    W^1/2
    lever: FloatArray  # (n,)    W^1/2, with an intercept zero at the heaviest row
    heaviest: int  # row of the largest weight
    rows: BoolArray  # (N,)    True where a row has weight
    centre: FloatArray  # (p,)    z_bar, zeros without intercept
    basis: FloatArray  # (p, r)  right singular vectors
    d: FloatArray  # (r,)    squared singular values, decreasing
    flat: bool  # whether a flat intercept was integrated out

    @property
    def count(self) -> float:
        """Number of rows; one that weighs less than 1e-8 of the median counts in proportion.

        So a weight that goes to zero ends where a row of weight zero is: it does not count.
        """
        weights = self.root**2
        return float(np.minimum(weights / (_LIGHT * np.median(weights)), 1.0).sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The scores of one target as the spectrum sees them, in units of their weighted spread."""

    y: FloatArray  # (n,) the weighted (reflected) scores, divided by `unit`
    k: FloatArray  # (r,) y in the left singular basis
    residual: float  # the part of |y|^2 that no beta can reach
    mean: float  # weighted mean of the scores, 0 without intercept
    unit: float  # what one unit of `k` is worth in the scores' own units; 0 if they are constant


def decompose(masks: FloatArray, weights: FloatArray, *, flat: bool) -> Spectrum:
    """Decompose the weighted masks, centred first if there is a flat intercept.

    Rows of weight zero say nothing and are left out, so that they do not count as observations.

    Examples
    --------
    >>> spectrum = decompose(np.array([[1.0, 1.0], [1.0, 0.0]]), np.ones(2), flat=True)
    >>> spectrum.d, abs(spectrum.basis[:, 0])  # only the second column ever varies
    (array([0.5]), array([0., 1.]))
    """
    rows = weights > 0
    if not rows.all():
        masks, weights = masks[rows], weights[rows]
    root, heaviest = np.sqrt(weights), int(np.argmax(weights))
    if flat:
        lever = root.copy()
        lever[heaviest] = 0.0
        offset, weighted = _reflect(masks, root, heaviest)
        centre = masks[heaviest] + offset
        weighted *= lever[:, None]
    else:
        lever, centre, weighted = root, np.zeros(masks.shape[1]), masks * root[:, None]
    basis, d = _right_vectors(weighted, len(root) - flat)
    return Spectrum(
        masks=weighted,
        root=root,
        lever=lever,
        heaviest=heaviest,
        rows=rows,
        centre=centre,
        basis=basis,
        d=d,
        flat=flat,
    )


def respond(spectrum: Spectrum, scores: FloatArray, *, standardize: bool) -> Response:
    """Project the scores of one target on the spectrum.

    Standardising divides by the weighted spread: about the weighted mean where there is an
    intercept, about zero where there is none. Constant scores have no spread, and `unit` says so
    by being zero: nothing the masks do moves them, and the importances are exactly zero. A single
    mask with an intercept has no spread either, but then nothing is known, and `unit` stays 1.
    """
    root, lever, flat = spectrum.root, spectrum.lever, spectrum.flat
    scores = scores[spectrum.rows]
    mean, centred = 0.0, scores
    if flat:
        offset, centred = _reflect(scores, root, spectrum.heaviest)
        mean = float(scores[spectrum.heaviest] + offset)
    unit = 1.0
    if standardize and not (flat and len(root) == 1):
        constant = is_constant(scores) and (flat or not scores.any())
        top = 0.0 if constant else float(np.abs(centred).max())  # neither over- nor underflows
        rms = np.linalg.norm(lever * (centred / top)) / np.linalg.norm(root) if top else 0.0
        unit = top * float(rms)
    y = lever * (centred / unit) if unit else np.zeros_like(root)
    k, residual = project(spectrum, y)
    return Response(y=y, k=k, residual=residual, mean=mean, unit=unit)


def rescale(spectrum: Spectrum, scales: FloatArray) -> Spectrum:
    """Decompose again with each column of the masks multiplied by its scale, shape (p,).

    The coefficients of the new spectrum are those of the old one divided by the scales.
    """
    masks = spectrum.masks * scales
    basis, d = _right_vectors(masks, len(spectrum.root) - spectrum.flat)
    return replace(spectrum, masks=masks, centre=spectrum.centre * scales, basis=basis, d=d)


def is_well_conditioned(spectrum: Spectrum) -> bool:
    """Whether sums of squares keep all digits that matter, with rows to spare."""
    n, p = spectrum.masks.shape
    d = spectrum.d
    return len(d) == p < n - 1 and bool(d[-1] > _CONDITION * d[0])


def effective_size(weights: FloatArray) -> float:
    """Effective sample size of weights, (sum w)^2 / sum w^2, whatever their scale."""
    shares = weights / weights.max()
    return float(shares.sum() ** 2 / np.sum(shares**2))


def centred_rows(spectrum: Spectrum, values: FloatArray) -> FloatArray:
    """Rows of a spectrum, (n, ...), without the reflection that a flat intercept brings."""
    if not spectrum.flat:
        return values
    return np.asarray(values - np.multiply.outer(*reflection(spectrum, values)))


def reflection(spectrum: Spectrum, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What `centred_rows` subtracts: the outer product of (n,) and (...,); zeros where none is."""
    if not spectrum.flat:
        return np.zeros(len(values)), np.zeros(values.shape[1:])
    axis = spectrum.root / np.linalg.norm(spectrum.root)
    axis[spectrum.heaviest] += 1
    return axis, np.asarray((axis @ values) / axis[spectrum.heaviest])


def design_effect(spectrum: Spectrum, sampling: FloatArray) -> float:
    """How many unevenly drawn masks are worth one evenly drawn mask, at least 1.

    A weight that corrects for uneven draws, (N,), says how often a mask stands for others, not how
    precise its score is. With kernel weights k and such factors u, the variance of the importances
    is `sigma^2 A^-1 (sum k u^2 x x') A^-1` with `A = sum k u x x'`, which is larger than the
    `sigma^2 A^-1` of a regression by about `sum k u^2 |x|^2 / sum k u |x|^2`.
    """
    energy = np.sum(centred_rows(spectrum, spectrum.masks) ** 2, axis=1)
    if not energy.any():
        return 1.0
    factors = sampling[spectrum.rows]
    return max(1.0, float(energy @ factors / energy.sum() / factors.mean()))


def _right_vectors(matrix: FloatArray, most: int) -> tuple[FloatArray, FloatArray]:
    """Right singular vectors (p, r) and squared singular values (r,), null directions left out.

    At most `most` directions are not null, whatever rounding says.
    """
    n, p = matrix.shape
    if n >= p:  # p x p, and several times faster than a singular value decomposition
        d, basis = np.linalg.eigh(matrix.T @ matrix)
        if d[0] > _CONDITION * d[-1]:
            return np.ascontiguousarray(basis[:, ::-1]), d[::-1].copy()
        matrix = np.asarray(np.linalg.qr(matrix, mode="r"))
    _, singular, rows = np.linalg.svd(matrix, full_matrices=False)
    kept = singular > max(n, p) * np.finfo(float).eps * singular[0]
    kept[most:] = False
    return np.ascontiguousarray(rows[kept].T), singular[kept] ** 2


def _reflect(values: FloatArray, root: FloatArray, heaviest: int) -> tuple[FloatArray, FloatArray]:
    """Weighted mean minus the heaviest row, and the rows for `Spectrum.lever` to multiply.

    Differences from one row come first: a constant column then is exactly zero, and a large common
    shift costs no digits.
    """
    weights = root**2
    shifted = values - values[heaviest]
    offset = (weights / weights.sum()) @ shifted
    shifted -= offset / (1 + root[heaviest] / np.linalg.norm(root))
    return offset, shifted


def project(spectrum: Spectrum, y: FloatArray) -> tuple[FloatArray, float]:
    """The scores in the left singular basis, (r,), and the squared length of what is left."""
    root = np.sqrt(spectrum.d)
    with np.errstate(under="ignore"):
        k = (spectrum.basis.T @ (spectrum.masks.T @ y)) / root
        fitted = spectrum.masks @ (spectrum.basis @ (k / root))
        return k, float(np.sum((y - fitted) ** 2))
