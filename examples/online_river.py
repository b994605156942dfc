"""
With river: a model that learns as it goes
==========================================

A river model learns from one item at a time, and a controller keeps the capacity of its flags.
"""

# %%
# Pages that may be phishing, and capacities for them.
from river import anomaly, datasets, linear_model, preprocessing

from shortlist import Capacity
from shortlist.online import BudgetController, QuantileTracker

ROWS = list(datasets.Phishing())


# %%
# An anomaly score drifts while its model learns; the tracker follows it, and keeps five per cent.


def follow_an_anomaly_score() -> float:
    """Flag five per cent by an anomaly score; return the share that was flagged."""
    model = preprocessing.MinMaxScaler() | anomaly.HalfSpaceTrees(seed=0)

    def score_and_learn(x):
        score = model.score_one(x)
        model.learn_one(x)
        return score

    warm_up = [score_and_learn(x) for x, _ in ROWS[:300]]
    tracker = QuantileTracker(Capacity.fraction(0.05), calibration_scores=warm_up, step=0.1)
    flags = [tracker.decide(score_and_learn(x)).flag for x, _ in ROWS[300:]]
    return sum(flags) / len(flags)


# %%
# A classifier, and a hard number: ten of every hundred.


def follow_a_classifier() -> tuple[int, int]:
    """Flag ten of every hundred by a probability; return flags, and rare items among them."""
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()

    def score_and_learn(x, y):
        score = model.predict_proba_one(x)[True]
        model.learn_one(x, y)
        return score

    warm_up = [score_and_learn(x, y) for x, y in ROWS[:300]]
    budget = BudgetController(Capacity.count(10, per=100), calibration_scores=warm_up)
    flagged = [y for x, y in ROWS[300:] if budget.decide(score_and_learn(x, y)).flag]
    return len(flagged), sum(flagged)


print(f"{follow_an_anomaly_score():.1%} of the items flagged by their anomaly score")
flags, found = follow_a_classifier()
print(f"{flags} flagged by their probability, {found} of them phishing")
