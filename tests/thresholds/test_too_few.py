"""Too few calibration items are reported, and flag nothing, under every guarantee."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from shortlist import Capacity, CapacityClassifier, calibrate_threshold
from shortlist.exceptions import InsufficientCalibrationWarning
from shortlist.thresholds import GUARANTEES


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_three_scores_are_too_few_for_one_in_twenty(guarantee):
    """The highest of three scores has an expected rate of a quarter, five times the capacity."""
    with pytest.warns(InsufficientCalibrationWarning, match=r"at least \d+ .* got 3"):
        threshold = calibrate_threshold(
            [1.0, 2.0, 3.0], Capacity.count(5, per=100), guarantee=guarantee
        )
    assert not threshold.flag([np.inf]).any()


def test_the_plug_in_rule_needs_as_many_scores_as_the_expected_one():
    """From 1 / c - 1 scores on, the rate of the highest score is within capacity on average."""
    with pytest.warns(InsufficientCalibrationWarning, match="at least 19 .* got 18"):
        few = calibrate_threshold(np.arange(18), Capacity.fraction(0.05), guarantee="plug-in")
    enough = calibrate_threshold(np.arange(19), Capacity.fraction(0.05), guarantee="plug-in")
    assert (few.k, enough.k) == (-1, 0)


@pytest.mark.parametrize("guarantee", ["plug-in", "expected", "confident"])
def test_recalibration_with_three_items_flags_nothing(guarantee, rng):
    """A capacity of 5 % is not exceeded because three items happened to have low scores."""
    X = rng.normal(size=(2_000, 2))
    y = rng.uniform(size=2_000) < 1 / (1 + np.exp(3 - X[:, 0]))
    model = CapacityClassifier(
        FrozenEstimator(LogisticRegression().fit(X, y)),
        capacity=Capacity.fraction(0.05),
        rare_label=True,
        guarantee=guarantee,
    ).fit(X[:1_000])
    with pytest.warns(InsufficientCalibrationWarning, match="got 3"):
        model.recalibrate(X[:3])
    assert not model.flag(X[1_000:]).any()
