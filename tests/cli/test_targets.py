"""`--target` and `--targets`: which outputs of the model are explained."""

import json
import sys

import numpy as np
import pytest
from commands import run_command
from PIL import Image

import eblime

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
    return tmp_path


def explain(capsys, *words, model="colours:scores"):
    """Run `eblime explain image` with few superpixels: exit code and output."""
    settings = ("--segmentation", "grid:rows=3,columns=3", "--masks", "60", "--hide", "0")
    explained = ("explain", "image", "photo.png", "--model", model)
    return run_command(capsys, *explained, *settings, *words)


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
    how = ("--fit", "stretch", "--activation", "none")
    refused, _, complaint = explain(capsys, *how, model="net.onnx")
    code, _, err = explain(capsys, *how, "--output-name", "minus", model="net.onnx")

    assert refused == 2
    assert "'mean' of shape" in complaint
    assert "'minus' of shape" in complaint
    assert code == 0
    assert "stretched to 16 x 12" in err
    assert eblime.load(folder / "eblime-out" / "photo.eblime").prediction < 0


@pytest.mark.slow
def test_each_target_has_its_own_files(folder, capsys):
    """All use one set of masks; the files are named after the labels."""
    code, out, err = explain(capsys, "--targets", "2", "--labels", "names.txt", "--json")
    made = sorted(path.name for path in (folder / "eblime-out").iterdir())
    blue = eblime.load(folder / "eblime-out" / "photo-blue.eblime")
    green = eblime.load(folder / "eblime-out" / "photo-green.eblime")

    assert (code, err) == (0, "")
    assert [json.loads(line)["label"] for line in out.splitlines()] == ["blue", "green"]
    assert made == [
        f"photo-{label}{suffix}"
        for label in ("blue", "green")
        for suffix in (".eblime", ".html", ".json", ".png")
    ]
    np.testing.assert_array_equal(blue.masks, green.masks)
    assert [label for label, _ in blue.provenance["top_classes"]] == ["blue", "green", "red light"]


def test_a_target_is_a_name_first_and_a_number_second(folder, capsys):
    """Of a classifier with the classes 1, 2 and 3, `--target 1` is class 1, not column 1."""
    code, _, err = explain(capsys, "--target", "1", model="colours:numbered")
    first = eblime.load(folder / "eblime-out" / "photo.eblime")
    explain(capsys, "--target", "0", model="colours:numbered")
    second = eblime.load(folder / "eblime-out" / "photo.eblime")

    assert (code, err) == (0, "")
    assert (first.target, first.label) == (0, "1")
    assert (second.target, second.label) == (0, "1")  # no class has the name 0: column 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--target", "7"), "--target must be < 3"),
        (("--target", "purple"), "must be a column number if the outputs have no --labels"),
        (
            ("--target", "purple", "--labels", "names.txt"),
            "--target must be among --labels, 'red light', 'green', 'blue'; got 'purple'",
        ),
        (("--target", "1", "--targets", "2"), "--target and --targets cannot be used together"),
        (("--method", "magic"), "--method must be one of"),
    ],
)
def test_errors_name_the_option(folder, capsys, words, complaint):
    """Not the parameter of the Python function."""
    code, _, err = explain(capsys, *words)

    assert code == 2
    assert complaint in err


def test_a_run_explains_a_class_that_was_chosen(folder, capsys):
    """--target is required for more than two classes; "predicted" is the class of each input."""
    (folder / "photos").mkdir()
    (folder / "photo.png").rename(folder / "photos" / "photo.png")
    words = ("batch", "image", "photos", "--model", "colours:scores", "--segmentation", "grid")
    words += ("--out", "run", "--workers", 1, "--masks", 60)
    refused, _, complaint = run_command(capsys, *words)
    assert refused == 2
    assert "--target must be given for a model with 3 outputs" in complaint
    for target, again in ((2, ()), ("predicted", ("--overwrite",))):
        code, _, _ = run_command(capsys, *words, "--target", target, *again)
        assert code == 0
        assert set(eblime.open_run("run").frame()["label"]) == {"output 2"}
    refused, _, complaint = run_command(capsys, *words, "--target", 1)

    assert refused == 2
    assert "--overwrite" in complaint
