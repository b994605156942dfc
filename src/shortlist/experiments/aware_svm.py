"""Support vectors chosen for the capacity: g, g_b and g_b* (section 4.3).

Beside the paper's choice of all thirty stand its second variant, the part of the path that detects
most, and our cross-fitted choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._credit_runs import CreditConfig, means_of, run_method, runs_of
from ._drawing import draw_credit_grid
from ._runner import OnProgress, run_all
from ._table import Table

__all__ = ["QUICK", "Config", "digest", "draw", "run"]

_METHODS = ("classical", "capacity", "aware", "aware-best-prefix", "aware-cross-fit")


@dataclass(frozen=True)
class Config(CreditConfig):
    """Settings of the study; as many repetitions as in the paper."""


#: Two repetitions at three shares, for a look.
QUICK = Config(prevalences=(0.005, 0.02, 0.05), repetitions=2)


def run(
    config: Config,
    *,
    store: Path | None = None,
    n_jobs: int | None = None,
    on_progress: OnProgress | None = None,
) -> Table:
    """Return a row for each repetition, share, method and capacity."""
    runs = runs_of(config, [("svm", method) for method in _METHODS])
    return run_all(run_method, runs, store=store, n_jobs=n_jobs, on_progress=on_progress)


def digest(table: Table) -> Table:
    """Return the means over repetitions."""
    return means_of(table)


def draw(table: Table) -> Any:
    """Draw a panel for each capacity, side by side."""
    return draw_credit_grid(table, ["svm"], _METHODS)
