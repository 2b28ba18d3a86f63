"""Masks asked in complementary pairs: what is even in the complement cancels.

Half of the sum of the scores of a pair is their even part, half of the difference the odd part.
Under a kernel that weighs both masks of each pair the same, the importances depend on the odd parts
alone, and the even parts, interactions of two features among them, only move the intercept. The
lack of fit then must be that of the odd parts: counting the even ones makes intervals too wide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eblime._types import FloatArray, IntArray
from eblime.core.lam import Evidence
from eblime.core.spectrum import Response, Spectrum, centred_rows, reflection

MOST_EVEN = 0.05  # share of the masks' variance that may be even
_LEAST_PAIRED = 0.9  # share of the masks that must have a partner


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Rows of a spectrum that belong together: a mask and its complement."""

    first: IntArray  # (m,)
    second: IntArray  # (m,), each next to its first

    def split(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Rows of the first and of the second masks; views where one pair follows the other."""
        start, m = int(self.first[0]) if len(self.first) else 0, len(self.first)
        if m and int(self.first[-1]) == start + 2 * m - 2:
            return values[start : start + 2 * m : 2], values[start + 1 : start + 2 * m : 2]
        return values[self.first], values[self.second]


def find_pairs(masks: FloatArray) -> Pairs | None:
    """The complementary pairs of neighbouring rows; None if fewer than nine in ten rows have one.

    Examples
    --------
    >>> find_pairs(np.array([[1.0, 0.0], [0.0, 1.0]]))
    Pairs(first=array([0]), second=array([1]))
    """
    numbers = pair_numbers(masks)
    second = np.flatnonzero(numbers != np.arange(len(masks)))
    if 2 * len(second) < _LEAST_PAIRED * len(masks):
        return None
    return Pairs(first=numbers[second], second=second)


def pair_numbers(masks: FloatArray) -> IntArray:
    """A number for each mask, (N,), which a mask shares with its complement next to it.

    Examples
    --------
    >>> pair_numbers(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]))
    array([0, 0, 2, 3])
    """
    numbers = np.arange(len(masks))
    opens = np.flatnonzero((masks[:-1] + masks[1:] == 1).all(axis=1))  # complements come next
    if opens.size:  # of z, 1 - z, z, 1 - z only the first and the third open a pair
        starts = np.concatenate([[True], np.diff(opens) > 1])
        run = np.maximum.accumulate(np.where(starts, opens, 0))
        opens = opens[(opens - run) % 2 == 0]
        numbers[opens + 1] = opens
    return numbers


def odd_evidence(
    evidence: Evidence,
    spectrum: Spectrum,
    response: Response,
    pairs: Pairs,
    *,
    df: float,
    factor: float = 1.0,
) -> Evidence:
    """The evidence with the lack of fit of the odd parts, with `df` degrees of freedom.

    With equal weights in each pair this is the regression of the odd parts alone. Weights that are
    nearly equal let a share of the even parts through: the share that the masks have themselves.
    Where that is more than 5 %, the evidence stays as it is. Rows without a partner count half. The
    lack of fit is multiplied by the `factor` of its variance that reaches the importances.
    """
    share = even_share(spectrum, pairs)
    if share > MOST_EVEN:
        return evidence
    beta = spectrum.basis @ (response.k / np.sqrt(spectrum.d))
    missed = centred_rows(spectrum, response.y - spectrum.masks @ beta)
    first, second = pairs.split(missed)
    odd, even = (float(np.sum(half**2)) / 2 for half in (first - second, first + second))
    alone = np.ones(len(missed), dtype=bool)
    alone[pairs.first] = alone[pairs.second] = False
    missing = (1 - share) * odd + share * even + float(np.sum(missed[alone] ** 2)) / 2
    floor = factor * (evidence.floor - response.residual + missing)
    return Evidence(d=evidence.d, k=evidence.k, floor=floor, df=df)


def even_share(spectrum: Spectrum, pairs: Pairs) -> float:
    """The share of the centred masks' sum of squares that is even; 1 if they do not vary.

    With `x_i = r_i - a_i u` the centred rows, the sums are those of `|x_1|^2`, `|x_2|^2` and
    `x_1' x_2`, so that no row is written.
    """
    axis, move = reflection(spectrum, spectrum.masks)
    (r, s), (a, b) = pairs.split(spectrum.masks), pairs.split(axis)
    along, beside = r @ move, s @ move
    square = float(move @ move)
    size = np.einsum("np,np->", r, r) + np.einsum("np,np->", s, s)
    size += (a @ a + b @ b) * square - 2 * (a @ along + b @ beside)
    twice = 2 * (np.einsum("np,np->", r, s) - a @ beside - b @ along + (a @ b) * square)
    return float((size + twice) / (2 * size)) if size > 0 else 1.0
