"""An undisturbed run and a Ray cluster, for all tests of runs."""

import socket
import subprocess
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from many import ROWS, make
from processes import LONG, started, wait_until

import eblime

pytest.importorskip("pyarrow", reason="pyarrow is not installed")


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """An undisturbed run of six parts."""
    return eblime.explain_many(make, ROWS, tmp_path_factory.mktemp("run") / "r", part_size=4)


@pytest.fixture(scope="session")
def wanted(undisturbed):
    """Its frame."""
    return undisturbed.frame()


class Hold:
    """Stops the model of `many.py` in every process, so that a run cannot end too early."""

    def __init__(self, file):
        self.file = file

    def after(self, parts):
        """Stop the model in every input after so many parts: none of these can be finished."""
        self.file.write_text(str(4 * parts))

    def release(self):
        """Let the model continue."""
        self.file.unlink(missing_ok=True)


@pytest.fixture
def hold(tmp_path, monkeypatch):
    """Stops runs; processes that are started later know it by an environment variable."""
    monkeypatch.setenv("EBLIME_TEST_HOLD", str(tmp_path / "hold.txt"))
    held = Hold(tmp_path / "hold.txt")
    yield held
    held.release()


@contextmanager
def ray_head(port):
    """The first node of a Ray cluster; it ends its other processes itself."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"]
    options = [f"--port={port}", "--num-cpus=2", "--include-dashboard=false"]
    with started(command + options, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as head:
        try:
            yield head
        finally:
            head.terminate()
            head.wait(LONG)


def connected(ray, address, head):
    """Whether a cluster is up; False if its first node has ended, such as for a port in use."""

    def attempt():
        if head.poll() is not None:
            return "ended"
        try:
            ray.init(address, log_to_driver=False)
        except Exception:  # it is not up yet
            return ""
        return "connected"

    return wait_until(attempt) == "connected"


@pytest.fixture
def cluster(monkeypatch):
    """A Ray cluster on this machine, ended afterwards; drivers find it by its address.

    `cluster.head` is its first process.
    """
    ray = pytest.importorskip("ray", reason="ray is not installed")
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    for _ in range(5):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with ray_head(port) as head:
            if connected(ray, f"127.0.0.1:{port}", head):
                monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
                yield SimpleNamespace(head=head)
                ray.shutdown()
                return
    pytest.fail("no Ray cluster can be started")
