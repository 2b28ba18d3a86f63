"""Make the example package visible to Python, as if it were installed."""

import os
from pathlib import Path

import pytest

from eblime import registry

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    """Put the package on the path of this process and of its child processes."""
    monkeypatch.syspath_prepend(HERE)
    known = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), *([known] if known else [])]))
    registry.refresh()
    yield
    monkeypatch.undo()
    registry.refresh()
