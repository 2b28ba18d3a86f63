"""`--until`: stop rules on the command line."""

import json
import sys

import pytest
from commands import run_command

import eblime

MODEL = """
def score(texts):
    return [("good" in t) - 0.5 * ("bad" in t) + 0.3 * ("few" in t and "nice" in t) for t in texts]
"""
TEXT = "a good film with a bad end and few nice songs in it for the very young"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a model in Python and texts."""
    (tmp_path / "mood_until.py").write_text(MODEL)
    lines = [TEXT, f"{TEXT} at heart"]
    (tmp_path / "lines.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def run(capsys, *words):
    """Exit code, standard output and standard error of a command with the folder's model."""
    return run_command(capsys, *words, "--model", "mood_until:score")


def test_explain_stops_when_it_is_sure(folder, capsys):
    """The terminal and the saved explanation say what was reached."""
    words = ("explain", "text", TEXT, "--until", "top2 & sign2", "--max-masks", 800)
    code, out, err = run(capsys, *words, "--design", "bernoulli")
    saved = eblime.load(next((folder / "eblime-out").glob("*.eblime")))

    assert (code, err) == (0, "")
    assert "Stopped: TopK(k=2) & Sign(top=2) reached with " in out
    assert len(saved.masks) < 800
    assert saved.provenance["stopped"] in out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--until", "best5"), "--until must be like top5, top5~0.02, ranking3, sign5, lars3"),
        (("--max-masks", 100), "--max-masks needs a stop rule, --until"),
        (("--until", "top2", "--max-masks", 20), "--max-masks must be at least 32"),
        (("--until", "top2", "--max-seconds", 0), "--max-seconds must be"),
        (("--until", "top2", "--method", "lime"), "--until needs a method that states"),
    ],
)
def test_bad_options_are_refused(folder, capsys, words, complaint):
    """The message names the option."""
    code, _, err = run(capsys, "explain", "text", TEXT, *words)

    assert code == 2
    assert complaint in err


@pytest.mark.parametrize(("kind", "option"), [("text", "--max-seconds"), ("signal", "--rate")])
def test_help_does_not_offer_a_zero_that_is_refused(capsys, kind, option):
    """The range that help shows is that of the check."""
    code, out, _ = run(capsys, "explain", kind, "--help")
    line = next(line for line in out.splitlines() if option in line)

    assert code == 0
    assert "float" in line.lower()
    assert "range" not in line.lower()


@pytest.mark.slow
def test_a_run_keeps_its_rule(folder, capsys):
    """Every input stops on its own, and the run can be resumed with its own rule."""
    pytest.importorskip("pyarrow")
    words = ("batch", "text", "lines.jsonl", "--until", "top2", "--max-masks", 900)
    code, _, err = run(
        capsys, *words, "--design", "bernoulli", "--workers", 1, "--out", "run", "--keep"
    )
    opened = eblime.open_run("run")

    assert (code, err) == (0, "")
    assert opened.settings["until"].startswith("TopK(k=2)")
    assert opened.settings["about"]["until"] == "top2"
    assert (opened.frame()["n_masks"] < 900).all()
    assert "reached with" in opened.explanation(1).provenance["stopped"]
    for part in (folder / "run").glob("part-000000-*"):
        part.unlink()
    code, _, err = run(capsys, "batch", "--resume", "run", "--workers", 1, "--trust-run")
    assert (code, err) == (0, "")
    assert (eblime.open_run("run").frame()["n_masks"] < 900).all()
