"""What holds for tests and for the examples in docstrings."""

import pytest

from eblime import registry


@pytest.fixture(autouse=True)
def own_names(monkeypatch):
    """Names that a test or an example registers end with it."""
    added = {kind: dict(names) for kind, names in registry._ADDED.items()}
    monkeypatch.setattr(registry, "_ADDED", added)
