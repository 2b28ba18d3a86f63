"""Every design leaves the estimand alone: the weighted linear fit to all masks."""

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eblime import registry
from eblime.answers import Answers, Proposal
from eblime.designs.masks import exhaustive, leverage
from eblime.designs.rounds import as_design
from eblime.kernels import ExponentialKernel

N = 61
KERNEL = ExponentialKernel(width=1.2)  # narrow: a mask that hides all has a weight of .06


def game(p):
    """Scores of all masks: a sigmoid of effects, interactions and the number of shown features."""
    rng = np.random.default_rng(p)
    masks = exhaustive(rng, 0, p)
    pairs = np.triu(rng.normal(size=(p, p)), 1)
    drive = masks @ rng.normal(size=p) + np.einsum("ij,jk,ik->i", masks, pairs, masks)
    return 1 / (1 + np.exp(-drive)) + 0.02 * masks.sum(axis=1) ** 2


def asked(design, rng, score, p):
    """All answers to a design, whose weights are those that the loop gives them."""
    answers = Answers.none([str(j) for j in range(p)])
    while (wanted := design.next(rng, answers)) is not None:
        even = not isinstance(wanted, Proposal)
        masks = wanted if even else wanted.masks
        sampling = np.ones(len(masks)) if even else wanted.sampling_weights
        answers = answers.append(masks, score(masks), KERNEL(masks) * sampling, sampling)
    return answers


def line(masks, scores, weights):
    """Weighted least squares, intercept first."""
    rows = np.column_stack([np.ones(len(masks)), masks])
    return np.linalg.solve((rows.T * weights) @ rows, (rows.T * weights) @ scores)


def truth_of(name, scores, p):
    """The fit to all masks, each counted as often as the design's law has it.

    That is equally often. "sizes" has lime's law; and as in lime, "sizes", "bernoulli", "glime" and
    "stratified-lime" count the input itself once more. "glime" has weights of one, which are in
    the same proportion: the sum of all weights is N.
    """
    masks = exhaustive(np.random.default_rng(0), 0, p)
    counts = np.full(2**p, N / 2**p)
    if name == "glime":
        counts = np.full(2**p, (N - 1) / KERNEL(masks).sum())
        counts[-1] += 1
    if name == "sizes":
        hidden = p - masks.sum(axis=1).astype(int)
        alike = np.bincount(hidden)[hidden]
        counts = np.where(hidden > 0, (N - 1) / p / alike, 0.0)
    if name in ("sizes", "bernoulli", "stratified-lime"):
        counts = counts if name == "sizes" else counts * (N - 1) / N
        counts[-1] += 1
    return line(masks, scores, counts * KERNEL(masks))


def errors_of(name, scores, p, repeats, corrected=True):
    """For each repetition, the first-order error and the whole error of the importances."""
    truth, rng = truth_of(name, scores, p), np.random.default_rng(1)
    masks, powers = exhaustive(rng, 0, p), 2 ** np.arange(p)
    rows = np.column_stack([np.ones(2**p), masks])
    whole_weight = KERNEL(masks).sum() if name == "glime" else 2**p
    slope = np.linalg.inv((rows.T * KERNEL(masks)) @ rows * N / whole_weight)
    first, whole = [], []
    for _ in range(repeats):
        answers = asked(
            as_design(name, N, p, kernel=KERNEL),
            rng,
            lambda masks: scores[(masks @ powers).astype(int)],
            p,
        )
        weights = answers.weights / (1 if corrected else answers.sampling)
        rows = np.column_stack([np.ones(answers.n_masks), answers.masks])
        first.append(slope @ (rows.T @ (weights * (answers.scores - rows @ truth))))
        whole.append(line(answers.masks, answers.scores, weights) - truth)
    return np.array(first)[:, 1:], np.array(whole)[:, 1:]


def z_scores(errors):
    """Mean errors in units of their standard errors; rounding errors count as zero."""
    sd = errors.std(axis=0, ddof=1) + 1e-12
    return np.abs(errors.mean(axis=0)) / (sd / np.sqrt(len(errors)))


FOR_REGRESSIONS = [name for name in registry.names("designs") if name != "adaptive"]


@pytest.mark.parametrize("name", FOR_REGRESSIONS)
def test_the_estimand_stays_the_same(name):
    """The normal equations hold on average at the fit to all masks, and so does the fit itself.

    The fit is a ratio of averages, so that its mean may differ by a small part of its spread.
    """
    scores = game(8)
    first, whole = errors_of(name, scores, 8, repeats=400)

    assert (z_scores(first) < 4.5).all()
    limit = 5 / np.sqrt(len(whole)) + 0.25
    assert (np.abs(whole.mean(axis=0)) <= limit * whole.std(axis=0) + 1e-12).all()


@pytest.mark.parametrize("name", ["leverage", "glime", "stratified-lime"])
def test_without_correction_the_estimand_changes(name):
    """The check above would notice a design whose weights do not correct for uneven draws."""
    first, _ = errors_of(name, game(8), 8, repeats=400, corrected=False)

    assert (z_scores(first) > 6).any()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["leverage", "stratified-lime"])
def test_the_estimand_of_photos(name):
    """The same with answers of a network to all masks of two photos."""
    table = Path(os.environ.get("EBLIME_DATA", "missing")).parent / "tables" / "imagenet-p13.npz"
    if not table.exists():
        pytest.skip("needs the stored answers of a network")
    stored = np.load(table)
    for number in (0, 7):
        scores = stored[f"scores_{number}"].astype(float)
        first, _ = errors_of(name, scores, len(scores).bit_length() - 1, repeats=100)
        assert (z_scores(first) < 4.5).all()


@pytest.mark.parametrize("p", [1, 2, 3, 6, 7])
def test_no_mask_twice(p, rng):
    """All masks are asked before any is asked again; whole passes have weights of one."""
    for n in (1, 2, 3, 2**p - 1, 2**p, 2**p + 3, 3 * 2**p):
        made = leverage(rng, n, p)
        codes = (made.masks @ 2 ** np.arange(p)).astype(int)
        times = np.bincount(codes, minlength=2**p)

        assert len(codes) == n
        assert codes[0] == 2**p - 1
        assert times.max() - times.min() <= 1
        assert_allclose(made.masks[: n // 2 * 2 : 2] + made.masks[1:n:2], 1)
        if n % 2**p == 0:
            assert_allclose(made.sampling_weights, 1)


def test_many_features(rng):
    """Hundreds of features: finite weights of mean about one, and distinct masks."""
    for p in (61, 400):
        answers = asked(
            as_design("leverage", 300, p), rng, lambda masks: masks[:, 0] - masks[:, 1], p
        )
        weights = answers.sampling

        assert answers.n_masks == 300
        assert np.isfinite(weights).all()
        assert 0.3 < weights.mean() < 3
        assert len(np.unique(answers.masks, axis=0)) == 300
