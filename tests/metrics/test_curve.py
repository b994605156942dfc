"""Detection against capacity, over every distinct cut."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from shortlist import Capacity, capacity_curve


def test_a_small_curve_by_hand():
    """Six items, two of them rare and two of them tied, give these six cuts."""
    curve = capacity_curve([1, 0, 1, 0, 0, 0], [6, 5, 5, 3, 2, 1])
    assert_array_equal(curve.n_flagged, [0, 1, 3, 4, 5, 6])
    assert_array_equal(curve.n_found, [0, 1, 2, 2, 2, 2])
    assert_array_equal(curve.thresholds, [6, 5, 3, 2, 1, -np.inf])
    assert_allclose(curve.precision[1:], [1, 2 / 3, 1 / 2, 2 / 5, 1 / 3])
    assert_allclose(curve.lift[1:], np.array([1, 2 / 3, 1 / 2, 2 / 5, 1 / 3]) * 3)
    assert_allclose(curve.multiple, curve.n_flagged / 2)
    assert_allclose(curve.marginal, [1, 0.5, 0, 0, 0, 0])
    assert np.isnan(curve.precision[0])


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 8)), min_size=2, max_size=50).filter(
        lambda rows: 0 < sum(rare for rare, _ in rows) < len(rows)
    )
)
def test_every_threshold_does_what_its_row_says(rows):
    """Flagging strictly above each threshold gives the counts; the curve rises; slopes fall."""
    is_rare, scores = np.array([r for r, _ in rows]), np.array([float(s) for _, s in rows])
    curve = capacity_curve(is_rare, scores, rare_label=True)
    for threshold, n_flagged, n_found in zip(
        curve.thresholds, curve.n_flagged, curve.n_found, strict=True
    ):
        flagged = scores > threshold
        assert (flagged.sum(), (flagged & is_rare).sum()) == (n_flagged, n_found)
    assert (np.diff(curve.n_flagged) > 0).all()
    assert (np.diff(curve.detection) >= 0).all()
    assert (np.diff(curve.marginal) <= 1e-12).all()
    assert (curve.detection_low <= curve.detection).all()
    assert (curve.detection <= curve.detection_high).all()
    # The fitted slopes spend exactly the rare items there are.
    assert np.dot(curve.marginal[:-1], np.diff(curve.n_flagged)) == pytest.approx(is_rare.sum())


def test_it_can_be_queried(fraud, rng):
    """It returns the row of a capacity."""
    _, y = fraud
    scores = rng.normal(size=y.size) + 2 * y
    curve = capacity_curve(y, scores)
    row = curve.at(Capacity.multiple(2))
    assert row["n_flagged"] == 160
    assert row["detection"] == row["n_found"] / 80


@pytest.mark.parametrize(("n_rare", "n"), [(1, 3), (10, 300), (7, 11), (55, 300)])
def test_multiples_are_exact(n_rare, n):
    """A multiple of the rare items is counted exactly, and rounded down."""
    curve = capacity_curve(np.arange(n) < n_rare, -np.arange(n), rare_label=True)
    assert curve.at(Capacity.multiple(1))["n_flagged"] == n_rare
    assert curve.at(Capacity.multiple(1.5))["n_flagged"] == 3 * n_rare // 2


def test_it_becomes_a_data_frame():
    """The columns go into pandas and polars by name."""
    table = capacity_curve([1, 0, 0], [3, 2, 1]).to_dict()
    assert list(pd.DataFrame(table)["detection"]) == [0, 1, 1, 1]
    assert pl.DataFrame(table)["n_flagged"].to_list() == [0, 1, 2, 3]


def test_labels_and_scores_are_checked():
    """One class only, an unknown label, NaN and continuous labels raise errors."""
    with pytest.raises(ValueError, match="at least two"):
        capacity_curve([1, 1], [1, 2])
    with pytest.raises(ValueError, match="'1' does not occur"):
        capacity_curve([0, 1], [1, 2], rare_label="1")
    with pytest.raises(ValueError, match="NaN"):
        capacity_curve([0, 1], [1, np.nan])
    with pytest.raises(ValueError, match="continuous"):
        capacity_curve([0.2, 0.9, 0.4], [0, 1, 0])
