"""How heavy the library is: lines and files, importers, and the way of one image.

Lines include docstrings and blank lines. A module has one importer if one other module names it in
an import statement. The way of an image is found by following every call of `explain` and `print`.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from types import FrameType

import numpy as np

import eblime

HOME = Path(eblime.__file__).parent


def modules() -> dict[str, Path]:
    """Every module of the package, by its dotted name."""
    found = {}
    for path in sorted(HOME.rglob("*.py")):
        parts = path.relative_to(HOME.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(tree: ast.AST) -> Iterator[str]:
    """Every dotted name that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def importers() -> dict[str, set[str]]:
    """For every module, the other modules that import it."""
    known, users = modules(), defaultdict(set)
    for name, path in known.items():
        for other in imported(ast.parse(path.read_text(encoding="utf8"))):
            if other in known and other != name:
                users[other].add(name)
    packages = {name for name, path in known.items() if path.name == "__init__.py"}
    return {name: found for name, found in users.items() if name not in packages}


def sizes() -> tuple[Counter[str], Counter[str]]:
    """Lines and files of every part."""
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for path in HOME.rglob("*.py"):
        inside = path.relative_to(HOME).parts
        part = inside[0] if len(inside) > 1 else "(top)"
        lines[part] += len(path.read_text(encoding="utf8").splitlines())
        files[part] += 1
    return lines, files


def words(pattern: str) -> int:
    """How often the sources call a function of this name."""
    trees = [ast.parse(path.read_text(encoding="utf8")) for path in modules().values()]
    calls = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    return sum(isinstance(call.func, ast.Name) and call.func.id == pattern for call in calls)


class Trace:
    """The functions of the package that run during a call."""

    def __init__(self) -> None:
        self.functions: Counter[tuple[str, int]] = Counter()
        self.deepest = self._depth = 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """Count calls, and how many functions of the package are open at once."""
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(str(HOME)):
            return
        if code.co_name.startswith("<"):  # comprehensions and module bodies are no functions
            return
        if event == "call":
            self.functions[code.co_filename, code.co_firstlineno] += 1
            self._depth += 1
            self.deepest = max(self.deepest, self._depth)
        else:
            self._depth -= 1

    @property
    def modules(self) -> set[str]:
        """The modules whose functions ran."""
        return {path for path, _ in self.functions}


def follow(work: Callable[[], object]) -> tuple[Trace, object]:
    """Run something, and record the functions of the package that it calls."""
    trace = Trace()
    sys.setprofile(trace)
    try:
        result = work()
    finally:
        sys.setprofile(None)
    return trace, result


def image_way() -> tuple[Trace, Trace]:
    """The calls of one explanation of an image, and of printing it."""
    picture = np.random.default_rng(0).random((32, 32, 3))
    explainer = eblime.ImageExplainer(lambda batch: batch[:, :8, :8].mean(axis=(1, 2)))
    with redirect_stdout(io.StringIO()):
        print(explainer.explain(picture))  # imports are not counted
        explained, explanation = follow(lambda: explainer.explain(picture))
        printed, _ = follow(lambda: print(explanation))
    return explained, printed


def n_parameters(function: Callable[..., object]) -> int:
    """The number of parameters without `self`."""
    return sum(name != "self" for name in inspect.signature(function).parameters)


def run(options: argparse.Namespace) -> None:
    """Print every figure."""
    lines, files = sizes()
    print(f"lines in src/eblime: {sum(lines.values()):,} in {sum(files.values())} files")
    for part in sorted(lines):
        print(f"  {part:<12} {lines[part]:>6,} lines {files[part]:>4} files")
    single = sorted(name for name, users in importers().items() if len(users) == 1)
    print(f"modules with one importer: {len(single)}")
    for name in single:
        print(f"  {name}")
    explained, printed = image_way()
    print(
        f"an image: {explained.deepest} functions in a row, {len(explained.modules)} modules, "
        f"{len(explained.functions)} different functions"
    )
    print(
        f"print: {len(printed.functions)} different functions, "
        f"{sum(printed.functions.values())} calls"
    )
    for what in (
        eblime.ImageExplainer,
        eblime.TextExplainer,
        eblime.TabularExplainer,
        eblime.ImageExplainer.explain,
        eblime.explain_many,
    ):
        print(f"parameters of {what.__qualname__}: {n_parameters(what)}")
    public = vars(eblime)["__all__"]  # which type checkers do not see: it is read from a file
    print(f"public names: {len(public)}; calls of hasattr: {words('hasattr')}")
