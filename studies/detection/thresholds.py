"""What the exact rule of ten folds costs on the credit data, and where the cost comes from.

    python -m studies.detection.thresholds --reps 20

The draws are like those of `credit`, but others. Ten models of the ensemble, each fitted without
one fold, score the fold and the test sample. Each test client goes to a fold by chance, ten times
over.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from shortlist.learners import CapacityEnsembleClassifier
from shortlist.thresholds import calibrate_threshold
from studies.credit_data import clients
from studies.detection.credit import PREVALENCE
from studies.harness import print_summary, run_stored, study_parser
from studies.paper.credit_protocol import capacity_of, draw_split, judge
from studies.tables import Table, summarise, write_table

HERE = Path(__file__).parent
SEED = 777
_TURNS = 10

MEAN = "list of the mean of ten models"
OWN = "list of one model, on average"
BY_TEST = "one of ten, ranked among test clients"
BY_FOLD = "one of ten, ranked among the fold"
EXACT = "one of ten, a threshold for each: exact"
POOLED = "one of ten, one threshold: not exact"


@dataclass(frozen=True)
class Draw:
    """One draw of clients."""

    repetition: int


def run_draw(config: Draw) -> Table:
    """Fit ten models to a draw, and compare ways to use them."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([SEED, config.repetition])
    split = draw_split(*clients(), prevalence=PREVALENCE, rng=rng)
    X, y = split.X_train, split.y_train
    folds = StratifiedKFold(10, shuffle=True, random_state=config.repetition)
    unseen, test = [], []
    for learn, fold in folds.split(X, y):
        model = CapacityEnsembleClassifier(
            capacity_of(2, PREVALENCE), rare_label=1, random_state=config.repetition
        ).fit(X[learn], y[learn])
        unseen.append(model.decision_function(X[fold]))
        test.append(model.decision_function(split.X_test))
    assigned = rng.integers(0, len(test), (_TURNS, split.y_test.size))
    return [
        {"way": way, "b": b, "repetition": config.repetition, "M": value}
        for b in (1, 2, 3)
        for way, value in compare(unseen, np.array(test), split.y_test, b, assigned).items()
    ]


def compare(unseen: list[Any], test: Any, y: Any, b: int, assigned: Any) -> dict[str, float]:
    """Return the detection of lists and the M of rules at a capacity.

    `unseen` and `test` are the scores of each model, and `assigned` the models that decide.
    """
    capacity = capacity_of(b, PREVALENCE)
    share = float(capacity.as_ratio(None))
    n_listed, everyone = round(share * y.size), np.arange(y.size)

    def listed(order: Any) -> float:
        return float(y[order[:n_listed]].sum() / y.sum())

    def ruled(flags: Any) -> float:
        return float(judge(flags, y, capacity).adjusted_detection)

    by_test = np.array([np.argsort(np.argsort(-scores)) for scores in test])
    by_fold = np.array(list(map(_ranks, unseen, test)))
    rules = [calibrate_threshold(own, capacity, guarantee="expected") for own in unseen]
    exact = np.array([rule.flag(scores) for rule, scores in zip(rules, test, strict=True)])
    pooled = np.sort(np.concatenate(unseen))[-round(share * sum(map(len, unseen)))]
    turns: dict[str, list[float]] = {BY_TEST: [], BY_FOLD: [], EXACT: [], POOLED: []}
    for models in assigned:
        turns[BY_TEST].append(listed(np.argsort(by_test[models, everyone], kind="stable")))
        turns[BY_FOLD].append(listed(np.argsort(by_fold[models, everyone], kind="stable")))
        turns[EXACT].append(ruled(exact[models, everyone]))
        turns[POOLED].append(ruled(test[models, everyone] >= pooled))
    own = [listed(np.argsort(-scores)) for scores in test]
    return {
        MEAN: listed(np.argsort(-test.mean(axis=0))),
        OWN: float(np.mean(own)),
        **{way: float(np.mean(values)) for way, values in turns.items()},
    }


def _ranks(unseen: Any, scores: Any) -> Any:
    """Return the share of the unseen scores, and the score itself, that are at least as high."""
    at_least = unseen.size - np.searchsorted(np.sort(unseen), scores, side="left")
    return (at_least + 1) / (unseen.size + 1)


def main() -> None:
    """Run, save and print."""
    options = study_parser(__doc__, HERE, reps=20).parse_args()
    file = options.out / "thresholds.csv"
    if not options.table:
        configs = [Draw(repetition) for repetition in range(options.reps)]
        rows = run_stored("detection_thresholds", run_draw, configs, n_jobs=options.jobs)
        write_table(summarise(rows, ["way", "b"], "M"), file)
    print_summary(file)


if __name__ == "__main__":
    main()
