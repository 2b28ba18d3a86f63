"""Digests of content: the same for the same content, in every process."""

import functools
import subprocess
import sys
import threading
import types

import numpy as np
import pytest

from eblime._digest import UnknownContentError, digest_of

FACTOR = 2.0
LOG = []


def scaled(x):
    """Depends on a global."""
    return FACTOR * x


def logged(x):
    """Writes to a global list, and counts."""
    LOG.append(x)
    logged.calls = getattr(logged, "calls", 0) + 1
    return scaled(x)


class Model:
    """An object with settings and a counter."""

    def __init__(self, weights):
        self.weights, self.calls, self.seen = weights, 0, []
        self.lock = threading.Lock()

    def __call__(self, x):
        """Count and answer."""
        with self.lock:
            self.calls += 1
            self.seen.append(x)
        return x @ self.weights


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (1, 1.0),
        (1, True),
        ("1", b"1"),
        ([1, 2], [2, 1]),
        ([1, 2], (1, 2)),
        ({"a": 1}, {"a": 2}),
        (np.zeros(2), np.zeros((1, 2))),
        (np.zeros(2), np.zeros(2, dtype=np.float32)),
        (np.array(["a", None], dtype=object), np.array(["b", None], dtype=object)),
        (lambda x: x + 1, lambda x: x + 2),
        (lambda x, k=1: x + k, lambda x, k=2: x + k),
        (functools.partial(max, 1), functools.partial(max, 2)),
        (Model(np.ones(2)), Model(np.zeros(2))),
        (np.mean, np.median),
        (scaled, logged),
    ],
)
def test_other_content_has_another_digest(one, two):
    """And a value has always the same."""
    assert digest_of(one) == digest_of(one) != digest_of(two)


def test_globals_and_closures_count(monkeypatch):
    """A function is also what it refers to."""
    before = digest_of(scaled), digest_of(logged)
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 3.0)

    assert digest_of(scaled) != before[0]
    assert digest_of(logged) != before[1]


def test_what_a_function_writes_itself_does_not_count():
    """Counters and logs change with every call."""
    counter, total, model = types.SimpleNamespace(calls=0), 0, Model(np.ones(2))

    def count(x):
        nonlocal total
        total += 1
        counter.calls += 1
        return x

    before = digest_of(logged), digest_of(count), digest_of(model)
    logged(1)
    count(1)
    model(np.ones(2))

    assert (digest_of(logged), digest_of(count), digest_of(model)) == before


def test_sets_and_functions_have_the_same_digest_in_another_process():
    """Whatever the seed of Python's hashes is."""
    code = (
        "from eblime._digest import digest_of\n"
        "def f(x): return x in {'a', 'b', 'c', 'd'}\n"
        "print(digest_of([f, {'a', 'b', 'c', 'd'}]))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }

    assert len(found) == 1


def test_content_that_cannot_be_read_is_refused():
    """A generator has no content to compare."""
    with pytest.raises(UnknownContentError, match="generator"):
        digest_of([x for x in (n for n in [1])] and (n for n in [1]))


def test_objects_that_contain_themselves():
    """A cycle ends."""
    ring = [1]
    ring.append(ring)

    assert digest_of(ring) == digest_of(ring)


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages", "project"])
def test_packages_of_another_folder_are_known_by_their_version(folder, monkeypatch):
    """A package that is not in Python's own folder, as with `pip install --target` or conda."""
    package = types.ModuleType("far_away")
    package.__file__, package.__version__ = f"/opt/{folder}/far_away/__init__.py", "1.0"
    exec("def score(x, stream): return x", vars(package))
    package.score.__module__ = "far_away"
    package.score.__defaults__ = ((k for k in "ab"),)  # cannot be compared by content
    monkeypatch.setitem(sys.modules, "far_away", package)

    if folder == "project":
        with pytest.raises(UnknownContentError):
            digest_of(package.score)
    else:
        assert digest_of(package.score) == digest_of(package.score)
