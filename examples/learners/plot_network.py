"""
Neural network: units and decay by random draws
===============================================

The number of units and the weight decay of a network with one hidden layer, drawn at random and
judged by what is found within the capacity.
"""

# %%
# Random draws cover a continuous parameter better than a grid of the same size.
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
# The search sees the training half only, so that the threshold keeps its guarantee.
tuned = CapacityClassifier(search, capacity=capacity, guarantee="expected", random_state=0)
tuned.fit(X, y)
plain = CapacityClassifier(network, capacity=capacity, guarantee="expected", random_state=0)
plain.fit(X, y)
print("chosen:", tuned.estimator_.best_params_)

# %%
# The chosen network and the recommended one, on new payments.
for name, model in (("recommended", plain), ("chosen", tuned)):
    predicted = model.predict(X_new)
    M = adjusted_detection_score(y_new, predicted, capacity=capacity)
    print(f"{name}: flagged {predicted.mean():.3f}, M = {M:.3f}")
