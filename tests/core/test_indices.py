"""Indices by the size of a mask for many features, against sums of positive terms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from eblime.core.indices import by_size
from eblime.core.walsh import Part, Walsh
from eblime.kernels import COSINE, shapley, size_weights

WHOLE = Part(signs=np.ones((1, 1)), scores=np.ones(1), noise=np.ones(1), odd=True, even=True)


def slopes_by_size(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of the mean scores of masks that show and that hide a feature, by size.

    By the normal equations of the fit to the mean scores of each size and state of one feature: by
    symmetry, the other features enter by the number of them that are shown.
    """
    p = len(weights) - 1
    others = np.arange(p)
    subsets = stats.binom.pmf(others, p - 1, 0.5)
    mass = np.concatenate([subsets * weights[1:], subsets * weights[:-1]])
    state = np.repeat([1.0, 0.0], p)
    number = np.tile(others, 2).astype(float)
    # one slope of its own for feature j, one that all others share, and an intercept
    columns = np.column_stack([np.ones(2 * p), state, number])
    gram = columns.T @ (mass[:, None] * columns)
    return np.split(np.linalg.solve(gram, columns.T * mass)[1], 2)


def means_by_size(terms: np.ndarray) -> np.ndarray:
    """Mean of `prod(1 + a_i s_i)` over the masks that show 0 .. p of p features, term by term."""
    found = np.ones(1)
    for k, a in enumerate(terms, 1):
        size = np.arange(k + 1)
        more = np.append(0.0, found) * size / k * (1 + a)
        found = more + np.append(found, 0.0) * (k - size) / k * (1 - a)
    return found


@pytest.mark.parametrize("p", [3, 30, 60, 200])
@pytest.mark.parametrize("kernel", [COSINE, shapley], ids=["cosine", "shapley"])
def test_many_features_lose_no_digits(kernel, p, rng) -> None:
    """Kernels that weigh small and large masks need sizes that a fair coin never draws."""
    weights = size_weights(kernel, p)
    rho, signs = rng.uniform(0.0, 0.3, p), np.where(rng.random((1, p)) < 0.5, 1.0, -1.0)
    found = Walsh(rho=rho, linear=0.0).cross(WHOLE, by_size(weights), signs)[:, 0]
    terms = rho * signs[0]
    on, off = slopes_by_size(weights)
    expected = []
    for j in range(p):
        means = means_by_size(np.delete(terms, j))
        expected.append(on @ means * (1 + terms[j]) + off @ means * (1 - terms[j]))

    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_the_prior_variance_of_an_index_of_many_features() -> None:
    """With equal rho it is a sum over two sizes and the number of features that both show."""
    p, rho = 40, 0.2
    weights = size_weights(shapley, p)
    on, off = slopes_by_size(weights)
    size = np.arange(p)
    shared = size[:, None, None]
    chance = stats.hypergeom.pmf(shared, p - 1, size[:, None], size)  # (shared, size, size)
    apart = size[:, None] + size - 2 * shared
    means = np.sum(chance * (1 + rho) ** (p - 1.0 - apart) * (1 - rho) ** apart, axis=0)
    same, other = on @ means @ on + off @ means @ off, on @ means @ off + off @ means @ on
    found = Walsh(rho=np.full(p, rho), linear=0.0).own(WHOLE, by_size(weights))

    np.testing.assert_allclose(np.diag(found), (1 + rho) * same + (1 - rho) * other, rtol=1e-9)


@pytest.mark.parametrize("weights", [[0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0]])
def test_weights_that_determine_no_fit_are_refused(weights) -> None:
    """Masks of one size, or only the two ends, leave the slopes open."""
    with pytest.raises(ValueError, match="`kernel` must give weight to masks of at least two"):
        by_size(np.array(weights))
