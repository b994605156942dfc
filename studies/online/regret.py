"""Regret against the clairvoyant top K as T grows: like log T, like its root, or like T?

    python -m studies.online.regret

T identically distributed items arrive, and K = T / 50 may be flagged. The value of an item is its
probability of being rare. The regret is the value of the K highest scores minus that of the flagged
items. `regret.csv` has the mean regret of each rule and T; what is there is not run again.
`regret_growth.csv` says how it grows.
"""

from __future__ import annotations

import argparse
import copy
import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from shortlist import Capacity
from shortlist.online import BudgetController, Controller, EmaController, QuantileTracker
from studies.harness import markdown
from studies.online.regret_rules import (
    SHARE,
    draw,
    learn_from_zero,
    optimal,
    optimal_table,
    resolve,
    static,
    worth,
)
from studies.tables import Table, write_table

HERE = Path(__file__).parent
COLUMNS = ["horizon", "rule", "repetitions", "regret", "standard_error"]
REPETITIONS = {500: 2_000, 1_000: 1_000, 2_000: 800, 4_000: 500, 8_000: 400, 16_000: 250}
REPETITIONS |= {32_000: 200}
OPTIMAL = "optimal, known scores"
Rule = Callable[[np.ndarray, int], np.ndarray]


def _rules(horizon: int, k: int) -> dict[str, Rule]:
    """Return the rules by name; ours start from calibration scores of their own."""
    capacity, rng = Capacity.count(k, per=horizon), np.random.default_rng([1, horizon])
    known = draw(500_000, rng)
    budget = BudgetController(capacity, calibration_scores=known)
    tracker = QuantileTracker(capacity, calibration_scores=known, step=0.2)
    average = EmaController(capacity, calibration_scores=known)
    window = EmaController(capacity, calibration_scores=known, window=500)

    def budget_from_one_period(scores: np.ndarray, k: int) -> np.ndarray:
        made = BudgetController(capacity, calibration_scores=draw(horizon, rng))
        return made.decide_many(scores).flagged

    def then_stop(controller: Controller) -> Rule:
        def rule(scores: np.ndarray, k: int) -> np.ndarray:
            flags = copy.deepcopy(controller).decide_many(scores).flagged
            flags[np.flatnonzero(flags)[k:]] = False
            return flags

        return rule

    return {
        "static threshold, then stop": static,
        "tracker, step 0.2, then stop": then_stop(tracker),
        "the paper's rule, average, then stop": then_stop(average),
        "the paper's rule, window of 500, then stop": then_stop(window),
        "re-solved, learned from zero": learn_from_zero,
        "BudgetController, T calibration scores": budget_from_one_period,
        "BudgetController, 500,000 calibration scores": lambda scores, k: (
            copy.deepcopy(budget).decide_many(scores).flagged
        ),
        "re-solved, known scores": resolve,
        OPTIMAL: optimal,
    }


def run(horizon: int, repetitions: int, done: set[tuple[str, str]]) -> list[list[str]]:
    """Apply all rules that are not done to the same streams of T items."""
    k = round(SHARE * horizon)
    rules = {
        name: rule for name, rule in _rules(horizon, k).items() if (str(horizon), name) not in done
    }
    lost: dict[str, list[float]] = {name: [] for name in rules}
    gained = []
    for repetition in range(repetitions):
        scores = draw(horizon, np.random.default_rng([2, horizon, repetition]))
        value = worth(scores)
        best = np.sort(value)[-k:].sum()
        for name, rule in rules.items():
            flags = rule(scores, k)
            assert flags.sum() <= k, f"{name} flags more than {k}"
            lost[name].append(best - value[flags].sum())
        gained.append(best)
    if OPTIMAL in rules:
        gains = [best - each for best, each in zip(gained, lost[OPTIMAL], strict=True)]
        _check_optimum(gains, float(optimal_table(horizon, k)[1][k]))
    return [
        [str(horizon), name, str(repetitions), f"{np.mean(each):.4f}", f"{_error(each):.4f}"]
        for name, each in lost.items()
    ]


def _error(values: list[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def _check_optimum(gained: list[float], expected: float) -> None:
    """Check the value of the optimal rule against dynamic programming."""
    assert abs(np.mean(gained) - expected) < 5 * _error(gained), (np.mean(gained), expected)


# --- growth ------------------------------------------------------------------------------------


def fit(horizons: np.ndarray, regret: np.ndarray, error: np.ndarray, growth: Callable) -> tuple:
    """Return slope, its standard error, and the misfit of regret = a + b growth(T), weighted."""
    design = np.column_stack([np.ones(horizons.size), growth(horizons)]) / error[:, np.newaxis]
    cover = np.linalg.inv(design.T @ design)
    a, b = cover @ design.T @ (regret / error)
    misfit = np.sum(((regret - a - b * growth(horizons)) / error) ** 2)
    return b, np.sqrt(cover[1, 1]), misfit


def read(file: Path) -> dict[str, np.ndarray]:
    """Return T, regret and its standard error for each rule."""
    found: dict[str, list[list[float]]] = {}
    with file.open(newline="") as lines:
        for horizon, rule, _, regret, error in list(csv.reader(lines))[1:]:
            found.setdefault(rule, []).append([float(horizon), float(regret), float(error)])
    return {rule: np.array(sorted(rows)).T for rule, rows in found.items()}


def growth_of(file: Path) -> Table:
    """Return for each rule the slopes on log T and on the root of T, and how ill they fit."""
    rows = []
    for rule, each in read(file).items():
        slope, error, misfit = fit(*each, np.log)
        root, root_error, root_misfit = fit(*each, np.sqrt)
        rows.append({"rule": rule, "log_slope": slope, "log_error": error, "log_misfit": misfit})
        rows[-1] |= {"thousand_root_slope": 1000 * root, "thousand_root_error": 1000 * root_error}
        rows[-1]["root_misfit"] = root_misfit
    return rows


def report(file: Path) -> str:
    """Return two tables: regrets with standard errors, and how they grow."""
    found = read(file)
    horizons = next(iter(found.values()))[0]
    regrets = [
        [rule, *(f"{mean:.3f} ± {error:.3f}" for mean, error in zip(*rows[1:], strict=True))]
        for rule, rows in found.items()
    ]
    losses = markdown(["detections lost", *(f"T = {int(each):,}" for each in horizons)], regrets)
    if horizons.size < 3:
        return losses  # too few to say how they grow
    growth = growth_of(file)
    write_table(growth, file.with_name("regret_growth.csv"))
    growths = [
        [
            each["rule"],
            f"{each['log_slope']:.3f} ± {each['log_error']:.3f}",
            f"{each['log_misfit']:.1f}",
            f"{each['thousand_root_slope']:.2f} ± {each['thousand_root_error']:.2f}",
            f"{each['root_misfit']:.1f}",
        ]
        for each in growth
    ]
    freedom = f"{horizons.size - 2} degrees of freedom"
    headings = ["rule", "slope on log T", f"misfit (χ², {freedom})"]
    headings += ["1,000 × slope on √T", "misfit"]
    return losses + "\n\n" + markdown(headings, growths)


def draw_picture(file: Path) -> None:
    """Draw regret over T on two logarithmic axes, and without the fast growers against log T."""
    found = read(file)
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    axes = figure.subplots(ncols=2)
    for rule, (horizons, regret, error) in found.items():
        for ax in axes:
            ax.errorbar(horizons, regret, 2 * error, marker="o", markersize=3, label=rule)
    axes[0].set(xscale="log", yscale="log", title="A straight line of slope ½ is √T")
    axes[1].set(xscale="log", ylim=(0, 0.6), title="A straight line is log T")
    for ax in axes:
        ax.set(xlabel="T, with K = T / 50 flags", ylabel="Detections lost against the top K")
    axes[0].legend(frameon=False, fontsize=7)
    figure.savefig(file.with_suffix(".png"), dpi=110)


def main(file: Path, horizons: list[int]) -> str:
    """Run what is missing, draw, and return the tables."""
    if not file.exists():
        file.write_text(",".join(COLUMNS) + "\n")
    with file.open(newline="") as lines:
        done = {(row[0], row[1]) for row in csv.reader(lines)}
    for horizon in horizons:
        rows = run(horizon, REPETITIONS[horizon], done)
        with file.open("a", newline="") as out:
            csv.writer(out, lineterminator="\n").writerows(rows)
    draw_picture(file)
    return report(file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE, help="folder of summary and picture")
    parser.add_argument("--horizons", type=int, nargs="*", default=list(REPETITIONS))
    options = parser.parse_args()
    print(main(options.out / "regret.csv", options.horizons))
