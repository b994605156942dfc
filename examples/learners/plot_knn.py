"""
Nearest neighbours: how many, and how many votes
================================================

An item is flagged when the weighted share of rare neighbours exceeds 1 - a₀. Both the number of
neighbours k and a₀ matter. It is best to choose them together.
"""

# %%
# ``CapacityKNeighborsClassifier`` compares all k with one search of neighbours, and keeps what each
# of them finds for every a₀.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV

from shortlist import Capacity, CapacityClassifier, capacity_scorer
from shortlist.datasets import make_fraud
from shortlist.learners import CapacityKNeighborsClassifier, KernelKNeighborsClassifier

X, y = make_fraud(8_000, prevalence=0.02, random_state=0)
capacity = Capacity.fraction(0.04)
model = CapacityKNeighborsClassifier(capacity, n_neighbors=100, random_state=0).fit(X, y)
print(f"k = {model.n_neighbors_}, a0 = {model.a0_:.3f}")

# %%
# The surface: the share of frauds that is found, and the line along which the capacity is used up.
# Everything above the line flags too many.
surface = model.surface_
figure, axes = plt.subplots(figsize=(7, 4.4), layout="constrained")
filled = axes.contourf(surface.n_neighbors, surface.a0, surface.detection.T, levels=20)
axes.contour(surface.n_neighbors, surface.a0, surface.flagged.T, levels=[0.04], colors="white")
axes.plot(model.n_neighbors_, model.a0_, "w*", markersize=14, clip_on=False)
axes.set(xlabel="neighbours k", ylabel="weight of a rare vote a₀", ylim=(0.5, 1))
figure.colorbar(filled, label="share of frauds found")
plt.show()

# %%
# The same surface answers for other capacities, without another fit.
for share in (0.01, 0.02, 0.08):
    best = surface.best(Capacity.fraction(share))
    print(f"capacity {share:.0%}: k = {best.n_neighbors}, a0 = {best.a0:.3f}, {best.detection:.0%}")

# %%
# The other way is a search over k by cross-validation. It leaves the calibration half alone, and
# every guarantee holds.
search = GridSearchCV(
    KernelKNeighborsClassifier(),
    {"n_neighbors": [5, 20, 50, 100]},
    scoring=capacity_scorer(capacity),
    cv=3,
)
tuned = CapacityClassifier(search, capacity=capacity, cv=0.5, guarantee="expected", random_state=0)
tuned.fit(X, y)
print(tuned.estimator_.best_params_, np.round(tuned.estimator_.cv_results_["mean_test_score"], 3))
