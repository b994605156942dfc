"""What `shortlist fit` costs: ten folds of an ensemble beside one forest of 300 trees.

    python benchmarks/bench_fit.py 10000 quick default

Time to score a row: among 1,000 by the model, and alone by the compiled scorer of `stream` and the
service, by the mean of ten models.
"""

from __future__ import annotations

import pickle
import resource
import sys
import time
import zlib
from typing import Any

from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold

from _measure import table
from shortlist import Capacity, CapacityClassifier
from shortlist.datasets import make_fraud
from shortlist.learners import CapacityEnsembleClassifier
from shortlist.learners.members import SIZES
from shortlist.models import compile_scorer

BATCH = 1_000
ALONE = 200
WARM_UP = 500


def main(sizes: tuple[int, ...] = (1_000, 10_000, 100_000), names: tuple[str, ...] = ()) -> str:
    """Return the cost of each size of the ensemble, for each number of rows."""
    rows = [row for n_rows in sizes for row in costs(n_rows, names or tuple(SIZES))]
    return table(
        [
            *("rows", "size", "processor time", "/ one forest", "pickle", "compressed"),
            *("batch, a row", "alone", "most memory"),
        ],
        rows,
    )


def costs(n_rows: int, names: tuple[str, ...]) -> list[list[str]]:
    """Fit the forest and each size to a few rows, then to all, and count processor time."""
    X, y = make_fraud(n_rows, prevalence=0.05, random_state=0)
    forest = RandomForestClassifier(300, random_state=0)
    alone = _fitting(forest, X, y)
    rows = [_row(n_rows, "one forest", alone, alone, forest, forest.predict_proba, X)]
    for name in names:
        folds = StratifiedKFold(10, shuffle=True, random_state=0)
        ensemble = CapacityEnsembleClassifier(Capacity.multiple(2), size=name, random_state=0)
        model = CapacityClassifier(
            ensemble, capacity=Capacity.multiple(2), cv=folds, random_state=0
        )
        spent = _fitting(model, X, y)
        rows.append(_row(n_rows, name, spent, alone, model, model.score_samples, X))
    return rows


def _fitting(model: Any, X: Any, y: Any) -> float:
    model.fit(X[:WARM_UP], y[:WARM_UP])  # libraries are loaded here
    return _timed(lambda: model.fit(X, y))[0]


def _row(
    n_rows: int, name: str, spent: float, alone: float, model: Any, score: Any, X: Any
) -> list[str]:
    content = pickle.dumps(model)
    batch, _ = _timed(lambda: score(X[:BATCH]))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return [
        f"{n_rows:,}",
        name,
        f"{spent:.1f} s",
        f"{spent / alone:.1f}",
        f"{len(content) / 1e6:.0f} MB",
        f"{len(zlib.compress(content, 6)) / 1e6:.1f} MB",
        f"{1e3 * batch / BATCH:.2f} ms",
        f"{1e3 * _alone(model, X):.2f} ms" if name != "one forest" else "",
        f"{memory:.1f} GB",
    ]


def _alone(model: Any, X: Any) -> float:
    """Return the processor time of one row by the compiled scorer."""
    scorer, rows = compile_scorer(model, X[:20]), X[:ALONE].tolist()
    scorer.score_row(rows[0])
    spent, _ = _timed(lambda: [scorer.score_row(row) for row in rows])
    return spent / len(rows)


def _timed(function: Any) -> tuple[float, Any]:
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


if __name__ == "__main__":
    wanted = tuple(int(size) for size in sys.argv[1:2])
    print(main(wanted or (1_000, 10_000, 100_000), tuple(sys.argv[2:])))
