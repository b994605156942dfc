"""
Random forest: the size of leaves, with nothing held out
========================================================

Large leaves make smooth scores, small ones sharp scores. Out-of-bag scores show which is better for
the capacity, and give the threshold too: no item is held out for either.
"""

# %%
# A forest is fitted once for each size; items are judged by the trees that have not seen them.
import matplotlib.pyplot as plt

from shortlist import Capacity, CapacityClassifier, adjusted_detection_score, capacity_scorer
from shortlist.datasets import make_fraud
from shortlist.learners import make_learner

X, y = make_fraud(4_000, prevalence=0.02, random_state=0)
X_new, y_new = make_fraud(6_000, prevalence=0.02, random_state=1)
capacity = Capacity.multiple(2)


def forest(leaf):
    """Return the recommended forest, with fewer trees and leaves of a given size."""
    return make_learner("forest", random_state=0).set_params(n_estimators=60, min_samples_leaf=leaf)


# %%
# A search over the leaves inside ``CapacityClassifier``; with ``cv="oob"`` the wrapped model has to
# be the forest itself, so that the search comes first and hands its choice on.
from sklearn.model_selection import GridSearchCV  # noqa: E402

search = GridSearchCV(
    forest(20), {"min_samples_leaf": [1, 5, 20, 80]}, scoring=capacity_scorer(capacity), cv=3
).fit(X, y)
print("chosen:", search.best_params_)
leaf = search.best_params_["min_samples_leaf"]
out_of_bag = CapacityClassifier(forest(leaf), capacity=capacity, cv="oob", ties="hash").fit(X, y)

# %%
# The usual way holds a half out for the threshold, and the search sees the other half only. That
# keeps every guarantee, which out-of-bag scores do not: they are those of smaller forests.
nested = CapacityClassifier(
    search, capacity=capacity, guarantee="expected", ties="hash", random_state=0
).fit(X, y)
for name, model in (("out of bag", out_of_bag), ("half held out", nested)):
    predicted = model.predict(X_new)
    M = adjusted_detection_score(y_new, predicted, capacity=capacity)
    print(f"{name}: flagged {predicted.mean():.3f}, M = {M:.3f}")

# %%
# Detection by cross-validation for each size of leaves.
results = search.cv_results_
plt.errorbar([1, 5, 20, 80], results["mean_test_score"], yerr=results["std_test_score"], marker="o")
plt.xscale("log")
plt.xlabel("smallest leaf")
plt.ylabel("detected within the capacity")
plt.show()
