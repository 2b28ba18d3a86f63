"""An undisturbed run and a Ray cluster, for all tests of runs."""

import socket
import subprocess
import sys
import time

import pytest
from many import ROWS, make

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


@pytest.fixture
def cluster(monkeypatch):
    """A Ray cluster on this machine, ended afterwards; drivers find it by its address."""
    ray = pytest.importorskip("ray", reason="ray is not installed")
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"]
    options = [f"--port={port}", "--num-cpus=2", "--include-dashboard=false"]
    head = subprocess.Popen(command + options, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"127.0.0.1:{port}"
    monkeypatch.setenv("RAY_ADDRESS", address)
    for _ in range(120):
        time.sleep(1.0)
        try:
            ray.init(address, log_to_driver=False)
            break
        except Exception:  # it is not up yet
            assert head.poll() is None
    yield ray
    ray.shutdown()
    head.terminate()
    head.wait()
