"""Figures of the guide: the bias of M, what strict ties leave unused, and what ties at 0 do.

python benchmarks/study_statistics.py
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.special import ndtr
from sklearn.ensemble import RandomForestClassifier

from _measure import table
from shortlist import (
    Capacity,
    CapacityClassifier,
    adjusted_detection_score,
    calibrate_threshold,
)
from shortlist.datasets import make_fraud


def bias_at_full_capacity(
    n: int, prevalence: float, b: float, *, use: float = 1.0, trials: int = 4_000
) -> tuple[float, float]:
    """Return the mean error of M and its standard error, at a flag rate of `use` times capacity."""
    rng = np.random.default_rng([n, int(1e4 * prevalence), int(10 * b), int(10 * use)])
    sensitivity, rate = 0.6, use * b * prevalence
    false_alarms = (rate - prevalence * sensitivity) / (1 - prevalence)
    truth = sensitivity * min(1.0, 1 / use)
    errors = np.empty(trials)
    for trial in range(trials):
        y = rng.uniform(size=n) < prevalence
        y[0] = True  # M needs a rare item
        flagged = rng.uniform(size=n) < np.where(y, sensitivity, false_alarms)
        errors[trial] = truth - adjusted_detection_score(
            y, flagged, capacity=Capacity.multiple(b), rare_label=True
        )
    return -errors.mean(), errors.std(ddof=1) / np.sqrt(trials)


def use_of_capacity(
    c: float, ties: str, *, n: int = 4_000, levels: int = 21, trials: int = 400
) -> float:
    """Return the mean share of a capacity that is used on a score of a few values."""
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
    return float(rates.mean() / c)


def use_out_of_bag(c: float, min_samples_leaf: int, *, trials: int = 20) -> tuple[float, float]:
    """Return the mean share of a capacity that a threshold from out-of-bag scores uses."""
    uses = np.empty(trials)
    for trial in range(trials):
        X, y = make_fraud(12_000, prevalence=0.02, random_state=trial)
        forest = RandomForestClassifier(min_samples_leaf=min_samples_leaf, random_state=trial)
        model = CapacityClassifier(forest, capacity=Capacity.fraction(c), cv="oob")
        with warnings.catch_warnings():
            # What is warned of is measured here.
            warnings.filterwarnings("ignore", message="The threshold is the lowest")
            model.fit(X[:2_000], y[:2_000])
        uses[trial] = model.flag(X[2_000:]).mean() / c
    return uses.mean(), uses.std(ddof=1) / np.sqrt(trials)


def main() -> str:
    """Return all tables."""
    cases = [(1_000, 0.02, 1), (1_000, 0.01, 2), (4_000, 0.02, 1), (10_000, 0.02, 1)]
    bias = [
        [f"{n:,}", f"{prevalence:g}", f"{b}", f"{use:g}", "{:+.3f} ± {:.3f}".format(*found)]
        for n, prevalence, b in cases
        for use in (0.8, 1.0, 1.5)
        if (found := bias_at_full_capacity(n, prevalence, b, use=use))
    ]
    use = [
        [f"{c:g}", f"{use_of_capacity(c, 'exclude'):.2f}", f"{use_of_capacity(c, 'hash'):.2f}"]
        for c in (0.01, 0.02, 0.04, 0.06)
    ]
    out_of_bag = [
        [f"{c:g}", f"{leaf}", "{:.2f} ± {:.2f}".format(*use_out_of_bag(c, leaf))]
        for c in (0.02, 0.1, 0.3)
        for leaf in (1, 20)
    ]
    headings = ["items", "prevalence", "b", "flag rate / capacity", "mean of M minus truth"]
    return "\n\n".join(
        [
            table(headings, bias),
            table(["capacity", "use with strict ties", "use with hashed ties"], use),
            table(["capacity", "fewest items in a leaf", "use, out of bag"], out_of_bag),
        ]
    )


if __name__ == "__main__":
    print(main())
