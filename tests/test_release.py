"""What a release promises is there: versions, links, workflows, and a test for each promise."""

import re
from pathlib import Path

import pytest

import eblime

ROOT = Path(__file__).parents[1]
PROMISE = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")

pytestmark = pytest.mark.skipif(
    not (ROOT / "SECURITY.md").is_file(), reason="the library is installed without its sources"
)


def text_of(name):
    """The text of a file of the repository."""
    return (ROOT / name).read_text(encoding="utf8")


def supported():
    """The Python versions that the classifiers list."""
    return re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text_of("pyproject.toml"))


def promises():
    """The rows of the tables in SECURITY.md: what is promised, and the test."""
    if not (ROOT / "SECURITY.md").is_file():
        return []
    rows = re.findall(r"^\| (.*) \| (.*) \|$", text_of("SECURITY.md"), re.M)
    return [(promise, test) for promise, test in rows if promise != "promise"]


def test_the_promises_are_found():
    """The pattern for rows matches those of SECURITY.md, each in a section of its own."""
    sections = re.findall(r"^\*\*.*\*\*.*\n\n\| promise \| test \|$", text_of("SECURITY.md"), re.M)

    assert len(promises()) > 20
    assert len(sections) == text_of("SECURITY.md").count("| promise | test |")


@pytest.mark.parametrize(("promise", "test"), promises())
def test_every_promise_names_a_test_that_exists(promise, test):
    """Each row of the tables in SECURITY.md ends with the test that holds it."""
    assert PROMISE.fullmatch(test), promise
    file, name = PROMISE.fullmatch(test).groups()
    assert f"\ndef {name}(" in text_of(file), promise


@pytest.mark.parametrize("job", ["newest", "bare"])
def test_every_supported_version_is_tested(job):
    """The classifiers, the lower bound and the workflow agree."""
    bound = re.search(r'requires-python = ">=(3\.\d+)"', text_of("pyproject.toml"))[1]
    after = re.split(rf"^  {job}:", text_of(".github/workflows/test.yml"), flags=re.M)[1]

    assert supported()[0] == bound
    assert re.findall(r'"(3\.\d+)"', after.split("runs-on:")[0]) == supported()


def test_the_version_is_the_same_everywhere():
    """In the package, in the citation and in the newest section of the changelog, with its date."""
    citation = dict(re.findall(r"^(version|date-released): (\S+)$", text_of("CITATION.cff"), re.M))
    first, second, *_ = re.findall(r"^## (.*)$", text_of("CHANGELOG.md"), re.M)

    assert first == "Unreleased"
    assert second == f"{eblime.__version__} - {citation['date-released']}"
    assert citation["version"] == eblime.__version__


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda p: p.name)
def test_workflows_and_forms_can_be_read(path):
    """They are YAML, and the workflows call targets that the Makefile has."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf8")), dict)
    targets = set(re.findall(r"^([\w-]+):", text_of("Makefile"), re.M))
    called = set(re.findall(r"make ([a-z][\w-]*)", path.read_text(encoding="utf8")))

    assert called <= targets


def workflow(name):
    """The jobs of a workflow."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    return yaml.safe_load(text_of(f".github/workflows/{name}.yml"))["jobs"]


def jobs_before(jobs, name):
    """All jobs that must succeed before a job starts."""
    needed = jobs[name].get("needs", [])
    direct = {needed} if isinstance(needed, str) else set(needed)
    return direct.union(*(jobs_before(jobs, other) for other in direct))


def steps_with(jobs, action):
    """The settings of each step that uses an action."""
    steps = [step for job in jobs.values() for step in job.get("steps", [])]
    return [step["with"] for step in steps if step.get("uses", "").startswith(f"actions/{action}@")]


def test_a_version_is_published_after_its_tests():
    """PyPI and the documentation get what the jobs of test.yml built, and only if all pass."""
    jobs = workflow("publish")
    tests = {name for name, job in jobs.items() if job.get("uses", "").endswith("/test.yml")}
    built = {step["name"] for step in steps_with(workflow("test"), "upload-artifact")}

    assert len(tests) == 1
    for name, job in jobs.items():
        if job.get("environment"):
            assert tests <= jobs_before(jobs, name)
    assert {step["name"] for step in steps_with(jobs, "download-artifact")} == built


def test_every_extra_for_users_is_tested():
    """By the extras [light] and [test], or by the job that measures coverage."""
    tomllib = pytest.importorskip("tomllib", reason="Python 3.11 or later reads TOML")
    extras = tomllib.loads(text_of("pyproject.toml"))["project"]["optional-dependencies"]
    commands = " ".join(step.get("run", "") for step in workflow("test")["coverage"]["steps"])
    installed = [
        extras[name] for name in ["light", "test", *re.findall(r"\.venv/\.(\w+)", commands)]
    ]
    names = {package_name(line) for lines in installed for line in lines}

    for extra in set(extras) - {"docs", "fuzz", "lint", "nuts", "release", "studies", "test"}:
        assert {package_name(line) for line in extras[extra]} <= names, extra


def package_name(requirement):
    """The name of the package in a requirement."""
    return re.match(r"[\w.-]+", requirement)[0]


def build_settings():
    """The tables of hatch in pyproject.toml."""
    tomllib = pytest.importorskip("tomllib", reason="Python 3.11 or later reads TOML")
    return tomllib.loads(text_of("pyproject.toml"))["tool"]["hatch"]


def test_links_of_the_page_on_pypi_are_absolute():
    """The README has relative pictures and links; the build makes them absolute."""
    page = text_of("README.md")
    for change in build_settings()["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        page = re.sub(change["pattern"], change["replacement"], page)
    links = re.findall(
        r"(!?)\[[^\]]*\]\(([^)]*)\)", re.sub(r"^```.*?^```", "", page, flags=re.M | re.S)
    )

    assert len(links) > 10
    for picture, link in links:
        host = "raw.githubusercontent.com/eblime/eblime/v$HFPR_VERSION/" if picture else ""
        assert link.startswith(f"https://{host}"), link


def test_the_source_archive_has_what_the_tests_read():
    """Each file and folder of the repository that a test or the Makefile names."""
    included = build_settings()["build"]["targets"]["sdist"]["include"]
    needed = ["src", "tests", "conftest.py", "docs", "studies", ".ci", ".github", "Makefile"]
    needed += ["CITATION.cff"]

    assert {f"/{name}" for name in needed} <= set(included)
    assert "/*.md" in included
    assert [name for name in included if not list(ROOT.glob(name.removeprefix("/")))] == []


def test_the_checks_run_the_slow_tests():
    """`make test` leaves them out; what a change must pass does not."""
    assert "-m 'not slow'" in text_of("Makefile")
    assert re.search(r"^make test\nmake test-full$", text_of(".ci/run"), re.M)


@pytest.mark.parametrize("name", ["nightly", "publish", "test"])
def test_actions_are_pinned_by_commit(name):
    """A tag can be moved to other code, a commit cannot; the version is in a comment."""
    text = text_of(f".github/workflows/{name}.yml")
    actions = [used for used in re.findall(r"uses: (.*)", text) if not used.startswith("./")]

    assert actions
    for action in actions:
        assert re.fullmatch(r"[\w-]+(/[\w-]+)+@[0-9a-f]{40} # v\d+(\.\d+)+", action), action
