"""Steps of the paper's study against R and scikit-learn, in seconds of one core.

The times of R (randomForest, e1071, kknn) and of scikit-learn come from an independent rerun of the
paper's protocol on one core of another machine. Scikit-learn is timed again here to compare the
machines; the last column is our time over R's, both in units of scikit-learn's. We use
scikit-learn's forest and support vector machine.

    SHORTLIST_DATA=<folder of taiwan_credit_default.csv.gz> python benchmarks/bench_reproduce.py
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVC

from _measure import cpu_seconds, table
from bench_aware import N_STEPS, plain_path, problem
from shortlist.aware._greedy import greedy_path
from shortlist.learners import make_learner
from studies.paper.credit_figures import run_method, runs_of
from studies.paper.credit_protocol import CreditConfig, draw_sample

Action = Callable[[], object]
# Of the rerun: R, scikit-learn.
REFERENCE = {
    "forest, 503 trees, 8,000 rows": (7.3, 7.4),
    "support vectors, 8,000 rows": (1.6, 0.54),
    "neighbours, 8,000 to 10,000 rows": (2.6, 0.35),
    "greedy choice, 725 vectors, 30 steps": (2.9, 0.51),
}
# Forest, machine and neighbours on 8,000 rows, on 8,480 after SMOTE and on 4,000, assuming times
# proportional to rows; and three choices.
STEPS_OF_A_REPETITION = (2.56, 2.56, 2.56, 3)
PAIRS = [
    *((name, m) for name in ("forest", "svm", "knn") for m in ("classical", "smote", "capacity")),
    ("svm", "aware"),
]


def steps(n_trees: int) -> dict[str, tuple[Action, Action]]:
    """Return for each step our function, and that of scikit-learn or NumPy."""
    split, _ = draw_sample(30_000, 0.02, 0, 0)
    X, y = split.X_train, split.y_train
    scale = X.std(axis=0)
    Z, Z_test = X / scale, split.X_test / scale
    knn = make_learner("knn", "paper").fit(X, y)
    brute = NearestNeighbors(n_neighbors=6, algorithm="brute").fit(Z)
    forest = {"min_samples_split": 6, "random_state": 0}
    rare, common, max_flags = problem(725, 4_000)
    return dict(
        zip(
            REFERENCE,
            [
                (lambda: RandomForestClassifier(n_trees, **forest).fit(X, y),) * 2,
                (lambda: SVC(C=1, gamma=0.1).fit(Z, y),) * 2,
                (lambda: knn.predict_proba(split.X_test), lambda: brute.kneighbors(Z_test)),
                (
                    lambda: greedy_path(rare, common, max_flags, n_steps=N_STEPS),
                    lambda: plain_path(rare, common, max_flags),
                ),
            ],
            strict=True,
        )
    )


def main(n_trees: int = 503) -> str:
    """Time every step and a whole repetition."""
    rows, speeds = [], []
    for name, (ours, theirs) in steps(n_trees).items():
        ours()  # compiles
        own, usual = cpu_seconds(ours, repeats=3), cpu_seconds(theirs, repeats=3)
        r, sklearn_there = REFERENCE[name]
        ratio = own / usual * sklearn_there / r
        speeds.append(usual / sklearn_there)
        rows.append(
            [name, f"{r}", f"{sklearn_there}", f"{usual:.2f}", f"{own:.2f}", f"{ratio:.2f}"]
        )
    r = float(np.dot(STEPS_OF_A_REPETITION, [pair[0] for pair in REFERENCE.values()]))
    config = CreditConfig(rows=30_000, prevalences=(0.02,), repetitions=1)
    own = cpu_seconds(lambda: [run_method(run) for run in runs_of(config, PAIRS)], repeats=1)
    ratio = own / (r * float(np.median(speeds)))
    rows.append(["a repetition at π₀ = 0.02", f"{r:.1f}", "", "", f"{own:.2f}", f"{ratio:.2f}"])
    names = ["step", "R", "scikit-learn there", "scikit-learn here", "ours here", "ours / R"]
    return table(names, rows)


if __name__ == "__main__":
    print(main())
