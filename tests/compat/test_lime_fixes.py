"""What lime gets wrong, and what results have besides lime's numbers."""

import gc
import importlib
import inspect
import pickle
import re
import subprocess
import sys
import types
import weakref
from functools import partial

import numpy as np
import pytest
from lime_cases import TEXT, classify, judge, look, photo, predict, rows, squares
from numpy.testing import assert_allclose, assert_array_equal

import eblime
from eblime.compat import lime
from eblime.compat.lime.lime_tabular import BaseDiscretizer

pytest.importorskip("sklearn")
DATA = rows()
DROPPED = {  # what lime has for itself: JavaScript of its page, and helpers
    *("visualize_instance_html", "convert_and_round", "generate_lars_path", "id_generator"),
}
MODULES = (
    *("discretize", "exceptions", "explanation", "lime_base", "lime_image", "lime_tabular"),
    *("lime_text", "submodular_pick", "utils.generic_utils", "wrappers.scikit_image"),
)
NASTY = "a</script><script>alert(1)</script>"


def explained_row(method="eblime", **settings):
    """A row explained for two classes."""
    explainer = lime.LimeTabularExplainer(DATA, random_state=0, method=method, **settings)
    return explainer.explain_instance(DATA[0], classify, top_labels=2, num_samples=300)


def explained_text(method="eblime", text=TEXT):
    """A text explained for its second class."""
    return lime.LimeTextExplainer(random_state=0, method=method).explain_instance(
        text, judge, num_samples=200
    )


def explained_image(method="eblime", segmentation=squares):
    """An image explained for its two most likely classes."""
    return lime.LimeImageExplainer(random_state=0, method=method).explain_instance(
        photo(), look, top_labels=2, num_samples=150, segmentation_fn=segmentation
    )


EXPLAINED = pytest.mark.parametrize("explained", [explained_row, explained_text, explained_image])


@EXPLAINED
def test_results_have_a_posterior_of_all_features(explained):
    """Lime's numbers are those of the posterior, which is that of `eblime.fit`."""
    exp = explained()
    label = exp.top_labels[0] if exp.top_labels else 1
    post, e = exp.posterior, exp.explanation
    again = eblime.fit(e.masks, e.scores, e.weights)

    assert isinstance(e, eblime.Explanation)
    assert exp.explanations[label].posterior is post
    assert_allclose(post.mean, again.mean)
    for j, weight in exp.local_exp[label]:
        assert weight == pytest.approx(post.mean[j])
    assert exp.intercept[label] == pytest.approx(post.intercept)
    assert exp.score == pytest.approx(post.r2)
    assert exp.local_pred[0] == pytest.approx(post.intercept + e.masks[0] @ post.mean)
    assert post.has_spread
    assert e.prediction == e.scores[0]


@pytest.mark.parametrize("explained", [explained_row, explained_text])
def test_lists_with_intervals(explained):
    """`intervals=True` adds both ends, of the level asked for."""
    exp = explained()
    label = exp.available_labels()[0]
    plain, wide = exp.as_list(label), exp.as_list(label, intervals=True)
    narrow = exp.as_list(label, intervals=True, prob=0.5)

    assert [row[:2] for row in wide] == plain
    ends = exp.explanations[label].posterior.interval(0.95)
    assert_allclose([row[2:] for row in wide], [ends[j] for j, _ in exp.local_exp[label]])
    assert all(a[2] < b[2] < b[3] < a[3] for a, b in zip(wide, narrow, strict=True))
    with pytest.raises(eblime.core.NoSpreadError):
        explained("lime").as_list(label, intervals=True)


@EXPLAINED
def test_explainers_and_explanations_can_be_pickled(explained):
    """A copy gives the same explanation as the original would."""
    exp = explained()

    copy = pickle.loads(pickle.dumps(exp))

    assert copy.local_exp == exp.local_exp
    assert_array_equal(copy.posterior.mean, exp.posterior.mean)


def test_a_pickled_explainer_draws_the_same():
    """Discretiser, kernel and random state survive, also with time steps."""
    explainer = lime.LimeTabularExplainer(DATA, random_state=0)
    series = lime.RecurrentTabularExplainer(DATA[:, :4].reshape(-1, 2, 2), random_state=0)
    for one, row, model in (
        (explainer, DATA[1], classify),
        (series, DATA[1, :4].reshape(2, 2), lambda x: classify(np.zeros((len(x), 5)))),
    ):
        copy = pickle.loads(pickle.dumps(one))
        found, wanted = (
            e.explain_instance(row, model, num_samples=50).local_exp for e in (copy, one)
        )
        assert found == wanted
    pickle.loads(pickle.dumps(lime.LimeTextExplainer()))
    pickle.loads(pickle.dumps(lime.LimeImageExplainer()))


@pytest.mark.parametrize("first", [0, 1, 5])
@pytest.mark.parametrize("method", ["lime", "eblime"])
def test_every_superpixel_is_hidden_in_some_images(first, method):
    """Labels that do not start at zero, as those of SLIC, give the same numbers."""
    seen = []

    def spy(batch):
        seen.append(np.asarray(batch))
        return look(batch)

    explainer = lime.LimeImageExplainer(random_state=0, method=method)
    exp = explainer.explain_instance(
        photo(),
        spy,
        labels=(0,),
        top_labels=None,
        hide_color=0,
        num_samples=60,
        segmentation_fn=lambda image: 3 * squares(image) + first,
    )
    images = np.concatenate(seen)

    shown = np.stack([images[:, squares(photo()) == j].any(axis=(1, 2)) for j in range(12)], axis=1)
    assert (~shown).any(axis=0).all()
    assert_array_equal(shown, exp.explanation.masks == 1)
    assert_array_equal(np.unique(exp.segments), sorted(j for j, _ in exp.local_exp[0]))
    assert exp.local_exp == explained_plain(method).local_exp


def explained_plain(method):
    """The same image with superpixels numbered from zero."""
    return lime.LimeImageExplainer(random_state=0, method=method).explain_instance(
        photo(),
        look,
        labels=(0,),
        top_labels=None,
        hide_color=0,
        num_samples=60,
        segmentation_fn=squares,
    )


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
def test_any_number_of_channels(channels):
    """Lime fails on other than three, with its own superpixels and with others."""
    image = photo(np.float64)[..., [0, 1, 2, 0, 1][:channels]]

    def model(batch):
        assert batch.shape[1:] == image.shape
        return batch[:, :8, :8].mean(axis=(1, 2, 3))[:, None]

    explainer = lime.LimeImageExplainer(random_state=0)
    cut = explainer.explain_instance(
        image, model, top_labels=1, hide_color=9, num_samples=80, segmentation_fn=squares
    )
    pytest.importorskip("skimage")
    own = explainer.explain_instance(image, model, top_labels=1, num_samples=80)

    assert cut.local_exp[0][0][0] == 0
    assert len(own.local_exp[0]) == own.segments.max() + 1 >= 2


def test_pages_are_small_and_safe(tmp_path):
    """Names, classes and texts are escaped; a page is a tenth of lime's 1.2 MB, or less."""
    names, classes = [NASTY, "b", "c", "d", "e"], [f"{NASTY}{k}" for k in range(3)]
    row = explained_row(feature_names=names, class_names=classes)
    text = explained_text(text=f"good {NASTY} dog & cat")
    row.save_to_file(tmp_path / "row.html", show_table=True, show_all=False)
    for page in (row.as_html(), text.as_html(text=True), (tmp_path / "row.html").read_text("utf8")):
        assert "<script>alert" not in page
        assert not re.search(r'<(script|link|img)[^>]+(src|href)="http', page)
        assert len(page) < 150_000
    assert "&amp;" in text.as_html()
    with pytest.raises(TypeError, match="`colour` is not an option"):
        row.as_html(colour=True)


def test_pages_show_what_is_asked_for():
    """Some labels; each section lists the most likely classes."""
    names = ["gull", "heron", "stork"]
    exp = explained_row(class_names=names)
    most = exp.top_labels[0]
    one = exp.as_html(labels=[most])

    assert exp.as_html().count("<section") == 2 * one.count("<section")
    assert all(name in exp.as_html() for name in names)
    with pytest.raises(KeyError, match="was not explained"):
        exp.as_html(labels=[exp.predict_proba.argmin()])


def test_fewer_names_than_classes_and_categories_are_enough():
    """One without a name is listed by its number."""
    exp = explained_row(class_names=["gull"], categorical_features=[4], categorical_names={4: "x"})

    assert exp.explanation.details()["value"][4] == "x12"[int(DATA[0, 4])]
    assert {name for name, _ in exp.explanation.provenance["top_classes"]} == {"gull", "1", "2"}


def test_labels_that_were_not_explained_are_named():
    """With the labels that were."""
    exp = explained_row()
    with pytest.raises(KeyError, match="Label 7 was not explained; explained labels: "):
        exp.as_list(label=7)


def test_notebooks_use_the_current_ipython(monkeypatch):
    """`display` and `HTML` come from IPython.display, which IPython 9 has."""
    shown = []
    fake = types.ModuleType("IPython.display")
    fake.HTML, fake.display = str, shown.append
    package = types.ModuleType("IPython")
    package.display, package.get_ipython = fake, lambda: None
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    explained_row().show_in_notebook(show_table=True)

    assert len(shown) == 2
    assert not any("<script" in part for part in shown)


@pytest.mark.parametrize("method", ["lime", "eblime"])
def test_figures_have_whiskers_where_there_are_intervals(method):
    """A pyplot figure with a bar per feature, the largest on top."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    exp = explained_row(method, class_names=["red", "green", "blue"])
    label = exp.top_labels[0]
    figure = exp.as_pyplot_figure(label=label)
    (axes,) = figure.axes

    assert figure.number in pyplot.get_fignums()
    names, weights = zip(*exp.as_list(label), strict=True)
    assert tuple(t.get_text() for t in axes.get_yticklabels())[::-1] == names
    assert_allclose([bar.get_width() for bar in axes.patches][::-1], weights)
    ends = [line for lines in axes.collections for line in lines.get_segments()]
    assert len(ends) == (len(axes.patches) if method == "eblime" else 0)
    assert ["red", "green", "blue"][label] in axes.get_title()
    pyplot.close(figure)


def test_figures_can_be_arranged_as_those_of_lime():
    """`tight_layout` and `subplots_adjust` after the plot do not warn, and no name is cut off."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    exp = explained_row(feature_names=[f"a column with a rather long name {k}" for k in range(5)])
    for arrange in (
        lambda figure: pyplot.tight_layout(),
        lambda figure: figure.subplots_adjust(left=0.5),
        lambda figure: figure.set_size_inches(5, 3),
        lambda figure: pyplot.title("Why?", size=20),
    ):
        figure = exp.as_pyplot_figure(label=exp.top_labels[0])
        arrange(figure)
        figure.canvas.draw()
        names = figure.axes[0].get_yticklabels()
        assert min(name.get_window_extent().x0 for name in names) >= 0
        pyplot.close(figure)


@pytest.mark.parametrize("explained", [explained_row, explained_image])
def test_labels_that_were_not_explained_are_refused(explained):
    """The message names the labels that were."""
    exp = explained()
    ask = exp.as_list if explained is explained_row else exp.get_image_and_mask
    known = ", ".join(str(label) for label in exp.local_exp)

    with pytest.raises(KeyError, match=f"Label 9 was not explained; explained labels: {known}"):
        ask(9)


def test_no_progress_bar_unless_asked_for(capfd):
    """Lime always draws one."""
    explained_image()
    assert capfd.readouterr().err == ""
    lime.LimeImageExplainer().explain_instance(
        photo(), look, num_samples=30, segmentation_fn=squares, progress_bar=True
    )

    assert "30/30" in capfd.readouterr().err


def test_results_can_be_saved_and_drawn(tmp_path):
    """The explanation works as any other of this library."""
    for exp in (explained_row(), explained_text(), explained_image(), explained_row("lime")):
        e = exp.explanation
        loaded = eblime.load(e.save(tmp_path / "e.eblime"))
        assert_allclose(loaded.posterior.mean, e.posterior.mean)
        assert "<html" in e.to_html()
        assert e.plot() is not None
        assert str(e)


def test_the_explanation_of_a_row_has_its_values():
    """Numbers as they are, and names of categories."""
    exp = explained_row(
        feature_names=list("abcde"), categorical_features=[4], categorical_names={4: "xyz"}
    )
    details = exp.explanation.details()

    assert details["column"] == list("abcde")
    assert_allclose([float(value) for value in details["value"][:4]], DATA[0, :4], rtol=1e-5)
    assert details["value"][4] == "xyz"[int(DATA[0, 4])]
    assert details["bin"][4] == f"e={details['value'][4]}"


def test_other_methods_work_too():
    """Any method of this library, by name or as an object."""
    settings = eblime.EBLIME(local=False)
    for method, name in (("bayeslime", "BayesLIME"), (settings, settings.name)):
        exp = explained_row(method)
        assert exp.posterior.method == name
        assert exp.as_list(exp.top_labels[0], intervals=True)


def test_categories_by_the_name_of_the_column():
    """Lime takes only numbers: it ignores a name, and cuts the categories into bins."""
    settings = {"feature_names": list("abcde"), "categorical_names": {4: "xyz"}}
    by_name = explained_row(categorical_features=["e"], **settings)
    by_number = explained_row(categorical_features=[4], **settings)

    assert by_name.local_exp == by_number.local_exp
    assert any(name.startswith("e=") for name, _ in by_name.as_list(by_name.top_labels[0]))


@pytest.mark.parametrize("how", ["none", "forward_selection", "lasso_path", "highest_weights"])
def test_the_selection_decides_what_is_listed(how):
    """The posterior has all features; as many are listed as lime would."""
    if how == "lasso_path":
        pytest.importorskip("sklearn")
    explainer = lime.LimeTabularExplainer(DATA, random_state=0, feature_selection=how)
    exp = explainer.explain_instance(DATA[0], classify, num_features=2, num_samples=200)

    assert exp.posterior.n_features == 5
    assert len(exp.as_list()) == (5 if how == "none" else 2)


def test_a_discretizer_of_the_user():
    """A subclass that only has `bins`."""

    class Halves(BaseDiscretizer):
        def bins(self, data, labels):
            return [np.array([np.median(data[:, j])]) for j in self.to_discretize]

    names = list("abcde")
    made = Halves(DATA, [4], names, random_state=0)
    exp = explained_row(feature_names=names, discretizer=made, categorical_features=[4])

    assert {re.sub(r"[-\d.]+", "#", n) for n, _ in exp.as_list(exp.top_labels[0])} <= {
        *(f"{n} {sign} #" for n in "abcd" for sign in ("<=", ">")),
        "e=#",
    }


@pytest.mark.parametrize("method", ["eblime", "lime"])
def test_bins_of_width_zero_give_their_border(method):
    """Lime gives 0, a value that the column never has; only `method="lime"` does the same."""
    data = np.column_stack([[1.0] * 60 + [2.0, 3, 4, 5] * 10, np.arange(100.0)])
    seen = []

    def spy(x):
        seen.append(x)
        return x[:, 0]

    explainer = lime.LimeTabularExplainer(data, mode="regression", random_state=0, method=method)
    explainer.explain_instance(data[99], spy, num_samples=200)

    assert (seen[0][:, 0] == 0).any() == (method == "lime")
    assert (seen[0][:, 0] == 1).any() == (method == "eblime")


def test_frames_and_series(tmp_path):
    """A data frame of numbers gives the names of its columns; rows may be series."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(DATA, columns=list("abcde"))
    exp = lime.LimeTabularExplainer(frame, random_state=0).explain_instance(
        frame.iloc[0], classify, num_samples=200
    )
    plain = lime.LimeTabularExplainer(DATA, feature_names=list("abcde"), random_state=0)

    assert exp.local_exp == plain.explain_instance(DATA[0], classify, num_samples=200).local_exp
    assert any("a" in name for name, _ in exp.as_list())
    pick = lime.SubmodularPick(
        plain, frame, classify, sample_size=3, num_exps_desired=2, num_samples=50
    )
    assert len(pick.sp_explanations) == 2


def refused(model):
    """A model that must not be called."""
    raise AssertionError("the model was called")


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: lime.LimeTabularExplainer(DATA, mode="ranking"), "`mode` must be"),
        (lambda: lime.LimeTabularExplainer(DATA, discretizer="thirds"), "`discretizer` must be"),
        (lambda: lime.LimeTabularExplainer(DATA, discretizer="entropy"), "`labels` must not be"),
        (lambda: lime.LimeTabularExplainer(DATA, feature_selection="best"), "`feature_selection`"),
        (lambda: lime.LimeTabularExplainer(DATA, feature_names=["a"]), "`feature_names` must have"),
        (lambda: lime.LimeTabularExplainer(DATA * np.nan), "`training_data` must be finite"),
        (
            lambda: lime.LimeTabularExplainer([["x", "y"]]),
            "`training_data` must be an array",
        ),
        (lambda: lime.LimeTabularExplainer(DATA, method="magic"), "`method` must be one of"),
        (lambda: lime.LimeTabularExplainer(DATA, random_state="x"), "cannot be used to seed"),
        (
            lambda: lime.LimeTabularExplainer(DATA, training_data_stats={"means": {}}),
            "must have mins",
        ),
        (lambda: lime.LimeTabularExplainer(DATA).explain_instance(DATA, refused), "one row of 5"),
        (
            lambda: lime.LimeTabularExplainer(DATA).explain_instance(
                DATA[0], refused, distance_metric="far"
            ),
            "'metric' parameter",
        ),
        (
            lambda: lime.LimeImageExplainer().explain_instance(
                np.eye(8), refused, distance_metric="far"
            ),
            "'metric' parameter",
        ),
        (
            lambda: lime.LimeTabularExplainer(DATA).explain_instance(
                DATA[0], refused, num_samples=0
            ),
            "`num_samples` must be",
        ),
        (
            lambda: lime.LimeTabularExplainer(DATA, categorical_features=["colour"]),
            "`categorical_features` must be numbers of columns, 0 .. 4, or names",
        ),
        (
            lambda: lime.LimeTabularExplainer(DATA, categorical_features=[5]),
            "`categorical_features` must be numbers of columns",
        ),
        (lambda: lime.LimeTextExplainer().explain_instance("", refused), "must not be empty"),
        (lambda: lime.LimeTextExplainer().explain_instance(b"x", refused), "must be a string"),
        (
            lambda: lime.LimeImageExplainer().explain_instance(np.zeros(3), refused),
            "`image` must be",
        ),
        (
            lambda: lime.LimeImageExplainer().explain_instance(
                photo(), refused, segmentation_fn=lambda image: image
            ),
            "labels must have the image's",
        ),
        (lambda: lime.SubmodularPick(None, DATA, refused, method="some"), "`method` must be one"),
    ],
)
def test_bad_input_is_refused_before_the_model_is_called(ask, message):
    """The message says what must hold."""
    with pytest.raises((TypeError, ValueError), match=message):
        ask()


def test_bad_answers_are_refused():
    """Classes without probabilities, wrong shapes, labels that do not exist, NaN."""
    explainer = lime.LimeTabularExplainer(DATA)
    text = lime.LimeTextExplainer()
    with pytest.raises(NotImplementedError, match="predict_proba"):
        explainer.explain_instance(DATA[0], predict)
    with pytest.raises(ValueError, match="`labels` must be columns"):
        explainer.explain_instance(DATA[0], classify, labels=(3,))
    with pytest.raises(ValueError, match="`labels` must be columns"):
        explainer.explain_instance(DATA[0], classify, labels=(-4,))
    with pytest.raises(ValueError, match="`labels` must have at least one"):
        explainer.explain_instance(DATA[0], refused, labels=())
    with pytest.raises(ValueError, match="finite"):
        text.explain_instance(TEXT, lambda t: judge(t) * np.nan)
    with pytest.raises(ValueError, match="must return scores of shape"):
        text.explain_instance(TEXT, lambda t: judge(t)[:, 0])
    with pytest.warns(UserWarning, match="do not sum to 1"):
        explainer.explain_instance(DATA[0], lambda x: 2 * classify(x), num_samples=20)


@pytest.mark.parametrize(
    "name",
    [
        "lime_tabular.LimeTabularExplainer",
        "lime_tabular.RecurrentTabularExplainer",
        "lime_text.LimeTextExplainer",
        "lime_text.IndexedString",
        "lime_text.IndexedCharacters",
        "lime_image.LimeImageExplainer",
        "lime_image.ImageExplanation",
        "lime_base.LimeBase",
        "explanation.Explanation",
        "submodular_pick.SubmodularPick",
        "lime_tabular.TableDomainMapper",
        "lime_text.TextDomainMapper",
        "discretize.BaseDiscretizer",
        "discretize.QuartileDiscretizer",
        "discretize.DecileDiscretizer",
        "discretize.EntropyDiscretizer",
        "discretize.StatsDiscretizer",
        "wrappers.scikit_image.SegmentationAlgorithm",
    ],
)
def test_signatures_are_those_of_lime(name):
    """Every parameter of lime's, in its order and with its default, in every public method."""
    module, _, kind = name.rpartition(".")
    pytest.importorskip("lime")
    theirs = getattr(pytest.importorskip(f"lime.{module}"), kind)
    ours = getattr(__import__(f"eblime.compat.lime.{module}", fromlist=[kind]), kind)
    public = [
        method
        for method, value in inspect.getmembers(theirs, callable)
        if method == "__init__" or not method.startswith("_")
    ]

    for method in set(public) - DROPPED:
        wanted = inspect.signature(getattr(theirs, method)).parameters
        found = inspect.signature(getattr(ours, method)).parameters
        positional = [p for p in found.values() if p.kind is not p.KEYWORD_ONLY]
        for mine, other in zip(positional, wanted.values(), strict=False):
            assert mine.name == other.name, method
            assert mine.default == other.default, (method, mine.name)
        assert set(wanted) <= set(found), method


@pytest.mark.parametrize("module", MODULES)
def test_every_name_of_lime_exists(module):
    """Classes, functions and their public members, apart from a few helpers."""
    pytest.importorskip("lime")
    theirs = pytest.importorskip(f"lime.{module}")
    ours = importlib.import_module(f"eblime.compat.lime.{module}")
    defined = {
        name: thing
        for name, thing in vars(theirs).items()
        if getattr(thing, "__module__", None) == theirs.__name__ and not name.startswith("_")
    }

    assert defined
    assert set(defined) - DROPPED <= set(dir(ours))
    for name in set(defined) - DROPPED:
        members = {member for member in dir(defined[name]) if not member.startswith("_")}
        assert members - DROPPED <= set(dir(getattr(ours, name))), name


def test_names_that_modules_of_lime_import_are_there_too():
    """Programs take discretisers from `lime_tabular`."""
    known = {"Base", "Decile", "Entropy", "Quartile", "Stats"}

    assert {f"{name}Discretizer" for name in known} <= set(dir(lime.lime_tabular))


@pytest.mark.filterwarnings("ignore::UserWarning")  # of lime's progress bar
def test_objects_have_every_attribute_of_those_of_lime(capfd):
    """Explainers, results, and what they are made of."""
    theirs = pytest.importorskip("lime")
    for name in ("lime_tabular", "lime_text", "lime_image", "submodular_pick"):
        pytest.importorskip(f"lime.{name}")
    pairs = zip(lime_objects(theirs), lime_objects(lime), strict=True)

    for other, mine in pairs:
        public = {name for name in vars(other) if not name.startswith("_")}
        assert {name for name in public if not hasattr(mine, name)} == set(), type(mine).__name__
        assert type(mine).__name__ == type(other).__name__


def lime_objects(module):
    """An object of each kind that users see, made with either library."""
    tables, texts, images = module.lime_tabular, module.lime_text, module.lime_image
    row = tables.LimeTabularExplainer(DATA, random_state=0)
    amount = tables.LimeTabularExplainer(DATA, mode="regression", random_state=0)
    series = tables.RecurrentTabularExplainer(DATA[:, :4].reshape(-1, 2, 2), feature_names="pq")
    text, image = texts.LimeTextExplainer(random_state=0), images.LimeImageExplainer()
    of_row = row.explain_instance(DATA[0], classify, num_samples=50)
    of_amount = amount.explain_instance(DATA[0], predict, num_samples=50)
    of_text = text.explain_instance(TEXT, judge, num_samples=50)
    of_image = image.explain_instance(photo(), look, num_samples=50, segmentation_fn=squares)
    pick = module.submodular_pick.SubmodularPick
    picked = pick(row, DATA[:4], classify, method="full", num_exps_desired=2, num_samples=50)
    words = of_text.domain_mapper.indexed_string
    parts = [row.discretizer, row.base, of_row.domain_mapper, of_text.domain_mapper, words]
    return [row, amount, series, text, image, of_row, of_amount, of_text, of_image, picked, *parts]


@pytest.mark.parametrize(
    "explained",
    [explained_row, partial(explained_row, discretize_continuous=False), explained_text],
)
@pytest.mark.parametrize("method", ["eblime", "lime"])
def test_shap_gets_what_the_linear_model_predicts(explained, method):
    """`explanation.to_shap()`: the base value and all values add up to `local_pred`."""
    pytest.importorskip("shap")
    exp = explained(method)
    found = exp.explanation.to_shap()

    assert found.base_values + found.values.sum() == pytest.approx(exp.local_pred[0])
    assert len(found.data) == len(found.values) == exp.posterior.n_features


def test_the_package_is_imported_when_first_used():
    """`import eblime` is enough, and does not import it."""
    code = (
        "import sys, eblime; assert 'eblime.compat' not in sys.modules; "
        "print(eblime.compat.lime.LimeTextExplainer.__name__, 'sklearn' in sys.modules)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    assert printed.split() == ["LimeTextExplainer", "False"]


def test_labels_of_numpy_are_whole_numbers():
    """As keys of results they can be printed and stored, each once."""
    exp = lime.LimeTabularExplainer(DATA).explain_instance(
        DATA[0], classify, labels=np.array([2, 0, 2]), num_samples=50
    )

    assert exp.available_labels() == [2, 0]
    assert {type(label) for label in exp.local_exp} == {int}


@pytest.mark.parametrize(("explained", "noisy"), [(explained_row, True), (explained_text, False)])
def test_answers_about_rows_are_noisy(explained, noisy):
    """A mask does not determine a perturbed row, as in `TabularExplainer`; it determines a text."""
    assert explained().explanation.answers.noisy == noisy


def test_results_do_not_keep_the_model():
    """Nothing but arrays, settings and the input is kept."""

    class Model:
        def __call__(self, x):
            return classify(x)

    model = Model()
    exp = lime.LimeTabularExplainer(DATA).explain_instance(DATA[0], model, num_samples=50)
    alive = weakref.ref(model)
    del model
    gc.collect()

    assert alive() is None
    assert exp.posterior.n_features == 5
