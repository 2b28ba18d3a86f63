"""README, ARCHITECTURE and docs are true: examples run, links work, names exist."""

import ast
import builtins
import contextlib
import doctest
import importlib.util
import inspect
import io
import json
import re
from pathlib import Path
from typing import Any, Protocol, get_origin

import click
import numpy as np
import pytest
from test_architecture import ALLOWED, HOUSE

import eblime
from eblime import registry, testing
from eblime.cli.app import app
from eblime.results.export import JSON_SCHEMA
from studies.__main__ import module_name

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
ROOT_PAGES = ("ARCHITECTURE.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md")
ROOT_PAGES += ("DECISIONS.md", "SECURITY.md")
LINKED = [*PAGES, *(ROOT / name for name in ROOT_PAGES)]
GENERATED = ("_gallery/", "api/")  # pages that the build writes
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.M | re.S)
GALLERY = sorted((DOCS / "gallery").glob("plot_*.py"))
RUNNABLE = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf8"))]


def name_of(page):
    """The path of a page, as the id of a test."""
    return page.relative_to(ROOT).as_posix()


# many.md starts processes.
SLOW = [DOCS / "how-to" / "many.md"]
CASES = [pytest.param(page, marks=pytest.mark.slow if page in SLOW else ()) for page in RUNNABLE]


@pytest.mark.parametrize("page", CASES, ids=name_of)
def test_examples_of_a_page_run_and_print_what_it_shows(page, tmp_path, monkeypatch):
    """The Python blocks of a page run in order, in one namespace and an empty folder."""
    monkeypatch.chdir(tmp_path)
    scope = {}
    for code, shown in BLOCK.findall(page.read_text(encoding="utf8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile(code, page.name, "exec"), scope)
            except ImportError as error:
                skip_without_torch(error)
        if shown:
            assert_printed(printed.getvalue().split(), shown.split())


def skip_without_torch(error):
    """A page with a network runs where torch is installed; any other import must work."""
    if importlib.util.find_spec("torch") is not None or "torch" not in str(error):
        raise error
    pytest.skip("needs torch: `make test-full` runs it")


def assert_printed(printed, shown):
    """Words must be equal. Numbers may differ a little, as forests do between versions."""
    assert len(printed) == len(shown)
    for ours, theirs in zip(printed, shown, strict=True):
        try:
            near = pytest.approx(float(theirs.strip(",")), rel=0.15, abs=0.006)
            assert float(ours.strip(",")) == near
        except ValueError:
            assert ours == theirs


LISTS = {"methods": "methods", "designs": "methods", "kernels": "methods"}
LISTS |= {"plots": "plots", "run_plots": "many"}


@pytest.mark.parametrize("kind", LISTS)
def test_every_name_is_on_the_page_of_its_kind(kind):
    """A name that no page has cannot be found."""
    page = DOCS / "how-to" / f"{LISTS[kind]}.md"
    text = page.read_text(encoding="utf8")
    absent = [name for name in registry._BUILT_IN[kind] if f'"{name}"' not in text]

    assert absent == [], f"{name_of(page)} must name each of eblime's {kind}"


NEEDS = {  # what an example uses -> the extra that installs it
    "efficientnet_lite0": "demo",
    "from sklearn": "sklearn",
    "import torch": "torch",
    "import pandas": "frame",
    "as_frame=True": "frame",
    ".to_frame(": "frame",
    "explain_many(": "batch",
}


@pytest.mark.parametrize("page", [page for page in RUNNABLE if DOCS in page.parents], ids=name_of)
def test_extras_are_named_before_the_example_that_needs_them(page):
    """Who follows a page from its top has installed what the next example imports."""
    text = page.read_text(encoding="utf8")
    late = set()
    for block in BLOCK.finditer(text):
        before = text[: block.start()]
        lists = re.findall(r"pip install '(?:eblime|\.(?:/eblime)?)\[([\w,]+)\]'", before)
        known = {extra for found in lists for extra in found.split(",")}
        late |= {extra for use, extra in NEEDS.items() if use in block[1] and extra not in known}
    if "batch" in known:  # it installs pandas too
        late -= {"frame"}

    assert late == set()


def test_the_parts_of_the_extension_page_pass_the_checks():
    """By name too, which saves and loads; the page itself checks the objects."""
    scope = {}
    text = (DOCS / "how-to" / "extend.md").read_text(encoding="utf8")
    with contextlib.redirect_stdout(io.StringIO()):
        for code, _ in BLOCK.findall(text):
            exec(compile(code, "extend.md", "exec"), scope)
    registry.register("methods", "bootstrap", scope["Bootstrap"])
    registry.register("designs", "rounds", scope["Rounds"])
    registry.register("kernels", "fading", scope["fading"])

    testing.check_method("bootstrap")
    testing.check_design("rounds")
    testing.check_kernel("fading")


def test_definitions_of_the_extension_page_can_be_copied_into_modules():
    """Each block imports what its classes and functions use, apart from the example's text."""
    text = (DOCS / "how-to" / "extend.md").read_text(encoding="utf8")
    missing = {}
    for code, _ in BLOCK.findall(text):
        parts = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef)
        kept = [part for part in ast.parse(code).body if isinstance(part, parts)]
        if unknown := unknown_names(kept) - {"score"}:
            missing[kept[-1].name] = unknown

    assert missing == {}


def unknown_names(parts):
    """Names that code reads and neither defines nor imports."""
    nodes = [node for part in parts for node in ast.walk(part)]
    names = [node for node in nodes if isinstance(node, ast.Name)]
    used = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.name for node in nodes if hasattr(node, "name")}
    imported = [node for node in nodes if isinstance(node, ast.alias)]
    bound |= {node.asname or node.name.partition(".")[0] for node in imported}
    return used - bound - set(dir(builtins))


NAMES = "|".join(app.list_commands(click.Context(app)))
COMMAND = re.compile(rf"(?:^|`|^    )(eblime (?:{NAMES})\b(?:[^`\n\\]|\\\n)*)", re.M)
COMMANDS = [page for page in LINKED if COMMAND.search(page.read_text(encoding="utf8"))]


@pytest.mark.parametrize("page", COMMANDS, ids=name_of)
def test_options_on_a_page_belong_to_their_command(page):
    """Every `--option` of an `eblime` command on a page is one that the command has."""
    unknown = []
    for line in COMMAND.findall(page.read_text(encoding="utf8")):
        command, words = command_of(line.replace("\\\n", " ").partition(" #")[0].split()[1:])
        known = {name for option in command.params for name in option.opts} | {"--help", "--debug"}
        used = {re.match(r"--[\w-]+", word)[0] for word in words if word.startswith("--")}
        unknown += [f"{line}: {option}" for option in used - known]

    assert unknown == []


STUDY = re.compile(r"python -m studies ([\w-]+)((?:[^`\n\\]|\\\n)*)")
MEASURED = [page for page in PAGES if STUDY.search(page.read_text(encoding="utf8"))]


@pytest.mark.parametrize("page", MEASURED, ids=name_of)
def test_studies_that_make_figures_exist_with_their_options(page):
    """A page names the command that makes its figures; the study has each of its options."""
    for study, rest in STUDY.findall(page.read_text(encoding="utf8")):
        path = ROOT.joinpath(*module_name(study).split(".")).with_suffix(".py")
        shared = [ROOT / "studies" / "runner.py", ROOT / "studies" / "speed" / "clock.py"]
        known = "".join(each.read_text(encoding="utf8") for each in [path, *shared])
        options = re.findall(r"--[a-z][\w-]*", rest)

        assert [o for o in options if f'"{o}"' not in known and o != "--help"] == [], study


def command_of(words):
    """The command that words name, and the words that follow its name."""
    command = app
    with command.make_context("eblime", [], resilient_parsing=True) as context:
        while hasattr(command, "get_command") and words and not words[0].startswith("-"):
            found = command.get_command(context, words[0])
            if found is None:  # as in `eblime explain ... --compare`: all have the same options
                found = command.get_command(context, "text")
            command, words = found, words[1:]
    return command, words


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


def headings(page):
    """The names by which links find the headings and the labels of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf8"), flags=re.M | re.S)
    found = re.findall(r"^#+ (.*)$", text, re.M)
    names = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in found}
    return names | set(re.findall(r"^\(([\w-]+)\)=$", text, re.M))


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_links_name_headings_that_exist(page):
    """A link to a part of a page leads there."""
    links = re.findall(r"\]\(([^)\s:]*)#([^)\s]+)\)", page.read_text(encoding="utf8"))
    paths = [(page.parent / path if path else page, name) for path, name in links]

    assert [(path.name, name) for path, name in paths if name not in headings(path)] == []


def test_the_index_lists_every_page():
    """A page that no table of contents lists cannot be found."""
    listed = set()
    for page in DOCS.rglob("*.md"):
        for contents in re.findall(
            r"^```\{toctree\}\n(.*?)^```", page.read_text(encoding="utf8"), re.M | re.S
        ):
            entries = [line for line in contents.splitlines() if line and line[0] != ":"]
            written = [
                entry for entry in entries if not entry.startswith(GENERATED) and "://" not in entry
            ]
            listed |= {(page.parent / entry).resolve() for entry in written}
    pages = {page.with_suffix("") for page in DOCS.rglob("*.md")}

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


# Modules from which users import. Other modules may move.
PUBLIC = {
    *("eblime", "eblime.answers", "eblime.batch", "eblime.datasets", "eblime.designs"),
    *("eblime.domains", "eblime.family", "eblime.games", "eblime.kernels", "eblime.laws"),
    *("eblime.core", "eblime.methods", "eblime.models.language"),
    *("eblime.plot", "eblime.protocols"),
    *("eblime.registry", "eblime.results", "eblime.scores", "eblime.stopping", "eblime.testing"),
    # one module per study, named like its main function
    *("eblime.measures", "studies.coverage", "studies.intervals"),
    *("studies.faithfulness", "studies.localisation"),
    "studies.stability",
    # the modules of lime
    *("eblime.compat.lime", "eblime.compat.lime.discretize", "eblime.compat.lime.explanation"),
    *("eblime.compat.lime.lime_image", "eblime.compat.lime.wrappers.scikit_image"),
}
# Their `__all__` also lists what other parts of the library use.
SHARED = {module for module in PUBLIC if module.startswith("studies")}
SHARED |= {module for module in PUBLIC if module.startswith("eblime.compat.lime.")}
SHARED |= {"eblime.kernels", "eblime.models.language"}


def all_of(module):
    """The names in `__all__` of a module, else those that it defines without an underscore."""
    found = importlib.import_module(module)
    defined = [n for n, value in vars(found).items() if getattr(value, "__module__", "") == module]
    return getattr(found, "__all__", [name for name in defined if not name.startswith("_")])


def functions_of(found):
    """A function itself, or the public functions that a class defines, by name."""
    if inspect.isfunction(found):
        return {found.__name__: found}
    members = {} if not inspect.isclass(found) else vars(found)
    plain = {name: getattr(value, "__func__", value) for name, value in members.items()}
    return {
        name: value
        for name, value in plain.items()
        if inspect.isfunction(value) and not name.startswith("_")
    }


# What they return depends on the caller's model or input, or on the version of a package.
UNTYPED = {"input_of", "inputs", "renderer", "resolve", "to_arviz"}
UNTYPED |= {"input_again", "read"}


def test_public_functions_declare_what_they_return():
    """So that an editor completes the names of a frame or a figure."""
    untyped = {
        name
        for path in reference()
        for name, function in functions_of(documented(path)).items()
        if function.__annotations__.get("return", Any) in ("Any", Any)
    }

    assert untyped == UNTYPED


def test_the_reference_names_objects_that_exist():
    """Every object of the reference can be imported from the path that it names, once."""
    assert len(reference()) > 50
    assert len(set(reference())) == len(reference())
    for path in reference():
        assert documented(path).__doc__, path


def test_the_reference_has_public_paths():
    """A name is listed under its package, unless a module of the package has the same name."""
    for path in reference():
        module, _, name = path.rpartition(".")
        if module not in PUBLIC:
            package = module.rpartition(".")[0]
            assert package in PUBLIC, path
            assert importlib.util.find_spec(f"{package}.{name}") is not None, path


@pytest.mark.parametrize("module", sorted(PUBLIC - SHARED))
def test_the_reference_has_every_public_name(module):
    """Classes and functions have a page; constants and types are named on the reference page."""
    known = {id(documented(path)) for path in reference()}
    page = (DOCS / "reference" / "index.md").read_text(encoding="utf8")
    for name in all_of(module):
        found = documented(f"{module}.{name}")
        alias = get_origin(found) is not None  # such as Callable[...], a type in Python 3.10
        if not alias and (isinstance(found, type) or inspect.isroutine(found)):
            assert id(found) in known, name
        else:
            assert name == "__version__" or f"`{name}`" in page, name


@pytest.mark.parametrize("page", RUNNABLE + GALLERY, ids=name_of)
def test_pages_import_public_names(page):
    """A page and a gallery script import what the reference lists, and nothing else of eblime."""
    text = page.read_text(encoding="utf8")
    blocks = [code for code, _ in BLOCK.findall(text)] if page.suffix == ".md" else [text]
    nodes = [node for code in blocks for node in ast.walk(ast.parse(code))]
    found = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    paths = [f"{node.module}.{alias.name}" for node in found for alias in node.names]
    constants = [f"{module}.{name}" for module in PUBLIC - SHARED for name in all_of(module)]
    known = {id(documented(path)) for path in [*reference(), *constants]}
    ours = [path for path in paths if path.startswith("eblime.") and path not in PUBLIC]

    assert [path for path in ours if id(documented(path)) not in known] == []


def examples(path):
    """The examples of a name, and of the methods of a class, by name."""
    found = documented(path)
    texts = {path: found.__doc__}
    if isinstance(found, type):
        members = {name: value for name, value in vars(found).items() if name[0] != "_"}
        texts |= {f"{path}.{name}": value.__doc__ for name, value in members.items()}
    parse = doctest.DocTestParser().get_examples
    return {name: parse(inspect.cleandoc(text or "")) for name, text in texts.items()}


def test_summaries_are_one_sentence():
    """The list of names shows a docstring's first line up to the first full stop."""
    first = {path: documented(path).__doc__.strip().splitlines()[0] for path in reference()}
    cut = re.compile(r"[.?!] \S| \.\.")

    assert [path for path, line in first.items() if cut.search(line)] == []


EXPLAINERS = [path for path in reference() if re.fullmatch(r"eblime\.\w*Explainer", path)]


@pytest.mark.parametrize("path", EXPLAINERS)
def test_the_page_of_an_explainer_describes_every_setting(path):
    """Its own, and those that its docstring leaves to the base class, once each."""
    spec = importlib.util.spec_from_file_location("fields", DOCS / "_ext" / "fields.py")
    spec.loader.exec_module(extension := importlib.util.module_from_spec(spec))
    found = documented(path)
    page = "\n".join(extension.with_shared(found, inspect.getdoc(found).splitlines()))
    entries = page.split("Parameters\n----------\n")[1].split("\n\n")[0]
    names = ", ".join(re.findall(r"^\S.*$", entries, re.M)).split(", ")

    assert sorted(names) == sorted(inspect.signature(found).parameters)
    assert "BaseExplainer" not in page


def test_names_have_an_example():
    """Every name of the reference has an example of its own, which runs as a doctest.

    Those of protocols are in the guide to extensions.
    """
    without = [path for path in reference() if not examples(path)[path]]

    assert [path for path in without if not isinstance(documented(path), type(Protocol))] == []


def test_examples_can_be_copied():
    """An example imports what it uses."""
    unknown = {}
    for path in reference():
        for name, parts in examples(path).items():
            code = "".join(part.source for part in parts)
            unknown[name] = unknown_names(ast.parse(code).body)

    assert {name: missing for name, missing in unknown.items() if missing} == {}


def test_examples_print_the_same_with_every_numpy():
    """NumPy 2 shows a number as `np.float64(1.0)`, NumPy 1 as `1.0`; examples show Python's."""
    named = [pair for path in reference() for pair in examples(path).items()]

    assert [name for name, parts in named if any("np." in part.want for part in parts)] == []


def skipped(path):
    """Whether a doctest leaves the example out because it reads data."""
    return any(part.options.get(doctest.SKIP) for part in examples(path)[path])


def test_only_example_data_have_examples_that_are_left_out():
    """All other examples run without data and without a network."""
    found = [path for path in reference() if skipped(path)]

    assert [p for p in found if not p.startswith(("eblime.datasets", "studies"))] == []


@pytest.mark.slow
def test_examples_that_need_a_network_run():
    """Where the network is installed, these examples run too and print what they show."""
    pytest.importorskip("efficientnet_lite_pytorch")
    parser, failed = doctest.DocTestParser(), []
    for path in filter(skipped, reference()):
        text = inspect.cleandoc(documented(path).__doc__).replace("# doctest: +SKIP", "")
        test = parser.get_doctest(text, {}, path, None, None)
        failed += [path] if doctest.DocTestRunner().run(test).failed else []

    assert failed == []


def test_the_family_table_has_a_figure_for_every_system_in_every_cell():
    """The systems are those of the script that makes the table."""
    script = (ROOT / "studies" / "family.py").read_text(encoding="utf8")
    page = (DOCS / "measurements" / "comparisons.md").read_text(encoding="utf8")
    begin, end = re.search(r'BEGIN, END = "(.+)", "(.+)"', script).groups()
    rows = page.split(begin)[1].split(end)[0].strip().splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    systems = script.split("    return {\n")[1].split("    }\n")[0]

    assert [row[0] for row in cells[2:]] == re.findall(r'^ {8}"(.+?)": ', systems, re.M)
    assert {len(row) for row in cells} == {8}
    assert all(np.isfinite(float(cell)) for row in cells[2:] for cell in row[1:])


def test_the_json_page_lists_the_keys_that_are_written():
    """The layout on the page is that of an explanation of a table row."""
    background = np.random.default_rng(0).random((50, 3))
    explainer = eblime.TabularExplainer(lambda rows: rows[:, 0], background, n_masks=20)
    written = json.loads(explainer.explain(background[0]).to_json())
    page = (DOCS / "reference" / "index.md").read_text(encoding="utf8")
    page = page.split("## JSON layout\n")[1].split("\n## ")[0]
    keys = [re.findall(r"^\| (`.*?) \|", part, re.M) for part in page.split("Each entry of")]
    of_all, of_feature = (set(re.findall(r"`(\w+)`", " ".join(part))) for part in keys)

    assert set(written) == of_all - {"question", "answer", "score"}  # of prompts only
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
    files[ROOT] = re.findall(r"`((?:tests|studies)/\w+\.py)`", order[0])
    files[HOUSE] = re.findall(r"`((?!tests/|studies/)[\w/]+\.py)`", order[0])

    missing = [name for folder in files for name in files[folder] if not (folder / name).exists()]
    assert missing == []
    listed = {f"core/{name}" for name in files[HOUSE / "core"]}
    assert listed == {f"core/{path.name}" for path in (HOUSE / "core").glob("[a-z]*.py")}


def test_the_architecture_page_uses_names_that_exist():
    """Every name in backticks is one of the sources, of the tests, or of a study."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf8")
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    names = {name for code in re.findall(r"`([^`]+)`", prose) for name in re.findall(r"\w+", code)}
    files = [path for folder in ("src", "studies", "tests") for path in (ROOT / folder).rglob("*")]
    known = {part for path in files for part in path.relative_to(ROOT).parts}
    known |= {path.stem for path in files} | {"docs", "how", "md", "py", "pyproject", "toml"}
    sources = " ".join(path.read_text(encoding="utf8") for path in files if path.suffix == ".py")

    assert names - known - set(re.findall(r"\w+", sources)) == set()
