"""The compiled heaps, against a sorted list."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shortlist.assignment._flow import drop_top, empty_heaps, push, with_room

steps = st.lists(st.none() | st.tuples(st.integers(0, 2), st.integers(-5, 5)), max_size=60)


@given(steps, st.integers(0, 2))
def test_heaps_give_their_entries_in_order(steps, emptied):
    """The largest key comes first, and the smallest row among equal keys."""
    heaps, expected = empty_heaps(3, 1), [[], [], []]
    for row, step in enumerate(steps):
        if step is None:
            if expected[emptied]:
                drop_top(heaps, emptied)
                expected[emptied].pop(0)
        else:
            heap, key = step
            heaps = with_room(heaps, 1)
            push(heaps, heap, key, row)
            expected[heap] = sorted([*expected[heap], (-key, row)])
        for heap, entries in enumerate(expected):
            top = heaps.top[heap]
            assert (top >= 0) == bool(entries)
            if entries:
                assert (-heaps.key[top], heaps.row[top]) == entries[0]


def test_the_pool_grows_by_doubling():
    """Entries survive growth, and a pool with enough room is not copied."""
    heaps = empty_heaps(1, 4)
    for row in range(4):
        push(heaps, 0, row, row)
    assert np.shares_memory(with_room(heaps, 0).key, heaps.key)
    larger = with_room(heaps, 1)
    assert larger.key.size >= 5
    assert np.array_equal(larger.key[:4], heaps.key)
