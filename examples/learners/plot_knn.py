"""
Nearest neighbours: how many, and how many votes
================================================

An item is flagged when the weighted share of rare neighbours exceeds 1 - a₀. Both the number of
neighbours k and a₀ depend on the capacity.
"""

# %%
# Of several numbers of neighbours, ``KernelKNeighborsClassifier`` takes the one that finds the most
# frauds of its training rows within the capacity. All of them come from one search of neighbours.
# ``CapacityClassifier`` hands its capacity on, and calibrates a₀ on rows that had no part in it.
import matplotlib.pyplot as plt

from shortlist import Capacity, CapacityClassifier
from shortlist.datasets import make_fraud
from shortlist.learners import KernelKNeighborsClassifier

X, y = make_fraud(8_000, prevalence=0.02, random_state=0)
numbers = range(1, 101)
models = {
    share: CapacityClassifier(
        KernelKNeighborsClassifier(numbers),
        capacity=Capacity.fraction(share),
        cv=0.5,
        random_state=0,
    ).fit(X, y)
    for share in (0.02, 0.04, 0.08)
}
for share, model in models.items():
    k, a0 = model.estimator_.n_neighbors_, 1 - model.threshold_
    print(f"capacity {share:.0%}: k = {k}, a0 = {a0:.3f}")

# %%
# What each number of neighbours finds. With few neighbours many votes are equal, and a small
# capacity can hardly tell them apart.
figure, axes = plt.subplots(figsize=(7, 4.4), layout="constrained")
for share, model in models.items():
    knn = model.estimator_
    (line,) = axes.plot(numbers, knn.detections_, label=f"{share:.0%} of all payments")
    best = knn.detections_[knn.n_neighbors_ - 1]
    axes.plot(knn.n_neighbors_, best, "*", color=line.get_color(), markersize=14)
axes.set(xlabel="neighbours k", ylabel="share of frauds found", ylim=(0, 1))
axes.legend(title="capacity")
axes.spines[["top", "right"]].set_visible(False)
plt.show()
