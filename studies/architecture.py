"""How heavy the library is: lines of code and files, importers, and the way of an input.

Lines of code are neither blank, comments nor docstrings. A module has one importer if one other
module names it in an import statement. The way of an input is found by following every call of
`explain`, of a run's worker, and of `print`.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import sys
import tempfile
import tokenize
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


def sizes() -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Lines of code, all lines, and files of every part."""
    code: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for path in HOME.rglob("*.py"):
        inside = path.relative_to(HOME).parts
        part = inside[0] if len(inside) > 1 else "(top)"
        text = path.read_text(encoding="utf8")
        code[part] += code_lines(text)
        lines[part] += len(text.splitlines())
        files[part] += 1
    return code, lines, files


def code_lines(text: str) -> int:
    """Lines of a module that are neither blank, comments nor docstrings."""
    skipped = {
        tokenize.COMMENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
        tokenize.INDENT,
        tokenize.NEWLINE,
        tokenize.NL,
    }
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, owners) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            lines -= {*range(first.lineno, (first.end_lineno or first.lineno) + 1)}
    return len(lines)


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


def ways() -> dict[str, Trace]:
    """The calls of one explanation of an image, a row, and a row of a run; and of printing one."""
    rng = np.random.default_rng(0)
    picture, table = rng.random((32, 32, 3)), rng.random((200, 5))
    image = eblime.ImageExplainer(lambda batch: batch[:, :8, :8].mean(axis=(1, 2)))
    row = eblime.TabularExplainer(lambda rows: rows[:, 0] - rows[:, 1], table)
    with redirect_stdout(io.StringIO()):
        print(image.explain(picture))  # imports are not counted
        row.explain(table[0])
        found: dict[str, Trace] = {}
        found["an image"], explanation = follow(lambda: image.explain(picture))
        found["a row"], _ = follow(lambda: row.explain(table[0]))
        found["one row of a run"] = _row_of_run(row, table[:1])
        found["print"], _ = follow(lambda: print(explanation))
    return found


def _row_of_run(explainer: eblime.TabularExplainer, rows: np.ndarray) -> Trace:
    """The calls of a run about one row, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"workers": 1, "progress": False}
        eblime.explain_many(explainer, rows, f"{folder}/first", **options)
        trace, _ = follow(
            lambda: eblime.explain_many(explainer, rows, f"{folder}/second", **options)
        )
    return trace


def n_parameters(function: Callable[..., object]) -> int:
    """The number of parameters without `self`."""
    return sum(name != "self" for name in inspect.signature(function).parameters)


def run(options: argparse.Namespace) -> None:
    """Print every figure."""
    code, lines, files = sizes()
    print(
        f"src/eblime: {sum(code.values()):,} lines of code, {sum(lines.values()):,} lines in all, "
        f"{sum(files.values())} files"
    )
    for part in sorted(lines):
        print(
            f"  {part:<12} {code[part]:>6,} lines of code {lines[part]:>6,} in all "
            f"{files[part]:>4} files"
        )
    single = sorted(name for name, users in importers().items() if len(users) == 1)
    print(f"modules with one importer: {len(single)}")
    for name in single:
        print(f"  {name}")
    for name, trace in ways().items():
        print(
            f"{name}: {len(trace.functions)} different functions, {len(trace.modules)} modules, "
            f"{trace.deepest} in a row, {sum(trace.functions.values())} calls"
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
