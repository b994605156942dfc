"""How often a report sees a shift where there is none."""

import numpy as np
import pandas as pd

from shortlist.report._drift import _columns, _judge
from shortlist.tables import Feature, TableSchema
from shortlist.tables._profile import column_profiles

FEATURES = (
    Feature("amount", "numeric"),
    Feature("count", "numeric"),
    Feature("town", "categorical"),
    Feature("vip", "boolean"),
)


def table(rng, n):
    """Return rows with gaps, ties and rare categories."""
    return pd.DataFrame(
        {
            "amount": np.where(rng.random(n) < 0.05, np.nan, rng.lognormal(size=n)),
            "count": rng.poisson(1.0, n).astype(float),
            "town": rng.choice([f"t{i}" for i in range(15)], n, p=_SHARES).astype(object),
            "vip": (rng.random(n) < 0.02).astype(float),
        }
    )


_SHARES = np.arange(15, 0, -1) / 120


def test_a_shift_is_seldom_named_where_there_is_none(rng):
    """At most one table in a hundred, whatever the number of its columns."""
    runs, named = 400, 0
    for _ in range(runs):
        profiles = column_profiles(table(rng, 200), TableSchema(FEATURES, "y", "1"))
        columns = _columns(profiles, table(rng, 400))
        _judge(columns)
        named += any(column["shift"] != "none seen" for column in columns)
    # Holm's correction keeps 0.01; 400 runs add three standard errors, 3 sqrt(0.01 * 0.99 / 400) =
    # 0.015. The chi-squared law is only approximate where categories are rare: +0.005.
    assert named / runs <= 0.03, named


def test_a_large_shift_is_named(rng):
    """A number that doubles is seen with some hundred rows."""
    profiles = column_profiles(table(rng, 200), TableSchema(FEATURES, "y", "1"))
    moved = table(rng, 400).assign(amount=lambda frame: 2.5 * frame["amount"])
    columns = _columns(profiles, moved)
    _judge(columns)
    assert {c["name"]: c["shift"] for c in columns}["amount"] == "large"
