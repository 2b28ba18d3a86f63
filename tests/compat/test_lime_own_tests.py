"""All tests that the installed lime brings along, run with the import replaced.

None is left out. Two things are changed for both libraries, so that the tests need no download and
take seconds: the newsgroups are made-up sentences, and forests have 50 trees instead of 500. Some
tests fail with lime itself and current versions of NumPy and scikit-image, so the results are
compared.
"""

import importlib.util
import unittest
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytestmark = pytest.mark.filterwarnings("ignore")

FILES = {  # how many tests each has in lime 0.2.0.1
    "test_discretize": 4,
    "test_generic_utils": 1,
    "test_lime_tabular": 10,
    "test_lime_text": 9,
    "test_scikit_image": 7,
}


def made_up_news(subset, categories):
    """Two kinds of sentences in place of two newsgroups."""
    rng = np.random.default_rng(len(subset))
    words = [f"{a}{b}" for a in ("church", "faith", "host", "atheist", "reason") for b in "abcdef"]
    target = rng.integers(0, len(categories), 120)
    texts = [" ".join(rng.choice(words[12 * k : 12 * k + 18], 20)) for k in target]
    return SimpleNamespace(data=texts, target=target)


def outcomes(source, name):
    """Names of the tests that ran, and of those that failed."""
    module = ModuleType(name)
    exec(compile(source.replace("n_estimators=500", "n_estimators=50"), name, "exec"), vars(module))
    module.fetch_20newsgroups = made_up_news
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    ran, result = [test for group in suite for test in group], unittest.TestResult()
    for test in ran:
        np.random.seed(1)  # noqa: NPY002  lime's tests split the data by the global state
        test.run(result)
    failed = {test.id() for test, _ in result.failures + result.errors}
    return {test.id() for test in ran}, failed


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_what_passes_with_lime_passes_here(name):
    """No test fails that does not fail with lime itself."""
    found = importlib.util.find_spec("lime")
    folder = None if found is None else Path(found.origin).parent / "tests"
    if folder is None or not (folder / f"{name}.py").is_file():
        pytest.skip("lime is not installed, or without its tests")
    source = (folder / f"{name}.py").read_text("utf8")
    ran, theirs = outcomes(source, name)
    also_ran, ours = outcomes(source.replace("from lime.", "from eblime.compat.lime."), name)

    assert also_ran == ran
    assert len(ran) == FILES[name]
    assert len(ran - theirs) >= 1
    assert ours <= theirs
