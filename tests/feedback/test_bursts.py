"""Follow-up bursts: within the capacity, self-financing, and the same after a restart."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist import Capacity
from shortlist.feedback import FollowUpBurst


def play(burst, *, n_days=6, shift=4.0, slots=40, seed=0, restart=False):
    """Let a burst see days with a group that the scores know nothing about; return its lists."""
    rng, lists = np.random.default_rng(seed), []
    for day in range(n_days):
        X = rng.normal(size=(600, 3))
        X[:60] += shift
        ids = np.array([f"{day}/{i}" for i in range(600)])
        picked = burst.select(X, rng.normal(size=600), Capacity.count(slots), ids=ids)
        lists.append(picked)
        flagged = np.flatnonzero(picked.flagged)
        burst.learn(ids[flagged], flagged < 60)
        if restart:
            burst = FollowUpBurst.from_json(json.loads(json.dumps(burst.to_json())))
    return lists


@given(
    slots=st.integers(0, 60),
    most=st.floats(0, 1),
    probe=st.floats(0, 1),
    seed=st.integers(0, 5),
)
@settings(max_examples=25, deadline=None)
@pytest.mark.filterwarnings("ignore:A share of")
def test_no_list_is_longer_than_the_capacity(slots, most, probe, seed):
    """Bursts stay within their share, and the list within the capacity."""
    for picked in play(FollowUpBurst(most=most, probe=probe), n_days=4, slots=slots, seed=seed):
        assert picked.flagged.sum() == slots
        assert (picked.reasons == "burst").sum() <= int(most * slots)
        assert ((picked.reasons != "not selected") == picked.flagged).all()


def test_a_burst_follows_a_hit():
    """A group that nobody knew gets more slots from day to day, and its cases name the hit."""
    lists = play(FollowUpBurst(probe=0.3))
    sizes = [int((picked.reasons == "burst").sum()) for picked in lists]
    assert sizes[0] == 0
    assert sizes[-1] > sizes[1]
    last = lists[-1]
    in_burst = last.reasons == "burst"
    assert in_burst[:60].sum() > 0.8 * in_burst.sum()
    assert all(isinstance(id, str) for id in last.opened_by[in_burst])
    assert all(id is None for id in last.opened_by[~in_burst])


def test_a_restart_changes_nothing():
    """A burst that is saved and loaded after each day makes the same lists."""
    for one, other in zip(
        play(FollowUpBurst(probe=0.3)), play(FollowUpBurst(probe=0.3), restart=True), strict=True
    ):
        np.testing.assert_array_equal(one.flagged, other.flagged)
        np.testing.assert_array_equal(one.reasons, other.reasons)


def test_bursts_that_find_nothing_are_closed():
    """Hits without any neighbours of their kind lose their slots again."""
    rng, burst = np.random.default_rng(0), FollowUpBurst(probe=0.3)
    for day in range(12):
        X, ids = rng.normal(size=(600, 3)), np.arange(600) + 1_000 * day
        scores = rng.normal(size=600)
        is_rare = scores > 1.5  # every slot of the model is a hit
        is_rare[rng.integers(0, 600, 6)] = True
        picked = burst.select(X, scores, Capacity.count(40), ids=ids)
        burst.learn(ids[picked.flagged], is_rare[picked.flagged])
    assert (picked.reasons == "burst").sum() <= 2


def test_late_and_foreign_outcomes_do_no_harm():
    """Unknown outcomes may come later, and outcomes of other cases are ignored."""
    burst = FollowUpBurst(probe=0.5)
    X, ids = np.random.default_rng(0).normal(size=(100, 2)), np.arange(100)
    picked = burst.select(X, np.arange(100.0), Capacity.count(20), ids=ids)
    drawn = ids[picked.reasons == "probe"]
    burst.learn(drawn, [None] * drawn.size)
    burst.learn([10_000], [True])
    assert burst.n_open == 0
    burst.learn(drawn[:1], [True])
    assert burst.n_open == 1


def test_bad_input_is_refused():
    """Gaps, other lengths, impossible shares and foreign states raise an error."""
    burst = FollowUpBurst()
    with pytest.raises(ValueError, match="finite numbers"):
        burst.select([[np.nan]], [1.0], Capacity.count(1), ids=[1])
    with pytest.raises(ValueError, match="2 rows"):
        burst.select([[1.0], [2.0]], [1.0], Capacity.count(1), ids=[1])
    with pytest.raises(ValueError, match="share of the slots"):
        FollowUpBurst(most=2)
    with pytest.raises(ValueError, match="ids, and"):
        burst.learn([1, 2], [True])
    with pytest.raises(ValueError, match="format"):
        FollowUpBurst.from_json({})
