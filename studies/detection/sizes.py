"""What cheaper ensembles and fewer folds find, beside those of `shortlist fit`.

    python -m studies.detection.sizes                              # the choosing lists, 20 min
    python -m studies.detection.sizes --side confirming --reps 1   # once, for what was chosen

Half of each table trains. The other half is ranked as a list by an ensemble of all rows (mean
detection at b = 1, 2, 3), and judged row by row by quick ensembles of folds (M at b = 2, and the
share of the capacity in use), in several random halves. Differences from the first way of each kind
are paired by table. The means go to `sizes_choosing.csv` or `sizes_confirming.csv`.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from shortlist import Capacity, CapacityClassifier, adjusted_detection_score
from shortlist.learners import CapacityEnsembleClassifier
from shortlist.learners.members import SIZES
from shortlist.metrics import detection_at_capacity
from studies.detection.tables import (
    CHOOSING,
    CHOOSING_EVERYDAY,
    CONFIRMING,
    CONFIRMING_EVERYDAY,
    load_table,
)
from studies.harness import print_summary
from studies.tables import mean_and_error, write_table

SIDES = {
    "choosing": (*CHOOSING, *CHOOSING_EVERYDAY),
    "confirming": (*CONFIRMING, *CONFIRMING_EVERYDAY),
}
ENSEMBLES = {
    "default": SIZES["default"],
    "default, 40 trees": replace(SIZES["default"], trees=40),
    "default, 30 trees": replace(SIZES["default"], trees=30),
    "quick": SIZES["quick"],
}
FOLDS = (10, 5, 3)
Found = dict[str, dict[str, float]]


def halves(source: Any, seed: int) -> tuple[Any, Any, Any, Any]:
    """Return the rows and labels to learn from, and those to test on."""
    X, is_rare = load_table(source)
    X, X_test, y, y_test = train_test_split(
        X, is_rare, test_size=0.5, stratify=is_rare, random_state=seed
    )
    return X, y, X_test, y_test


def lists(source: Any) -> Found:
    """Return what lists find that ensembles of all rows rank."""
    X, y, X_test, y_test = halves(source, 0)
    limits, found = [Capacity.multiple(b) for b in (1, 2, 3)], {}
    for name in ENSEMBLES:
        begun = time.process_time()
        model = CapacityEnsembleClassifier(
            Capacity.multiple(2), rare_label=True, size=name, random_state=0
        )
        scores = model.fit(X, y).decision_function(X_test)
        detection = np.mean([detection_at_capacity(y_test, scores, b) for b in limits])
        spent = time.process_time() - begun
        found[f"list: {name}"] = {"found": float(detection), "seconds": spent}
    return found


def rows(source: Any, seed: int) -> Found:
    """Return what ensembles of folds find row by row, and the share of the capacity in use."""
    X, y, X_test, y_test = halves(source, seed)
    capacity, found = Capacity.fraction(round(min(2 * y.mean(), 0.5), 6)), {}
    options = {"capacity": capacity, "rare_label": True, "random_state": seed}
    for n_folds in FOLDS:
        begun = time.process_time()
        ensemble = CapacityEnsembleClassifier(size="quick", **options)
        model = CapacityClassifier(ensemble, cv=n_folds, **options).fit(X, y)
        flagged, spent = model.flag(X_test), time.process_time() - begun
        score = adjusted_detection_score(y_test, flagged, capacity=capacity, rare_label=True)
        use = flagged.mean() / float(capacity.value)
        found[f"rows: {n_folds} folds"] = {"found": score, "use": use, "seconds": spent}
    return found


def means(every: list[Found]) -> Found:
    """Return the means over several halves of a table."""
    return {
        way: {key: float(np.mean([of[way][key] for of in every])) for key in every[0][way]}
        for way in every[0]
    }


def summary(tables: list[Found]) -> list[dict[str, Any]]:
    """Return the means of each way over all tables, and its difference from the first one."""
    whole = means(tables)
    made = []
    for way, of in whole.items():
        first = next(name for name in whole if name[:4] == way[:4])
        gains = [table[way]["found"] - table[first]["found"] for table in tables]
        figures = {"use": "", **of, **mean_and_error(gains)}
        rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in figures.items()}
        made.append({"way": way, **rounded})
    return made


def main() -> None:
    """Measure one side, write the means and print them."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", choices=SIDES, default="choosing")
    parser.add_argument("--reps", type=int, default=4, help="halves of each table, for single rows")
    options = parser.parse_args()
    SIZES.update(ENSEMBLES)
    tables = []
    for source in SIDES[options.side]:
        by_rows = means([rows(source, seed) for seed in range(1, options.reps + 1)])
        tables.append(lists(source) | by_rows)
        print(source.name, tables[-1], flush=True)
    file = Path(__file__).with_name(f"sizes_{options.side}.csv")
    write_table(summary(tables), file)
    print_summary(file)


if __name__ == "__main__":
    main()
