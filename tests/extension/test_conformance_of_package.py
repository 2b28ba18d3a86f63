"""The example package passes the conformance tests of the library."""

import conformance
import pytest
from extension import cases


def series_sample():
    """An explainer of series, and a series."""
    return cases.series_explainer(), cases.PULSE


@pytest.mark.parametrize("kind", ["small", "wide", "constant", "weighted"])
@pytest.mark.parametrize("name", ["normal", "bootstrap"])
def test_methods(name, kind):
    """A normal law, and draws."""
    conformance.check_method(name, kind)


@pytest.mark.parametrize("name", ["normal", "bootstrap"])
def test_methods_in_files(name, tmp_path):
    """Saved and loaded."""
    conformance.check_saved_method(name, tmp_path / "e.eblime")


def test_design():
    """Rounds."""
    conformance.check_design("rounds")


def test_kernel():
    """The share of shown features."""
    conformance.check_kernel("share")


def test_domain(tmp_path):
    """Series."""
    conformance.check_domain("series", series_sample, tmp_path / "e.eblime")


@pytest.mark.parametrize("kind", ["signs", "series"])
def test_plots(kind):
    """A kind for everything, and one for series."""
    pytest.importorskip("matplotlib")
    conformance.check_plot(kind, [cases.series_explainer().explain(cases.PULSE)])
