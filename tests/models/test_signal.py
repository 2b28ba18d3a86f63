"""The layouts of models of signals."""

import numpy as np
import pytest

import eblime
from eblime.models.signal import SignalModel

SIGNAL = np.sin(np.arange(60) / 3.0)
TWO = np.stack([SIGNAL, SIGNAL**2 - 0.3])
CUT = ("windows", {"n": 4})


def layout_of(model, signal, **settings):
    """The layout that an explanation says the model gets."""
    return eblime.SignalExplainer(model, CUT, **settings).explain(signal, target=0)


def first(batch):
    """Takes (n, C, T)."""
    return batch[:, 0, :15].sum(axis=1) + 0 * batch[:, -1, -1]


def last(batch):
    """Takes (n, 60, 2)."""
    return batch.reshape(-1, 60, 2)[:, :15, 0].sum(axis=1) if batch.shape[1:] == (60, 2) else 1 / 0


@pytest.mark.parametrize(
    ("model", "signal", "layout"),
    [
        (lambda batch: batch[:, :15].sum(axis=1), SIGNAL, "(n, T)"),
        (first, SIGNAL, "(n, C, T)"),
        (first, TWO, "(n, C, T)"),
        (last, TWO, "(n, T, C)"),
    ],
)
def test_functions_get_the_layout_that_they_take(model, signal, layout):
    """Found from the first answer, and said."""
    e = layout_of(model, signal)
    assert e.provenance["input"]["layout"] == layout
    assert np.argmax(abs(e.posterior.mean)) == 0


def test_one_explainer_takes_signals_with_and_without_channels():
    """Each explanation says the layout of its own signal."""
    explainer = eblime.SignalExplainer(lambda batch: batch[..., :15].sum(axis=-1), CUT)
    found = [explainer.explain(x).provenance["input"]["layout"] for x in (SIGNAL, SIGNAL[None])]
    assert found == ["(n, T)", "(n, C, T)"]


def test_a_layout_can_be_forced():
    """Without a try."""
    seen = []

    def model(batch):
        seen.append(batch.shape[1:])
        return batch.reshape(len(batch), -1)[:, 3]

    e = eblime.SignalExplainer(model, CUT, layout="last").explain(TWO)
    assert set(seen) == {(60, 2)}
    assert e.provenance["input"]["layout"] == "(n, T, C)"


def test_a_model_that_takes_no_layout_is_reported():
    """With what it said to each of them; a connection that fails is not tried again."""
    calls = []

    def model(batch):
        calls.append(batch.shape)
        raise ValueError("seven channels, please")

    with pytest.raises(eblime.ModelError, match=r"in no layout.*seven channels, please"):
        eblime.SignalExplainer(model).explain(SIGNAL)
    assert len(calls) == 3

    def offline(batch):
        calls.append(batch.shape)
        raise ConnectionError("gone")

    calls.clear()
    with pytest.raises(eblime.ModelError, match="gone"):
        eblime.SignalExplainer(offline).explain(SIGNAL)
    assert len(calls) == 1


def test_scikit_learn_gets_rows_of_the_size_that_it_knows(rng, tmp_path):
    """Also of several channels; the error about another size has the model's own words."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    rows = rng.normal(size=(80, 120))
    model = linear_model.LogisticRegression().fit(rows, rows[:, 5] > 0)
    cache = eblime.AnswerCache(tmp_path / "answers.db", model_id="peak")
    e = layout_of(model, TWO, cache=cache)
    assert e.provenance["input"]["layout"] == "(n, C x T)"
    again = layout_of(model, TWO, cache=cache)
    assert again.provenance["model_calls"] < e.provenance["model_calls"]
    with pytest.raises(eblime.ModelError, match=r"in no layout.*120 features"):
        layout_of(model, SIGNAL)


def test_estimators_of_series_get_their_channels():
    """As in aeon: three axes."""

    class Series:
        classes_ = ("a", "b")

        def predict_proba(self, batch):
            assert batch.ndim == 3
            score = batch[:, 0, :15].mean(axis=1)
            return np.stack([score, 1 - score], axis=1)

    e = layout_of(Series(), TWO)
    assert (e.label, e.provenance["input"]["layout"]) == ("a", "(n, C, T)")


def test_torch_gets_channels_first():
    """Also a signal of one channel; networks of rows get rows."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    pool = torch.nn.Sequential(torch.nn.AdaptiveAvgPool1d(1), torch.nn.Flatten())
    conv = torch.nn.Sequential(torch.nn.Conv1d(1, 3, 5), pool)
    assert layout_of(conv, SIGNAL).provenance["input"]["layout"] == "(n, C, T)"
    rows = torch.nn.Sequential(torch.nn.Linear(120, 3))
    assert layout_of(rows, TWO).provenance["input"]["layout"] == "(n, C x T)"
    wide = torch.nn.Sequential(torch.nn.Conv1d(2, 3, 5), pool)
    assert layout_of(wide, TWO).provenance["input"]["layout"] == "(n, C, T)"
    with pytest.raises(eblime.ModelError, match="in no layout"):
        layout_of(wide, SIGNAL)


@pytest.mark.parametrize(
    ("shape", "signal", "layout"),
    [
        (["n", 60], SIGNAL, "(n, T)"),
        (["n", 120], TWO, "(n, C x T)"),
        (["n", 1, 60], SIGNAL, "(n, C, T)"),
        (["n", 60, 2], TWO, "(n, T, C)"),
        (["n", 2, "t"], TWO, "(n, C, T)"),
    ],
)
def test_onnx_graphs_say_their_layout(shape, signal, layout):
    """Found by trying; another size is refused."""
    onnxruntime, onnx = pytest.importorskip("onnxruntime"), pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    entry = helper.make_tensor_value_info("x", kind, shape)
    out = helper.make_tensor_value_info("y", kind, ["n"])
    axes = list(range(1, len(shape)))
    node = helper.make_node("ReduceL2", ["x"], ["y"], axes=axes, keepdims=0)
    graph = helper.make_graph([node], "g", [entry], [out])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )

    assert layout_of(session, signal).provenance["input"]["layout"] == layout
    with pytest.raises(eblime.ModelError, match=r"in no layout\. Check the number of channels"):
        layout_of(session, np.vstack([TWO, TWO]))


def test_a_wrapped_model_is_wrapped_once():
    """`replace` of an explainer keeps one layer."""
    wrapped = SignalModel.wrap(SignalModel.wrap(first, "first"), "auto")
    assert wrapped.model is first
    assert wrapped.layout == "auto"
