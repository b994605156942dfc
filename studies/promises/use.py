"""How much of a capacity each guarantee uses: at whole places, with shares between them, at best.

    python -m studies.promises.use     # a minute; writes use.csv beside this file

`whole` is the mean flag rate of a threshold at one of the calibration scores, as a share of the
capacity, and `use` that of the threshold of the package, which lies between two of them. A
threshold that knows the distribution of the scores uses 1. `promised` and `error` are the largest
probability of an overrun and the one that is reached; for "expected", which promises a mean, the
share of the capacity. For "simultaneous", the error is that of this capacity alone. Rows are exact,
except for work and groups: 400 calibrations, whose standard error is in the last column. All n
items calibrate one threshold of a trained model, or a half of them does ("held out"), or each item
helps to calibrate one of ten ("folds").
"""

from __future__ import annotations

import csv
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy import stats

from shortlist import Capacity, calibrate_threshold
from shortlist.thresholds.guarantees import Place, _overrun_probability, exceedance
from shortlist.thresholds.promise import Promise, place_of

COLUMNS = ["guarantee", "setting", "n", "c", "whole", "use", "promised", "error", "standard_error"]
ERROR, N_FOLDS, TRIALS = 0.05, 10, 400
SIZES, CAPACITIES = (200, 1_000, 4_000), ("0.01", "0.02", "0.06")


def main() -> None:
    """Write the table."""
    with (Path(__file__).parent / "use.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in [*places(), *work(), *groups()]:
            writer.writerow([f"{cell:.3g}" if isinstance(cell, float) else cell for cell in row])
            print(*row, sep="  ", flush=True)


def places():
    """Compute the use of guarantees about single items, exactly."""
    for guarantee in ("expected", "confident", "next-batch", "simultaneous"):
        for n in SIZES:
            for text in CAPACITIES:
                c = Fraction(text)
                settings = {"one threshold": (n, False)}
                if guarantee in ("expected", "confident"):
                    settings |= {"held out": (n // 2, False), "folds": (n // N_FOLDS, True)}
                for setting, (size, in_folds) in settings.items():
                    yield [guarantee, setting, n, text, *one_place(guarantee, size, c, in_folds)]


def one_place(guarantee, n, c, in_folds):
    """Return the use of whole places and of all, the promised error, and the one reached."""
    capacity = Capacity.count(int(1_000 * c), per=1_000)
    place = place_of(n, Promise(capacity, c, guarantee, ERROR, in_folds=in_folds))
    whole, use = (
        (each.k + 1 + each.share) / (n + 1) / float(c) for each in (Place(place.k), place)
    )
    if guarantee == "expected":
        return whole, use, 1.0, use, ""
    if guarantee == "next-batch":
        error = _overrun_probability(place, n, int(capacity.value), 1_000)
    else:  # that of folds is at most as large, however they depend on each other
        error = "" if in_folds else exceedance(place, n, c)
    return whole, use, ERROR, error, ""


def work():
    """Simulate a budget of work: what flags take of it, for efforts from 1 to 10."""
    rng = np.random.default_rng(0)
    new, efforts = rng.beta(1, 9, size=100_000), rng.integers(1, 11, size=100_000)
    for text in ("0.01", "0.02", "0.05"):
        c = float(text) * efforts.mean()
        capacity, uses = Capacity.effort(round(1_000 * c, 6), per=1_000), []
        for seed in range(TRIALS):
            own = np.random.default_rng(seed + 1)
            known = {"efforts": own.integers(1, 11, size=1_000), "max_effort": 10}
            options = {"ids": np.arange(1_000), "random_state": seed}
            found = calibrate_threshold(own.beta(1, 9, size=1_000), capacity, **known, **options)
            flagged = found.flag(new, ids=np.arange(1_000, 101_000), efforts=efforts)
            uses.append(efforts[flagged].sum() / new.size / c)
        yield ["expected", "work", 1_000, text, "", *mean_of(uses)]


def groups():
    """Simulate groups of four items that are alike, and the rate of an item of a new group."""
    for text in ("0.02", "0.05"):
        uses, c = [], float(text)
        for seed in range(TRIALS):
            own = np.random.default_rng(seed)
            scores = own.normal(size=150).repeat(4) + own.normal(size=600)
            known = {"groups": np.arange(150).repeat(4), "ids": np.arange(600)}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = calibrate_threshold(
                    scores, Capacity.fraction(c), random_state=seed, **known
                )
            ends = stats.norm.sf([found.value, found.lower_value], scale=np.sqrt(2))
            uses.append(((1 - found.share) * ends[0] + found.share * ends[1]) / c)
        yield ["expected", "150 groups of 4", 600, text, "", *mean_of(uses)]


def mean_of(uses):
    """Return the mean use, what is promised about it and reached, and its standard error."""
    mean = float(np.mean(uses))
    return mean, 1.0, mean, float(np.std(uses, ddof=1) / np.sqrt(len(uses)))


if __name__ == "__main__":
    main()
