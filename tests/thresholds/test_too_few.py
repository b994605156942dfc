"""Too few calibration items are reported, under every guarantee, and flag nothing or by lot."""

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
    with pytest.warns(InsufficientCalibrationWarning, match="more calibration scores than 3"):
        threshold = calibrate_threshold(
            [1.0, 2.0, 3.0], Capacity.count(5, per=100), guarantee=guarantee
        )
    assert not threshold.flag([np.inf]).any()


def test_the_plug_in_rule_needs_as_many_scores_as_the_expected_one():
    """From 1 / c - 1 scores on, the rate of the highest score is within capacity on average."""
    with pytest.warns(InsufficientCalibrationWarning, match="more calibration scores than 18"):
        few = calibrate_threshold(np.arange(18), Capacity.fraction(0.05), guarantee="plug-in")
    enough = calibrate_threshold(np.arange(19), Capacity.fraction(0.05), guarantee="plug-in")
    assert (few.k, enough.k) == (-1, 0)


@pytest.mark.parametrize("guarantee", ["plug-in", "expected", "confident"])
def test_recalibration_with_three_items_flags_few(guarantee, rng):
    """A capacity of 5 % is not exceeded because three items happened to have low scores.

    Three scores have room for a fifth of what lies above the highest of them, drawn by lot.
    """
    X = rng.normal(size=(2_000, 2))
    y = rng.uniform(size=2_000) < 1 / (1 + np.exp(3 - X[:, 0]))
    model = CapacityClassifier(
        FrozenEstimator(LogisticRegression().fit(X, y)),
        capacity=Capacity.fraction(0.05),
        rare_label=True,
        guarantee=guarantee,
    ).fit(X[:1_000], ids=np.arange(1_000))
    outcome = "nothing" if guarantee == "plug-in" else "drawn by lot"
    with pytest.warns(InsufficientCalibrationWarning, match=f"than 3. .* {outcome}"):
        model.recalibrate(X[:3], ids=np.arange(3))
    found, scores = model.calibration_, model.score_samples(X[1_000:])
    assert found.k == -1
    assert found.share == pytest.approx(
        {"plug-in": 0, "expected": 0.2, "confident": 0.05 / (1 - 0.05 ** (1 / 3))}[guarantee]
    )
    above = scores > model.calibration_scores_.max()
    flagged = model.flag(X[1_000:], ids=np.arange(1_000, 2_000))
    assert not (flagged & ~above).any()
    assert abs(flagged.sum() - found.share * above.sum()) <= 4 * np.sqrt(above.sum() / 4)


@pytest.mark.filterwarnings("ignore::shortlist.exceptions.InsufficientCalibrationWarning")
@pytest.mark.parametrize("guarantee", ["confident", "simultaneous"])
def test_rows_that_are_alike_are_not_drawn_together(guarantee, rng):
    """Without ids they share a lot, and a value that calibration has not seen is flagged whole.

    One item in 99 has it, which is above the capacity: a third of all samples do not have it.
    """
    model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    n_over, n_trials, p = 0, 200, 1 / 99
    for seed in range(n_trials):
        found = CapacityClassifier(
            FrozenEstimator(model),
            capacity=Capacity.fraction(0.01),
            rare_label=1,
            guarantee=guarantee,
            random_state=seed,
        ).fit((rng.random((100, 1)) < p) * 1.0)
        low, high = found.flag([[0.0], [1.0]])
        n_over += (1 - p) * low + p * high > 0.01
    assert n_over <= 0.05 * n_trials
