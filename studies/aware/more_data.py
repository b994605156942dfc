"""What keeps strong ensembles from the ceiling? More data of the same kind, on the credit data.

    python -m studies.aware.more_data --jobs 2

Capacity-aware boosting learns from 1,000 to 13,500 clients of which 2 % are rare, each sample part
of the next, and flags the top of the same 10,000 others at b = 1, 2, 3 times 2 %. The ceiling is
boosting with the log loss on all other clients, with about forty times the rare cases of 8,000.

`more_data.csv` has the means of M. Finished repetitions are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier

from shortlist import Capacity
from shortlist.aware import CapacityAwareBoostingClassifier
from studies.credit_data import clients
from studies.harness import judge_top, markdown, run_stored, study_parser
from studies.paper.credit_protocol import CreditSplit, draw_split
from studies.tables import Table, read_table, summarise, write_table

HERE = Path(__file__).parent
PREVALENCE, MULTIPLES = 0.02, (1, 2, 3)
SIZES = (1_000, 2_000, 4_000, 8_000, 13_500)
SEED = 2027
QUICK = {"rare_label": 1, "max_rounds": 200, "cv": 2}


@dataclass(frozen=True)
class Repetition:
    """One draw."""

    repetition: int


def run_repetition(config: Repetition) -> Table:
    """Draw a split and judge boosting on growing parts of it and on all other clients."""
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


def summary(table: Table) -> Table:
    """Return the mean of M for each number of clients and capacity."""
    return summarise(table, ["size", "b"], "M")


def in_words(rows: Table) -> str:
    """Return the summary as a Markdown table, a column for each capacity."""
    lines: dict[str, list[str]] = {}
    for row in rows:
        lines.setdefault(str(row["size"]), []).append(f"{row['mean']:.3f} ± {row['error']:.3f}")
    headings = ["clients to learn from", *(f"b = {b}" for b in MULTIPLES)]
    return markdown(headings, [[size, *cells] for size, cells in lines.items()])


def main() -> None:
    """Run, save and print."""
    options = study_parser(__doc__, HERE, reps=20).parse_args()
    file = options.out / "more_data.csv"
    if not options.table:
        configs = [Repetition(repetition) for repetition in range(options.reps)]
        rows = run_stored("aware_more_data", run_repetition, configs, n_jobs=options.jobs)
        write_table(summary(rows), file)
    print(in_words(read_table(file)))


if __name__ == "__main__":
    main()
