"""Nearest neighbours: k and threshold chosen together, against k by accuracy and then a threshold.

The paper's section 4.1. Accuracy ties over most k when rare items are few, and the rule for ties
decides the comparison, so that both rules are shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from ..datasets import load_credit_default
from ..learners._choice import best_column
from ..learners._neighbors import ScaledNeighbors
from ..learners._weights import rare_shares
from ._credit_protocol import Floats, capacity_of, draw_split, judge_threshold
from ._table import Table

__all__ = ["KnnGainConfig", "draw", "gains", "jackknife", "run", "run_repetition"]


@dataclass(frozen=True)
class KnnGainConfig:
    """Settings of the study."""

    prevalences: tuple[float, ...] = (0.02,)
    multiples: tuple[float, ...] = (1, 2, 3)
    max_neighbors: int = 50
    kernel: str = "gaussian"
    rows: int = 30_000
    repetitions: int = 10
    seed: int = 0


def run(
    config: KnnGainConfig = KnnGainConfig(),  # noqa: B008 - frozen
    *,
    progress: Callable[[Table], None] | None = None,
) -> Table:
    """Return one row for each prevalence, repetition, method, tie rule and capacity."""
    X, y = load_credit_default(rows=config.rows)
    table: Table = []
    for prevalence in config.prevalences:
        for repetition in range(config.repetitions):
            rows = run_repetition(X, y, prevalence, repetition, config)
            table += rows
            if progress is not None:
                progress(rows)
    return table


def run_repetition(
    X: Floats, y: Any, prevalence: float, repetition: int, config: KnnGainConfig
) -> Table:
    """Draw one split; all k share the searches of neighbours."""
    # The stream of credit_learners, so that repetitions are paired across studies.
    rng = np.random.default_rng([config.seed, repetition])
    split = draw_split(X, y, prevalence=prevalence, rng=rng)
    fit, calibration = split.fit_half, split.calibration_half
    X_fit, y_fit = split.X_train[fit], split.y_train[fit]
    unseen = _scores_by_k(X_fit, y_fit, split.X_train[calibration], config)
    test = _scores_by_k(X_fit, y_fit, split.X_test, config)
    accuracies = _accuracy_by_k(X_fit, y_fit, config, seed=repetition)
    rows: Table = []
    for b in config.multiples:
        capacity = capacity_of(b, prevalence)
        y_calibration = split.y_train[calibration]
        found = [
            judge_threshold(scores, scores, y_calibration, capacity).found for scores in unseen.T
        ]
        for method, criterion in (("post-hoc", accuracies), ("joint", np.array(found))):
            for tie_break in ("smallest", "largest"):
                column = best_column(criterion, tie_break=tie_break)
                outcome = judge_threshold(
                    unseen[:, column], test[:, column], split.y_test, capacity
                )
                rows.append(
                    {
                        "prevalence": prevalence,
                        "repetition": repetition,
                        "method": method,
                        "tie_break": tie_break,
                        "multiple": b,
                        "k": column + 1,
                        **asdict(outcome),
                    }
                )
    return rows


def gains(table: Table) -> Table:
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


def jackknife(
    statistic: Callable[..., float], *samples: NDArray[np.float64]
) -> tuple[float, float]:
    """Return a statistic of paired samples, and its standard error by leaving one pair out."""
    n = len(samples[0])
    left_out = np.array([statistic(*(np.delete(s, i) for s in samples)) for i in range(n)])
    error = np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())
    return float(statistic(*samples)), float(error)


def draw(table: Table, path: Path) -> Path:
    """Save a picture of the gain against the capacity, for both rules for ties."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for tie_break, colour in (("smallest", "black"), ("largest", "tab:blue")):
        rows = [row for row in gains(table) if row["tie_break"] == tie_break]
        axes.errorbar(
            [row["multiple"] for row in rows],
            [row["gain_percent"] for row in rows],
            yerr=[2 * row["jackknife_error"] for row in rows],
            marker="o",
            capsize=3,
            color=colour,
            label=f"ties between k to the {tie_break}",
        )
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.set_xticks(sorted({row["multiple"] for row in table}))
    axes.margins(y=0.25)
    axes.set(xlabel="capacity b", ylabel="gain in M of the joint choice (%)")
    axes.legend()
    figure.savefig(path, dpi=110)
    return path


def _scores_by_k(X: Floats, y: Any, items: Floats, config: KnnGainConfig) -> Floats:
    """Score items with every number of neighbours from one search."""
    neighbors = ScaledNeighbors(X, scale=True, algorithm="auto")
    distances, rows = neighbors.query(items, config.max_neighbors + 1)
    return rare_shares(
        distances,
        (y == 1)[rows[:, :-1]],
        n_neighbors=np.arange(1, config.max_neighbors + 1),
        kernel=config.kernel,
        n_features=X.shape[1],
    )


def _accuracy_by_k(X: Floats, y: Any, config: KnnGainConfig, *, seed: int) -> NDArray[np.intp]:
    """Count the correct votes in five folds; counts tie exactly where accuracies do."""
    correct = np.zeros(config.max_neighbors, dtype=np.intp)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y):
        votes = _scores_by_k(X[train], y[train], X[test], config) > 0.5
        correct += (votes == (y[test] == 1)[:, np.newaxis]).sum(axis=0)
    return correct
