import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import problem

import eblime


def test_weights_default_to_one(rng):
    """No weights is the same as equal weights."""
    masks, scores, _ = problem(rng, 30, 4)

    assert_allclose(eblime.fit(masks, scores).mean, eblime.fit(masks, scores, np.ones(30)).mean)


def test_lists_booleans_and_integers_are_taken(rng):
    """What people have: booleans, small integers, nested lists."""
    masks, scores, weights = problem(rng, 30, 4)
    expected = eblime.fit(masks, scores, weights).mean
    for form in (masks.astype(bool), masks.astype(np.int8), masks.tolist()):
        assert_allclose(eblime.fit(form, scores.tolist(), weights.tolist()).mean, expected)


def test_arguments_are_not_changed(rng):
    """Read-only arrays will do, and nothing is written into them."""
    data = problem(rng, 30, 4)
    copies = [array.copy() for array in data]
    for array in data:
        array.flags.writeable = False
    for method in ("eblime", "eblime-paper", "bayeslime", "lime"):
        eblime.fit(*data, method=method)

    for array, copy in zip(data, copies, strict=True):
        assert_array_equal(array, copy)


@pytest.mark.parametrize("method", ["eblime", "bayeslime", "lime"])
def test_targets_share_a_decomposition(rng, method):
    """Several score columns at once give what each gives alone."""
    masks, scores, weights = problem(rng, 30, 4)
    many = np.column_stack([scores, scores**2, np.zeros(30)])
    together = eblime.methods.fit_targets(masks, many, weights, method)

    assert len(together) == 3
    for post, column in zip(together, many.T, strict=True):
        assert_allclose(post.mean, eblime.fit(masks, column, weights, method).mean)


def test_method_objects_and_names_are_one(rng):
    """A name stands for the method with its defaults."""
    data = problem(rng, 30, 4)

    assert_allclose(
        eblime.fit(*data, method="bayeslime").interval(),
        eblime.fit(*data, method=eblime.BayesLIME()).interval(),
    )


GOOD = {"masks": np.eye(3), "scores": np.arange(3.0), "weights": np.ones(3)}
BAD = [
    ({"masks": np.ones(3)}, ValueError, r"`masks` must be 2-D.*got shape \(3,\)"),
    ({"masks": np.ones((0, 3))}, ValueError, r"at least one row and one column.*\(0, 3\)"),
    ({"masks": [[1, 2], [3]]}, TypeError, r"`masks` must be an array of real numbers"),
    ({"masks": np.eye(3) * 1j}, TypeError, r"`masks` must be an array of real numbers"),
    ({"masks": [["1", "0"]] * 3}, TypeError, r"`masks` must be an array of real numbers"),
    ({"masks": np.ma.masked_equal(np.eye(3), 1)}, TypeError, r"`masks` must be an array of real"),
    ({"masks": [["a", "b"]] * 3}, TypeError, r"`masks` must be an array of real numbers"),
    ({"masks": np.where(np.eye(3) > 0, np.nan, 0)}, ValueError, r"nan at row 0, column 0"),
    ({"scores": [0, 1]}, ValueError, r"one entry for each of the 3 masks.* got shape \(2,\)"),
    ({"scores": np.ones((3, 2))}, ValueError, r"`scores` must be 1-D.*use `fit_targets`"),
    ({"scores": [0, np.inf, np.nan]}, ValueError, r"`scores` must be finite; got inf at row 1"),
    ({"weights": [1, 1]}, ValueError, r"`weights` must have one entry for each of the 3 masks"),
    ({"weights": [1, 1, np.nan]}, ValueError, r"`weights` must be finite; got nan at row 2"),
    ({"weights": [1, -2, 1]}, ValueError, r"`weights` must be >= 0; got -2.0 at row 1"),
    ({"weights": [0, 0, 0]}, ValueError, r"`weights` must not all be zero"),
    (
        {"method": "elime"},
        ValueError,
        r"'eblime', 'eblime-ridge', 'eblime-paper', 'bayeslime', .*'lime'.*; got 'elime'",
    ),
    ({"method": 3}, TypeError, r"an object such as EBLIME\(\); got 3"),
    ({"method": eblime.EBLIME}, TypeError, r"an object such as EBLIME\(\); got <class"),
]


@pytest.mark.parametrize(("change", "error", "message"), BAD)
def test_bad_input_is_refused_by_name(change, error, message):
    """What must hold, what was given, where."""
    with pytest.raises(error, match=message):
        eblime.fit(**{**GOOD, **change})


def test_targets_must_be_a_matrix():
    """One column is `fit`'s business, no column nobody's."""
    with pytest.raises(ValueError, match=r"`scores` must be 2-D.*use `fit`"):
        eblime.methods.fit_targets(np.eye(3), np.ones(3))
    with pytest.raises(ValueError, match=r"at least one column"):
        eblime.methods.fit_targets(np.eye(3), np.ones((3, 0)))


def test_large_values_work_and_huge_ones_are_refused():
    """Up to 1e100 nothing overflows, not even squares; beyond, the error says so."""
    post = eblime.fit(np.eye(3), [1e100, 1e100, 0])

    assert np.isfinite(post.interval()).all()
    assert np.isfinite(post.sigma2.median)
    assert np.isfinite(post.sample(5, rng=0)).all()
    with pytest.raises(ValueError, match=r"at most 1e\+100 in size; got 1e\+200 at row 1"):
        eblime.fit(np.eye(3), [0, 1e200, 0])


@pytest.mark.parametrize("size", [1e-300, 1e-101])
@pytest.mark.parametrize("method", ["eblime", "eblime-paper", "bayeslime", "lime"])
def test_numbers_that_vanish_are_refused(rng, method, size):
    """Weights or masks whose squares underflow say so, rather than give NaN."""
    masks, scores, _ = problem(rng, 20, 3)

    with pytest.raises(ValueError, match=r"`weights` must have an entry of at least 1e-100"):
        eblime.fit(masks, scores, np.full(20, size), method=method)
    with pytest.raises(ValueError, match=r"`masks` must have an entry of at least 1e-100"):
        eblime.fit(size * masks, scores, method=method)


@pytest.mark.parametrize("size", [1e-100, 1e-50])
def test_numbers_that_do_not_vanish_are_fitted(rng, size):
    """Every number is finite at the ends of what is accepted."""
    masks, scores, _ = problem(rng, 20, 3)
    for post in (
        eblime.fit(masks, scores, np.full(20, size)),
        eblime.fit(size * masks, scores),
        eblime.fit(size * masks, scores, np.full(20, size)),
    ):
        assert np.isfinite(post.mean).all()
        assert np.isfinite(post.interval()).all()


@pytest.mark.parametrize("method", ["eblime", "baylime", "bayesshap", "quadrature", "lime"])
def test_scores_that_differ_by_rounding_are_constant_for_every_method(method):
    """Nothing moves them: importances are zero, and R^2 is that of constant scores."""
    masks = ((np.arange(16)[:, None] >> np.arange(4)) & 1).astype(float)
    scores = np.full(16, 0.1)
    scores[3] = np.nextafter(0.1, 1)
    post = eblime.fit(masks, scores, method=method)

    assert post.constant
    assert post.r2 == 1
    np.testing.assert_allclose(post.mean, 0, atol=1e-17)


@pytest.mark.parametrize("method", ["eblime", "eblime-ridge", "bayeslime"])
def test_a_weight_that_goes_to_zero_ends_where_zero_is(method):
    """Widths at tiny weights are those at zero, or both say that nothing is known."""

    def width(weight):
        post = eblime.fit([[1, 0, 1], [0, 1, 1]], [1, 2], [0.5, weight], method)
        return np.ptp(post.interval(), axis=1)

    for weight in (1e-14, 1e-20):
        assert_allclose(np.minimum(width(weight), 1e100), np.minimum(width(0), 1e100), rtol=1e-3)


@pytest.mark.parametrize("weight", [0, 1e-14, 1e-11, 1e-9, 1e-3])
def test_a_more_probable_interval_is_no_narrower(weight):
    """However little is known."""
    post = eblime.fit([[1, 0, 1], [0, 1, 1]], [1, 2], [0.5, weight])
    widths = [np.ptp(post.interval(prob), axis=1) for prob in (0.1, 0.5, 0.8, 0.95, 0.999)]

    assert np.isfinite(widths).all()
    assert (np.diff(widths, axis=0) >= -1e-9 * np.array(widths[1:])).all()


@pytest.mark.parametrize("unit", [1e-320, 1e-200, 1e-160, 1e99])
@pytest.mark.parametrize("method", ["eblime", "bayeslime", "baylime", "bayesshap", "quadrature"])
def test_scores_of_any_size_give_the_same_fit(method, unit):
    """Up to the digits that numbers near the smallest one have."""
    rng = np.random.default_rng(0)
    masks = rng.integers(0, 2, (60, 4)).astype(float)
    scores = masks @ [1.0, 0.5, -0.3, 0.0] + 0.1 * rng.normal(size=60)
    plain, small = (eblime.fit(masks, y, method=method) for y in (scores, scores * unit))

    assert_allclose(small.interval() / unit, plain.interval(), atol=2e-3)
    assert_allclose(small.sd / unit, plain.sd, rtol=2e-2)
    assert_allclose(small.prob_greater(), plain.prob_greater(), atol=1e-3)
    assert small.r2 == pytest.approx(plain.r2, abs=1e-3)
