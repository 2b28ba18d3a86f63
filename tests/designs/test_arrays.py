"""Orthogonal masks: balance by enumeration, whatever the number of masks and features."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eblime.answers import Answers
from eblime.core.population import find_population
from eblime.designs import orthogonal
from eblime.designs.arrays import quadratic_forms
from eblime.designs.rounds import first_look, in_rounds


def strength(masks, most=5):
    """The largest t for which any t columns show all combinations equally often, by enumeration."""
    for t in range(1, most + 1):
        for columns in combinations(range(masks.shape[1]), t):
            codes = masks[:, columns].astype(int) @ (1 << np.arange(t))
            if np.ptp(np.bincount(codes, minlength=2**t)):
                return t - 1
    return most


@pytest.mark.parametrize(
    ("p", "block", "whole"),
    [*((p, 32, 256) for p in (5, 6, 7, 8, 9, 10, 12, 16)), (20, 64, 2048)],
)
def test_strength_by_enumeration(rng, p, block, whole):
    """A block has strength 3, all blocks have strength 5."""
    masks = orthogonal(rng, whole, p)
    some = rng.permutation(p)[:9] if p > 12 else slice(None)

    assert strength(masks[:block]) >= 3
    if p > 7:
        assert strength(masks[block : 2 * block]) == 3
    assert strength(masks[:, some]) == 5


@pytest.mark.parametrize(
    ("p", "block", "whole"), [(32, 64, 2048), (64, 128, 4096), (45, 128, 4096)]
)
def test_strength_of_random_columns(rng, p, block, whole):
    """The same for more features, at columns chosen by chance."""
    masks = orthogonal(rng, whole, p)
    for _ in range(3):
        columns = rng.permutation(p)[:7]
        assert strength(masks[:, columns]) == 5
        assert strength(masks[:block, columns], 3) == 3


@pytest.mark.parametrize("p", [100, 300, 1000])
def test_strength_of_a_block_of_many_features(rng, p):
    """Up to 1,024 features; above, pairs at random."""
    block = 2 ** ((p - 1).bit_length() + 1)
    masks = orthogonal(rng, block, p)

    assert strength(masks[:, rng.permutation(p)[:12]], 3) == 3
    assert orthogonal(rng, 7, 1025).shape == (7, 1025)


@pytest.mark.parametrize("p", [1, 2, 3, 5, 8, 10, 12, 16, 20, 40])
def test_any_number_of_masks(p):
    """Complements follow each other, no mask comes twice, and smaller designs begin larger ones."""
    large = orthogonal(np.random.default_rng(1), 600, p)
    for n in (1, 2, 7, 40, 256, 599):
        masks = orthogonal(np.random.default_rng(1), n, p)
        assert_array_equal(masks, large[:n])
        assert len(np.unique(masks, axis=0)) == min(n, 2**p)
    assert_array_equal(large[::2] + large[1::2], 1)


@pytest.mark.parametrize("p", [4, 12, 20])
def test_every_mask_is_uniform(p):
    """Each entry of each row is a fair coin over seeds, and so is the agreement of two columns."""
    drawn = np.array([orthogonal(np.random.default_rng(seed), 40, p) for seed in range(3000)])

    assert_allclose(drawn.mean(axis=0), 0.5, atol=5 * 0.5 / np.sqrt(3000))
    assert_allclose(
        (drawn[..., 0] == drawn[..., 1]).mean(axis=0), 0.5, atol=5 * 0.5 / np.sqrt(3000)
    )


@pytest.mark.parametrize("m", [4, 5, 6, 7, 8, 9, 10])
def test_forms_are_quadratic_and_differ_by_bent_or_nearly_bent_ones(m):
    """The sum of the signs of two blocks' difference is +-2^(m/2), or 0 or +-2^((m+1)/2)."""
    forms = quadratic_forms(m)
    signs = 1.0 - 2.0 * (forms[0] ^ forms[1:40])
    for j in range(m):  # all Walsh coefficients, by a fast transform
        shown = signs.reshape(len(signs), -1, 2, 2**j)
        signs = np.stack([shown.sum(axis=2), shown[:, :, 0] - shown[:, :, 1]], axis=2)
        signs = signs.reshape(len(shown), -1)

    expected = {2 ** (m // 2)} if m % 2 == 0 else {0, 2 ** ((m + 1) // 2)}
    assert set(np.unique(np.abs(signs)).astype(int)) == expected


@pytest.mark.parametrize(("p", "n", "most"), [(11, 128, 0.7), (12, 128, 0.7), (33, 1024, 0.95)])
def test_chosen_columns_let_few_interactions_through(rng, p, n, most):
    """The squared means of products of four columns, against columns by chance."""
    forms = quadratic_forms((p - 1).bit_length())
    width = forms.shape[1]
    words = np.array([[bin(r & x).count("1") % 2 for x in range(width)] for r in range(width)])

    def leak(masks):
        product = (2.0 * masks - 1) @ (2.0 * masks - 1).T  # of signs; then the sum over four of p
        squares = product**2
        return np.mean(squares**2 - (6 * p - 8) * squares + 3 * p**2 - 6 * p)

    chance = []
    for _ in range(20):
        columns = rng.permutation(width)[:p]
        blocks = rng.permutation(len(forms))[: n // 2 // width]
        chance.append(leak(np.concatenate([words ^ forms[b] for b in blocks])[:, columns]))

    assert leak(orthogonal(rng, n, p)[::2]) < most * np.mean(chance)


def test_rounds_are_blocks_in_their_order(rng):
    """A rule looks at 32 masks of 12 features, then at 64 and 96; at 64 of 20 or 40 features."""
    answers = Answers.none([str(j) for j in range(12)])
    design = in_rounds(rng, "orthogonal", 500, 12, exact=True)
    rounds = []
    while answers.n_masks < 128:
        wanted = design.next(rng, answers)
        answers = answers.append(wanted, wanted[:, 0], np.ones(len(wanted)))
        rounds.append(answers.n_masks)

    assert rounds == [32, 48, 64, 96, 128]
    assert strength(answers.masks[:64]) == 3
    assert [first_look("orthogonal", p) for p in (20, 40, 64, 65, 128)] == [64, 64, 64, 128, 128]
    assert first_look("orthogonal", 129) is first_look("bernoulli", 20) is None


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("p", [1, 2, 6])
def test_the_population_is_that_of_all_masks(rng, p, flat):
    """Sums over all masks, and the posterior of a flat prior: `sigma^2 (A_s^-1 - A^-1)`."""
    every = ((np.arange(2**p)[:, None] >> np.arange(p)) & 1).astype(float)
    weights = np.exp(-0.3 * (p - every.sum(axis=1)))
    asked = np.sort(rng.permutation(2**p)[: max(2, 2**p * 3 // 4)])
    found = find_population(every[asked], weights[asked], flat=flat)
    centre = weights[asked] @ every[asked] / weights[asked].sum() if flat else 0.0
    rows = np.column_stack([np.ones(2**p), every - centre]) if flat else every
    whole = (rows.T * weights) @ rows
    left = np.delete(rows, asked, axis=0)

    assert_allclose(found.whole, whole, atol=1e-10)
    assert_allclose(found.left, (left.T * np.delete(weights, asked)) @ left, atol=1e-10)
    if p == 6:
        scores, sums = rng.normal(size=64), whole - found.left
        beta = np.linalg.solve(sums, rows[asked].T @ (weights[asked] * scores[asked]))[flat:]
        cov = 1.7 * np.linalg.inv(sums)[flat:, flat:]
        mean, variance = found.moments(scores[asked], beta, cov, 1.7)
        exact = 1.7 * np.diag(np.linalg.inv(sums) - np.linalg.inv(whole))[flat:]
        assert_allclose(mean, beta, atol=1e-12)
        assert_allclose(variance, exact, atol=1e-12)
