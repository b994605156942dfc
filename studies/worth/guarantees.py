"""Promises about effort over 10,000 calibrations, and the bounds behind them.

    python -m studies.worth.guarantees     # 15 minutes; writes guarantees.csv beside this file

Items take 5 to 60 minutes, independently of their scores, or longer if they are more suspicious
(`related`). Scores are uniform, and the mean work of a threshold is known from four million items.
`over` is the share of calibrations in which it exceeds the budget per item, promised at most 5 % by
"confident"; `use` is its mean as a share of the budget, promised at most 1 by "expected"; `error`
its standard error. `hoeffding` is what "confident" could use with Hoeffding's bound in place of
bets. Settings that are in the file already are not run again.
"""

from __future__ import annotations

import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from shortlist import Capacity, calibrate_threshold
from studies.harness import study_parser

COLUMNS = ["guarantee", "efforts", "n", "budget", "max_effort", "over", "use", "error", "hoeffding"]


def _minutes(u: Any, rng: np.random.Generator, related: bool) -> Any:
    """Return minutes; related ones rise with the score."""
    if related:
        return 5.0 + np.floor(56 * np.clip(0.5 * u + 0.5 * rng.uniform(size=u.size), 0, 0.999))
    return rng.integers(5, 61, size=u.size).astype(float)


def _curve(related: bool) -> Any:
    """Return the mean work per item of thresholds on p / minutes, from a large sample."""
    rng = np.random.default_rng(99)
    u = rng.uniform(size=4_000_000)
    minutes = _minutes(u, rng, related)
    worth = u / minutes
    order = np.argsort(-worth)
    return worth[order], np.cumsum(minutes[order]) / u.size


def _true_cost(threshold: float, curve: Any) -> float:
    worth, cost = curve
    place = int(np.searchsorted(-worth, -threshold))
    return float(cost[place - 1]) if place else 0.0


def _hoeffding(minutes: Any, worth: Any, c: float, largest: float) -> float:
    """Return the share of the budget that Hoeffding's bound would use on the calibration items."""
    n = worth.size
    spent = np.cumsum(minutes[np.argsort(-worth)]) / n
    margin = largest * np.sqrt(np.log(20) / (2 * n))
    fits = spent + margin <= c
    return float(spent[fits][-1] / c) if fits.any() else 0.0


def _setting(guarantee: str, related: bool, n: int, c: float, largest: float, reps: int) -> Any:
    rng, curve = np.random.default_rng(n), _curve(related)
    costs, simple = np.empty(reps), np.empty(reps)
    capacity = Capacity.effort(c, per=1)
    for i in range(reps):
        u = rng.uniform(size=n)
        minutes = _minutes(u, rng, related)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = calibrate_threshold(
                u, capacity, efforts=minutes, max_effort=largest, guarantee=guarantee
            )
        costs[i] = _true_cost(found.value, curve)
        simple[i] = _hoeffding(minutes, u / minutes, c, largest)
    use = costs / c
    return [
        guarantee, "related" if related else "any", n, c, largest, f"{np.mean(costs > c):.4f}",
        f"{use.mean():.3f}", f"{use.std() / np.sqrt(reps):.3f}",
        f"{simple.mean():.3f}" if guarantee == "confident" else "",
    ]  # fmt: skip


def main() -> None:
    """Run all settings, and write the table."""
    options = study_parser(__doc__ or "", Path(__file__).parent, reps=10_000).parse_args()
    path = options.out / "guarantees.csv"
    if not path.exists():
        _append(path, COLUMNS)
    done = {tuple(row[:5]) for row in csv.reader(path.open())}
    for guarantee in ("expected", "confident"):
        for related, n, c, largest in (
            (False, 200, 3.0, 60.0), (True, 200, 3.0, 60.0), (False, 1_000, 0.5, 60.0),
            (True, 1_000, 1.0, 120.0), (False, 4_000, 0.5, 60.0),
        ):  # fmt: skip
            efforts = "related" if related else "any"
            if tuple(map(str, (guarantee, efforts, n, c, largest))) not in done:
                reps = options.reps if n < 4_000 else options.reps // 10
                row = _setting(guarantee, related, n, c, largest, reps)
                print(*row, sep=", ", flush=True)
                _append(path, row)


def _append(path: Path, row: list[Any]) -> None:
    with path.open("a", newline="") as file:
        csv.writer(file).writerow(row)


if __name__ == "__main__":
    main()
