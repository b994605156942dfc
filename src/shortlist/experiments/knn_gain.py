"""Nearest neighbours: k and threshold chosen together, against k by accuracy and then a threshold.

The paper's section 4.1. Accuracy ties over most k when rare items are few, and the rule for ties
decides the comparison, so that both rules are shown.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from ..capacity import Capacity
from ..learners._choice import best_column
from ..learners._kernel_knn import rare_shares
from ..learners._neighbors import NeighborSearch
from ._comparison import jackknife
from ._credit_protocol import Floats, capacity_of, judge_threshold
from ._credit_runs import CreditConfig, draw_sample
from ._drawing import OURS, new_figure
from ._runner import OnProgress, run_all
from ._table import Table

__all__ = ["QUICK", "Config", "digest", "draw", "run"]

Ints = NDArray[np.intp]

_SHADES = ((OURS, "o"), ("dimgrey", "s"), ("darkgrey", "D"))


@dataclass(frozen=True)
class Config(CreditConfig):
    """Settings of the study."""

    max_neighbors: int = 50


#: Three repetitions at three shares, for a look.
QUICK = Config(prevalences=(0.005, 0.02, 0.05), repetitions=3)


@dataclass(frozen=True)
class _Repetition:
    prevalence: float
    repetition: int
    multiples: tuple[float, ...]
    max_neighbors: int
    rows: int
    seed: int


def run(
    config: Config,
    *,
    store: Path | None = None,
    n_jobs: int | None = None,
    on_progress: OnProgress | None = None,
) -> Table:
    """Return one row for each repetition, share, capacity, method and tie rule."""
    shared = (config.multiples, config.max_neighbors, config.rows, config.seed)
    repetitions = [
        _Repetition(prevalence, repetition, *shared)
        for repetition in range(config.repetitions)
        for prevalence in config.prevalences
    ]
    return run_all(_run_one, repetitions, store=store, n_jobs=n_jobs, on_progress=on_progress)


def _run_one(one: _Repetition) -> Table:
    """Draw one split; all k share the searches of neighbours."""
    split, _ = draw_sample(one.rows, one.prevalence, one.repetition, one.seed)
    fit, calibration = split.fit_half, split.calibration_half
    X_fit, y_fit = split.X_train[fit], split.y_train[fit]
    unseen = _scores_by_k(X_fit, y_fit, split.X_train[calibration], one.max_neighbors)
    test = _scores_by_k(X_fit, y_fit, split.X_test, one.max_neighbors)
    accuracies = _accuracy_by_k(X_fit, y_fit, one.max_neighbors, seed=one.repetition)
    rows: Table = []
    for b in one.multiples:
        capacity = capacity_of(b, one.prevalence)
        found = _found_by_k(unseen, split.y_train[calibration], capacity)
        for method, criterion in (("post-hoc", accuracies), ("joint", found)):
            for tie_break in ("smallest", "largest"):
                column = best_column(criterion, tie_break=tie_break)
                outcome = judge_threshold(
                    unseen[:, column], test[:, column], split.y_test, capacity
                )
                rows.append(
                    {
                        "prevalence": one.prevalence,
                        "repetition": one.repetition,
                        "method": method,
                        "tie_break": tie_break,
                        "multiple": b,
                        "k": column + 1,
                        **asdict(outcome),
                    }
                )
    return rows


def digest(table: Table) -> Table:
    """Return the percentage gain of joint over post-hoc choice, with jackknife errors.

    Both k are chosen by the same rule for ties; the errors leave out one repetition at a time.
    """
    keys = dict.fromkeys((r["prevalence"], r["multiple"], r["tie_break"]) for r in table)
    rows = []
    for prevalence, multiple, tie_break in keys:
        joint, post_hoc = (
            np.array(
                [
                    row["adjusted_detection"]
                    for row in table
                    if (row["prevalence"], row["multiple"], row["tie_break"], row["method"])
                    == (prevalence, multiple, tie_break, method)
                ]
            )
            for method in ("joint", "post-hoc")
        )
        gain, error = jackknife(lambda a, b: 100 * (a.mean() / b.mean() - 1), joint, post_hoc)
        rows.append(
            {
                "prevalence": prevalence,
                "multiple": multiple,
                "tie_break": tie_break,
                "joint": float(joint.mean()),
                "post_hoc": float(post_hoc.mean()),
                "gain_percent": gain,
                "jackknife_error": error,
            }
        )
    return rows


def draw(table: Table) -> Any:
    """Draw the gain against the share of rare cases, a panel for each rule for ties."""
    figure = new_figure(10, 4.2)
    panels = figure.subplots(1, 2, sharey=True)
    shades = dict(zip(sorted({row["multiple"] for row in table}), _SHADES, strict=False))
    for ax, tie_break in zip(panels, ("smallest", "largest"), strict=True):
        for b, (colour, marker) in shades.items():
            wanted = (tie_break, b)
            rows = [r for r in digest(table) if (r["tie_break"], r["multiple"]) == wanted]
            rows.sort(key=lambda row: row["prevalence"])
            ax.errorbar(
                [row["prevalence"] for row in rows],
                [row["gain_percent"] for row in rows],
                yerr=[2 * row["jackknife_error"] for row in rows],
                marker=marker,
                capsize=3,
                color=colour,
                label=f"b = {b}",
            )
        ax.axhline(0, color="grey", linewidth=0.8)
        ax.set(title=f"ties between k to the {tie_break}", xlabel=r"share of rare cases $\pi_0$")
    panels[0].set_ylabel("gain in M of the joint choice (%)")
    panels[0].legend()
    return figure


def _found_by_k(scores: Floats, y: NDArray[np.int64], capacity: Capacity) -> Ints:
    return np.array([judge_threshold(column, column, y, capacity).found for column in scores.T])


def _scores_by_k(X: Floats, y: Any, items: Floats, max_neighbors: int) -> Floats:
    """Score items with every number of neighbours from one search."""
    neighbors = NeighborSearch(X, scale=True, algorithm="auto")
    distances, rows = neighbors.query(items, max_neighbors + 1)
    return rare_shares(
        distances,
        (y == 1)[rows[:, :-1]],
        n_neighbors=np.arange(1, max_neighbors + 1),
        kernel="gaussian",
        n_features=X.shape[1],
    )


def _accuracy_by_k(X: Floats, y: Any, max_neighbors: int, *, seed: int) -> Ints:
    """Count the correct votes in five folds; counts tie exactly where accuracies do."""
    correct = np.zeros(max_neighbors, dtype=np.intp)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y):
        votes = _scores_by_k(X[train], y[train], X[test], max_neighbors) > 0.5
        correct += (votes == (y[test] == 1)[:, np.newaxis]).sum(axis=0)
    return correct
