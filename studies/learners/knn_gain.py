"""Nearest neighbours on all 30,000 clients at π₀ = 0.02: k and threshold chosen together.

    python -m studies.learners.knn_gain --jobs 2

The figure `knn-gain` of the paper with other settings; k up to 50. `knn_gain.csv` has the gain of
the joint choice for both rules for ties.
"""

from __future__ import annotations

from pathlib import Path

from studies.harness import RAW, study_parser
from studies.paper import knn_gain
from studies.tables import markdown_table, read_table, write_table

HERE = Path(__file__).parent


def main() -> None:
    """Run, save and draw."""
    options = study_parser(__doc__, HERE, reps=20).parse_args()
    if options.table:
        print("\n".join(markdown_table(read_table(options.out / "knn_gain.csv"))))
        return
    config = knn_gain.Config(prevalences=(0.02,), rows=30_000, repetitions=options.reps)
    table = knn_gain.run(config, store=RAW / "finished" / "knn_gain", n_jobs=options.jobs)
    write_table(table, RAW / "knn_gain.csv")
    write_table(knn_gain.digest(table), options.out / "knn_gain.csv")
    knn_gain.draw(table).savefig(options.out / "knn_gain.png", dpi=110)


if __name__ == "__main__":
    main()
