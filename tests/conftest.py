"""Fixtures shared by every test."""

import os

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("eblime", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("eblime")


@pytest.fixture(params=range(int(os.environ.get("EBLIME_TEST_SEEDS", "1"))))
def rng(request):
    """A generator seeded 0; `EBLIME_TEST_SEEDS=10` runs ten seeds."""
    return np.random.default_rng(request.param)
