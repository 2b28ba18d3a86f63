"""What people do with lime in notebooks runs with either library; only the import differs.

Each idiom runs with the installed lime, which shows that it is one, and with our replacement.
"""

import importlib
import re
import sys
import types
from functools import partial

import numpy as np
import pytest
from lime_cases import TEXT, judge, look, photo, rows

pytest.importorskip("sklearn")
pytestmark = pytest.mark.filterwarnings("ignore")  # lime's own, and those of its dependencies


@pytest.fixture(params=["lime", "eblime.compat.lime"])
def load(request):
    """Imports a module of either library."""
    if request.param == "lime":
        pytest.importorskip("lime", reason="lime is not installed")
    return lambda name: importlib.import_module(f"{request.param}.{name}")


def test_the_names_of_the_package():
    """The five explainers can be imported from the package itself."""
    package = importlib.import_module("eblime.compat.lime")

    assert set(package.__all__) == {
        *("LimeImageExplainer", "LimeTabularExplainer", "LimeTextExplainer"),
        *("RecurrentTabularExplainer", "SubmodularPick"),
    }


def test_iris_with_continuous_and_discretised_features(load, tmp_path):
    """The first notebook: a forest, two features, both views, a page."""
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier

    lime_tabular = load("lime_tabular")
    iris = load_iris()
    forest = RandomForestClassifier(n_estimators=20, random_state=1).fit(iris.data, iris.target)
    for cut in (True, False):
        explainer = lime_tabular.LimeTabularExplainer(
            iris.data,
            feature_names=iris.feature_names,
            class_names=iris.target_names,
            discretize_continuous=cut,
            random_state=0,
        )
        exp = explainer.explain_instance(
            iris.data[8], forest.predict_proba, num_features=2, top_labels=1
        )
        feature_index = lambda x: iris.feature_names.index(x)  # noqa: E731
        print(feature_index("petal width (cm)"))
        label = exp.available_labels()[0]
        exp.save_to_file(str(tmp_path / "iris.html"))
        page = exp.as_html(show_table=True, show_all=False)

        assert len(exp.as_map()[label]) == 2
        assert "petal" in " ".join(name for name, _ in exp.as_list(label=label))
        assert (tmp_path / "iris.html").stat().st_size > 1000
        assert "petal" in page
        assert 0 <= exp.score <= 1


def test_categories_with_names_and_a_one_hot_pipeline(load):
    """The mushroom and adult notebooks: integers inside, names outside, an encoder in between."""
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    lime_tabular = load("lime_tabular")
    data = rows()
    encode = ColumnTransformer(
        [("cat", OneHotEncoder(), [4]), ("num", StandardScaler(), [0, 1, 2, 3])]
    )
    pipe = make_pipeline(encode, LogisticRegression()).fit(data, data[:, 4] + data[:, 0] > 1)
    predict_fn = lambda x: pipe.predict_proba(x).astype(float)  # noqa: E731
    explainer = lime_tabular.LimeTabularExplainer(
        data,
        class_names=["<=50K", ">50K"],
        feature_names=["age", "hours", "gain", "loss", "colour"],
        categorical_features=[4],
        categorical_names={4: ["red", "green", "blue"]},
        kernel_width=3,
        random_state=1,
    )
    np.random.seed(1)  # noqa: NPY002
    exp = explainer.explain_instance(data[0], predict_fn, num_features=5)
    names = [name for name, _ in exp.as_list()]

    assert any(re.fullmatch("colour=(red|green|blue)", name) for name in names)
    assert any(re.search("age (<=|>)|< age <=", name) for name in names)
    assert exp.class_names == ["<=50K", ">50K"]


def test_a_regression(load):
    """The housing notebook: `predict`, and no labels."""
    from sklearn.ensemble import RandomForestRegressor

    lime_tabular = load("lime_tabular")
    data = rows()
    forest = RandomForestRegressor(n_estimators=10, random_state=0).fit(data, 3 * data[:, 0])
    categorical = np.argwhere(np.array([len(set(data[:, x])) for x in range(5)]) <= 10).flatten()
    explainer = lime_tabular.LimeTabularExplainer(
        data,
        feature_names=list("abcde"),
        class_names=["price"],
        categorical_features=categorical,
        verbose=True,
        mode="regression",
        random_state=0,
    )
    exp = explainer.explain_instance(data[25], forest.predict, num_features=5)

    assert "a" in exp.as_list()[0][0]
    assert exp.local_exp[1][0][1] == -exp.local_exp[0][0][1]
    assert exp.min_value <= exp.predicted_value <= exp.max_value
    assert exp.intercept[0] == exp.intercept[1]
    with pytest.raises(NotImplementedError):
        exp.available_labels()


def test_two_kinds_of_news(load):
    """The text notebook: TF-IDF, a pipeline, words removed by hand."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline

    lime_text = load("lime_text")
    texts = [
        "God is good and kind",
        "Posting host is an atheist",
        "church and God",
        "no God, Keith",
    ]
    vectorizer = TfidfVectorizer(lowercase=False)
    model = MultinomialNB(alpha=0.01).fit(vectorizer.fit_transform(texts), [0, 1, 0, 1])
    c = make_pipeline(vectorizer, model)
    explainer = lime_text.LimeTextExplainer(class_names=["christian", "atheist"], random_state=0)
    exp = explainer.explain_instance(texts[1], c.predict_proba, num_features=6, labels=[0, 1])
    tmp = vectorizer.transform([texts[1]])
    tmp[0, vectorizer.vocabulary_["Posting"]] = 0

    assert model.predict_proba(tmp)[0, 1] < exp.predict_proba[1]
    assert {name for name, _ in exp.as_list(label=1)} <= set(texts[1].split())
    for (j, one), (k, other) in zip(
        sorted(exp.local_exp[0]), sorted(exp.local_exp[1]), strict=True
    ):
        assert j == k
        assert one == pytest.approx(-other, abs=1e-6)
    assert all("_" in name for name, _ in exp.as_list(label=1, positions=True))
    assert "Posting" in exp.as_html(text=False, labels=(1,))


def test_texts_by_position_and_by_character(load):
    """Word order matters to the model; masks in place of words; characters."""
    lime_text = load("lime_text")
    for settings in (
        {"bow": False, "mask_string": "[MASK]"},
        {"char_level": True},
        {"split_expression": lambda x: x.split(" ")},
    ):
        seen = []

        def model(texts, seen=seen):
            seen.extend(texts)
            return judge(texts)

        explainer = lime_text.LimeTextExplainer(random_state=0, **settings)
        exp = explainer.explain_instance(TEXT, model, num_features=3, num_samples=60)

        assert seen[0] == TEXT
        assert len(seen) == 60
        assert len(exp.as_list()) == 3
        assert any("[MASK]" in text for text in seen) == ("mask_string" in settings)


def test_a_photo_with_its_boundaries(load):
    """The image notebooks: five classes, marked boundaries, a heat map."""
    from skimage.segmentation import mark_boundaries

    lime_image = load("lime_image")
    explainer = lime_image.LimeImageExplainer(random_state=0)
    explanation = explainer.explain_instance(
        photo(np.float64), look, top_labels=3, hide_color=0, num_samples=60
    )
    temp, mask = explanation.get_image_and_mask(
        explanation.top_labels[0], positive_only=True, num_features=5, hide_rest=True
    )
    pros, both = explanation.get_image_and_mask(
        explanation.top_labels[0], positive_only=False, num_features=10, hide_rest=False
    )
    ind = explanation.top_labels[0]
    dict_heatmap = dict(explanation.local_exp[ind])
    heatmap = np.vectorize(dict_heatmap.get)(explanation.segments)

    assert mark_boundaries(temp / 2 + 0.5, mask).shape == (24, 32, 3)
    assert set(np.unique(both)) <= {-1, 0, 1}
    assert pros.shape == temp.shape
    assert heatmap.shape == (24, 32)
    assert heatmap.dtype == float


def test_digits_with_another_segmentation(load):
    """The MNIST notebook: grey digits in colour, quickshift with small superpixels."""
    lime_image = load("lime_image")
    segmenter = load("wrappers.scikit_image").SegmentationAlgorithm(
        "quickshift", kernel_size=1, max_dist=10, ratio=0.2
    )
    digit = np.zeros((16, 16))
    digit[4:12, 7:9] = 1
    explanation = lime_image.LimeImageExplainer(verbose=False, random_state=0).explain_instance(
        np.stack([digit] * 3, axis=-1),
        classifier_fn=lambda x: np.stack(
            [x[:, 4:12, 7:9].mean(axis=(1, 2, 3)), 1 - x[:, 4:12, 7:9].mean(axis=(1, 2, 3))], axis=1
        ),
        top_labels=2,
        hide_color=0,
        num_samples=80,
        segmentation_fn=segmenter,
    )
    image, mask = explanation.get_image_and_mask(0, positive_only=True, num_features=1)

    assert image.shape == (16, 16, 3)
    assert mask[8, 7] == 1


def test_a_kernel_and_a_regressor_of_ones_own(load):
    """A custom kernel, another distance, another linear model."""
    from sklearn.linear_model import Lasso

    lime_tabular = load("lime_tabular")
    data = rows()
    explainer = lime_tabular.LimeTabularExplainer(
        data,
        kernel=lambda d, kernel_width: np.exp(-d / kernel_width),
        feature_selection="lasso_path",
        mode="regression",
        random_state=2,
    )
    exp = explainer.explain_instance(
        data[3],
        lambda x: 2 * x[:, 1],
        num_features=3,
        distance_metric="manhattan",
        model_regressor=Lasso(alpha=0.01),
    )

    assert exp.local_exp[1][0][0] == 1
    assert explainer.base.kernel_fn(np.zeros(2)).tolist() == [1, 1]


@pytest.mark.parametrize("discretizer", ["quartile", "decile", "entropy"])
def test_discretizers_and_what_they_know(load, discretizer):
    """Names of bins, values and their frequencies, as people read them from the explainer."""
    lime_tabular = load("lime_tabular")
    data = rows()
    labels = (data[:, 0] > 0).astype(int)
    explainer = lime_tabular.LimeTabularExplainer(
        data,
        training_labels=labels,
        feature_names=list("abcde"),
        categorical_features=[4],
        discretizer=discretizer,
        random_state=0,
    )
    cut = explainer.discretizer
    bins = cut.discretize(data[:20])

    assert sorted(cut.names) == cut.to_discretize == [0, 1, 2, 3]
    assert cut.names[0][0].startswith("a <= ")
    assert all(len(cut.means[j]) == len(cut.names[j]) for j in range(4))
    assert explainer.feature_values[4] == [0, 1, 2]
    assert sum(explainer.feature_frequencies[0]) == pytest.approx(1)
    again = cut.discretize(cut.undiscretize(bins))
    assert np.array_equal(again[:, :4], bins[:, :4])


def test_submodular_pick_of_rows_and_texts(load):
    """The global view: a frame of weights, a plot of each pick."""
    import pandas as pd
    from matplotlib import pyplot as plt

    lime_tabular, lime_text = load("lime_tabular"), load("lime_text")
    submodular_pick = load("submodular_pick")
    data = rows(40)
    explainer = lime_tabular.LimeTabularExplainer(data, feature_names=list("abcde"), random_state=0)
    model = lambda x: judge(["good" if a > 0 else "bad" for a in x[:, 0]])  # noqa: E731
    sp_obj = submodular_pick.SubmodularPick(
        explainer, data, model, sample_size=8, num_features=3, num_exps_desired=3, num_samples=200
    )
    figures = [
        exp.as_pyplot_figure(label=exp.available_labels()[0]) for exp in sp_obj.sp_explanations
    ]
    frame = pd.DataFrame(
        [dict(this.as_list(this.available_labels()[0])) for this in sp_obj.sp_explanations]
    ).fillna(0)
    texts = ["good dog", "bad dog", "not bad", "a good end"]
    texts_pick = submodular_pick.SubmodularPick(
        lime_text.LimeTextExplainer(random_state=0),
        texts,
        judge,
        method="full",
        num_exps_desired=2,
        num_samples=60,
    )

    assert len(figures) == len(frame) == 3
    assert len(sp_obj.explanations) == 8
    assert [sp_obj.explanations[i] for i in sp_obj.V] == sp_obj.sp_explanations
    assert len(texts_pick.sp_explanations) == 2
    for figure in figures:
        plt.close(figure)


def test_sequences_of_a_recurrent_network(load):
    """The recurrent notebook: (samples, time steps, features) throughout."""
    lime_tabular = load("lime_tabular")
    rng = np.random.default_rng(0)
    data = rng.normal(size=(60, 4, 2))

    def model(x):
        assert x.shape[1:] == (4, 2)
        high = 1 / (1 + np.exp(-3 * x[:, -1, 0]))
        return np.stack([1 - high, high], axis=1)

    explainer = lime_tabular.RecurrentTabularExplainer(
        data,
        training_labels=None,
        feature_names=["CO2", "noise"],
        discretize_continuous=True,
        class_names=["Falling", "Rising"],
        discretizer="decile",
        random_state=0,
    )
    exp = explainer.explain_instance(data[50], model, num_features=3, labels=(1,))

    assert "CO2_t-0" in exp.as_list()[0][0]
    assert explainer.n_timesteps == 4


def test_sparse_rows(load):
    """Rows of a document-term matrix, as csr or csc."""
    from scipy import sparse

    lime_tabular = load("lime_tabular")
    data = sparse.random(50, 30, density=0.3, format="csr", random_state=0)

    def model(x):
        high = np.clip(np.asarray(x[:, :5].sum(axis=1)).ravel(), 0, 1)
        return np.stack([1 - high, high], axis=1)

    explainer = lime_tabular.LimeTabularExplainer(
        data, feature_names=[f"w{j}" for j in range(30)], random_state=0
    )
    for row in (data[0], data[0].tocsc()):
        exp = explainer.explain_instance(row, model, num_features=10, num_samples=100)
        assert len(exp.as_list()) == 10
    assert exp.domain_mapper.feature_indexes is not None


def test_explanations_of_many_rows_with_one_explainer(load):
    """A loop over rows and labels, as for a table of local weights; `partial` of the model."""
    lime_tabular = load("lime_tabular")
    data = rows()
    explainer = lime_tabular.LimeTabularExplainer(data, random_state=0)

    def scaled(x, scale):
        return judge(["good" if a * scale > 0 else "bad" for a in x[:, 0]])

    found = [
        explainer.explain_instance(
            row, partial(scaled, scale=2), labels=[0, 1], num_features=5, num_samples=100
        )
        for row in data[:3]
    ]

    assert all(set(exp.local_exp) == {0, 1} for exp in found)
    assert all(exp.available_labels() == [0, 1] for exp in found)
    assert len({tuple(exp.as_map()[1]) for exp in found}) == 3


def test_a_pick_of_a_regression_as_a_frame_of_weights(load, tmp_path):
    """Weights of all explanations in one frame, their mean size, and the pick on disk."""
    import pickle

    import pandas as pd

    data = rows(60)
    explainer = load("lime_tabular").LimeTabularExplainer(
        data, feature_names=list("abcde"), mode="regression", discretize_continuous=False
    )
    sp_obj = load("submodular_pick").SubmodularPick(
        explainer, data, lambda x: 3 * x[:, 0] - x[:, 1], sample_size=6, num_features=5
    )
    frame = pd.DataFrame([dict(this.as_list()) for this in sp_obj.explanations]).fillna(0)
    largest = np.abs(frame.sort_index(axis=1)).mean(axis=0).sort_values(ascending=False)
    with (tmp_path / "sp.obj").open("wb") as file:
        pickle.dump(sp_obj.sp_explanations, file)

    assert list(largest.index[:2]) == ["a", "b"]
    assert len(sp_obj.sp_explanations) == 5


def test_a_pick_by_class(load):
    """A row for each picked explanation of each class; classes without one are passed over."""
    import pandas as pd

    data = rows(60)
    names = ["low", "middle", "high"]
    model = lambda x: np.eye(3)[np.digitize(x[:, 0], [-0.4, 0.4])] * 0.9 + 1 / 30  # noqa: E731
    explainer = load("lime_tabular").LimeTabularExplainer(
        data, feature_names=list("abcde"), class_names=names, random_state=0
    )
    sp_obj = load("submodular_pick").SubmodularPick(
        explainer, data[:8], model, method="full", num_features=3, num_exps_desired=4
    )
    found = []
    for label in range(3):
        for i, exp in enumerate(sp_obj.sp_explanations):
            try:
                listed = exp.as_list(label=label)
            except KeyError:
                continue
            found.append({"class": names[label], "number": i, **dict(listed)})
    frame = pd.DataFrame(found)

    assert sorted(frame["number"]) == [0, 1, 2, 3]
    assert frame.shape[1] >= 5


def test_a_recurrent_regression_arranged_by_time_step(load):
    """All features at all time steps, put back into the shape of the row."""
    data = np.random.default_rng(0).normal(size=(60, 4, 3))
    explainer = load("lime_tabular").RecurrentTabularExplainer(
        data,
        mode="regression",
        training_labels=data[:, -1, 0],
        feature_names=["p", "q", "r"],
        discretizer="decile",
        random_state=0,
    )
    model = lambda x: 5 * x[:, -1, 1:2] + x[:, 0, :1]  # noqa: E731  as Keras, (n, 1)
    exp = explainer.explain_instance(data[3], model, num_features=12)
    scores = np.zeros((4, 3))
    for number, score in exp.as_map()[1]:
        scores[number % 4, number // 4] = score

    assert np.unravel_index(np.abs(scores).argmax(), scores.shape) == (3, 1)
    assert (scores != 0).all()


def test_pros_and_cons_of_a_photo_by_slic(load):
    """Labels painted over the photo, boundaries, only what speaks against; a fixed seed."""
    from skimage.color import label2rgb
    from skimage.segmentation import mark_boundaries

    segmenter = load("wrappers.scikit_image").SegmentationAlgorithm(
        "slic", n_segments=12, compactness=1, sigma=1, start_label=0
    )
    explanation = (
        load("lime_image")
        .LimeImageExplainer(verbose=False)
        .explain_instance(
            photo(),
            classifier_fn=look,
            top_labels=2,
            hide_color=0,
            num_samples=100,
            batch_size=32,
            random_seed=42,
            segmentation_fn=segmenter,
        )
    )
    label = explanation.top_labels[0]
    temp, mask = explanation.get_image_and_mask(
        label, positive_only=False, num_features=10, hide_rest=False, min_weight=0.001
    )
    _, against = explanation.get_image_and_mask(
        label, positive_only=False, negative_only=True, num_features=3, hide_rest=False
    )
    weights = dict(explanation.local_exp[label])

    assert label2rgb(3 - mask, temp, bg_label=0).shape == temp.shape
    assert mark_boundaries(temp / 255.0, mask).max() <= 1
    assert all(weights[j] < 0 for j in np.unique(explanation.segments[against == 1]))


def test_a_notebook_shows_tables_and_texts(load, monkeypatch):
    """`show_in_notebook` with the options that notebooks pass."""
    shown = []
    fake = types.ModuleType("IPython.core.display")
    fake.HTML, fake.display = str, shown.append
    for name in ("IPython", "IPython.core", "IPython.display", "IPython.core.display"):
        monkeypatch.setitem(sys.modules, name, fake)
    data = rows()
    table = load("lime_tabular").LimeTabularExplainer(data, feature_names=list("abcde"))
    row = table.explain_instance(data[0], lambda x: judge(["good"] * len(x)), num_samples=50)
    row.show_in_notebook(show_table=True, show_all=False)
    row.show_in_notebook(labels=[1], predict_proba=True, show_predicted_value=False)
    text = load("lime_text").LimeTextExplainer().explain_instance(TEXT, judge, num_samples=50)
    text.show_in_notebook(text=True)
    text.show_in_notebook(text=False, labels=(1,))

    assert len(shown) == 4
    assert all("html" in page or "div" in page for page in shown)
    assert "story" in shown[2]
