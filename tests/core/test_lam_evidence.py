import numpy as np
import paper
import pytest
from numpy.testing import assert_allclose
from problems import problem
from scipy import integrate

from eblime.core.lam import Evidence, grid_lambda, log_half_cauchy
from eblime.core.spectrum import decompose, respond

GRID = np.array([1e-6, 1e-3, 0.1, 1.0, 50.0, 1e6])
SHAPES = [(30, 5), (4, 9), (6, 6)]  # tall, wide, square


def evidence(masks, scores, weights, a, b, *, flat):
    """The fast form, scores as they are."""
    spectrum = decompose(masks, weights, flat=flat)
    response = respond(spectrum, scores, standardize=False)
    df = 2 * a + len(scores) - flat
    return Evidence(d=spectrum.d, k=response.k, floor=2 * b + response.residual, df=df)


@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_q_equals_proposition_1(rng, n, p):
    """The sum over the spectrum is the printed quadratic form."""
    masks, scores, weights = problem(rng, n, p)
    fast = evidence(masks, scores, weights, 2.0, 0.5, flat=False).q(GRID)

    assert_allclose(fast, [paper.q(masks, scores, weights, lam, 0.5) for lam in GRID], rtol=1e-9)


@pytest.mark.parametrize(("n", "p"), SHAPES)
@pytest.mark.parametrize("flat", [True, False])
def test_log_posterior_equals_proposition_2(rng, n, p, flat):
    """The fast form and the printed N x N form differ by one constant only."""
    masks, scores, weights = problem(rng, n, p)
    fast = evidence(masks, scores, weights, 2.0, 0.5, flat=flat)
    literal = paper.flat_log_posterior if flat else paper.log_posterior
    slow = [literal(masks, scores, weights, lam, 2.0, 0.5) for lam in GRID]
    gap = fast.log_likelihood(GRID) + log_half_cauchy(GRID) - slow

    assert_allclose(gap, gap[0], atol=1e-6)


def test_blocks_change_nothing(rng):
    """A grid longer than a block gives what its values give one by one."""
    masks, scores, weights = problem(rng, 60, 40)
    law = evidence(masks, scores, weights, 1.0, 1.0, flat=False)
    grid = np.linspace(1e-3, 1, 4001)

    assert_allclose(law.q(grid)[::500], [law.q(grid[i : i + 1])[0] for i in range(0, 4001, 500)])


def test_expected_lambda_equals_the_normalised_sum(rng):
    """Equation (6) with the normaliser it lacks in print."""
    masks, scores, weights = problem(rng, 12, 3)
    grid = np.arange(1, 201) / 200
    law = grid_lambda(evidence(masks, scores, weights, 1.0, 1.0, flat=False), grid)

    literal = paper.expected_lambda(masks, scores, weights, grid, 1.0, 1.0)
    assert_allclose(law.mean, literal, rtol=1e-9)
    assert_allclose(law.weights.sum(), 1.0)


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_half_cauchy_is_a_density(scale):
    """The prior integrates to one: trapezoids in log(lambda), tails of exp(-|x| / 2)."""
    x = np.linspace(-160, 160, 20_001)
    density = np.exp(log_half_cauchy(np.exp(x), scale=scale) + x)

    assert_allclose(integrate.trapezoid(density, x), 1.0, rtol=1e-10)
