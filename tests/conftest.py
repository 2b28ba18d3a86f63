"""Fixtures shared by every test."""

import os
import signal
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

SEEDS = int(os.environ.get("EBLIME_TEST_SEEDS", "1"))

# Property tests try the same examples in every run; with several seeds, new ones each time. No
# test fails because the machine is busy.
timeless = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("eblime", timeless, derandomize=True, max_examples=25)
settings.register_profile("eblime-seeds", timeless, max_examples=200, print_blob=True)
settings.load_profile("eblime" if SEEDS == 1 else "eblime-seeds")


@pytest.fixture(scope="session", autouse=True)
def usual_signals():
    """Ctrl-C and the end of a terminal work, also in processes that tests start.

    In a job in the background of a shell they are ignored, and so they are in all its processes.
    """
    for name in ("SIGINT", "SIGHUP", "SIGQUIT"):
        number = getattr(signal, name, None)  # Windows has only the first
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            usual = signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
            signal.signal(number, usual)


@pytest.fixture(params=range(SEEDS))
def rng(request):
    """A generator seeded 0; `EBLIME_TEST_SEEDS=10` runs ten seeds."""
    return np.random.default_rng(request.param)


@pytest.fixture(autouse=True)
def own_modules(tmp_path_factory):
    """Modules that a test imports from its folder end with it: others may have the same names."""
    before = set(sys.modules)
    yield
    folder = str(tmp_path_factory.getbasetemp())
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(folder):
            del sys.modules[name]
