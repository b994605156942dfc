"""A table as people have it, for tests of tables and commands."""

import numpy as np


def make_cases(n=1_500, seed=0):
    """Make a table as people have it: texts, gaps, dates, an id, and one label in ten rare."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    amount = rng.lognormal(3, 1, n)
    country = rng.choice(["ar", "br", "cl"], n, p=[0.5, 0.3, 0.2])
    days = rng.integers(0, 300, n)
    risk = -4 + 0.03 * amount + 1.5 * (country == "cl")
    return pd.DataFrame(
        {
            "case": [f"c{i:05d}" for i in range(n)],
            "amount": np.where(rng.random(n) < 0.05, np.nan, amount.round(2)),
            "country": np.where(rng.random(n) < 0.05, None, country),
            "opened": (pd.Timestamp("2024-01-01") + pd.to_timedelta(days, "D")).strftime(
                "%Y-%m-%d"
            ),
            "vip": rng.choice(["true", "false"], n),
            "fraud": np.where(rng.random(n) < 1 / (1 + np.exp(-risk)), "yes", "no"),
        }
    )


def percent(share):
    """Write a share as a page does, with a space where no line ends."""
    from shortlist._core.formatting import percent
    from shortlist.report._page import unbroken

    return unbroken(percent(share))
