"""
Neural network: units and decay by random draws
===============================================

The number of units and the weight decay of a network with one hidden layer are drawn at random, and
compared by what is found within the capacity.
"""

# %%
# Random draws cover a continuous parameter better than a grid of the same size.
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import loguniform
from sklearn.model_selection import RandomizedSearchCV

from shortlist import Capacity, CapacityClassifier, adjusted_detection_score, capacity_scorer
from shortlist.datasets import make_fraud
from shortlist.learners import make_learner

X, y = make_fraud(4_000, prevalence=0.02, random_state=0)
X_new, y_new = make_fraud(6_000, prevalence=0.02, random_state=1)
capacity = Capacity.multiple(2)

network = make_learner("network", random_state=0)
network.set_params(network__n_estimators=3)  # instead of ten, to be quick
search = RandomizedSearchCV(
    network,
    {
        "network__estimator__alpha": loguniform(1, 100),
        "network__estimator__hidden_layer_sizes": [(3,), (5,), (10,)],
    },
    n_iter=6,
    scoring=capacity_scorer(capacity),
    cv=3,
    random_state=0,
)

# %%
# The search sees only the training half, and the threshold keeps its guarantee.
tuned = CapacityClassifier(search, capacity=capacity, cv=0.5, guarantee="expected", random_state=0)
tuned.fit(X, y)
plain = CapacityClassifier(network, capacity=capacity, cv=0.5, guarantee="expected", random_state=0)
plain.fit(X, y)
print("chosen:", tuned.estimator_.best_params_)

# %%
# The chosen network and the recommended one, on new payments.
for name, model in (("recommended", plain), ("chosen", tuned)):
    predicted = model.predict(X_new)
    M = adjusted_detection_score(y_new, predicted, capacity=capacity)
    print(f"{name}: flagged {predicted.mean():.3f}, M = {M:.3f}")

# %%
# What each draw detected in the training half, by cross-validation, with standard errors over the
# three folds.
results = tuned.estimator_.cv_results_
alphas = np.array(results["param_network__estimator__alpha"], dtype=float)
units = np.array([size[0] for size in results["param_network__estimator__hidden_layer_sizes"]])
error = results["std_test_score"] / 3**0.5
figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
for n_units, colour in ((3, "#23689b"), (5, "#e08e45"), (10, "#6a9a4f")):
    drawn = units == n_units
    mean = results["mean_test_score"][drawn]
    axes.errorbar(
        alphas[drawn], mean, yerr=error[drawn], fmt="o", color=colour, label=f"{n_units} units"
    )
axes.set(xscale="log", xlabel="weight decay α", ylabel="detected within the capacity")
axes.set_xticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
axes.set_xticks([], minor=True)
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
