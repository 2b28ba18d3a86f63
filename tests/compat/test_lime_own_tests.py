"""Tests that the installed lime brings along, run with the import replaced.

Left out are those that download data, and those of tables, which train large forests on random
splits; `test_lime_idioms` and `test_lime_numbers` check the same. Some fail with lime itself and
current versions of NumPy and scikit-image, so the results are compared.
"""

import importlib.util
import unittest
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("sklearn")
pytestmark = pytest.mark.filterwarnings("ignore")


def outcomes(source, name):
    """Names of the tests that ran, and of those that failed."""
    module = ModuleType(name)
    exec(compile(source, name, "exec"), module.__dict__)
    suite = unittest.TestSuite(
        test
        for group in unittest.defaultTestLoader.loadTestsFromModule(module)
        for test in group
        if "newsgroups" not in test.id() and "lime_text_" not in test.id().rpartition(".")[2]
    )
    ran = {test.id() for test in suite}
    result = unittest.TestResult()
    suite.run(result)
    return ran, {test.id() for test, _ in result.failures + result.errors}


@pytest.mark.parametrize(
    "name", ["test_discretize", "test_generic_utils", "test_lime_text", "test_scikit_image"]
)
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
    assert len(ran - theirs) >= 1
    assert ours <= theirs
