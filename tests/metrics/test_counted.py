"""Curves from passes over blocks of rows are those of all rows at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist import Capacity, capacity_curve
from shortlist._core.ranking import rank
from shortlist.metrics import counted
from shortlist.metrics.counted import CountedCurves, Ranking

KINDS = {
    "smooth": lambda rng, n: rng.random(n),
    "tied": lambda rng, n: np.round(rng.random(n), 1),
    "equal": lambda rng, n: np.zeros(n),
    "odd": lambda rng, n: rng.choice([np.inf, -np.inf, 0.0, -0.0, 1.5], n),
}


@given(
    kind=st.sampled_from(sorted(KINDS)),
    n=st.integers(2, 4_000),
    share=st.sampled_from([0.01, 0.1, 0.6]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=60, deadline=None)
def test_curves_are_those_of_all_rows(kind, n, share, seed):
    """Rows, marginals and intervals, also of a rule that flags first, to the last digit."""
    rng = np.random.default_rng(seed)
    scores = KINDS[kind](rng, n)
    is_rare = rng.random(n) < share * (0.5 + (scores > 0.5))
    is_rare[:2] = [True, False]
    keys, flagged = np.round(rng.random(n), 2), rng.random(n) < 0.2
    columns = {"score": scores, "key": keys, "flagged": flagged, "is_rare": is_rare}
    ends = np.sort(rng.integers(0, n, 5))
    blocks = [
        dict(zip(columns, part, strict=True))
        for part in zip(*(np.split(column, ends) for column in columns.values()), strict=True)
    ]
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_FEW_ROWS", "_FEW_IN_CELL", "_ONE_OF"):
            patch.setattr(counted, name, 10)
        patch.setattr(counted, "_MOST_PIECES", 8)
        curves = CountedCurves(
            lambda kernel: [kernel(block) for block in blocks],
            {"all": Ranking("score"), "rule": Ranking("score", "key", "flagged")},
        )
        capacities = [Capacity.count(1 + n // 7), Capacity.fraction(0.01), Capacity.multiple(2)]
        asked = {"all": capacities, "rule": [Capacity.count(int(flagged.sum()))]}
        got = curves.settle(asked, rows=["all"])
    curve = capacity_curve(is_rare, scores, rare_label=True)
    for each in capacities:
        want, row = curve.at(each), got["all"].at(each)
        np.testing.assert_equal({**row, "thresholds": 0}, {**want, "thresholds": 0})
    order = rank(scores, keys.__getitem__)[0]
    order = order[np.argsort(~flagged[order], kind="stable")]
    path = capacity_curve(is_rare[order], -np.arange(n), rare_label=True)
    (each,) = asked["rule"]
    assert got["rule"].interval_at(each) == path.interval_at(each)
    assert curves.first("rule") == (flagged.sum(), (flagged & is_rare).sum())
