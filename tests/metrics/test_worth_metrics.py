"""Metrics with values and efforts: money found for minutes spent."""

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate

from shortlist import (
    Capacity,
    Worth,
    adjusted_detection_interval,
    adjusted_detection_score,
    capacity_curve,
    capacity_scorer,
    select,
)
from shortlist.exceptions import CapacityError
from shortlist.metrics import detection_at_capacity


@pytest.fixture
def stream():
    """Return labels, probabilities, amounts and minutes."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 8, size=2_000)
    return rng.uniform(size=2_000) < p, p, rng.lognormal(4, 1, 2_000), rng.integers(5, 61, 2_000)


def test_ones_change_nothing(stream):
    """Values and efforts of 1 give every metric as it was."""
    y, p, _, _ = stream
    ones, flags = np.ones(2_000), p > 0.2
    for capacity, same in (
        (Capacity.fraction(0.05), Capacity.fraction(0.05)),
        (Capacity.count(40), Capacity.effort(40)),
        (Capacity.count(40, per=500), Capacity.effort(40, per=500)),
    ):
        plain = {"capacity": capacity, "rare_label": True}
        weighed = {"capacity": same, "rare_label": True, "values": ones, "efforts": ones}
        assert adjusted_detection_score(y, flags, **plain) == adjusted_detection_score(
            y, flags, **weighed
        )
        assert detection_at_capacity(y, p, capacity) == detection_at_capacity(
            y, p, same, values=ones, efforts=ones
        )
    curve = capacity_curve(y, p, values=ones, efforts=ones, rare_label=True)
    plain = capacity_curve(y, p, rare_label=True)
    assert all(
        np.array_equal(curve.to_dict()[name], plain.to_dict()[name], equal_nan=True)
        for name in plain.to_dict()
    )
    assert np.array_equal(curve.effort, curve.n_flagged)
    assert np.array_equal(curve.price, curve.marginal)
    assert "effort" not in plain.to_dict()


def test_the_score_of_a_list_is_its_value(stream):
    """Within the budget, the score is the share of the rare value on the list."""
    y, p, values, minutes = stream
    budget = Capacity.effort(480)
    flagged = select(p, budget, values=values, efforts=minutes)
    score = adjusted_detection_score(
        y, flagged, capacity=budget, values=values, efforts=minutes, rare_label=True
    )
    assert score == pytest.approx(values[flagged & y].sum() / values[y].sum())
    twice = adjusted_detection_score(
        y, flagged, capacity=Capacity.effort(240), values=values, efforts=minutes, rare_label=True
    )
    assert twice == pytest.approx(score * 240 / minutes[flagged].sum())


def test_the_scorer_and_the_curve_agree(stream):
    """At a cut that fits the budget exactly, both find the same value."""
    y, p, values, minutes = stream
    curve = capacity_curve(y, p, values=values, efforts=minutes, rare_label=True)
    row = curve.at(Capacity.effort(480))
    assert row["effort"] <= 480 < row["effort"] + 60
    at_cut = detection_at_capacity(
        y, p, Capacity.effort(row["effort"]), values=values, efforts=minutes
    )
    assert at_cut == pytest.approx(row["value_share"])
    assert np.all(np.diff(curve.price) <= 1e-12)
    with pytest.raises(CapacityError, match="Make the curve with efforts"):
        capacity_curve(y, p, rare_label=True).at(Capacity.effort(480))


def test_worth_leaves_slots_empty(stream):
    """A list that ends at the worth finds what the list of that length finds."""
    y, p, values, _ = stream
    everything = detection_at_capacity(y, p, Capacity.fraction(1), values=values, worth=20)
    chosen = p * values >= 20
    assert everything == pytest.approx(values[chosen & y].sum() / values[y].sum())
    assert repr(capacity_scorer(Capacity.fraction(0.1), worth=Worth.precision(0.2))) == (
        "capacity_scorer(Capacity.fraction(0.1), worth=Worth.precision(0.2))"
    )
    with pytest.raises(ValueError, match="cannot be combined with values"):
        detection_at_capacity(y, p, Capacity.fraction(1), values=values, worth=Worth.precision(0.2))


def test_the_scorer_takes_values_and_efforts_as_metadata(stream):
    """With routing on, cross-validation hands them to the scorer, fold by fold."""
    y, p, values, minutes = stream
    scorer = capacity_scorer(Capacity.effort(480, per=2_000), rare_label=True)
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(
            LogisticRegression(),
            np.log(p)[:, np.newaxis],
            y,
            scoring=scorer.set_score_request(values=True, efforts=True),
            params={"values": values, "efforts": minutes},
            cv=3,
        )
    assert np.all(found["test_score"] > 0.05)


def test_efforts_are_asked_for(stream):
    """Errors say what is missing: efforts, or a rare item of value; work has no exact interval."""
    y, p, values, minutes = stream
    known = {"capacity": Capacity.effort(480), "rare_label": True}
    with pytest.raises(CapacityError, match="Pass efforts"):
        adjusted_detection_score(y, p > 0.2, **known)
    with pytest.raises(CapacityError, match="no exact interval is known"):
        adjusted_detection_interval(y, p > 0.2, **known)
    with pytest.warns(UndefinedMetricWarning, match="of any value"):
        adjusted_detection_score(y, p > 0.2, **known, values=0 * values, efforts=minutes)
