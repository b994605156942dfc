"""Does learning for the capacity pay? A paired study on the credit-default data.

    python -m studies.aware.credit --family svm --pi0 0.02 --jobs 2

The paper's protocol: all 30,000 rows, a rare share π₀ of 0.5 to 5 %, 8,000 clients to learn from,
10,000 others to test on, standardised; capacity b times π₀, with b = 1, 2, 3. Each repetition draws
a new sample, and every version of every family sees the same sample. No default was chosen on
these samples.

`--family`, `--pi0` and `--reps` run a part. Finished repetitions are kept, and a second call
resumes. `credit.csv` has the means of every version, `credit_differences.csv` the paired
differences of M and of M at the top of the test batch; only the families that were run change.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from studies.aware.families import FAMILIES
from studies.aware.measuring import (
    difference_table,
    differences,
    draw_differences,
    mean_table,
    means,
    measure,
    of_family,
)
from studies.credit_data import clients
from studies.harness import run_stored, study_parser
from studies.paper.credit_protocol import draw_split
from studies.tables import Table, read_table, select_rows, write_table

HERE = Path(__file__).parent
PREVALENCES = (0.005, 0.01, 0.02, 0.05)
SEED = 2026  # of the draws; settings were chosen on draws of other seeds


@dataclass(frozen=True)
class Repetition:
    """One draw, on which all versions of one family are compared."""

    family: str
    prevalence: float
    repetition: int


def run_repetition(config: Repetition) -> Table:
    """Draw a split and measure every version of the family on it."""
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


def summarise_family(rows: Table, family: str) -> tuple[Table, Table]:
    """Return the means of one family, and its paired differences."""
    rows = sorted(rows, key=lambda row: row["pi0"])
    comparisons = {family: FAMILIES[family]().comparisons}
    compared = [differences(rows, comparisons, "pi0", value) for value in ("M", "M_batch")]
    return means(rows, "pi0"), [row for part in compared for row in part]


def replace_family(new: Table, family: str, file: Path) -> None:
    """Write the rows of one family, and keep those of the others."""
    there = read_table(file) if file.exists() else []
    by_family = {name: select_rows(there, family=name) for name in FAMILIES} | {family: new}
    write_table([row for name in FAMILIES for row in by_family[name]], file)


def main() -> None:
    """Run, save, draw and print."""
    parser = study_parser(__doc__, HERE, reps=20)
    parser.add_argument("--family", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--pi0", nargs="+", type=float, default=list(PREVALENCES))
    options = parser.parse_args()
    files = options.out / "credit.csv", options.out / "credit_differences.csv"
    for family in [] if options.table else options.family:
        configs = [Repetition(family, pi0, r) for pi0 in options.pi0 for r in range(options.reps)]
        rows = run_stored(f"aware_{family}", run_repetition, configs, n_jobs=options.jobs)
        for part, file in zip(summarise_family(rows, family), files, strict=True):
            replace_family(part, family, file)
    averages, compared = (read_table(file) for file in files)
    compared = select_rows(compared, value="M")
    draw_differences(compared, "pi0", options.out / "credit.png")
    print(mean_table(averages, "pi0") + "\n\n" + difference_table(compared, "pi0"))


if __name__ == "__main__":
    main()
