"""UnRAVEL: slopes of the process, the acquisition as printed, and known models."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import eblime
from eblime.family.active import UnRAVEL, fit_process, next_point, slopes

sklearn = pytest.importorskip("sklearn")
pytest.importorskip("sklearn.gaussian_process")


def explain(model, x, rows, names=None, target=None, n_calls=10):
    """UnRAVEL on a row of an array."""
    explainer = eblime.TabularExplainer(model, rows, names=names)
    return UnRAVEL(n_calls=n_calls).explain(explainer, x, target)


@pytest.fixture
def process(rng):
    """A process of two columns on twelve points, all parameters different."""
    points = rng.normal(size=(12, 2))
    kernels = sklearn.gaussian_process.kernels
    kernel = kernels.ConstantKernel(1.7) * kernels.RBF([0.8, 2.5]) + kernels.ConstantKernel(0.3)
    kernel += kernels.WhiteKernel(0.01)
    values = np.sin(points[:, 0]) + 0.2 * rng.normal(size=12)
    made = sklearn.gaussian_process.GaussianProcessRegressor(kernel, alpha=0, optimizer=None)
    return made.fit(points, values)


def test_parameters_maximise_likelihood_times_prior(rng):
    """No other parameters near those that are found are better."""
    points = rng.uniform(-1, 1, size=(20, 2))
    found = fit_process(
        points, np.sin(3 * points[:, 0]), fit_process(points, np.zeros(20)), anew=True
    )
    centre = np.log([1.0, 2.0, 2.0, 0.1, 1e-4])

    def value(logs):
        return found.log_marginal_likelihood(logs) - np.sum((logs - centre) ** 2) / 8

    best = found.kernel_.theta
    low, high = found.kernel_.bounds.T
    for _ in range(50):
        near = np.clip(best + 0.1 * rng.normal(size=5), low, high)
        assert value(near) <= value(best) + 1e-4


def test_slopes_are_those_of_the_process(process):
    """The mean against differences of the mean; the covariance against that of differences."""
    x, h = np.array([0.3, -0.2]), 1e-3
    mean, cov = slopes(process, x)
    ends = np.concatenate([x + h * np.eye(2), x - h * np.eye(2)])
    value = process.predict(ends)
    both = np.concatenate([process.X_train_, ends])
    gaps = (both[:, None] - both) / [0.8, 2.5]
    k = 1.7 * np.exp(-0.5 * np.sum(gaps**2, axis=2)) + 0.3
    noisy = k[:12, :12] + 0.01 * np.eye(12)
    left = k[12:, 12:] - k[12:, :12] @ np.linalg.solve(noisy, k[:12, 12:])
    change = np.hstack([np.eye(2), -np.eye(2)]) / (2 * h)

    assert_allclose(mean, (value[:2] - value[2:]) / (2 * h), rtol=1e-4)
    assert_allclose(cov, change @ left @ change.T, rtol=1e-3, atol=1e-4)


def test_the_acquisition_is_as_printed(rng, process):
    """The chosen point is at most a little worse than the best of many drawn from the box."""
    twin, z = np.random.default_rng(1), rng.uniform(-1, 1, size=(3000, 2))
    chosen = next_point(process, 3, np.random.default_rng(1))
    shift = twin.normal(size=2) / np.log(3)
    both = np.concatenate([chosen[None], z])
    value = process.predict(both, return_std=True)[1]
    value -= np.sqrt(np.sum((both - shift) ** 2, axis=1))

    assert (np.abs(chosen) <= 1).all()
    assert value[0] >= value[1:].max() - 0.02


def test_a_likelihood_finds_the_column_that_matters(rng):
    """A function of the first column: the second has a long length scale."""
    points = rng.uniform(-1, 1, size=(30, 2))
    values = np.sin(3 * points[:, 0])
    found = fit_process(points, values, fit_process(points, values), anew=True)
    lengths = found.kernel_.k1.k1.k2.length_scale

    assert lengths[1] > 4 * lengths[0]


def test_slopes_of_a_smooth_model(rng):
    """Slopes at the row within five standard deviations, in few calls."""
    calls = []

    def model(rows):
        calls.append(len(rows))
        return np.sin(rows[:, 0] / 100) + 0.5 * rows[:, 1] ** 2

    table = rng.normal(size=(200, 3)) * [100.0, 1.0, 5.0]
    x = np.array([20.0, 0.6, 1.0])
    found = explain(model, x, table, ["a", "b", "c"], n_calls=30)
    truth = np.array([np.cos(0.2) / 100, 0.6, 0.0]) * table.std(axis=0)
    post, rows = found.posterior, found.masks
    relevance = found.provenance["relevance"]

    assert sum(calls) == 30 == found.provenance["model_calls"]
    assert (np.abs(post.mean - truth) < 5 * post.sd + 0.02).all()
    assert np.argmin(relevance) == 2
    assert max(relevance) == 1
    assert_allclose(rows[0], x)
    assert (np.abs(rows - x) <= table.std(axis=0) * (1 + 1e-9)).all()
    assert_allclose(found.scores, model(rows))


def test_classes_and_refusals(rng):
    """The highest class is explained by default; settings that cannot work are refused."""
    table = rng.normal(size=(50, 2))

    def classes(rows):
        chance = 1 / (1 + np.exp(-3 * rows[:, 0]))
        return np.column_stack([1 - chance, chance])

    found = explain(classes, [0.5, 0.0], table)
    assert found.target == 1
    assert found.posterior.mean[0] > 0
    other = explain(classes, [0.5, 0.0], table, n_calls=5, target=0)
    assert other.prediction == other.scores[0] < 0.5
    for settings, message in (
        ({"n_calls": 2}, "`n_calls` must be >= 3"),
        ({"target": 4}, "`target` must be < 2, the number of outputs"),
    ):
        with pytest.raises(ValueError, match=message):
            explain(classes, [0.5, 0.0], table, **settings)
    with pytest.raises(ValueError, match="a value for each of the 2 columns; got 3"):
        explain(classes, [0.5, 0.0, 1.0], table)
    with pytest.raises(ValueError, match="of the row has 1 missing or infinite"):
        explain(classes, [0.5, np.nan], table)
    with pytest.raises(eblime.ModelError, match="finite scores"):
        explain(lambda rows: np.full(len(rows), np.inf), [0.5, 0.0], table)
