"""Cuts found block by block are those of one machine, item for item."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist import Capacity, select
from shortlist.distributed import _floor
from shortlist.distributed._cut import CutSearch
from shortlist.distributed._kernels import RowsBefore
from shortlist.exceptions import TableError

KINDS = {
    "continuous": lambda rng, n: rng.normal(size=n),
    "tied": lambda rng, n: rng.integers(0, 5, n).astype(float),
    "rounded": lambda rng, n: np.round(rng.normal(size=n), 1),
    "infinite": lambda rng, n: np.where(rng.random(n) < 0.3, np.inf, -np.inf),
    "zeros": lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, -0.0),
    "equal": lambda rng, n: np.ones(n),
}


def search_in(blocks, **options):
    """Return a search over blocks that lie in memory."""
    return CutSearch(lambda kernel: [kernel(block) for block in blocks], "score", "id", **options)


def divide(columns, places):
    """Divide columns into blocks at some places."""
    parts = {name: np.split(column, places) for name, column in columns.items()}
    return [dict(zip(parts, block, strict=True)) for block in zip(*parts.values(), strict=True)]


@given(
    kind=st.sampled_from(sorted(KINDS)),
    n=st.integers(1, 6_000),
    share=st.floats(0, 1.1),
    n_blocks=st.integers(1, 9),
    texts=st.booleans(),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=150, deadline=None)
def test_the_list_is_that_of_one_machine(kind, n, share, n_blocks, texts, seed):
    """Any division of any scores gives the list of `select`, ties and infinities included."""
    rng = np.random.default_rng(seed)
    scores, ids = KINDS[kind](rng, n), np.arange(n)
    ids = np.array([f"case {i}" for i in ids], dtype=object) if texts else ids
    k = int(share * n)
    places = np.sort(rng.integers(0, n + 1, n_blocks - 1))
    blocks = divide({"score": scores, "id": ids}, places)
    search = search_in(blocks)
    cuts = search.cuts(search.totals(), {None: k})
    listed = np.concatenate([RowsBefore("score", "id", cuts)(block) for block in blocks])
    np.testing.assert_array_equal(listed, select(scores, Capacity.count(k), ids=ids))


def test_segments_share_the_passes():
    """Each segment has its own cut, and three passes find them all."""
    rng, passes = np.random.default_rng(0), []
    scores, ids = np.round(rng.normal(size=9_000), 1), np.arange(9_000)
    teams = np.array(["north", "south", "west"])[rng.integers(0, 3, 9_000)]
    blocks = divide({"score": scores, "id": ids, "team": teams}, [100, 5_000])

    def summaries(kernel):
        passes.append(kernel)
        return [kernel(block) for block in blocks]

    search = CutSearch(summaries, "score", "id", segment="team")
    wanted = {"north": 50, "south": 700}
    cuts = search.cuts(search.totals(), wanted)
    listed = np.concatenate(
        [RowsBefore("score", "id", cuts, segment="team")(block) for block in blocks]
    )
    for team, k in wanted.items():
        own = teams == team
        want = select(scores[own], Capacity.count(k), ids=ids[own])
        np.testing.assert_array_equal(listed[own], want)
    assert not listed[teams == "west"].any()
    assert len(passes) == 3


def test_a_large_tied_block_is_divided_by_few_keys(monkeypatch):
    """Only keys below a limit travel; if they are too few after all, everything is gathered."""
    monkeypatch.setattr("shortlist.distributed._cut._MOST_KEYS", 100)
    ids, scores = np.arange(5_000), np.ones(5_000)
    blocks, travelled = divide({"score": scores, "id": ids}, [1_000, 3_000]), []

    def summaries(kernel):
        answers = [kernel(block) for block in blocks]
        travelled.append(answers)
        return answers

    search = CutSearch(summaries, "score", "id")
    cuts = search.cuts(search.totals(), {None: 500})
    assert sum(answer[None].size for answer in travelled[2]) < 1_500
    want = select(scores, Capacity.count(500), ids=ids)
    listed = np.concatenate([RowsBefore("score", "id", cuts)(block) for block in blocks])
    np.testing.assert_array_equal(listed, want)
    monkeypatch.setattr("shortlist.distributed._cut._SPARE", -30.0)  # an unlucky limit
    search = CutSearch(summaries, "score", "id")
    assert search.cuts(search.totals(), {None: 500}) == cuts


def test_scores_that_are_not_numbers_are_refused():
    """NaN is counted in the first pass, and is an error."""
    search = search_in([{"score": np.array([1.0, np.nan]), "id": np.arange(2)}])
    with pytest.raises(TableError, match="1 of 2 are NaN"):
        search.totals()


def test_equal_ids_at_the_cut_are_refused():
    """Two rows with one score and one id cannot be put in order."""
    search = search_in([{"score": np.ones(4), "id": np.zeros(4, dtype=int)}])
    with pytest.raises(TableError, match="same id"):
        search.cuts(search.totals(), {None: 2})


@given(
    kind=st.sampled_from(sorted(KINDS)),
    n=st.integers(1, 3_000),
    share=st.floats(0, 1),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=100, deadline=None)
def test_one_pass_finds_a_known_place(kind, n, share, seed):
    """The score in a place, how many lie above it and how many are tied, from short blocks."""
    scores = KINDS[kind](np.random.default_rng(seed), n)
    place = min(int(share * n), n - 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_floor, "_SPARE", 10)
        highest = _floor._Highest(place)
        for start in range(0, n, 97):
            highest.add(scores[start : start + 97])
    value = np.sort(scores)[::-1][place]
    above = int((scores > value).sum())
    found = highest.located()
    assert found[:4] == (value, above, int((scores == value).sum()), place - above)
    np.testing.assert_array_equal(found.rows, np.flatnonzero(scores == value))
    assert (highest.n, highest.n_nan) == (n, 0)


def test_one_pass_counts_what_is_not_a_number():
    """NaN is counted wherever it is."""
    highest = _floor._Highest(2)
    highest.add(np.array([1.0, np.nan, 5.0, 5.0]))
    highest.add(np.array([np.nan, -np.inf]))
    assert (highest.n, highest.n_nan) == (6, 2)
