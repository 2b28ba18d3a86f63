"""The table of answers, and the draws of the prior's parameters, against literal forms."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eblime.core.indices import banzhaf
from eblime.core.quadrature import (
    Function,
    Released,
    find_twins,
    fit_scales,
    read_table,
    root_of_part,
    solve_part,
)
from eblime.core.walsh import Parameters, Prior, information

P = 4
EVERY = ((np.arange(2**P)[:, None] >> np.arange(P)) & 1).astype(float)


def some_answers(rng, *, paired):
    """Twelve distinct masks of sixteen, in pairs or not, and scores without structure."""
    masks = np.concatenate([EVERY[1:7], 1 - EVERY[1:7]]) if paired else EVERY[:12]
    return masks, rng.normal(size=12)


def test_a_table_has_the_mean_of_each_mask(rng):
    """In units of the means' spread; the noise of an answer falls with its number of repeats."""
    masks, repeats = EVERY[[0, 3, 5, 6, 15]], np.array([2, 1, 4, 2, 3])
    rows = rng.permutation(np.repeat(np.arange(5), repeats))
    scores = 3 + rng.normal(size=12)
    table = read_table(masks[rows], scores)
    [part] = table.parts
    order = [int(np.flatnonzero((2 * masks - 1 == s).all(axis=1))[0]) for s in part.signs]
    mean = np.array([scores[rows == k].mean() for k in order])
    missed = sum(np.sum((scores[rows == k] - scores[rows == k].mean()) ** 2) for k in range(5))

    assert table.n_masks == 5
    assert table.n_features == P
    assert_allclose(part.scores, (mean - mean.mean()) / mean.std(), atol=1e-12)
    assert_allclose(table.unit, mean.std())
    assert_allclose(table.chance, missed / 7 / mean.std() ** 2)
    assert table.noisy
    ends = {0, 4}  # nothing and everything shown: exact
    noise = [1e-8 if k in ends else 1 / repeats[k] for k in order]
    assert_allclose(part.noise, noise)
    assert_allclose(read_table(masks[rows], scores, ends=False).parts[0].noise, 1 / repeats[order])


def test_few_repeats_do_not_say_how_noisy_a_model_is(rng):
    """Five do."""
    masks = np.concatenate([EVERY[1:8], EVERY[1:6]])
    scores = rng.normal(size=12)

    assert read_table(masks, scores).noisy
    assert not read_table(masks[:11], scores[:11]).noisy
    assert read_table(masks[:11], scores[:11]).chance == 0


def test_pairs_are_an_odd_and_an_even_part(rng):
    """Half the difference and half the sum of the scores of a mask and its complement."""
    masks, scores = some_answers(rng, paired=True)
    table = read_table(masks, scores, ends=False)
    odd, even = table.parts
    y = (scores - scores.mean()) / scores.std()

    assert table.split
    assert (odd.odd, odd.even, even.odd, even.even) == (True, False, False, True)
    assert_array_equal(odd.signs, even.signs)
    for k, signs in enumerate(odd.signs):
        here, there = (
            int(np.flatnonzero((2 * masks - 1 == s).all(axis=1))[0]) for s in (signs, -signs)
        )
        assert_allclose(odd.scores[k], (y[here] - y[there]) / 2)
        assert_allclose(even.scores[k], (y[here] + y[there]) / 2)
    assert_allclose([odd.noise, even.noise], 1.0)
    assert not read_table(masks[:-1], scores[:-1]).split
    assert not read_table(masks, masks @ np.ones(P)).split  # its even part is constant


@pytest.mark.parametrize("paired", [True, False])
def test_draws_of_the_parameters_are_tempered(rng, paired):
    """Normal with the prior's precision and a quarter of the information, in opposite pairs."""
    table = read_table(*some_answers(rng, paired=paired))
    found = Function.fit(table)
    plain = Parameters(vector=found.best.vector, split=paired)
    precision = np.linalg.inv(table.prior().cov)
    values, vectors = np.linalg.eigh(information(table.parts, plain))
    known = vectors @ np.diag(np.maximum(values, 0)) @ vectors.T
    offsets = np.stack([draw.vector for draw in found.draws]) - found.best.vector
    normal = np.random.default_rng(0).standard_normal((4, P + 3))
    squares = np.einsum("ij,jk,ik->i", offsets, precision + known / 4, offsets)
    used = np.trace(known @ np.linalg.inv(precision + known))

    assert_allclose(squares, np.tile((normal**2).sum(axis=1), 2), rtol=1e-6)
    assert_allclose(offsets[:4], -offsets[4:], atol=1e-12)
    assert_allclose(found.df, max(1, (6 if paired else 12) - used / len(table.parts)), rtol=1e-6)
    for column in found.quantiles.T:
        assert_allclose(np.sort(column), (np.arange(8) + 0.5) / 8)
    for number, part in enumerate(table.parts):
        solved = solve_part(part, found.best, number)
        variance = part.scores @ solved.inverse @ part.scores / len(part.scores)
        errors = (solved.inverse @ part.scores) ** 2 / np.diag(solved.inverse) / variance
        assert_allclose(found.stretch[number], max(1, errors.mean()))


def test_psi_moves_a_third_of_the_way(rng):
    """Of its posterior mean, in logs."""
    table = read_table(*some_answers(rng, paired=False))
    best = Parameters(vector=Prior.of(P, split=False).mean, split=False)
    part, root = table.parts[0], root_of_part(table.parts[0], best, 0)
    released = Released.of(best, part, root, np.linalg.solve(root, part.scores))
    mean = (released.weights * np.arange(-8.0, 9.0)[:, None]).sum(axis=0)

    assert_allclose(fit_scales(table, best).psi, np.exp(0.35 * mean))


@pytest.mark.parametrize("paired", [True, False])
def test_the_held_out_r2_predicts_each_mask_from_the_others(rng, paired):
    """One Gaussian process for each mask that is left out, compared with the mean."""
    found = Function.fit(read_table(*some_answers(rng, paired=paired)))
    missed = total = 0.0
    for number, part in enumerate(found.table.parts):
        root = root_of_part(part, found.best, number)
        covariance = root @ root.T
        for i in range(len(part.scores)):
            rest = np.delete(np.arange(len(part.scores)), i)
            gain = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[rest, i])
            missed += (part.scores[i] - gain @ part.scores[rest]) ** 2
            total += (part.scores[i] - (part.scores.mean() if part.even else 0)) ** 2

    assert_allclose(found.held_out_r2, 1 - missed / total, rtol=1e-6)


def test_a_wider_law_has_the_same_mean(rng):
    """Both parts of the variance are multiplied: within the draws and between them."""
    found = Function.fit(read_table(*some_answers(rng, paired=False)))
    [law], [wide] = (replace(found, widening=w).laws([banzhaf()]) for w in (1.0, 2.5))

    assert_allclose(wide.mean, law.mean)
    assert_allclose(wide.cov, 2.5 * law.cov)


def test_twins_can_change_places():
    """Features whose exchange leaves every answer as it is; the first of them stands for all."""
    symmetric = EVERY[:, 0] * EVERY[:, 2] + 0.5 * (EVERY[:, 0] + EVERY[:, 2]) + 2 * EVERY[:, 1]

    assert_array_equal(find_twins(EVERY, symmetric), [0, 1, 0, 3])
    assert_array_equal(find_twins(EVERY, EVERY[:, 1:].sum(axis=1)), [0, 1, 1, 1])
    same_size = EVERY[:, 0] - EVERY[:, 1]  # of opposite sign
    assert_array_equal(find_twins(EVERY, same_size), [0, 1, 2, 2])
    mixed = EVERY[:, 0] * EVERY[:, 2] + EVERY[:, 1] * (1 - EVERY[:, 2])  # as strong as each other
    assert_array_equal(find_twins(EVERY, mixed), [0, 1, 2, 3])
    some = EVERY[[0, 1, 3, 5, 6]]  # feature 0 was asked alone, feature 1 was not
    assert find_twins(some, some[:, :2].sum(axis=1))[1] == 1
