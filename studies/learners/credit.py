"""Learners on the credit data: the paper's settings, the recommended ones, and the ceiling.

    python -m studies.learners.credit --jobs 2

A method is written as *family, preset, source of the threshold*:

- "halves": fitted on one half of the training sample, calibrated on the other, as in the paper;
- "out-of-bag", for forests: fitted on all of it, calibrated on out-of-bag scores;
- "cross-fitted": fitted on all of it, calibrated on the scores of five folds;
- "classical": fitted on all of it, with the model's own threshold.

The ceiling is boosting on all clients outside the test sample, cut at the top of the test sample.
`credit.csv` has the mean of M with its standard error for every method and capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from shortlist.learners import make_learner
from studies.credit_data import clients
from studies.harness import judge_top, plain_boosting, run_stored, single_threaded, study_parser
from studies.paper.credit_protocol import (
    CreditSplit,
    Outcome,
    capacity_of,
    draw_split,
    fit_scores,
    judge,
    judge_threshold,
)
from studies.tables import Table, read_table, summarise, write_table

HERE = Path(__file__).parent
#: Everything that is compared. Out-of-bag and cross-fitted methods also report the top of the test
#: sample, and the paper's forest also the classical rule, from the same fit.
METHODS = (
    *(f"{family}, paper, classical" for family in ("svm", "knn")),
    *(f"{family}, paper, halves" for family in ("forest", "svm", "knn")),
    "forest, paper, out-of-bag",
    "forest, recommended, out-of-bag",
    "boosting, recommended, cross-fitted",
    "ceiling",
    *(f"{f}, recommended, cross-fitted" for f in ("svm", "knn", "logistic")),
)


@dataclass(frozen=True)
class CreditLearnersConfig:
    """Settings of the study."""

    prevalence: float = 0.02
    multiples: tuple[float, ...] = (1, 2, 3)
    methods: tuple[str, ...] = METHODS
    rows: int = 30_000
    repetitions: int = 20
    seed: int = 0


@dataclass(frozen=True)
class Trial:
    """One method on one split, which depends on the seed and the repetition alone."""

    method: str
    repetition: int
    prevalence: float
    multiples: tuple[float, ...]
    rows: int
    seed: int


def trials_of(config: CreditLearnersConfig) -> list[Trial]:
    """List the runs; all methods see the same splits."""
    return [
        Trial(method, repetition, config.prevalence, config.multiples, config.rows, config.seed)
        for repetition in range(config.repetitions)
        for method in config.methods
    ]


def run_trial(trial: Trial) -> Table:
    """Draw the split and judge the method on it."""
    X, y = clients(trial.rows)
    rng = np.random.default_rng([trial.seed, trial.repetition])
    split = draw_split(X, y, prevalence=trial.prevalence, rng=rng)
    seed = int(rng.integers(2**31))
    if trial.method == "ceiling":
        judged = _ceiling(split, seed, trial)
    else:
        family, preset, scheme = trial.method.split(", ")
        model = single_threaded(make_learner(family, preset, random_state=seed))
        judged = (
            (f"{family}, {preset}, {name}", b, outcome)
            for name, b, outcome in _SCHEMES[scheme](model, split, seed, trial)
        )
    return [
        {"repetition": trial.repetition, "method": name, "multiple": b, **asdict(outcome)}
        for name, b, outcome in judged
    ]


def summary(table: Table) -> Table:
    """Return the mean of M with its standard error and count for each method and capacity."""
    return summarise(table, ["method", "multiple"], "adjusted_detection")


def draw(table: Table, path: Path) -> Path:
    """Save a picture of the summary, with two standard errors."""
    methods = list(dict.fromkeys(row["method"] for row in table))
    figure = Figure(figsize=(8, 1 + 0.35 * len(methods)), layout="constrained")
    axes = figure.subplots()
    multiples = sorted({row["multiple"] for row in table})
    for b, colour in zip(multiples, ("tab:blue", "tab:orange", "black"), strict=False):
        rows = [row for row in table if row["multiple"] == b]
        axes.errorbar(
            [row["mean"] for row in rows],
            [methods.index(row["method"]) for row in rows],
            xerr=[2 * row["error"] for row in rows],
            fmt="o",
            color=colour,
            capsize=3,
            label=f"b = {b}",
        )
    axes.set_yticks(range(len(methods)), methods)
    axes.invert_yaxis()
    axes.set(xlabel="M on the test sample")
    axes.grid(axis="x", alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=110)
    return path


Judged = Iterator[tuple[str, float, Outcome]]


def _capacities(trial: Trial) -> list[tuple[float, Any]]:
    return [(b, capacity_of(b, trial.prevalence)) for b in trial.multiples]


def _classical(model: Any, split: CreditSplit, seed: int, trial: Trial) -> Judged:
    flagged = model.fit(split.X_train, split.y_train).predict(split.X_test) == 1
    for b, capacity in _capacities(trial):
        yield "classical", b, judge(flagged, split.y_test, capacity)


def _halves(model: Any, split: CreditSplit, seed: int, trial: Trial) -> Judged:
    fit, calibration = split.fit_half, split.calibration_half
    score = fit_scores(model, split.X_train[fit], split.y_train[fit])
    unseen, test = score(split.X_train[calibration]), score(split.X_test)
    for b, capacity in _capacities(trial):
        yield "halves", b, judge_threshold(unseen, test, split.y_test, capacity)


def _out_of_bag(model: Any, split: CreditSplit, seed: int, trial: Trial) -> Judged:
    forest = clone(model).set_params(oob_score=True).fit(split.X_train, split.y_train)
    unseen, test = forest.oob_decision_function_[:, 1], forest.predict_proba(split.X_test)[:, 1]
    for b, capacity in _capacities(trial):
        yield "out-of-bag", b, judge_threshold(unseen, test, split.y_test, capacity)
        yield "top", b, judge_top(test, split.y_test, capacity)
        if ", paper, " in trial.method:
            yield "classical", b, judge(test > 0.5, split.y_test, capacity)


def _cross_fitted(model: Any, split: CreditSplit, seed: int, trial: Trial) -> Judged:
    unseen = _unseen_scores(model, split, seed)
    test = fit_scores(model, split.X_train, split.y_train)(split.X_test)
    for b, capacity in _capacities(trial):
        yield "cross-fitted", b, judge_threshold(unseen, test, split.y_test, capacity)
        yield "top", b, judge_top(test, split.y_test, capacity)


def _unseen_scores(model: Any, split: CreditSplit, seed: int) -> Any:
    """Return the score of each item by a model that was fitted on four fifths without it."""
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    method = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
    output = cross_val_predict(model, split.X_train, split.y_train, cv=folds, method=method)
    return output[:, 1] if output.ndim == 2 else output


def _ceiling(split: CreditSplit, seed: int, trial: Trial) -> Judged:
    model = plain_boosting(seed)
    test = fit_scores(model, split.X_others, split.y_others)(split.X_test)
    for b, capacity in _capacities(trial):
        yield "ceiling", b, judge_top(test, split.y_test, capacity)


_SCHEMES: dict[str, Callable[[Any, CreditSplit, int, Trial], Judged]] = {
    "classical": _classical,
    "halves": _halves,
    "out-of-bag": _out_of_bag,
    "cross-fitted": _cross_fitted,
}


def main() -> None:
    """Run, save, draw and print."""
    parser = study_parser(__doc__, HERE, reps=20)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    options = parser.parse_args()
    if not options.table:
        config = CreditLearnersConfig(methods=tuple(options.methods), repetitions=options.reps)
        rows = run_stored("learners_credit", run_trial, trials_of(config), n_jobs=options.jobs)
        write_table(summary(rows), options.out / "credit.csv")
    draw(read_table(options.out / "credit.csv"), options.out / "credit.png")


if __name__ == "__main__":
    main()
