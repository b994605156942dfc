"""The metric M, computed by hand and by its identities."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning

from shortlist import (
    Capacity,
    adjusted_detection_interval,
    adjusted_detection_score,
    capacity_curve,
)

labels = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


def test_within_capacity_it_is_the_detection_rate():
    """One flag finds one of two rare items."""
    y_true, y_pred = [1, 1, 0, 0, 0], [1, 0, 0, 0, 0]
    assert adjusted_detection_score(y_true, y_pred, capacity=Capacity.count(1)) == 0.5


def test_beyond_capacity_it_shrinks_by_the_share_processed():
    """With four flags and room for two, half of the flags count."""
    y_true, y_pred = [1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0]
    assert adjusted_detection_score(y_true, y_pred, capacity=Capacity.count(2)) == 0.5


@given(labels, st.floats(0.1, 3))
def test_it_is_the_smaller_of_sensitivity_and_b_times_precision(pairs, b):
    """The identity M = min(sensitivity, b * precision) holds for any flags."""
    y_true, y_pred = np.array(pairs).T
    assume(y_true.any() and b * y_true.mean() <= 1)
    score = adjusted_detection_score(y_true, y_pred, capacity=Capacity.multiple(b), rare_label=True)
    found = (y_true & y_pred).sum()
    sensitivity = found / y_true.sum()
    precision = found / y_pred.sum() if y_pred.any() else 0.0
    assert score == pytest.approx(min(sensitivity, b * precision), abs=1e-12)
    assert score <= min(1, b) + 1e-12


@given(labels, st.integers(1, 4))
def test_whole_weights_are_repetitions(pairs, weight):
    """A row with a whole weight counts like that many rows."""
    y_true, y_pred = np.array(pairs).T
    assume(y_true.any() and not y_true.all())
    options = {"capacity": Capacity.fraction(0.3), "rare_label": True}
    weights = np.where(y_true, weight, 1)
    assert adjusted_detection_score(
        y_true, y_pred, sample_weight=weights, **options
    ) == pytest.approx(
        adjusted_detection_score(np.repeat(y_true, weights), np.repeat(y_pred, weights), **options)
    )


def test_the_rare_label_is_the_rarest_or_as_stated():
    """Strings work; two equally rare labels are an error; a stated label comes first."""
    y_true, y_pred = ["ok", "ok", "ok", "bad"], ["ok", "bad", "ok", "bad"]
    assert adjusted_detection_score(y_true, y_pred, capacity=Capacity.count(2)) == 1.0
    score = adjusted_detection_score(y_true, y_pred, capacity=Capacity.count(2), rare_label="ok")
    assert score == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match=r"0 and 1 are equally rare.*rare_label="):
        adjusted_detection_score([0, 1], [0, 1], capacity=Capacity.count(1))


def test_without_rare_items_it_is_undefined():
    """The score is 0 with a warning; a rare label that cannot be guessed is an error."""
    with pytest.warns(UndefinedMetricWarning):
        assert adjusted_detection_score([0, 0], [0, 1], capacity=Capacity.count(1)) == 0.0
    with pytest.warns(UndefinedMetricWarning):
        interval = adjusted_detection_interval([0, 0], [0, 1], capacity=Capacity.count(1))
    assert interval == (0, 1)
    with pytest.raises(ValueError, match="rare_label="):
        adjusted_detection_score([0, 0], [0, 0], capacity=Capacity.count(1))


def test_the_prevalence_can_be_nominal():
    """The multiple b refers to the stated share, not to that of the sample."""
    y_true, y_pred = np.r_[np.ones(4), np.zeros(96)], np.r_[np.ones(4), np.zeros(96)]
    options = {"capacity": Capacity.multiple(1)}
    assert adjusted_detection_score(y_true, y_pred, **options) == 1.0
    assert adjusted_detection_score(y_true, y_pred, prevalence=0.02, **options) == 0.5


@pytest.mark.parametrize(
    "options",
    [
        {"capacity": Capacity.multiple(2)},
        {"capacity": Capacity.fraction(0.04)},
        {"capacity": Capacity.fraction(0.04), "prevalence": 0.02},
        {"capacity": Capacity.count(40)},
    ],
)
def test_the_interval_holds_the_estimate_and_narrows(options):
    """The estimate lies inside, and higher confidence gives a wider interval."""
    rng = np.random.default_rng(0)
    y_true = np.arange(1_000) < 20
    y_pred = rng.uniform(size=1_000) < np.where(y_true, 0.6, 0.03)
    score = adjusted_detection_score(y_true, y_pred, rare_label=True, **options)
    narrow = adjusted_detection_interval(y_true, y_pred, rare_label=True, confidence=0.8, **options)
    wide = adjusted_detection_interval(y_true, y_pred, rare_label=True, confidence=0.99, **options)
    assert 0 <= wide.low < narrow.low < score < narrow.high < wide.high <= 1


def test_flagging_nothing_finds_nothing():
    """The interval starts at 0 and has a positive upper end."""
    interval = adjusted_detection_interval([1, 0, 0], [0, 0, 0], capacity=Capacity.fraction(0.5))
    assert interval.low == 0
    assert interval.high > 0


def test_a_mask_of_flags_is_accepted():
    """A boolean mask works for labels of any kind, whichever is rare."""
    y_true = np.array(["good", "bad", "good", "good"])
    flags = np.array([False, True, True, False])
    assert adjusted_detection_score(y_true, flags, capacity=Capacity.count(2)) == 1.0
    zeros = np.array([1, 0, 1, 1])
    assert adjusted_detection_score(zeros, flags, capacity=Capacity.count(2)) == 1.0


def test_predictions_of_another_kind_are_refused():
    """Scores in place of labels, and numbers in place of texts, raise an error."""
    with pytest.raises(ValueError, match="fractions, as scores are"):
        adjusted_detection_score([0, 1, 0], [0.1, 0.9, 0.2], capacity=Capacity.count(1))
    with pytest.raises(ValueError, match=r"labels as y_true does .* got int64"):
        adjusted_detection_score(["a", "b", "a"], [0, 1, 0], capacity=Capacity.count(1))


@pytest.mark.parametrize(("n_rare", "n"), [(1, 3), (10, 300), (55, 300), (7, 11), (1, 11)])
def test_a_perfect_prediction_at_b_1_is_perfect(n_rare, n):
    """The prevalence is not rounded, and b = 1 / prevalence is valid."""
    y = np.arange(n) < n_rare
    assert adjusted_detection_score(y, y, capacity=Capacity.multiple(1), rare_label=True) == 1.0
    everything = Capacity.multiple(Fraction(n, n_rare))
    assert adjusted_detection_score(y, np.ones(n, bool), capacity=everything, rare_label=True) == 1


def test_lengths_and_shapes_are_checked():
    """The message names the arguments that do not match."""
    with pytest.raises(ValueError, match="y_true has 2, y_pred has 1"):
        adjusted_detection_score([0, 1], [1], capacity=Capacity.count(1))
    with pytest.raises(ValueError, match="one-dimensional"):
        adjusted_detection_score([[0, 1]], [[0, 1]], capacity=Capacity.count(1))
    with pytest.raises(ValueError, match="At least one item"):
        adjusted_detection_score([], [], capacity=Capacity.count(1))


@pytest.mark.parametrize("gap", [None, float("nan")])
def test_missing_labels_are_named(gap):
    """They are no third label, and cannot be sorted among texts."""
    labels = ["no"] * 8 + ["yes", gap]
    with pytest.raises(ValueError, match=r"1 of 10 labels are missing, the first at place 9"):
        adjusted_detection_score(labels, ["no"] * 10, capacity=Capacity.count(2))
    with pytest.raises(ValueError, match=r"1 of 10 labels are missing"):
        capacity_curve(labels, range(10))
