"""Known flaws beside a run, on the command line: rules, outcomes, and whether flaws are shown."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from eblime.batch.truth import read_rule
from tests.commands import run_command

pytest.importorskip("pyarrow")

NAMES = ["a.png", "b.png", "c.png", "d.png"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Four photos: a flaw is a bright corner, which the model finds; `c` has a weak one."""
    (tmp_path / "corner.py").write_text(
        "def score(batch):\n    return batch[:, :8, :8].mean(axis=(1, 2, 3)) / 255\n"
    )
    (tmp_path / "parts").mkdir()
    for name, level in zip(NAMES, (255, 200, 90, 20), strict=True):
        photo = np.random.default_rng(0).integers(0, 40, (32, 32, 3), dtype=np.uint8)
        photo[:8, :8] = level
        Image.fromarray(photo).save(tmp_path / "parts" / name)
    mask = np.zeros((32, 32), np.uint8)
    mask[:8, :8] = 255
    Image.fromarray(mask).save(tmp_path / "mask.png")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "rule.json").write_text('{"score": [0.5, null]}')
    return tmp_path


WORDS = ("batch", "image", "parts", "--model", "corner:score", "--masks", 60, "--hide", 0)
GRID = ("--segmentation", "grid:rows=4,columns=4", "--out", "run")


def test_a_report_tells_hits_from_misses_and_false_calls(run, capsys):
    """By a table with labels, sizes, boxes and masks; other columns are kept."""
    code, _, err = run_command(capsys, *WORDS, *GRID, "--rule", "rule.json")
    assert code == 0, err
    assert (run / "run" / "rule.json").read_text() == '{"score": [0.5, null]}'
    known = pd.DataFrame(
        {
            "name": NAMES,
            "flaw": [1, 1, 1, 0],
            "size": [4.0, 3.0, 2.0, None],
            **{"x0": [0, 24, None, None], "y0": [0, 24, None, None]},
            **{"x1": [8, 32, None, None], "y1": [8, 32, None, None]},
            "mask": [None, None, "mask.png", None],
            "inspector": ["Ada", "Ben", "Ada", "Ben"],
        }
    )
    known.to_csv("known.csv", index=False)
    code, out, err = run_command(capsys, "report", "run", "--truth", "known.csv")
    found = pd.read_csv("run/decisions.csv")

    assert (code, err) == (0, "")
    assert '2 of 4 inputs are rejected. The rule: {"score": [0.5, null]}' in out
    assert "hit: 2, miss: 1, false call: 0, correct: 1" in out
    assert "False-call rate: 0.00 (95 % interval 0.00 to 0.97)" in out
    assert "shows the flaw in 1 of 2 hits" in out
    assert found["outcome"].tolist() == ["hit", "hit", "miss", "correct"]
    assert found["located"].tolist()[:3] == [1, 0, 1]
    page = (run / "run" / "report.html").read_text(encoding="utf8")
    assert "Decisions" in page
    assert "Ben" in page


def test_wrong_rules_and_tables_are_refused(run, capsys):
    """A rule before the model is asked."""
    (run / "bad.json").write_text('{"scre": [0, 1]}')
    code, _, err = run_command(capsys, *WORDS, *GRID, "--rule", "bad.json")
    assert code == 2
    assert "A rule must have ranges of score, r2, certainty, size" in err
    assert not (run / "run").exists()
    run_command(capsys, *WORDS, *GRID)
    code, _, err = run_command(capsys, "report", "run", "--rule", "bad.json")
    assert (code, (run / "run" / "rule.json").exists()) == (2, False)
    (run / "other.csv").write_text("name,flaw\nz.png,1\n")
    (run / "unnamed.csv").write_text("file,flaw\na.png,1\n")
    (run / "words.csv").write_text("name,flaw\na.png,yes\n")
    code, _, err = run_command(capsys, "report", "run", "--truth", "words.csv")
    assert (code, "0 or 1 in its column `flaw`" in err) == (2, True)
    for file in ("other.csv", "unnamed.csv"):
        code, _, err = run_command(capsys, "report", "run", "--truth", file)
        assert code == 2
        assert f"{file} must have a column `name` with each file once, such as 'a.png'" in err


def test_every_input_has_a_decision_and_its_flaw_is_scaled_as_its_photo(run, capsys):
    """The table may know fewer inputs, and others; a box is in pixels of the file."""
    for name in NAMES:
        photo = Image.open(run / "parts" / name)
        large = Image.new("RGB", (64, 32))
        large.paste(photo, (32, 0))
        large.save(run / "parts" / name)
    words = (*WORDS, *GRID, "--size", 32, "--fit", "crop", "--rule", "rule.json")
    Image.new("L", (64, 32), 255).save(run / "whole.png")
    (run / "known.csv").write_text(
        "name,flaw,mask,x0,y0,x1,y1,width,height\n"
        "a.png,1,,32,0,36,8,64,32\nb.png,1,whole.png,,,,,,\nz.png,1,,,,,,,\n"
    )
    (run / "corner.py").write_text(
        "def score(batch):\n    return batch[:, :8, 16:24].mean(axis=(1, 2, 3)) / 255\n"
    )
    code, out, err = run_command(capsys, *words)
    assert (code, "The rule" in out) == (0, True), err
    assert pd.read_csv("run/decisions.csv")["decision"].tolist() == ["reject"] * 2 + ["accept"] * 2
    _, out, _ = run_command(capsys, "report", "run", "--truth", "known.csv")
    found = pd.read_csv("run/decisions.csv", keep_default_na=False)

    assert "known.csv: the run has no 'z.png'." in out
    assert found["outcome"].tolist() == ["hit", "hit", "", ""]
    assert found["located"].tolist() == ["1.0", "0.0", "", ""]


@pytest.mark.parametrize("text", ["[]", "{}", "no", '{"score": 1}', '{"score": ["a", 1]}'])
def test_rules_are_ranges(text):
    """The least and the most of each number, or null."""
    with pytest.raises(ValueError, match="A rule must have ranges"):
        read_rule(text)
    good = read_rule(json.dumps({"score": [0.5, None], "r2": [None, 0.2]}))
    assert good == {"score": (0.5, np.inf), "r2": (-np.inf, 0.2)}


def test_files_that_failed_are_not_judged(run, capsys):
    """A photo that cannot be read is no miss; columns of the table keep their names apart."""
    (run / "parts" / "broken.png").write_bytes(b"no photo")
    run_command(capsys, *WORDS, *GRID, "--rule", "rule.json")
    (run / "known.csv").write_text("name,flaw,outcome\na.png,1,x\nbroken.png,1,y\n")
    code, out, err = run_command(capsys, "report", "run", "--truth", "known.csv")
    found = pd.read_csv("run/decisions.csv").set_index("name")

    assert (code, err) == (0, "")
    assert "1 more failed, and are not judged." in out
    assert "hit: 1, miss: 0" in out
    assert found.loc["broken.png", "decision"] == "failed"
    assert found.loc["broken.png", "outcome (known)"] == "y"
    (run / "known.csv").write_text("name,size\na.png,large\n")
    code, _, err = run_command(capsys, "report", "run", "--truth", "known.csv")
    assert (code, "must have numbers in its columns ['size']" in err) == (2, True)


@pytest.mark.parametrize("ends", ["[1, 0]", "[0.5, 0.5]"])
def test_a_rule_that_rejects_nothing_is_refused(ends):
    """Its least is not below its most."""
    with pytest.raises(ValueError, match="must be below the most"):
        read_rule(f'{{"score": {ends}}}')
