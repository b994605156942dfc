"""
Kernel densities: a bandwidth for the capacity
==============================================

A density has a bandwidth. Rules of thumb choose it for the density as a whole. Here it is chosen
for what is found among the few payments that can be reviewed.
"""

# %%
# Two reviews for each fraud. The search is *inside* ``CapacityClassifier``: with ``cv=0.5`` it sees
# only one half, and the threshold comes from the other, which had no part in the search. The
# default of ten folds would search ten times, and keep ten choices.
import matplotlib.pyplot as plt
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shortlist import Capacity, CapacityClassifier, adjusted_detection_score, capacity_scorer
from shortlist.datasets import make_fraud
from shortlist.learners import KernelDensityClassifier

X, y = make_fraud(6_000, prevalence=0.02, random_state=0)
X_new, y_new = make_fraud(6_000, prevalence=0.02, random_state=1)
capacity = Capacity.multiple(2)

densities = make_pipeline(StandardScaler(), KernelDensityClassifier("scott"))
factors = [0.5, 1.0, 2.0, 4.0]
search = GridSearchCV(
    densities,
    {"kerneldensityclassifier__factor": factors},
    scoring=capacity_scorer(capacity),
    cv=5,
)
tuned = CapacityClassifier(search, capacity=capacity, cv=0.5, guarantee="expected", random_state=0)
tuned.fit(X, y)
print("chosen:", tuned.estimator_.best_params_)

# %%
# What the rule of thumb and the chosen bandwidth find among new payments.
plain = CapacityClassifier(
    densities, capacity=capacity, cv=0.5, guarantee="expected", random_state=0
)
for name, model in (("Scott's rule", plain.fit(X, y)), ("chosen for the capacity", tuned)):
    M = adjusted_detection_score(y_new, model.predict(X_new), capacity=capacity)
    print(f"{name}: M = {M:.3f}")

# %%
# Cross-validated detection in the training half, with the standard deviation over folds.
results = tuned.estimator_.cv_results_
figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
mean, spread = results["mean_test_score"], results["std_test_score"]
axes.errorbar(factors, mean, yerr=spread, marker="o", color="#23689b", capsize=3)
axes.set(xscale="log", xlabel="multiple of Scott's bandwidth")
axes.set_ylabel("detected within the capacity")
axes.set_xticks(factors, [f"{factor:g}" for factor in factors])
axes.set_xticks([], minor=True)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
