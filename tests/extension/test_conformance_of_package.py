"""The example package passes the checks of `eblime.testing`."""

import pytest
from extension import cases

from eblime import testing


@pytest.mark.parametrize("name", ["normal", "bootstrap"])
def test_methods(name):
    """A normal law, and draws."""
    testing.check_method(name)


def test_design():
    """Rounds."""
    testing.check_design("rounds")


def test_kernel():
    """The share of shown features."""
    testing.check_kernel("share")


def test_domain():
    """Series."""
    testing.check_domain(cases.series_explainer(), cases.PULSE)


@pytest.mark.parametrize("kind", ["signs", "series"])
def test_plots(kind):
    """A kind for everything, and one for series."""
    pytest.importorskip("matplotlib")
    testing.check_plot(kind, [cases.series_explainer().explain(cases.PULSE)])
