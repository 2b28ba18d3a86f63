import asyncio
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression, LogisticRegression

import eblime
from eblime.models.adapt import PipelineModel, as_model
from eblime.models.keras import KerasModel
from eblime.models.sklearn import SklearnModel


def test_functions_are_not_wrapped():
    """Any callable from a batch to scores."""

    def model(batch):
        return batch

    assert as_model(model) is model


def test_scikit_learn_models_get_rows(rng):
    """`predict_proba` is preferred, images are flattened, a regressor has one column."""
    images = rng.random((30, 4, 5))
    rows = images.reshape(30, -1)
    classes = (rows.sum(axis=1) > 10).astype(int)
    classifier = LogisticRegression().fit(rows, classes)
    regression = LinearRegression().fit(rows, rows.sum(axis=1))

    assert isinstance(as_model(classifier), SklearnModel)
    assert_allclose(as_model(classifier)(images), classifier.predict_proba(rows))
    assert as_model(regression)(images).shape == (30, 1)


LAYER = type("Layer", (), {"__module__": "keras.src.layers"})  # as each version of Keras has one


def test_keras_is_recognised_by_its_layers():
    """It is called with training=False, and the result is an array."""

    class Network(LAYER):
        def __call__(self, batch, training):
            assert training is False
            return batch.mean(axis=(1, 2))

    model = as_model(Network())

    assert isinstance(model, KerasModel)
    assert_allclose(model(np.ones((3, 2, 2))), np.ones((3, 1)))


def test_keras_outputs_are_chosen_and_checked():
    """By name or position; a missing choice and maps of scores are refused."""

    class Network(LAYER):
        output_names = ("mean", "half")

        def __call__(self, batch, training):
            return [batch.mean(axis=(1, 2)), batch.mean(axis=(1, 2)) / 2]

    batch = np.ones((3, 2, 2, 4))

    plain = {"network": Network(), "activation": "none"}
    assert_allclose(KerasModel(output="half", **plain)(batch), np.full((3, 4), 0.5))
    assert_allclose(KerasModel(output=0, **plain)(batch), np.ones((3, 4)))
    chosen = KerasModel(network=Network(), output=0)
    assert_allclose(chosen(10 * batch), np.full((3, 4), 0.25))
    assert chosen.decided == {"activation": "softmax"}
    with pytest.raises(ValueError, match=r"2 outputs: 'mean' of shape \(3, 4\), 'half'"):
        as_model(Network())(batch)
    with pytest.raises(ValueError, match=r"it returned shape \(3, 2, 2, 4\)"):
        KerasModel(network=lambda batch, training: batch)(batch)


def test_keras_on_the_torch_backend_is_keras():
    """Every Keras model is a torch module there; Keras is recognised first."""
    torch = pytest.importorskip("torch")
    layer = type("Layer", (torch.nn.Module,), {"__module__": "keras.src.layers.layer"})

    class Network(layer):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(()))

        def __call__(self, batch, training):
            assert training is False
            return self.scale * torch.from_numpy(batch).mean(dim=(1, 2))  # has a gradient

    model = as_model(Network())

    assert isinstance(model, KerasModel)
    assert_allclose(model(np.ones((3, 2, 2, 4)) / 4), np.full((3, 4), 0.25))  # probabilities


@pytest.mark.filterwarnings("ignore")  # warnings of Keras
def test_a_keras_network_is_explained():
    """A real network on the installed backend, with one output and with two."""
    keras = pytest.importorskip("keras")
    entry = keras.Input((8, 8, 3))
    mean = keras.layers.GlobalAveragePooling2D()(keras.layers.Conv2D(4, 3)(entry))
    scores = keras.layers.Dense(3, activation="softmax", name="scores")(mean)
    both = keras.Model(entry, {"scores": scores, "features": mean})
    image = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    settings = {"segmentation": ("grid", {"rows": 2, "columns": 2}), "hide": 0}
    one = eblime.ImageExplainer(keras.Model(entry, scores), **settings).explain(image, target=1)
    chosen = KerasModel(network=both, output="scores")
    other = eblime.ImageExplainer(chosen, **settings).explain(image, target=1)

    assert 0 < one.prediction < 1
    assert_allclose(other.scores, one.scores, atol=1e-6)
    with pytest.raises(eblime.ModelError, match=r"2 outputs: .*'features'"):
        eblime.ImageExplainer(both, **settings).explain(image)


def test_a_regressor_with_empty_classes_is_a_regressor():
    """CatBoost's regressors have `classes_`, of length 0."""

    class Regressor:
        classes_ = np.array([], dtype=object)

        def predict(self, rows):
            return rows.sum(axis=1)

    assert_allclose(as_model(Regressor())(np.ones((2, 3))), [[3], [3]])
    assert eblime.TabularExplainer(Regressor(), np.eye(5)).explain(np.zeros(5)).label == "output"


@pytest.mark.parametrize("named", [False, True])
def test_xgboost_boosters_take_rows(rng, named):
    """Rows are converted to a DMatrix with the booster's feature names."""
    xgboost = pytest.importorskip("xgboost")
    pandas = pytest.importorskip("pandas")
    rows = rng.random((60, 3))
    given = pandas.DataFrame(rows, columns=["a", "b", "c"]) if named else rows
    matrix = xgboost.DMatrix(given, (3 * rows[:, 0]).astype(int))
    booster = xgboost.train({"objective": "multi:softprob", "num_class": 3}, matrix, 5)
    model = as_model(booster)

    assert_allclose(model(given), booster.predict(matrix))
    assert_allclose(model(rows), booster.predict(matrix))  # the order is that of the names
    assert eblime.TabularExplainer(booster, given).explain(rows[0]).prediction > 0.3


def test_lightgbm_boosters_take_rows(rng):
    """Arrays are passed unchanged."""
    lightgbm = pytest.importorskip("lightgbm")
    rows = rng.random((60, 3))
    data = lightgbm.Dataset(rows, (3 * rows[:, 0]).astype(int))
    settings = {"objective": "multiclass", "num_class": 3, "verbose": -1}
    booster = lightgbm.train(settings, data, 5)

    assert_allclose(as_model(booster)(rows), booster.predict(rows))


def test_hugging_face_pipelines_are_recognised_by_their_task():
    """They get PIL images; the columns are in the order of the labels."""

    class Pipeline:
        task = "image-classification"
        model = SimpleNamespace(config=SimpleNamespace(id2label={0: "cat", 1: "dog"}))

        def __call__(self, images, top_k):
            assert top_k == 2
            share = [np.asarray(image).mean() / 255 for image in images]
            return [[{"label": "dog", "score": s}, {"label": "cat", "score": 1 - s}] for s in share]

    model = as_model(Pipeline())
    batch = np.stack([np.full((4, 4, 3), 255, np.uint8), np.zeros((4, 4, 3), np.uint8)])

    assert isinstance(model, PipelineModel)
    assert_allclose(model(batch), [[0, 1], [1, 0]])
    with pytest.raises(TypeError, match=r"needs images of uint8; got float64"):
        model(batch / 255)


def test_async_functions_are_awaited():
    """Functions and callable objects, also while an event loop is running, as in a notebook."""

    async def model(rows):
        await asyncio.sleep(0)
        return rows[:, 0]

    class Service:
        async def __call__(self, rows):
            return await model(rows)

    async def in_a_loop():
        return eblime.TabularExplainer(model, BACKGROUND, n_masks=50).explain(BACKGROUND[0])

    plain = eblime.TabularExplainer(lambda rows: rows[:, 0], BACKGROUND, n_masks=50)
    wanted = plain.explain(BACKGROUND[0]).posterior.mean
    for given in (model, Service()):
        found = eblime.TabularExplainer(given, BACKGROUND, n_masks=50).explain(BACKGROUND[0])
        assert_allclose(found.posterior.mean, wanted)
    assert_allclose(asyncio.run(in_a_loop()).posterior.mean, wanted)


BACKGROUND = np.random.default_rng(0).random((40, 3))


@pytest.mark.parametrize("name", ["predict_proba", "decision_function", "predict"])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_async_methods_are_awaited(name, concurrency):
    """As in a client of a remote classifier, also with several calls at once."""

    async def method(self, rows):
        await asyncio.sleep(0)
        return rows[:, :2]

    client = type("Client", (), {name: method})()
    calls = eblime.Calls(concurrency=concurrency, batch_size=10)
    explain = lambda model: (  # noqa: E731
        eblime.TabularExplainer(model, BACKGROUND, n_masks=50, calls=calls)
        .explain(BACKGROUND[0], target=1)
        .scores
    )

    assert_allclose(explain(client), explain(lambda rows: rows[:, :2]))


async def _later(rows):
    return rows


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda rows: _later(rows), r"it returned a coroutine\. .*it is awaited"),
        (lambda rows: {"scores": rows[:, 0]}, r"a dict with the keys 'scores'\. Return one of its"),
        (
            lambda rows: [{"label": "a", "score": 0.5} for _ in rows],
            r"a list of dict, such as \{'label': 'a', 'score': 0\.5\}\. Return an array of shape",
        ),
        (lambda rows: [object() for _ in rows], r"a list of object, such as <object"),
        (lambda rows: np.array([None for _ in rows]), r"a ndarray of NoneType, such as None"),
        (lambda rows: [[1.0] * (1 + k) for k in range(len(rows))], r"a list of list, such as"),
        (lambda rows: ["high" for _ in rows], r"a list of str, such as 'high'"),
        (lambda rows: np.array(["1"] * len(rows), dtype=object), r"a ndarray of str, such as '1'"),
        (lambda rows: np.ma.masked_less(np.arange(len(rows)), 3), r"in which some are masked\."),
        (lambda rows: None, r"it returned a NoneType"),
    ],
)
def test_results_that_are_not_scores_are_refused(model, message):
    """After the first call; the message says what was returned and what to return instead."""
    calls = []

    def counted(rows):
        calls.append(len(rows))
        return model(rows)

    table = eblime.TabularExplainer(counted, np.random.default_rng(0).random((30, 3)), n_masks=50)
    image = eblime.ImageExplainer(counted, segmentation=("grid", {"rows": 2, "columns": 2}), hide=0)

    with pytest.raises(eblime.ModelError, match=message):
        table.explain([0.5, 0.5, 0.5])
    with pytest.raises(eblime.ModelError, match=message):
        image.explain(np.ones((4, 4)))
    assert len(calls) == 2


def test_numbers_of_any_kind_are_scores():
    """Lists of floats, booleans and decimal numbers."""
    from decimal import Decimal

    for kind in (float, bool, Decimal):
        model = lambda rows, kind=kind: [kind(int(row[0] > 0.5)) for row in rows]  # noqa: E731
        rows = np.random.default_rng(0).random((30, 3))
        e = eblime.TabularExplainer(model, rows).explain([1, 1, 1])

        assert e.prediction == 1


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "int64", "bool"])
def test_functions_may_return_tensors(dtype):
    """Of any dtype, also with a gradient."""
    torch = pytest.importorskip("torch")
    kind = getattr(torch, dtype)
    rows = np.random.default_rng(0).random((30, 3))

    def model(batch):
        scores = torch.tensor(batch[:, 0] > 0.5).to(kind)
        return scores.requires_grad_() if kind.is_floating_point else scores

    e = eblime.TabularExplainer(model, rows).explain([1, 1, 1], rng=0)
    plain = eblime.TabularExplainer(lambda batch: batch[:, 0] > 0.5, rows)

    np.testing.assert_array_equal(e.scores, plain.explain([1, 1, 1], rng=0).scores)


def test_a_constant_model_gets_a_note():
    """Because zeros and an R2 of 1 look like a perfect explanation."""
    rows = np.random.default_rng(0).random((30, 3))
    e = eblime.TabularExplainer(lambda batch: np.full(len(batch), 0.7), rows).explain(rows[0])
    varied = eblime.TabularExplainer(lambda batch: batch[:, 0], rows).explain(rows[0])

    assert "Note: The model returned the same score for every mask" in str(e)
    assert "returned the same score for every mask" in e.to_html()
    assert "the same score" not in str(varied)


def test_predict_of_a_classifier_gets_a_warning():
    """Its scores are classes; the classifier itself has probabilities."""
    rows = np.random.default_rng(0).random((30, 3))
    model = LogisticRegression().fit(rows, (rows[:, 0] > 0.5).astype(int))
    with pytest.warns(UserWarning, match="`predict` of LogisticRegression.*Pass the model itself"):
        eblime.TabularExplainer(model.predict, rows)


def test_other_objects_are_refused(tmp_path):
    """Classes, numbers, and missing files."""
    with pytest.raises(TypeError, match=r"must be an object, not the class LogisticRegression"):
        as_model(LogisticRegression)
    with pytest.raises(TypeError, match=r"a function from a batch to scores.*got int"):
        as_model(3)
    pytest.importorskip("onnxruntime")
    with pytest.raises(FileNotFoundError, match=r"nothing.onnx' does not exist"):
        as_model(tmp_path / "nothing.onnx")


def test_an_explainer_refuses_an_invalid_model_when_it_is_created():
    """Before any image is read."""
    with pytest.raises(TypeError, match=r"`model` must be a function"):
        eblime.ImageExplainer(None)
