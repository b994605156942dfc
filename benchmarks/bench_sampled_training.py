"""What is lost if a model learns from all rare rows and a sample of the others.

    python benchmarks/bench_sampled_training.py               # a million rows, a few minutes
    python benchmarks/bench_sampled_training.py --rows 100000

Each seed draws a million payments to learn from, as many for the threshold and as many to measure
on. A model learns from all rows, or from all rare ones and a share q of the others with weights
1 / q. The threshold is calibrated on all rows of the second part, for a multiple of the prevalence
that the weights give, and M is measured on all rows of the third. Differences are paired by seed.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shortlist import Capacity, adjusted_detection_score, calibrate_threshold
from shortlist.datasets import make_fraud

SHARES = (1.0, 0.2, 0.05, 0.01)
CAPACITY = Capacity.multiple(1)
LEARNERS = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000)),
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
}


def fitted(learner: str, X: Any, y: Any, weights: Any) -> Any:
    """Fit a learner with weights."""
    model = LEARNERS[learner]()
    if learner == "boosting":
        return model.fit(X, y, sample_weight=weights)
    return model.fit(X, y, logisticregression__sample_weight=weights)


def measure(learner: str, parts: list[Any], share: float, seed: int) -> dict[str, float]:
    """Return M, the share of flags, the estimated prevalence and the seconds of one fit."""
    (X, y), (X_threshold, _), (X_test, y_test) = parts
    kept = (y == 1) | (np.random.default_rng(seed).random(y.size) < share)
    weights = np.where(y == 1, 1.0, 1 / share)[kept]
    start = time.process_time()
    model = fitted(learner, X[kept], y[kept], weights)
    seconds = time.process_time() - start
    prevalence = float(y[kept].sum() / weights.sum())
    scores = model.predict_proba(X_threshold)[:, 1]
    threshold = calibrate_threshold(
        scores, CAPACITY, prevalence=prevalence, ids=np.arange(scores.size)
    )
    flagged = threshold.flag(model.predict_proba(X_test)[:, 1], np.arange(scores.size))
    detection = adjusted_detection_score(
        y_test, flagged.astype(int), capacity=CAPACITY, rare_label=1
    )
    return {
        "M": detection,
        "flags": float(flagged.mean()),
        "prevalence": prevalence,
        "rows": float(kept.sum()),
        "seconds": seconds,
    }


def main() -> None:
    """Measure every share on every seed, and print means with standard errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--seeds", type=int, default=4)
    given = parser.parse_args()
    found: dict[tuple[str, float], list[dict[str, float]]] = {}
    for seed in range(given.seeds):
        parts = [make_fraud(given.rows, random_state=3 * seed + part) for part in range(3)]
        for learner in LEARNERS:
            for share in SHARES:
                found.setdefault((learner, share), []).append(measure(learner, parts, share, seed))
    print("learner     q      rows   M       loss (standard error)   flags    prevalence  seconds")
    for (learner, share), results in found.items():
        column = {name: np.array([each[name] for each in results]) for name in results[0]}
        lost = np.array([each["M"] for each in found[learner, 1.0]]) - column["M"]
        error = lost.std(ddof=1) / np.sqrt(lost.size)
        print(
            f"{learner:>9} {share:5g} {column['rows'].mean():9,.0f}  {column['M'].mean():.4f}  "
            f"{lost.mean():+.4f} ({error:.4f})        {column['flags'].mean():.5f}  "
            f"{column['prevalence'].mean():.5f}  {column['seconds'].mean():7.1f}"
        )


if __name__ == "__main__":
    main()
