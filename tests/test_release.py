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


def test_every_promise_names_a_test_that_exists():
    """Each row of the tables in SECURITY.md ends with the test that holds it."""
    text = text_of("SECURITY.md")
    rows = [row for row in re.findall(r"^\| .* \|$", text, re.M) if not row.startswith("| promise")]

    assert len(rows) > 10
    for row in rows:
        (file, name), *_ = PROMISE.findall(row) or [("", "")]
        assert file, row
        assert f"def {name}(" in text_of(file), row


def test_every_supported_version_is_tested():
    """The classifiers, the lower bound and the workflow agree."""
    bound = re.search(r'requires-python = ">=(3\.\d+)"', text_of("pyproject.toml"))[1]
    job = text_of(".github/workflows/test.yml").split("\n  newest:")[1].split("\n  lowest:")[0]

    assert supported()[0] == bound
    assert re.findall(r'"(3\.\d+)"', job) == supported()


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


def test_the_checks_run_the_slow_tests():
    """`make test` leaves them out; what a change must pass does not."""
    assert "-m 'not slow'" in text_of("Makefile")
    assert re.search(r"^make test\nmake test-slow$", text_of(".ci/run"), re.M)
