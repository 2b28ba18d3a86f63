"""Masks chosen in rounds."""

from __future__ import annotations

import numpy as np
import pytest

import eblime
from eblime import registry
from eblime.answers import Answers
from eblime.core.indices import banzhaf
from eblime.core.quadrature import exact_values, read_table, solve_part
from eblime.core.walsh import Prior, fit_parameters
from eblime.designs.adaptive import Adaptive, choose
from eblime.designs.masks import exhaustive
from eblime.designs.rounds import in_rounds

P = 8
WHOLE = exhaustive(np.random.default_rng(0), 0, P)


def game(masks: np.ndarray) -> np.ndarray:
    """Game."""
    z = np.asarray(masks)
    return z[:, 0] - 0.5 * z[:, 1] + z[:, 2] * z[:, 3] - 0.7 * z[:, 0] * z[:, 4] * z[:, 5]


def asked(design: Adaptive, seed: int = 0) -> tuple[Answers, list[int]]:
    """Asked."""
    rng, rounds = np.random.default_rng(seed), []
    answers = Answers.none([str(j) for j in range(P)])
    while (masks := design.next(rng, answers)) is not None:
        answers = answers.append(masks, game(masks), np.ones(len(masks)))
        rounds.append(len(masks))
    return answers, rounds


def test_asks_pairs_none_twice_and_both_ends() -> None:
    """Asks pairs none twice and both ends."""
    answers, rounds = asked(Adaptive(n_masks=120))
    assert answers.n_masks == 120
    assert len(rounds) > 2
    assert len(np.unique(answers.masks, axis=0)) == 120
    np.testing.assert_array_equal(answers.masks[::2], 1 - answers.masks[1::2])
    np.testing.assert_array_equal(answers.masks[0], np.ones(P))


def test_asks_every_mask_if_there_are_no_more() -> None:
    """Asks every mask if there are no more."""
    answers, _ = asked(Adaptive(n_masks=300))
    assert len(np.unique(answers.masks, axis=0)) == answers.n_masks == 2**P


def test_the_same_seed_gives_the_same_masks() -> None:
    """The same seed gives the same masks."""
    first, second = (asked(Adaptive(n_masks=80), seed=3)[0] for _ in range(2))
    np.testing.assert_array_equal(first.masks, second.masks)


def test_few_masks_are_left_when_nearly_all_are_asked() -> None:
    """Few masks are left when nearly all are asked."""
    answers, _ = asked(Adaptive(n_masks=2**P - 2))
    assert len(np.unique(answers.masks, axis=0)) == answers.n_masks
    assert answers.n_masks > 2**P - 10


def test_the_first_choice_reduces_the_variance_most() -> None:
    """Against adding each mask of the pool to the answers in turn, with the same parameters."""
    answers, _ = asked(Adaptive(n_masks=40))
    table = read_table(answers.masks, answers.scores)
    taken = {row.tobytes() for row in answers.masks}
    pool = np.array([row for row in WHOLE if row[0] == 1 and row.tobytes() not in taken])[:30]
    chosen = choose(table, banzhaf(), pool, 1)[0]
    parameters = fit_parameters(table.parts, Prior.of(P, split=True))
    by_hand = np.stack([exact_values(WHOLE, one, banzhaf()) for one in np.eye(2**P)], axis=1)

    def left(row: np.ndarray) -> float:
        total = 0.0
        for number, part in enumerate(table.parts):
            amplitude = solve_part(part, parameters, number).fit / len(part.scores)
            signs = np.concatenate([part.signs, 2 * row[None] - 1])
            noise = parameters.nugget(number) * np.append(part.noise, 1.0)
            k = parameters.walsh.covariance(part, signs, signs) + np.diag(noise)
            to_all = parameters.walsh.covariance(part, 2 * WHOLE - 1, signs)
            everywhere = parameters.walsh.covariance(part, 2 * WHOLE - 1, 2 * WHOLE - 1)
            cov = everywhere - to_all @ np.linalg.solve(k, to_all.T)
            total += amplitude * float(np.trace(by_hand @ cov @ by_hand.T))
        return total

    best = pool[int(np.argmin([left(row) for row in pool]))]
    np.testing.assert_array_equal(chosen, best)


def test_the_error_is_smaller_than_with_pairs_at_random() -> None:
    """The error is smaller than with pairs at random."""
    truth = exact_values(WHOLE, game(WHOLE), banzhaf())
    method = eblime.Quadrature(index="banzhaf")
    errors = []
    for seed in range(12):
        answers, _ = asked(Adaptive(n_masks=64, method=method), seed)
        rows = np.random.default_rng(seed).choice(2 ** (P - 1), size=32, replace=False)
        masks = np.concatenate([WHOLE[rows], 1 - WHOLE[rows]])
        random = eblime.fit(masks, game(masks), method=method).mean
        chosen = method.fit(np.random.default_rng(0), answers).mean
        errors.append([np.mean((mean - truth) ** 2) for mean in (chosen, random)])
    chosen, random = np.mean(errors, axis=0)
    assert chosen < random


def test_works_in_an_explainer() -> None:
    """Works in an explainer."""

    def model(texts: list[str]) -> np.ndarray:
        return np.array([text.count("good") - 0.5 * text.count("bad") for text in texts])

    text = "a good film with a bad end but good music and one more good line to make it long"
    explainer = eblime.TextExplainer(
        model, method="quadrature", design="adaptive", n_masks=100, progress=False
    )
    e = explainer.explain(text)
    assert e.provenance["rounds"] > 1
    found = dict(zip(e.features, e.posterior.mean, strict=True))
    assert found["word 'bad'"] == pytest.approx(-0.5, abs=0.05)


def test_regressions_are_refused_before_any_model_call() -> None:
    """Regressions are refused before any model call."""
    with pytest.raises(ValueError, match="must be used with method='quadrature'"):
        eblime.TextExplainer(lambda texts: np.zeros(len(texts)), design="adaptive")


def test_a_stop_rule_keeps_the_rounds_and_ends_with_all_masks() -> None:
    """Where all masks could be asked: small rounds first, every pair once, all in the end."""
    rng = np.random.default_rng(0)
    design = in_rounds(rng, "adaptive", 300, P, exact=True)
    assert isinstance(design, Adaptive)
    answers, rounds = asked(design)

    assert rounds[0] == 64
    assert len(rounds) > 3
    assert all(later >= 0.3 * sum(rounds[:k]) for k, later in enumerate(rounds) if k)
    np.testing.assert_array_equal(answers.masks[::2], 1 - answers.masks[1::2])
    assert len(np.unique(answers.masks, axis=0)) == answers.n_masks == 2**P


def test_no_more_masks_are_asked_than_quadrature_takes() -> None:
    """A budget beyond its limit ends there, unless all masks are asked."""
    rng, none = np.random.default_rng(0), Answers.none([str(j) for j in range(P + 5)])
    masks = rng.integers(0, 2, size=(1_500, P + 5)).astype(float)
    known = none.append(np.repeat(masks, 2, axis=0), np.zeros(3_000), np.ones(3_000))

    assert Adaptive(n_masks=5_000).next(rng, known) is None
    design = in_rounds(rng, "orthogonal", 5_000, P + 5, exact=True, method=eblime.Quadrature())
    total = 0
    while (wanted := design.next(rng, known_until(total))) is not None:
        total += len(wanted)
    assert total == 3_000


def known_until(n: int) -> Answers:
    """Answers of n masks; which masks does not matter."""
    none = Answers.none([str(j) for j in range(P + 5)])
    return none.append(np.zeros((n, P + 5)), np.zeros(n), np.ones(n)) if n else none


def test_a_number_of_masks_that_no_design_can_have_is_refused() -> None:
    """Before the first round."""
    with pytest.raises(ValueError, match="`n_masks` must be >= 1; got 0"):
        Adaptive(n_masks=0)


@pytest.mark.parametrize("name", registry.names("designs"))
def test_every_design_asks_all_masks_of_a_table_once(rng, name):
    """A mask decides its score, so none is asked again."""
    rows = rng.random((200, 3))
    method = "quadrature" if name == "adaptive" else "eblime"
    explainer = eblime.TabularExplainer(
        lambda table: table @ [1.0, 2.0, 3.0], rows, design=name, method=method, n_masks=100
    )
    e = explainer.explain(rows[0], rng=0)

    assert e.exhaustive
    assert len(e.masks) == len(np.unique(e.masks, axis=0)) == 8
