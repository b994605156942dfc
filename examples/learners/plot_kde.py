"""
Kernel densities: a bandwidth for the capacity
==============================================

A density has a bandwidth. Rules of thumb choose it for the density as a whole and for the Gaussian
kernel; here it is chosen for another kernel, and for what is found among the few payments that can
be reviewed.
"""

# %%
# Two reviews for each fraud there is. The search stands *inside* ``CapacityClassifier``, so that it
# sees the training half only, and the threshold comes from payments that had no part in it.
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

densities = make_pipeline(StandardScaler(), KernelDensityClassifier("scott", kernel="epanechnikov"))
factors = [1.0, 2.0, 4.0, 8.0]
search = GridSearchCV(
    densities,
    {"kerneldensityclassifier__factor": factors},
    scoring=capacity_scorer(capacity),
    cv=5,
)
tuned = CapacityClassifier(search, capacity=capacity, guarantee="expected", random_state=0)
tuned.fit(X, y)
print("chosen:", tuned.estimator_.best_params_)

# %%
# What the rule of thumb and the chosen bandwidth find among new payments.
plain = CapacityClassifier(densities, capacity=capacity, guarantee="expected", random_state=0)
for name, model in (("Scott's rule", plain.fit(X, y)), ("chosen for the capacity", tuned)):
    M = adjusted_detection_score(y_new, model.predict(X_new), capacity=capacity)
    print(f"{name}: M = {M:.3f}")

# %%
# The detection in the training half, by cross-validation.
results = tuned.estimator_.cv_results_
plt.errorbar(factors, results["mean_test_score"], yerr=results["std_test_score"], marker="o")
plt.xscale("log")
plt.xlabel("multiple of Scott's bandwidth")
plt.ylabel("detected within the capacity")
plt.show()
