"""
With river: a model that learns as it goes
==========================================

A river model learns from one item at a time, and a controller keeps its flags within the capacity.
Needs ``pip install river``.
"""

# %%
# Pages that may be phishing, and a capacity for each of two models.
import matplotlib.pyplot as plt
import numpy as np
from river import anomaly, datasets, linear_model, preprocessing

from shortlist import Capacity
from shortlist.online import BudgetController, QuantileTracker

ROWS = list(datasets.Phishing())
WARM_UP = 300

# %%
# An anomaly score drifts while its model learns. The tracker follows it and aims at five per cent.
# The number of flags is off by at most ``tracker.interval_bound()``, however long the stream is.
detector = preprocessing.MinMaxScaler() | anomaly.HalfSpaceTrees(seed=0)
scores = []
for x, _ in ROWS:
    scores.append(detector.score_one(x))
    detector.learn_one(x)
tracker = QuantileTracker(Capacity.fraction(0.05), calibration_scores=scores[:WARM_UP], step=0.1)
tracked = [tracker.decide(score) for score in scores[WARM_UP:]]
share = np.mean([decision.flag for decision in tracked])
off, bound = sum(d.flag for d in tracked) - 0.05 * len(tracked), tracker.interval_bound()
print(f"{share:.1%} of the items flagged by their anomaly score")
print(f"{off:.0f} flags more than 5 %; the bound is {bound:.0f}")

# %%
# A classifier, and a hard limit: ten of every hundred.
classifier = preprocessing.StandardScaler() | linear_model.LogisticRegression()
probabilities = []
for x, is_phishing in ROWS:
    probabilities.append(classifier.predict_proba_one(x)[True])
    classifier.learn_one(x, is_phishing)
budget = BudgetController(Capacity.count(10, per=100), calibration_scores=probabilities[:WARM_UP])
flagged = np.array([budget.decide(p).flag for p in probabilities[WARM_UP:]])
phishing = np.array([is_phishing for _, is_phishing in ROWS[WARM_UP:]])
print(f"{flagged.sum()} flagged by their probability, {phishing[flagged].sum()} of them phishing")

# %%
# Left: the tracker's threshold follows the drifting score. Right: the budget never flags more than
# ten of a hundred, and nearly all of these are phishing.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
left.plot(scores[WARM_UP:], ".", color="#9fb3c4", markersize=3, label="anomaly score")
hits = np.flatnonzero([decision.flag for decision in tracked])
left.plot(hits, np.array(scores[WARM_UP:])[hits], ".", color="#c8502d", label="flagged")
left.plot([decision.threshold for decision in tracked], color="#23689b", label="threshold")
left.set(xlabel="items since the warm-up", title=f"A rate: {share:.1%} flagged, 5 % allowed")
left.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.18))
hundreds = np.arange(len(flagged)) // 100
n_flags = np.bincount(hundreds, weights=flagged)
n_found = np.bincount(hundreds, weights=flagged & phishing)
right.bar(range(n_flags.size), n_flags, color="#9fb3c4", label="flags")
right.bar(range(n_found.size), n_found, color="#c8502d", label="phishing among them")
right.axhline(10, color="black", linewidth=1)
right.set(xlabel="hundreds of items", title="A number: at most 10 of every 100", ylim=(0, 12))
right.legend(frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.18))
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
