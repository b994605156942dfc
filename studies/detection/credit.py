"""The ensemble of `shortlist fit` on the credit data, by the paper's protocol.

    python -m studies.detection.credit --reps 10 --sizes quick default

8,000 clients to learn from and 10,000 others to test on, two in a hundred of them rare, the draws
of `studies.aware.credit`. The rule of ten folds, calibrated with the guarantee "expected"; the full
model with a threshold from 5,800 more clients without labels; and the top of the test sample by
the full model. M at b = 1, 2, 3. Beside it, on the same draws, the aware forest with its own
calibrated threshold; all models are fitted for b = 2. `differences` compares the draws that all
have.
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shortlist import Capacity, CapacityClassifier
from shortlist.aware import CapacityAwareForestClassifier
from shortlist.learners import CapacityEnsembleClassifier
from studies.aware.credit import SEED
from studies.credit_data import clients
from studies.harness import judge_top, print_summary, run_stored, study_parser
from studies.paper.credit_protocol import CreditSplit, capacity_of, draw_split, judge
from studies.tables import Table, mean_and_error, summarise, write_table

HERE = Path(__file__).parent
PREVALENCE = 0.02
AWARE = "aware forest"
_N_UNLABELLED = 5_800  # nearly all common clients that are left


@dataclass(frozen=True)
class Repetition:
    """One draw, and the size of the ensemble, or the aware forest."""

    size: str
    repetition: int


def run_repetition(config: Repetition) -> Table:
    """Fit to a draw, and judge the rule and the list at three capacities."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([SEED, config.repetition])
    X, y = clients()
    drawn = draw_split(np.arange(y.size), y, prevalence=PREVALENCE, rng=rng)
    X_test, y_test = X[drawn.X_test], drawn.y_test
    limits = {b: capacity_of(b, PREVALENCE) for b in (1, 2, 3)}
    model = _make(config, limits[2]).fit(X[drawn.X_train], drawn.y_train)
    scores = model.score_samples(X_test)
    moved = copy.deepcopy(model).recalibrate(X[_unlabelled(drawn, y, rng)])
    rows = []
    for b, capacity in limits.items():
        outcomes = {
            "row by row": judge(model.with_capacity(capacity).flag(X_test), y_test, capacity),
            "unlabelled": judge(moved.with_capacity(capacity).flag(X_test), y_test, capacity),
            "list": judge_top(scores, y_test, Capacity.fraction(capacity.as_ratio(None))),
        }
        for rule, outcome in outcomes.items():
            found = {"M": outcome.adjusted_detection, "flagged": outcome.flagged}
            names = {"size": config.size, "rule": rule, "b": b}
            rows.append({**names, "repetition": config.repetition, **found})
    return rows


def _unlabelled(drawn: CreditSplit, y: Any, rng: np.random.Generator) -> Any:
    """Draw clients that are in neither sample, with the same share of rare ones."""
    spare = rng.permutation(np.setdiff1d(drawn.X_others, drawn.X_train))
    n_rare = round(PREVALENCE * _N_UNLABELLED)
    rare, common = spare[y[spare] == 1], spare[y[spare] == 0]
    return np.concatenate([rare[:n_rare], common[: _N_UNLABELLED - n_rare]])


def _make(config: Repetition, capacity: Capacity) -> Any:
    options = {"rare_label": 1, "random_state": config.repetition}
    if config.size == AWARE:
        learner, cv = CapacityAwareForestClassifier(random_state=config.repetition), "oob"
    else:
        learner = CapacityEnsembleClassifier(capacity, size=config.size, **options)
        cv = 10
    return CapacityClassifier(learner, capacity=capacity, cv=cv, **options)


def differences(rows: Table) -> Table:
    """Return the paired differences from the aware forest, on draws that both have."""
    found = {(r["size"], r["rule"], r["b"], r["repetition"]): r["M"] for r in rows}
    return [
        {
            "size": size,
            "rule": rule,
            "b": b,
            **mean_and_error(
                [
                    value - found[AWARE, rule, b, draw]
                    for (*names, draw), value in found.items()
                    if names == [size, rule, b] and (AWARE, rule, b, draw) in found
                ]
            ),
        }
        for size, rule, b in dict.fromkeys(key[:3] for key in found)
        if size != AWARE
    ]


def main() -> None:
    """Run, save and print."""
    parser = study_parser(__doc__, HERE, reps=10)
    parser.add_argument("--sizes", nargs="+", default=["quick", "default", AWARE])
    options = parser.parse_args()
    files = [options.out / name for name in ("credit.csv", "credit_differences.csv")]
    if not options.table:
        configs = [Repetition(size, draw) for size in options.sizes for draw in range(options.reps)]
        rows = run_stored("detection_credit", run_repetition, configs, n_jobs=options.jobs)
        write_table(summarise(rows, ["size", "rule", "b"], "M"), files[0])
        write_table(differences(rows), files[1])
    for file in files:
        print_summary(file)


if __name__ == "__main__":
    main()
