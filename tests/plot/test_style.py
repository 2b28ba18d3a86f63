"""Plots in a notebook are shown once, below the cell."""

import sys
from types import SimpleNamespace

import pytest
from test_storage import explained

import eblime
from eblime.plot.style import in_notebook

SETUP = """
import numpy as np, eblime
image = np.random.default_rng(0).integers(1, 256, size=(12, 15, 3), dtype=np.uint8)
grid = ("grid", {"rows": 3, "columns": 3})
model = lambda batch: batch.reshape(len(batch), -1)[:, ::7].mean(axis=1) / 255
e = eblime.ImageExplainer(model, segmentation=grid, hide=0, n_masks=60).explain(image)
"""


@pytest.fixture
def kernel(monkeypatch):
    """Act as the kernel of a notebook; figures are closed at the end."""
    from matplotlib import pyplot

    monkeypatch.setattr("eblime.plot.style.in_notebook", lambda: True)
    pyplot.close("all")
    yield pyplot
    pyplot.close("all")


@pytest.mark.parametrize(
    ("shell", "found"),
    [(None, False), (SimpleNamespace(), False), (SimpleNamespace(kernel=object()), True)],
    ids=["script", "terminal", "kernel"],
)
def test_notebook_is_recognised_by_its_kernel(monkeypatch, shell, found):
    """IPython on a terminal is not a notebook."""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))

    assert in_notebook() is found


def test_pyplot_keeps_the_axes_in_a_notebook(kernel):
    """Pyplot shows its open figures at the end of the cell; returned figures are not among them."""
    e = explained()
    figure = e.plot("map").figure
    whole = eblime.plot.poster.poster(e), eblime.plot.maps.posterior_maps(e)

    assert [kernel.figure(number) for number in kernel.get_fignums()] == [figure]
    assert figure not in whole


def test_given_axes_open_no_second_figure(kernel):
    """Only the user's figure is open."""
    ax = kernel.figure().subplots()
    explained().plot("intervals", ax=ax)

    assert len(kernel.get_fignums()) == 1


def test_scripts_leave_no_figure_open():
    """A script can draw thousands of plots."""
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    explained().plot("map")

    assert pyplot.get_fignums() == before


CELLS = [
    ("ax = e.plot('map')", 1),
    ("for kind in ('map', 'density'): e.plot(kind)", 2),
    ("eblime.plot.poster.poster(e)", 1),
    ("eblime.plot.maps.posterior_maps(e)", 1),
    ("import matplotlib.pyplot as plt; fig, ax = plt.subplots(); e.plot(ax=ax);", 1),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "pictures"),
    [("e.plot()", 1), *(pytest.param(*cell, marks=pytest.mark.slow) for cell in CELLS)],
)
def test_cell_shows_each_plot_once(cell, pictures):
    """In a real kernel, as the first plot of the session."""
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [nbformat.v4.new_code_cell(source) for source in (SETUP, cell)]
    book = nbformat.v4.new_notebook(cells=cells)
    client.NotebookClient(book, kernel_name="python3").execute()
    outputs = book.cells[1].outputs

    assert sum("image/png" in output.get("data", {}) for output in outputs) == pictures
    assert not [output for output in outputs if output.output_type == "stream"]
