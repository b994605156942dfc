"""
From a table to a list
======================

What ``shortlist fit``, ``select`` and ``plan`` do, from Python: a table with texts, gaps and
dates becomes a list with reasons. Needs ``pip install 'shortlist[cli]'``.
"""

# %%
# Old cases with labels, and today's cases without.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from shortlist import Capacity
from shortlist.tables import evaluate_table, fit_table, select_rows

rng = np.random.default_rng(0)
n = 6_000
cases = pd.DataFrame(
    {
        "case": [f"c{i}" for i in range(n)],
        "amount": np.where(rng.random(n) < 0.05, np.nan, rng.lognormal(3, 1, n).round(2)),
        "country": rng.choice(["ar", "br", "cl", None], n),
        "opened": rng.choice(["2024-03-01", "2024-05-17", "2024-08-30"], n),
    }
)
risk = 0.03 * cases["amount"].fillna(20) + 1.5 * (cases["country"] == "cl") - 4.5
cases["fraud"] = np.where(rng.random(n) < 1 / (1 + np.exp(-risk)), "yes", "no")
folder = Path(tempfile.mkdtemp())
cases.head(4_000).to_csv(folder / "cases.csv", index=False)
cases.tail(2_000).to_parquet(folder / "later.parquet")

# %%
# The kind of a column is recognised from the whole column. A fifth of the rows is kept aside to
# measure what the capacity finds.
result = fit_table(
    folder / "cases.csv",
    target="fraud",
    id="case",
    capacity=Capacity.count(60, per=1_000),
    learner="logistic",
)
print({feature.name: feature.kind for feature in result.model.schema.features})
for rule in result.card.rules:
    print(f"{rule.rule:24} {rule.flagged:5.0f} flagged, {rule.found:5.1f} found")

# %%
# Today's list, with the columns that raised each score.
for row in select_rows(result.model, folder / "later.parquet", count=3).rows:
    reasons = "; ".join(f"{reason.column} = {reason.value}" for reason in row["reasons"])
    print(f"{row['rank']}. {row['case']}, {row['probability']:.0%}: {reasons}")

# %%
# What other capacities would find among new cases, with 95 % intervals.
found = evaluate_table(result.model, folder / "later.parquet", load=20)
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
flags = [row["n_flagged"] for row in found.capacities]
low, high = ([row[end] for row in found.capacities] for end in ("detection_low", "detection_high"))
axes.fill_between(flags, low, high, alpha=0.2, color="#23689b")
axes.plot(flags, [row["detection"] for row in found.capacities], "o-", color="#23689b")
axes.set(xlabel="reviews of 2,000 cases", ylabel="share of the frauds found", ylim=(0, 1))
axes.spines[["top", "right"]].set_visible(False)
plt.show()
print(f"a reviewer with 20 more finds about {found.next_reviewer.expected:.1f}")
