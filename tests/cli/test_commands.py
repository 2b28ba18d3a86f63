"""The commands `explain`, `show` and `compare`, and loading models and labels."""

import io as io_
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import run_command
from hostile import NASTY, renamed
from PIL import Image
from test_storage import explained

import eblime
from eblime.batch.inputs import read_table
from eblime.cli.app import main
from eblime.cli.assembly import load_labels, load_model
from eblime.cli.kinds import file_items, parse_hide, parse_segmentation, photo_size
from eblime.cli.show import print_explanation, save_figure, show_page
from eblime.domains.image.photo import read_photo

MODEL = '''
import numpy as np

def green(batch):
    """Share of green in the upper left quarter, and the rest."""
    share = batch[:, : batch.shape[1] // 2, : batch.shape[2] // 2, 1].mean(axis=(1, 2)) / 255
    return np.stack([share, 1 - share], axis=1)

def make():
    return green

def broken(batch):
    raise RuntimeError("the weights\\nare gone")
'''
GRID = "grid:rows=3,columns=3"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with two photos, a model in Python and names for its outputs."""
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        pixels = rng.integers(1, 256, (24, 30, 3), dtype=np.uint8)
        (tmp_path / "photos").mkdir(exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{name}.png")
    (tmp_path / "shades.py").write_text(MODEL)
    (tmp_path / "names.txt").write_text("green\nother\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def explain(capsys, *words, model="shades:green"):
    """Run `eblime explain image` with few superpixels and a fast method."""
    settings = ("--model", model, "--segmentation", GRID, "--masks", 60, "--hide", 0)
    return run_command(capsys, "explain", "image", *words, *settings, "--method", "bayeslime")


def test_explaining_a_photo_writes_four_files_and_prints_a_table(folder, capsys):
    """Explanation, JSON, PNG and HTML; the table names the target."""
    code, out, err = explain(capsys, "photos/a.png", "--labels", "names.txt", "--target", "green")
    written = folder / "eblime-out"

    assert (code, err) == (0, "")
    assert out.startswith("green: predicted")
    assert "superpixel 0" in out
    assert sorted(path.suffix for path in written.iterdir()) == [
        ".eblime",
        ".html",
        ".json",
        ".png",
    ]
    e = eblime.load(written / "a.eblime")
    assert json.loads((written / "a.json").read_text())["label"] == e.label == "green"
    assert "a.png: why &#39;green&#39;?" in (written / "a.html").read_text(encoding="utf8")
    assert (written / "a.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_broken_photo_does_not_stop_the_others_in_a_folder(folder, capsys):
    """It is reported, the others are explained, and the exit code is 2."""
    (folder / "photos" / "broken.jpg").write_bytes(b"not a picture")
    code, out, err = explain(capsys, "photos", "--out", "all")

    assert code == 2
    assert out.count("predicted") == 2
    assert "broken.jpg" in err
    assert "1 of 3 inputs failed" in err
    assert (folder / "all" / "b.html").exists()


def test_json_prints_one_document_per_line_and_nothing_else(folder, capsys):
    """Other programs can read standard output line by line."""
    code, out, _ = explain(capsys, "photos", "--json", "--prob", "0.8")
    lines = [json.loads(line) for line in out.splitlines()]

    assert code == 0
    assert [line["prob"] for line in lines] == [0.8, 0.8]


def test_the_same_seed_gives_the_same_numbers(folder, capsys):
    """Another seed gives other numbers."""
    seen = []
    for seed in (1, 1, 2):
        _, out, _ = explain(capsys, "photos/a.png", "--json", "--seed", seed, "--masks", "40")
        seen.append([row["mean"] for row in json.loads(out)["features"]])

    assert seen[0] == seen[1] != seen[2]


def test_show_prints_a_saved_explanation(folder, capsys):
    """As a table, a picture, a page, or JSON."""
    explained().save("e.eblime")
    code, out, _ = run_command(capsys, "show", "e.eblime", "--png", "d.png", "--kind", "density")
    assert code == 0
    assert "superpixel" in out
    assert (folder / "d.png").exists()

    code, out, error = run_command(capsys, "show", "e.eblime", "--png", "d.png", "--kind", "nope")
    assert (code, out) == (2, "")
    assert "--kind must be one of 'intervals'" in error

    _, out, _ = run_command(capsys, "show", "e.eblime", "--json", "--html", "e.html")
    assert len(json.loads(out)["features"]) == 9
    assert (folder / "e.html").exists()


def test_compare_prints_both_explanations(folder, capsys):
    """Means and intervals of both, and what each estimates."""
    explained().save("a.eblime")
    explained("bayeslime").save("b.eblime")
    code, out, _ = run_command(capsys, "compare", "a.eblime", "b.eblime", "--png", "both.png")

    assert code == 0
    assert "BayesLIME" in out
    assert "Means, with 95 % intervals" in out
    assert "superpixel 8" in out
    assert (folder / "both.png").exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("explain", "image", "none.png", "--model", "shades:green"), "no photo or folder"),
        (("explain", "image", "photos/a.png", "--model", "shades:blue"), "has no attribute 'blue'"),
        (
            ("explain", "image", "photos/a.png", "--model", "nowhere:x"),
            "no Python module",
        ),
        (("explain", "image", "photos/a.png", "--model", "m.onnx"), "no model file 'm.onnx'"),
        (
            ("explain", "image", "photos/a.png", "--model", "names.txt"),
            "does not know '.txt'",
        ),
        (("explain", "image", "photos/a.png"), "Missing option"),
        (("explain", "image", "photos/a.png", "--model", "shades:broken"), "the weights are gone"),
        (
            ("explain", "image", "photos/a.png", "--model", "shades:green", "--prob", "95"),
            "--prob must be > 0 and < 1",
        ),
        (
            ("explain", "image", "photos/a.png", "--model", "shades:green", "--out", "names.txt"),
            "File exists: ",
        ),
        (
            ("explain", "image", "photos/a.png", "--model", "shades:green", "--method", "magic"),
            "must be one of",
        ),
        (
            ("explain", "image", "photos/a.png", "--model", "shades:green", "--target", "blue"),
            "--target must be a column number",
        ),
        (("show", "names.txt"), "not a whole eblime explanation"),
        (("show", "gone.eblime"), "gone.eblime"),
        (("dance",), "No such command"),
    ],
)
def test_errors_are_one_line_with_exit_code_2(folder, capsys, words, complaint):
    """No traceback, and nothing on standard output."""
    code, out, err = run_command(capsys, *words)

    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert complaint in err


def test_debug_raises_the_error_itself(folder):
    """The flag may be given anywhere."""
    words = ["explain", "image", "photos/a.png", "--debug", "--model", "shades:broken"]
    with pytest.raises(eblime.ModelError, match="the weights"):
        main(words)


def test_pickles_need_trust_pickle(folder, capsys):
    """A pickle can run any code: it is refused without the flag and loaded with it."""
    with (folder / "m.pkl").open("wb") as file:
        pickle.dump(load_model("shades:green"), file)
    code, _, err = explain(capsys, "photos/a.png", model="m.pkl")
    assert (code, "--trust-pickle" in err) == (2, True)

    code, out, _ = explain(capsys, "photos/a.png", "--trust-pickle", model="m.pkl")
    assert (code, "predicted" in out) == (0, True)


def test_skops_files_need_no_trust(folder):
    """A scikit-learn model in a skops file is loaded without running code from it."""
    io = pytest.importorskip("skops.io")
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression().fit(np.eye(4), [0, 1, 0, 1])
    io.dump(model, folder / "m.skops")

    assert hasattr(load_model(str(folder / "m.skops")), "predict_proba")


def test_a_function_can_create_the_model(folder):
    """`module:name()` calls the function."""
    assert load_model("shades:make()").__name__ == "green"


@pytest.mark.parametrize(("channels", "size", "wanted"), [(1, None, (0, 0, 1)), (3, 8, (8, 8, 3))])
def test_photos_are_grey_for_a_network_of_one_channel(channels, size, wanted):
    """By the first layer, whatever is around it; other models get colours."""
    torch = pytest.importorskip("torch")
    network = torch.nn.Sequential(torch.nn.Sequential(torch.nn.Conv2d(channels, 4, 3)))

    assert photo_size(network, size) == wanted
    assert photo_size(eblime.TorchModel(network), size) == wanted
    assert photo_size(len, None) == (0, 0, 3)


def test_photos_of_any_size_become_grey(tmp_path):
    """And keep their size."""
    Image.new("RGB", (6, 4), (255, 0, 0)).save(tmp_path / "a.png")

    assert read_photo(tmp_path / "a.png", (0, 0, 1)).pixels.shape == (4, 6)


def test_photos_are_scaled_to_the_size_of_an_onnx_graph(folder, capsys):
    """The size comes from the graph, the scale of the pixels from --normalise."""
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("ReduceMean", ["x"], ["y"], axes=[2, 3], keepdims=0)],
        "g",
        [helper.make_tensor_value_info("x", kind, [None, 3, 12, 16])],
        [helper.make_tensor_value_info("y", kind, [None, 3])],
    )
    net = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(net, folder / "net.onnx")
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (24, 32, 3), dtype=np.uint8)).save(
        "photos/a.png"
    )
    words = ("photos/a.png", "--normalise", "imagenet", "--activation", "none")
    code, _, err = explain(capsys, *words, model="net.onnx")
    e = eblime.load(folder / "eblime-out" / "a.eblime")

    assert (code, err) == (0, "")
    assert e.scene.shown.shape == (12, 16, 3)
    mean = e.scene.shown.mean(axis=(0, 1)) / 255
    wanted = (mean - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    assert e.prediction == pytest.approx(wanted.max(), rel=1e-3)
    words = (*words, "--cache", "answers.db", "--json")
    calls = [
        json.loads(explain(capsys, *words, model="net.onnx")[1])["provenance"]["model_calls"]
        for _ in range(2)
    ]
    assert calls[0] > calls[1] == 1  # the file is recognised; one answer is asked again


def test_labels_are_lines_or_json(folder):
    """One per line, a list, or an object by column."""
    (folder / "l.json").write_text('["a", "b"]')
    (folder / "o.json").write_text('{"3": "c"}')
    (folder / "n.json").write_text("3")

    assert load_labels(folder / "names.txt") == ["green", "other"]
    assert load_labels(folder / "l.json") == ["a", "b"]
    assert load_labels(folder / "o.json") == {3: "c"}
    with pytest.raises(ValueError, match="a JSON list of names"):
        load_labels(folder / "n.json")
    (folder / "k.json").write_text('{"third": "c"}')
    with pytest.raises(ValueError, match=r"k\.json must be .* from column numbers to names"):
        load_labels(folder / "k.json")
    (folder / "latin.txt").write_bytes("Bär".encode("latin1"))
    with pytest.raises(ValueError, match=r"latin\.txt must be a text in UTF-8"):
        load_labels(folder / "latin.txt")


def test_segmentation_and_hide_are_parsed():
    """Settings after a colon, numbers and colours."""
    assert parse_segmentation("slic") == "slic"
    assert parse_segmentation("slic:n_segments=9,convert2lab=False") == (
        "slic",
        {"n_segments": 9, "convert2lab": False},
    )
    assert parse_hide("#ff8000") == (255, 128, 0)
    assert parse_hide("0.5") == 0.5
    assert parse_hide("blur") == "blur"
    for text in ("#80", "#80808g"):
        with pytest.raises(ValueError, match=r"--hide must be a colour such as #808080"):
            parse_hide(text)
    with pytest.raises(ValueError, match="--segmentation must be"):
        parse_segmentation("slic:many")


@pytest.mark.parametrize("name", NASTY)
def test_hostile_names_cannot_control_the_terminal(monkeypatch, capsys, name):
    """With colours on, the only control sequences are our own colours."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    print_explanation(renamed(explained(), name), prob=0.95, top=5)
    out = capsys.readouterr().out
    plain = re.sub("\x1b\\[[0-9;]*m", "", out)

    assert "\x1b" in out
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", plain)


def test_no_browser_is_opened_without_a_screen(monkeypatch, tmp_path, capsys):
    """The page is named instead."""
    (tmp_path / "x.html").touch()
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)

    show_page(tmp_path / "x.html")
    assert capsys.readouterr().out.startswith("No graphical browser here; the page is ")


def test_python_m_eblime_runs_the_command():
    """It prints the version."""
    command = [sys.executable, "-m", "eblime", "--version"]
    version = subprocess.run(command, capture_output=True, text=True, check=True)

    assert version.stdout.strip() == f"eblime {eblime.__version__}"


def test_inputs_are_never_overwritten(folder, capsys):
    """Results in the folder of the photo get another name."""
    before = (folder / "photos" / "a.png").read_bytes()
    code, _, _ = explain(capsys, "photos/a.png", "--out", "photos")

    assert code == 0
    assert (folder / "photos" / "a.png").read_bytes() == before
    assert (folder / "photos" / "a-explained.png").exists()


def test_result_files_have_different_names(tmp_path):
    """Also if file names differ in their ending only, on disks that ignore case."""
    for name in ("a.jpg", "a.png", "a.jpg.png", "b.jpg", "B.png"):
        (tmp_path / name).touch()
    items = file_items(tmp_path, (".jpg", ".png"), Path.read_bytes)

    assert len({item.stem.lower() for item in items}) == 5


def test_a_picture_is_written_whole_or_not_at_all(tmp_path):
    """An error while it is drawn leaves the old one."""

    class Broken:
        """A figure that fails half way."""

        def savefig(self, file, **settings):
            """Write some bytes."""
            file.write(b"half")
            raise RuntimeError("no memory")

    (tmp_path / "a.png").write_bytes(b"old")
    with pytest.raises(RuntimeError, match="no memory"):
        save_figure(Broken(), tmp_path / "a.png", dpi=50)
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        save_figure(Broken(), tmp_path / "missing" / "a.png", dpi=50)

    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
    assert (tmp_path / "a.png").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("mode", "value", "wanted"),
    [("I;16", 32768, 128), ("RGBA", (10, 10, 10, 0), 255), ("F", 0.5, 128), ("P", 3, 0)],
)
def test_photos_of_any_depth_are_read_as_eight_bits(tmp_path, mode, value, wanted):
    """16 bits are scaled, and transparent pixels become white."""
    pixels = np.full((4, 4), value, dtype=np.uint16) if mode == "I;16" else None
    image = Image.fromarray(pixels) if pixels is not None else Image.new(mode, (4, 4), value)
    path = tmp_path / ("x.tiff" if mode == "F" else "x.png")
    image.save(path)
    found = read_photo(path, None).pixels

    assert found.shape == (4, 4, 3)
    assert found.dtype == np.uint8
    if wanted:
        assert abs(found.astype(int) - wanted).max() <= 1


def test_output_of_the_model_does_not_mix_with_json(folder, capsys):
    """It goes to standard error."""
    with (folder / "shades.py").open("a") as file:
        file.write("\ndef chatty(batch):\n    print('hello')\n    return green(batch)\n")
    code, out, err = explain(capsys, "photos/a.png", "--json", model="shades:chatty")

    assert code == 0
    assert json.loads(out)["label"] == "output 1" or json.loads(out)["label"] == "output 0"
    assert "hello" in err


def test_eblime_without_arguments_prints_help(capsys):
    """On several lines, with every command and exit code 0."""
    code, out, _ = run_command(capsys)

    assert code == 0
    assert len(out.splitlines()) > 10
    for command in ("explain", "demo", "show", "compare"):
        assert command in out


@pytest.mark.parametrize("group", ["", "explain", "batch"])
def test_summaries_of_commands_are_not_cut_off(monkeypatch, capsys, group):
    """A list of commands has whole sentences on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run_command(capsys, *group.split(), "--help")
    summaries = out.partition("\nCommands:\n")[2].splitlines()

    assert len(summaries) >= 3
    assert [line for line in summaries if not line.endswith(".") or line.endswith("...")] == []


def test_commands_are_listed_in_the_order_of_their_use(capsys):
    """The first command is the one to try first."""
    _, out, _ = run_command(capsys, "--help")
    names = [line.split()[0] for line in out.partition("\nCommands:\n")[2].splitlines()]

    assert names == ["demo", "explain", "show", "compare", "batch", "report"]


@pytest.mark.filterwarnings("ignore:There are more features")
def test_two_masks_give_files(folder, capsys):
    """Their intervals say little, but the page and the numbers are written; one is refused."""
    words = ("explain", "image", "photos/a.png", "--model", "shades:green", "--hide", 0)
    words = (*words, "--segmentation", GRID, "--masks")
    code, _, _ = run_command(capsys, *words, 2)

    assert code == 0
    assert run_command(capsys, *words, 1)[0] == 2
    assert (folder / "eblime-out" / "a.html").exists()


def test_compare_says_what_each_estimates_if_they_differ(folder, capsys):
    """Coefficients with and without an intercept are not on one scale."""
    e = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one two three")
    e.save("a.eblime")
    e.refit("eblime-paper").save("b.eblime")
    e.refit("lime").save("c.eblime")

    _, different, _ = run_command(capsys, "compare", "a.eblime", "b.eblime")
    _, same, _ = run_command(capsys, "compare", "a.eblime", "c.eblime")
    assert "Note: The methods estimate different quantities" in different
    assert "Note: b: Importances are coefficients of the linear fit with no inte" in different
    assert "Note" not in same


def test_compare_accepts_a_constant_model(folder, capsys):
    """Its intervals have no width."""
    constant = eblime.TextExplainer(lambda texts: [0.5] * len(texts), n_masks=20)
    constant.explain("one two three four five six").save("a.eblime")
    code, out, err = run_command(capsys, "compare", "a.eblime", "a.eblime")

    assert code == 0
    assert err == ""
    assert "*" not in out


def test_compare_accepts_methods_without_intervals(folder, capsys):
    """LIME has means only."""
    explained().save("a.eblime")
    explained("lime").save("b.eblime")
    code, out, _ = run_command(capsys, "compare", "a.eblime", "b.eblime", "--png", "c.png")

    assert code == 0
    assert "LIME" in out


def test_explain_tabular_reads_files(folder, capsys):
    """A CSV file and a scikit-learn model: the label column is left out automatically."""
    io = pytest.importorskip("skops.io")
    from sklearn.datasets import load_wine
    from sklearn.ensemble import RandomForestClassifier

    wine = load_wine(as_frame=True)
    io.dump(RandomForestClassifier(5, random_state=0).fit(wine.data, wine.target), "w.skops")
    wine.frame.to_csv("wine.csv", index=False)
    words = ("explain", "tabular", "wine.csv", "--model", "w.skops", "--row", "3,170")
    code, out, err = run_command(capsys, *words, "--masks", 200)

    assert (code, err) == (0, "")
    assert out.count("predicted") == 2
    assert (folder / "eblime-out" / "wine-row170.html").exists()
    masks = eblime.load(folder / "eblime-out" / "wine-row170.eblime").masks  # as in Python
    assert (masks[1::2] == 1 - masks[:-1:2]).all() or (masks[::2] == 1 - masks[1::2]).all()
    for bad, complaint in (
        (("--row", "999"), "--row must be from 0 to 177"),
        (("--drop", "nothing"), "--drop must name columns"),
        (("--drop", "alcohol"), "missing: 'alcohol'"),
        (("--categorical", "nothing"), "--categorical must name columns"),
        (("--group", "x"), "--group must be like"),
    ):
        code, _, err = run_command(capsys, *words, *bad)
        assert code == 2
        assert complaint in err


def test_categories_that_a_csv_file_lost_are_named(folder, capsys):
    """The message of a model that needs them says how; then the row has them too."""
    (folder / "boosted.py").write_text(
        "def score(rows):\n"
        "    if str(rows['job'].dtype) != 'category':\n"
        "        raise ValueError('pandas dtypes must be int, float or bool; job: object')\n"
        "    return (rows['job'] == 'cook') * 0.5 + rows['age'] / 100\n"
    )
    lines = ["age,job", *(f"{20 + k},{'cook' if k % 3 else 'clerk'}" for k in range(12))]
    (folder / "people.csv").write_text("\n".join(lines))
    words = ("explain", "tabular", "people.csv", "--model", "boosted:score", "--row", "1")
    code, _, err = run_command(capsys, *words)
    assert code == 2
    assert "CSV files do not store categories: name their columns with --categorical." in err
    code, out, err = run_command(capsys, *words, "--categorical", "job")

    assert (code, err) == (0, "")
    assert "job = cook" in out


def test_explain_text_reads_arguments_files_and_standard_input(folder, capsys, monkeypatch):
    """A folder is explained file by file."""
    (folder / "mood.py").write_text("def score(texts):\n    return ['good' in t for t in texts]\n")
    (folder / "notes").mkdir()
    (folder / "notes" / "one.txt").write_text("a good day", encoding="utf8")
    for given in ("such a good day", "notes/one.txt", "notes", "-"):
        monkeypatch.setattr(sys, "stdin", io_.StringIO("good evening"))
        code, out, _ = run_command(capsys, "explain", "text", given, "--model", "mood:score")

        assert code == 0
        assert "word 'good'" in out
    code, _, err = run_command(capsys, "explain", "text", "none.txt", "--model", "mood:score")
    assert (code, "no text file" in err) == (2, True)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [("", "must not be empty"), (" ", "must not be empty"), ("many.csv", "eblime batch text")],
)
def test_explain_text_refuses_what_is_not_one_text(folder, capsys, given, complaint):
    """An empty argument is not the current folder, and a table is not one text."""
    (folder / "mood.py").write_text("def score(texts):\n    return ['good' in t for t in texts]\n")
    (folder / "one.txt").write_text("a good day", encoding="utf8")
    (folder / "many.csv").write_text("text\na good day\n", encoding="utf8")
    code, out, err = run_command(capsys, "explain", "text", given, "--model", "mood:score")

    assert (code, out) == (2, "")
    assert complaint in err


def test_a_table_with_semicolons_is_refused(folder, capsys):
    """Otherwise every column of the model would be missing from it."""
    (folder / "shades.py").write_text("def green(rows):\n    return rows['g']\n")
    (folder / "two.csv").write_text("r;g\n1;2\n3;4\n", encoding="utf8")
    code, _, err = run_command(capsys, "explain", "tabular", "two.csv", "--model", "shades:green")

    assert code == 2
    assert "first line has semicolons" in err


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_table_with_two_columns_of_one_name_is_refused(folder, capsys, ending):
    """The second would be called `g.1` by pandas, so that the model would get other columns."""
    (folder / "shades.py").write_text("def green(rows):\n    return rows['g']\n")
    text = "r,g,g\n1,2,2\n3,4,4\n".replace(",", "," if ending == "csv" else "\t")
    (folder / f"three.{ending}").write_text(text, encoding="utf8")
    file = f"three.{ending}"
    code, _, err = run_command(capsys, "explain", "tabular", file, "--model", "shades:green")

    assert code == 2
    assert "columns must have different names; 'g' is there twice" in err


def test_columns_without_a_name_or_with_a_number_are_read(folder):
    """Only names that are there twice are refused."""
    (folder / "index.csv").write_text(",g,g.1,\n1,2,2,5\n3,4,4,6\n", encoding="utf8")

    assert len(read_table(folder / "index.csv").columns) == 4


def test_a_text_that_cannot_be_read_does_not_stop_the_others(folder, capsys):
    """It is reported, and the exit code is 2."""
    (folder / "mood.py").write_text("def score(texts):\n    return ['good' in t for t in texts]\n")
    (folder / "notes").mkdir()
    (folder / "notes" / "bad.txt").write_bytes(b"\xff\xfe\xff")
    (folder / "notes" / "one.txt").write_text("a good day", encoding="utf8")
    code, out, err = run_command(capsys, "explain", "text", "notes", "--model", "mood:score")

    assert code == 2
    assert "word 'good'" in out
    assert "bad.txt" in err
    assert "must be a text in UTF-8" in err


def test_batch_text_has_the_options_of_explain_text(folder, capsys):
    """Positions become features of their own."""
    pytest.importorskip("pyarrow")
    (folder / "mood.py").write_text("def score(texts):\n    return ['good' in t for t in texts]\n")
    (folder / "lines.jsonl").write_text('"a good good day"\n')
    words = "batch text lines.jsonl --model mood:score --positions --hide _ --design bernoulli"
    code, _, err = run_command(capsys, *words.split(), "--workers", 1, "--out", "run")
    features = list(eblime.open_run("run").frame()["feature"])

    assert (code, err) == (0, "")
    assert "word 'good' #2" in features


def test_batch_pools_a_run(folder, capsys):
    """`--pool` stores a second run within the first, with its own page."""
    pytest.importorskip("pyarrow")
    (folder / "mood.py").write_text("def score(texts):\n    return ['good' in t for t in texts]\n")
    (folder / "lines.jsonl").write_text('"a good day"\n"no good at all"\n')
    words = "batch text lines.jsonl --model mood:score --keep --pool --workers 1 --out run"
    code, out, _ = run_command(capsys, *words.split())

    assert code == 0
    assert "run/pooled" in out
    assert (folder / "run" / "pooled" / "report.html").exists()
    assert eblime.open_run("run/pooled").settings["pooled"] == 2


@pytest.mark.slow
def test_answers_are_stored_and_calls_are_repeated(folder, capsys):
    """`--cache` asks nothing twice; `--retry`, `--timeout` and `--concurrency` change no number."""
    asked = ["explain", "image", "photos/a.png", "--model", "shades:green", "--json"]
    asked += ["--segmentation", GRID, "--out", "out", "--method", "bayeslime"]
    _, plain, _ = run_command(capsys, *asked)
    more = ["--retry", "2", "--timeout", "60", "--concurrency", "2"]
    stored = ["--cache", "answers.db", "--model-id", "green"]
    code, careful, _ = run_command(capsys, *asked, *stored, *more)
    calls = len(eblime.AnswerCache("answers.db"))
    _, again, _ = run_command(capsys, *asked, *stored)

    assert code == 0
    assert calls == 2**9 == len(eblime.AnswerCache("answers.db"))
    found = [json.loads(text)["features"] for text in (plain, careful, again)]
    assert found[0] == found[1] == found[2]
    code, _, error = run_command(capsys, *asked, "--cache", "photos")
    assert code == 2
    assert "--cache must be the path of a file" in error
    code, _, error = run_command(capsys, *asked, "--model-id", "a")
    assert code == 2
    assert "--model-id needs --cache" in error
    code, _, error = run_command(capsys, *asked, "--cache", "answers.db")
    assert code == 2
    assert "--cache needs --model-id, a name for this model: what it returns" in error


def test_a_model_that_was_edited_is_refused(folder, capsys):
    """The answers of the former model are under the same name: one of them is asked again."""
    asked = ["explain", "image", "photos/a.png", "--model", "shades:green", "--json"]
    asked += ["--segmentation", GRID, "--method", "lime", "--masks", "50"]
    asked += ["--cache", "answers.db", "--model-id", "green"]
    assert run_command(capsys, *asked)[0] == 0
    (folder / "shades.py").write_text(MODEL.replace("return ", "return 0.5 * "))
    sys.modules.pop("shades", None)
    code, _, error = run_command(capsys, *asked)

    assert code == 2
    assert "--cache has answers of another model" in error
    assert "another --model-id" in error


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--engine", "slurm"), "--engine must be one of"),
        (("--cpus-per-worker", 1), "--cpus-per-worker and --gpus-per-worker are for"),
    ],
)
def test_errors_of_a_run_name_the_options(folder, capsys, words, complaint):
    """Not the parameters of the library."""
    pytest.importorskip("pyarrow")
    run_words = ("batch", "image", "photos", "--model", "shades:green", "--out", "run")
    code, _, err = run_command(capsys, *run_words, *words)

    assert code == 2
    assert complaint in err


def test_a_run_uses_a_cache(folder, capsys):
    """`eblime batch` has the same options, except that its timeout is for an input."""
    pytest.importorskip("pyarrow")
    words = ["batch", "image", "photos", "--model", "shades:green", "--segmentation", GRID]
    words += ["--workers", "1", "--cache", "answers.db", "--retry", "1", "--concurrency", "2"]
    code, _, _ = run_command(capsys, *words, "--model-id", "green", "--out", "a")

    assert code == 0
    assert len(eblime.AnswerCache("answers.db")) == 2 * 2**9
    words = ["batch", "--resume", "a", "--model", "shades:green", "--inputs", "photos"]
    words += ["--cache", "answers.db"]
    assert run_command(capsys, *words, "--model-id", "green")[0] == 0


@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv"])
def test_a_table_that_cannot_be_read_is_named(folder, capsys, name):
    """Whatever its format."""
    pytest.importorskip("pyarrow")
    (folder / name).write_bytes(b"\xff\xfe no table")
    code, _, err = run_command(capsys, "explain", "tabular", name, "--model", "shades:green")

    assert code == 2
    assert f"{name}' cannot be read as a table" in err


def tall(folder):
    """A folder with two tall photos, one of which a camera has stored on its side."""
    (folder / "tall").mkdir()
    pixels = np.full((60, 40, 3), 200, dtype=np.uint8)
    pixels[:, -4:] = 0
    upright = Image.fromarray(pixels)
    turned = Image.Exif()
    turned[0x0112] = 6  # rotate by 90 degrees to look at it
    upright.rotate(90, expand=True).save(folder / "tall" / "a.png", exif=turned)
    upright.save(folder / "tall" / "b.png")


FITS = {  # what is said, the upper left corner, and the middle
    "crop": ("40 x 60 pixels cropped to the middle 40 x 40", 200),
    "pad": ("40 x 60 pixels with plain borders to 60 x 60", 180),
    "stretch": ("40 x 60 pixels stretched to 20 x 20", 200),
}


@pytest.mark.parametrize("fit", [*FITS, None])
def test_a_photo_of_another_shape(folder, capsys, fit):
    """The console says so once, and the provenance and the page for each; "pad" is usual."""
    tall(folder)
    words, corner = FITS[fit or "pad"]
    given = ("--fit", fit) if fit else ()
    code, _, err = explain(capsys, "tall", "--size", 20, *given, "--json")
    e = eblime.load("eblime-out/b.eblime")

    assert code == 0
    assert err.count(words) == 1
    assert "a.png" in err
    assert e.provenance["input"]["fit"] == words
    assert f"fit {words}" in Path("eblime-out/b.html").read_text(encoding="utf8")
    assert e.scene.shown.shape == (20, 20, 3)
    assert e.scene.shown[0, 0, 0] == corner
    assert (e.scene.shown[:, 10] == 200).all()


def test_photos_of_the_right_shape_give_no_message(folder, capsys):
    """Nor have they a word in the provenance."""
    Image.fromarray(np.full((40, 40, 3), 200, dtype=np.uint8)).save("square.png")
    code, _, err = explain(capsys, "square.png", "--size", 20, "--json")

    assert (code, err) == (0, "")
    assert "fit" not in eblime.load("eblime-out/square.eblime").provenance["input"]


def test_the_depth_of_pixels_is_an_option(folder, capsys):
    """As in Python: 12 bits need a word, and a window may be given instead."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("ReduceMean", ["x"], ["y"], axes=[2, 3], keepdims=0)],
        "g",
        [helper.make_tensor_value_info("x", kind, [None, 1, 12, 16])],
        [helper.make_tensor_value_info("y", kind, [None, 1])],
    )
    net = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(net, folder / "net.onnx")
    deep = np.random.default_rng(0).integers(0, 4096, (12, 16)).astype(np.uint16)
    Image.fromarray(deep).save("deep.png")
    refused, _, message = explain(capsys, "deep.png", model="net.onnx")
    assert refused == 2
    assert "Set --bits (such as 12," in message
    for words, divisor in ((("--bits", 12), 4095), (("--window", "0,4000"), 4000)):
        code, _, err = explain(capsys, "deep.png", *words, model="net.onnx")
        e = eblime.load("eblime-out/deep.eblime")

        assert (code, err) == (0, "")
        assert e.prediction == pytest.approx((deep / divisor).clip(0, 1).mean(), rel=1e-6)
        assert e.provenance["input"]["pixels"] == f"0 to {divisor} as 0 to 1"
        wanted = eblime.ImageExplainer(
            "net.onnx",
            segmentation=("grid", {"rows": 3, "columns": 4}),
            hide=0,
            window=(0, divisor),
            n_masks=100,
        ).explain(deep)
        assert wanted.prediction == pytest.approx(e.prediction, rel=1e-6)


def test_a_run_reports_cropped_photos_before_it_starts(folder, capsys):
    """Once, and a resumed run has the same --fit."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    tall(folder)
    settings = ("--model", "shades:green", "--segmentation", GRID, "--hide", 0, "--size", 20)
    words = ("batch", "image", "tall", *settings, "--out", "run")
    code, _, err = run_command(capsys, *words, "--fit", "crop")
    again, _, message = run_command(capsys, *words)

    assert code == 0, err
    assert err.count("40 x 60 pixels cropped to the middle 40 x 40") == 1
    assert again == 2
    assert "fit='crop'" in message
