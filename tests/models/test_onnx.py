import numpy as np
import pytest
from numpy.testing import assert_allclose

import eblime

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

IMAGE = np.random.default_rng(0).integers(0, 256, size=(12, 16, 3), dtype=np.uint8)


def as_they_are(path, **settings):
    """The model of a graph whose outputs get no activation."""
    return eblime.OnnxModel.load(path, activation="none", **settings)


def graph(path, shape, axes, kind=None, second=False):
    """Write a graph that averages its input over some axes; `second` adds twice the mean."""
    from onnx import TensorProto, helper

    kind = TensorProto.FLOAT if kind is None else kind
    nodes = [
        helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["f"], ["mean"], axes=axes, keepdims=0),
    ]
    outputs = [helper.make_tensor_value_info("mean", TensorProto.FLOAT, None)]
    if second:
        nodes.append(helper.make_node("Add", ["mean", "mean"], ["twice"]))
        outputs.append(helper.make_tensor_value_info("twice", TensorProto.FLOAT, None))
    made = helper.make_graph(
        nodes, "means", [helper.make_tensor_value_info("x", kind, shape)], outputs
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(path))
    return path


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        (["n", 3, 12, 16], [2, 3]),  # channels first
        (["n", 12, 16, 3], [1, 2]),  # channels last
        (["n", 3, "h", "w"], [2, 3]),
        ([4, 3, 12, 16], [2, 3]),  # a fixed batch
        ([1, 3, 12, 16], [2, 3]),
    ],
)
@pytest.mark.parametrize("layout", ["last", "first"])
def test_layout_and_batch_are_read_from_the_graph(tmp_path, shape, axes, layout):
    """Mean colours are right for every layout of graph and image, and for fixed batches."""
    model = as_they_are(graph(tmp_path / "m.onnx", shape, axes))
    batch = np.stack([IMAGE, IMAGE // 2, IMAGE // 3, IMAGE // 4, IMAGE // 5])
    given = batch if layout == "last" else batch.transpose(0, 3, 1, 2)

    assert_allclose(model(given), batch.mean(axis=(1, 2)) / 255, rtol=1e-5)


def test_grey_images_rows_and_dtypes(tmp_path):
    """Graphs that take grey images, flat rows or uint8."""
    from onnx import TensorProto

    grey = IMAGE[None, ..., 0]
    flat = as_they_are(graph(tmp_path / "flat.onnx", ["n", 192], [1]))
    one = as_they_are(graph(tmp_path / "one.onnx", ["n", 1, 12, 16], [2, 3]))
    plain = as_they_are(graph(tmp_path / "plain.onnx", ["n", 12, 16], [1, 2]))
    bytes_ = as_they_are(graph(tmp_path / "u8.onnx", ["n", 3, 12, 16], [2, 3], TensorProto.UINT8))

    for model in (flat, one, plain):
        assert_allclose(model(grey), [[grey.mean() / 255]], rtol=1e-5)
    assert_allclose(bytes_(IMAGE[None]), IMAGE[None].mean(axis=(1, 2)), rtol=1e-5)


def test_shapes_that_fit_are_not_changed(tmp_path):
    """With many channels or few columns, the sizes of the graph decide."""
    many = np.random.default_rng(0).random((2, 8, 9, 6), dtype=np.float32)
    last = as_they_are(graph(tmp_path / "last.onnx", ["n", 8, 9, 6], [1, 2]))
    narrow = as_they_are(graph(tmp_path / "narrow.onnx", ["n", 3, 40, 4], [2, 3]))
    batch = np.random.default_rng(0).random((2, 3, 40, 4), dtype=np.float32)

    assert_allclose(last(many), many.mean(axis=(1, 2)), rtol=1e-5)
    assert_allclose(narrow(batch), batch.mean(axis=(2, 3)), rtol=1e-5)
    with pytest.raises(
        ValueError, match=r"shape of the graph's input, \[8, 9, 6\]; got \(3, 40, 4\)"
    ):
        last(batch)


def test_a_graph_with_uint8_input_takes_only_uint8(tmp_path):
    """Floats are refused: they would silently become zeros."""
    from onnx import TensorProto

    model = eblime.as_model(
        graph(tmp_path / "u8.onnx", ["n", 3, 12, 16], [2, 3], TensorProto.UINT8)
    )
    with pytest.raises(TypeError, match=r"must be uint8, like the graph's input; got float64"):
        model(IMAGE[None] / 255)
    with pytest.raises(TypeError, match=r"use OnnxModel.load\(path\)"):
        eblime.OnnxModel(session="m.onnx")


def test_settings_and_outputs(tmp_path):
    """Preprocessing, activation and the choice of an output."""
    path = graph(tmp_path / "m.onnx", ["n", 3, 12, 16], [2, 3], second=True)
    base = as_they_are(path, output="mean")(IMAGE[None])
    twice = as_they_are(path, output="twice")(IMAGE[None])
    shifted = as_they_are(path, output="mean", preprocess=lambda x: x + 1)(IMAGE[None])
    soft = eblime.OnnxModel.load(path, output="mean", activation="softmax")(IMAGE[None])

    assert_allclose(twice, 2 * base)
    assert_allclose(shifted, base + 1, rtol=1e-5)
    assert_allclose(soft, np.exp(base) / np.exp(base).sum(), rtol=1e-6)
    with pytest.raises(ValueError, match=r"`output` must be one of 'mean', 'twice'; got 'thrice'"):
        eblime.OnnxModel.load(path, output="thrice")


def test_several_outputs_need_a_choice(tmp_path):
    """The message lists the names; an output named `logits` is chosen."""
    path = graph(tmp_path / "m.onnx", ["n", 3, 12, 16], [2, 3], second=True)
    with pytest.raises(ValueError, match=r"returns 2 outputs: 'mean' .*'twice' .* output='mean'"):
        as_they_are(path)(IMAGE[None])
    model = onnx.load(str(path))
    model.graph.node[-1].output[0] = model.graph.output[-1].name = "logits"
    onnx.save(model, str(path))

    expected = 2 * IMAGE[None].mean(axis=(1, 2)) / 255
    assert_allclose(as_they_are(path)(IMAGE[None]), expected, rtol=1e-5)


def test_an_output_that_is_not_a_tensor_is_refused(tmp_path):
    """scikit-learn models exported with ZipMap return dictionaries."""
    from onnx import TensorProto, helper

    node = helper.make_node("SequenceConstruct", ["x"], ["scores"])
    entry = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    output = helper.make_tensor_sequence_value_info("scores", TensorProto.FLOAT, None)
    made = helper.make_graph([node], "sequence", [entry], [output])
    opset = helper.make_opsetid("", 13)
    onnx.save(
        helper.make_model(made, opset_imports=[opset], ir_version=8), str(tmp_path / "s.onnx")
    )

    with pytest.raises(TypeError, match=r"'scores' .* must be a tensor; it is a seq.*zipmap=False"):
        eblime.as_model(tmp_path / "s.onnx")


def test_maps_of_scores_are_refused(tmp_path):
    """One score per class and pixel is not one score per output."""
    path = graph(tmp_path / "m.onnx", ["n", 3, 12, 16], [1])
    explainer = eblime.ImageExplainer(str(path), segmentation="grid", n_masks=100)
    with pytest.raises(eblime.ModelError, match=r"it returned shape \(\d+, 12, 16\)"):
        explainer.explain(IMAGE)


def test_files_and_sessions_can_be_explained(tmp_path):
    """With the same result."""
    path = graph(tmp_path / "m.onnx", ["n", 3, 12, 16], [2, 3])
    settings = {"segmentation": "grid", "hide": 0, "n_masks": 300}
    e = eblime.ImageExplainer(as_they_are(path), **settings).explain(IMAGE, target=1)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    again = eblime.ImageExplainer(as_they_are(session), **settings).explain(IMAGE, target=1)
    share = [
        (IMAGE[..., 1] * (e.scene.labels == j)).sum() / 255 / 192 for j in range(e.scene.n_features)
    ]

    assert_allclose(e.posterior.mean, share, atol=1e-5)
    assert_allclose(again.posterior.mean, e.posterior.mean)


def test_probabilities_get_no_softmax(tmp_path):
    """A graph that ends in one, as it seems, is explained as it is; logits get a softmax."""
    path = graph(tmp_path / "m.onnx", ["n", 3, 12, 16], [2, 3])
    colour = np.full((1, 12, 16, 3), [0.2, 0.3, 0.5], dtype=np.float32)
    soft, model = eblime.OnnxModel.load(path, activation="softmax"), eblime.as_model(path)

    assert_allclose(model(colour), [[0.2, 0.3, 0.5]], rtol=1e-5)
    assert model.decided == {"activation": "none"}
    with pytest.warns(UserWarning, match=r"probabilities already.*activation='none' in OnnxModel"):
        assert_allclose(soft(colour), [[0.2, 0.3, 0.5]], rtol=1e-5)
    logits = eblime.as_model(path)
    odds = np.exp([2.0, 3.0, 5.0])
    assert_allclose(logits(10 * colour), [odds / odds.sum()], rtol=1e-5)
    assert logits.decided == {"activation": "softmax"}


def test_one_output_needs_a_sigmoid(tmp_path):
    """The softmax of one output is always 1; the message says what to set."""
    path = graph(tmp_path / "one.onnx", ["n", 1, 12, 16], [2, 3])
    model = eblime.OnnxModel.load(path, activation="softmax")
    with pytest.raises(ValueError, match=r"set `activation` to 'sigmoid' or 'none' in OnnxModel"):
        model(IMAGE[None, ..., 0])
    one = eblime.as_model(path)
    assert_allclose(one(IMAGE[None, ..., 0]), [[IMAGE[..., 0].mean() / 255]], rtol=1e-5)
    assert one.decided == {"activation": "none"}
