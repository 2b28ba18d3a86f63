"""What holds for tests and for the examples in docstrings."""

import pytest

from eblime import core, domains, registry

collect_ignore = ["studies/league_shapiq.py"]  # runs with a Python that has shapiq 1.8
NEEDED = {"eblime.results.export.to_shap": "shap"}  # packages that examples need, by name
EARLY = (core, domains)  # pytest would import their modules a second time


@pytest.fixture(autouse=True)
def own_names(monkeypatch):
    """Names that a test or an example registers end with it."""
    added = {kind: dict(names) for kind, names in registry._ADDED.items()}
    monkeypatch.setattr(registry, "_ADDED", added)


@pytest.fixture(autouse=True)
def packages(request):
    """An example that needs a package which is not installed is skipped."""
    if request.node.name in NEEDED:
        pytest.importorskip(NEEDED[request.node.name])
