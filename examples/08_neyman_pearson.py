"""
A capacity, or the lemma of Neyman and Pearson
==============================================

A test in the sense of Neyman and Pearson bounds the share of *common* items that it flags, its
size, and finds as many rare ones as it can. A capacity bounds the share of *all* items. Both flag
where the likelihood ratio is above a level, and differ in how the level is set.
"""

# %%
# Two classes with known densities, so that nothing has to be learned: the posterior is the best
# score there is, for both.
import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

from shortlist import Capacity, calibrate_threshold
from shortlist.theory import KnownDensities

b, share = 2, 0.02
densities = {
    "rare": stats.multivariate_normal([1.5, 0], 0.5),
    "common": stats.multivariate_normal([0, 0]),
}
known = KnownDensities(densities, shares={"rare": share, "common": 1 - share})
X, y = known.sample(100_000, random_state=0)
scores, is_rare = known.posterior(X)[:, 0], y == "rare"

# %%
# The capacity sets its level with all items, and needs no labels. The test sets it with common
# items alone. Choose the size that the rule under the capacity happens to have, and the two are
# one rule, but for items between two neighbouring scores: this is the first proposition of the
# paper, read as the lemma.
capacity = calibrate_threshold(scores, Capacity.multiple(b), prevalence=share, guarantee="plug-in")
common = scores[~is_rare]
size = Capacity.count(int(capacity.flag(common).sum()), per=common.size)
test = calibrate_threshold(common, size, guarantee="plug-in")
print(f"flagged: {capacity.flag(scores).mean():.4f} of all, {size.as_fraction():.4f} of the common")
print(f"items about which the two disagree: {np.sum(capacity.flag(scores) != test.flag(scores))}")

# %%
# They part when the share of rare items changes. The test flags more and more, since what it finds
# comes on top of its size; whoever can follow up only so many items sees a random part of them. The
# capacity keeps the number, and its size shrinks.
shares = np.array([0.005, 0.01, 0.02, 0.04, 0.08])
flagged, found = np.empty((2, shares.size)), np.empty((2, shares.size))
for place, each in enumerate(shares):
    X, y = KnownDensities(densities, {"rare": each, "common": 1 - each}).sample(
        100_000, random_state=1
    )
    scores, is_rare = known.posterior(X)[:, 0], y == "rare"
    moved = calibrate_threshold(scores, Capacity.fraction(b * share), guarantee="plug-in")
    for rule, flags in enumerate((test.flag(scores), moved.flag(scores))):
        flagged[rule, place] = flags.mean()
        found[rule, place] = flags[is_rare].mean() * min(1, b * share / flags.mean())

# %%
# Below, detection is paid for by the capacity, as in the metric M.
figure, (left, right) = plt.subplots(ncols=2, figsize=(9, 3.6), layout="constrained")
for rule, name in enumerate(("a test of fixed size", "a capacity, set again")):
    left.plot(100 * shares, 100 * flagged[rule], marker="o", label=name)
    right.plot(100 * shares, found[rule], marker="o", label=name)
left.axhline(100 * b * share, color="grey", linewidth=0.8)
left.set(xlabel="rare items (%)", ylabel="flagged items (%)", xscale="log")
right.set(xlabel="rare items (%)", ylabel="found within the capacity", xscale="log", ylim=(0, None))
left.legend()
plt.show()
