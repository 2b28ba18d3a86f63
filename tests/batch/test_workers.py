"""Inputs on which a model crashes, exits or hangs are recorded as failed; others are explained."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from many import (
    ROWS,
    make,
    make_growing,
    make_killed_while_writing,
    make_poisoned,
    make_sleepy,
)
from processes import LONG, in_group, started, wait_until

import eblime
from eblime.batch import Workers, workers
from eblime.batch.location import Location
from eblime.cli.app import main

HERE = Path(__file__).parent


@pytest.fixture
def poison(monkeypatch):
    """Choose the inputs on which the model fails, and how."""

    def choose(**acts):
        chosen = {name.removeprefix("input_"): act for name, act in acts.items()}
        monkeypatch.setenv("EBLIME_TEST_POISON", json.dumps(chosen))

    return choose


def check_others(run, wanted, failed):
    """All inputs but those that failed have the numbers of an undisturbed run."""
    others = wanted[~wanted["input"].isin(failed)].reset_index(drop=True)

    pd.testing.assert_frame_equal(run.frame(), others, check_exact=True)
    errors = run.failures().set_index("input")["error"].to_dict()
    assert list(errors) == sorted(failed)
    return errors


def drive(out, maker):
    """A run with one worker in a process of its own; returns its exit code."""
    command = [sys.executable, str(HERE / "many.py"), str(out), "1", "local", maker]
    return subprocess.run(command, capture_output=True, check=False).returncode


@pytest.mark.slow
def test_a_crash_is_recorded(tmp_path, wanted, poison):
    """A new worker explains the other inputs."""
    poison(input_2="segfault")
    run = eblime.explain_many(make_poisoned, ROWS[:4], tmp_path / "r", workers=Workers(timeout=60))
    errors = check_others(run, wanted[wanted["input"] < 4], [2])

    assert "crashed (Segmentation fault, signal 11) on this input" in errors[2]


@pytest.mark.slow
def test_crashes_are_recorded(tmp_path, wanted, poison):
    """Two inputs of one part, the last input, and exits without a signal."""
    poison(
        input_5="segfault",
        input_6="segfault",
        input_13="os._exit",
        input_14="os._exit 0",
        input_23="segfault",
    )
    run = eblime.explain_many(make_poisoned, ROWS, tmp_path / "r", part_size=4, workers=2)
    errors = check_others(run, wanted, [5, 6, 13, 14, 23])

    assert "crashed (Segmentation fault, signal 11) on this input" in errors[5]
    assert "crashed (exit code 3) on this input" in errors[13]
    assert "crashed (exit code 0) on this input" in errors[14]


@pytest.mark.slow
def test_a_model_that_exits_is_recorded(tmp_path, wanted, poison):
    """`sys.exit` in a model ends its worker, which is a crash."""
    poison(input_5="sys.exit", input_11="raise")
    run = eblime.explain_many(make_poisoned, ROWS, tmp_path / "r", part_size=4, workers=2)
    errors = check_others(run, wanted, [5, 11])

    assert "crashed (exit code 3) on this input" in errors[5]
    assert "ZeroDivisionError" in errors[11]


def test_ctrl_c_ends_the_call(tmp_path):
    """An interrupt during a model call is not recorded as a failure."""

    def interrupted(rows):
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            sys.exit("the model cleans up")

    explainer, before = eblime.TabularExplainer(interrupted, ROWS), signal.getsignal(signal.SIGINT)
    with pytest.raises(SystemExit):
        eblime.explain_many(explainer, ROWS, tmp_path / "r")
    assert signal.getsignal(signal.SIGINT) is before


def test_an_exit_by_a_signal_handler_ends_the_call(tmp_path):
    """A SIGTERM that a script turns into `sys.exit` is not a failure of the input."""

    def terminated(rows):
        os.kill(os.getpid(), signal.SIGTERM)
        return rows[:, 0]

    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(7))
    try:
        with pytest.raises(SystemExit):
            eblime.explain_many(
                eblime.TabularExplainer(terminated, ROWS, n_masks=60), ROWS, tmp_path / "r"
            )
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not list((tmp_path / "r").glob("part-*"))


@pytest.mark.slow
def test_workers_isolate_a_crash_of_the_driver(tmp_path, wanted, poison):
    """After a crash of the calling process, a call with workers finds the input."""
    poison(input_5="segfault")
    assert drive(tmp_path / "r", "make_poisoned") == -signal.SIGSEGV
    run = eblime.explain_many(make_poisoned, ROWS, tmp_path / "r", part_size=4, workers=2)

    assert "crashed" in check_others(run, wanted, [5])[5]


@pytest.mark.slow
@pytest.mark.parametrize(("count", "failed"), [(1, [5]), (2, [5, 22])])
def test_hangs_are_recorded(tmp_path, wanted, poison, count, failed):
    """Other inputs of the part keep their numbers."""
    poison(**{f"input_{number}": "hang" for number in failed})
    workers = Workers(count, timeout=15)
    run = eblime.explain_many(make_poisoned, ROWS, tmp_path / "r", part_size=4, workers=workers)
    errors = check_others(run, wanted, failed)

    assert "TimeoutError: This input was not explained within the timeout of 15 s." in errors[5]


@pytest.mark.slow
def test_a_timeout_without_hangs_changes_nothing(tmp_path, wanted):
    """The timeout is not a setting of the run, and a part may take longer."""
    workers = Workers(timeout=30)
    run = eblime.explain_many(make, ROWS[:8], tmp_path / "r", part_size=8, workers=workers)
    again = eblime.explain_many(make, ROWS[:8], tmp_path / "r", part_size=8)

    assert "timeout" not in again.settings
    pd.testing.assert_frame_equal(run.frame(), wanted[wanted["input"] < 8], check_exact=True)


def test_packages_are_imported_before_the_first_input():
    """On a busy machine that takes seconds, which must not count for the timeout of an input."""
    code = (
        "import sys, many\n"
        "from eblime.batch.inputs import as_inputs\n"
        "from eblime.batch.location import Location\n"
        "from eblime.batch.worker import Job, Worker\n"
        "given = {'inputs': as_inputs(many.ROWS), 'settings': {'keep': False, 'targets': 1}}\n"
        "job = Job(explainer=many.make, folder=Location.of('.'), run='', resumed=False, **given)\n"
        "assert 'pyarrow' not in sys.modules\n"
        "Worker.start(job)\n"
        "assert 'pyarrow.parquet' in sys.modules\n"
    )
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stderr


@pytest.mark.slow
def test_a_part_may_take_longer_than_an_input(tmp_path, wanted, monkeypatch):
    """Its inputs are then explained one at a time, and none is recorded as failed."""
    monkeypatch.setenv("EBLIME_TEST_SLEEP", "3")
    workers = Workers(timeout=8)
    run = eblime.explain_many(make_sleepy, ROWS[:8], tmp_path / "r", part_size=4, workers=workers)

    assert run.failures().empty
    pd.testing.assert_frame_equal(run.frame(), wanted[wanted["input"] < 8], check_exact=True)


@pytest.mark.slow
def test_time_in_which_the_run_stood_still_does_not_count(tmp_path, wanted, hold):
    """As after Ctrl-Z, which stops the driver and its worker."""
    hold.after(1)
    command = [sys.executable, str(HERE / "many.py"), str(tmp_path / "r"), "1", "local", "make"]
    with started([*command, "8"]) as driver:
        wait_until(lambda: driver.poll() is not None or list(tmp_path.glob("r/part-*")))
        os.killpg(driver.pid, signal.SIGSTOP)
        time.sleep(10)
        hold.release()
        os.killpg(driver.pid, signal.SIGCONT)
        assert driver.wait(LONG) == 0

    run = eblime.open_run(tmp_path / "r")
    assert run.failures().empty
    pd.testing.assert_frame_equal(run.frame(), wanted, check_exact=True)


def test_a_worker_that_replaces_another_has_the_same_explainer(tmp_path):
    """Else a file that changes while a run is under way would mix two sets of results."""
    found = iter("ab")

    class Fake:
        """A worker whose explainer has other settings every time."""

        sent = ()

        def ask(self, what, *args, timeout=None):
            """What is known of the explainer."""
            return {"explainer": {"labels": next(found)}}

    settings = {"inputs": None, "settings": {}, "folder": Location.of(tmp_path), "run": "r"}
    lane = workers._Lane(workers.Job(explainer=make, resumed=False, **settings), Fake, None)
    lane.begin()
    with pytest.raises(ValueError, match="was created with labels='a'; this call has labels='b'"):
        lane.begin()


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), "3"])
def test_timeouts_are_checked(tmp_path, timeout):
    """Before anything is written."""
    with pytest.raises((TypeError, ValueError), match="`timeout` must be"):
        eblime.explain_many(make, ROWS, tmp_path / "r", workers=Workers(timeout=timeout))
    assert not (tmp_path / "r").exists()


def test_a_timeout_needs_a_picklable_explainer(tmp_path):
    """The message says what to pass instead."""
    explainer = eblime.TabularExplainer(lambda rows: rows[:, 0], ROWS, n_masks=60)
    with pytest.raises(TypeError, match="picklable with several workers or a timeout"):
        eblime.explain_many(explainer, ROWS, tmp_path / "r", workers=Workers(timeout=5))


@pytest.fixture
def mood(tmp_path, monkeypatch):
    """A folder with a model that hangs on one of three texts, and the command that asks it."""
    (tmp_path / "mood.py").write_text(
        "import time\n"
        "def score(texts):\n"
        "    if 'a stuck day' in texts:\n"
        "        time.sleep(1000)\n"
        "    return ['good' in text for text in texts]\n"
    )
    (tmp_path / "lines.jsonl").write_text('"a good day"\n"a stuck day"\n"another day"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return "batch text lines.jsonl --model mood:score --out run --workers 1 --timeout {}"


def test_the_command_line_checks_its_timeout(mood, capsys):
    """A wrong value is reported with the option."""
    with pytest.raises(SystemExit) as ended:
        main(mood.format(0).split())

    assert ended.value.code != 0
    assert "--timeout must be finite and > 0" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_line_has_a_timeout(tmp_path, mood):
    """An input that hangs is listed, and the others are explained."""
    with pytest.raises(SystemExit):
        main(mood.format(15).split())

    run = eblime.open_run(tmp_path / "run")
    assert run.failures()["input"].tolist() == [1]
    assert run.frame()["input"].unique().tolist() == [0, 2]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read in /proc")
@pytest.mark.parametrize(("limit", "processes"), [(1 << 40, 1), (1 << 23, 3)])
def test_workers_that_grow_are_replaced(tmp_path, wanted, monkeypatch, limit, processes):
    """Every part leaks 32 MB: with a limit of 8 MB a worker does two parts."""
    monkeypatch.setattr(workers, "GROWTH", limit)
    monkeypatch.setenv("EBLIME_TEST_FLAG", str(tmp_path))
    run = eblime.explain_many(
        make_growing, ROWS, tmp_path / "r", part_size=4, workers=Workers(timeout=60)
    )

    pd.testing.assert_frame_equal(run.frame(), wanted, check_exact=True)
    assert len([entry for entry in tmp_path.iterdir() if entry.is_file()]) == processes


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_leave_no_temporary_files(tmp_path, wanted, hold, number):
    """The temporary folder is empty, and the run can be resumed."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    hold.after(1)
    command = [sys.executable, str(HERE / "many.py"), str(tmp_path / "r"), "2", "local"]
    with started(command, env={**os.environ, "TMPDIR": str(scratch)}) as driver:
        wait_until(lambda: driver.poll() is not None or list(tmp_path.glob("r/part-*")))
        driver.send_signal(number)
        assert driver.wait(LONG) == -number
        wait_until(lambda: in_group(driver.pid) == [])  # its workers end with it
    hold.release()

    assert list(scratch.iterdir()) == []
    run = eblime.explain_many(make, ROWS, tmp_path / "r", part_size=4)
    pd.testing.assert_frame_equal(run.frame(), wanted, check_exact=True)


@pytest.mark.slow
def test_temporary_files_of_killed_workers_are_deleted(tmp_path, wanted, monkeypatch):
    """A worker that is killed while writing leaves a file, which the run deletes at its end."""
    monkeypatch.setenv("EBLIME_TEST_FLAG", str(tmp_path / "flag"))
    run = eblime.explain_many(
        make_killed_while_writing, ROWS, tmp_path / "r", part_size=4, workers=2
    )

    assert (tmp_path / "flag").exists()
    assert not list((tmp_path / "r").rglob(".*.tmp"))
    pd.testing.assert_frame_equal(run.frame(), wanted, check_exact=True)


@pytest.mark.slow
def test_a_worker_that_cannot_start_is_reported(tmp_path):
    """A script without the usual guard gets an error, and no endless restarts."""
    script = tmp_path / "script.py"
    script.write_text(
        "import eblime, many\n"
        f"eblime.explain_many(many.make, many.ROWS, {str(tmp_path / 'r')!r}, workers=2)\n"
    )
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 1
    assert "Worker processes died 3 times while they started" in run.stderr


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_ray_records_crashes_and_hangs(tmp_path, wanted, poison, monkeypatch, request):
    """Like the local engine; temporary files of killed workers are deleted at the end."""
    poison(input_5="segfault", input_6="sys.exit", input_18="hang")
    monkeypatch.setenv("EBLIME_TEST_FLAG", str(tmp_path / "flag"))
    request.getfixturevalue("cluster")  # its workers see the environment of its start
    ray = {"part_size": 4, "workers": Workers(2, engine="ray", timeout=15)}
    run = eblime.explain_many(make_poisoned, ROWS, tmp_path / "r", **ray)
    errors = check_others(run, wanted, [5, 6, 18])
    assert "crashed on this input" in errors[5]
    assert "crashed on this input" in errors[6]
    assert "timeout of 15 s" in errors[18]

    run = eblime.explain_many(make_killed_while_writing, ROWS, tmp_path / "k", **ray)
    assert (tmp_path / "flag").exists()
    assert not list((tmp_path / "k").rglob(".*.tmp"))
    pd.testing.assert_frame_equal(run.frame(), wanted, check_exact=True)
