"""Weights that correct for uneven draws are not precisions: intervals allow for them."""

import numpy as np
import pytest

import eblime
from eblime.answers import Answers
from eblime.core.spectrum import decompose, design_effect


def uneven(rng, n=80, p=4):
    """A line with equal noise, asked with weights that vary by a factor of 16."""
    masks = rng.integers(0, 2, size=(n, p)).astype(float)
    sampling = rng.choice([0.25, 4.0], size=n, p=[0.8, 0.2])
    scores = masks @ np.linspace(1, 2, p) + rng.normal(size=n)
    return Answers(masks=masks, scores=scores, weights=sampling, sampling=sampling)


@pytest.mark.parametrize("local", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_intervals_allow_for_uneven_draws(local):
    """95 % intervals hold the truth, where weights taken as precisions would miss it."""
    method, inside, naive = eblime.EBLIME(local=local, noise="equal"), [], []
    truth, rng = np.linspace(1, 2, 4), np.random.default_rng(0)
    for _ in range(150):
        answers = uneven(rng)
        low, high = method.fit(rng, answers).interval().T
        inside.append((low <= truth) & (truth <= high))
        low, high = eblime.fit(answers.masks, answers.scores, answers.weights, method).interval().T
        naive.append((low <= truth) & (truth <= high))

    error = np.sqrt(0.95 * 0.05 / (150 * 4)) * 2  # features of one fit are not independent
    assert abs(np.mean(inside) - 0.95) < 4 * error
    assert np.mean(naive) < 0.95 - 6 * error


def test_the_design_effect_of_even_draws_is_one(rng):
    """Equal factors, and factors of any scale."""
    answers = uneven(rng)
    spectrum = decompose(answers.masks, answers.weights, flat=True)
    effect = design_effect(spectrum, answers.sampling)

    assert design_effect(spectrum, np.full(80, 3.0)) == pytest.approx(1)
    assert design_effect(spectrum, 5 * answers.sampling) == pytest.approx(effect)
    assert effect > 1.5
