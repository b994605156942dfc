"""
A first shortlist
=================

Card payments, one in a hundred a fraud, and room to review two in a hundred. A random forest
ranks them; what it flags by default has nothing to do with the room there is.
"""

# %%
# The classifier goes inside. Half of the payments train it, the other half set its threshold, so
# that on average no more than 200 of 10,000 future payments are flagged.
import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from shortlist import Capacity, CapacityClassifier, adjusted_detection_interval
from shortlist.datasets import make_fraud

X, y = make_fraud(20_000, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
capacity = Capacity.count(200, per=10_000)

forest = RandomForestClassifier(60, min_samples_leaf=5, random_state=0)
model = CapacityClassifier(
    forest, capacity=capacity, guarantee="expected", ties="hash", random_state=0
).fit(X_train, y_train)

# %%
# One payment at a time, or as a list for today: exactly as many as there is room for.
rules = {
    "default threshold": forest.fit(X_train, y_train).predict(X_test) == 1,
    "row by row": model.flag(X_test),
    "as a list": model.select(X_test),
}
for name, flagged in rules.items():
    print(f"{name:18} {flagged.sum():4} flagged, {y_test[flagged].sum():3} of them frauds")

# %%
# What was found, with exact intervals. Flags beyond the capacity would be followed up in part only,
# and count in part only: that is the metric M of the paper.
figure, axes = plt.subplots(figsize=(7, 2.6), layout="constrained")
for place, flagged in enumerate(rules.values()):
    found = adjusted_detection_interval(y_test, flagged, capacity=capacity, rare_label=1)
    share = y_test[flagged].sum() / y_test.sum()
    axes.plot([found.low, found.high], [place, place], color="#23689b", linewidth=3)
    axes.plot(share, place, "o", color="#23689b")
axes.axvline(0.02, color="#888888", linestyle=":")
axes.annotate("at random", (0.03, 1.5), color="#666666")
axes.set_yticks(range(len(rules)), list(rules))
axes.set(xlim=(0, 1), ylim=(-0.5, 2.5), xlabel="share of the frauds found")
axes.spines[["top", "right"]].set_visible(False)
plt.show()
