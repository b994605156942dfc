"""The bias of M, the capacity that strict ties leave unused, and thresholds at the lowest score.

    python -m studies.statistics.bias_and_ties

`bias.csv` has the mean error of M at several flag rates, `ties.csv` the share of the capacity that
a coarse score uses, `out_of_bag.csv` the same for thresholds from out-of-bag scores.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from scipy.special import ndtr
from sklearn.ensemble import RandomForestClassifier

from shortlist import (
    Capacity,
    CapacityClassifier,
    adjusted_detection_score,
    calibrate_threshold,
)
from shortlist.datasets import make_fraud
from studies.tables import Table, markdown_table, mean_and_error, write_table

HERE = Path(__file__).parent


def bias_at_full_capacity(
    n: int, prevalence: float, b: float, *, use: float = 1.0, trials: int = 4_000
) -> dict[str, float]:
    """Return the mean error of M at a flag rate of `use` times the capacity."""
    rng = np.random.default_rng([n, int(1e4 * prevalence), int(10 * b), int(10 * use)])
    sensitivity, rate = 0.6, use * b * prevalence
    false_alarms = (rate - prevalence * sensitivity) / (1 - prevalence)
    truth = sensitivity * min(1.0, 1 / use)
    errors = np.empty(trials)
    for trial in range(trials):
        y = rng.uniform(size=n) < prevalence
        y[0] = True  # M needs a rare item
        flagged = rng.uniform(size=n) < np.where(y, sensitivity, false_alarms)
        found = adjusted_detection_score(y, flagged, capacity=Capacity.multiple(b), rare_label=True)
        errors[trial] = found - truth
    return mean_and_error(errors)


def use_of_capacity(
    c: float, ties: str, *, n: int = 4_000, levels: int = 21, trials: int = 400
) -> dict[str, float]:
    """Return the mean share of a capacity that is used by a score with few values."""
    rng = np.random.default_rng([levels, int(1e4 * c)])
    # A normal score rounded to 21 values from -2.5 to 2.5: the highest has 0.9 % of the items.
    places = np.linspace(-2.5, 2.5, levels)
    edges = (places[:-1] + places[1:]) / 2
    chances = np.diff(ndtr(edges), prepend=0, append=1)
    rates = np.empty(trials)
    for trial in range(trials):
        scores = rng.choice(levels, size=n, p=chances).astype(float)
        cut = calibrate_threshold(
            scores, Capacity.fraction(c), guarantee="confident", ties=ties, ids=np.arange(n)
        )
        level = int(cut.value) if np.isfinite(cut.value) else levels
        tied = chances[level] * cut.tie_key if level < levels else 0.0
        rates[trial] = chances[level + 1 :].sum() + tied
    return mean_and_error(rates / c)


def use_out_of_bag(c: float, min_samples_leaf: int, *, trials: int = 20) -> dict[str, float]:
    """Return the mean share of a capacity that a threshold from out-of-bag scores uses."""
    uses = np.empty(trials)
    for trial in range(trials):
        X, y = make_fraud(12_000, prevalence=0.02, random_state=trial)
        forest = RandomForestClassifier(min_samples_leaf=min_samples_leaf, random_state=trial)
        model = CapacityClassifier(
            forest, capacity=Capacity.fraction(c), cv="oob", guarantee="plug-in", ties="exclude"
        )
        with warnings.catch_warnings():
            # The warning is about what this study measures.
            warnings.filterwarnings("ignore", message="The threshold is the lowest")
            model.fit(X[:2_000], y[:2_000])
        uses[trial] = model.flag(X[2_000:]).mean() / c
    return mean_and_error(uses)


def tables(*, quick: bool = False) -> dict[str, Table]:
    """Return all tables by name; a quick run has a tenth of the trials."""
    cases = [(1_000, 0.02, 1), (1_000, 0.01, 2), (4_000, 0.02, 1), (10_000, 0.02, 1)]
    bias, ties, out_of_bag = (trials // 10 if quick else trials for trials in (4_000, 400, 20))
    return {
        "bias": [
            {"items": n, "prevalence": prevalence, "b": b, "rate_over_capacity": use}
            | bias_at_full_capacity(n, prevalence, b, use=use, trials=bias)
            for n, prevalence, b in cases
            for use in (0.8, 1.0, 1.5)
        ],
        "ties": [
            {"capacity": c, "ties": kind} | use_of_capacity(c, kind, trials=ties)
            for c in (0.01, 0.02, 0.04, 0.06)
            for kind in ("exclude", "hash")
        ],
        "out_of_bag": [
            {"capacity": c, "min_samples_leaf": leaf} | use_out_of_bag(c, leaf, trials=out_of_bag)
            for c in (0.02, 0.1, 0.3)
            for leaf in (1, 20)
        ],
    }


def main() -> None:
    """Run, save and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the trials")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the summaries")
    options = parser.parse_args()
    for name, rows in tables(quick=options.quick).items():
        write_table(rows, options.out / f"{name}.csv")
        print("\n".join(markdown_table(rows)) + "\n")


if __name__ == "__main__":
    main()
