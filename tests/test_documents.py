"""README, ARCHITECTURE and docs are true: examples run, links work, names exist."""

import ast
import builtins
import contextlib
import importlib
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from test_architecture import ALLOWED, HOUSE

import eblime
from eblime.results.export import JSON_SCHEMA

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
ROOT_PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
LINKED = [*PAGES, *(ROOT / name for name in ROOT_PAGES)]
GENERATED = ("_gallery/", "api/")  # pages that the build writes
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.M | re.S)
RUNNABLE = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf8"))]


def name_of(page):
    """The path of a page, as the id of a test."""
    return page.relative_to(ROOT).as_posix()


SLOW = [ROOT / "README.md"]  # asks a network 400 times; docs/index.md asks it 100 times
CASES = [pytest.param(page, marks=pytest.mark.slow if page in SLOW else ()) for page in RUNNABLE]


@pytest.mark.parametrize("page", CASES, ids=name_of)
def test_examples_of_a_page_run_and_print_what_it_shows(page, tmp_path, monkeypatch):
    """The Python blocks of a page run in order, in one namespace and an empty folder."""
    monkeypatch.chdir(tmp_path)
    scope = {}
    for code, shown in BLOCK.findall(page.read_text(encoding="utf8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page.name, "exec"), scope)
        if shown:
            assert_printed(printed.getvalue().split(), shown.split())


def assert_printed(printed, shown):
    """Words must be equal. Numbers may differ a little, as forests do between versions."""
    assert len(printed) == len(shown)
    for ours, theirs in zip(printed, shown, strict=True):
        try:
            near = pytest.approx(float(theirs.strip(",")), rel=0.15, abs=0.006)
            assert float(ours.strip(",")) == near
        except ValueError:
            assert ours == theirs


def test_definitions_of_the_extension_page_can_be_copied_into_modules():
    """Each block imports what its classes and functions use, apart from the example's text."""
    text = (DOCS / "how-to" / "extend.md").read_text(encoding="utf8")
    missing = {}
    for code, _ in BLOCK.findall(text):
        parts = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef)
        kept = [part for part in ast.parse(code).body if isinstance(part, parts)]
        nodes = [node for part in kept for node in ast.walk(part)]
        bound = {node.id for node in nodes if isinstance(node, ast.Name) and not loaded(node)}
        bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        bound |= {part.name for part in kept if hasattr(part, "name")}
        bound |= {(a.asname or a.name) for part in kept for a in getattr(part, "names", [])}
        used = {node.id for node in nodes if isinstance(node, ast.Name) and loaded(node)}
        if unknown := used - bound - set(dir(builtins)) - {"score"}:
            missing[kept[-1].name] = unknown

    assert missing == {}


def loaded(node):
    """Whether a name is read, not assigned."""
    return isinstance(node.ctx, ast.Load)


def test_the_examples_of_the_readme_are_found():
    """The pattern for examples matches those of the README."""
    assert ROOT / "README.md" in RUNNABLE


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_links_between_pages_work(page):
    """Every relative link and picture refers to a file that exists."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf8"), flags=re.M | re.S)
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", prose) if "://" not in link]
    paths = [link.partition("#")[0] for link in links]

    assert [path for path in paths if path and not (page.parent / path).exists()] == []


def test_the_index_lists_every_page():
    """A page that no table of contents lists cannot be found."""
    listed = set()
    for page in DOCS.rglob("*.md"):
        for contents in re.findall(
            r"^```\{toctree\}\n(.*?)^```", page.read_text(encoding="utf8"), re.M | re.S
        ):
            entries = [line for line in contents.splitlines() if line and line[0] != ":"]
            written = [entry for entry in entries if not entry.startswith(GENERATED)]
            listed |= {(page.parent / entry).resolve() for entry in written}
    found = [*DOCS.rglob("*.md"), *(DOCS / "notebooks").glob("*.ipynb")]
    pages = {page.with_suffix("") for page in found if not page.name.endswith(".in.md")}

    assert listed == {page.resolve() for page in pages - {DOCS / "index"}}


def reference():
    """The names that the reference lists."""
    text = (DOCS / "reference" / "index.md").read_text(encoding="utf8")
    lists = re.findall(r"^\.\. autosummary::\n(?:   :.*\n)*\n((?:   eblime[\w.]+\n)+)", text, re.M)
    return [name for names in lists for name in names.split()]


def documented(path):
    """The object of a path of the reference."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def test_the_reference_names_objects_that_exist():
    """Every object of the reference can be imported from the path that it names, once."""
    assert len(reference()) > 50
    assert len(set(reference())) == len(reference())
    for path in reference():
        assert documented(path).__doc__, path


def test_the_reference_has_every_public_name():
    """Whatever `import eblime` offers is in the reference, under this path."""
    public = {f"eblime.{name}" for name in eblime.__all__} - {"eblime.__version__"}

    assert public - set(reference()) == set()


ON_PAGES = {"eblime.OnnxModel", "eblime.TorchModel"}  # how-to/model-onnx.md, how-to/model-torch.md


def test_public_names_and_plots_have_an_example():
    """One that runs as a doctest, in its docstring or in that of one of its methods."""
    without = []
    for path in reference():
        if path in ON_PAGES or not (path.count(".") == 1 or path.startswith("eblime.plot.")):
            continue
        found = documented(path)
        members = vars(found).values() if isinstance(found, type) else ()
        texts = [found.__doc__, *(getattr(member, "__doc__", None) for member in members)]
        if not any(">>> " in (text or "") for text in texts):
            without.append(path)

    assert without == []


def test_the_json_page_lists_the_keys_that_are_written():
    """The layout on the page is that of an explanation of a table row."""
    background = np.random.default_rng(0).random((50, 3))
    explainer = eblime.TabularExplainer(lambda rows: rows[:, 0], background, n_masks=20)
    written = json.loads(explainer.explain(background[0]).to_json())
    page = (DOCS / "reference" / "json.md").read_text(encoding="utf8")
    keys = [re.findall(r"^\| (`.*?) \|", part, re.M) for part in page.split("Each entry of")]
    of_all, of_feature = (set(re.findall(r"`(\w+)`", " ".join(part))) for part in keys)

    assert set(written) == of_all
    assert set(written["features"][0]) <= of_feature
    assert written["schema"] == JSON_SCHEMA
    assert f'"{JSON_SCHEMA}"' in page


def table_of_parts():
    """The parts in the table of ARCHITECTURE.md, in its order."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf8")
    rows = re.findall(r"^\| (`.*?) \|", text.split("## Parts")[1].split("\n## ")[0], re.M)
    return [name.strip("/") for row in rows for name in re.findall(r"`([\w/]+)`", row)]


def test_the_architecture_page_lists_every_part():
    """The page lists the parts of the map, each once."""
    assert sorted(table_of_parts()) == sorted(set(ALLOWED) - {"__init__", "__main__"})


def test_the_architecture_page_orders_parts_by_their_imports():
    """A part comes after all parts that it imports."""
    position = {part: number for number, part in enumerate(table_of_parts())}
    wrong = [
        (part, needed)
        for part in position
        for needed in ALLOWED[part] & set(position)
        if position[needed] > position[part]
    ]

    assert wrong == []


def test_the_architecture_page_names_files_that_exist():
    """Every module that the page names exists, with or without its folder."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf8")
    order, files = text.split("## Reading order of `core/`"), {}
    files[HOUSE / "core"] = re.findall(r"`(\w+\.py)`", order[1])
    files[ROOT] = re.findall(r"`(tests/\w+\.py)`", order[0])
    files[HOUSE] = re.findall(r"`((?!tests/)[\w/]+\.py)`", order[0])

    missing = [name for folder in files for name in files[folder] if not (folder / name).exists()]
    assert missing == []
    listed = {f"core/{name}" for name in files[HOUSE / "core"]}
    assert listed == {f"core/{path.name}" for path in (HOUSE / "core").glob("[a-z]*.py")}
