"""Models are recognised by their content."""

import pickle

import numpy as np
import pytest

from eblime.models.adapt import as_model
from eblime.models.identity import fingerprint


def test_networks_are_compared_by_their_weights():
    """The same weights are the same model, also after training back; code and settings count."""
    torch = pytest.importorskip("torch")

    def network(seed):
        torch.manual_seed(seed)
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 2))

    first = network(0)
    before = fingerprint(as_model(first))

    assert fingerprint(as_model(network(0))) == before
    assert fingerprint(as_model(network(1))) != before
    first[1].weight.data[0, 0] += 1.0  # torch does not count this as a new version
    assert fingerprint(as_model(first)) != before
    first.load_state_dict(network(0).state_dict())
    assert fingerprint(as_model(first)) == before
    from eblime.models.torch import TorchModel

    assert fingerprint(TorchModel(first, activation="none")) != before
    assert fingerprint(TorchModel(first, preprocess=lambda x: 2 * x)) != before


def test_estimators_are_compared_by_their_content():
    """Another fit is another model; a copy is the same."""
    forests = pytest.importorskip("sklearn.ensemble")
    rng = np.random.default_rng(0)
    rows, labels = rng.random((50, 3)), rng.integers(0, 2, 50)

    def fitted(seed):
        return forests.RandomForestClassifier(3, random_state=seed).fit(rows, labels)

    copy = pickle.loads(pickle.dumps(fitted(0)))

    assert fingerprint(as_model(fitted(0))) == fingerprint(as_model(fitted(0)))
    assert fingerprint(as_model(copy)) == fingerprint(as_model(pickle.loads(pickle.dumps(copy))))
    assert fingerprint(as_model(fitted(0))) != fingerprint(as_model(fitted(1)))


class Scaler:
    """A step of a pipeline."""

    def fit(self, rows, labels=None):
        """Nothing to learn."""
        return self

    def transform(self, rows):
        """Twice the numbers."""
        return 2 * rows


def test_your_own_code_in_a_pipeline_counts(monkeypatch):
    """A pickle has only the name of a class; its methods are compared too."""
    pipelines = pytest.importorskip("sklearn.pipeline")
    linear = pytest.importorskip("sklearn.linear_model")
    rows = np.arange(6.0).reshape(3, 2)
    pipe = pipelines.make_pipeline(Scaler(), linear.LinearRegression()).fit(rows, rows[:, 0])
    before = fingerprint(as_model(pipe))
    monkeypatch.setattr(Scaler, "transform", lambda self, rows: 3 * rows)

    assert fingerprint(as_model(pipe)) != before


def test_a_function_around_a_model_is_compared_with_the_model():
    """Whether it is in a closure or a global."""
    linear = pytest.importorskip("sklearn.linear_model")
    rows = np.arange(6.0).reshape(3, 2)

    def wrapped(slope):
        inner = linear.LinearRegression().fit(rows, slope * rows[:, 0])
        return lambda batch: inner.predict(batch)

    assert fingerprint(wrapped(1.0)) == fingerprint(wrapped(1.0)) != fingerprint(wrapped(2.0))


def test_onnx_files_are_compared_by_their_bytes(tmp_path):
    """A file that changed after it was loaded, or a session, needs a name."""
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    from eblime.models.onnx import OnnxModel

    def write(path, value):
        helper, number = onnx.helper, onnx.TensorProto.FLOAT
        graph = helper.make_graph(
            [helper.make_node("Mul", ["x", "w"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", number, ["n", 2])],
            [helper.make_tensor_value_info("y", number, ["n", 2])],
            [helper.make_tensor("w", number, [1], [value])],
        )
        opset = [helper.make_opsetid("", 13)]
        onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
        return OnnxModel.load(path)

    first, same = write(tmp_path / "a.onnx", 2.0), write(tmp_path / "b.onnx", 2.0)

    assert fingerprint(first) == fingerprint(same)
    assert fingerprint(write(tmp_path / "c.onnx", 3.0)) != fingerprint(first)
    write(tmp_path / "b.onnx", 4.0)
    with pytest.raises(TypeError, match=r"has changed since it was loaded.*model_id"):
        fingerprint(same)
    with pytest.raises(TypeError, match=r"does not say which file.*model_id"):
        fingerprint(OnnxModel(session=first.session))


def test_a_client_of_a_service_needs_a_name():
    """What cannot be compared is refused, with the way out."""

    class Client:
        def __init__(self):
            self.stream = (n for n in [1])

        def __call__(self, batch):
            return [next(self.stream) for _ in batch]

    with pytest.raises(TypeError, match=r"`cache` must know which model .*AnswerCache\(path, "):
        fingerprint(Client())


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int64", "bool"])
def test_tensors_of_every_dtype_are_part_of_a_function(dtype):
    """Also of those that NumPy does not have."""
    torch = pytest.importorskip("torch")

    def made(numbers):
        weights = torch.tensor(numbers, dtype=getattr(torch, dtype))
        return lambda rows: rows @ weights

    assert fingerprint(made([0, 1])) == fingerprint(made([0, 1]))
    assert fingerprint(made([0, 1])) != fingerprint(made([1, 0]))
    assert fingerprint(made([0, 1])) != fingerprint(made([[0], [1]]))
