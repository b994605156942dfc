"""How far the lists of `select` with efforts are from the best ones, and how long they take.

    python -m studies.worth.gap     # a minute; writes gap.csv beside this file

1,000 random batches of 10 to 200 items, of four kinds, are solved again by HiGHS to a gap of zero,
which may print lines of its own.
`exact` is the share of lists that are the best one, `worst` the largest loss as a share of the best
list's value, and `in order` the mean loss of filling in order alone. The last rows are batches of a
million items, where `worst` is the reported gap to the relaxation as a share of the value.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize

from shortlist import Capacity, select
from studies.harness import study_parser

COLUMNS = ["batch", "lists", "exact", "worst", "in order"]


def _efforts(kind: str, n: int, rng: np.random.Generator) -> Any:
    if kind == "minutes":
        return rng.integers(5, 61, size=n).astype(float)
    if kind == "tenths":
        return np.round(rng.lognormal(2, 1, size=n) + 0.1, 1)
    if kind == "many digits":
        return rng.lognormal(2, 1, size=n)
    return np.where(rng.uniform(size=n) < 0.2, 120.0, 7.0)  # few large ones


def _best(gains: Any, efforts: Any, budget: float) -> float:
    found = optimize.milp(
        -gains,
        integrality=np.ones(gains.size),
        bounds=optimize.Bounds(0, 1),
        constraints=optimize.LinearConstraint(efforts[np.newaxis], ub=budget),
        options={"mip_rel_gap": 0.0},
    )
    return -float(found.fun)


def _filled(gains: Any, efforts: Any, budget: float) -> float:
    left, value = budget, 0.0
    for item in np.argsort(-gains / efforts, kind="stable"):
        if efforts[item] <= left:
            left -= efforts[item]
            value += gains[item]
    return value


def _small(kind: str, n_lists: int) -> list[str]:
    rng = np.random.default_rng(0)
    losses, simple = [], []
    for _ in range(n_lists):
        n = int(rng.integers(10, 201))
        p, values, efforts = rng.beta(0.5, 5, n), rng.lognormal(4, 1, n), _efforts(kind, n, rng)
        budget = round(float(rng.uniform(0.05, 0.5) * efforts.sum()), 1)
        found = select(
            p, Capacity.effort(budget), values=values, efforts=efforts, return_details=True
        )
        best = _best(p * values, efforts, budget)
        losses.append(1 - found.gain / best)
        simple.append(1 - _filled(p * values, efforts, budget) / best)
    exact = np.mean(np.array(losses) < 1e-9)
    return [kind, str(n_lists), f"{exact:.3f}", f"{max(losses):.1e}", f"{np.mean(simple):.1e}"]


def _large(kind: str) -> list[str]:
    rng = np.random.default_rng(0)
    n = 10**6
    p, values, efforts = rng.beta(0.5, 20, n), rng.lognormal(4, 1, n), _efforts(kind, n, rng)
    budget = Capacity.effort(round(0.01 * float(efforts.sum())))
    found = select(p, budget, values=values, efforts=efforts, return_details=True)
    return [f"{kind}, a million", "1", "", f"{found.gap / found.gain:.1e}", ""]


def main() -> None:
    """Run all kinds, and write the table."""
    options = study_parser(__doc__ or "", Path(__file__).parent, reps=250).parse_args()
    kinds = ("minutes", "tenths", "many digits", "few large")
    rows = [_small(kind, options.reps) for kind in kinds] + [_large(kind) for kind in kinds]
    for row in rows:
        print(*row, sep=", ")
    with (options.out / "gap.csv").open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])


if __name__ == "__main__":
    main()
