"""Values in the training of aware learners."""

import numpy as np
import pytest
from sklearn.base import clone

from shortlist import Capacity, select
from shortlist.aware import (
    CapacityAwareBoostingClassifier,
    CapacityAwareForestClassifier,
    CapacityAwareLinearClassifier,
)

CAPACITY = Capacity.fraction(0.05)
LINEAR = CapacityAwareLinearClassifier(CAPACITY, random_state=0)
BOOSTED = CapacityAwareBoostingClassifier(CAPACITY, max_rounds=50, cv=3, random_state=0)


@pytest.fixture(scope="module")
def cases():
    """Return rare items of two kinds: many of little value, and fewer of much."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6_000, 2))
    kind = rng.integers(0, 2, size=6_000)
    y = rng.uniform(size=6_000) < 1 / (1 + np.exp(5.0 - 2.5 * X[np.arange(6_000), kind]))
    return X, y, np.where(kind == 1, 50.0, 1.0)


@pytest.mark.parametrize("model", [LINEAR, BOOSTED])
def test_values_in_training_find_more_value(cases, model):
    """Where values differ by kind, the score turns to the valuable kind."""
    X, y, values = cases
    half = slice(0, 4_000)
    weighted = clone(model).fit(X[half], y[half], values=values[half])
    plain = clone(model).fit(X[half], y[half])
    worth = y[4_000:] * values[4_000:]
    scores = [each.score_samples(X[4_000:]) for each in (weighted, plain)]
    found = [worth[select(each, CAPACITY)].sum() for each in scores]
    assert found[0] > 1.1 * found[1]


@pytest.mark.parametrize("model", [LINEAR, BOOSTED])
def test_equal_values_change_nothing(cases, model):
    """All worth the same is no weight at all."""
    X, y, _ = (each[:2_000] for each in cases)
    same = clone(model).fit(X, y, values=np.full(2_000, 3.0))
    np.testing.assert_allclose(same.score_samples(X), clone(model).fit(X, y).score_samples(X))


@pytest.mark.parametrize(
    ("values", "message"),
    [(-1.0, "at least 0"), (np.inf, "finite"), (np.nan, "values"), (0.0, "some of the rare")],
)
def test_bad_values_are_refused(cases, values, message):
    """As everywhere."""
    X, y, _ = (each[:500] for each in cases)
    with pytest.raises(ValueError, match=message):
        clone(LINEAR).fit(X, y, values=np.full(500, values))
    with pytest.raises(ValueError, match="does not take values in training"):
        CapacityAwareForestClassifier(CAPACITY).fit(X, y, values=np.ones(500))
