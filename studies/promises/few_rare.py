"""How much of a capacity is used where so few rows are rare that folds are drawn more than once.

    python -m studies.promises.few_rare

A score puts all rare rows above the common ones, or a tenth of the common rows above them. A
sample has at least two rare rows, and is divided at random, again and again until every model can
learn from enough of them. For each number of rare rows that are left out, the mean flag rate of
the threshold is known exactly; the division is simulated. Results are in `few_rare.csv`: the mean
use of the capacity under the guarantee "expected", of all fits, and the share of fits that warn of
a second division. `promised` is the mean over all samples, if fits that warn or fail flag nothing:
it is at most 1. With `fewer folds`, as it was before, there were as many folds as rare rows if
those are fewer than ten.
"""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.stats import binom

from shortlist.thresholds.guarantees import expected_place

FILE = Path(__file__).with_name("few_rare.csv")
N, DRAWS, TENTH = 200, 2_000, 0.1
DIVISIONS = ("fewer folds", "ten folds", "half held out", "nine tenths held out")


def mean_rate(blocks, capacity):
    """Return the mean flag rate of the threshold of a sample of blocks with counts and masses."""
    n = sum(count for count, _ in blocks)
    place = expected_place(n, capacity)
    edges = [0.0, *(level for block in levels(blocks) for level in block), 1.0]
    above, below = edges[place.k + 1], edges[min(place.k + 2, n + 1)]
    return above + place.share * (below - above)


def levels(blocks):
    """Yield the mean share of new rows above each row, block by block."""
    before = 0.0
    for count, mass in blocks:
        yield [before + mass * place / (count + 1) for place in range(1, count + 1)]
        before += mass


def rate_of_part(size, n_rare, prevalence, capacity, above):
    """Return the mean rate if so many of the rows left out are rare, and a share lies above."""
    n_common, common = size - n_rare, 1 - prevalence
    chances = binom.pmf(np.arange(n_common + 1), n_common, above)
    rates = [
        mean_rate(
            [(m, common * above), (n_rare, prevalence), (n_common - m, common * (1 - above))],
            capacity,
        )
        for m in np.flatnonzero(chances > 1e-9)
    ]
    return chances[chances > 1e-9] @ rates


def sizes(division, n_rare):
    """Return how many rows are left out together, and the number of all rows of the partition."""
    if division == "half held out":
        return np.array([N // 2]), [N // 2]
    if division == "nine tenths held out":
        return np.array([9 * N // 10]), [N // 10]
    n_folds = min(10, n_rare) if division == "fewer folds" else 10
    return np.bincount(np.arange(N) % n_folds), []


def measured(division, prevalence, capacity, above, rng):
    """Return the use of the capacity by all fits, the share that warns, and what is promised."""
    known, used, kept, warned, fitted = {}, 0.0, 0.0, 0.0, 0.0
    for n_rare in range(2, N - 1):
        weight = binom.pmf(n_rare, N, prevalence)
        if weight < 1e-6:
            continue
        left_out, rest = sizes(division, n_rare)
        drawn = rng.multivariate_hypergeometric([*left_out, *rest], n_rare, size=DRAWS)
        drawn = drawn[:, : left_out.size]
        needed = np.maximum(0.25 * (N - left_out) / N * n_rare, 1)
        will_do = (n_rare - drawn >= needed).all(axis=1)
        rates = np.zeros(drawn.shape)
        for place, size in enumerate(left_out.tolist()):
            for number in np.unique(drawn[:, place]).tolist():
                key = size, number
                if key not in known:
                    known[key] = rate_of_part(size, number, prevalence, capacity, above)
                rates[drawn[:, place] == number, place] = known[key]
        of_all = rates.mean(axis=1)
        used += weight * of_all[will_do].mean()
        kept += weight * (of_all * will_do).mean()
        warned += weight * (1 - will_do.mean())
        fitted += weight
    return used / fitted / float(capacity), warned / fitted, kept / float(capacity)


def main():
    """Measure every division, and write the table."""
    rng = np.random.default_rng(18)
    with FILE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["division", "n", "expected_rare", "above", "c", "use", "warned", "promised"]
        )
        for expected in (2, 3, 5, 10):
            for above in (0.0, TENTH):
                for percent in (1, 5):
                    for division in DIVISIONS:
                        c = Fraction(percent, 100)
                        found = measured(division, expected / N, c, above, rng)
                        row = [division, N, expected, above, float(c)]
                        writer.writerow([*row, *(f"{number:.3f}" for number in found)])
                        print(*row, *found, flush=True)


if __name__ == "__main__":
    main()
