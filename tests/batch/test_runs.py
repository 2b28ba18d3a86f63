"""Runs: the same numbers whatever happens, and nothing lost."""

import errno
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from many import ROWS, make, make_deadly

import eblime
from eblime.batch.overview import overview
from eblime.batch.place import Place

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
HERE = Path(__file__).parent
TRIES = int(os.environ.get("EBLIME_TEST_KILLS", "6"))


@pytest.fixture(scope="module")
def wanted(tmp_path_factory):
    """The frame of a run that nobody disturbed."""
    run = eblime.explain_many(make, ROWS, tmp_path_factory.mktemp("run") / "r", part_size=4)
    return run.frame()


@pytest.mark.parametrize(
    "settings", [{"workers": 2}, {"together": False}, {"part_size": 7}, {"progress": lambda *_: 0}]
)
def test_how_it_is_run_changes_no_number(tmp_path, wanted, settings):
    """Workers, shared model calls and the size of parts are nobody's business."""
    run = eblime.explain_many(make, ROWS, tmp_path / "r", **{"part_size": 4, **settings})

    pd.testing.assert_frame_equal(run.frame(), wanted, check_exact=True)


def test_an_input_is_explained_as_by_itself(wanted):
    """Its generator is its own: `SeedSequence(seed, spawn_key=(i,))`."""
    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(7,)))
    alone = make().explain(ROWS[7], rng=rng)
    rows = wanted[wanted["input"] == 7]

    np.testing.assert_array_equal(rows["mean"], alone.posterior.mean)
    np.testing.assert_array_equal(rows[["low", "high"]], alone.posterior.interval())
    assert rows["feature"].tolist() == list(alone.scene.columns)


def killed_driver(out, workers, engine, seconds):
    """Begin a run in another process, and kill it and its workers after so many seconds."""
    driver = subprocess.Popen(
        [sys.executable, str(HERE / "many.py"), str(out), str(workers), engine],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    time.sleep(seconds)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_driver_killed_at_any_moment_is_resumed(tmp_path, wanted, workers):
    """Kill -9 at random times; then the rest is done, without loss or duplicates."""
    chance = random.Random(workers)
    for attempt in range(TRIES):
        out = tmp_path / f"r{attempt}"
        killed_driver(out, workers, "local", chance.uniform(0.6, 2.2))
        run = eblime.explain_many(make, ROWS, out, part_size=4, together=False)

        pd.testing.assert_frame_equal(run.frame(), wanted, check_exact=True)
        assert not list(out.glob(".*.tmp"))


@pytest.fixture
def cluster(monkeypatch):
    """Ray on this machine, stopped afterwards."""
    ray = pytest.importorskip("ray", reason="ray is not installed")
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    yield ray
    ray.shutdown()
    stop = [sys.executable, "-m", "ray.scripts.scripts", "stop", "--force"]
    subprocess.run(stop, capture_output=True, check=False)


@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_ray_gives_the_same_numbers(tmp_path, wanted, cluster):
    """Actors write what processes write; a driver killed under Ray is resumed without it."""
    run = eblime.explain_many(make, ROWS, tmp_path / "r", part_size=4, engine="ray", workers=2)
    pd.testing.assert_frame_equal(run.frame(), wanted, check_exact=True)

    chance = random.Random(0)
    for attempt in range(max(1, TRIES // 3)):
        out = tmp_path / f"k{attempt}"
        killed_driver(out, 2, "ray", chance.uniform(6, 10))
        run = eblime.explain_many(make, ROWS, out, part_size=4, together=False)
        pd.testing.assert_frame_equal(run.frame(), wanted, check_exact=True)


def test_a_worker_that_is_killed_is_replaced(tmp_path, monkeypatch):
    """Its parts are done again by another."""
    monkeypatch.setenv("EBLIME_TEST_FLAG", str(tmp_path / "flag"))
    run = eblime.explain_many(make_deadly, ROWS, tmp_path / "r", part_size=10, workers=2)

    assert (tmp_path / "flag").exists()
    assert run.frame()["input"].nunique() == len(ROWS)


def test_a_part_cut_in_half_is_done_again(tmp_path, wanted):
    """A damaged file is not believed."""
    run = eblime.explain_many(make, ROWS, tmp_path / "r", part_size=4)
    part = tmp_path / "r" / "part-000003.parquet"
    part.write_bytes(part.read_bytes()[: part.stat().st_size // 2])
    again = eblime.explain_many(make, ROWS, tmp_path / "r", part_size=4)

    assert again.folder == run.folder
    pd.testing.assert_frame_equal(again.frame(), wanted, check_exact=True)


def test_a_full_disk_is_told_and_the_run_goes_on_later(tmp_path, wanted, monkeypatch):
    """No space left while a part is synced: a clear error, nothing half written."""
    real, calls = os.fsync, []

    def full(handle):
        calls.append(handle)
        if len(calls) == 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        eblime.explain_many(make, ROWS, tmp_path / "r", part_size=4)
    assert not list((tmp_path / "r").glob(".*.tmp"))
    monkeypatch.undo()
    run = eblime.explain_many(make, ROWS, tmp_path / "r", part_size=4)

    pd.testing.assert_frame_equal(run.frame(), wanted, check_exact=True)


def test_inputs_that_fail_do_not_stop_the_rest(tmp_path):
    """Each is recorded with its error; too many stop the run."""
    rows = [list(row) for row in ROWS[:10]]
    rows[3] = [1, 2]
    rows[6] = ["a", 0, 0, 0, 0]
    run = eblime.explain_many(make, rows, tmp_path / "r", part_size=4)
    failed = run.failures()

    assert failed["input"].tolist() == [3, 6]
    assert "must have a value for each" in failed["error"][0]
    assert run.frame()["input"].nunique() == 8
    with pytest.raises(RuntimeError, match="more than the 1 allowed"):
        eblime.explain_many(make, rows, tmp_path / "s", part_size=4, max_failures=1)


def test_other_settings_or_inputs_are_refused(tmp_path):
    """With the difference named."""
    eblime.explain_many(make, ROWS[:8], tmp_path / "r", part_size=4)
    with pytest.raises(ValueError, match="another 'seed': 0 there, 1 now"):
        eblime.explain_many(make, ROWS[:8], tmp_path / "r", part_size=4, seed=1)
    with pytest.raises(ValueError, match="another 'inputs'"):
        eblime.explain_many(make, ROWS[1:9], tmp_path / "r", part_size=4)


def test_a_run_is_opened_again(tmp_path):
    """Rows lazily, explanations where kept, a summary, a page."""
    eblime.explain_many(make, ROWS[:9], tmp_path / "r", part_size=4, keep=True)
    run = eblime.open_run(tmp_path / "r")
    table = run.summary()
    page = overview(run, tmp_path / "r" / "report.html")

    assert run.scan().count_rows() == 45
    np.testing.assert_array_equal(
        run.explanation(2).posterior.mean, run.frame().query("input == 2")["mean"]
    )
    assert set(table["feature"][:2]) == {"column 0", "column 1"}
    assert (table["low"] <= table["mean_abs"]).all()
    assert (table["mean_abs"] <= table["high"]).all()
    assert "column 0" in page
    with pytest.raises(FileNotFoundError, match="has no manifest"):
        eblime.open_run(tmp_path)
    with pytest.raises(FileNotFoundError, match="keep=True"):
        run.explanation(99)


def test_folders_and_files_are_inputs(tmp_path):
    """Texts of a folder and lines of JSON."""
    (tmp_path / "t").mkdir()
    for k in range(3):
        (tmp_path / "t" / f"{k}.txt").write_text(f"a good day {k}")
    (tmp_path / "lines.jsonl").write_text('{"text": "a good day"}\n"another"\n')
    explainer = eblime.TextExplainer(lambda texts: ["good" in text for text in texts])
    for given, count in ((tmp_path / "t", 3), (tmp_path / "lines.jsonl", 2)):
        run = eblime.explain_many(explainer, given, tmp_path / f"run{count}")
        assert run.frame()["input"].nunique() == count
    with pytest.raises(FileNotFoundError, match="no folder or file"):
        eblime.explain_many(explainer, tmp_path / "gone", tmp_path / "x")
    with pytest.raises(ValueError, match="must not be empty"):
        eblime.explain_many(explainer, [], tmp_path / "x")


def test_what_would_change_the_numbers_is_refused(tmp_path):
    """Another explainer, inputs changed in the middle, a second driver."""
    rows = ROWS[:8].copy()
    eblime.explain_many(make(), rows, tmp_path / "r", part_size=4)
    other = eblime.TabularExplainer(make().model, ROWS, n_masks=61)
    with pytest.raises(ValueError, match="another 'explainer'"):
        eblime.explain_many(other, rows, tmp_path / "r", part_size=4)
    rows[4] += 1
    with pytest.raises(ValueError, match="another 'inputs'"):
        eblime.explain_many(make(), rows, tmp_path / "r", part_size=4)
    with (
        Place.of(tmp_path / "r").locked(),
        pytest.raises(RuntimeError, match="another process"),
    ):
        eblime.explain_many(make(), ROWS[:8], tmp_path / "r", part_size=4)


def test_explainers_that_cannot_travel_are_refused(tmp_path):
    """With the way out."""
    explainer = eblime.TabularExplainer(lambda rows: rows[:, 0], ROWS)
    with pytest.raises(TypeError, match="a function of a module"):
        eblime.explain_many(explainer, ROWS, tmp_path / "r", workers=2)


def test_failures_count_over_resumes(tmp_path):
    """A limit is a limit, however often the run is begun."""
    rows = [[1.0, 2.0]] * 12
    for _ in range(3):
        with pytest.raises(RuntimeError, match="more than the 3 allowed"):
            eblime.explain_many(make, rows, tmp_path / "r", part_size=2, max_failures=3)
    assert len(eblime.open_run(tmp_path / "r").failures()) <= 8


def test_targets_of_one_input_count_once(tmp_path):
    """Two mirrored outputs know no more than one."""
    explainer = eblime.TabularExplainer(
        lambda rows: np.stack([rows[:, 0], 1 - rows[:, 0]], axis=1), ROWS, n_masks=50
    )
    one = eblime.explain_many(explainer, ROWS[:6], tmp_path / "a", targets=[0]).summary()
    two = eblime.explain_many(explainer, ROWS[:6], tmp_path / "b", targets=2).summary()

    np.testing.assert_allclose(one["high"], two["high"], rtol=1e-6)


def test_the_command_line_resumes_from_anywhere(tmp_path, monkeypatch, capsys):
    """The manifest has everything; other settings are refused."""
    from eblime.cli.app import main

    code = "def score(texts):\n    return ['good' in t for t in texts]\n"
    (tmp_path / "mood.py").write_text(code)
    (tmp_path / "lines.jsonl").write_text('"a good day"\n"another day"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for words, code in (
        ("batch text lines.jsonl --model mood:score --out run", 0),
        ("batch --resume run", 0),
        ("report run", 0),
        ("batch --resume run --masks 9", 2),
        ("batch text", 2),
    ):
        with pytest.raises(SystemExit) as ended:
            main(words.split())
        assert ended.value.code == code, words
    assert "No such option: --masks" in capsys.readouterr().err
    assert (tmp_path / "run" / "report.html").exists()


def test_the_folded_normal_is_right(rng):
    """Mean and variance of |x| against draws."""
    from eblime.batch.results import _folded

    mean, sd = np.array([0.0, 0.5, -2.0, 1.0]), np.array([1.0, 1.0, 0.3, 0.0])
    draws = np.abs(mean + sd * rng.standard_normal((200_000, 4)))
    size, variance = _folded(mean, sd)

    np.testing.assert_allclose(size, draws.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(variance, draws.var(axis=0), atol=0.01)
