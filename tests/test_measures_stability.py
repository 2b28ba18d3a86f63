"""Stability indices, against the loops of their definition."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import problem

import eblime
from eblime.measures import stability, stability_of


def literal(means, intervals, top):
    """VSI and CSI as the paper defines them: a dictionary of intervals for each run."""
    runs = []
    for mean, ends in zip(means, intervals, strict=True):
        first = np.argsort(-np.abs(mean), kind="stable")[:top]
        runs.append({int(j): ends[j] for j in first})
    shared = [len(a.keys() & b.keys()) for a, b in combinations(runs, 2)]
    shares = []
    for feature in {j for run in runs for j in run}:
        found = [run[feature] for run in runs if feature in run]
        if len(found) > 1:
            meet = [a[0] < b[1] and b[0] < a[1] for a, b in combinations(found, 2)]
            shares.append(np.mean(meet))
    return sum(shared) / (len(shared) * top), float(np.mean(shares))


@pytest.mark.parametrize("top", [1, 3, 6])
def test_indices_equal_their_definition(rng, top):
    """Runs that agree in part."""
    means = rng.normal(size=6) + rng.normal(size=(7, 6))
    half = rng.uniform(0.1, 1.5, size=(7, 6))
    intervals = np.stack([means - half, means + half], axis=2)
    found = stability_of(means, intervals, top=top)

    assert_allclose((found.vsi, found.csi), literal(means, intervals, top))
    assert 0 < found.csi < 1


def test_numbers_of_the_original_code():
    """What lime_stability's code returned for these intervals, in percent with two digits."""
    rng = np.random.default_rng(6)
    means = np.round(rng.normal(size=5) + 0.8 * rng.normal(size=(6, 5)), 3)
    half = np.round(rng.uniform(0.1, 1.2, size=(6, 5)), 3)
    found = stability_of(means, np.stack([means - half, means + half], axis=2), top=3)

    assert (round(100 * found.csi, 2), round(100 * found.vsi, 2)) == (83.33, 73.33)


def test_signs_and_overlap():
    """Two runs of three features: one shared of the first two, whose sign differs; 1 of 3."""
    means = np.array([[3.0, -2.0, 0.1], [0.1, 2.0, 3.0]])
    found = stability_of(means, np.stack([means - 1, means + 1], axis=2), top=2)

    assert (found.vsi, found.csi) == (0.5, 0.0)
    assert found.overlap == pytest.approx(1 / 3)
    assert found.sign_flips == pytest.approx(1 / 3)


@pytest.mark.parametrize("method", ["lime", "eblime", "bayeslime", "baylime"])
def test_any_method(method):
    """Explanations of any method have all indices, but a point estimate has no CSI."""
    score = lambda texts: [("two" in t) - 0.4 * ("six" in t) * ("ten" in t) for t in texts]  # noqa: E731
    explainer = eblime.TextExplainer(score, n_masks=60, method=method)
    text = "one two three four five six seven eight nine ten"
    runs = [explainer.explain(text, rng=seed) for seed in range(3)]
    found = stability(runs, top=1)

    assert found.vsi == 1.0
    assert np.isnan(found.csi) if method == "lime" else 0 <= found.csi <= 1
    assert str(stability([run.posterior for run in runs], top=1)) == str(found)


def test_one_run_is_refused(rng):
    """Stability needs two runs."""
    with pytest.raises(ValueError, match="`explanations` must be at least 2; got 1"):
        stability([eblime.fit(*problem(rng, 20, 3))])
    with pytest.raises(ValueError, match="`explanations` must be at least 2; got 0"):
        stability([])


def test_runs_of_different_features_are_refused(rng):
    """The message counts the features."""
    with pytest.raises(ValueError, match="must have the same features; got 3 and 4 of them"):
        stability([eblime.fit(*problem(rng, 20, p)) for p in (4, 3)])


def test_features_chosen_once_have_no_csi():
    """Each of two runs chooses another feature: no interval can be compared."""
    means = np.array([[1.0, 0.0], [0.0, 1.0]])
    found = stability_of(means, np.stack([means - 1, means + 1], axis=2), top=1)

    assert found.vsi == 0
    assert np.isnan(found.csi)
