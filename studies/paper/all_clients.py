"""The figures `credit` and `aware-svm` on all 30,000 clients at π₀ = 0.02, to compare with R.

    python -m studies.paper.all_clients --jobs 2

A hundred repetitions, as in the paper, of the first and thirty of the second. Finished runs are
kept; a second call resumes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from studies.harness import RAW
from studies.paper.credit_figures import aware_svm, credit
from studies.paper.credit_protocol import CreditConfig, cells_of
from studies.tables import write_table

HERE = Path(__file__).parent


def main(repetitions: int | None, n_jobs: int) -> None:
    """Run both figures and write the means of every cell."""
    for name, figure, usual in (("credit", credit, 100), ("aware-svm", aware_svm, 30)):
        config = CreditConfig(prevalences=(0.02,), rows=30_000, repetitions=repetitions or usual)
        table = figure.run(config, store=RAW / "finished" / "all_clients", n_jobs=n_jobs)
        write_table(table, RAW / f"{name}-30000.csv")
        write_table(cells_of(table), HERE / f"{name}-30000.csv")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=None, help="instead of 100 and 30")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    main(options.reps, options.jobs)
