"""
Boosting: a search with Optuna
==============================

Optuna proposes settings from what it has seen so far. All it needs is a number to maximise: the
cross-validated detection within the capacity. Needs ``pip install optuna 'shortlist[boosting]'``.
"""

# %%
# One part of the data is for the search and the model, the other only for the threshold.
import matplotlib.pyplot as plt
import numpy as np
import optuna
from lightgbm import LGBMClassifier
from sklearn.model_selection import cross_val_score, train_test_split

from shortlist import Capacity, CapacityClassifier, adjusted_detection_score, capacity_scorer
from shortlist.datasets import make_fraud

X, y = make_fraud(6_000, prevalence=0.02, random_state=0)
X_new, y_new = make_fraud(6_000, prevalence=0.02, random_state=1)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, stratify=y, random_state=0)
capacity = Capacity.multiple(2)


def boosting(**settings):
    """Return boosted trees with some settings, on one thread."""
    return LGBMClassifier(learning_rate=0.05, random_state=0, n_jobs=1, verbose=-1, **settings)


def detection(trial):
    """Return what the proposed settings detect, by cross-validation."""
    model = boosting(
        num_leaves=trial.suggest_int("num_leaves", 2, 16),
        n_estimators=trial.suggest_int("n_estimators", 20, 200, log=True),
        min_child_samples=trial.suggest_int("min_child_samples", 5, 100, log=True),
    )
    scoring = capacity_scorer(capacity)
    return cross_val_score(model, X_train, y_train, scoring=scoring, cv=3).mean()


# %%
# Fifteen trials, the same in every run.
optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(detection, n_trials=15)
print(f"detected {study.best_value:.3f} with", study.best_params)

# %%
# The chosen model is fitted on the part that was searched, and calibrated on the rest. Its
# guarantee therefore holds.
fitted = boosting(**study.best_params).fit(X_train, y_train)
model = CapacityClassifier(
    fitted, capacity=capacity, cv="prefit", guarantee="expected", prevalence=0.02
).fit(X_rest, y_rest)
predicted = model.predict(X_new)
M = adjusted_detection_score(y_new, predicted, capacity=capacity)
print(f"flagged {predicted.mean():.3f}, M = {M:.3f}")

# %%
# What each trial detected, and the best so far. With 90 frauds, a detection of one half has a
# standard error of 0.05: differences between good settings are small beside it.
found = np.array([trial.value for trial in study.trials])
figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
axes.plot(range(1, 16), found, "o", color="#9fb3c4", label="trial")
axes.step(range(1, 16), np.maximum.accumulate(found), where="post", color="#23689b", label="best")
axes.set(xlabel="trial", ylabel="detected within the capacity")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
