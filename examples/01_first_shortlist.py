"""
A first shortlist
=================

Card payments, one in a hundred a fraud, and reviews for two in a hundred. A random forest ranks the
payments. Its default threshold knows nothing about the number of reviews.
"""

# %%
# The classifier goes inside ``CapacityClassifier``. Ten forests are fitted, each with a threshold
# from the tenth of the payments that it has not seen: on average, no more than 200 of 10,000 future
# payments are flagged.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from shortlist import Capacity, CapacityClassifier, adjusted_detection_interval
from shortlist.datasets import make_fraud

X, y = make_fraud(20_000, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
capacity = Capacity.count(200, per=10_000)

forest = RandomForestClassifier(60, min_samples_leaf=5, random_state=0)
model = CapacityClassifier(forest, capacity=capacity, random_state=0).fit(X_train, y_train)

# %%
# Decide about one payment at a time, or make a list for today with exactly as many payments as
# there are reviews.
rules = {
    "default threshold": forest.fit(X_train, y_train).predict(X_test) == 1,
    "one by one": model.flag(X_test),
    "as a list": model.select(X_test),
}
for name, flagged in rules.items():
    print(f"{name:18} {flagged.sum():4} flagged, {y_test[flagged].sum():3} of them frauds")

# %%
# Left: the scores of frauds and other payments. A threshold at the capacity lies far below one
# half. Right: the share of the frauds that is found, with exact 95 % intervals. Flags beyond the
# capacity are followed up only in part and count only in part: this is the metric M of the paper.
scores = model.score_samples(X_test)
bins = np.linspace(0, 1, 41)
figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 3.6), layout="constrained", width_ratios=[1.15, 1]
)
left.hist(scores[y_test == 0], bins, color="#c9d3dc", label="other payments")
left.hist(scores[y_test == 1], bins, color="#c8502d", label="frauds")
threshold = np.median(model.thresholds_)  # of the ten, which hardly differ
left.axvline(threshold, color="#23689b", linewidth=2)
left.annotate("threshold at\nthe capacity", (threshold + 0.015, 600), color="#23689b")
left.axvline(0.5, color="#666666", linestyle="--")
left.annotate("default\nthreshold", (0.515, 600), color="#666666")
left.set(yscale="log", xlabel="score", ylabel="payments", title="Scores of 5,000 payments")
left.legend(loc="upper right", frameon=False)
for place, (name, flagged) in enumerate(reversed(rules.items())):
    colour = "#666666" if name == "default threshold" else "#23689b"
    found = adjusted_detection_interval(y_test, flagged, capacity=capacity, rare_label=1)
    share = y_test[flagged].sum() / y_test.sum()
    right.plot([found.low, found.high], [place, place], color=colour, linewidth=4, alpha=0.4)
    right.plot(share, place, "o", color=colour, markersize=9)
    right.annotate(f"{flagged.sum()} flags", (share, place + 0.18), ha="center", color=colour)
right.axvline(0.02, color="#aaaaaa", linestyle=":")
right.annotate("at random", (0.03, -0.42), color="#888888")
right.set_yticks(range(len(rules)), list(reversed(rules)))
right.set(xlim=(0, 1), ylim=(-0.5, 2.6), xlabel="share", title="Frauds found with 100 reviews")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
