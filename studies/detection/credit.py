"""The ensemble of `shortlist fit` on the credit data, by the paper's protocol.

    python -m studies.detection.credit --reps 5 --jobs 2

8,000 clients to learn from and 10,000 others to test on, two in a hundred of them rare, the draws
of `studies.aware.credit`. The rule of ten folds, calibrated with the guarantee "expected", and the
top of the test sample by the mean of all folds; M at b = 1, 2, 3.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shortlist import Capacity, CapacityClassifier
from shortlist.learners import CapacityEnsembleClassifier
from shortlist.reproduce.credit_protocol import capacity_of, draw_split, judge
from shortlist.reproduce.tables import Table, read_table, summarise, write_table
from studies.aware.credit import SEED
from studies.harness import clients, judge_top, markdown, run_stored, study_parser

HERE = Path(__file__).parent
PREVALENCE = 0.02


@dataclass(frozen=True)
class Repetition:
    """One draw, and the size of the ensemble."""

    size: str
    repetition: int


def run_repetition(config: Repetition) -> Table:
    """Fit ten folds of an ensemble, and judge its rule and its list at three capacities."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([SEED, config.repetition])
    split = draw_split(*clients(), prevalence=PREVALENCE, rng=rng)
    limits = {b: capacity_of(b, PREVALENCE) for b in (1, 2, 3)}
    model = CapacityClassifier(
        CapacityEnsembleClassifier(
            limits[2], size=config.size, rare_label=1, random_state=config.repetition
        ),
        capacity=limits[2],
        rare_label=1,
        cv=10,
        ensemble=True,
        guarantee="expected",
        random_state=config.repetition,
    ).fit(split.X_train, split.y_train)
    scores = model.score_samples(split.X_test)
    rows = []
    for b, capacity in limits.items():
        ruled = judge(model.with_capacity(capacity).flag(split.X_test), split.y_test, capacity)
        listed = judge_top(scores, split.y_test, Capacity.fraction(capacity.as_ratio(None)))
        for rule, outcome in (("row by row", ruled), ("list", listed)):
            found = {"M": outcome.adjusted_detection, "flagged": outcome.flagged}
            names = {"size": config.size, "rule": rule, "b": b}
            rows.append({**names, "repetition": config.repetition, **found})
    return rows


def main() -> None:
    """Run, save and print."""
    parser = study_parser(__doc__, HERE, reps=5)
    parser.add_argument("--size", default="default")
    options = parser.parse_args()
    if not options.table:
        configs = [Repetition(options.size, repetition) for repetition in range(options.reps)]
        rows = run_stored("detection_credit", run_repetition, configs, n_jobs=options.jobs)
        write_table(summarise(rows, ["size", "rule", "b"], "M"), options.out / "credit.csv")
    summary = read_table(options.out / "credit.csv")
    shown = [[str(value) for value in row.values()] for row in summary]
    print(markdown(list(summary[0]), shown))


if __name__ == "__main__":
    main()
