"""A run folder from someone else: nothing that only its manifest names is read, sent or run."""

import json
import os
import pickle
import re
import shutil
import sys
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from eblime.batch.folder import with_checksum
from eblime.cli.app import main
from eblime.cli.batch import Recipe

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

GOOD = "def score(texts):\n    return ['good' in text for text in texts]\n"
RESUME = "batch --resume run --workers 1 --inputs lines.jsonl"
EVIL = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n" + GOOD


def command(line):
    """The exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    return ended.value.code


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of texts, started in the user's folder with the module `mood_of_mine` in it."""
    here = tmp_path / "mine"
    here.mkdir()
    (here / "mood_of_mine.py").write_text(GOOD)
    (here / "lines.jsonl").write_text('"a good day"\n"another day"\n')
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", list(sys.path))
    line = "batch text lines.jsonl --model mood_of_mine:score --out run --workers 1 --part-size 1"
    assert command(line) == 0
    return here / "run"


def edit(run, **changes):
    """Change settings in the manifest, and delete a part so that there is work left."""
    path = run / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["settings"]["about"] |= changes
    path.write_text(json.dumps(with_checksum(manifest)))
    for part in run.glob("part-000001-*"):
        part.unlink()


@pytest.fixture
def evil(tmp_path):
    """A folder with a module that creates a file when it is imported."""
    folder = tmp_path / "evil"
    folder.mkdir()
    for name in ("evil_mood", "mood_of_mine"):
        (folder / f"{name}.py").write_text(EVIL)
    return folder


class Marks:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_module_in_a_manifest_is_not_imported(run, evil, capsys):
    """Unless the user trusts the run."""
    edit(run, model="evil_mood:score")
    here = (evil / "evil_mood.py").rename(run.parent / "evil_mood.py")

    assert command("batch --resume run --workers 1") == 2
    error = capsys.readouterr().err
    assert "run would use --inputs" in error
    assert "or trust the folder: eblime batch" in error
    assert not here.with_name("ran").exists()
    assert "evil_mood" not in sys.modules
    assert command("batch --resume run --workers 1 --trust-run") == 0
    assert here.with_name("ran").exists()


def test_a_repeated_model_is_not_imported_from_a_folder_in_the_manifest(run, evil, capsys):
    """The user names the model, so it is imported from the folder of the user."""
    edit(run, imported_from=str(evil))
    sys.modules.pop("mood_of_mine")
    sys.path = [entry for entry in sys.path if entry != str(run.parent)]
    assert command(f"{RESUME} --model mood_of_mine:score") == 0
    for part in run.glob("part-000001-*"):
        part.unlink()
    assert sys.modules["mood_of_mine"].__file__ == str(run.parent / "mood_of_mine.py")

    sys.modules.pop("mood_of_mine")
    (run.parent / "mood_of_mine.py").unlink()
    sys.path_importer_cache.clear()
    assert command(f"{RESUME} --model mood_of_mine:score") == 2
    assert "no Python module 'mood_of_mine'" in capsys.readouterr().err
    assert not (evil / "ran").exists()


def test_another_model_than_that_of_the_run_is_refused(run, evil, capsys):
    """The message shows both."""
    assert command("batch --resume run --model evil_mood:score") == 2
    error = capsys.readouterr().err
    assert "created with --model mood_of_mine:score; this call has --model evil_mood:score" in error
    assert command(f"{RESUME} --model mood_of_mine:score") == 0


def test_a_file_that_has_changed_is_refused(run, capsys):
    """The run would mix two sets of labels."""
    names = run.parent / "names.txt"
    names.write_text("good\n")
    line = "batch text lines.jsonl --model mood_of_mine:score --labels names.txt --workers 1"
    assert command(f"{line} --part-size 1 --out labelled") == 0
    names.write_text("bad\n")
    edit(run.parent / "labelled")
    capsys.readouterr()

    assert command("batch --resume labelled --workers 1 --trust-run") == 2
    assert re.search(r"with labels=\"\['good'\] .*; this call has labels=", capsys.readouterr().err)
    assert command(line.replace("names", "none") + " --out none") == 2
    assert "There is no file 'none.txt' for --labels" in capsys.readouterr().err


@pytest.mark.parametrize("ending", [".pkl", ".pickle", ".joblib", ".PKL", ".txt", ""])
def test_a_pickle_in_a_manifest_is_not_read(run, evil, ending, capsys):
    """Not even with --trust-pickle, which only applies to a file that the user names."""
    model = evil / f"model{ending}"
    model.write_bytes(pickle.dumps(Marks(evil / "ran")))
    edit(run, model=str(model))

    for trust in ("", " --trust-pickle"):
        assert command("batch --resume run --workers 1" + trust) == 2
        assert "--model" in capsys.readouterr().err
    assert not (evil / "ran").exists()
    if ending == ".pkl":
        command(f"{RESUME} --model {model} --trust-pickle")
        assert (evil / "ran").exists()


class Recorder(BaseHTTPRequestHandler):
    """Notes everything that it is sent."""

    def do_GET(self):
        """Answer that nothing is here."""
        self.server.received.append((self.path, dict(self.headers)))
        self.send_error(404)

    do_HEAD = do_PUT = do_POST = do_GET

    def log_message(self, *args):
        """Print nothing."""


@pytest.fixture
def stranger(monkeypatch):
    """A server of the author of the run folder; the user has keys that it must not get."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    server.received = []
    for name in ("OPENAI_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "a secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("ending", ["", "#m.onnx", "?x=m.skops"])
def test_a_server_in_a_manifest_receives_nothing(run, stranger, ending, capsys):
    """Whatever its address ends in: it would get an API key and the inputs."""
    (run.parent / "notes.txt").write_text("It is a secret.\n\nIt is old.")
    (run.parent / "models.py").write_text("def score(prompts):\n    return [*map(len, prompts)]\n")
    line = "batch prompt lines.jsonl --sources notes.txt --model models:score --workers 1"
    assert command(f"{line} --part-size 1 --masks 8 --out asked") == 0
    address = f"http://127.0.0.1:{stranger.server_port}/v1{ending}"
    edit(run.parent / "asked", model=address)
    capsys.readouterr()

    assert command("batch --resume asked --workers 1") == 2
    error = capsys.readouterr().err
    assert f"--model {address}" in error
    assert f"--sources {run.parent / 'notes.txt'}" in error
    assert stranger.received == []


def test_a_store_in_a_manifest_receives_nothing(run, stranger, capsys):
    """Its address may have an endpoint, to which signed requests would be sent."""
    end = f"127.0.0.1:{stranger.server_port}"
    address = f"s3://bucket/lines.jsonl?endpoint_override={end}&scheme=http&region=us-east-1"
    edit(run, inputs=address)

    for words in ("", " --model mood_of_mine:score"):
        assert command(f"batch --resume run --workers 1{words}") == 2
        assert f"--inputs {address}" in capsys.readouterr().err
    assert stranger.received == []


@pytest.mark.parametrize(
    "address", ["reference::http://localhost:9", "evil://x", "http://localhost", "/etc/hostname"]
)
def test_inputs_in_a_manifest_are_not_opened(run, address, monkeypatch, capsys):
    """Neither files nor stores, some of which run code."""
    edit(run, inputs=address)
    monkeypatch.setattr("eblime.cli.batch.Recipe.inputs", lambda recipe: pytest.fail("opened"))

    assert command("batch --resume run --workers 1 --model mood_of_mine:score") == 2
    assert f"--inputs {address}" in capsys.readouterr().err


def test_a_file_in_a_manifest_must_be_named_by_its_own_option(run, capsys):
    """The message has a command that names everything; it works."""
    (run.parent / "names.txt").write_text("good\n")
    line = "batch text lines.jsonl --model mood_of_mine:score --labels names.txt --workers 1"
    assert command(f"{line} --part-size 1 --out labelled") == 0
    capsys.readouterr()
    assert command("batch --resume labelled --model mood_of_mine:score") == 2
    again = re.search(
        "eblime (batch --resume labelled --inputs .*) or trust", capsys.readouterr().err
    )
    assert f"--labels {run.parent / 'names.txt'}" in again[1]

    assert command(f"{again[1]} --workers 1") == 0
    assert command(f"{RESUME} --model mood_of_mine:score --labels names.txt") == 2
    assert "this call has --labels names.txt" in capsys.readouterr().err


def test_a_folder_that_has_changed_is_refused(run, capsys):
    """As a file is: the run would mix two sets of sources."""
    notes = run.parent / "notes"
    notes.mkdir()
    (notes / "a.txt").write_text("It opened in 1889.")
    (notes / "b.txt").write_text("In Paris.")
    (run.parent / "models.py").write_text("def score(prompts):\n    return [*map(len, prompts)]\n")
    line = "batch prompt lines.jsonl --sources notes --model models:score --workers 1 --masks 8"
    assert command(f"{line} --part-size 1 --out asked") == 0
    (notes / "b.txt").write_text("In Rome.")
    edit(run.parent / "asked")
    capsys.readouterr()

    assert command("batch --resume asked --workers 1 --trust-run") == 2
    assert re.search(r"with sources=.*In Paris.*; this call has .*In Rome", capsys.readouterr().err)


WRONG = [
    {"kind": "video"},
    {"kind": ["text"]},
    {"model": 3},
    {"model": None},
    {"inputs": ["lines.jsonl"]},
    {"masks": "9"},
    {"masks": True},
    {"tokens": None},
    {"keep": 1},
    {"labels": True},
    {"seed": "0"},
    {"method": ["eblime"]},
]


def test_paths_of_a_manifest_are_not_looked_at(run, monkeypatch, capsys):
    """Not even whether they exist: on some systems, a look connects to another machine."""
    edit(run, labels="/evil/share/names.txt")
    for name in ("stat", "lstat", "access", "readlink", "open"):
        look = getattr(os, name)

        def guarded(path, *args, look=look, **settings):
            assert "/evil" not in str(path)
            return look(path, *args, **settings)

        monkeypatch.setattr(os, name, guarded)

    assert command(RESUME) == 2
    assert "--labels /evil/share/names.txt" in capsys.readouterr().err


def test_wrong_types_in_a_manifest_are_reported(run, capsys):
    """Before anything is loaded."""
    original = (run / "manifest.json").read_text()
    for changes in WRONG:
        (run / "manifest.json").write_text(original)
        edit(run, **changes)

        assert command("batch --resume run --trust-run") == 2, changes
        error = capsys.readouterr().err
        known = ("is damaged", "was not started by", "must be one of")
        assert any(part in error for part in known), changes
        assert error.count("\n") == 1


def test_an_interrupted_command_prints_how_to_resume(run, monkeypatch, capsys):
    """Ready to paste, with the model if it must be repeated."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("eblime.batch.run.explain_many", interrupted)
    line = "batch text lines.jsonl --model mood_of_mine:score --workers 1 --out"

    assert command(f"{line} run") == 130
    output = capsys.readouterr().out
    named = f"--inputs {run.parent / 'lines.jsonl'} --model mood_of_mine:score"
    assert f"eblime batch --resume run {named}" in output
    assert command(f"{line} run2") == 130  # no manifest yet: nothing to resume
    assert capsys.readouterr().out == "Interrupted before the run began. Repeat the command.\n"


def test_the_exit_code_is_3_if_inputs_failed(run, capsys):
    """Also if all inputs failed; `--help` documents the code."""
    lines = run.parent / "lines.jsonl"
    line = "batch text lines.jsonl --model mood_of_mine:score --workers 1 --out"
    lines.write_text('"a good day"\n""\n')
    assert command(f"{line} some") == 3
    assert "1 explained, 1 failed" in capsys.readouterr().out
    lines.write_text('""\n')
    assert command(f"{line} none") == 3
    for page in ("batch", "batch text", "batch image", "batch tabular"):
        command(f"{page} --help")
        assert "3: some inputs failed" in " ".join(capsys.readouterr().out.split()), page


def test_pages_are_printed(run, monkeypatch, capsys):
    """Those that the page links to; without a browser the message says what to do."""
    monkeypatch.setattr("eblime.cli.show.shutil.which", lambda name: None)
    assert command(f"report {run} --pdf") == 2
    assert f"Open {run / 'report.html'} in a browser and print it" in capsys.readouterr().err

    printed = []

    def prints(order, **_):
        """Stands for the browser."""
        out = next(flag for flag in order if "print-to-pdf=" in flag).partition("=")[2]
        printed.append((order[-1].rpartition("/")[2], Path(out).name))

    monkeypatch.setattr("eblime.cli.show.shutil.which", lambda name: name)
    monkeypatch.setattr("eblime.cli.show.subprocess.run", prints)
    assert command(f"report {run} --pdf --pages 1") == 0
    assert printed[0] == ("report.html", "report.pdf")
    assert [(Path(page).stem, Path(pdf).suffix) for page, pdf in printed[1:]] in (
        [("0-0", ".pdf")],
        [("1-0", ".pdf")],
    )


@pytest.mark.slow
def test_chromium_prints_a_page(run):
    """A PDF beside it."""
    if shutil.which("chromium") is None:
        pytest.skip("Chromium is not installed")
    assert command(f"report {run} --pdf --pages 0") == 0
    assert (run / "report.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(("model", "wanted"), [("m.onnx", False), ("m.PKL", True)])
def test_only_pickles_need_trust(model, wanted):
    """The command that resumes a run names no option that its model does not need."""
    about = {"kind": "text", "inputs": "/here/lines.jsonl", "model": f"/here/{model}"}
    recipe = Recipe(about=defaultdict(lambda: None, about), trust_pickle=True, cache=None)

    assert ("--trust-pickle" in recipe.resume_command("run")) == wanted


def test_a_finished_run_has_a_page(run, capsys):
    """It is written again when the run is resumed; every link leads to a page."""
    page = (run / "report.html").read_text(encoding="utf8")
    assert page.count('<a href="pages/') == 2
    assert len(list(run.glob("pages/*.html"))) == 2
    (run / "report.html").unlink()

    assert command(f"{RESUME} --model mood_of_mine:score") == 0
    assert (run / "report.html").read_text(encoding="utf8") == page
    assert "Look at" in capsys.readouterr().out


@pytest.mark.parametrize(("error", "code"), [(OSError("disk full"), 2), (KeyboardInterrupt(), 130)])
def test_a_run_without_its_page_is_finished(run, monkeypatch, capsys, error, code):
    """Its folder is named before the error."""

    def fail(*args, **settings):
        raise error

    monkeypatch.setattr("eblime.batch.overview.overview", fail)

    assert command(f"{RESUME} --model mood_of_mine:score") == code
    said, message = capsys.readouterr()
    assert "The run is in run." in said
    assert (str(error) or "Stopped") in message
