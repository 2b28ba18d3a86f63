"""Any index from the same answers: importances, interactions, and files."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import eblime
from eblime.answers import Answers
from eblime.compat.lime import LimeTabularExplainer
from eblime.core.indices import banzhaf, shapley
from eblime.core.quadrature import exact_values
from eblime.designs.masks import exhaustive
from eblime.kernels import ExponentialKernel
from eblime.methods.quadrature import Quadrature
from eblime.results.indices import Interactions, every_index

WORDS = "red green blue black white grey pink brown"
P = len(WORDS.split())
ALL = exhaustive(np.random.default_rng(0), 0, P)
CALLS: list[int] = []


def score_masks(masks: np.ndarray) -> np.ndarray:
    """Main effects, a pair and a triple."""
    z = np.asarray(masks, dtype=float)
    return z[:, 0] - 0.5 * z[:, 1] + z[:, 2] * z[:, 3] - 0.7 * z[:, 0] * z[:, 1] * z[:, 7]


def score_texts(texts: list[str]) -> np.ndarray:
    """The same for texts."""
    CALLS.append(len(texts))
    present = [text.split() for text in texts]
    return score_masks(np.array([[word in words for word in WORDS.split()] for words in present]))


def explained(method: object = "quadrature", **settings: object) -> eblime.Explanation:
    """A text of eight words, 60 of 256 masks, the text itself and no word among them."""
    kept = {"n_masks": 60, "design": "leverage"} | settings
    return eblime.TextExplainer(score_texts, method=method, **kept).explain(WORDS)


@pytest.fixture(scope="module")
def explanation() -> eblime.Explanation:
    """An explanation by Quadrature."""
    return explained()


@pytest.mark.parametrize("method", ["quadrature", "eblime"])
@pytest.mark.parametrize("index", ["lime", "banzhaf", "shapley"])
def test_every_index_is_near_its_exact_value_without_a_model_call(method, index) -> None:
    """Every index is near its exact value without a model call."""
    found = explained(method)
    before = len(CALLS)
    post = found.importances(index)
    truth = exact_values(ALL, score_masks(ALL), Quadrature(index=index).functional(P))

    assert len(CALLS) == before
    assert np.abs(post.mean - truth).max() < 0.12
    assert (np.abs(post.mean - truth) < 5 * post.sd + 1e-9).all()


def test_the_explanations_own_index_has_its_own_numbers(explanation) -> None:
    """The fit is repeated."""
    same = explanation.importances()

    np.testing.assert_array_equal(same.interval(), explanation.posterior.interval())


def test_a_width_is_a_kernel_with_the_explanations_distance() -> None:
    """`width` keeps the distance; `kernel` replaces both."""
    explanation = explained(kernel="cosine")
    by_width = explanation.importances("lime", width=0.7)
    by_kernel = explanation.importances(
        "lime", kernel=ExponentialKernel(distance="cosine", width=0.7)
    )
    euclidean = explanation.importances("lime", kernel=ExponentialKernel(width=0.7))

    np.testing.assert_array_equal(by_width.mean, by_kernel.mean)
    assert np.abs(euclidean.mean - by_width.mean).max() > 0.01


def test_shapley_values_sum_to_the_difference_of_the_ends(explanation) -> None:
    """Both ends are asked."""
    total = float(np.diff(score_masks(np.array([np.zeros(P), np.ones(P)])))[0])

    assert explanation.importances("shapley").mean.sum() == pytest.approx(total, abs=1e-5)


@pytest.mark.parametrize("index", ["banzhaf", "shapley"])
def test_interactions_are_near_their_exact_values(explanation, index) -> None:
    """Interactions are near their exact values."""
    found = explanation.interactions(index)
    chosen = (banzhaf() if index == "banzhaf" else shapley(P)).pairwise()
    truth = exact_values(ALL, score_masks(ALL), chosen)

    assert isinstance(found, Interactions)
    assert np.abs(found.posterior.mean - truth).max() < 0.25
    strongest = found.pairs[np.argmax(np.abs(found.posterior.mean))]
    assert strongest.tolist() == [2, 3]


def test_interactions_as_matrix_table_and_frame(explanation) -> None:
    """The same numbers, in three forms."""
    found = explanation.interactions()
    matrix, frame = found.matrix(), found.to_frame(top=3)

    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(np.diag(matrix), 0)
    assert matrix[2, 3] == np.abs(matrix).max()
    assert list(frame.columns) == [
        *("feature_a", "feature_b", "mean", "sd", "low", "high", "prob_positive")
    ]
    assert frame.loc[0, ["feature_a", "feature_b"]].tolist() == ["word 'blue'", "word 'black'"]
    assert frame.loc[0, "mean"] == matrix[2, 3]
    assert (frame["low"] <= frame["mean"]).all()
    assert (frame["mean"] <= frame["high"]).all()
    assert "nan" not in found.table()  # a line has an R2, pairs have none
    lines = str(found).splitlines()
    assert lines[0] == "Banzhaf interactions"
    assert "function R2" in lines[1]
    assert "nan" not in lines[1]  # interactions are not a line
    assert lines[2].startswith("pair")
    assert lines[3].startswith("word 'blue' \N{MULTIPLICATION SIGN} word 'black'")
    assert f"... and {P * (P - 1) // 2 - 10} more pairs" in lines
    assert "Banzhaf interactions" in repr(found)


def test_all_masks_give_exact_interactions() -> None:
    """Intervals close when every mask was asked."""
    found = explained(n_masks=2**P).interactions("shapley")

    truth = exact_values(ALL, score_masks(ALL), shapley(P).pairwise())
    np.testing.assert_allclose(found.posterior.mean, truth, atol=1e-12)
    np.testing.assert_array_equal(found.posterior.sd, 0)


def test_a_single_feature_has_no_interactions() -> None:
    """A single feature has no interactions."""
    one = eblime.TextExplainer(score_texts, n_masks=10).explain("red")

    with pytest.raises(ValueError, match="need 2 to 64 features; the explanation has 1"):
        one.interactions()


def test_representations_that_are_not_binary_are_refused(explanation) -> None:
    """Representations that are not binary are refused."""
    answers = dataclasses.replace(explanation.answers, masks=explanation.masks * 0.5)
    other = dataclasses.replace(explanation, answers=answers)

    for compute in (other.importances, other.interactions):
        with pytest.raises(ValueError, match="`masks` must be zeros and ones"):
            compute()


def test_too_many_masks_are_refused(explanation) -> None:
    """The cost is cubic in the number of distinct masks."""
    masks = np.random.default_rng(0).integers(0, 2, size=(3_200, 20)).astype(float)
    answers = Answers(masks=masks, scores=masks[:, 0], weights=np.ones(len(masks)))
    other = dataclasses.replace(explanation, answers=answers)

    with pytest.raises(ValueError, match="at most 3,000 distinct masks"):
        other.importances("shapley")


def test_settings_that_do_not_fit_are_refused(explanation) -> None:
    """Settings that do not fit are refused."""
    with pytest.raises(ValueError, match="`index` must be one of 'lime', 'banzhaf', 'shapley'"):
        explanation.importances("owen")
    with pytest.raises(ValueError, match="`index` must be one of 'banzhaf', 'shapley'"):
        explanation.interactions("lime")
    with pytest.raises(ValueError, match="must be None unless index='lime'"):
        explanation.importances("shapley", width=1.0)
    with pytest.raises(ValueError, match="must not both be given"):
        explanation.importances(width=1.0, kernel="uniform")
    with pytest.raises(ValueError, match="`width`"):
        explanation.importances(width=0.0)


def squared(masks: np.ndarray) -> np.ndarray:
    """A kernel of the user."""
    return masks.mean(axis=1) ** 2 + 0.1


def test_a_kernel_of_the_user_must_be_given_again() -> None:
    """Its function is not stored, so that a regression's importances say what is missing."""
    found = explained("eblime", kernel=squared)
    with pytest.raises(ValueError, match=r"`kernel` must be given.*squared"):
        found.importances()
    with pytest.raises(ValueError, match=r"`kernel` must be given.*squared"):
        found.refit("quadrature")
    assert found.importances(kernel=squared).n_features == P
    assert found.importances("shapley").n_features == P
    assert found.refit(Quadrature(index="shapley")).posterior.estimand == "Shapley values"


def test_width_needs_a_kernel_that_has_one() -> None:
    """A kernel without width is named."""
    found = explained("eblime", kernel="uniform")

    with pytest.raises(ValueError, match="the kernel of this one is uniform"):
        found.importances(width=1.0)
    np.testing.assert_allclose(
        found.importances("lime").mean, found.importances("banzhaf").mean, atol=1e-12
    )


def test_refit_takes_the_explanations_kernel() -> None:
    """A regression with the cosine kernel and its refit have the same estimand."""
    found = explained("eblime", n_masks=2**P, kernel="cosine").refit("quadrature")

    truth = exact_values(ALL, score_masks(ALL), Quadrature(kernel="cosine").functional(P))
    np.testing.assert_allclose(found.posterior.mean, truth, atol=1e-9)
    assert found.method.kernel == ExponentialKernel(distance="cosine")


@pytest.mark.parametrize(
    "method",
    [
        Quadrature(),
        Quadrature(index="shapley"),
        Quadrature(kernel=ExponentialKernel(width=1.5)),
        Quadrature(kernel="uniform"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("design", ["leverage", "adaptive"])
def test_files_give_the_same_numbers(tmp_path, method, design) -> None:
    """Loading fits again with the stored state of the generator."""
    found = explained(method, design=design)
    loaded = eblime.load(found.save(tmp_path / "e.eblime"))

    assert loaded.method == found.method
    np.testing.assert_array_equal(loaded.posterior.interval(), found.posterior.interval())
    for index in ("lime", "banzhaf", "shapley"):
        np.testing.assert_array_equal(loaded.importances(index).sd, found.importances(index).sd)
    np.testing.assert_array_equal(
        loaded.interactions().posterior.sd, found.interactions().posterior.sd
    )


def test_rows_have_banzhaf_values_by_lime_but_no_shapley_values() -> None:
    """The function is the mean score of a mask; a row with everything hidden is not defined."""
    rows = np.random.default_rng(0).normal(size=(200, 4))
    explainer = LimeTabularExplainer(rows, mode="regression", random_state=0)
    found = explainer.explain_instance(
        np.array([1.5, 1.5, 0.0, 0.0]), lambda x: x[:, 0] + 0.5 * x[:, 1], num_samples=3000
    ).explanation

    low, high = found.importances("banzhaf").interval(0.999).T
    assert (low[:2] > 0).all()
    assert ((low < 0) & (high > 0))[2:].all()
    assert found.interactions().pairs.shape == (6, 2)
    for undefined in (
        lambda: found.importances("shapley"),
        lambda: found.interactions("shapley"),
        lambda: found.refit(Quadrature(index="shapley")),
    ):
        with pytest.raises(ValueError, match=r"Shapley values need .* TabularExplainer"):
            undefined()
    assert list(every_index(found.refit("quadrature"))) == ["lime", "banzhaf"]


def test_interactions_are_shown_in_a_notebook(explanation) -> None:
    """The largest pairs with their intervals, without scripts; names are escaped."""
    found = explanation.interactions()
    html = dataclasses.replace(found, label="<script>")._repr_html_()

    assert "word &#39;blue&#39; \N{MULTIPLICATION SIGN} word &#39;black&#39;" in html
    assert "&lt;script&gt;" in html
    assert "<script" not in html
    assert html.count("<tr>") == 11
    assert "and 18 more pairs" in html
    assert "Banzhaf interactions" in html
