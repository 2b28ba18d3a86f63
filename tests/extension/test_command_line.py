"""The command line knows the names of the example package."""

import numpy as np
import pytest
from extension import cases

import eblime
from eblime.cli.app import main


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty current folder with a series and a text."""
    np.savetxt(tmp_path / "pulse.txt", cases.PULSE)
    (tmp_path / "words.txt").write_text(cases.TEXT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    """The exit status of `eblime ...`."""
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, words)))
    return ended.value.code


def test_a_series_is_explained(folder, capsys):
    """All files are written, with the numbers of the library."""
    options = ("--model", "extension.cases:peak", "--window", 6, "--masks", 200, "--out", "out")
    status = run("explain", "series", "pulse.txt", *options)

    assert status == 0, capsys.readouterr().err
    assert {file.suffix for file in (folder / "out").iterdir()} == {
        ".eblime",
        ".json",
        ".png",
        ".html",
    }
    loaded = eblime.load(folder / "out" / "pulse.eblime")
    expected = cases.series_explainer().explain(cases.PULSE)
    np.testing.assert_allclose(loaded.posterior.mean, expected.posterior.mean)
    assert "steps 18-23" in capsys.readouterr().out


def test_a_method_and_a_design_by_name(folder, capsys):
    """Names from entry points are values of `--method` and `--design`."""
    options = ("--model", "extension.cases:score", "--masks", 100, "--out", "out")
    chosen = ("--method", "normal", "--design", "rounds")
    status = run("explain", "text", "words.txt", *options, *chosen)

    assert status == 0, capsys.readouterr().err
    loaded = eblime.load(folder / "out" / "words.eblime")
    assert loaded.posterior.method == "least squares"
    assert loaded.provenance["rounds"] == 3


def test_a_batch_of_series(folder, capsys):
    """A folder of series becomes a run."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    (folder / "many").mkdir()
    for number in range(3):
        np.savetxt(folder / "many" / f"{number}.txt", (1 + number) * cases.PULSE)
    options = ("--model", "extension.cases:peak", "--window", 6, "--masks", 60, "--out", "run")
    status = run("batch", "series", "many", *options)

    assert status == 0, capsys.readouterr().err
    assert len(eblime.open_run(folder / "run").frame()["input"].unique()) == 3


def test_help_lists_the_options_of_the_domain(capsys):
    """`eblime explain series --help` shows `--window`."""
    run("explain", "series", "--help")

    assert "--window" in capsys.readouterr().out
