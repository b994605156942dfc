"""Neighbours and densities compared with scikit-learn, and networks with the paper's."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import KernelDensity, KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from _measure import cpu_seconds, paired_ratio, seconds, table
from shortlist import Capacity
from shortlist.datasets import make_fraud
from shortlist.learners import (
    KernelDensityClassifier,
    KernelKNeighborsClassifier,
    make_learner,
)


def main(n_density: int = 100_000, n_query: int = 10_000) -> str:
    """Return all tables."""
    tables = [neighbors(), joint_choice(), densities(n_density, n_query)]
    tables.append(networks())
    return "\n\n".join(tables)


def neighbors(n_train: int = 8_000, n_test: int = 10_000, n_features: int = 23) -> str:
    """Compare the scores of k neighbours with those of KNeighborsClassifier(weights="distance")."""
    rng = np.random.default_rng(0)
    X, items = rng.normal(size=(n_train, n_features)), rng.normal(size=(n_test, n_features))
    y = (rng.uniform(size=n_train) < 0.02).astype(int)
    X_scaled, items_scaled = (
        StandardScaler().fit_transform(X),
        StandardScaler().fit_transform(items),
    )
    rows = []
    for k in (5, 50, 200):
        ours = KernelKNeighborsClassifier(k).fit(X, y)
        theirs = KNeighborsClassifier(k, weights="distance").fit(X_scaled, y)
        ours.predict_proba(items[:10])  # compiles
        ratio, baseline = paired_ratio(
            lambda m=ours: m.predict_proba(items), lambda m=theirs: m.predict_proba(items_scaled)
        )
        rows.append([f"{n_train:,} × {n_test:,} × {n_features}", str(k), f"{baseline:.2f} s"])
        rows[-1].append(f"{ratio:.2f}")
    return table(["train × items × features", "k", "scikit-learn", "ours / scikit-learn"], rows)


def joint_choice(n: int = 8_000, n_features: int = 23) -> str:
    """Compare choosing among k = 1 ... 50 with fitting the largest k alone."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, n_features)), (rng.uniform(size=n) < 0.02).astype(int)
    capacity = Capacity.fraction(0.06)

    def fit(n_neighbors):
        return KernelKNeighborsClassifier(n_neighbors, capacity=capacity).fit(X, y)

    ratio, _ = paired_ratio(lambda: fit(range(1, 51)), lambda: fit(50))
    return table(["rows", "all k to 50 / only k = 50"], [[f"{n:,}", f"{ratio:.2f}"]])


def densities(n_train: int, n_query: int) -> str:
    """Compare log densities with those of KernelDensity, timed on fewer items."""
    rows, few = [], max(n_query // 50, 1)
    for n_features in (2, 5):
        rng = np.random.default_rng(0)
        X, items = rng.normal(size=(n_train, n_features)), rng.normal(size=(n_query, n_features))
        y = (rng.uniform(size=n_train) < 0.02).astype(int)
        bandwidth = n_train ** (-1 / (n_features + 4))
        ours = KernelDensityClassifier(bandwidth).fit(X, y)
        theirs = [KernelDensity(bandwidth=bandwidth).fit(X[y == label]) for label in (0, 1)]
        ours.decision_function(items[:10])  # compiles
        mine = seconds(lambda m=ours, q=items: m.decision_function(q), repeats=3)
        peer = seconds(lambda d=theirs, q=items: [e.score_samples(q[:few]) for e in d], repeats=3)
        peer *= n_query / few
        size = f"{n_train:,} × {n_query:,} × {n_features}"
        rows.append([size, f"{mine:.2f} s", f"{peer:.1f} s", f"{mine / peer:.3f}"])
    return table(["train × items × features", "ours", "KernelDensity", "ratio"], rows)


def networks(n: int = 4_000) -> str:
    """Compare fitting the recommended networks with fitting the paper's, in processor time."""
    X, y = make_fraud(n, prevalence=0.02, random_state=0)
    paper, ours = (
        cpu_seconds(lambda p=p: make_learner("network", p, random_state=0).fit(X, y))
        for p in ("paper", "recommended")
    )
    return table(["rows", "ten networks / the paper's one"], [[f"{n:,}", f"{ours / paper:.2f}"]])


if __name__ == "__main__":
    print(main())
