"""
Random forest: the size of leaves, with nothing held out
========================================================

Large leaves make smooth scores, small leaves sharp ones. A search shows which are better for the
capacity, and out-of-bag scores give the threshold: no item is held out.
"""

# %%
# Payments to learn from, others to test on, and two reviews for each fraud.
import matplotlib.pyplot as plt
from sklearn.model_selection import GridSearchCV

from shortlist import Capacity, CapacityClassifier, adjusted_detection_score, capacity_scorer
from shortlist.datasets import make_fraud
from shortlist.learners import make_learner

X, y = make_fraud(4_000, prevalence=0.02, random_state=0)
X_new, y_new = make_fraud(6_000, prevalence=0.02, random_state=1)
capacity = Capacity.multiple(2)


def forest(leaf):
    """Return the recommended forest, with fewer trees and leaves of a given size."""
    return make_learner("forest", random_state=0).set_params(n_estimators=30, min_samples_leaf=leaf)


# %%
# With ``cv="oob"`` the model inside ``CapacityClassifier`` has to be the forest itself. The search
# therefore comes first, and passes its choice on.
search = GridSearchCV(
    forest(20), {"min_samples_leaf": [1, 5, 20, 80]}, scoring=capacity_scorer(capacity), cv=3
).fit(X, y)
print("chosen:", search.best_params_)
leaf = search.best_params_["min_samples_leaf"]
out_of_bag = CapacityClassifier(forest(leaf), capacity=capacity, cv="oob").fit(X, y)

# %%
# With ``cv=0.5`` one half is held out for the threshold, and the search sees only the other half.
# This keeps every guarantee. Out-of-bag scores do not, because they come from smaller forests.
nested = CapacityClassifier(search, capacity=capacity, cv=0.5, random_state=0).fit(X, y)
for name, model in (("out of bag", out_of_bag), ("half held out", nested)):
    predicted = model.predict(X_new)
    M = adjusted_detection_score(y_new, predicted, capacity=capacity)
    print(f"{name}: flagged {predicted.mean():.3f}, M = {M:.3f}")

# %%
# Cross-validated detection for each size of leaves, with the standard deviation over folds.
results = search.cv_results_
figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
mean, spread = results["mean_test_score"], results["std_test_score"]
axes.errorbar([1, 5, 20, 80], mean, yerr=spread, marker="o", color="#23689b", capsize=3)
axes.set(xscale="log", xlabel="smallest leaf", ylabel="detected within the capacity")
axes.set_xticks([1, 5, 20, 80], ["1", "5", "20", "80"], minor=False)
axes.set_xticks([], minor=True)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
