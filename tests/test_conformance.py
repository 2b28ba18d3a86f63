"""All registered methods, designs, kernels, domains and plot kinds keep their contracts.

Registering a name is enough to have it tested here. A domain also needs a sample input in
`conformance.SAMPLES`.
"""

import conformance
import pytest

from eblime import registry


@pytest.mark.parametrize("kind", ["small", "wide", "constant", "weighted"])
@pytest.mark.parametrize("name", registry.names("methods"))
def test_methods(name, kind):
    """Fits of many shapes, with consistent laws."""
    conformance.check_method(name, kind)


@pytest.mark.parametrize("name", registry.names("methods"))
def test_methods_in_files(name, tmp_path):
    """Saved and loaded."""
    conformance.check_saved_method(name, tmp_path / "e.eblime")


@pytest.mark.parametrize("name", registry.names("designs"))
def test_designs(name):
    """Masks of zeros and ones, round by round."""
    conformance.check_design(name)


@pytest.mark.parametrize("name", registry.names("kernels"))
def test_kernels(name):
    """Weights from 0 to 1."""
    conformance.check_kernel(name)


@pytest.mark.parametrize("name", registry.names("domains"))
def test_domains(name, tmp_path):
    """Scenes, neighbourhoods and explanations."""
    assert name in conformance.SAMPLES, f"add a sample of {name!r} to conformance.SAMPLES"
    conformance.check_domain(name, conformance.SAMPLES[name], tmp_path / "e.eblime")


@pytest.fixture(scope="module")
def explanations():
    """One explanation of each domain."""
    pytest.importorskip("matplotlib")
    samples = [sample() for sample in conformance.SAMPLES.values()]
    return [explainer.explain(x) for explainer, x in samples]


@pytest.mark.parametrize("kind", registry.names("plots"))
def test_plots(kind, explanations):
    """Each kind draws at least one of them."""
    conformance.check_plot(kind, explanations)
