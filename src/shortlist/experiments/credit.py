"""M on the credit data: forest, support vectors and neighbours at three capacities (section 3.7).

Beside the paper's methods stand SMOTE with a threshold at the capacity, which is the fair
comparison, and the recommended forest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._credit_runs import CreditConfig, means_of, run_method, runs_of
from ._drawing import draw_credit_grid
from ._runner import OnProgress, run_all
from ._table import Table

__all__ = ["LEARNERS", "QUICK", "Config", "digest", "draw", "run"]

LEARNERS = ("forest", "svm", "knn")
_METHODS = ("classical", "smote", "capacity", "smote-calibrated")
_PAIRS = [*((learner, m) for learner in LEARNERS for m in _METHODS), ("forest", "recommended")]


@dataclass(frozen=True)
class Config(CreditConfig):
    """Settings of the study."""


#: Two repetitions at three shares, for a look.
QUICK = Config(prevalences=(0.005, 0.02, 0.05), repetitions=2)


def run(
    config: Config,
    *,
    store: Path | None = None,
    n_jobs: int | None = None,
    on_progress: OnProgress | None = None,
) -> Table:
    """Return a row for each repetition, share, learner, method and capacity."""
    runs = runs_of(config, _PAIRS)
    return run_all(run_method, runs, store=store, n_jobs=n_jobs, on_progress=on_progress)


def digest(table: Table) -> Table:
    """Return the means over repetitions."""
    return means_of(table)


def draw(table: Table) -> Any:
    """Draw a column for each learner and a row for each capacity."""
    return draw_credit_grid(table, LEARNERS, _METHODS, for_all=["recommended"])
