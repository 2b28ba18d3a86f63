"""Probability of detection: the fit, its likelihood-ratio bounds, and data without a curve."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, special, stats

from eblime.measures import detection_by_response, false_call_rate, probability_of_detection


def flaws(rng, n=150, slope=3.0, middle=1.5):
    """Sizes and hits of a logistic curve on the logarithm of the size."""
    sizes = rng.choice(np.geomspace(0.5, 4.5, 12), n)
    return sizes, rng.random(n) < special.expit(slope * np.log(sizes / middle))


def region(sizes, hits, steps=700):
    """All lines on a fine grid that a likelihood-ratio test does not reject: (a, b) each.

    The literal form of the bounds: a number of the curve may be whatever it is for these lines.
    """
    x = np.log(sizes)
    found = probability_of_detection(sizes, hits)
    a, b = np.meshgrid(
        found.a + np.linspace(-3, 3, steps), found.b + np.linspace(-4, 4, steps), indexing="ij"
    )
    total = np.zeros_like(a)
    for place, hit in zip(x, hits, strict=True):
        p = special.expit(a + b * place)
        total += np.log(p if hit else 1 - p)
    inside = 2 * (total.max() - total) <= stats.chi2.ppf(0.9, 1)
    assert not inside[[0, -1]].any()
    assert not inside[:, [0, -1]].any()
    return a[inside], b[inside]


def test_bounds_are_those_of_the_lines_that_the_data_allow(rng):
    """The curve's bounds and a90/95 are extremes over a grid of lines."""
    sizes, hits = flaws(rng)
    found = probability_of_detection(sizes, hits)
    a, b = region(sizes, hits)
    at = np.array([0.6, 1.2, 2.0, 4.0])
    odds = a[:, None] + b[:, None] * np.log(at)

    assert_allclose(found.curve(at)[:, 1], special.expit(odds.min(axis=0)), atol=2e-3)
    assert_allclose(found.curve(at)[:, 2], special.expit(odds.max(axis=0)), atol=2e-3)
    assert_allclose(found.a90_95, np.exp((np.log(9) - a) / b).max(), rtol=3e-3)


def test_the_lower_bound_is_nine_tenths_at_a90_95(rng):
    """The two ways to the same number agree."""
    found = probability_of_detection(*flaws(rng))

    assert_allclose(found.curve([found.a90_95])[0, 1], 0.9, atol=1e-8)
    assert_allclose(found.curve([found.a50, found.a90])[:, 0], [0.5, 0.9], atol=1e-12)


def test_the_estimate_is_that_of_statsmodels(rng):
    """Intercept and slope of a generalised linear model."""
    api = pytest.importorskip("statsmodels.api")
    sizes, hits = flaws(rng)
    found = probability_of_detection(sizes, hits)
    design = api.add_constant(np.log(sizes))
    glm = api.GLM(hits.astype(float), design, family=api.families.Binomial()).fit()

    assert_allclose([found.a, found.b], glm.params, rtol=1e-6)


@pytest.mark.parametrize("scale", ["log", "linear"])
@pytest.mark.parametrize("link", ["logit", "probit"])
def test_every_form_is_judged_by_statsmodels(rng, scale, link):
    """The fit, and a90/95: there the best curve through .9 is just not rejected."""
    api = pytest.importorskip("statsmodels.api")
    sizes, hits = flaws(rng)
    found = probability_of_detection(sizes, hits, scale=scale, link=link)
    form = getattr(api.families.links, link.capitalize())()
    family = api.families.Binomial(form)
    x = np.log(sizes) if scale == "log" else sizes
    free = api.GLM(hits.astype(float), api.add_constant(x), family=family).fit(tol=1e-12)
    assert_allclose([found.a, found.b], free.params, rtol=1e-5)
    assert_allclose(form.inverse(found.a + found.b * x), found.curve(sizes)[:, 0], rtol=1e-9)

    end = np.log(found.a90_95) if scale == "log" else found.a90_95
    offset = np.full(len(x), form(0.9))
    bound = api.GLM(hits.astype(float), x - end, family=family, offset=offset).fit(tol=1e-12)
    assert_allclose(2 * (free.llf - bound.llf), stats.chi2.ppf(0.9, 1), rtol=1e-5)
    assert found.a90_95 > found.a90
    assert ("log(size)" in str(found)) == (scale == "log")
    assert found.plot().get_xscale() == scale


def responses(rng, n=60, noise=0.5):
    """Sizes, and responses that scatter about a line in the logarithm of the size."""
    sizes = rng.choice(np.geomspace(0.5, 4.5, 12), n)
    return sizes, 2 * np.log(sizes) + noise * rng.normal(size=n)


def test_responses_are_judged_by_least_squares(rng):
    """a50 and a90 are those of a line by statsmodels, with the handbook's formulas."""
    api = pytest.importorskip("statsmodels.api")
    sizes, strength = responses(rng)
    found = detection_by_response(sizes, strength, 0.4)
    line = api.OLS(strength, api.add_constant(np.log(sizes))).fit()
    (c, d), tau = line.params, np.sqrt(line.ssr / len(sizes))

    assert_allclose(found.a50, np.exp((0.4 - c) / d), rtol=1e-6)
    assert_allclose(found.a90, np.exp((0.4 - c + stats.norm.ppf(0.9) * tau) / d), rtol=1e-6)
    assert found.found.sum() == (strength > 0.4).sum()
    linear = detection_by_response(sizes, sizes + rng.normal(size=60), 1.0, scale="linear")
    assert linear.plot().get_xscale() == "linear"


def test_the_bound_of_responses_is_that_of_the_likelihood(rng):
    """By its literal form: the largest size whose best line through .9 is not rejected."""
    sizes, strength = responses(rng)
    found, x = detection_by_response(sizes, strength, 0.4), np.log(sizes)

    def loss(numbers):
        d, tau, end = *np.exp(numbers[:2]), numbers[2]
        middle = 0.4 + stats.norm.ppf(0.9) * tau + d * (x - end)  # Phi is .9 at `end`
        return -stats.norm.logpdf(strength, middle, tau).sum()

    best = optimize.minimize(loss, [0.7, -0.7, 0.5], method="Nelder-Mead", options={"xatol": 1e-9})
    end = np.log(found.a90_95)
    bound = optimize.minimize(
        lambda n: loss([*n, end]), best.x[:2], method="Nelder-Mead", options={"xatol": 1e-9}
    )
    assert_allclose(2 * (bound.fun - best.fun), stats.chi2.ppf(0.9, 1), rtol=1e-3)
    assert_allclose(found.a90, np.exp(best.x[2]), rtol=1e-4)


def test_the_bound_of_responses_covers_the_true_size():
    """In 95 % of experiments, within four standard errors."""
    truth, covered = np.exp((0.4 + stats.norm.ppf(0.9) * 0.5) / 2), []
    for seed in range(200):
        sizes, strength = responses(np.random.default_rng(seed), n=120)
        covered.append(detection_by_response(sizes, strength, 0.4).a90_95 >= truth)

    assert abs(np.mean(covered) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 200)


@pytest.mark.parametrize(
    ("sizes", "strength", "message"),
    [
        ([1, 2, 3], [1, 2], "`responses` must be a finite number for each of the 3 sizes"),
        ([1, 2, 3], [1, 2, np.nan], "`responses` must be a finite number"),
        ([1, 2, 3], np.log([1, 2, 3]), "`responses` must scatter about a line"),
        ([1, 1, 1], [1, 2, 3], "at two or more different sizes"),
        ([1, 2], [1, 2], "`responses` must scatter about a line"),
        ([1, -2], [1, 2], "`sizes` must be finite and > 0"),
    ],
)
def test_bad_responses_are_refused(sizes, strength, message):
    """A line without scatter has no curve."""
    with pytest.raises(ValueError, match=message):
        detection_by_response(sizes, strength, 0.5)
    with pytest.raises(ValueError, match="`scale` must be one of 'log'"):
        detection_by_response([1, 2, 3], [0, 1, 1], 0.5, scale="square")


def test_false_calls():
    """The interval of Clopper and Pearson, and what is refused."""
    rate, low, high = false_call_rate([True] * 3 + [False] * 37, prob=0.9)

    assert rate == 3 / 40
    assert_allclose([low, high], [stats.beta.ppf(0.05, 3, 38), stats.beta.ppf(0.95, 4, 37)])
    assert false_call_rate([0, 0])[:2] == (0, 0)
    for bad in ([], [0, 2], [[0, 1]], [0, np.nan]):
        with pytest.raises(ValueError, match="`calls` must be True or False"):
            false_call_rate(bad)


def test_the_estimate_does_not_depend_on_the_unit(rng):
    """Sizes in micrometres give the same curve, moved."""
    sizes, hits = flaws(rng)
    mm, um = (probability_of_detection(sizes * unit, hits) for unit in (1, 1000))

    assert_allclose([um.a50, um.a90, um.a90_95], 1000 * np.array([mm.a50, mm.a90, mm.a90_95]))
    assert_allclose(um.b, mm.b)
    assert_allclose(um.curve(), mm.curve(), atol=1e-8)


def test_the_bound_covers_the_true_size():
    """a90/95 is above the true a90 in 95 % of experiments, within four standard errors."""
    truth, covered = 1.5 * 9 ** (1 / 3), []
    for seed in range(150):
        sizes, hits = flaws(np.random.default_rng(seed), n=240)
        covered.append(probability_of_detection(sizes, hits).a90_95 >= truth)

    assert abs(np.mean(covered) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 150)


@pytest.mark.parametrize("hits", [[1, 1, 1, 1], [0, 0, 0, 0], [0, 0, 1, 1], [1, 1, 0, 0]])
def test_sizes_of_hits_and_misses_must_overlap(hits):
    """Otherwise no curve is the most likely one."""
    with pytest.raises(ValueError, match="must overlap for a curve; got hits at"):
        probability_of_detection([1, 2, 3, 4], hits)
    with pytest.raises(ValueError, match="got hits at 2 to 3 and misses at 1 to 2"):
        probability_of_detection([1, 2, 2, 3], [0, 0, 1, 1])


def test_a_curve_that_falls_has_no_a90():
    """The size at which such a curve has .9 is not reported."""
    found = probability_of_detection([1, 2, 3, 4], [1, 0, 1, 0])

    assert found.b < 0
    assert np.isnan([found.a50, found.a90]).all()
    assert found.a90_95 == np.inf
    assert "Larger flaws were found less often" in str(found)


def test_a_curve_that_may_be_flat_has_no_bound():
    """And an a90 beyond all sizes is noted."""
    found = probability_of_detection([1, 2, 3, 4], [0, 1, 0, 1])

    assert np.isfinite(found.a90)
    assert found.a90_95 == np.inf
    assert "does not rise is not excluded" in found.notes[0]
    assert "is outside the sizes 1 to 4" in found.notes[1]


def test_shares_that_do_not_follow_the_curve_are_noted(rng):
    """Shares that level off at .85; the test of a bend is that of every flaw alone."""
    sizes = np.repeat(np.geomspace(0.2, 8, 12), 40)
    hits = rng.random(480) < 0.85 * special.expit(6 * np.log(sizes / 0.5))
    found = probability_of_detection(sizes, hits)
    p = special.expit(found.a + found.b * np.log(sizes))
    score, info = np.zeros(3), np.zeros((3, 3))
    for x, hit, share in zip(np.log(sizes), hits, p, strict=True):  # all three coefficients
        powers = np.array([1, x, x**2])
        score += (hit - share) * powers
        info += share * (1 - share) * np.outer(powers, powers)
    twin = stats.chi2.sf(score @ np.linalg.inv(info) @ score, 1)

    assert twin < 0.01
    assert f"do not follow the curve (P = {twin:.2g}" in str(found)
    assert not any("follow" in note for note in probability_of_detection(*flaws(rng)).notes)


def test_unknown_sizes_are_printed_as_such():
    """Not as nan or inf."""
    found = probability_of_detection([1, 2, 3, 4], [1, 0, 1, 0])
    assert "a50 unknown, a90 unknown, a90/95 unknown" in str(found)


@pytest.mark.parametrize(
    ("sizes", "hits", "message"),
    [
        ([1, 0], [0, 1], "`sizes` must be finite and > 0; got 0.0 at index 1"),
        ([1, np.nan], [0, 1], "`sizes` must be finite and > 0; got nan at index 1"),
        ([[1, 2]], [0, 1], "`sizes` must be 1-D, one entry per flaw; got shape"),
        ([1, 2], [0, 1, 1], "`hits` must be True or False for each of the 2 sizes; got shape"),
        ([1, 2], [0, 2], "`hits` must be True or False for each of the 2 sizes.* got 2 at index 1"),
        ([1, 2], [0, None], "`hits` must be True or False .*; got nan at index 1. Leave out"),
        ([1, 1], [0, 1], "`sizes` must have at least two different values; got 1"),
        ([], [], "`sizes` must have at least two different values; got 0"),
    ],
)
def test_bad_flaws_are_refused(sizes, hits, message):
    """What must hold, and what came."""
    with pytest.raises(ValueError, match=message):
        probability_of_detection(sizes, hits)


def test_unknown_forms_are_refused():
    """The message lists the known ones."""
    with pytest.raises(ValueError, match="`scale` must be one of 'log', 'linear'"):
        probability_of_detection([1, 2], [0, 1], scale="square")
    with pytest.raises(ValueError, match="`link` must be one of 'logit', 'probit'"):
        probability_of_detection([1, 2], [0, 1], link="cauchy")


def test_table_and_plot(rng):
    """One row per size; points, a curve and both lines; two curves on one pair of axes."""
    found = probability_of_detection(*flaws(rng))
    table = found.to_frame()
    ax = found.plot(label="network")
    found.plot(ax=ax, label="inspector", colour="#0072B2")

    assert list(table["size"]) == list(found.sizes)
    assert_allclose(table["share"], table["found"] / table["flaws"])
    assert_allclose(table["probability"], found.curve()[:, 0])
    assert len(ax.get_legend().get_texts()) == 4
    probability_of_detection([1, 2, 3, 4], [1, 0, 1, 0]).plot()
    many = rng.lognormal(size=60)
    assert probability_of_detection(many, many > rng.lognormal(size=60)).plot() is not None
