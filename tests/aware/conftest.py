"""Items for the tests of capacity-aware trees."""

import numpy as np
import pytest


def draw_items(n_items, rng):
    """Draw items of which one in twenty-five is rare: most clearly so, in two of five features."""
    is_rare = rng.random(n_items) < 0.04
    X = rng.normal(size=(n_items, 5))
    X[is_rare, 0] += 1.5
    X[is_rare & (rng.random(n_items) < 0.5), 1] += 2
    return X, is_rare


@pytest.fixture(scope="package")
def few_rare():
    """Return 2,000 items to learn from."""
    return draw_items(2000, np.random.default_rng(0))


@pytest.fixture(scope="package")
def others():
    """Return 20,000 items that nothing was learned from."""
    return draw_items(20_000, np.random.default_rng(1))
