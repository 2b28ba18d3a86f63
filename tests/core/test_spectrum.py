import numpy as np
import paper
import pytest
from numpy.testing import assert_allclose
from problems import problem

from eblime.answers import Answers
from eblime.core.lam import Evidence, half_line_lambda
from eblime.core.mixture import Mixture
from eblime.core.spectrum import decompose, respond
from eblime.methods.eblime import EBLIME


@pytest.mark.parametrize(("n", "p"), [(30, 5), (4, 9), (7, 7)])
@pytest.mark.parametrize("flat", [True, False])
def test_spectrum_rebuilds_the_weighted_gram_matrix(rng, n, p, flat):
    """V diag(d) V' is the Gram matrix of the weighted (centred) masks."""
    masks, _, weights = problem(rng, n, p)
    spectrum = decompose(masks, weights, flat=flat)
    centred = masks - np.average(masks, axis=0, weights=weights) if flat else masks

    gram = centred.T @ np.diag(weights) @ centred
    assert_allclose((spectrum.basis * spectrum.d) @ spectrum.basis.T, gram, atol=1e-12)
    assert_allclose(spectrum.basis.T @ spectrum.basis, np.eye(len(spectrum.d)), atol=1e-12)


def test_constant_and_duplicate_columns_lose_rank(rng):
    """A constant column and a copy leave two directions unreached."""
    masks, _, weights = problem(rng, 40, 6)
    masks[:, 2] = 1
    masks[:, 4] = masks[:, 1]

    assert len(decompose(masks, weights, flat=True).d) == 4
    assert len(decompose(masks, weights, flat=False).d) == 5


def test_masks_that_never_vary_have_no_spectrum():
    """With an intercept, identical masks reach no direction at all."""
    assert decompose(np.ones((5, 3)), np.ones(5), flat=True).d.size == 0


def test_rows_of_weight_zero_do_not_count(rng):
    """A row of weight zero is the same as a row that is not there."""
    masks, scores, weights = problem(rng, 20, 4)
    weights[[3, 7]] = 0
    kept = weights > 0
    whole = decompose(masks, weights, flat=True)
    part = decompose(masks[kept], weights[kept], flat=True)

    assert_allclose(whole.d, part.d)
    assert_allclose(
        respond(whole, scores, standardize=True).residual,
        respond(part, scores[kept], standardize=True).residual,
    )


def test_response_splits_the_norm(rng):
    """What beta can reach and the residual add up to the norm of the weighted scores."""
    masks, scores, weights = problem(rng, 30, 5)
    response = respond(decompose(masks, weights, flat=True), scores, standardize=True)

    assert_allclose(response.k @ response.k + response.residual, response.y @ response.y)
    assert_allclose(response.y @ response.y, weights.sum())  # standardised


def test_a_large_common_shift_costs_no_digits(rng):
    """Scores on a dyadic grid, shifted by 2^40: the centred scores are the same to rounding."""
    masks, scores, weights = problem(rng, 30, 5)
    scores = np.round(scores * 2**10) / 2**10
    spectrum = decompose(masks, weights, flat=True)
    near, far = (respond(spectrum, scores + c, standardize=True) for c in (0.0, 2.0**40))

    assert_allclose(far.k, near.k, rtol=1e-12)
    assert_allclose(far.unit, near.unit, rtol=1e-12)


@pytest.mark.parametrize("level", [0.0, 0.1, 1e12])
def test_constant_scores_have_no_unit(rng, level):
    """Scores that never move have a spread of exactly zero."""
    masks, _, weights = problem(rng, 30, 5)
    response = respond(decompose(masks, weights, flat=True), np.full(30, level), standardize=True)

    assert response.unit == 0.0
    assert not response.k.any()


def unequal(rng):
    """A small problem with a flat intercept, its weights up to 20 decades apart."""
    n, p = rng.integers(3, 12), rng.integers(2, 14)
    masks = rng.integers(0, 2, (n, p)).astype(float)
    return masks, rng.normal(size=n), 10.0 ** -rng.uniform(0, rng.uniform(0, 20), n)


def rounded():
    """Seven masks of which the plain centring kept a seventh direction, made of rounding."""
    rng = np.random.default_rng(809)
    masks, weights = rng.integers(0, 2, (7, 9)).astype(float), 10.0 ** -rng.uniform(0, 14, 7)
    return masks, rng.normal(size=7), weights


def test_unequal_weights_keep_the_rank_and_the_digits(rng):
    """As in 80 digits: the same directions, d and ridge estimate, and a rank of at most n - 1.

    Singular values are right to 1e-14 of the largest, or to 1e-7 where the matrix was squared,
    which it is only while they lie within four decades.
    """
    for _ in range(40):
        masks, scores, weights = unequal(rng)
        spectrum = decompose(masks, weights, flat=True)
        response = respond(spectrum, scores, standardize=False)
        basis, d, k, residual = paper.precise_spectrum(masks, scores, weights)

        assert len(spectrum.d) == len(d) <= len(masks) - 1
        largest = np.sqrt(d.max(initial=0.0))
        assert_allclose(np.sqrt(spectrum.d), np.sqrt(d), rtol=1e-7, atol=1e-14 * largest)
        assert_allclose(spectrum.basis @ spectrum.basis.T, basis @ basis.T, atol=1e-3)
        ridge, precise = (
            v @ (np.sqrt(e) * c / (e + 0.1 * largest**2))
            for v, e, c in ((spectrum.basis, spectrum.d, response.k), (basis, d, k))
        )
        assert_allclose(ridge, precise, atol=1e-6 * np.abs(precise).max(initial=1e-300))
        assert_allclose(response.residual, residual, rtol=1e-6, atol=1e-12 * (k @ k))


def test_unequal_weights_do_not_move_the_posterior(rng):
    """Means and intervals agree with those of the precise spectrum to 1e-5 of a width.

    What is compared is the decomposition: the law of lambda and the mixture are the same code.
    """
    problems = [rounded(), *(unequal(rng) for _ in range(40))]
    for masks, scores, weights in problems:
        post = EBLIME(local=False, finite=False).fit(
            rng, Answers(masks=masks, scores=scores, weights=weights)
        )
        precise = precise_posterior(masks, scores, weights)
        low, high = precise.quantile(np.array([0.025, 0.975]))

        gap = np.abs(post.interval().T - [low, high]) / (high - low)
        assert np.max(np.abs(post.mean - precise.mean) / (high - low)) < 1e-5
        assert np.max(gap) < 1e-5


def precise_posterior(masks, scores, weights):
    """The law of beta with a common ridge, from a spectrum computed in 80 digits."""
    mean = np.average(scores, weights=weights)
    unit = np.sqrt(np.average((scores - mean) ** 2, weights=weights))
    basis, d, k, residual = paper.precise_spectrum(masks, scores, weights)
    method = EBLIME(local=False, finite=False)
    evidence = Evidence(
        d=d,
        k=k / unit,
        floor=2 * method.b * weights.mean() + residual / unit**2,
        df=2 * method.a + decompose(masks, weights, flat=True).count - 1,
    )
    lam = half_line_lambda(evidence, null=len(d) < masks.shape[1])
    return Mixture(basis=basis, evidence=evidence, lam=lam, unit=unit)
