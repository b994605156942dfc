"""Greedy selection of support vectors: time relative to a loop with `np.partition`, and memory.

Both run in one thread. Processor time is measured; other processes therefore matter little.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from _measure import paired_ratio, seconds, table
from shortlist.aware._greedy import greedy_path

N_STEPS, PREVALENCE, FRACTION = 30, 0.02, 0.06
Sizes = tuple[tuple[int, int], ...]


def plain_path(rare: np.ndarray, common: np.ndarray, max_flags: int) -> list[int]:
    """Try every term at every step, with a partition each; the first of the best wins."""
    terms, chosen = np.hstack([rare, common]), []
    total, place = np.zeros(terms.shape[1]), terms.shape[1] - max_flags - 1
    for _ in range(N_STEPS):
        best, most = -1, -1
        for term in range(len(terms)):
            scores = total + terms[term]
            found = np.count_nonzero(scores[: rare.shape[1]] > np.partition(scores, place)[place])
            if found > most and term not in chosen:
                best, most = term, found
        chosen.append(best)
        total += terms[best]
    return chosen


def problem(n_terms: int, n_items: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Return terms of a radial kernel in 23 dimensions, a fifth of them rare, and the flags."""
    rng = np.random.default_rng(0)
    n_rare, n_rare_terms = round(PREVALENCE * n_items), n_terms // 5
    X, vectors = rng.normal(size=(n_items, 23)), rng.normal(size=(n_terms, 23))
    X[:n_rare, :4] += 0.8
    vectors[:n_rare_terms, :4] += 0.8
    coefficients = rng.uniform(0.2, 1, size=(n_terms, 1))
    coefficients[n_rare_terms:] *= -1
    parts = [rbf_kernel(vectors, part, gamma=0.05) for part in (X[:n_rare], X[n_rare:])]
    for part in parts:
        part *= coefficients
    return parts[0], parts[1], round(FRACTION * n_items)


def compare(sizes: Sizes) -> list[list[str]]:
    """Return rows with the time of the loop, and how many times faster the search is."""
    rows = []
    for n_terms, n_items in sizes:
        rare, common, max_flags = problem(n_terms, n_items)
        chosen = greedy_path(rare, common, max_flags, n_steps=N_STEPS).chosen
        assert chosen.tolist() == plain_path(rare, common, max_flags)
        ratio, loop = paired_ratio(
            lambda r=rare, c=common, k=max_flags: greedy_path(r, c, k, n_steps=N_STEPS),
            lambda r=rare, c=common, k=max_flags: plain_path(r, c, k),
            at_least=5 if n_items < 10_000 else 3,
            clock=time.thread_time,
        )
        rows.append([f"{n_terms:,} × {n_items:,}", f"{loop:.2f} s", f"{1 / ratio:.0f} ×", ""])
    return rows


def tabulate(rows: list[list[str]]) -> str:
    """Format the rows as a table."""
    return table(
        ["terms × items, 30 steps", "loop with np.partition", "faster by, or time", "peak memory"],
        rows,
    )


def size(text: str) -> tuple[int, int]:
    """Read terms and items, such as 700x4000."""
    n_terms, n_items = text.split("x")
    return int(n_terms), int(n_items)


def main(
    compared: Sizes = ((200, 1_000), (700, 4_000), (1_500, 12_000), (2_500, 25_000)),
    largest: tuple[int, int] = (5_000, 50_000),
) -> str:
    """Compare with the loop where it takes reasonable time, and measure the largest size alone."""
    rows = compare(compared)
    rare, common, max_flags = problem(*largest)
    alone = seconds(
        lambda: greedy_path(rare, common, max_flags, n_steps=N_STEPS),
        repeats=1,
        clock=time.thread_time,
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    name = f"{largest[0]:,} × {largest[1]:,}"
    return tabulate([*rows, [name, "", f"{alone:.1f} s", f"{peak:.1f} GB with the terms"]])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sizes", nargs="+", type=size, help="such as 700x4000, to compare only")
    options = parser.parse_args()
    if options.sizes:
        print(tabulate(compare(options.sizes)))
    else:
        print(main(((300, 2_000), (700, 4_000)), (1_000, 10_000)) if options.quick else main())
