"""Joint capacities: `assign` against SciPy's HiGHS on the same problem, and as it grows."""

from __future__ import annotations

import argparse

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from _measure import seconds, table
from shortlist import assign

SHARE = 0.01
LARGEST_FOR_HIGHS = 500_000  # rows times classes; half a minute


def make(n: int, m: int) -> tuple[np.ndarray, list[int]]:
    """Draw posteriors of a common class and `m` rare ones; value them by 1 / prevalence."""
    rng = np.random.default_rng([n, m])
    posteriors = rng.dirichlet([20, *[0.3] * m], size=n)
    return posteriors / posteriors.mean(axis=0), [int(SHARE * n)] * m


def highs(values: np.ndarray, capacities: list[int]) -> float:
    """Solve the linear program in its textbook form."""
    n, m = values.shape[0], values.shape[1] - 1
    gains = values[:, 1:] - values[:, :1]
    flags = np.arange(n * m)
    rows = sparse.coo_array((np.ones(n * m), (flags // m, flags)), shape=(n, n * m))
    classes = sparse.coo_array((np.ones(n * m), (flags % m, flags)), shape=(m, n * m))
    limits = np.concatenate([np.ones(n), capacities])
    found = linprog(-gains.ravel(), A_ub=sparse.vstack([rows, classes]).tocsr(), b_ub=limits)
    return -found.fun


def measure(n: int, m: int, n_segments: int) -> list[str]:
    """Return one line of the table."""
    values, capacities = make(n, m)
    options = {}
    if n_segments:
        share = int(0.8 * m * SHARE * n / n_segments)
        options = {
            "segments": np.arange(n) % n_segments,
            "segment_capacities": dict.fromkeys(range(n_segments), share),
        }
    ours = seconds(lambda: assign(values, capacities, **options), repeats=3)
    theirs = "-"
    if n * m <= LARGEST_FOR_HIGHS and not n_segments:
        theirs = f"{seconds(lambda: highs(values, capacities), repeats=1) / ours:.0f}"
    return [str(m), str(n_segments), f"{n:.0e}", f"{ours:.3f}", theirs]


def main(largest: int = 10**6) -> str:
    """Measure five and twenty rare classes, with and without fifty segments."""
    assign(*make(1_000, 5))  # compile
    sizes = [n for n in (10**4, 10**5, 10**6) if n <= largest]
    rows = [
        measure(n, m, n_segments) for m, n_segments in ((5, 0), (20, 0), (5, 50)) for n in sizes
    ]
    return table(["rare classes", "segments", "rows", "assign (s)", "HiGHS / assign"], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=float, default=1e6)
    print(main(int(parser.parse_args().largest)))
