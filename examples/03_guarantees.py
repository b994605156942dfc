"""
Four guarantees
===============

A threshold that flags 2 % of one sample flags more than 2 % of the next one in about half of all
cases. To see what each guarantee does and what it costs, repeat the same calibration many times.
"""

# %%
# The scores are standard normal. The true flag rate of a threshold is therefore known, and no test
# sample is needed.
import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

from shortlist import Capacity, calibrate_threshold

rng = np.random.default_rng(0)
capacity = Capacity.count(20, per=1_000)
rates = {guarantee: [] for guarantee in ("plug-in", "expected", "confident", "next-batch")}
for _ in range(400):
    scores = rng.normal(size=4_000)
    for guarantee, seen in rates.items():
        threshold = calibrate_threshold(scores, capacity, guarantee=guarantee)
        seen.append(stats.norm.sf(threshold.value))

# %%
# "Over" is how often the true rate exceeds the capacity. "expected" is right on average,
# "confident" is over in one case of twenty, and "next-batch" also leaves room for the luck of the
# next 1,000 cases.
figure, axes = plt.subplots(4, sharex=True, figsize=(7, 5), layout="constrained")
for panel, (guarantee, seen) in zip(axes, rates.items(), strict=True):
    over = np.mean(np.array(seen) > 0.02)
    panel.hist(seen, bins=np.linspace(0.01, 0.03, 60), color="#23689b")
    panel.axvline(0.02, color="black", linewidth=1)
    panel.set_title(f"{guarantee}: {over:.0%} over, {np.mean(seen) / 0.02:.0%} used", loc="left")
    panel.set_yticks([])
    panel.spines[["top", "right", "left"]].set_visible(False)
axes[-1].set_xlabel("true flag rate; the line is the capacity")
plt.show()
