"""A multiple of an estimated prevalence does not fail because a sample has many rare items."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from shortlist import Capacity, CapacityClassifier, calibrate_threshold
from shortlist.exceptions import CapacityError

GUARANTEES = ["plug-in", "expected", "confident"]


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_lucky_sample_caps_the_capacity_at_everything(guarantee):
    """b = 4.9 times a share of 21 % would be 103 % of the items: all of them may be flagged."""
    y = np.arange(1_000) >= 790
    threshold = calibrate_threshold(
        np.arange(1_000), Capacity.multiple(4.9), y=y, rare_label=True, guarantee=guarantee
    )
    assert threshold.capacity_fraction == 1
    if guarantee == "plug-in":
        assert threshold.flag([-1.0]).all()


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("seed", range(3))
def test_classifiers_never_fail_by_luck(guarantee, seed):
    """True prevalence 0.2, b = 4.9: fit, recalibrate, select and a new capacity all work."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 2))
    y = np.zeros(400, dtype=int)
    y[: 84 - 4 * seed] = 1  # 21, 20 and 19 per cent
    X[y == 1] += 1
    model = CapacityClassifier(
        LogisticRegression(),
        capacity=Capacity.multiple(4.9),
        rare_label=1,
        guarantee=guarantee,
        random_state=0,
        cv=0.5,
    ).fit(X, y)
    assert model.capacity_fraction_ <= 1
    assert model.select(X).sum() <= 400
    model.recalibrate(X)
    model.recalibrate(X[:100], y[:100])  # rare items only come first: 84 of 100 are rare
    assert model.with_capacity(Capacity.multiple(4.8)).flag(X).sum() <= 400


def test_a_stated_prevalence_is_still_checked():
    """The user has said that 1.03 of all items may be flagged, which is a mistake."""
    with pytest.raises(CapacityError, match="at most 1 / prevalence"):
        calibrate_threshold(np.arange(10), Capacity.multiple(4.9), prevalence=0.21)
