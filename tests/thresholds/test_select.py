"""The batch mode fills the capacity exactly."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from shortlist import Capacity, select


def test_a_tied_block_is_filled_exactly():
    """Of three items in the last place, one is taken."""
    flagged = select([0.9, 0.5, 0.5, 0.5, 0.1], Capacity.count(2))
    assert flagged[0]
    assert flagged[1:4].sum() == 1
    assert not flagged[4]


def test_ids_decide_ties_whatever_their_container():
    """Lists, arrays, series; ints of any width: the same items."""
    scores, ids = np.ones(50), np.arange(50)
    expected = select(scores, Capacity.count(7), ids=ids)
    for same in (ids.tolist(), ids.astype(np.int32), pl.Series(ids)):
        assert_array_equal(select(scores, Capacity.count(7), ids=same), expected)
    text = [f"case-{number}" for number in ids]
    by_text = select(scores, Capacity.count(7), ids=text)
    assert_array_equal(select(scores, Capacity.count(7), ids=np.array(text)), by_text)
    assert_array_equal(select(scores, Capacity.count(7), ids=pl.Series(text)), by_text)


def test_ids_can_be_mixtures():
    """Numbers and texts side by side: each keeps its own key."""
    mixed = [7, "a", *range(8, 26)]
    with_text = select(np.ones(20), Capacity.count(6), ids=mixed)
    order = np.argsort([str(item) for item in mixed])
    again = select(np.ones(20), Capacity.count(6), ids=[mixed[place] for place in order])
    assert_array_equal(again, with_text[order])


def test_another_key_draws_other_items():
    """Ties are settled by chance, but reproducibly."""
    scores = np.ones(100)
    first = select(scores, Capacity.count(10), random_state=1)
    assert_array_equal(first, select(scores, Capacity.count(10), random_state=1))
    assert (first != select(scores, Capacity.count(10), random_state=2)).any()
    drawn = select(scores, Capacity.count(10), random_state=np.random.default_rng(3))
    assert drawn.sum() == 10


def test_tied_items_are_drawn_evenly():
    """Over many keys each of five tied items is taken two times in five.

    2,000 draws: standard error 0.011, so four of them are 0.044.
    """
    taken = np.mean(
        [select(np.ones(5), Capacity.count(2), random_state=key) for key in range(2_000)], axis=0
    )
    assert np.abs(taken - 0.4).max() < 0.044


def test_nan_scores_are_named():
    """The complaint says which rows."""
    with pytest.raises(ValueError, match="2 NaN of 4 at rows 1, 3"):
        select([1, np.nan, 2, np.nan], Capacity.count(1))


def test_an_empty_batch_has_an_empty_answer():
    """A day without cases is not an error."""
    assert select([], Capacity.count(5)).shape == (0,)


def test_bad_arguments_are_explained():
    """A bare number, a matrix, ids of another length, a string as random state."""
    with pytest.raises(TypeError, match=r"Capacity.count\(50\)"):
        select([1, 2], 1)
    with pytest.raises(ValueError, match="one-dimensional"):
        select([[1, 2]], Capacity.count(1))
    with pytest.raises(ValueError, match=r"each of the 2 items; got shape \(1,\)"):
        select([1, 2], Capacity.count(1), ids=["a"])
    with pytest.raises(ValueError, match="random_state"):
        select([1, 2], Capacity.count(1), random_state="x")
    with pytest.raises(ValueError, match="one identifier"):
        select([1, 1], Capacity.count(1), ids=np.zeros((2, 1)))
    for texts in (["a", "b"], ["0.3", "0.2"], np.array(["1", 2], dtype=object)):
        with pytest.raises(ValueError, match="must be numbers"):
            select(texts, Capacity.count(1))
    with pytest.raises(ValueError, match=r"scores must lie between .*beyond that"):
        select([10**400, 1], Capacity.count(1))
