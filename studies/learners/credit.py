"""Learners on the credit data: the paper's settings, recommended ones, and the ceiling.

A method is written as *family, preset, where the threshold comes from*:

- "halves": fitted on one half of the training sample, calibrated on the other, as in the paper;
- "out-of-bag", for forests: fitted on all of it, calibrated on out-of-bag scores;
- "cross-fitted": fitted on all of it, calibrated on the scores of five folds;
- "classical": fitted on all of it, with the model's own threshold.

The ceiling is boosting on all clients outside of the test sample, cut at the top of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .._core.scoring import out_of_bag_scores, rare_scores, with_out_of_bag
from ..datasets import load_credit_default
from ..learners import make_learner
from ._credit_protocol import (
    CreditSplit,
    Outcome,
    capacity_of,
    cross_fitted_scores,
    draw_split,
    fit_scores,
    judge,
    judge_threshold,
    judge_top,
)
from ._runner import run_all
from ._table import Table, summarise

__all__ = ["METHODS", "CreditLearnersConfig", "draw", "run"]

#: Everything that is compared. Out-of-bag and cross-fitted methods also report the top of the test
#: sample, and the paper's forest the classical rule, from the same fit.
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


def run(config: CreditLearnersConfig = CreditLearnersConfig(), **how: Any) -> Table:  # noqa: B008
    """Return one row for each method, repetition and capacity.

    Keywords are those of `run_all`: `store`, `n_jobs` and `on_progress`. Methods are compared on
    the same splits, and runs of different length agree.
    """
    trials = [
        Trial(method, repetition, config.prevalence, config.multiples, config.rows, config.seed)
        for repetition in range(config.repetitions)
        for method in config.methods
    ]
    return run_all(run_trial, trials, **how)


def run_trial(trial: Trial) -> Table:
    """Draw the split, and judge the method on it."""
    X, y = _credit(trial.rows)
    rng = np.random.default_rng([trial.seed, trial.repetition])
    split = draw_split(X, y, prevalence=trial.prevalence, rng=rng)
    seed = int(rng.integers(2**31))
    if trial.method == "ceiling":
        judged = _ceiling(split, seed, trial)
    else:
        family, preset, scheme = trial.method.split(", ")
        model = _single_threaded(make_learner(family, preset, random_state=seed))
        judged = (
            (f"{family}, {preset}, {name}", b, outcome)
            for name, b, outcome in _SCHEMES[scheme](model, split, seed, trial)
        )
    return [
        {"repetition": trial.repetition, "method": name, "multiple": b, **asdict(outcome)}
        for name, b, outcome in judged
    ]


def draw(table: Table, path: Path) -> Path:
    """Save a picture of M for every method and capacity, with two standard errors."""
    from matplotlib.figure import Figure

    methods = list(dict.fromkeys(row["method"] for row in table))
    figure = Figure(figsize=(8, 1 + 0.35 * len(methods)), layout="constrained")
    axes = figure.subplots()
    multiples = sorted({row["multiple"] for row in table})
    for b, colour in zip(multiples, ("tab:blue", "tab:orange", "black"), strict=False):
        rows = summarise([r for r in table if r["multiple"] == b], ["method"], "adjusted_detection")
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


@cache
def _credit(rows: int) -> Any:
    return load_credit_default(rows=rows)


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
    forest = with_out_of_bag(model).fit(split.X_train, split.y_train)
    unseen = out_of_bag_scores(forest, rare_label=1)
    test = rare_scores(forest, split.X_test, rare_label=1)
    for b, capacity in _capacities(trial):
        yield "out-of-bag", b, judge_threshold(unseen, test, split.y_test, capacity)
        yield "top", b, judge_top(test, split.y_test, capacity)
        if ", paper, " in trial.method:
            yield "classical", b, judge(test > 0.5, split.y_test, capacity)


def _cross_fitted(model: Any, split: CreditSplit, seed: int, trial: Trial) -> Judged:
    unseen = cross_fitted_scores(model, split.X_train, split.y_train, seed=seed)
    test = fit_scores(model, split.X_train, split.y_train)(split.X_test)
    for b, capacity in _capacities(trial):
        yield "cross-fitted", b, judge_threshold(unseen, test, split.y_test, capacity)
        yield "top", b, judge_top(test, split.y_test, capacity)


def _ceiling(split: CreditSplit, seed: int, trial: Trial) -> Judged:
    model = _single_threaded(make_learner("boosting", random_state=seed)).set_params(num_leaves=8)
    test = fit_scores(model, split.X_others, split.y_others)(split.X_test)
    for b, capacity in _capacities(trial):
        yield "ceiling", b, judge_top(test, split.y_test, capacity)


def _single_threaded(model: Any) -> Any:
    """Keep LightGBM from using every core: on a busy machine its threads wait for each other."""
    return model.set_params(n_jobs=1) if "n_jobs" in model.get_params() else model


_SCHEMES: dict[str, Callable[[Any, CreditSplit, int, Trial], Judged]] = {
    "classical": _classical,
    "halves": _halves,
    "out-of-bag": _out_of_bag,
    "cross-fitted": _cross_fitted,
}
