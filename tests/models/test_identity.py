"""A model that is a file is recognised by its bytes; every other model needs a name."""

import functools
from dataclasses import replace

import numpy as np
import pytest

import eblime
from eblime._digest import UnknownContentError
from eblime.models.adapt import as_model, with_reader
from eblime.models.identity import fingerprint, named
from eblime.models.language import ServerModel
from eblime.models.likelihood import AnswerScore
from eblime.models.signal import SignalModel
from eblime.models.sklearn import SklearnModel

ROWS = np.random.default_rng(0).random((50, 3))
URL = "http://127.0.0.1:1/v1"


def from_package(name):
    """A package, or skip the test."""
    return pytest.importorskip(name)


def weighted_density():
    """An estimator whose trees do not show its weights."""
    neighbors = from_package("sklearn.neighbors")
    return neighbors.KernelDensity().fit(ROWS, sample_weight=np.arange(1.0, 51.0)).score_samples


def file_vectorizer():
    """A pipeline that reads other files."""
    text, linear = (
        from_package("sklearn.feature_extraction.text"),
        from_package("sklearn.linear_model"),
    )
    steps = (text.CountVectorizer(input="filename"), linear.LogisticRegression())
    return from_package("sklearn.pipeline").make_pipeline(*steps)


def fitted_estimator():
    """An estimator of scikit-learn alone."""
    linear = from_package("sklearn.linear_model")
    return linear.LogisticRegression().fit(ROWS, ROWS[:, 0] > 0.5)


def network():
    """A network of torch's own layers."""
    return from_package("torch").nn.Linear(4, 2)


class Fitted:
    """A model of the user's own."""

    def predict(self, rows):
        """Predict."""
        return rows[:, 0]


async def service(rows):
    """The client of a service."""
    return rows[:, 0]


@pytest.mark.parametrize(
    "create",
    [
        lambda: lambda rows: rows[:, 0],
        lambda: service,
        lambda: functools.partial(np.sum, axis=1),
        lambda: np.linalg.det,
        Fitted,
        lambda: Fitted().predict,
        lambda: eblime.KerasModel(network=lambda batch, training: batch),
        weighted_density,
        file_vectorizer,
        fitted_estimator,
        network,
    ],
)
def test_models_that_are_no_file_need_a_name(create):
    """What they return can depend on files, on other code and on versions of packages."""
    with pytest.raises(UnknownContentError, match="can depend on other code, data, files"):
        fingerprint(as_model(create()))


def compared(name):
    """A language model whose answers are compared by a function of that name."""

    def judge(new, answer):
        return float(new == answer)

    judge.model_id = name
    return AnswerScore(language=Fitted(), score=judge)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (ServerModel(URL, max_new_tokens=2), ServerModel(URL, max_new_tokens=8)),
        (ServerModel(URL, options={"seed": 1}), ServerModel(URL, options={"seed": 2})),
        (ServerModel(URL, temperature=0.0), ServerModel(URL, temperature=0.5)),
        (compared("strict"), compared("mild")),
        (with_reader(len, lambda out, n: out), with_reader(len, lambda out, n: -out)),
        (SignalModel(model=len, layout="first"), SignalModel(model=len, layout="last")),
        (as_model(Fitted()), SklearnModel(predict=Fitted().predict, ranked=False)),
    ],
)
def test_settings_around_a_named_model_count(first, second):
    """A name stands for the model, not for how its answers are read, written or compared."""
    assert named(first, "a") == named(first, "a") != named(second, "a")
    assert named(first, "a") != named(first, "b")


@pytest.mark.parametrize("judge", [lambda new, old: 0.5, len, functools.partial(max, 1)])
def test_a_function_that_compares_answers_needs_a_name(judge):
    """Its code does not decide what it returns, and two of them may have the same code."""
    with pytest.raises(TypeError, match=r"name for the function `score`.*\.model_id = "):
        named(AnswerScore(language=Fitted(), score=judge), "a")


def test_where_a_server_is_does_not_count():
    """The user's name says which model it has."""
    moved = ServerModel("http://127.0.0.1:2/v1")

    assert named(ServerModel(URL), "a") == named(moved, "a")


# --- ONNX -----------------------------------------------------------------------------------------


def write_graph(path, value, data=None):
    """A graph that multiplies by a number, which may be stored in another file."""
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    weights = np.full(600, value, dtype=np.float32)
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", kind, ["n", 600])],
        [helper.make_tensor_value_info("y", kind, ["n", 600])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    if data is not None:
        onnx.external_data_helper.convert_model_to_external_data(model, location=data)
    onnx.save(model, path)


def load(path):
    """The model in a file."""
    from eblime.models.onnx import OnnxModel

    return OnnxModel.load(path)


def test_onnx_files_are_compared_by_their_bytes(tmp_path):
    """Those that were loaded, whatever happened to the file since; a session needs a name."""
    for name, value in (("a", 2.0), ("b", 2.0), ("c", 3.0)):
        write_graph(tmp_path / f"{name}.onnx", value)
    first, same, other = (load(tmp_path / f"{name}.onnx") for name in "abc")

    assert fingerprint(first) == fingerprint(same) != fingerprint(other)
    write_graph(tmp_path / "b.onnx", 4.0)
    assert fingerprint(first) == fingerprint(same)
    with pytest.raises(UnknownContentError, match=r"was not loaded from an \.onnx file"):
        fingerprint(type(first)(session=first.session))


def test_settings_of_an_onnx_file_count_and_its_functions_need_a_name(tmp_path):
    """Its activation is plain data; a reader and a preprocessing are code."""
    write_graph(tmp_path / "a.onnx", 2.0)
    model = load(tmp_path / "a.onnx")

    assert fingerprint(model) != fingerprint(replace(model, activation="softmax"))
    for settings in ({"reader": lambda out, n: out}, {"preprocess": lambda batch: batch}):
        with pytest.raises(UnknownContentError, match="is code, which may change"):
            fingerprint(replace(model, **settings))


def test_a_file_with_external_data_needs_a_name(tmp_path):
    """Its weights are in another file; so do files of another format."""
    write_graph(tmp_path / "a.onnx", 2.0, "numbers.bin")
    write_graph(tmp_path / "b.onnx", 2.0)
    (tmp_path / "b.onnx").rename(tmp_path / "b.bin")

    for name in ("a.onnx", "b.bin"):
        with pytest.raises(UnknownContentError, match=r"was not loaded from an \.onnx file"):
            fingerprint(load(tmp_path / name))
