"""Capacities of segments in `CapacityClassifier`."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shortlist import Capacity, CapacityClassifier, MulticlassCapacityClassifier
from shortlist.datasets import make_fraud
from shortlist.exceptions import CapacityError, InsufficientCalibrationWarning

X, Y = make_fraud(n_samples=8_000, random_state=0)
REGION = np.where(np.arange(8_000) % 4 == 0, "north", "south")
LIMITS = {"north": Capacity.fraction(0.01), "south": Capacity.fraction(0.05)}
MODEL = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
NEW, _ = make_fraud(n_samples=4_000, random_state=1)
NEW_REGION = REGION[:4_000]
# The rule of the paper, whose flags can be counted by hand.
BY_HAND = {"cv": "prefit", "guarantee": "plug-in", "ties": "exclude"}


def calibrated(**options):
    """Take the trained model as it is, so that the calibration items are all items."""
    options = {"capacity": None, "segment_capacities": LIMITS, **BY_HAND, **options}
    segments = options.pop("segments", REGION)
    return CapacityClassifier(MODEL, **options).fit(X, Y, segments=segments)


def rates(flagged, region=REGION):
    """Return the flag rate of each segment."""
    return {name: flagged[region == name].mean() for name in np.unique(region)}


def test_each_segment_uses_its_own_capacity():
    """Exactly on the calibration items, since continuous scores have no ties."""
    found = rates(calibrated().flag(X, segments=REGION))
    assert found == {"north": 0.01, "south": 0.05}


def test_a_segment_is_cut_as_it_would_be_alone():
    """Its threshold is that of a classifier calibrated on its items only."""
    model = calibrated()
    for name, limit in LIMITS.items():
        own = name == REGION
        alone = CapacityClassifier(MODEL, capacity=limit, **BY_HAND).fit(X[own], Y[own])
        assert model.rule_.segment_calibrations[name].value == alone.threshold_
    assert set(model.rule_.segment_calibrations) == set(LIMITS)


def test_the_capacity_for_all_items_holds_as_well():
    """The best of what the segments let through, up to the capacity and no further."""
    model = calibrated(capacity=Capacity.fraction(0.03))
    flagged = model.flag(X, segments=REGION)
    assert flagged.sum() == 240
    found = rates(flagged)
    assert found["north"] <= 0.01
    assert found["south"] <= 0.05
    assert_array_equal(model.decision_function(X, segments=REGION) > 0, flagged)
    assert_array_equal(model.predict(X, segments=REGION) == 1, flagged)


def test_two_classes_give_the_rule_of_joint_capacities():
    """As `MulticlassCapacityClassifier` finds it by prices, without the majority."""
    ours = calibrated(capacity=Capacity.fraction(0.03))
    joint = MulticlassCapacityClassifier(
        MODEL,
        capacities={1: None},
        total=Capacity.fraction(0.03),
        segment_capacities=LIMITS,
        majority=False,
        **BY_HAND,
    ).fit(X, Y, segments=REGION)
    assert_array_equal(ours.flag(X, segments=REGION), joint.flag(X, segments=REGION))
    batch = joint.select(NEW, segments=NEW_REGION) == 1
    assert_array_equal(ours.select(NEW, segments=NEW_REGION), batch)


def test_several_thresholds_have_no_single_rule_of_bayes():
    """With a threshold for each segment, there is no one prior that they stand for."""
    with pytest.raises(AttributeError, match="needs one threshold on prob"):
        _ = calibrated().modified_prior_


def test_a_batch_is_filled_within_all_limits():
    """Every segment to its number, and all together to theirs."""
    model = calibrated()
    found = rates(model.select(NEW, segments=NEW_REGION), NEW_REGION)
    assert found == {"north": 0.01, "south": 0.05}
    assert model.select(NEW, Capacity.count(50), segments=NEW_REGION).sum() == 50
    assert model.select(NEW, Capacity.count(500), segments=NEW_REGION).sum() == 160


def test_coarse_scores_use_the_capacity_of_each_segment():
    """With hashed ties, also when whole segments are tied."""
    coarse = np.round(X, 0)
    model = CapacityClassifier(
        MODEL, capacity=None, segment_capacities=LIMITS, **{**BY_HAND, "ties": "hash"}
    ).fit(coarse, Y, segments=REGION, ids=np.arange(8_000))
    flagged = model.flag(coarse, segments=REGION, ids=np.arange(8_000))
    assert rates(flagged) == {"north": 0.01, "south": 0.05}


def test_none_is_no_limit_and_the_default_is_for_the_others():
    """A region that is not named gets the default, all such regions together."""
    region = np.array(["north", "south", "east", "west"])[np.arange(8_000) % 4]
    model = calibrated(
        segment_capacities={"north": None, "south": Capacity.fraction(0.02)},
        default_segment_capacity=Capacity.fraction(0.04),
        capacity=Capacity.fraction(0.5),
        segments=region,
    )
    flagged = model.flag(X, segments=region)
    others = np.isin(region, ["east", "west"])
    assert flagged[region == "south"].mean() == 0.02
    assert flagged[others].mean() == 0.04
    assert flagged[region == "north"].mean() > 0.5
    assert list(model.rule_.segment_calibrations) == ["south", None]


def test_new_capacities_need_no_data():
    """A copy with other thresholds; this one keeps its own."""
    model = calibrated()
    assert model.with_capacity(Capacity.fraction(0.01)).flag(X, segments=REGION).sum() == 80
    assert rates(model.flag(X, segments=REGION)) == {"north": 0.01, "south": 0.05}


def test_recalibration_takes_segments():
    """And needs no labels."""
    model = calibrated().recalibrate(NEW, segments=NEW_REGION)
    found = rates(model.flag(NEW, segments=NEW_REGION), NEW_REGION)
    assert found == {"north": 0.01, "south": 0.05}


def test_segments_follow_the_calibration_items():
    """Which were held out here."""
    model = CapacityClassifier(
        MODEL, capacity=None, segment_capacities=LIMITS, cv=0.5, random_state=0
    ).fit(X, Y, segments=REGION)
    found = model.rule_.segment_calibrations
    assert sum(one.n_calibration for one in found.values()) == 4_000
    assert all(one.flagged_fraction <= LIMITS[name].value for name, one in found.items())
    assert clone(model).get_params()["segment_capacities"] == LIMITS


def test_they_are_routed_by_request():
    """With metadata routing, through a pipeline to fit and to predict."""
    with sklearn.config_context(enable_metadata_routing=True):
        model = CapacityClassifier(
            LogisticRegression(), capacity=None, segment_capacities=LIMITS, random_state=0, cv=0.5
        )
        model.set_fit_request(segments=True).set_predict_request(segments=True)
        routed = make_pipeline(StandardScaler(), model).fit(X, Y, segments=REGION)
        found = rates(routed.predict(X, segments=REGION) == 1)
    assert found["south"] > found["north"] > 0


def test_no_calibration_items_no_promise():
    """A segment nobody came from gets no flags."""
    named = {**LIMITS, "east": Capacity.fraction(0.5)}
    with pytest.warns(
        InsufficientCalibrationWarning, match="No calibration item belongs to 'east'"
    ):
        model = calibrated(segment_capacities=named, guarantee="confident")
    east = np.full(len(NEW), "east")
    assert not model.flag(NEW, segments=east).any()


def test_mistakes_are_explained():
    """What arrived, what was needed, what to do."""
    model = calibrated()
    with pytest.raises(ValueError, match="segments are missing"):
        model.predict(X)
    with pytest.raises(CapacityError, match=r"segments holds 'west' at rows 0, 1.*no capacity"):
        model.predict(X[:2], segments=["west", "west"])
    with pytest.raises(ValueError, match=r"must not be missing; found None or NaN at row 1"):
        model.select(X[:2], segments=["north", None])
    with pytest.raises(ValueError, match="one segment for each of the 2 items; got 1"):
        model.flag(X[:2], segments=["north"])
    with pytest.raises(CapacityError, match="A controller keeps one capacity"):
        model.controller()
    with pytest.raises(ValueError, match="without segment_capacities"):
        calibrated(capacity=Capacity.fraction(0.1), segment_capacities=None)
    with pytest.raises(CapacityError, match="No capacity was given"):
        calibrated(segment_capacities=None, segments=None)


def test_a_segment_that_cannot_be_a_name_is_refused():
    """A table of segments, for example."""
    with pytest.raises(ValueError, match=r"one name for each item.*got \['north'\]"):
        calibrated(segments=REGION[:, np.newaxis])
