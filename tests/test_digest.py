"""Digests of content: the same for the same content, in every process."""

import collections
import functools
import subprocess
import sys
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
    first = digest_of(one)

    assert digest_of(one) == first != digest_of(two)


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


RING = [1]
RING.append(RING)


def calls_itself(n):
    """A function that encloses itself."""

    def inner(k):
        return inner(k - 1) if k > n else k

    return inner


@pytest.mark.parametrize(
    "value", [(n for n in [1]), RING, np.frompyfunc(len, 1, 1), sys, calls_itself(1)]
)
def test_content_that_cannot_be_read_is_refused(value):
    """Wherever it is."""
    for where in (value, {"deep": [value]}):
        with pytest.raises(UnknownContentError):
            digest_of(where)


def scaled(factor, *, default=1.0):
    """A function with a variable of its own, and one with a default."""

    def inner(x, power=default):
        return factor * x**power

    return inner


@pytest.mark.parametrize(
    ("create", "other"),
    [
        (lambda: scaled(2.0), lambda: scaled(3.0)),
        (lambda: scaled(2.0), lambda: scaled(2.0, default=2.0)),
        (lambda: lambda x: x + 1, lambda: lambda x: x + 2),
        (lambda: lambda x: [k + 1 for k in x], lambda: lambda x: [k + 2 for k in x]),
        (lambda: functools.partial(scaled(2.0)), lambda: functools.partial(scaled(3.0))),
    ],
)
def test_functions_count_by_their_code(create, other):
    """And by their defaults and enclosed variables."""
    assert digest_of(create()) == digest_of(create())
    assert digest_of(create()) != digest_of(other())


def test_code_has_the_same_digest_in_another_process():
    """Whatever the name of the module, which a worker process gives to a script."""
    code = (
        "from dataclasses import dataclass\n"
        "from eblime._digest import digest_of\n"
        "def scaled(factor):\n"
        "    return lambda x: factor * x in {'a', 'b', 'c'}\n"
        "@dataclass(frozen=True)\n"
        "class Own:\n"
        "    x: object = None\n"
        "    def __call__(self): return super().__repr__()\n"
        "print(digest_of([scaled(2), Own(3), Own]))\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", f"__name__ = {name!r}\n{code}"],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed, name in (("1", "__main__"), ("2", "__mp_main__"))
    }

    assert len(found) == 1


def frames():
    """Frames that differ in one respect each from the first."""
    pd = pytest.importorskip("pandas")
    first = pd.DataFrame({"a": [1.0, 2.0], "b": pd.Categorical(["x", "y"])})
    yield first
    yield first.rename(columns={"a": "c"})
    yield first.astype({"a": int})
    yield first.astype({"a": object})
    yield first.assign(b=pd.Categorical(["x", "y"], categories=["y", "x"]))
    yield first.assign(b=["x", "y"])
    yield first.set_index([["r", "s"]])
    yield pd.DataFrame({"a": pd.Series([True, False], dtype=object)})
    yield pd.DataFrame({"a": ["True", "False"]})
    yield first["a"]


def test_tables_count_by_their_values_names_and_dtypes():
    """However their columns are stored."""
    first, *others = frames()
    copy = first[["b"]].assign(a=first["a"])[["a", "b"]]

    assert digest_of(copy) == digest_of(first)
    assert len({digest_of(frame) for frame in (first, *others)}) == 1 + len(others)


def test_sparse_matrices_and_arrow_tables_count_by_their_values():
    """And arrow tables whatever their chunks."""
    sparse, pa = pytest.importorskip("scipy.sparse"), pytest.importorskip("pyarrow")
    rows, table = sparse.csr_matrix(np.eye(3)), pa.table({"a": [1, 2]})

    assert digest_of(rows) == digest_of(rows.copy()) != digest_of(2 * rows)
    assert digest_of(table) == digest_of(pa.concat_tables([table[:1], table[1:]]))
    assert digest_of(table) != digest_of(pa.table({"a": [1, 3]}))
