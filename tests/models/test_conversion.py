"""Networks of tables: rows of any library as arrays of numbers."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import eblime
from eblime.models.conversion import as_array
from eblime.models.keras import KerasModel

COLUMNS = {"age": [30, 41, 52, 63] * 10, "on": [True, False] * 20, "x": list(np.linspace(0, 1, 40))}
WEIGHTS = np.array([[0.1], [2.0], [3.0]], dtype=np.float32)


def torch_network():
    """A linear network of torch."""
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(3, 1, bias=False)
    layer.weight.data = torch.from_numpy(WEIGHTS.T.copy())
    return eblime.TorchModel(module=layer, activation="none")


def onnx_network():
    """The same as an ONNX graph."""
    onnx = pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    helper, kinds = onnx.helper, onnx.TensorProto
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "linear",
        [helper.make_tensor_value_info("x", kinds.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("y", kinds.FLOAT, ["n", 1])],
        [onnx.numpy_helper.from_array(WEIGHTS, "w")],
    )
    opset = helper.make_opsetid("", 13)
    content = helper.make_model(graph, opset_imports=[opset], ir_version=8).SerializeToString()
    return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


def keras_network():
    """The same as a function with the arguments of a Keras network."""
    return KerasModel(network=lambda rows, training: rows @ WEIGHTS)


def table_of(kind):
    """The columns as a table of some kind."""
    if kind == "objects":
        return np.array(list(zip(*COLUMNS.values(), strict=True)), dtype=object)
    if kind == "nullable":
        return pd.DataFrame(COLUMNS).astype({"age": "Int64", "on": "boolean"})
    package = pytest.importorskip(kind)
    return package.table(COLUMNS) if kind == "pyarrow" else package.DataFrame(COLUMNS)


@pytest.mark.parametrize("network", [torch_network, onnx_network, keras_network])
@pytest.mark.parametrize("kind", ["pandas", "nullable", "polars", "pyarrow", "objects"])
def test_networks_take_rows_of_every_kind_of_table(network, kind):
    """As floats, in the order of the columns."""
    explainer = eblime.TabularExplainer(network(), table_of(kind), n_masks=50)
    e = explainer.explain([41, True, 0.5])

    assert e.prediction == pytest.approx(4.1 + 2 + 1.5)


@pytest.mark.parametrize("network", [torch_network, onnx_network])
def test_rows_of_small_integers_are_not_pixels(network):
    """Only images of uint8 are divided by 255."""
    rows = np.random.default_rng(0).integers(0, 9, size=(50, 3), dtype=np.uint8)
    e = eblime.TabularExplainer(network(), rows, n_masks=50).explain(rows[0])

    assert e.prediction == pytest.approx(float((rows[0] @ WEIGHTS)[0]))


def test_a_column_of_strings_is_named():
    """With its first value, and what to do."""
    frame = pd.DataFrame({"x": [1.0, 2.0], "job": ["cook", "clerk"]})
    with pytest.raises(TypeError, match=r"column 'job' holds 'cook'\. Pass a function"):
        as_array(frame)


@pytest.mark.parametrize("kind", [Decimal, Fraction, np.bool_, np.float32, int])
def test_numbers_of_every_type_are_taken(kind):
    """Also those that NumPy holds as objects."""
    assert_allclose(as_array(np.array([[kind(1), None]], dtype=object)), [[1, np.nan]])


def test_texts_in_an_array_are_unchanged():
    """A network of texts takes them as they are."""
    texts = np.array(["a good film", None], dtype=object)

    assert as_array(texts) is texts


def test_missing_values_become_nan():
    """Whatever stands for them."""
    frame = pd.DataFrame({"x": pd.array([1, None], dtype="Int64"), "y": [None, 2.0]})

    assert_allclose(as_array(frame), [[1, np.nan], [np.nan, 2]])
