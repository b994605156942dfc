"""
One case at a time
==================

Fifty reviews a day, five thousand payments a day, and scores that creep upwards as the world
changes. A fixed threshold flags more every day. A controller never flags more than fifty.
"""

# %%
# Forty days of scores, which rise by 1.2 in equal steps.
import matplotlib.pyplot as plt
import numpy as np

from shortlist import Capacity
from shortlist.online import BudgetController

DAY, N_DAYS, A_DAY = 86_400, 40, 5_000
rng = np.random.default_rng(0)
calibration_scores = rng.normal(size=20_000)
times = np.sort(rng.uniform(0, N_DAYS * DAY, size=N_DAYS * A_DAY))
days = (times // DAY).astype(int)
scores = rng.normal(size=times.size) + 1.2 * days / N_DAYS

# %%
# The controller gets the number of reviews and recent scores, but no labels. ``decide_many`` makes
# the decisions that ``decide`` would make one by one.
budget = BudgetController(
    Capacity.count(50),
    period=DAY,
    expected_arrivals=A_DAY,
    calibration_scores=calibration_scores,
)
flagged = budget.decide_many(scores, at=times).flagged

# %%
# Beside it: the threshold that was right at the beginning.
fixed = scores > np.quantile(calibration_scores, 1 - 50 / A_DAY)
fig, ax = plt.subplots(figsize=(8, 3.5), layout="constrained")
ax.axhline(50, color="black", label="capacity")
ax.plot(np.bincount(days[fixed]), ":", color="gray", label="fixed threshold")
ax.plot(np.bincount(days[flagged]), "o-", markersize=3, label="budget")
ax.set_xlabel("Day")
ax.set_ylabel("Flags")
ax.set_ylim(bottom=0)
ax.legend(frameon=False, ncols=3)
plt.show()
