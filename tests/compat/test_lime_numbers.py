"""With `method="lime"` the numbers are those of lime 0.2.0.1: live where it is installed."""

from functools import partial

import numpy as np
import pytest
from lime_cases import TEXT, classify, judge, look, photo, predict, rows, squares
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from eblime.compat import lime as ours

pytest.importorskip("sklearn")
DATA = rows()
NAMES = ["a", "b", "c", "d", "kind"]
STORED = [  # input, label, features and weights, intercept, score
    (
        "row",
        1,
        [(1, -0.028858215254651133), (2, 0.020613558792082248), (4, -0.016789773656713112)],
        0.428302928983659,
        0.011825167144949744,
    ),
    (
        "text",
        1,
        [(5, 0.29528301272659213), (3, 0.139585833536518), (2, 0.1352105509662587)],
        0.07605888713676218,
        0.9505347898401576,
    ),
    (
        "image",
        0,
        [(6, 0.018203575617510258), (4, 0.014375400420793225), (2, 0.01089192957696173)],
        0.48007023625206385,
        0.9966514205582423,
    ),
]


class LeastSquares:
    """A linear model of the user, with as much of scikit-learn's interface as lime calls."""

    def fit(self, x, y, sample_weight):
        """Weighted least squares with an intercept."""
        root, wide = np.sqrt(sample_weight), np.column_stack([np.ones(len(x)), x])
        found = np.linalg.lstsq(wide * root[:, None], y * root, rcond=None)[0]
        self.intercept_, self.coef_ = found[0], found[1:]
        return self

    def predict(self, x):
        """The fitted line."""
        return self.intercept_ + x @ self.coef_

    def score(self, x, y, sample_weight):
        """Weighted R^2."""
        around = y - np.average(y, weights=sample_weight)
        missed = sample_weight @ (y - self.predict(x)) ** 2
        return 1 - missed / (sample_weight @ around**2)


def named(settings):
    """The names of the settings, as the id of a test."""
    return " ".join(settings) or "defaults"


@pytest.fixture
def theirs():
    """The installed lime."""
    lime = pytest.importorskip("lime", reason="lime is not installed")
    for name in ("lime_tabular", "lime_text", "lime_image", "submodular_pick", "lime_base"):
        pytest.importorskip(f"lime.{name}")
    return lime


def assert_same(found, wanted, atol=1e-9):
    """Same features in the same order; weights, intercepts, R^2 and predictions within `atol`."""
    assert set(found.local_exp) == set(wanted.local_exp)
    for label, exp in wanted.local_exp.items():
        assert [j for j, _ in found.local_exp[label]] == [j for j, _ in exp]
        assert_allclose([w for _, w in found.local_exp[label]], [w for _, w in exp], atol=atol)
        assert found.intercept[label] == pytest.approx(wanted.intercept[label], abs=atol)
    assert found.score == pytest.approx(wanted.score, abs=atol)
    assert_allclose(found.local_pred, wanted.local_pred, atol=atol)
    assert found.local_pred.shape == wanted.local_pred.shape


def tabular(module, settings, call, **extra):
    """An explanation of the first row."""
    explainer = module.LimeTabularExplainer(
        DATA, feature_names=NAMES, random_state=7, **settings, **extra
    )
    return explainer.explain_instance(DATA[0], num_samples=400, **call)


@pytest.mark.parametrize("selection", ["auto", "none", "highest_weights", "lasso_path"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"discretizer": "decile"},
        {"discretizer": "entropy", "training_labels": (DATA[:, 0] > 0).astype(int)},
        {"categorical_features": [4], "categorical_names": {4: ["x", "y", "z"]}},
        {"discretize_continuous": False},
        {"discretize_continuous": False, "categorical_features": np.array([4])},
        {"discretize_continuous": False, "sample_around_instance": True},
        {"kernel_width": 2.5},
        {"kernel": lambda d, kernel_width: 1 / (1 + d / kernel_width)},
    ],
    ids=named,
)
def test_tables(theirs, settings, selection):
    """Every discretiser, kernel and selection, three classes."""
    call = {
        "predict_fn": classify,
        "top_labels": 3,
        "num_features": 3 if selection == "auto" else 4,
    }
    settings = {**settings, "feature_selection": selection}
    wanted = tabular(theirs.lime_tabular, settings, call)
    found = tabular(ours.lime_tabular, settings, call, method="lime")

    assert_same(found, wanted)
    assert found.top_labels == wanted.top_labels
    assert found.available_labels() == wanted.available_labels()
    for label in wanted.top_labels:
        assert [n for n, _ in found.as_list(label)] == [n for n, _ in wanted.as_list(label)]
    assert_array_equal(found.predict_proba, wanted.predict_proba)
    assert found.domain_mapper.feature_values == wanted.domain_mapper.feature_values


@pytest.mark.parametrize("metric", ["cosine", "manhattan", "chebyshev", "sqeuclidean"])
def test_distances(theirs, metric):
    """Other metrics than the default."""
    call = {"predict_fn": classify, "distance_metric": metric}

    assert_same(
        tabular(ours.lime_tabular, {}, call, method="lime"),
        tabular(theirs.lime_tabular, {}, call),
    )


def test_forward_selection_of_correlated_columns(theirs, rng):
    """The same columns in the same order, for numbers that are far from orthogonal."""
    data = rng.normal(size=(200, 8)) @ rng.normal(size=(8, 8))
    scores, weights = np.tanh(data @ rng.normal(size=8)), rng.random(200)
    wanted = theirs.lime_base.LimeBase(None).forward_selection(data, scores, weights, 6)

    assert_array_equal(
        ours.lime_base.LimeBase(None).forward_selection(data, scores, weights, 6), wanted
    )


def test_counts_with_many_ones(theirs):
    """Bins of width zero, of which lime makes 0."""
    data = np.column_stack([np.repeat([1, 1, 1, 2, 5], 20), np.arange(100) % 7 + 1]).astype(float)
    found, wanted = (
        make(data, mode="regression", random_state=0).explain_instance(
            data[-1], lambda x: x[:, 0] * x[:, 1], num_samples=200
        )
        for make in (
            partial(ours.LimeTabularExplainer, method="lime"),
            theirs.lime_tabular.LimeTabularExplainer,
        )
    )

    assert_same(found, wanted)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"discretizer": "decile", "categorical_features": [4]},
        {"discretizer": "entropy", "training_labels": (DATA[:, 0] > 0).astype(int)},
        {"discretize_continuous": False, "sample_around_instance": True},
        {"feature_selection": "forward_selection"},
    ],
    ids=named,
)
def test_a_regression(theirs, settings):
    """Both labels of a regression, its range, and the value predicted."""
    settings = {"mode": "regression", **settings}
    bent = lambda x: predict(x) + np.sin(x[:, 1]) * x[:, 2]  # noqa: E731  no column is left over
    call = {"predict_fn": bent, "num_features": 3}
    wanted = tabular(theirs.lime_tabular, settings, call)
    found = tabular(ours.lime_tabular, settings, call, method="lime")

    assert_same(found, wanted)
    assert found.as_list() == [(n, pytest.approx(w, abs=1e-9)) for n, w in wanted.as_list()]
    for name in ("predicted_value", "min_value", "max_value"):
        assert getattr(found, name) == pytest.approx(getattr(wanted, name))
    assert found.class_names == wanted.class_names
    assert found.dummy_label == wanted.dummy_label


def test_a_regressor_of_the_user(theirs):
    """`model_regressor` replaces the ridge regression, and is fitted itself."""
    linear = pytest.importorskip("sklearn.linear_model").LinearRegression
    mine = linear()
    call = {"predict_fn": classify, "num_features": 3, "labels": (0, 2)}
    wanted = tabular(theirs.lime_tabular, {}, {**call, "model_regressor": linear()})
    for method in ("lime", "eblime"):
        found = tabular(ours.lime_tabular, {}, {**call, "model_regressor": mine}, method=method)
        assert_same(found, wanted)
    assert mine.intercept_ == pytest.approx(wanted.intercept[2])


def test_statistics_instead_of_data(theirs):
    """`training_data_stats` gives bins and their contents."""
    made = theirs.lime_tabular.LimeTabularExplainer(DATA, feature_names=NAMES, random_state=0)
    cut = made.discretizer
    stats = {
        "means": cut.means,
        "mins": cut.mins,
        "maxs": cut.maxs,
        "stds": cut.stds,
        "feature_values": made.feature_values,
        "feature_frequencies": made.feature_frequencies,
        "bins": {j: np.percentile(DATA[:, j], [25, 50, 75]) for j in range(5)},
    }
    call = {"predict_fn": classify}
    settings = {"training_data_stats": stats}

    assert_same(
        tabular(ours.lime_tabular, settings, call, method="lime"),
        tabular(theirs.lime_tabular, settings, call),
    )


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"discretizer": "decile"},
        {"discretize_continuous": False, "feature_selection": "none"},
        {"mode": "regression"},
    ],
    ids=named,
)
def test_rows_with_time_steps(theirs, settings):
    """Three time steps of two features."""
    data = np.random.default_rng(1).normal(size=(80, 3, 2))

    def model(x):
        high = 1 / (1 + np.exp(-x[:, 2, 0] + x[:, 0, 1]))
        return np.stack([1 - high, high], axis=1)[:, : 1 if "mode" in settings else 2]

    found, wanted = (
        make(data, feature_names=["p", "q"], random_state=2, **settings).explain_instance(
            data[0], model, num_samples=300
        )
        for make in (
            partial(ours.RecurrentTabularExplainer, method="lime"),
            theirs.lime_tabular.RecurrentTabularExplainer,
        )
    )

    assert_same(found, wanted)
    assert [n for n, _ in found.as_list()] == [n for n, _ in wanted.as_list()]


@pytest.mark.parametrize("features", [3, 6, 12])
def test_sparse_rows(theirs, features):
    """Only entries of the row change; lime solves by an iteration that stops at 1e-4."""
    data = sparse.random(60, 12, density=0.4, format="csr", random_state=3)
    settings = {"random_state": 4, "feature_selection": "highest_weights"}

    def model(x):
        high = 1 / (1 + np.exp(-4 * np.asarray(x[:, :4].sum(axis=1)).ravel()))
        return np.stack([1 - high, high], axis=1)

    call = {"predict_fn": model, "num_samples": 400, "num_features": features}
    wanted = theirs.lime_tabular.LimeTabularExplainer(data, **settings).explain_instance(
        data[0], **call
    )
    found = ours.LimeTabularExplainer(data, **settings, method="lime").explain_instance(
        data[0], **call
    )

    mine, expected = (
        {j: w for j, w in exp.local_exp[1] if j in data[0].indices} for exp in (found, wanted)
    )
    assert len(found.local_exp[1]) == len(wanted.local_exp[1]) == features
    assert set(mine) == set(expected)
    assert_allclose([mine[j] for j in expected], list(expected.values()), atol=2e-3)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"bow": False},
        {"bow": False, "mask_string": "?"},
        {"char_level": True},
        {"char_level": True, "bow": False},
        {"split_expression": r"\s"},
        {"split_expression": lambda text: text.replace(".", " ").split()},
        {"feature_selection": "lasso_path"},
        {"kernel_width": 10},
    ],
    ids=named,
)
@pytest.mark.parametrize("features", [4, 9])
def test_texts(theirs, settings, features):
    """Words and characters, as a bag and by position, removed and replaced."""
    found, wanted = (
        make(random_state=3, **settings).explain_instance(
            TEXT, judge, num_samples=200, num_features=features, top_labels=2
        )
        for make in (
            partial(ours.LimeTextExplainer, method="lime"),
            theirs.lime_text.LimeTextExplainer,
        )
    )

    assert_same(found, wanted)
    for kwargs in ({}, {"positions": True}):
        names = [name for name, _ in found.as_list(1, **kwargs)]
        assert names == [name for name, _ in wanted.as_list(1, **kwargs)]
        assert {type(name) for name in names} == {str}


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("hide_color", [None, 0, (0.2, 0.3, 0.4)], ids=str)
@pytest.mark.filterwarnings("ignore::UserWarning")  # tqdm of lime, in a process without widgets
def test_images(theirs, dtype, hide_color, capfd):
    """Superpixels numbered from 0; the picture and the mask too."""
    if dtype == np.uint8 and hide_color is not None:
        hide_color = tuple(255 * part for part in np.broadcast_to(hide_color, 3))
    found, wanted = (
        make(random_state=5).explain_instance(
            photo(dtype),
            look,
            top_labels=3,
            hide_color=hide_color,
            num_samples=150,
            segmentation_fn=squares,
        )
        for make in (
            partial(ours.LimeImageExplainer, method="lime"),
            theirs.lime_image.LimeImageExplainer,
        )
    )

    assert_same(found, wanted)
    assert found.top_labels == wanted.top_labels
    assert_array_equal(found.segments, wanted.segments)
    for settings in (
        {},
        {"positive_only": False},
        {"positive_only": False, "negative_only": True, "num_features": 2},
        {"hide_rest": True},
        {"positive_only": False, "min_weight": 0.02, "num_features": 50},
    ):
        pictures = (e.get_image_and_mask(found.top_labels[0], **settings) for e in (found, wanted))
        for ours_one, their_one in zip(*pictures, strict=True):
            assert_array_equal(ours_one, their_one)


@pytest.mark.parametrize(
    ("settings", "call"),
    [
        ({"kernel_width": 0.5}, {"distance_metric": "euclidean"}),
        ({"kernel": lambda d, kernel_width: 1 - d * kernel_width}, {"num_features": 4}),
        ({"feature_selection": "lasso_path"}, {"num_features": 5, "batch_size": 7}),
        ({"feature_selection": "forward_selection"}, {"num_features": 8, "random_seed": 1}),
        ({"feature_selection": "none"}, {"model_regressor": LeastSquares()}),
    ],
    ids=["distance", "kernel", "lasso", "forward", "regressor"],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_images_with_other_settings(theirs, settings, call, capfd):
    """Kernel, distance, selection and regressor of the user; superpixels by felzenszwalb."""
    found, wanted = (
        make(random_state=5, **settings).explain_instance(
            photo(),
            look,
            top_labels=2,
            num_samples=120,
            segmentation_fn=module.SegmentationAlgorithm("felzenszwalb", scale=20, min_size=20),
            **call,
        )
        for make, module in (
            (partial(ours.LimeImageExplainer, method="lime"), ours.wrappers.scikit_image),
            (theirs.lime_image.LimeImageExplainer, theirs.wrappers.scikit_image),
        )
    )

    assert found.segments.max() > 8
    assert_array_equal(found.segments, wanted.segments)
    assert_same(found, wanted)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_grey_image_with_the_default_segmentation(theirs, capfd):
    """Quickshift with lime's settings; the model gets three channels."""
    grey = photo(np.float64)[:, :, 0]
    found, wanted = (
        make(random_state=5).explain_instance(
            grey, look, top_labels=None, labels=(2,), num_samples=50
        )
        for make in (
            partial(ours.LimeImageExplainer, method="lime"),
            theirs.lime_image.LimeImageExplainer,
        )
    )

    assert_same(found, wanted)
    assert found.image.shape == (24, 32, 3)


@pytest.mark.parametrize("inputs", ["rows", "regression", "texts"])
@pytest.mark.filterwarnings("ignore:Requested sample size:UserWarning")  # of lime
def test_submodular_pick(theirs, inputs):
    """The same sample and the same pick after `np.random.seed`; all of the texts."""
    texts = [f"{word} {TEXT[: 20 + 5 * k]}" for k, word in enumerate(("good", "not", "bad", "end"))]
    picks = []
    for module, extra in ((ours, {"method": "lime"}), (theirs, {})):
        settings = {"num_features": 2, "num_samples": 100, "sample_size": 12}
        if inputs == "texts":
            explainer = module.lime_text.LimeTextExplainer(random_state=1, **extra)
            data, model, settings["method"] = texts, judge, "full"
        else:
            mode = "classification" if inputs == "rows" else "regression"
            explainer = module.lime_tabular.LimeTabularExplainer(
                DATA, mode=mode, random_state=1, **extra
            )
            data, model = DATA, classify if inputs == "rows" else predict
        np.random.seed(3)  # noqa: NPY002  the global state is what lime uses
        pick = module.submodular_pick.SubmodularPick
        picks.append(pick(explainer, data, model, num_exps_desired=4, **settings))

    assert picks[0].V == picks[1].V
    assert len(picks[0].V) == 4
    for mine, other in zip(picks[0].sp_explanations, picks[1].sp_explanations, strict=True):
        assert_same(mine, other)


def test_numbers_that_lime_gave():
    """Numbers of lime 0.2.0.1, so that they are checked where it is not installed."""
    row = tabular(ours.lime_tabular, {}, {"predict_fn": classify}, method="lime")
    text = ours.LimeTextExplainer(random_state=3, method="lime").explain_instance(
        TEXT, judge, num_samples=200, num_features=3
    )
    image = ours.LimeImageExplainer(random_state=5, method="lime").explain_instance(
        photo(), look, top_labels=1, num_samples=150, segmentation_fn=squares
    )

    for found, label, listed, intercept, score in STORED:
        exp = {"row": row, "text": text, "image": image}[found]
        assert [j for j, _ in exp.local_exp[label]][: len(listed)] == [j for j, _ in listed]
        assert_allclose(
            [w for _, w in exp.local_exp[label]][: len(listed)], [w for _, w in listed], rtol=1e-9
        )
        assert exp.intercept[label] == pytest.approx(intercept, rel=1e-9)
        assert exp.score == pytest.approx(score, rel=1e-9)
