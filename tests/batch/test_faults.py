"""A run that is killed, damaged or out of disk space gives the same numbers when it is resumed."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import many
import numpy as np
import pandas as pd
import pytest
from many import MASKS, ROWS, make, make_deadly, make_nothing, make_shifted, part_file
from processes import LONG, below, in_group, started, wait_until

import eblime
from eblime.batch import Workers
from eblime.domains import Domain

HERE = Path(__file__).parent
linux = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="processes are found in /proc"
)
PARTS = len(ROWS) // 4
TRIES = int(os.environ.get("EBLIME_TEST_KILLS", "8"))  # kills of each kind


def begun(out, workers, engine="local"):
    """A run in another process."""
    return started(
        [sys.executable, str(HERE / "many.py"), str(out), str(workers), engine],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def wait_for_parts(driver, out, count):
    """Wait until a run has written so many parts, or has ended."""
    wait_until(lambda: driver.poll() is not None or len(list(out.glob("part-*.parquet"))) >= count)


def killed_driver(out, workers, engine, count):
    """Begin a run in another process, and kill it and its workers after so many parts."""
    with begun(out, workers, engine) as driver:
        wait_for_parts(driver, out, count)
        if driver.returncode is None:
            os.killpg(driver.pid, signal.SIGKILL)
        driver.communicate(timeout=LONG)
        return driver.returncode


def killed_worker(out, engine, count, workers_of, hold):
    """Begin a run, kill one of its workers after so many parts; the driver finishes."""
    with begun(out, 2, engine) as driver:
        wait_for_parts(driver, out, count)
        there = workers_of(driver)
        if there:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(random.choice(there), signal.SIGKILL)
        hold.release()
        _, errors = driver.communicate(timeout=LONG)
        assert driver.returncode == 0, errors.decode()
        assert "terminate called" not in errors.decode()
        return bool(there)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_driver_is_resumed(tmp_path, wanted, hold, workers):
    """Kill -9 after any number of parts; resuming loses and duplicates nothing.

    The first run cannot end before it is killed; the others are killed at any time.
    """
    chance = random.Random(workers)
    for attempt in range(TRIES):
        out, parts = tmp_path / f"r{attempt}", chance.randint(0, PARTS - 2)
        if attempt == 0:
            hold.after(parts)
        code = killed_driver(out, workers, "local", parts)
        hold.release()
        assert code == -signal.SIGKILL or attempt > 0
        run = eblime.explain_many(make, ROWS, out, part_size=4)

        pd.testing.assert_frame_equal(run.frame(), wanted, check_exact=True)
        assert not list(out.glob(".*.tmp"))


@pytest.mark.slow
@linux
def test_workers_killed_at_any_time_are_replaced(tmp_path, wanted, hold):
    """Kill -9 of one of two workers: the driver finishes the run.

    The first run cannot end before a worker is killed; in the others it is killed at any time.
    """
    chance = random.Random(3)
    for attempt in range(TRIES):
        out, parts = tmp_path / f"r{attempt}", chance.randint(1, PARTS - 2)
        if attempt == 0:
            hold.after(parts)
        hit = killed_worker(
            out, "local", parts, lambda driver: below(driver.pid, "spawn_main"), hold
        )

        assert hit or attempt > 0
        run = eblime.open_run(out)
        pd.testing.assert_frame_equal(run.frame(), wanted, check_exact=True)


@pytest.mark.slow
@linux
def test_an_interrupt_ends_the_run_at_once(tmp_path, wanted, hold):
    """Ctrl-C ends the workers with the driver, also in a model call; the run can be resumed."""
    hold.after(1)
    with begun(tmp_path / "r", 2) as driver:
        wait_for_parts(driver, tmp_path / "r", 1)
        os.killpg(driver.pid, signal.SIGINT)
        _, errors = driver.communicate(timeout=LONG)
        assert driver.returncode == -signal.SIGINT, errors.decode()
        assert in_group(driver.pid, "spawn_main") == []
    hold.release()

    run = eblime.explain_many(make, ROWS, tmp_path / "r", part_size=4)
    pd.testing.assert_frame_equal(run.frame(), wanted, check_exact=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_ray_gives_the_same_numbers_after_kills(tmp_path, wanted, hold, cluster):
    """Actors write the same parts as processes; killed actors and drivers lose nothing."""
    chance = random.Random(0)
    for attempt in range(max(1, TRIES // 2)):
        out, parts = tmp_path / f"w{attempt}", chance.randint(1, PARTS - 2)
        if attempt == 0:
            hold.after(parts)
        hit = killed_worker(
            out, "ray", parts, lambda driver: below(cluster.head.pid, "ray::_Server"), hold
        )
        assert hit or attempt > 0
        pd.testing.assert_frame_equal(eblime.open_run(out).frame(), wanted, check_exact=True)

        out = tmp_path / f"d{attempt}"
        killed_driver(out, 2, "ray", chance.randint(0, PARTS - 1))
        again = {"workers": Workers("auto", engine="ray")} if attempt == 0 else {}
        run = eblime.explain_many(make, ROWS, out, part_size=4, **again)
        pd.testing.assert_frame_equal(run.frame(), wanted, check_exact=True)

    columns = [lambda rows: rows[:, 0], lambda rows: rows[:, 1]]
    first, second = (eblime.TabularExplainer(model, ROWS, n_masks=20) for model in columns)
    ray = Workers(engine="ray")
    finished = ROWS[:4], tmp_path / "finished"
    eblime.explain_many(first, *finished)
    eblime.explain_many(first, *finished, workers=ray)
    with pytest.raises(RuntimeError, match="was created with another model"):
        eblime.explain_many(second, *finished, workers=ray)

    with pytest.raises(ValueError, match="too few for 3 workers"):
        eblime.explain_many(make, ROWS, tmp_path / "r", workers=Workers(3, engine="ray", cpus=1))
    with pytest.raises(RuntimeError, match="cannot be created in a worker: no such"):
        eblime.explain_many(make_nothing, ROWS, tmp_path / "n", workers=Workers(2, engine="ray"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_a_lost_node_costs_no_result(tmp_path, undisturbed, hold, monkeypatch):
    """One of three raylets is killed while its worker does a part; the others do it again.

    The two that are left have no room for a third worker until one of theirs has ended.
    """
    ray = pytest.importorskip("ray", reason="ray is not installed")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    out, lost = tmp_path / "r", []
    hold.after(1)  # no part but the first can be finished
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]

    def lose_a_node(done, total):
        if done and not lost:
            lost.append(nodes[0])
            cluster.remove_node(nodes[0], allow_graceful=False)
            hold.release()

    try:
        ray.init(cluster.address, log_to_driver=False)
        workers = Workers(3, engine="ray")
        run = eblime.explain_many(
            make, ROWS, out, part_size=4, workers=workers, progress=lose_a_node
        )
    finally:
        ray.shutdown()
        cluster.shutdown()

    assert lost
    names = [sorted(p.name for p in Path(r.folder).glob("part-*")) for r in (run, undisturbed)]
    assert names[0] == names[1]  # they have the digests of the bytes


@pytest.mark.slow
def test_a_killed_worker_is_replaced(tmp_path, monkeypatch):
    """Another worker does its parts again."""
    monkeypatch.setenv("EBLIME_TEST_FLAG", str(tmp_path / "flag"))
    run = eblime.explain_many(make_deadly, ROWS, tmp_path / "r", part_size=6, workers=2)

    assert (tmp_path / "flag").exists()
    assert run.frame()["input"].nunique() == len(ROWS)


def test_a_truncated_part_is_done_again(tmp_path, wanted):
    """A damaged file is not used."""
    run = eblime.explain_many(make, ROWS, tmp_path / "r", part_size=4)
    part = part_file(tmp_path / "r", 3)
    part.write_bytes(part.read_bytes()[: part.stat().st_size // 2])
    again = eblime.explain_many(make, ROWS, tmp_path / "r", part_size=4)

    assert again.folder == run.folder
    pd.testing.assert_frame_equal(again.frame(), wanted, check_exact=True)


@pytest.mark.parametrize("retry", [False, True])
def test_a_part_that_was_copied_over_another_is_done_again(tmp_path, wanted, retry):
    """Whole as it is, it has the inputs of another part."""
    eblime.explain_many(make, ROWS, tmp_path / "r", part_size=4)
    part = part_file(tmp_path / "r", 3)
    part.write_bytes((part_file(tmp_path / "r", 2)).read_bytes())
    again = eblime.explain_many(make, ROWS, tmp_path / "r", part_size=4, retry=retry)

    pd.testing.assert_frame_equal(again.frame(), wanted, check_exact=True)


def test_a_full_disk_is_reported_and_the_run_can_be_resumed(tmp_path, wanted, monkeypatch):
    """No space left while a part is synced: a clear error, and no incomplete file."""
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


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 40 kB, where this user may mount one."""
    disk = tmp_path / "small"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", str(disk)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        done = False
    if not done:
        pytest.skip("mounting a file system is not allowed here")
    yield disk
    subprocess.run(["umount", str(disk)], capture_output=True, check=False)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_full_file_system(small_disk, wanted, workers):
    """The error is reported with one worker and with two; later the run is resumed."""
    out = small_disk / "r"
    settings = {"part_size": 4, "keep": False}
    with pytest.raises(OSError, match="No space left"):
        eblime.explain_many(make, ROWS, out, workers=workers, **settings)
    assert not list(out.glob(".*.tmp"))
    done = len(list(out.glob("part-*.parquet")))
    assert 0 < done < PARTS
    grow = ["mount", "-o", "remount,size=10m", str(small_disk)]
    subprocess.run(grow, capture_output=True, check=True)
    run = eblime.explain_many(make, ROWS, out, **settings)

    pd.testing.assert_frame_equal(run.frame(), wanted, check_exact=True)


def test_a_file_is_no_folder(tmp_path):
    """Before any model call."""
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match="file"):
        eblime.explain_many(make, ROWS, tmp_path / "file")


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_changed_model_is_detected(tmp_path, monkeypatch, workers):
    """By its predictions for finished inputs; the name of a function is not enough."""
    given = make_shifted, ROWS[:8], tmp_path / "r"
    eblime.explain_many(*given, part_size=4)
    part_file(tmp_path / "r", 1).unlink()
    monkeypatch.setenv("EBLIME_TEST_SHIFT", "0.1")
    with pytest.raises((ValueError, RuntimeError), match="was created with another model"):
        eblime.explain_many(*given, part_size=4, workers=workers)
    monkeypatch.delenv("EBLIME_TEST_SHIFT")
    run = eblime.explain_many(*given, part_size=4, workers=workers)

    assert run.frame()["input"].nunique() == 8


def test_a_model_that_changed_for_some_inputs_is_detected(tmp_path):
    """The last finished part is compared, too."""
    good = {"score": 0.8}
    explainer = eblime.TextExplainer(
        lambda texts: [good["score"] if "good" in text else 0.1 for text in texts]
    )
    texts = ["a bad day"] * 8 + ["a good day"] * 4
    eblime.explain_many(explainer, texts, tmp_path / "r", part_size=4)
    part_file(tmp_path / "r", 1).unlink()
    good["score"] = 0.7
    with pytest.raises(ValueError, match="was created with another model"):
        eblime.explain_many(explainer, texts, tmp_path / "r", part_size=4)


SATURATED = np.where(np.arange(6)[:, None] < 3, 1.0, 0.9) * np.ones(5)


def sum_of_some(columns):
    """A classifier that is certain of all inputs, by any of some columns."""
    return lambda rows: 1 / (1 + np.exp(-30 * (rows[:, columns] > 0.8).mean(axis=1)))


@pytest.mark.parametrize("created", [True, False])
def test_a_model_that_differs_only_between_the_inputs_is_detected(tmp_path, created):
    """Its predictions are the same: an input is explained again."""

    def given(columns):
        explainer = eblime.TabularExplainer(sum_of_some(columns), ROWS, n_masks=MASKS)
        return (lambda: explainer) if created else explainer, SATURATED, tmp_path / "r"

    eblime.explain_many(*given([0, 1]), part_size=3)
    part_file(tmp_path / "r", 1).unlink()
    with pytest.raises(ValueError, match=r"created with another model, or .*stored importances of"):
        eblime.explain_many(*given([2, 3]), part_size=3)
    run = eblime.explain_many(*given([0, 1]), part_size=3)

    assert run.frame()["input"].nunique() == 6


def test_a_model_with_a_name_is_not_explained_again(tmp_path):
    """Its `model_id` says that it is the same; its predictions are still compared."""
    calls = []

    def model(rows):
        calls.append(len(rows))
        return rows[:, 0]

    def given(name):
        cache = eblime.AnswerCache(tmp_path / f"{name}.db", model_id=name)
        explainer = eblime.TabularExplainer(model, ROWS, n_masks=MASKS, cache=cache)
        return explainer, ROWS[:4], tmp_path / "r"

    eblime.explain_many(*given("a"))
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    assert manifest["settings"]["model"].startswith("a ")
    calls.clear()
    eblime.explain_many(*given("a"))
    assert sum(calls) == 4
    with pytest.raises(ValueError, match=r"was created with model='a .*; this call has model='b"):
        eblime.explain_many(*given("b"))
    without = eblime.TabularExplainer(model, ROWS, n_masks=MASKS)
    eblime.explain_many(without, *given("a")[1:])
    assert sum(calls) > 4 + MASKS / 2


def weighted(theta):
    """A kernel with a setting that only its code knows."""
    return lambda closeness: np.exp(-theta * (1 - closeness).sum(axis=1))


class OwnMethod:
    """A method of the user's own."""

    name = "own"

    def __init__(self, method):
        self.method = method

    def fit(self, rng, answers):
        """That of another method."""
        return self.method.fit(rng, answers)


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("kernel", weighted(0.1), weighted(3.0)),
        ("method", OwnMethod(eblime.LIME()), OwnMethod(eblime.BayesLIME())),
        ("until", lambda law, answers: "x", lambda law, answers: "y"),
    ],
)
def test_functions_and_nested_arrays_in_settings_are_compared(tmp_path, name, first, second):
    """By the code of the functions and what they enclose, and by every number of the arrays."""

    def explain(value):
        of_run = {"until": value, "max_masks": 100} if name == "until" else {}
        settings = {} if of_run else {name: value}
        explainer = eblime.TabularExplainer(
            make().model, ROWS, names=list("abcde"), n_masks=MASKS, **settings
        )
        return eblime.explain_many(explainer, ROWS[:4], tmp_path / "r", **of_run)

    explain(first)
    explain(first)
    with pytest.raises(ValueError, match=f"created with {name}="):
        explain(second)


@pytest.mark.parametrize(
    "change",
    [
        lambda inputs: inputs[2]["x"].__setitem__(600, 5.0),
        lambda inputs: inputs[2].update(y=[1, True]),
        lambda inputs: inputs[2].update(y=[1, "1"]),
    ],
)
def test_inputs_are_compared_to_the_last_value(tmp_path, change):
    """Long arrays in dictionaries, and values that are printed in the same way."""

    def fail(entry):
        raise ValueError("not explained")

    domain = Domain(name="entries", feature="part", scene=object, read=fail)
    explainer = eblime.Explainer(len, domain)
    inputs = [{"x": np.zeros(1208), "y": [1, 1]} for _ in range(4)]
    eblime.explain_many(explainer, inputs, tmp_path / "r")
    change(inputs)
    with pytest.raises(ValueError, match="created with inputs="):
        eblime.explain_many(explainer, inputs, tmp_path / "r")


def test_changed_settings_of_a_created_explainer_are_detected(tmp_path, monkeypatch):
    """Settings and background of the explainer that a function returns."""
    eblime.explain_many(make_shifted, ROWS[:8], tmp_path / "r", part_size=4)
    part_file(tmp_path / "r", 1).unlink()
    for name, message in (
        ("MASKS", "created with n_masks='60'; this call has n_masks='61'"),
        ("ROWS", "created with background="),
    ):
        monkeypatch.setattr(many, name, {"MASKS": 61, "ROWS": ROWS[:20]}[name])
        with pytest.raises(ValueError, match=message):
            eblime.explain_many(make_shifted, ROWS[:8], tmp_path / "r", part_size=4)
        monkeypatch.undo()


def test_retry_repeats_failed_inputs(tmp_path, monkeypatch):
    """Such as after a server was down; failures stay until then."""
    given = make_shifted, ROWS[:8], tmp_path / "r"
    monkeypatch.setenv("EBLIME_TEST_SHIFT", "nan")
    with pytest.raises(RuntimeError, match="more than the 2 allowed"):
        eblime.explain_many(*given, part_size=4, max_failures=2)
    monkeypatch.delenv("EBLIME_TEST_SHIFT")
    run = eblime.explain_many(*given, part_size=4)
    assert len(run.failures()) == 4
    run = eblime.explain_many(*given, part_size=4, max_failures=2, retry=True)

    assert run.failures().empty
    assert run.frame()["input"].nunique() == 8


@pytest.mark.slow
@linux
def test_an_error_in_the_driver_ends_the_workers(tmp_path):
    """No worker of a run whose call has ended is left, so none can write to its folder."""
    before = below(os.getpid(), "spawn_main")

    def fail(done, total):
        if done:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        eblime.explain_many(make, ROWS, tmp_path / "r", part_size=4, workers=2, progress=fail)
    assert set(below(os.getpid(), "spawn_main")) <= set(before)


@pytest.mark.slow
def test_functions_that_workers_cannot_import_are_reported(tmp_path):
    """Such as those of a notebook; this is not reported as a crash."""
    code = (
        "import eblime, numpy as np\n"
        "def model(rows): return rows[:, 0]\n"
        "rows = np.random.default_rng(0).random((8, 3))\n"
        "e = eblime.TabularExplainer(model, rows, n_masks=20)\n"
        f"eblime.explain_many(e, rows, {str(tmp_path / 'r')!r}, workers=2, part_size=2)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert "The explainer cannot be created in a worker" in run.stderr
    assert "Can't get attribute 'model'" in run.stderr


def test_a_random_model_can_resume(tmp_path, rng):
    """A model that never returns the same score twice is not refused."""
    explainer = eblime.TabularExplainer(lambda rows: rng.random(len(rows)), ROWS, n_masks=50)
    eblime.explain_many(explainer, ROWS[:8], tmp_path / "r", part_size=4)
    part_file(tmp_path / "r", 1).unlink()

    run = eblime.explain_many(explainer, ROWS[:8], tmp_path / "r", part_size=4)
    assert run.frame()["input"].nunique() == 8


def test_a_run_without_parts_can_change_its_settings(tmp_path):
    """A mistake in the first call does not block the folder; a stream is stored again."""
    with pytest.raises(FileNotFoundError, match="no such model"):
        eblime.explain_many(make_nothing, iter(ROWS[:5]), tmp_path / "r", rng=3)
    run = eblime.explain_many(make, iter(ROWS[:8]), tmp_path / "r", part_size=4)

    assert run.settings["seed"] == 0
    assert run.frame()["input"].nunique() == 8


def test_a_repaired_file_is_tried_again(tmp_path):
    """Changed inputs are refused, except with retry=True."""
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("a good day")
    (folder / "b.txt").write_bytes(b"\xff\xfe broken")
    explainer = eblime.TextExplainer(lambda texts: ["good" in text for text in texts])
    run = eblime.explain_many(explainer, folder, tmp_path / "r")
    assert run.failures()["name"].tolist() == ["b.txt"]
    (folder / "b.txt").write_text("another good day")
    with pytest.raises(ValueError, match="created with inputs="):
        eblime.explain_many(explainer, folder, tmp_path / "r")
    run = eblime.explain_many(explainer, folder, tmp_path / "r", retry=True)

    assert run.failures().empty
    run = eblime.explain_many(explainer, folder, tmp_path / "r")
    assert run.frame()["name"].unique().tolist() == ["a.txt", "b.txt"]
