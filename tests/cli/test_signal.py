"""`eblime explain signal` and `eblime batch signal`, from files to results."""

import sys

import numpy as np
import pytest
from commands import run_command
from scipy.io import wavfile

import eblime

MODEL = '''
def loud(batch):
    """The second half second decides."""
    return batch[:, 50:100].std(axis=1)
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with two recordings and a model in Python."""
    (tmp_path / "models.py").write_text(MODEL)
    sounds = tmp_path / "sounds"
    sounds.mkdir()
    noise = np.random.default_rng(0).normal(size=(2, 200))
    wavfile.write(sounds / "pump.wav", 100, (noise[0] * 8000).astype(np.int16))
    np.save(sounds / "valve.npy", noise[1])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "models", raising=False)
    return tmp_path


def test_the_help_names_the_features(capsys):
    """Not windows alone."""
    _, out, _ = run_command(capsys, "explain", "signal", "--help")

    assert "by windows, channels or bands" in " ".join(out.split())


def test_a_recording_is_explained(folder, capsys):
    """The windows are named by the times of the file."""
    code, _, err = run_command(
        capsys, "explain", "signal", "sounds/pump.wav", "--model", "models:loud",
        "--segmentation", "windows:n=4", "--hide", "zero",
    )  # fmt: skip

    assert code == 0, err
    e = eblime.load("eblime-out/pump.eblime")
    assert e.as_list(top=1)[0][0] == "0.50-1.00 s"
    assert (folder / "eblime-out" / "pump.html").exists()


def test_a_folder_is_explained_in_a_run(folder, capsys):
    """One explanation per file, resumable."""
    pytest.importorskip("pyarrow")
    code, out, err = run_command(
        capsys, "batch", "signal", "sounds", "--model", "models:loud", "--out", "run",
        "--segmentation", "windows:n=4", "--hide", "zero", "--workers", "1",
    )  # fmt: skip

    assert code == 0, err
    assert "2 explained, 0 failed" in out
    code, out, err = run_command(
        capsys, "batch", "--resume", "run", "--model", "models:loud", "--inputs", "sounds"
    )
    assert code == 0, err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing.wav"], "There is no signal or folder"),
        (["sounds/pump.wav", "--hide", "blur"], "--hide must be one of 'bridge'"),
        (
            ["sounds/pump.wav", "--segmentation", "windows:n=500"],
            ">= 1 and <= 200; got 500",
        ),
        (["sounds/pump.wav", "--rate", "44100"], "--rate must be left out"),
    ],
)
def test_what_cannot_work_is_refused(folder, capsys, words, message):
    """The message names the option."""
    code, _, err = run_command(capsys, "explain", "signal", *words, "--model", "models:loud")

    assert code != 0
    assert message in err
