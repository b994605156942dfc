"""What all tests share."""

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import settings

mpl.use("Agg")
# The machine may be busy: examples are not timed, and every run draws the same ones.
settings.register_profile("shortlist", deadline=None, derandomize=True)
settings.load_profile("shortlist")


@pytest.fixture
def rng():
    """Return a fresh generator with a fixed seed."""
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def fraud():
    """Return simulated payments: 4,000 rows, 80 of them frauds."""
    from shortlist.datasets import make_fraud

    return make_fraud(4_000, prevalence=0.02, random_state=0)
