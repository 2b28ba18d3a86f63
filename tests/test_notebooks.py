"""The notebooks of the documentation run, and print what they show."""

import re
from pathlib import Path

import pytest
from processes import LONG

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def printed(notebook):
    """What the cells print, one text per cell; pictures, warnings and progress are left out."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [
        "".join(out.get("text", "") for out in cell.outputs if out.get("name") != "stderr")
        for cell in cells
    ]


def drawn(notebook):
    """How many pictures the cells draw."""
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    return sum("image/png" in out.get("data", {}) for out in outputs)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the kernel's packages
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_prints_what_it_shows(path):
    """Words are equal; numbers may differ a little, as forests do between versions."""
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    client = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    stored = nbformat.read(path, as_version=4)
    fresh = nbformat.read(path, as_version=4)
    waits = {"timeout": LONG, "startup_timeout": LONG}  # as the kernel may start slowly
    client.NotebookClient(fresh, kernel_name="python3", **waits).execute()

    assert drawn(stored) == drawn(fresh) > 0
    for shown, now in zip(printed(stored), printed(fresh), strict=True):
        assert NUMBER.sub("#", shown).split() == NUMBER.sub("#", now).split()
        numbers = [[float(word) for word in NUMBER.findall(text)] for text in (shown, now)]
        assert numbers[1] == pytest.approx(numbers[0], rel=0.15, abs=0.02)


def test_there_are_notebooks():
    """The pattern finds them."""
    assert {path.stem for path in NOTEBOOKS} >= {"start"}
