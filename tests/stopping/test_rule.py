"""Looking repeatedly: the penalty, against the crossing probability of a Brownian motion."""

import numpy as np
import pytest
from scipy import stats

from eblime.stopping.rule import FIRST, GROWTH, is_due, look_penalty, next_total


def totals(most):
    """The numbers of masks at all looks."""
    found = [next_total(0)]
    while found[-1] < most:
        found.append(next_total(found[-1]))
    return np.array(found)


def crossing(times, limits):
    """P(W(t) / sqrt(t) > limit at one of the times), by recursion over densities on a grid."""
    z = np.linspace(-9, 9, 1201)
    step = z[1] - z[0]
    density, total = stats.norm.pdf(z), 0.0
    for k, limit in enumerate(limits):
        if k:
            root = np.sqrt(times[k - 1] / times[k])
            noise = np.sqrt(1 - times[k - 1] / times[k])
            kernel = stats.norm.pdf((z[:, None] - root * z[None, :]) / noise) / noise
            density = kernel @ density * step
        total += density[z > limit].sum() * step
        density = np.where(z > limit, 0.0, density)
    return total


SLOW = [pytest.param(alpha, marks=pytest.mark.slow) for alpha in (0.2, 0.1, 0.025, 0.001)]


@pytest.mark.parametrize("alpha", [0.05, 0.01, *SLOW])
def test_all_looks_together_keep_the_level(alpha):
    """Up to a million masks, the chance to be wrong at any look is at most the level."""
    times = totals(2**20)
    levels = np.array([alpha / look_penalty(alpha, int(n)) for n in times])
    found = crossing(times, stats.norm.isf(levels))

    assert found <= 1.02 * alpha  # 2 % for the grid
    assert found >= 0.6 * alpha  # and it does not waste most of it


def test_looks_are_few_and_far_between():
    """Totals grow by a third or a half, in multiples of 32."""
    times = totals(10**6)

    assert times[0] == FIRST
    assert (times[1:] / times[:-1] >= GROWTH).all()
    assert (times[1:] / times[:-1] <= 1.5).all()
    assert (np.diff(times) % 32 == 0).all()
    assert next_total(0, 3 * 40) == 128
    assert is_due(96, 64)
    assert not is_due(80, 64)
    assert not is_due(20, 0)
