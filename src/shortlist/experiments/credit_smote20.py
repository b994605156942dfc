"""The credit data with the SMOTE of appendix A: up to twenty synthetic cases for a rare one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._credit_runs import CreditConfig, means_of, run_method, runs_of
from ._drawing import draw_credit_grid
from ._runner import OnProgress, run_all
from ._table import Table

__all__ = ["QUICK", "Config", "digest", "draw", "run"]

_LEARNERS = ("forest", "svm", "knn")
_METHODS = ("classical", "smote20", "capacity")


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
    """Return a row for each repetition, share, learner, method and capacity.

    The classical rule and g_b are those of `credit`, and are not fitted again.
    """
    runs = runs_of(config, [(learner, m) for learner in _LEARNERS for m in _METHODS])
    return run_all(run_method, runs, store=store, n_jobs=n_jobs, on_progress=on_progress)


def digest(table: Table) -> Table:
    """Return the means over repetitions."""
    return means_of(table)


def draw(table: Table) -> Any:
    """Draw a column for each learner and a row for each capacity."""
    return draw_credit_grid(table, _LEARNERS, _METHODS)
