import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, special, stats

from eblime.core.student import StudentMixture, student_cdf


def mixture(rng, nodes, m, df, *, unit=1.0, offset=0.0):
    """A random mixture whose components lie within a few of their widths."""
    weights = rng.dirichlet(np.ones(nodes))
    return StudentMixture(
        weights=weights,
        loc=rng.normal(size=(nodes, m)),
        scale=np.exp(rng.normal(size=(nodes, m))),
        df=df,
        unit=unit,
        heavy=np.zeros(m, bool),
        offset=offset,
    )


@pytest.mark.parametrize("df", [1e-3, 0.5, 1.0, 7.3, 30.0, 200.0, 1e5])
def test_cdf_equals_scipy(rng, df):
    """The relative error is below 1e-8, in the lower tail too; NaN stays NaN."""
    z = np.concatenate([np.linspace(-14, 14, 4001), rng.normal(size=2000) * 3, [np.inf, -np.inf]])
    exact = special.stdtr(df, z)

    assert_allclose(student_cdf(df, z), exact, rtol=1e-8, atol=1e-300)
    assert np.isnan(student_cdf(df, np.append(z, np.nan))[-1])


def test_one_component_is_a_student_t(rng):
    """With one node everything is scipy's t law, moved and scaled by unit and offset."""
    law = mixture(rng, 1, 3, 9.0, unit=2.0, offset=5.0)
    judge = stats.t(9.0, loc=5 + 2 * law.loc[0], scale=2 * law.scale[0])
    x = rng.normal(size=(4, 3)) * 3 + 5

    assert_allclose(law.mean, judge.mean())
    assert_allclose(law.sd, judge.std())
    assert_allclose(law.pdf(x), judge.pdf(x), rtol=1e-10)
    assert_allclose(law.cdf(x), judge.cdf(x), rtol=1e-10)
    assert_allclose(law.quantile(np.array([[0.01], [0.6]])), judge.ppf([[0.01], [0.6]]), rtol=1e-9)
    assert_allclose(law.hdi(0.9).T, judge.interval(0.9), rtol=1e-6)


@pytest.mark.parametrize("df", [0.7, 3.0, 50.0])
@pytest.mark.parametrize("nodes", [2, 60])
def test_mixture_quantile_inverts_its_cdf(rng, df, nodes):
    """cdf(quantile(q)) is q to 1e-9, from the deep tails to the middle."""
    law = mixture(rng, nodes, 5, df, unit=0.1, offset=-3.0)
    q = np.array([1e-5, 0.025, 0.4, 0.5, 0.975, 1 - 1e-5])[:, None]

    assert_allclose(law.cdf(law.quantile(q)), np.broadcast_to(q, (6, 5)), rtol=1e-9)


def test_mixture_summaries_equal_their_definitions(rng):
    """Density, distribution function and moments are the weighted sums of scipy's."""
    law = mixture(rng, 40, 3, 6.0)
    parts = stats.t(6.0, loc=law.loc, scale=law.scale)
    x = np.array([-1.0, 0.3, 2.0])
    mean = law.weights @ parts.mean()

    assert_allclose(law.pdf(x), law.weights @ parts.pdf(x), rtol=1e-10)
    assert_allclose(law.cdf(x), law.weights @ parts.cdf(x), rtol=1e-10)
    assert_allclose(law.mean, mean)
    assert_allclose(law.sd**2, law.weights @ (parts.var() + parts.mean() ** 2) - mean**2)


def test_hdi_is_the_shortest_interval(rng):
    """No other interval with the same mass is shorter, by direct minimisation."""
    law = mixture(rng, 30, 1, 5.0)
    low, high = law.hdi(0.8)[0]

    def width(left):
        ends = law.quantile(np.array([[left], [left + 0.8]]))
        return float(ends[1, 0] - ends[0, 0])

    best = optimize.minimize_scalar(width, bounds=(1e-4, 0.1999), method="bounded")
    assert_allclose(law.cdf(high) - law.cdf(low), 0.8, rtol=1e-8)
    assert high - low <= best.fun * (1 + 1e-6)


def test_hdi_of_two_bumps_is_the_narrower_one():
    """A spike beside a broad bump: the shortest interval lies in the spike."""
    law = StudentMixture(
        weights=np.array([0.3, 0.7]),
        loc=np.array([[0.0], [5.0]]),
        scale=np.array([[0.01], [1.0]]),
        df=30.0,
        unit=1.0,
        heavy=np.zeros(1, bool),
    )
    low, high = law.hdi(0.1)[0]

    assert -0.01 < low < 0 < high < 0.01
    assert_allclose(law.cdf(high) - law.cdf(low), 0.1, rtol=1e-6)


def test_widths_of_many_magnitudes(rng):
    """Components from 1e-12 to 1e12 wide: the quantile is still found."""
    law = StudentMixture(
        weights=np.full(25, 1 / 25),
        loc=np.zeros((25, 1)),
        scale=np.logspace(-12, 12, 25)[:, None],
        df=0.5,
        unit=1.0,
        heavy=np.zeros(1, bool),
    )
    q = np.array([0.001, 0.3, 0.5, 0.8, 0.999])[:, None]

    assert_allclose(law.cdf(law.quantile(q)), q, rtol=1e-8)
    assert abs(law.quantile(np.array([[0.5]])).item()) < 1e-12


def test_no_unit_is_a_point_mass(rng):
    """A unit of zero puts everything at the offset."""
    law = mixture(rng, 5, 2, 9.0, unit=0.0, offset=4.0)

    assert_allclose(law.mean, 4.0)
    assert_allclose(law.sd, 0.0)
    assert_allclose(law.quantile(np.array([[0.1], [0.9]])), 4.0)
    assert_allclose(law.hdi(0.9), 4.0)
    assert_allclose(law.cdf(np.array([[3.9], [4.0], [4.1]])), [[0, 0], [1, 1], [1, 1]])
    assert_allclose(law.pdf(np.array([[3.9], [4.0]])), [[0, 0], [np.inf, np.inf]])


def test_too_few_degrees_of_freedom_have_no_sd(rng):
    """With two degrees or less the standard deviation is infinite."""
    assert np.isinf(mixture(rng, 5, 2, 2.0).sd).all()
