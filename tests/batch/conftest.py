"""A run that nobody disturbed, for all tests of runs."""

import pytest
from many import ROWS, make

import eblime

pytest.importorskip("pyarrow", reason="pyarrow is not installed")


@pytest.fixture(scope="session")
def wanted(tmp_path_factory):
    """The frame of a run that nobody disturbed."""
    run = eblime.explain_many(make, ROWS, tmp_path_factory.mktemp("run") / "r", part_size=4)
    return run.frame()
