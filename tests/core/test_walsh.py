"""The prior over functions of the mask, against sums over all masks."""

from __future__ import annotations

import numpy as np
import pytest

from eblime.core.indices import Index, banzhaf, by_size, shapley
from eblime.core.quadrature import exact_values, read_table
from eblime.core.walsh import (
    CONSTANT,
    Parameters,
    Part,
    Prior,
    Walsh,
    evidence,
    information,
    solve,
)
from eblime.kernels import COSINE, EUCLIDEAN, size_weights

P = 5
MASKS = ((np.arange(2**P)[:, None] >> np.arange(P)) & 1).astype(float)
SIGNS = 2 * MASKS - 1


def shapley_by_hand(values: np.ndarray) -> np.ndarray:
    """Shapley values by their definition: a sum over the sets without the player."""
    p = len(values).bit_length() - 1
    found = np.zeros(p)
    size = np.array([bin(k).count("1") for k in range(2**p)])
    share = [1 / (p * np.prod([(p - 1 - i) / (i + 1) for i in range(s)])) for s in range(p)]
    for j in range(p):
        for k in range(2**p):
            if not k >> j & 1:
                found[j] += share[size[k]] * (values[k | 1 << j] - values[k])
    return found


def weighted_fit(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The coefficients of the weighted linear fit to all masks, by the normal equations."""
    columns = np.column_stack([np.ones(len(values)), MASKS])
    gram = columns.T @ (weights[:, None] * columns)
    return np.linalg.solve(gram, columns.T @ (weights * values))[1:]


def parts() -> list[Part]:
    """Parts."""
    return [
        Part(signs=SIGNS, scores=np.zeros(2**P), noise=np.ones(2**P), odd=odd, even=even)
        for odd, even in ((True, False), (False, True), (True, True))
    ]


INDICES = {
    "banzhaf": banzhaf(),
    "weighted": banzhaf(0.6),
    "shapley": shapley(P),
    "cosine": by_size(size_weights(COSINE, P)),
    "pairs": banzhaf(0.6).pairwise(),
    "shapley pairs": shapley(P).pairwise(),
}


def test_shapley_values_are_those_of_the_definition() -> None:
    """Shapley values are those of the definition."""
    values = np.random.default_rng(0).normal(size=2**P)
    np.testing.assert_allclose(exact_values(MASKS, values, shapley(P)), shapley_by_hand(values))


@pytest.mark.parametrize("kernel", [COSINE, EUCLIDEAN], ids=["cosine", "euclidean"])
def test_an_index_by_size_is_the_weighted_fit_to_all_masks(kernel) -> None:
    """An index by size is the weighted fit to all masks."""
    values = np.random.default_rng(1).normal(size=2**P)
    found = exact_values(MASKS, values, by_size(size_weights(kernel, P)))
    np.testing.assert_allclose(found, weighted_fit(values, kernel(MASKS)), atol=1e-12)


def test_an_index_may_favour_masks_that_hide_most_features() -> None:
    """Weights by size in the opposite order."""
    values, weights = np.random.default_rng(1).normal(size=2**P), size_weights(EUCLIDEAN, P)[::-1]
    found = exact_values(MASKS, values, by_size(weights))
    wanted = weighted_fit(values, weights[MASKS.sum(axis=1).astype(int)])
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_limes_kernel_gives_weighted_banzhaf_values() -> None:
    """Limes kernel gives weighted banzhaf values."""
    values = np.random.default_rng(2).normal(size=2**P)
    width = 0.75 * np.sqrt(P)
    share = 1 / (1 + np.exp(-1 / (2 * width**2)))
    found = exact_values(MASKS, values, banzhaf(share))
    np.testing.assert_allclose(found, weighted_fit(values, EUCLIDEAN(MASKS)), atol=1e-12)


def test_interactions_of_pairs_are_differences_of_differences() -> None:
    """Interactions of pairs are differences of differences."""
    values = np.random.default_rng(3).normal(size=2**P)
    found = exact_values(MASKS, values, banzhaf().pairwise())
    table = values.reshape((2,) * P)  # axis 0 is the last feature
    for (i, j), value in zip(banzhaf().pairwise().subsets(P), found, strict=True):
        axes = P - 1 - i, P - 1 - j
        mean = np.moveaxis(table, axes, (0, 1)).reshape(2, 2, -1).mean(axis=2)
        assert value == pytest.approx(mean[1, 1] - mean[1, 0] - mean[0, 1] + mean[0, 0])


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("number", range(3), ids=["odd", "even", "both"])
def test_covariances_are_those_of_the_kernel_summed_over_all_masks(name, number) -> None:
    """Covariances are those of the kernel summed over all masks."""
    index, part = INDICES[name], parts()[number]
    rho = np.random.default_rng(4).uniform(0.05, 0.8, P)
    walsh = Walsh(rho=rho, linear=0.7, even=1.3)
    product = np.prod(1 + rho * SIGNS[:, None] * SIGNS[None], axis=2)
    odd = (product - product[:, ::-1]) / 2 + 0.7 * (SIGNS * rho) @ SIGNS.T
    even = 1.3 * (product + product[:, ::-1]) / 2
    k = part.odd * odd + part.even * even
    by_hand = np.stack([exact_values(MASKS, one, index) for one in np.eye(2**P)], axis=1)
    constant = part.even * 1.3 * CONSTANT
    np.testing.assert_allclose(walsh.covariance(part, SIGNS, SIGNS), k + constant, atol=1e-12)
    np.testing.assert_allclose(walsh.cross(part, index, SIGNS), by_hand @ k, atol=1e-12)
    np.testing.assert_allclose(walsh.own(part, index), by_hand @ k @ by_hand.T, atol=1e-12)


def some_table(*, paired: bool):
    """Some table."""
    rng = np.random.default_rng(5)
    rows = rng.choice(2 ** (P - 1), size=11, replace=False)
    masks = np.concatenate([MASKS[rows], 1 - MASKS[rows]])[: 22 if paired else 17]
    return read_table(masks, rng.normal(size=len(masks)))


@pytest.mark.parametrize("paired", [True, False])
def test_the_gradient_of_the_evidence_is_its_slope(paired) -> None:
    """The gradient of the evidence is its slope."""
    table = some_table(paired=paired)
    assert table.split is paired
    at = Prior.of(P, split=paired).mean + 0.3 * np.random.default_rng(6).normal(size=P + 3)

    def value(vector: np.ndarray) -> float:
        return evidence(table.parts, Parameters(vector=vector, split=paired))[0]

    slopes = [(value(at + e) - value(at - e)) / 2e-5 for e in 1e-5 * np.eye(P + 3)]
    _, gradient = evidence(table.parts, Parameters(vector=at, split=paired))
    np.testing.assert_allclose(gradient, slopes, atol=1e-6)


@pytest.mark.parametrize("paired", [True, False])
def test_the_evidence_is_the_density_of_the_answers(paired) -> None:
    """With the amplitude integrated out: a multivariate t law without a scale of its own."""
    table = some_table(paired=paired)
    parameters = Parameters(vector=Prior.of(P, split=paired).mean, split=paired)
    by_hand = 0.0
    for number, part in enumerate(table.parts):
        k = parameters.walsh.covariance(part, part.signs, part.signs)
        k = k + parameters.nugget(number) * np.diag(part.noise)
        fit = part.scores @ np.linalg.solve(k, part.scores)
        by_hand -= 0.5 * (np.linalg.slogdet(k)[1] + len(k) * np.log(fit))
    assert evidence(table.parts, parameters)[0] == pytest.approx(by_hand)


@pytest.mark.parametrize("paired", [True, False])
def test_the_information_is_the_variance_of_the_gradient(paired) -> None:
    """Fisher's information is the covariance of the gradient over answers from the prior."""
    table, rng = some_table(paired=paired), np.random.default_rng(7)
    parameters = Parameters(vector=Prior.of(P, split=paired).mean, split=paired)
    gradients = []
    for _ in range(4_000):
        drawn = []
        for number, part in enumerate(table.parts):
            k = parameters.walsh.covariance(part, part.signs, part.signs)
            k = k + parameters.nugget(number) * np.diag(part.noise)
            scores = np.linalg.cholesky(k) @ rng.normal(size=len(k))
            drawn.append(
                Part(
                    signs=part.signs,
                    scores=scores,
                    noise=part.noise,
                    odd=part.odd,
                    even=part.even,
                )
            )
        gradients.append(evidence(drawn, parameters)[1])
    seen, known = np.cov(np.array(gradients).T), information(table.parts, parameters)
    scale = np.sqrt(np.outer(np.diag(known), np.diag(known)))
    # n / (n + 2) is the difference between fixed and integrated amplitude: .85 for 11 answers
    np.testing.assert_allclose(seen / scale, known / scale, atol=0.25)


@pytest.mark.parametrize("paired", [True, False])
def test_the_information_is_that_of_the_literal_form(paired) -> None:
    """Half of `tr(R^-1 dR_a R^-1 dR_b)`, less the amplitude's part, with slopes by differences."""
    table = some_table(paired=paired)
    at = Prior.of(P, split=paired).mean + 0.3 * np.random.default_rng(6).normal(size=P + 3)

    def covariance(vector: np.ndarray, number: int) -> np.ndarray:
        part, given = table.parts[number], Parameters(vector=vector, split=paired)
        k = given.walsh.covariance(part, part.signs, part.signs)
        return k + given.nugget(number) * np.diag(part.noise)

    wanted = np.zeros((P + 3, P + 3))
    for number in range(len(table.parts)):
        inverse = np.linalg.inv(covariance(at, number))
        slopes = [
            inverse @ (covariance(at + e, number) - covariance(at - e, number)) / 2e-5
            for e in 1e-5 * np.eye(P + 3)
        ]
        traces = np.array([np.trace(slope) for slope in slopes])
        both = np.array([[np.trace(a @ b) for b in slopes] for a in slopes])
        wanted += (both - np.outer(traces, traces) / len(inverse)) / 2
    found = information(table.parts, Parameters(vector=at, split=paired))
    np.testing.assert_allclose(found, wanted, atol=1e-5 * wanted.max())


def test_an_even_selection_stands_for_many_answers() -> None:
    """Answers that are there twice have twice the information of 64 of them."""
    rng = np.random.default_rng(8)
    signs = rng.choice([-1.0, 1.0], size=(64, P))

    def known(n: int) -> np.ndarray:
        rows = np.linspace(0, 63, n).round().astype(int)
        part = Part(signs=signs[rows], scores=np.ones(n), noise=np.ones(n), odd=True, even=True)
        return information([part], Parameters(vector=Prior.of(P, split=False).mean, split=False))

    np.testing.assert_allclose(known(128), 2 * known(64), rtol=1e-9)


@pytest.mark.parametrize(("p", "spread"), [(9, 0.65), (25, 0.8125), (49, 0.975)])
@pytest.mark.parametrize("split", [True, False])
def test_the_prior_of_the_parameters(p, spread, split) -> None:
    """As written in its docstring; noise that is known or likely moves the nuggets."""
    plain = Prior.of(p, split=split)
    noisy, known = Prior.of(p, split=split, noisy=True), Prior.of(p, split=split, chance=0.2)
    sd = np.sqrt(np.diag(plain.cov))
    nuggets, logits = ([1, 2] if split else [1]), slice(3, None)

    np.testing.assert_allclose(plain.mean[[0, *nuggets]], [0.0, *[-7.0] * len(nuggets)])
    np.testing.assert_allclose(sd[[0, *nuggets]], [1.5, *[2.0] * len(nuggets)])
    np.testing.assert_array_equal(plain.mean[logits], -2.0)
    np.testing.assert_allclose(plain.cov[logits, logits], 1 + spread**2 * np.eye(p))
    np.testing.assert_array_equal(plain.cov[:3, logits], 0.0)
    assert (plain.mean[2], sd[2]) == ((-7.0, 2.0) if split else (0.0, 1.0))
    for prior, mean, width in ((noisy, -1.5, 1.5), (known, np.log(0.2), 1.0)):
        np.testing.assert_allclose(prior.mean[nuggets], mean)
        np.testing.assert_allclose(np.sqrt(np.diag(prior.cov))[nuggets], width)
        np.testing.assert_allclose(prior.mean[logits], plain.mean[logits])


def test_a_mask_asked_twice_counts_once_with_the_mean_of_its_scores() -> None:
    """A mask asked twice counts once with the mean of its scores."""
    masks = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    table = read_table(masks, np.array([1.0, 3.0, 5.0]))
    assert table.n_masks == 2
    assert not table.split


def test_an_index_of_the_wrong_order_is_not_made() -> None:
    """An index of the wrong order is not made."""
    with pytest.raises(AssertionError):
        by_size(size_weights(COSINE, P)).pairwise()
    assert isinstance(banzhaf().pairwise(), Index)


@pytest.mark.parametrize(("scores", "variance"), [(0.0, 1.0), (1.0, -1.0)])
def test_answers_without_a_covariance_are_refused(scores, variance) -> None:
    """Scores that are all zero say nothing about an amplitude, and variances are positive."""
    part = Part(signs=SIGNS, scores=np.full(2**P, scores), noise=np.ones(2**P), odd=True, even=True)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        solve(part, variance * np.eye(2**P), 0.0)
