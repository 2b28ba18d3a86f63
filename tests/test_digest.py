"""Digests of content: the same for the same content, in every process."""

import collections
import functools
import subprocess
import sys
import types
from dataclasses import dataclass

import numpy as np
import pytest

from eblime._digest import UnknownContentError, digest_of


@dataclass
class Scene:
    """An object of a class that is not installed."""

    numbers: object


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (1, 1.0),
        (1, True),
        ("1", b"1"),
        ([1, 2], [2, 1]),
        ([1, 2], (1, 2)),
        ({"a": 1}, {"a": 2}),
        ({1, 2}, {1, 3}),
        (np.zeros(2), np.zeros((1, 2))),
        (np.zeros(2), np.zeros(2, dtype=np.float32)),
        (np.zeros(2, ">f8"), np.zeros(2, "<f8")),
        (np.array(["a", None], dtype=object), np.array(["b", None], dtype=object)),
        (np.array(["2020"], "M8[Y]"), np.array(["2021"], "M8[Y]")),
        (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[1, 0])),
        (collections.defaultdict(int, a=1), collections.defaultdict(float, a=1)),
        (collections.deque([1], 3), collections.deque([1], 4)),
        (functools.partial(max, 1), functools.partial(min, 1)),
        (Scene(np.zeros(2)), Scene(np.ones(2))),
        (np.mean, np.median),
    ],
)
def test_other_content_has_another_digest(one, two):
    """And a value has always the same."""
    first = digest_of(one, own_classes=True)

    assert digest_of(one, own_classes=True) == first != digest_of(two, own_classes=True)


def test_equal_content_has_the_same_digest():
    """Whatever its place in memory: copies, read-only arrays, views, strings that occur twice."""
    array, word = np.arange(6.0).reshape(2, 3), "".join(["a", "b"])
    frozen = array.copy()
    frozen.flags.writeable = False

    for same in (frozen, np.asfortranarray(array), np.stack([array, array])[0]):
        assert digest_of(same) == digest_of(array)
    assert digest_of([word, word]) == digest_of(["ab", "".join(["a", "b"])])
    assert digest_of([[1], [1]]) == digest_of([[1]] * 2)


def test_sets_have_the_same_digest_in_another_process():
    """Whatever the seed of Python's hashes is."""
    code = "from eblime._digest import digest_of\nprint(digest_of([{'a', 'b', 'c', 'd'}]))"
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


@functools.lru_cache
def remembered(x):
    """A function behind an object of the standard library."""
    return x


def disguised():
    """A function that names another module as its own."""


disguised.__module__ = "numpy"
RING = [1]
RING.append(RING)


@pytest.mark.parametrize("own_classes", [False, True])
@pytest.mark.parametrize(
    "value",
    [
        (n for n in [1]),
        lambda x: x,
        functools.partial(lambda x: x, 1),
        remembered,
        np.frompyfunc(lambda x: x, 1, 1),
        np.vectorize(lambda x: x),
        collections.defaultdict(lambda: 1),
        Scene(3).__repr__,
        disguised,
        np.array([lambda x: x], dtype=object),
        RING,
        sys,
    ],
)
def test_content_that_is_not_certain_is_refused(value, own_classes):
    """Such as functions of the user's own, wherever they are."""
    for where in (value, {"deep": [value]}):
        with pytest.raises(UnknownContentError):
            digest_of(where, own_classes=own_classes)


def test_classes_must_be_installed():
    """Unless they are allowed: then their name and attributes count."""
    with pytest.raises(UnknownContentError, match=r"the class Scene of .* an installed package"):
        digest_of(Scene(1))

    assert len(digest_of(Scene(1), own_classes=True)) == 32
    with pytest.raises(UnknownContentError, match=r"attribute lookup|not found"):
        digest_of(type("Disguised", (), {"__module__": "numpy"})())


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages", "project"])
def test_packages_of_another_folder_are_known_by_their_version(folder, monkeypatch):
    """A package that is not in Python's own folder, as with `pip install --target` or conda."""
    name = f"far_away_{folder.replace('-', '_')}"
    package = types.ModuleType(name)
    package.__file__, package.__version__ = f"/opt/{folder}/{name}/__init__.py", "1.0"
    exec("def score(x): return x", vars(package))
    monkeypatch.setitem(sys.modules, name, package)

    if folder == "project":
        with pytest.raises(UnknownContentError):
            digest_of(package.score)
    else:
        before = digest_of(package.score)
        package.__version__ = "1.1"
        assert digest_of(package.score) != before
