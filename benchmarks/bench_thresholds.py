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
    return table(headings, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=float, default=1e8)
    print(main(int(parser.parse_args().largest)))
