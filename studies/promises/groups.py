"""Calibration on items that come in groups: what rules for single items break, and what is kept.

    python -m studies.promises.groups     # half a minute; writes groups.csv beside this file

Scores are normal, with a part that all items of a group share: `alike` is their correlation. The
true rate of a threshold is then known, and no test sample is needed. `over` is the share of
calibrations in which the rate exceeds the capacity, promised at most 5 % by "confident"; `use` is
the mean rate as a share of the capacity, promised at most 1 by "expected"; `error` is the standard
error of `use`. In the last setting, groups of ten are more suspicious than single items: `use` is
that of a random item of a new group, and `of all items` that of a random item.
"""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import numpy as np
from scipy import stats

from shortlist import Capacity, calibrate_threshold

COLUMNS = [
    "guarantee", "groups", "items", "alike", "capacity", "rule", "over", "use", "error",
    "of all items",
]  # fmt: skip
SETTINGS = [(20, 10, 0.99, 0.055), (100, 10, 0.9, 0.1), (400, 5, 0.5, 0.05), (400, 5, 0.1, 0.05)]
TRIALS = 1_000
SHIFT = 1.0


def main() -> None:
    """Write the table."""
    rows = [row for setting in SETTINGS for row in equal_sizes(*setting)]
    rows += informative_sizes(400, 0.5, 0.05)
    with (Path(__file__).parent / "groups.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows:
            writer.writerow([f"{cell:.3f}" if isinstance(cell, float) else cell for cell in row])
            print(*row, sep="  ")


def equal_sizes(n_groups, size, alike, c):
    """Yield rows for groups of one size."""
    of = np.repeat(np.arange(n_groups), size)
    for guarantee in ("expected", "confident"):
        for rule, groups in (("by items", None), ("by groups", of)):
            rng = np.random.default_rng(0)  # the same samples for both rules
            rates = np.array(
                [
                    stats.norm.sf(threshold(draw(rng, of, alike), c, guarantee, groups))
                    for _ in range(TRIALS)
                ]
            )
            yield [guarantee, n_groups, size, alike, c, rule, *summary(rates, c), ""]


def informative_sizes(n_groups, alike, c):
    """Yield rows for single items and groups of ten, which score higher."""
    for guarantee in ("expected", "confident"):
        for rule in ("by items", "by groups"):
            rng, found = np.random.default_rng(0), []
            for _ in range(TRIALS):
                sizes = np.where(rng.random(n_groups) < 0.1, 10, 1)
                of = np.repeat(np.arange(n_groups), sizes)
                scores = draw(rng, of, alike) + SHIFT * (sizes[of] == 10)
                groups = of if rule == "by groups" else None
                found.append(threshold(scores, c, guarantee, groups))
            small, large = stats.norm.sf(found), stats.norm.sf(np.array(found) - SHIFT)
            rates, of_items = 0.9 * small + 0.1 * large, (0.9 * small + large) / 1.9
            row = [guarantee, n_groups, "1 or 10", alike, c, rule, *summary(rates, c)]
            yield [*row, float(of_items.mean() / c)]


def draw(rng, of, alike):
    """Draw normal scores that are correlated within groups."""
    shared, own = rng.normal(size=of.max() + 1), rng.normal(size=of.size)
    return np.sqrt(alike) * shared[of] + np.sqrt(1 - alike) * own


def threshold(scores, c, guarantee, groups):
    """Calibrate, without warnings of too few items."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return calibrate_threshold(
            scores, Capacity.fraction(c), guarantee=guarantee, groups=groups
        ).value


def summary(rates, c):
    """Return the share of rates above the capacity, the mean use and its standard error."""
    use = rates / c
    return (
        float(np.mean(rates > c)),
        float(use.mean()),
        float(use.std(ddof=1) / np.sqrt(use.size)),
    )


if __name__ == "__main__":
    main()
