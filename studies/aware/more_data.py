"""What keeps strong ensembles from the ceiling? More data of the same kind, on the credit data.

    SHORTLIST_DATA=<folder of taiwan_credit_default.csv.gz> python benchmarks/study_aware_data.py

Capacity-aware boosting learns from 1,000 to 13,500 clients of which 2 % are rare, each sample
within the next, and takes the top of the same 10,000 others at b = 1, 2, 3 times 2 %. The ceiling
is boosting by log loss on all other clients, with about forty times the rare cases of 8,000.

Finished repetitions are kept in `--store`; rows go to `results/aware_data.csv`, and `--table` only
prints what is there.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier

from _measure import table as markdown
from shortlist import Capacity
from shortlist.aware import CapacityAwareBoostingClassifier
from shortlist.datasets import load_credit_default
from shortlist.experiments._credit_protocol import CreditSplit, draw_split, judge_top
from shortlist.experiments._runner import run_all
from shortlist.experiments._table import Table, read_table, summarise, write_table

RESULTS = Path(__file__).parents[1] / "results" / "aware_data.csv"
STORE = Path(__file__).with_name(".store") / "aware_data"
PREVALENCE, MULTIPLES = 0.02, (1, 2, 3)
SIZES = (1_000, 2_000, 4_000, 8_000, 13_500)
SEED = 2027
QUICK = {"rare_label": 1, "max_rounds": 200, "cv": 2}  # no threshold is needed here


@dataclass(frozen=True)
class Repetition:
    """One draw."""

    repetition: int


@cache
def clients() -> tuple[Any, Any]:
    """Read the 30,000 clients once."""
    return load_credit_default()


def run_repetition(config: Repetition) -> Table:
    """Draw a split, and judge boosting on growing parts of it, and on everything else."""
    rng = np.random.default_rng([SEED, config.repetition])
    split = draw_split(*clients(), prevalence=PREVALENCE, rng=rng, n_train=SIZES[-1])
    rows = []
    for size in SIZES:
        X, y = part_of(split, size)
        model = CapacityAwareBoostingClassifier(
            Capacity.fraction(2 * PREVALENCE), random_state=config.repetition, **QUICK
        ).fit(X, y)
        rows += judged(model.score_samples(split.X_test), split, str(size))
    settings = {"n_estimators": 300, "num_leaves": 4, "learning_rate": 0.03, "verbose": -1}
    ceiling = LGBMClassifier(**settings).fit(split.X_others, split.y_others)
    rows += judged(ceiling.predict_proba(split.X_test)[:, 1], split, "all others")
    return [{"repetition": config.repetition, **row} for row in rows]


def part_of(split: CreditSplit, size: int) -> tuple[Any, Any]:
    """Return the first clients of each class, with the rare share of the whole."""
    n_rare = round(PREVALENCE * size)
    rare, common = (np.flatnonzero(split.y_train == label) for label in (1, 0))
    rows = np.concatenate([rare[:n_rare], common[: size - n_rare]])
    return split.X_train[rows], split.y_train[rows]


def judged(scores: Any, split: CreditSplit, size: str) -> Table:
    """Return M at the top of the test sample for each capacity."""
    return [
        {
            "size": size,
            "b": b,
            "M": judge_top(
                scores, split.y_test, Capacity.fraction(round(b * PREVALENCE, 6))
            ).adjusted_detection,
        }
        for b in MULTIPLES
    ]


def summary() -> str:
    """Return the means with standard errors, a column for each capacity."""
    lines: dict[str, list[str]] = {}
    for row in summarise(read_table(RESULTS), ["size", "b"], "M"):
        lines.setdefault(str(row["size"]), []).append(f"{row['mean']:.3f} ± {row['error']:.3f}")
    headings = ["clients to learn from", *(f"b = {b}" for b in MULTIPLES)]
    return markdown(headings, [[size, *cells] for size, cells in lines.items()])


def main() -> None:
    """Run, save and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=20)
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--table", action="store_true", help="only print the results")
    options = parser.parse_args()
    if not options.table:
        configs = [Repetition(repetition) for repetition in range(options.reps)]
        write_table(run_all(run_repetition, configs, store=options.store), RESULTS)
    print(summary())


if __name__ == "__main__":
    main()
