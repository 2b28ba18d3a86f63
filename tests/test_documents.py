"""Every Python block in README and docs runs, and prints what the page says it prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.M | re.S)
RUNNABLE = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf8"))]


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.name)
def test_page_runs_as_written(page):
    """The blocks of a page run in order, in one namespace."""
    scope = {}
    for code, shown in BLOCK.findall(page.read_text(encoding="utf8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page.name, "exec"), scope)
        if shown:
            assert_printed(printed.getvalue().split(), shown.split())


def assert_printed(printed, shown):
    """Words are the same, numbers nearly so: other versions of scikit-learn grow other forests."""
    assert len(printed) == len(shown)
    for ours, theirs in zip(printed, shown, strict=True):
        try:
            near = pytest.approx(float(theirs.strip(",")), rel=0.15, abs=0.006)
            assert float(ours.strip(",")) == near
        except ValueError:
            assert ours == theirs


def test_there_are_pages_to_run():
    """The pattern finds the README's example."""
    assert ROOT / "README.md" in RUNNABLE
