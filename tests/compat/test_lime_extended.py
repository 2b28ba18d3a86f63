"""Programs that extend lime by its public parts run with either library.

Each runs with the installed lime, which shows that it works there, and with our replacement.
"""

import importlib
import sys
import types

import numpy as np
import pytest
from lime_cases import TEXT, classify, judge, photo, predict, rows, squares
from numpy.testing import assert_array_equal

pytest.importorskip("sklearn")
DATA = rows()
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning")  # of lime


@pytest.fixture(params=["lime", "eblime.compat.lime"])
def load(request):
    """Imports a module of either library."""
    if request.param == "lime":
        pytest.importorskip("lime", reason="lime is not installed")
    return lambda name: importlib.import_module(f"{request.param}.{name}")


def test_a_subclass_asks_about_images_in_its_own_way(load, capfd):
    """`data_labels` of a subclass that gives the model one channel."""

    class Grey(load("lime_image").LimeImageExplainer):
        def data_labels(
            self, image, fudged_image, segments, classifier_fn, num_samples, batch_size=10
        ):
            p = len(np.unique(segments))
            data = self.random_state.randint(0, 2, num_samples * p).reshape(num_samples, p)
            data[0] = 1
            shown = data[:, segments] == 1
            grey, hidden = image.mean(axis=2), fudged_image.mean(axis=2)
            return data, classifier_fn(np.where(shown, grey, hidden))

    def model(batch):
        assert batch.shape[1:] == (24, 32)
        bright = batch[:, :8, :8].mean(axis=(1, 2)) / 255
        return np.stack([1 - bright, bright], axis=1)

    exp = Grey(random_state=0).explain_instance(
        photo(), model, top_labels=1, hide_color=0, num_samples=200, segmentation_fn=squares
    )

    assert max(exp.local_exp[exp.top_labels[0]], key=lambda pair: abs(pair[1]))[0] == 0


@pytest.mark.parametrize("how", ["subclass", "attribute", "other class"])
def test_a_linear_model_of_the_user(load, how):
    """A `base` with another `explain_instance_with_data` is asked for every label."""
    base = load("lime_base").LimeBase
    calls = []

    def answer(data, labels, distances, label, num_features, feature_selection, model_regressor):
        calls.append((data.shape, labels.shape, distances.shape, label, num_features))
        return 0.5, [(2, 1.5), (0, -0.25)], 0.9, np.array([1.75])

    class Mine(base):
        def explain_instance_with_data(self, *args, **kwargs):
            return answer(*args, **kwargs)

    explainer = load("lime_tabular").LimeTabularExplainer(DATA, feature_names=list("abcde"))
    if how == "subclass":
        explainer.base = Mine(explainer.base.kernel_fn, False, explainer.random_state)
    elif how == "attribute":
        explainer.base.explain_instance_with_data = answer
    else:
        explainer.base = types.SimpleNamespace(explain_instance_with_data=answer)
    exp = explainer.explain_instance(DATA[0], classify, labels=[0, 2], num_samples=30)

    assert calls == [((30, 5), (30, 3), (30,), label, 10) for label in (0, 2)]
    assert [weight for _, weight in exp.as_list(2)] == [1.5, -0.25]
    assert ["c" in name for name, _ in exp.as_list(0)] == [True, False]
    assert (exp.intercept, exp.score, exp.local_pred[0]) == ({0: 0.5, 2: 0.5}, 0.9, 1.75)
    assert "html" in exp.as_html()


def test_weights_of_a_users_linear_model_have_plots_but_no_intervals():
    """The explanation has the weights of the user's model."""
    from eblime.compat.lime.lime_tabular import LimeTabularExplainer
    from eblime.core import NoSpreadError

    explainer = LimeTabularExplainer(DATA)
    explainer.base = types.SimpleNamespace(
        explain_instance_with_data=lambda *_, **__: (0.5, [(2, 1.5)], 0.9, np.array([2.0]))
    )
    exp = explainer.explain_instance(DATA[0], classify, num_samples=30)

    assert_array_equal(exp.posterior.mean, [0, 0, 1.5, 0, 0])
    assert exp.posterior.intercept == 0.5
    assert exp.explanation.plot() is not None
    with pytest.raises(NoSpreadError):
        exp.as_list(intervals=True)


def own_result(load, mode="classification"):
    """An explanation that the program puts together, as explainers of other kinds of data do."""
    parts = load("explanation")

    class Slices(parts.DomainMapper):
        def map_exp_ids(self, exp, **kwargs):
            return [(f"slice <{j}>", weight) for j, weight in exp]

        def visualize_instance_html(self, *args, **kwargs):  # lime asks for it
            return ""

    exp = parts.Explanation(Slices(), mode=mode, class_names=["gull", "heron"])
    masks = np.random.default_rng(0).integers(0, 2, (80, 6))
    masks[0] = 1
    scores = np.column_stack([1 - 0.1 * masks[:, 3], 0.1 * masks[:, 3]])
    base = load("lime_base").LimeBase(lambda d: np.exp(-(d**2)))
    exp.predict_proba, exp.predicted_value = scores[0], 1.0
    for label in (0, 1):
        (exp.intercept[label], exp.local_exp[label], exp.score, exp.local_pred) = (
            base.explain_instance_with_data(masks, scores, np.zeros(80), label, 2)
        )
    return exp


@pytest.mark.parametrize("mode", ["classification", "regression"])
def test_a_result_of_the_program_has_lists_and_figures(load, mode):
    """Names come from the program's `DomainMapper`."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    exp = own_result(load, mode)
    figure = exp.as_pyplot_figure(label=1)

    assert exp.as_list(label=1)[0] == ("slice <3>", pytest.approx(0.1, abs=0.02))
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()][-1] == "slice <3>"
    pyplot.close(figure)


def test_a_result_of_the_program_has_no_posterior_and_no_page():
    """A page shows what a fit found."""
    exp = own_result(lambda name: importlib.import_module(f"eblime.compat.lime.{name}"))
    with pytest.raises(ValueError, match="not those of a fit: use `as_list`"):
        exp.as_html(labels=[1])
    with pytest.raises(KeyError, match="Label 7 was not explained; explained labels: 0, 1"):
        exp.as_html(labels=[7])
    with pytest.raises(ValueError, match="not those of a fit: no intervals"):
        exp.as_list(1, intervals=True)
    with pytest.raises(KeyError, match="There is no posterior"):
        _ = exp.posterior


def test_weights_that_the_program_changed_are_those_of_the_figure():
    """It does not show the posterior of the weights before, and a page is refused."""
    pytest.importorskip("IPython")
    from eblime.compat.lime.lime_text import LimeTextExplainer

    pyplot = pytest.importorskip("matplotlib.pyplot")
    exp = LimeTextExplainer(random_state=0).explain_instance(TEXT, judge, num_samples=100)
    exp.local_exp = {1: [[0, 0.9876], [2, -0.0456]]}
    figure = exp.as_pyplot_figure()

    with pytest.raises(ValueError, match="not those of a fit: use `as_list`"):
        exp.show_in_notebook()
    assert [bar.get_width() for bar in figure.axes[0].patches] == [-0.0456, 0.9876]
    assert not figure.axes[0].collections
    with pytest.raises(ValueError, match="not those of a fit: no intervals"):
        exp.as_list(intervals=True)
    pyplot.close(figure)


def test_changed_weights_of_a_model_with_tiny_scores():
    """They are compared with the posterior in proportion to its size."""
    from eblime.compat.lime.lime_tabular import LimeTabularExplainer

    explainer = LimeTabularExplainer(DATA, mode="regression", random_state=0)
    exp = explainer.explain_instance(DATA[0], lambda x: 1e-9 * predict(x), num_samples=100)
    assert len(exp.as_list(intervals=True)[0]) == 4
    exp.local_exp[1] = [(j, -weight) for j, weight in exp.local_exp[1]]

    with pytest.raises(ValueError, match="not those of a fit: no intervals"):
        exp.as_list(intervals=True)


def test_a_name_of_the_target_among_the_features(load):
    """`feature_names` of the whole frame, with the target last; lime uses the first ones."""
    explainer = load("lime_tabular").LimeTabularExplainer(
        DATA, feature_names=["a", "b", "c", "d", "e", "price"], random_state=0
    )
    exp = explainer.explain_instance(DATA[0], classify, num_samples=50)

    assert not any("price" in name for name, _ in exp.as_list())


@pytest.mark.filterwarnings("default::UserWarning")
def test_more_names_than_columns_are_mentioned():
    """The names may be in another order than the columns."""
    from eblime.compat.lime import LimeTabularExplainer

    with pytest.warns(UserWarning, match="must have 5 entries; got 6. The first 5 are used"):
        LimeTabularExplainer(DATA, feature_names=list("abcdef"))


def test_the_figure_of_a_class_without_a_name():
    """As in lists and pages, its number is shown."""
    from eblime.compat.lime import LimeTabularExplainer

    pyplot = pytest.importorskip("matplotlib.pyplot")
    explainer = LimeTabularExplainer(DATA, class_names=["gull"], random_state=0)
    figure = explainer.explain_instance(DATA[0], classify, num_samples=50).as_pyplot_figure()

    assert figure.axes[0].get_title().endswith("class 1")
    pyplot.close(figure)


@pytest.mark.parametrize(
    ("module", "name", "data"),
    [
        ("lime_image", "LimeImageExplainer", ()),
        ("lime_text", "LimeTextExplainer", ()),
        ("lime_tabular", "LimeTabularExplainer", (np.eye(3),)),
    ],
)
def test_without_scikit_learn_the_message_names_the_extra(monkeypatch, module, name, data):
    """When the explainer is created."""
    kind = getattr(importlib.import_module(f"eblime.compat.lime.{module}"), name)
    for part in ("", ".utils", ".linear_model", ".preprocessing"):
        monkeypatch.setitem(sys.modules, f"sklearn{part}", None)
    with pytest.raises(ImportError, match=r"pip install 'eblime\[sklearn\]'"):
        kind(*data)
