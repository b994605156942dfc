"""The one-dimensional illustration: Normal(0, 1) rare items among Cauchy(mu, 1) common ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from shortlist.capacity import Capacity
from shortlist.theory import BayesRule, OptimalRule

from ..runner import OnProgress, run_all
from ..tables import Table
from .drawing import CLASSICAL, OURS, new_figure

__all__ = ["QUICK", "Config", "digest", "draw", "run"]

_COLOURS = {"classical": CLASSICAL, "capacity": OURS}
_NOWHERE: list[tuple[Any, Any]] = [(None, None)]
_LABELS = {"classical": "Rule of Bayes", "capacity": "Under the capacity"}


@dataclass(frozen=True)
class Config:
    """Settings of the paper's figure: b = 2 and one rare item in a hundred."""

    prevalence: float = 0.01
    multiple: float = 2.0
    largest_shift: float = 16.0
    n_shifts: int = 81


#: A coarser grid.
QUICK = Config(n_shifts=17)


@dataclass(frozen=True)
class _Shift:
    prevalence: float
    multiple: float
    mu: float


def run(
    config: Config,
    *,
    store: Path | None = None,
    n_jobs: int | None = None,
    on_progress: OnProgress | None = None,
) -> Table:
    """Return a row for each shift and rule: its performance, and the interval where it flags."""
    shifts = np.linspace(0, config.largest_shift, config.n_shifts)
    settings = [_Shift(config.prevalence, config.multiple, float(mu)) for mu in shifts]
    return run_all(_one_shift, settings, store=store, n_jobs=n_jobs, on_progress=on_progress)


def _one_shift(shift: _Shift) -> Table:
    rare, common = stats.norm(), stats.cauchy(shift.mu)
    capacity = Capacity.multiple(shift.multiple)
    options: dict[str, Any] = {"prevalence": shift.prevalence, "capacity": capacity}
    rules = {
        "classical": BayesRule(rare, common, **options),
        "capacity": OptimalRule(rare, common, **options),
    }
    return [
        {
            "mu": shift.mu,
            "rule": name,
            "sensitivity": rule.sensitivity,
            "specificity": rule.specificity,
            "accuracy": rule.accuracy,
            "flagged_fraction": rule.flagged_fraction,
            "adjusted_detection": rule.adjusted_detection,
            "low": low,
            "high": high,
        }
        for name, rule in rules.items()
        # A rule with two intervals has two rows; a rule that never flags has one.
        for low, high in (rule.region or _NOWHERE)
    ]


def digest(table: Table) -> Table:
    """Return every fourth shift, without the intervals."""
    shifts = sorted({row["mu"] for row in table})[::4]
    rows = {(row["mu"], row["rule"]): row for row in table if row["mu"] in shifts}
    return [{k: v for k, v in row.items() if k not in ("low", "high")} for row in rows.values()]


def draw(table: Table) -> Any:
    """Draw the four panels: sensitivity, specificity, accuracy, and where each rule flags."""
    figure = new_figure(9, 7)
    panels = figure.subplots(2, 2).ravel()
    measures = ["sensitivity", "specificity", "accuracy"]
    for ax, letter, measure in zip(panels, "ABC", measures, strict=False):
        for rule, colour in _COLOURS.items():
            points = {row["mu"]: row[measure] for row in table if row["rule"] == rule}
            ax.plot(list(points), list(points.values()), color=colour, label=_LABELS[rule])
        ax.set(title=f"{letter}  {measure.capitalize()}", xlabel=r"Shift $\mu$", ylabel=measure)
    panels[0].legend()
    _draw_regions(panels[3], table)
    return figure


def _draw_regions(ax: Any, table: Table) -> None:
    widths = {"capacity": 4.0, "classical": 1.5}
    for rule, width in widths.items():
        rows = [row for row in table if row["rule"] == rule and row["low"] is not None]
        ax.vlines(
            [row["mu"] for row in rows],
            [row["low"] for row in rows],
            [row["high"] for row in rows],
            color=_COLOURS[rule],
            linewidth=width,
        )
    ax.set(title="D  Where an item is flagged", xlabel=r"Shift $\mu$", ylabel="x")
