"""Calibration and selection from scores: time and memory against one `np.partition`."""

from __future__ import annotations

import argparse

import numpy as np

from _measure import paired_ratio, peak_bytes, table
from shortlist import Capacity, calibrate_threshold, select

CAPACITY = Capacity.fraction(0.01)


def main(largest: int = 10**8) -> str:
    """Measure from a million scores to a hundred million."""
    rows = []
    rng = np.random.default_rng(0)
    n = 10**6
    while n <= largest:
        scores = rng.normal(size=n)
        place = n - CAPACITY.max_flags(n) - 1
        tasks = {
            "calibrate_threshold, plug-in": lambda s=scores: calibrate_threshold(
                s, CAPACITY, guarantee="plug-in"
            ),
            "calibrate_threshold, confident": lambda s=scores: calibrate_threshold(
                s, CAPACITY, guarantee="confident"
            ),
            "select": lambda s=scores: select(s, CAPACITY),
        }
        for name, task in tasks.items():
            ratio, baseline = paired_ratio(
                task, lambda s=scores, p=place: np.partition(s, p), at_least=3 if n > 10**7 else 7
            )
            memory = peak_bytes(task) / scores.nbytes
            rows.append([name, f"{n:.0e}", f"{ratio:.2f}", f"{baseline:.3f}", f"{memory:.3f}"])
        n *= 10
    headings = ["task", "n", "time / np.partition", "np.partition (s)", "extra memory / scores"]
    return f"{table(headings, rows)}\n\n{_with_work()}"


def _with_work(n: int = 10**6) -> str:
    """Measure lists with values and efforts against the same list without."""
    rng = np.random.default_rng(0)
    p, values = rng.beta(0.5, 20, size=n), rng.lognormal(4, 1, size=n)
    minutes, digits = rng.integers(5, 61, size=n).astype(float), rng.lognormal(3, 1, size=n)
    count, budget = Capacity.count(n // 60), Capacity.effort(n // 2)
    tasks = {
        "select with values": lambda: select(p, count, values=values),
        "select with values and minutes": lambda: select(p, budget, values=values, efforts=minutes),
        "select with values and efforts of many digits": lambda: select(
            p, budget, values=values, efforts=digits
        ),
    }
    rows = []
    for name, task in tasks.items():
        ratio, baseline = paired_ratio(task, lambda: select(p, count), at_least=9)
        rows.append([name, f"{n:.0e}", f"{ratio:.2f}", f"{baseline:.4f}"])
    return table(["task", "n", "time / select", "select (s)"], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=float, default=1e8)
    print(main(int(parser.parse_args().largest)))
