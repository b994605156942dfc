"""Does learning for the capacity pay? A paired study on the credit-default data.

    SHORTLIST_DATA=<folder of taiwan_credit_default.csv.gz> python benchmarks/study_aware.py

The paper's protocol: all 30,000 rows, a rare share π₀ of 0.5 to 5 %, 8,000 clients to learn from,
10,000 others to test on, standardised; capacity b times π₀, with b = 1, 2, 3. Each repetition draws
anew, and every version of every family sees the same draw. No default was chosen on these draws.

`--family`, `--pi0` and `--reps` run a part. Each finished repetition is kept in `--store`, so that
a second call goes on where the first was stopped. Tables go to `results/aware_<family>.csv`, and
the picture of all that is there to `results/aware.png`; `--table` only does the latter.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from _aware_families import FAMILIES
from _aware_rows import (
    difference_table,
    differences,
    draw_differences,
    means,
    measure,
    of_family,
)
from shortlist.datasets import load_credit_default
from shortlist.experiments._credit_protocol import draw_split
from shortlist.experiments._runner import run_all
from shortlist.experiments._table import Table, read_table, write_table

RESULTS = Path(__file__).parents[1] / "results"
STORE = Path(__file__).with_name(".store") / "aware"
PREVALENCES = (0.005, 0.01, 0.02, 0.05)
SEED = 2026  # of the draws; settings were chosen on draws of other seeds


@dataclass(frozen=True)
class Repetition:
    """One draw, on which all versions of one family are compared."""

    family: str
    prevalence: float
    repetition: int


@cache
def clients() -> tuple[Any, Any]:
    """Read the 30,000 clients once."""
    return load_credit_default()


def run_repetition(config: Repetition) -> Table:
    """Draw a split, and measure every version of the family on it."""
    rng = np.random.default_rng([SEED, config.repetition])
    split = draw_split(*clients(), prevalence=config.prevalence, rng=rng)
    rows = measure(
        FAMILIES[config.family](),
        (split.X_train, split.y_train),
        (split.X_test, split.y_test),
        config.prevalence,
        config.repetition,
    )
    return of_family(config.family, {"pi0": config.prevalence}, config.repetition, rows)


def run(family: str, prevalences: tuple[float, ...], n_repetitions: int, store: Path) -> Table:
    """Run what is missing of one family, and say how far it has come."""
    configs = [
        Repetition(family, prevalence, repetition)
        for prevalence in prevalences
        for repetition in range(n_repetitions)
    ]
    return run_all(
        run_repetition,
        configs,
        store=store / family,
        on_progress=lambda done, total: print(f"{family}: {done} of {total}", flush=True),
    )


def summary() -> str:
    """Draw all tables that there are, and return their means and paired differences."""
    files = {name: RESULTS / f"aware_{name}.csv" for name in FAMILIES}
    there = {name: read_table(file) for name, file in files.items() if file.exists()}
    comparisons = {name: FAMILIES[name]().comparisons for name in there}
    rows = [row for name in there for row in sorted(there[name], key=lambda row: row["pi0"])]
    compared = differences(rows, comparisons, "pi0")
    draw_differences(compared, "pi0", RESULTS / "aware.png")
    return means(rows, "pi0") + "\n\n" + difference_table(compared, "pi0")


def main() -> None:
    """Run, save and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--family", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--pi0", nargs="+", type=float, default=list(PREVALENCES))
    parser.add_argument("--reps", type=int, default=20)
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--table", action="store_true", help="only print and draw the results")
    options = parser.parse_args()
    for family in [] if options.table else options.family:
        rows = run(family, tuple(options.pi0), options.reps, options.store)
        write_table(rows, RESULTS / f"aware_{family}.csv")
    print(summary())


if __name__ == "__main__":
    main()
