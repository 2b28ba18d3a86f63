from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression, LogisticRegression

import eblime
from eblime.models.adapt import KerasModel, PipelineModel, SklearnModel, as_model


def test_functions_are_taken_as_they_are():
    """Any callable from a batch to scores."""

    def model(batch):
        return batch

    assert as_model(model) is model


def test_scikit_learn_gets_rows(rng):
    """`predict_proba` before `predict`, images flattened, regression as one column."""
    images = rng.random((30, 4, 5))
    rows = images.reshape(30, -1)
    classes = (rows.sum(axis=1) > 10).astype(int)
    classifier = LogisticRegression().fit(rows, classes)
    regression = LinearRegression().fit(rows, rows.sum(axis=1))

    assert isinstance(as_model(classifier), SklearnModel)
    assert_allclose(as_model(classifier)(images), classifier.predict_proba(rows))
    assert as_model(regression)(images).shape == (30, 1)


def test_keras_is_known_by_its_layers():
    """Called with training=False, whatever comes back as an array."""

    class Network:
        layers = ()

        def __call__(self, batch, training):
            assert training is False
            return batch.mean(axis=(1, 2))

    model = as_model(Network())

    assert isinstance(model, KerasModel)
    assert_allclose(model(np.ones((3, 2, 2))), np.ones((3, 1)))


def test_hugging_face_pipelines_are_known_by_their_task():
    """PIL images in, dictionaries out; columns in the order of the model's labels."""

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
    with pytest.raises(TypeError, match=r"images of uint8; got float64"):
        model(batch / 255)


def test_what_cannot_be_a_model_is_refused(tmp_path):
    """Classes, numbers, and files that are not there."""
    with pytest.raises(TypeError, match=r"must be an object, not the class LogisticRegression"):
        as_model(LogisticRegression)
    with pytest.raises(TypeError, match=r"a function from a batch to scores.*got int"):
        as_model(3)
    pytest.importorskip("onnxruntime")
    with pytest.raises(FileNotFoundError, match=r"there is no"):
        as_model(tmp_path / "nothing.onnx")


def test_explainer_refuses_a_bad_model_at_once():
    """Before any image is seen."""
    with pytest.raises(TypeError, match=r"`model` must be a function"):
        eblime.ImageExplainer(None)
