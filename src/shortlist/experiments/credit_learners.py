"""Learners on the credit data: the paper's settings, recommended ones, and the ceiling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._sklearn import out_of_bag_scores, rare_scores, with_out_of_bag
from ..datasets import load_credit_default
from ..learners import make_learner
from ._credit_protocol import (
    CreditSplit,
    Floats,
    capacity_of,
    cross_fitted_scores,
    draw_split,
    fit_scores,
    judge,
    judge_threshold,
    judge_top,
)
from ._table import Table, summarise

__all__ = ["CreditLearnersConfig", "draw", "run", "run_repetition"]


@dataclass(frozen=True)
class CreditLearnersConfig:
    """Settings of the study."""

    prevalence: float = 0.02
    multiples: tuple[float, ...] = (1, 2, 3)
    methods: tuple[str, ...] = ("classical", "halves", "forest", "boosting", "ceiling")
    rows: int = 30_000
    repetitions: int = 20
    seed: int = 0


def run(
    config: CreditLearnersConfig = CreditLearnersConfig(),  # noqa: B008 - frozen
    *,
    progress: Callable[[Table], None] | None = None,
) -> Table:
    """Return one row for each repetition, method and capacity.

    Repetition r depends on the seed and r alone, so that runs of different length agree. `progress`
    is called with the rows of each repetition as it ends.
    """
    X, y = load_credit_default(rows=config.rows)
    table: Table = []
    for repetition in range(config.repetitions):
        rows = run_repetition(X, y, repetition, config)
        table += rows
        if progress is not None:
            progress(rows)
    return table


def run_repetition(X: Floats, y: Any, repetition: int, config: CreditLearnersConfig) -> Table:
    """Draw one split, and judge every method on it."""
    rng = np.random.default_rng([config.seed, repetition])
    split = draw_split(X, y, prevalence=config.prevalence, rng=rng)
    seed = int(rng.integers(2**31))
    return [
        {"repetition": repetition, "method": method, "multiple": multiple, **asdict(outcome)}
        for group in config.methods
        for method, multiple, outcome in _METHODS[group](split, seed, config)
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


Judged = Iterator[tuple[str, float, Any]]


def _capacities(config: CreditLearnersConfig) -> list[tuple[float, Any]]:
    return [(b, capacity_of(b, config.prevalence)) for b in config.multiples]


def _classical(split: CreditSplit, seed: int, config: CreditLearnersConfig) -> Judged:
    """Fit on the whole training sample, and keep the default threshold."""
    for name in ("svm", "knn"):
        model = make_learner(name, "paper", random_state=seed).fit(split.X_train, split.y_train)
        flagged = model.predict(split.X_test) == 1
        for b, capacity in _capacities(config):
            yield f"{name}, paper, classical", b, judge(flagged, split.y_test, capacity)


def _halves(split: CreditSplit, seed: int, config: CreditLearnersConfig) -> Judged:
    """Fit on one half, calibrate on the other: the paper's g_b."""
    fit, calibration = split.fit_half, split.calibration_half
    for name in ("forest", "svm", "knn"):
        model = make_learner(name, "paper", random_state=seed)
        score = fit_scores(model, split.X_train[fit], split.y_train[fit])
        unseen, test = score(split.X_train[calibration]), score(split.X_test)
        for b, capacity in _capacities(config):
            yield f"{name}, paper, halves", b, judge_threshold(unseen, test, split.y_test, capacity)


def _out_of_bag(preset: str, split: CreditSplit, seed: int, config: CreditLearnersConfig) -> Judged:
    """Fit one forest on everything; threshold from out-of-bag scores, and by default."""
    forest = with_out_of_bag(make_learner("forest", preset, random_state=seed))
    forest.fit(split.X_train, split.y_train)
    unseen = out_of_bag_scores(forest, rare_label=1)
    test = rare_scores(forest, split.X_test, rare_label=1)
    flagged = forest.classes_[np.argmax(forest.predict_proba(split.X_test), axis=1)] == 1
    for b, capacity in _capacities(config):
        outcome = judge_threshold(unseen, test, split.y_test, capacity)
        yield f"forest, {preset}, out-of-bag", b, outcome
        yield f"forest, {preset}, top", b, judge_top(test, split.y_test, capacity)
        yield f"forest, {preset}, classical", b, judge(flagged, split.y_test, capacity)


def _cross_fitted(name: str, split: CreditSplit, seed: int, config: CreditLearnersConfig) -> Judged:
    """Fit on everything, with a threshold from the scores of five folds."""
    model = _single_threaded(make_learner(name, "recommended", random_state=seed))
    unseen = cross_fitted_scores(model, split.X_train, split.y_train, seed=seed)
    test = fit_scores(model, split.X_train, split.y_train)(split.X_test)
    for b, capacity in _capacities(config):
        outcome = judge_threshold(unseen, test, split.y_test, capacity)
        yield f"{name}, recommended, cross-fitted", b, outcome
        yield f"{name}, recommended, top", b, judge_top(test, split.y_test, capacity)


def _single_threaded(model: Any) -> Any:
    """Keep LightGBM from using every core: on a busy machine its threads wait for each other."""
    return model.set_params(n_jobs=1) if "n_jobs" in model.get_params() else model


def _ceiling(split: CreditSplit, seed: int, config: CreditLearnersConfig) -> Judged:
    """Train boosting on all other clients, about forty times the rare cases."""
    model = _single_threaded(make_learner("boosting", random_state=seed)).set_params(num_leaves=8)
    test = fit_scores(model, split.X_others, split.y_others)(split.X_test)
    for b, capacity in _capacities(config):
        yield "ceiling", b, judge_top(test, split.y_test, capacity)


_METHODS: dict[str, Callable[[CreditSplit, int, CreditLearnersConfig], Judged]] = {
    "classical": _classical,
    "halves": _halves,
    "paper forest": partial(_out_of_bag, "paper"),
    "forest": partial(_out_of_bag, "recommended"),
    "boosting": partial(_cross_fitted, "boosting"),
    "svm": partial(_cross_fitted, "svm"),
    "knn": partial(_cross_fitted, "knn"),
    "logistic": partial(_cross_fitted, "logistic"),
    "ceiling": _ceiling,
}
