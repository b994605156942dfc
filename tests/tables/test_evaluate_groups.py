"""Who is found: one rule in each group, with intervals that hold together, and floors."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.tables.groups import GroupCodes, by_group, price_of_floor


def test_groups_are_counted_by_hand():
    """Two groups: one of two rare rows found by two flags, and one of one by one flag."""
    codes = np.array([0, 0, 0, 1, 1])
    is_rare = np.array([True, True, False, True, False])
    flagged = np.array([True, False, True, True, False])
    north, south = by_group(["north", "south"], codes, is_rare, flagged)
    assert (north.n_items, north.n_rare, north.flagged, north.found) == (3, 2, 2, 1)
    assert (north.detection, north.precision, north.list_share) == (0.5, 0.5, 2 / 3)
    assert (south.detection, south.precision, south.list_share) == (1.0, 1.0, 1 / 3)
    (nobody,) = by_group(["all"], np.zeros(2, int), np.zeros(2, bool), np.zeros(2, bool))
    assert (nobody.detection, nobody.precision, nobody.list_share) == (None, None, None)
    assert tuple(nobody.detection_interval) == (0, 1)


def test_intervals_of_all_groups_hold_at_once():
    """Ten groups of twelve rare rows, each found with its own probability.

    Some interval fails in at most 5 % of 600 samples: four standard errors are 0.036. Intervals of
    95 % each would fail together more often.
    """
    rng, n_groups, size = np.random.default_rng(3), 10, 12
    truth = np.linspace(0.2, 0.9, n_groups)
    codes, is_rare = np.repeat(np.arange(n_groups), size), np.ones(n_groups * size, bool)
    names, failed = [str(code) for code in range(n_groups)], 0
    for _ in range(600):
        flagged = rng.random(codes.size) < truth[codes]
        groups = by_group(names, codes, is_rare, flagged)
        inside = [
            g.detection_interval.low <= p <= g.detection_interval.high
            for g, p in zip(groups, truth, strict=True)
        ]
        failed += not all(inside)
    assert failed / 600 <= 0.05 + 0.036
    alone = by_group(["0"], codes[:size], is_rare[:size], flagged[:size])[0].detection_interval
    assert groups[0].detection_interval.low < alone.low


@st.composite
def rankings(draw):
    """Draw groups and labels of rows that are ranked in their order."""
    n = draw(st.integers(2, 9))
    codes = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    is_rare = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return np.unique(codes, return_inverse=True)[1], np.array(is_rare)


@given(rankings(), st.sampled_from([0.3, 0.5, 0.9, 1.0]), st.integers(0, 9))
def test_a_floor_is_solved_exactly(ranking, detection, allowed):
    """By enumeration: no lists by group of this length have higher places and keep the floor."""
    codes, is_rare = ranking
    n, n_groups = codes.size, int(codes.max()) + 1
    names = [str(code) for code in range(n_groups)]
    rows = [np.flatnonzero(codes == code) for code in range(n_groups)]
    wanted = [math.ceil(round(detection * 10) * is_rare[own].sum() / 10) for own in rows]

    def keeps(lengths):
        pairs = zip(rows, lengths, wanted, strict=True)
        return all(is_rare[own[:k]].sum() >= least for own, k, least in pairs)

    lengths = itertools.product(*(range(own.size + 1) for own in rows))
    kept = [each for each in lengths if keeps(each)]
    allowed = min(allowed, n)
    order = np.arange(n)
    floor = price_of_floor(names, codes, is_rare, order, detection=detection, allowed=allowed)
    assert floor.least == min(sum(each) for each in kept)
    assert floor.found == is_rare[:allowed].sum()
    full = [each for each in kept if sum(each) == allowed]
    assert (floor.found_with_floor is None) == (floor.least > allowed)
    if floor.found_with_floor is not None:
        best = min(
            full, key=lambda each: sum(own[:k].sum() for own, k in zip(rows, each, strict=True))
        )
        assert tuple(floor.reviews.values()) == best
        found = sum(is_rare[own[:k]].sum() for own, k in zip(rows, best, strict=True))
        assert floor.found_with_floor == found


def test_the_words_say_what_a_floor_takes_and_costs():
    """With and without enough reviews."""
    codes, is_rare = np.array([0, 0, 0, 1]), np.array([True, True, False, True])
    given = {"names": ["a", "b"], "codes": codes, "is_rare": is_rare, "order": np.arange(4)}
    enough = price_of_floor(**given, detection=0.5, allowed=2)
    assert (enough.least, enough.found, enough.found_with_floor) == (2, 2, 2)
    assert enough.reviews == {"a": 1, "b": 1}
    assert "takes 2 reviews" in enough.in_words
    assert "not enough" in price_of_floor(**given, detection=1, allowed=2).in_words


@pytest.mark.parametrize("n_groups", [3, 21, 40])
def test_small_groups_are_taken_together(n_groups):
    """Numbers are given chunk by chunk; the twenty largest keep their names."""
    names = np.repeat([f"g{i}" for i in range(n_groups)], np.arange(n_groups, 0, -1))
    numbers = GroupCodes()
    codes = np.concatenate([numbers.of(part) for part in np.array_split(names[::-1], 3)])
    shown, places = numbers.largest(codes)
    assert shown[:3] == ["g0", "g1", "g2"]
    assert len(shown) == min(n_groups, 21)
    assert (shown[-1] == "(all others)") == (n_groups == 40)
    expected = [name if name in shown else "(all others)" for name in names[::-1]]
    assert [shown[place] for place in places] == expected
