"""What `shortlist fit` costs: ten folds of an ensemble beside one forest of 300 trees."""

from __future__ import annotations

import pickle
import resource
import sys
import time
from typing import Any

from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold

from _measure import table
from shortlist import Capacity, CapacityClassifier
from shortlist.datasets import make_fraud
from shortlist.learners import SIZES, CapacityEnsembleClassifier

BATCH = 1_000


def main(sizes: tuple[int, ...] = (1_000, 10_000, 100_000), names: tuple[str, ...] = ()) -> str:
    """Return the cost of each size of the ensemble, for each number of rows."""
    rows = [row for n_rows in sizes for row in costs(n_rows, names or tuple(SIZES))]
    return table(
        ["rows", "size", "processor time", "/ one forest", "model", "batch, a row", "most memory"],
        rows,
    )


def costs(n_rows: int, names: tuple[str, ...]) -> list[list[str]]:
    """Fit the forest and each size once, and count processor time."""
    X, y = make_fraud(n_rows, prevalence=0.05, random_state=0)
    forest = RandomForestClassifier(300, random_state=0)
    alone, _ = _timed(lambda: forest.fit(X, y))
    rows = [_row(n_rows, "one forest", alone, alone, forest, forest.predict_proba, X)]
    for name in names:
        folds = StratifiedKFold(10, shuffle=True, random_state=0)
        ensemble = CapacityEnsembleClassifier(Capacity.multiple(2), size=name, random_state=0)
        model = CapacityClassifier(
            ensemble, capacity=Capacity.multiple(2), cv=folds, ensemble=True, random_state=0
        )
        spent, _ = _timed(lambda model=model: model.fit(X, y))
        rows.append(_row(n_rows, name, spent, alone, model, model.score_samples, X))
    return rows


def _row(
    n_rows: int, name: str, spent: float, alone: float, model: Any, score: Any, X: Any
) -> list[str]:
    content = len(pickle.dumps(model)) / 1e6
    batch, _ = _timed(lambda: score(X[:BATCH]))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return [
        f"{n_rows:,}",
        name,
        f"{spent:.1f} s",
        f"{spent / alone:.1f}",
        f"{content:.0f} MB",
        f"{1e3 * batch / BATCH:.2f} ms",
        f"{memory:.1f} GB",
    ]


def _timed(function: Any) -> tuple[float, Any]:
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


if __name__ == "__main__":
    wanted = tuple(int(size) for size in sys.argv[1:2])
    print(main(wanted or (1_000, 10_000, 100_000), tuple(sys.argv[2:])))
