"""Cuts found block by block are those of one machine, item for item."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shortlist import Capacity, select
from shortlist.distributed import _ranks
from shortlist.distributed._ranks import Order, Ranks
from shortlist.distributed.engine import LocalEngine
from shortlist.distributed.functions import listed_rows
from shortlist.exceptions import TableError

KINDS = {
    "continuous": lambda rng, n: rng.normal(size=n),
    "tied": lambda rng, n: rng.integers(0, 5, n).astype(float),
    "rounded": lambda rng, n: np.round(rng.normal(size=n), 1),
    "infinite": lambda rng, n: np.where(rng.random(n) < 0.3, np.inf, -np.inf),
    "zeros": lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, -0.0),
    "equal": lambda rng, n: np.ones(n),
}


class InBlocks(LocalEngine):
    """Calls kernels on blocks that lie in memory, and counts the passes."""

    def __init__(self, table, places):
        self.table, self.passes, self.travelled = table, 0, []
        starts, stops = [0, *places], [*places, table.num_rows]
        self.blocks = [
            table.slice(start, stop - start) for start, stop in zip(starts, stops, strict=True)
        ]

    def between(self, table, score, low, high):
        """Leave all rows to the kernels."""
        return table

    def summaries(self, table, columns, kernel):
        """Make a pass."""
        self.passes += 1
        answers = [kernel(block) for block in self.blocks]
        self.travelled.append(answers)
        return answers

    def listed(self, **options):
        """Return a mask of the rows that are before the cuts."""
        order = Order("score", "id", options.get("segment"))
        cuts = Ranks(self, None, order).cuts(options["wanted"])
        rows = [listed_rows(block, order=order, cuts=cuts) for block in self.blocks]
        ids = np.concatenate([block["id"].to_numpy() for block in rows])
        return np.isin(self.table["id"].to_numpy(), ids)


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    """Let blocks send about twenty scores, and look again."""
    monkeypatch.setattr(_ranks, "_FEW", 20)


@given(
    kind=st.sampled_from(sorted(KINDS)),
    n=st.integers(1, 6_000),
    share=st.floats(0, 1.1),
    n_blocks=st.integers(1, 9),
    texts=st.booleans(),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_list_is_that_of_one_machine(kind, n, share, n_blocks, texts, seed):
    """Any division of any scores gives the list of `select`, ties and infinities included."""
    rng = np.random.default_rng(seed)
    scores, ids = KINDS[kind](rng, n), np.arange(n)
    ids = np.array([f"case {i}" for i in ids], dtype=object) if texts else ids
    k = int(share * n)
    places = np.sort(rng.integers(0, n + 1, n_blocks - 1))
    engine = InBlocks(pa.table({"score": scores, "id": ids}), places)
    want = select(scores, Capacity.count(k), ids=ids)
    np.testing.assert_array_equal(engine.listed(wanted={None: k}), want)


def test_segments_share_the_passes():
    """Each segment has its own cut, and a few passes find them all."""
    rng = np.random.default_rng(0)
    scores, ids = np.round(rng.normal(size=9_000), 1), np.arange(9_000)
    teams = np.array(["north", "south", "west"])[rng.integers(0, 3, 9_000)]
    engine = InBlocks(pa.table({"score": scores, "id": ids, "team": teams}), [100, 5_000])
    wanted = {"north": 50, "south": 700}
    listed = engine.listed(wanted=wanted, segment="team")
    for team, k in wanted.items():
        own = teams == team
        want = select(scores[own], Capacity.count(k), ids=ids[own])
        np.testing.assert_array_equal(listed[own], want)
    assert not listed[teams == "west"].any()
    assert engine.passes <= 4


def test_small_blocks_are_settled_in_one_pass(monkeypatch):
    """What is few is sent at once; tied rows take one more pass."""
    monkeypatch.setattr(_ranks, "_FEW", 1 << 15)
    scores = np.random.default_rng(0).random(3_000)
    engine = InBlocks(pa.table({"score": scores, "id": np.arange(3_000)}), [100])
    engine.listed(wanted={None: 7})
    assert engine.passes == 1
    engine = InBlocks(pa.table({"score": scores.round(1), "id": np.arange(3_000)}), [100])
    engine.listed(wanted={None: 7})
    assert engine.passes == 2


def test_little_travels_however_many_rows_are_tied(monkeypatch):
    """A block sends few numbers, first from everywhere, then from a bracket."""
    ids, scores = np.arange(50_000), np.ones(50_000)
    engine = InBlocks(pa.table({"score": scores, "id": ids}), [10_000, 30_000])
    monkeypatch.setattr(_ranks, "_FEW", 500)
    listed = engine.listed(wanted={None: 5_000})
    np.testing.assert_array_equal(listed, select(scores, Capacity.count(5_000), ids=ids))
    sent = [part[None].values.size for answers in engine.travelled for part in answers]
    assert max(sent) <= 501
    assert engine.passes <= 4


@pytest.mark.parametrize("k", [0, 1, 2])
def test_scores_that_are_not_numbers_are_refused(k):
    """NaN is counted wherever it is, and is an error whatever is asked for."""
    table = pa.table({"score": [1.0, np.nan, 5.0, 5.0, np.nan, -np.inf], "id": np.arange(6)})
    with pytest.raises(TableError, match="2 of 6 are NaN"):
        InBlocks(table, [4]).listed(wanted={None: k})


def test_equal_ids_at_the_cut_are_refused():
    """Two rows with one score and one id cannot be put in order."""
    engine = InBlocks(pa.table({"score": np.ones(4), "id": np.zeros(4, dtype=int)}), [])
    with pytest.raises(TableError, match="same id"):
        engine.listed(wanted={None: 2})
