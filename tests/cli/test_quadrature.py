"""`--method quadrature`, `--index` and `--design adaptive` on the command line."""

import json
import re
import sys
from pathlib import Path

import pytest
from commands import run_command

import eblime

MODEL = """
def score(texts):
    return [("good" in t and "very" in t) + 0.3 * ("film" in t) for t in texts]
"""
TEXT = "a very good film with many good actors and songs"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a model."""
    (tmp_path / "mood.py").write_text(MODEL)
    (tmp_path / "lines.jsonl").write_text("".join(f'{{"text": "{TEXT} {k}"}}\n' for k in range(3)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


QUADRATURE = ("--model", "mood:score", "--method", "quadrature", "--masks", 80)


def test_shapley_values_from_masks_in_rounds(folder, capsys):
    """The table says what the importances are; the file and its JSON hold them."""
    words = ("--index", "shapley", "--design", "adaptive")
    code, out, err = run_command(capsys, "explain", "text", TEXT, *QUADRATURE, *words)
    (path,) = (folder / "eblime-out").glob("*.eblime")
    e = eblime.load(path)

    assert (code, err) == (0, "")
    assert "Importances are Shapley values" in out
    assert e.method.index == "shapley"
    assert e.posterior.mean.sum() == pytest.approx(1.3, abs=1e-3)
    assert json.loads(path.with_suffix(".json").read_text())["estimand"].startswith(
        "Importances are Shapley values"
    )
    page = path.with_suffix(".html").read_text(encoding="utf8")
    assert re.search(r'value="shapley"[^>]* checked', page)


def test_the_default_index_is_that_of_lime(folder, capsys):
    """With the kernel of texts."""
    code, out, _ = run_command(capsys, "explain", "text", TEXT, *QUADRATURE)

    assert code == 0
    assert "Importances are coefficients of the linear fit with a free intercept" in out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--method", "eblime", "--index", "shapley"), "--index needs --method quadrature"),
        (("--method", "quadrature", "--index", "owen"), "--index must be one of 'lime'"),
        (("--method", "eblime", "--design", "adaptive"), "quadrature"),
    ],
)
def test_what_does_not_fit_is_refused(folder, capsys, words, complaint):
    """What does not fit is refused."""
    code, out, err = run_command(capsys, "explain", "text", TEXT, "--model", "mood:score", *words)

    assert (code, out) == (2, "")
    assert complaint in err


def test_a_run_stores_the_index(folder, capsys):
    """All results are Shapley values, and the manifest says so."""
    pytest.importorskip("pyarrow")
    words = ("--index", "shapley", "--out", "run", "--workers", 1, "--keep")
    code, _, _ = run_command(capsys, "batch", "text", "lines.jsonl", *QUADRATURE, *words)
    found = eblime.open_run("run")
    manifest = json.loads((folder / "run" / "manifest.json").read_text())

    assert code == 0
    assert manifest["settings"]["about"]["index"] == "shapley"
    sums = [found.explanation(number).posterior.mean.sum() for number in range(3)]
    assert sums == pytest.approx([1.3] * 3, abs=1e-3)


@pytest.mark.parametrize("command", ["explain", "batch"])
def test_help_explains_the_index(command, monkeypatch, capsys):
    """Help explains the index."""
    monkeypatch.setenv("COLUMNS", "160")
    code, out, _ = run_command(capsys, command, "image", "--help")

    assert code == 0
    assert "--index" in out
    assert "shapley values" in " ".join(out.split())
    assert "quadrature" in out


def test_a_comparison_has_the_index(folder, capsys):
    """Also beside other methods."""
    words = ("--index", "shapley", "--compare", "lime")
    code, _, err = run_command(capsys, "explain", "text", TEXT, *QUADRATURE, *words)

    assert (code, err) == (0, "")
    assert eblime.load(folder / "eblime-out" / "text.eblime").method.index == "shapley"


ROWS = """
def price(table):
    return 3.0 * table["size"] - 2.0 * table["age"] * table["rooms"]
"""


@pytest.fixture
def houses(tmp_path, monkeypatch):
    """A table of houses and a model, in the current folder."""
    rows = ["size,age,rooms", *(f"{k % 7},{k % 5},{1 + k % 3}" for k in range(30))]
    (tmp_path / "houses.csv").write_text("\n".join(rows))
    (tmp_path / "agent.py").write_text(ROWS)
    monkeypatch.chdir(tmp_path)
    return ("explain", "tabular", "houses.csv", "--row", "4", "--model", "agent:price")


@pytest.mark.parametrize("rows", [(), ("--rows-per-mask", 10)])
def test_shapley_values_of_a_row(houses, capsys, rows):
    """They add up from the mean of the background to the row."""
    words = ("--method", "quadrature", "--index", "shapley", *rows)
    code, out, err = run_command(capsys, *houses, *words)
    e = eblime.load(next(Path("eblime-out").glob("*.eblime")))

    assert (code, err) == (0, "")
    assert "Importances are Shapley values" in out
    assert e.answers.hidden + e.posterior.mean.sum() == pytest.approx(e.prediction, abs=1e-2)
    assert e.provenance["input"]["background"].startswith("10 of" if rows else "")


def test_help_of_tables_explains_the_background(monkeypatch, capsys):
    """And the option that limits it."""
    monkeypatch.setenv("COLUMNS", "160")
    _, out, _ = run_command(capsys, "explain", "tabular", "--help")

    assert "--rows-per-mask" in out
    assert "rows of the background" in " ".join(out.split())
