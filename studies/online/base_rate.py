"""A multiple of the base rate that follows it, from the outcomes of probes.

    python -m studies.online.base_rate

Sixty days of 5,000 cases. One in a hundred is rare, from day 20 on three in a hundred, and from day
40 on one in a hundred again. The capacity is b = 2 times the rare cases; a tenth of the flags are
probes. Every morning the outcomes of the last seven days are known. `BudgetController` keeps the
base rate of the start, or takes the estimate of `estimate_missed`, or the lower end of its interval
at a confidence of 95 % in all mornings together. `base_rate.csv` has, for each stretch, the share
of the rare cases found, the flags divided by b times the rare cases, and the share of days on which
they exceed it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from shortlist import Capacity
from shortlist.feedback import estimate_missed
from shortlist.online import BudgetController
from studies.tables import Table, markdown_table, write_table

HERE = Path(__file__).parent
DAY, ARRIVALS, DAYS, MEMORY, B = 86_400.0, 5_000, 60, 7, 2
RATES = np.repeat([0.01, 0.03, 0.01], DAYS // 3)
STRETCHES = {"1 %": slice(7, 20), "then 3 %": slice(20, 40), "then 1 %": slice(40, 60)}
FIXED, ESTIMATE, LOW = "fixed", "estimate", "lower end"


def run(rule: str, seed: int) -> np.ndarray:
    """Return the rare cases found, all rare cases, and the flags of each day."""
    rng = np.random.default_rng(seed)
    budget = BudgetController(
        Capacity.multiple(B),
        calibration_scores=rng.normal(size=20_000) + 2.5 * (rng.random(20_000) < 0.01),
        period=DAY, expected_arrivals=ARRIVALS, prevalence=0.01, probe=0.1, probe_key=str(seed),
    )  # fmt: skip
    past: list[tuple] = []
    counts = np.zeros((DAYS, 3))
    for day, rate in enumerate(RATES):
        if rule != FIXED and len(past) >= MEMORY:
            budget.set_prevalence(_base_rate(rule, past[-MEMORY:], look=day - MEMORY + 1))
        is_rare = rng.random(ARRIVALS) < rate
        scores = rng.normal(size=ARRIVALS) + 2.5 * is_rare
        times = day * DAY + np.sort(rng.uniform(0, DAY, size=ARRIVALS))
        batch = budget.decide_many(scores, at=times)
        outcomes = np.where(batch.flagged, is_rare, None)  # nobody knows the others
        past.append((outcomes, batch.selected_by, batch.probabilities))
        counts[day] = (is_rare & batch.flagged).sum(), is_rare.sum(), batch.flagged.sum()
    return counts


def _base_rate(rule: str, past: list[tuple], look: int) -> float:
    outcomes, reasons, chances = (np.concatenate(parts) for parts in zip(*past, strict=True))
    if rule == ESTIMATE:
        return min(estimate_missed(outcomes, reasons, chances).prevalence, 1 / B)
    return estimate_missed(outcomes, reasons, chances, look=look).prevalence_low


def rate_table(seeds: int) -> Table:
    """Return a row for each rule and stretch."""
    rows = []
    for rule in (FIXED, ESTIMATE, LOW):
        runs = np.array([run(rule, seed) for seed in range(seeds)])
        for stretch, days in STRETCHES.items():
            found, rare, flags = (runs[:, days, column] for column in range(3))
            allowed = B * RATES[days] * ARRIVALS
            shares = found.sum(axis=1) / rare.sum(axis=1)
            rows.append(
                {
                    "rule": rule,
                    "stretch": stretch,
                    "found": float(shares.mean()),
                    "error": float(shares.std(ddof=1) / np.sqrt(seeds)),
                    "flags_over_allowed": float((flags / allowed).mean()),
                    "days_over": float((flags > allowed).mean()),
                    "seeds": seeds,
                }
            )
    return rows


def main() -> None:
    """Run, save and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the summary")
    options = parser.parse_args()
    rows = rate_table(options.seeds)
    write_table(rows, options.out / "base_rate.csv")
    print("\n".join(markdown_table(rows)))


if __name__ == "__main__":
    main()
