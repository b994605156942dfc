"""Curves from passes over blocks of rows are those of all rows at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist import Capacity, capacity_curve
from shortlist.metrics import counted
from shortlist.metrics.counted import count_rows

KINDS = {
    "smooth": lambda rng, n: rng.random(n),
    "tied": lambda rng, n: np.round(rng.random(n), 1),
    "equal": lambda rng, n: np.zeros(n),
    "odd": lambda rng, n: rng.choice([np.inf, -np.inf, 0.0, -0.0, 1.5], n),
}


def make_rows(kind, n, share, seed):
    """Make the columns of rows with labels, and the flags of a rule."""
    rng = np.random.default_rng(seed)
    scores = KINDS[kind](rng, n)
    is_rare = rng.random(n) < share * (0.5 + (scores > 0.5))
    is_rare[:2] = [True, False]
    columns = {"lifted": scores, "key": rng.random(n), "is_rare": is_rare}
    return {**columns, "flagged": rng.random(n) < 0.2}, rng


def passes(columns, rng):
    """Return what calls a kernel on blocks of the rows, some of which may be empty."""
    ends = np.sort(rng.integers(0, columns["key"].size, 5))
    parts = zip(*(np.split(column, ends) for column in columns.values()), strict=True)
    blocks = [dict(zip(columns, part, strict=True)) for part in parts]
    return lambda kernel: [kernel(block) for block in blocks]


@given(
    kind=st.sampled_from(sorted(KINDS)),
    n=st.integers(2, 4_000),
    share=st.sampled_from([0.01, 0.1, 0.6]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=60, deadline=None)
def test_curves_are_those_of_all_rows(kind, n, share, seed):
    """Rows, marginals and intervals, also of a rule that flags first, to the last digit."""
    columns, rng = make_rows(kind, n, share, seed)
    got = count_rows(passes(columns, rng), ["flagged"])
    is_rare, flagged = columns["is_rare"], columns["flagged"]
    capacities = [Capacity.count(1 + n // 7), Capacity.fraction(0.01), Capacity.multiple(2)]
    order = np.lexsort((columns["key"], -columns["lifted"]))
    places = -np.arange(n)
    path = capacity_curve(is_rare[order], places, rare_label=True)
    for each in capacities:
        want, row = path.at(each), got.curve(capacities).at(each)
        np.testing.assert_equal({**row, "thresholds": 0}, {**want, "thresholds": 0})
    order = order[np.argsort(~flagged[order], kind="stable")]
    path = capacity_curve(is_rare[order], places, rare_label=True)
    for each in [*capacities, Capacity.count(int(flagged.sum()))]:
        assert got.curve(first="flagged").interval_at(each) == path.interval_at(each)
    assert got.flags("flagged") == (flagged.sum(), (flagged & is_rare).sum())


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_of_many_rare_rows_some_are_kept(monkeypatch, kind):
    """Intervals contain those of all rows and are hardly wider; blocks do not matter."""
    monkeypatch.setattr(counted, "_MOST", 200)
    columns, rng = make_rows(kind, 20_000, 0.1, 3)
    first, second = (count_rows(passes(columns, rng), ["flagged"]) for _ in range(2))
    np.testing.assert_array_equal(first.counts, second.counts)
    order = np.lexsort((columns["key"], -columns["lifted"]))
    path = capacity_curve(columns["is_rare"][order], -np.arange(20_000), rare_label=True)
    capacities = [Capacity.count(count) for count in (10, 150, 1_000, 15_000)]
    curve = first.curve(capacities)
    assert curve.n_flagged.size < 15_000
    for each in capacities:
        exact, wider = path.interval_at(each), curve.interval_at(each)
        assert wider.low <= exact.low
        assert wider.high >= exact.high
        assert wider.high - wider.low < exact.high - exact.low + 0.03
        row = curve.at(each)
        assert row["n_found"] == path.n_found[int(row["n_flagged"])]
        assert row["n_flagged"] > 0.95 * int(each.value) - 1
    assert curve.at(capacities[1])["n_flagged"] == 150
