"""Which output of the model the commands explain."""

import sys

import numpy as np
import pytest
from PIL import Image

import eblime
from eblime.cli.app import main

MODEL = '''
import numpy as np
from types import SimpleNamespace

def scores(batch):
    """Shares of red, green and blue."""
    return batch.mean(axis=(1, 2)) / 765

class Numbered:
    """A classifier whose classes are the numbers 1, 2 and 3."""

    classes_ = np.array([1, 2, 3])

    def predict_proba(self, rows):
        return rows.reshape(len(rows), -1, 3).mean(axis=1) / 765

numbered = Numbered()
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a photo that is mostly blue, and models in Python."""
    pixels = np.random.default_rng(0).integers(1, 64, (24, 30, 3), dtype=np.uint8)
    pixels[..., 1] += 50
    pixels[..., 2] += 150
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    (tmp_path / "colours.py").write_text(MODEL)
    (tmp_path / "names.txt").write_text("red light\ngreen\nblue\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    sys.modules.pop("colours", None)
    return tmp_path


def explain(capsys, *words, model="colours:scores"):
    """`eblime explain image` with few superpixels: exit code and what was printed."""
    settings = ("--segmentation", "grid:rows=3,columns=3", "--masks", "60", "--hide", "0")
    with pytest.raises(SystemExit) as ended:
        main(["explain", "image", "photo.png", "--model", model, *settings, *words])
    seen = capsys.readouterr()
    return ended.value.code, seen.out, seen.err


def test_an_output_of_an_onnx_graph_is_chosen_by_name(folder, capsys):
    """A graph with two outputs needs --output-name; the error lists the names."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [
            helper.make_node("ReduceMean", ["x"], ["mean"], axes=[2, 3], keepdims=0),
            helper.make_node("Neg", ["mean"], ["minus"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", kind, [None, 3, 12, 16])],
        [helper.make_tensor_value_info(name, kind, [None, 3]) for name in ("mean", "minus")],
    )
    net = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(net, folder / "net.onnx")
    refused, _, complaint = explain(capsys, model="net.onnx")
    code, _, err = explain(capsys, "--output-name", "minus", model="net.onnx")

    assert refused == 2
    assert "'mean', 'minus'" in complaint
    assert (code, err) == (0, "")
    assert eblime.load(folder / "eblime-out" / "photo.eblime").prediction < 0
