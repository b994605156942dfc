"""Nearest neighbours: k and threshold chosen together, against k by accuracy and then a threshold.

Section 4.1 of the paper. When rare items are few, most k have the same accuracy. The rule for these
ties decides the comparison. Three readings are shown: ties to the smallest k in both choices, to
the largest k in both, and to the largest k in the joint choice alone.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import NearestNeighbors

from shortlist._core.arrays import Floats, Mask, Rows
from shortlist.capacity import Capacity

from ..runner import OnProgress, run_all
from ..tables import Table, select_rows
from .credit_protocol import CreditConfig, capacity_of, draw_sample, judge_threshold
from .drawing import OURS, new_figure
from .statements import jackknife

__all__ = ["QUICK", "Config", "digest", "draw", "run", "scores_by_k"]

_MARGIN = 1e-6

# How ties between k are broken in the joint choice, and in that by accuracy.
READINGS = {
    "smallest": ("smallest", "smallest"),
    "largest": ("largest", "largest"),
    "largest in the joint choice": ("largest", "smallest"),
}

_SHADES = ((OURS, "o"), ("dimgrey", "s"), ("darkgrey", "D"))


@dataclass(frozen=True)
class Config(CreditConfig):
    """Settings of the study."""

    max_neighbors: int = 50


#: Three repetitions at three shares.
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
    unseen = scores_by_k(X_fit, y_fit, split.X_train[calibration], one.max_neighbors)
    test = scores_by_k(X_fit, y_fit, split.X_test, one.max_neighbors)
    accuracies = _accuracy_by_k(X_fit, y_fit, one.max_neighbors, seed=one.repetition)
    rows: Table = []
    for b in one.multiples:
        capacity = capacity_of(b, one.prevalence)
        found = _found_by_k(unseen, split.y_train[calibration], capacity)
        for method, criterion in (("post-hoc", accuracies), ("joint", found)):
            for tie_break in ("smallest", "largest"):
                column = _best_column(criterion, tie_break=tie_break)
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
    """Return the percentage gain of joint over post-hoc choice, with jackknife errors."""
    cells = dict.fromkeys((r["prevalence"], r["multiple"]) for r in table)
    rows = []
    for (prevalence, multiple), (reading, ties) in product(cells, READINGS.items()):
        cell = {"prevalence": prevalence, "multiple": multiple}
        joint, post_hoc = (
            np.array([r["adjusted_detection"] for r in select_rows(table, **cell, **choice)])
            for choice in (
                {"method": "joint", "tie_break": ties[0]},
                {"method": "post-hoc", "tie_break": ties[1]},
            )
        )
        gain, error = jackknife(_gain_percent, joint, post_hoc)
        rows.append(
            {
                **cell,
                "tie_break": reading,
                "joint": float(joint.mean()),
                "post_hoc": float(post_hoc.mean()),
                "gain_percent": gain,
                "jackknife_error": error,
            }
        )
    return rows


def _gain_percent(joint: Floats, post_hoc: Floats) -> float:
    return 100 * (joint.mean() / post_hoc.mean() - 1) if post_hoc.any() else np.inf


def draw(table: Table) -> Any:
    """Draw the gain against the share of rare cases, a panel for each rule for ties."""
    figure = new_figure(14, 4.2)
    panels = figure.subplots(1, len(READINGS), sharey=True)
    shades = dict(zip(sorted({row["multiple"] for row in table}), _SHADES, strict=False))
    for ax, tie_break in zip(panels, READINGS, strict=True):
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


def _found_by_k(scores: Floats, y: NDArray[np.int64], capacity: Capacity) -> Rows:
    return np.array([judge_threshold(column, column, y, capacity).found for column in scores.T])


def _best_column(criterion: Rows, *, tie_break: str) -> int:
    """Return the place of the largest value; of several, the first or the last."""
    best = np.flatnonzero(criterion == criterion.max())
    return int(best[0] if tie_break == "smallest" else best[-1])


def scores_by_k(X: Floats, y: NDArray[np.int64], items: Floats, max_neighbors: int) -> Floats:
    """Score items with every number of neighbours (columns) from one search.

    Column k - 1 equals the score of ``KernelKNeighborsClassifier(k)``.
    """
    deviations = X.std(axis=0, ddof=1)
    deviations[deviations == 0] = np.inf  # a constant feature does not count
    search = NearestNeighbors(n_neighbors=max_neighbors + 1, algorithm="brute")
    distances, rows = search.fit(X / deviations).kneighbors(items / deviations)
    is_rare = y[rows] == 1
    columns = [_rare_share(distances, is_rare, k) for k in range(1, max_neighbors + 1)]
    return np.column_stack(columns)


def _rare_share(distances: Floats, is_rare: Mask, k: int) -> Floats:
    """Weigh the nearest k by a Gaussian of their distance over that of neighbour k + 1."""
    quotients = distances[:, :k] / np.maximum(distances[:, [k]], _MARGIN)
    quantile = norm.isf(1 / (2 * (k + 1)))
    weights = np.exp(-0.5 * (quantile * np.clip(quotients, _MARGIN, 1 - _MARGIN)) ** 2)
    return (weights * is_rare[:, :k]).sum(axis=1) / weights.sum(axis=1)


def _accuracy_by_k(X: Floats, y: NDArray[np.int64], max_neighbors: int, *, seed: int) -> Rows:
    """Count the correct votes in five folds; counts tie exactly where accuracies do."""
    correct = np.zeros(max_neighbors, dtype=np.intp)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y):
        votes = scores_by_k(X[train], y[train], X[test], max_neighbors) > 0.5
        correct += (votes == (y[test] == 1)[:, np.newaxis]).sum(axis=0)
    return correct
