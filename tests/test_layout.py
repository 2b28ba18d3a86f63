"""The tests of a module can be found: by its name, or in the table of tests/README.md."""

import re
from pathlib import Path

import eblime

HERE = Path(__file__).parent
SOURCE = Path(eblime.__file__).parent
LISTED = re.findall(r"`([\w/]+(?:\.py|/))`", (HERE / "README.md").read_text(encoding="utf8"))


def named_after_a_module(path):
    """Whether x/test_y.py or x/test_y_topic.py has a module or package y in x."""
    folder = SOURCE / path.parent
    words = path.stem.removeprefix("test_").split("_")
    names = ["_".join(words[:count]) for count in range(1, len(words) + 1)]
    modules = {entry.stem.lstrip("_") for entry in folder.glob("*")} - {""}
    return any(name in modules for name in names)


def test_test_files_are_named_after_a_module_or_listed():
    """Somebody who changes a module finds its tests."""
    paths = [path.relative_to(HERE) for path in HERE.rglob("test_*.py")]
    known = {path for path in paths if path.as_posix() in LISTED}
    known |= {path for path in paths if f"{path.parent.as_posix()}/" in LISTED}

    assert [path for path in paths if path not in known and not named_after_a_module(path)] == []


def test_the_page_lists_files_that_exist():
    """Those of this folder; others are written with their folder."""
    sources = ("x/", "tests/", "src/")
    names = [name for name in LISTED if not name.startswith(sources)]

    assert [name for name in names if not (HERE / name).exists()] == []
