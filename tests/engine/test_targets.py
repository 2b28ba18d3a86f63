"""Which output is explained: by column, by label, or the highest."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import eblime
from eblime.family import averaged

ROWS = np.random.default_rng(0).random((80, 3))


def classifier(*classes):
    """A fitted classifier with these classes; the first column decides."""
    which = np.digitize(ROWS[:, 0], np.linspace(0, 1, len(classes) + 1)[1:-1])
    return LogisticRegression().fit(ROWS, np.array(classes)[which])


def explain(model, target=None, **settings):
    """A quick explanation of a row."""
    return eblime.TabularExplainer(model, ROWS, n_masks=60, **settings).explain(
        ROWS[0], target=target
    )


class Counted:
    """A model that counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, rows):
        """Three scores."""
        self.calls += 1
        return rows


@pytest.mark.parametrize("classes", [(1, 2), (1.0, 2.0), ("1", "2")])
def test_a_number_that_is_another_outputs_label_is_refused(classes):
    """Column 1 is class 2: the error says so, and the label as a string is taken."""
    model = classifier(*classes)
    with pytest.raises(ValueError, match=r"`target` 1 is ambiguous: .*column 0. Give"):
        explain(model, 1)

    assert explain(model, str(classes[0])).target == 0
    assert explain(model, 0).target == 0  # no class is called 0
    assert explain(classifier(0, 1), 1).label == "1"  # column and label agree


def test_a_number_beyond_the_columns_may_be_a_label():
    """`target=2` and `target=-1` are labels here, not columns; the error gives the string."""
    with pytest.raises(ValueError, match=r"label '2' is in column 1\. .* as a string, '2'"):
        explain(classifier(1, 2), 2)
    with pytest.raises(ValueError, match=r"label '-1' is in column 0\. .* as a string, '-1'"):
        explain(classifier(-1, 1), -1)

    assert explain(classifier(-1, 1), 1).label == "1"


def test_labels_that_are_not_the_columns_numbers_do_not_matter():
    """Names, and numbers that no column has."""
    assert explain(classifier("a", "b"), 1).label == "b"
    assert explain(classifier(10, 20), 1).label == "20"
    assert explain(Counted(), 1, labels={0: "1st", 2: "3rd"}).label == "output 1"


def test_ambiguity_is_refused_before_the_model_is_called():
    """Labels are known beforehand."""
    model = Counted()
    with pytest.raises(ValueError, match="ambiguous"):
        explain(model, 1, labels=["1", "2", "3"])
    with pytest.raises(ValueError, match="among `labels`"):
        explain(model, "4th", labels=["1st", "2nd", "3rd"])

    assert model.calls == 0


@pytest.mark.parametrize("targets", [0, -1, [], [1, 1], [1, "2nd"]])
def test_targets_that_no_model_can_have_are_refused_before_it_is_called(targets):
    """Too few, none, or the same output twice."""
    model = Counted()
    explainer = eblime.TabularExplainer(model, ROWS, labels=["1st", "2nd", "3rd"])
    with pytest.raises(ValueError, match="`targets` must"):
        explainer.explain_targets(ROWS[0], targets)

    assert model.calls == 0


def test_unknown_labels_are_answered_with_the_labels():
    """The first ten, and how many there are."""
    with pytest.raises(ValueError, match=r"among `labels`, 'a', 'b', 'c'; got 'd'"):
        explain(Counted(), "d", labels=["a", "b", "c"])
    many = [f"class {k}" for k in range(30)]
    with pytest.raises(ValueError, match=r"'class 9', \.\.\. \(30 in all\); got 'dog'"):
        explain(Counted(), "dog", labels=many)
    with pytest.raises(ValueError, match=r"'class 9'; got 'dog'"):
        explain(Counted(), "dog", labels=many[:10])
    with pytest.raises(ValueError, match=r"column number if the outputs have no `labels`"):
        explain(Counted(), "dog")


def test_a_string_of_digits_is_a_label_first_and_a_column_second():
    """As on the command line, where everything is a string."""
    assert explain(classifier(1, 2), "1").target == 0
    assert explain(classifier("a", "b"), "1").target == 1
    assert explain(Counted(), "2").target == 2
    with pytest.raises(ValueError, match=r"`target` must be < 3"):
        explain(Counted(), "3")


@pytest.mark.parametrize(
    "regressor",
    [
        LinearRegression(),
        RandomForestRegressor(5),
        make_pipeline(StandardScaler(), LinearRegression()),
    ],
)
def test_a_regressor_with_several_outputs_asks_for_a_target(regressor):
    """Its outputs cannot be ranked: litres are not more than metres."""
    model = regressor.fit(ROWS, ROWS[:, :2])
    with pytest.raises(ValueError, match=r"`target` must be given .*2: 'output 0', 'output 1'"):
        explain(model)
    with pytest.raises(ValueError, match=r"'litres', 'metres'"):
        explain(model, labels=["litres", "metres"])

    assert explain(model, 1).target == 1
    assert "top_classes" not in explain(model, 1).provenance
    every = eblime.TabularExplainer(model, ROWS, n_masks=60).explain_targets(ROWS[0], 3)
    assert sorted(every) == [0, 1]


@pytest.mark.parametrize(
    "classifier",
    [MultiOutputClassifier(LogisticRegression()), RandomForestClassifier(5)],
)
def test_a_classifier_of_several_questions_asks_for_a_target(classifier):
    """The highest probability of all is the answer to one question: the others were not said."""
    model = classifier.fit(ROWS, ROWS[:, :2] > 0.5)
    with pytest.raises(ValueError, match=r"`target` must be given .*'output 1: True'"):
        explain(model)

    assert explain(model, "output 1: True").target == 3
    assert "top_classes" not in explain(model, 3).provenance


def test_a_regressor_with_one_output_needs_no_target():
    """There is nothing to choose."""
    assert explain(LinearRegression().fit(ROWS, ROWS[:, 0])).label == "output"


def test_the_highest_outputs_are_kept():
    """The five highest of the input itself, with their labels; none for a single output."""
    model = classifier("a", "b", "c", "d", "e", "f")
    e = explain(model, "c")
    scores = model.predict_proba(ROWS[:1])[0]
    order = np.argsort(-scores)[:5]

    assert [label for label, _ in e.provenance["top_classes"]] == list(model.classes_[order])
    assert [score for _, score in e.provenance["top_classes"]] == pytest.approx(scores[order])
    assert "top_classes" not in explain(lambda rows: rows[:, 0]).provenance


def test_image_explainers_know_the_classes_of_a_classifier():
    """From `classes_`, like the other explainers; labels of the user's own come first."""
    rows = np.random.default_rng(0).random((30, 16))
    model = LogisticRegression().fit(rows, np.where(rows[:, 0] > 0.5, "bright", "dark"))
    image = np.ones((4, 4))
    settings = {"segmentation": ("grid", {"rows": 2, "columns": 2}), "hide": 0.0}
    known = eblime.ImageExplainer(model, **settings)
    own = eblime.ImageExplainer(model, labels=["light", "night"], **settings)

    assert known.explain(image, target="dark").target == 1
    assert own.explain(image, target="night").target == 1


def test_hugging_face_networks_name_their_classes():
    """`config.id2label`, of the network itself or inside a `TorchModel`."""
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 2))
    net.config = SimpleNamespace(id2label={"0": "cat", "1": "dog"})
    settings = {"segmentation": ("grid", {"rows": 2, "columns": 2}), "hide": 0.0}
    for model in (net, eblime.TorchModel(net)):
        e = eblime.ImageExplainer(model, **settings).explain(np.ones((4, 4)), target="dog")

        assert (e.target, e.label) == (1, "dog")


@pytest.mark.parametrize("row", [0, 1, 3])
def test_classes_named_by_other_numbers_are_compared(row):
    """The second design explains the output of the first, whatever number it has."""
    model = classifier(1, 2, 3)
    methods = ["eblime", ("lime", "bernoulli")]
    found = eblime.compare(model, ROWS[row], methods, background=ROWS, n_masks=50)
    targets = {found[name].target for name in found.methods}

    assert targets == {int(model.predict_proba(ROWS[row : row + 1]).argmax())}


def test_explanations_of_classes_named_by_other_numbers_are_averaged():
    """Every run explains the output of the first."""
    explainer = eblime.TabularExplainer(classifier(1, 2, 3), ROWS, n_masks=30)
    for row in ROWS[:4]:
        assert averaged(explainer, row, runs=2, widths=[1.0]).importances.shape == (1, 1, 2, 3)


@pytest.mark.parametrize(("classes", "target"), [((False, True), True), ((1.5, 2.5), 2.5)])
def test_classes_that_are_booleans_or_fractions_are_found_by_value(classes, target):
    """As well as by their label; a fraction without a label is refused."""
    model = SimpleNamespace(
        classes_=np.array(classes), predict_proba=lambda rows: np.c_[1 - rows[:, 0], rows[:, 0]]
    )

    assert explain(model, target).target == 1
    assert explain(model, str(target)).target == 1
    with pytest.raises(TypeError, match="`target` must be a whole number, a label or None"):
        explain(model, 0.25)


def test_steps_of_a_classifier_that_is_not_a_pipeline():
    """An attribute of this name may be anything, such as a number of iterations."""
    model = SimpleNamespace(
        classes_=["no", "yes"], steps=100, predict_proba=lambda rows: np.c_[rows[:, 0], rows[:, 1]]
    )

    assert explain(model, "yes").target == 1


def test_each_classifier_of_a_chain_has_one_output():
    """The probability of its second class, although `classes_` lists two for each."""
    both = np.c_[ROWS[:, 0] > 0.5, ROWS[:, 1] > 0.5].astype(int)
    chain = make_pipeline(StandardScaler(), ClassifierChain(LogisticRegression())).fit(ROWS, both)
    e = explain(chain, "output 1: 1")

    assert e.target == 1
    assert e.prediction == pytest.approx(chain.predict_proba(ROWS[:1])[0, 1])


def test_several_classifiers_without_probabilities():
    """Each class of each output scores 1 if it is predicted."""
    both = np.c_[ROWS[:, 0] > 0.5, ROWS[:, 1] > 0.5].astype(int) + 3
    model = MultiOutputClassifier(LinearSVC()).fit(ROWS, both)
    e = explain(model, "output 1: 4")

    assert e.target == 3
    assert e.prediction == float(model.predict(ROWS[:1])[0, 1] == 4)
