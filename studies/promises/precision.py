"""Lists with a promised precision: what they find, from held-out items and from folds.

    python -m studies.promises.precision     # five minutes; writes precision.csv beside this file

Half of a list is to be rare on average. "held out" is the rule of the package: conformal selection
by the common items of a part that the model has not seen. Folds leave more items to learn from, but
the p-values of several folds depend on each other in unknown ways. "e-values" keep the promise
however they do: each p-value p becomes the mean of 1{p <= t} / t over t = k / (2 N) for k = K,
K / 2, K / 4, ..., which is at most 1 on average for a common item; "one fold" takes that of a fold
drawn for the item, and "all folds" the mean of all. The k highest of N are listed for the largest k
up to the capacity K whose lowest is at least 2 N / k. "no promise" fills the capacity.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from shortlist import Capacity, CapacityClassifier, Worth

COLUMNS = ["n", "prevalence", "rare", "rule", "trials", "length", "common", "error", "detection"]
HALF = Worth.precision(0.5)
SETTINGS = [(1_000, 0.02), (4_000, 0.005), (4_000, 0.02)]
N_COLUMNS = 8


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=200)
    trials = parser.parse_args().trials
    rows = []
    for n, prevalence in SETTINGS:
        for day, share in (("usual", prevalence), ("quiet", prevalence / 10)):
            found = [trial(n, prevalence, share, seed) for seed in range(trials)]
            for rule in found[0]:
                numbers = np.array([each[rule] for each in found])
                means = np.nanmean(numbers, axis=0)
                error = numbers[:, 1].std(ddof=1) / np.sqrt(trials)
                rows.append([n, prevalence, day, rule, trials, means[0], means[1], error, means[2]])
                print(*rows[-1], sep="  ", flush=True)
    with (Path(__file__).parent / "precision.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows:
            writer.writerow([f"{cell:.3g}" if isinstance(cell, float) else cell for cell in row])


def trial(n, prevalence, share, seed):
    """Return length, share of common items and detection of each rule, for one batch."""
    rng = np.random.default_rng(seed)
    (X, y), (new, is_rare) = draw(n, prevalence, rng), draw(n, share, rng)
    while y.sum() < 6:  # too few to learn from
        X, y = draw(n, prevalence, rng)
    most = Capacity.count(round(2 * prevalence * n))
    options = {"capacity": Capacity.multiple(2), "rare_label": True, "random_state": seed}
    fitted = {
        cv: CapacityClassifier(LogisticRegression(), cv=cv, **options).fit(X, y)
        for cv in (0.5, 0.25, 10)
    }
    lists = {
        "held out, a half": fitted[0.5].select(new, most, worth=HALF),
        "held out, a quarter": fitted[0.25].select(new, most, worth=HALF),
    }
    evidence = e_values(fitted[10], new, int(most.value))
    own = np.random.default_rng(seed).integers(len(evidence), size=n)
    lists["e-values, one fold"] = listed(evidence[own, np.arange(n)], int(most.value))
    lists["e-values, all folds"] = listed(evidence.mean(axis=0), int(most.value))
    lists["no promise"] = fitted[10].select(new, most)
    return {rule: measured(flagged, is_rare) for rule, flagged in lists.items()}


def draw(n, prevalence, rng):
    """Draw items, of which rare ones are shifted in all columns."""
    y = rng.random(n) < prevalence
    return rng.normal(size=(n, N_COLUMNS)) + 1.1 * y[:, np.newaxis], y


def e_values(model, new, most):
    """Return the e-value of each item by each fold."""
    thresholds = 0.5 * most / 2.0 ** np.arange(np.log2(most) + 1) / len(new)
    found = []
    for estimator, sample in zip(model.estimators_, model.rule_.samples, strict=True):
        common = np.sort(sample.scores[~sample.is_rare])
        scores = estimator.predict_proba(new)[:, 1]
        n_before = common.size - np.searchsorted(common, scores, side="left")
        p = (1 + n_before) / (common.size + 1)
        found.append(np.mean([(p <= t) / t for t in thresholds], axis=0))
    return np.array(found)


def listed(evidence, most):
    """List the items with the highest e-values, by the rule of Wang and Ramdas, up to the most."""
    order = np.argsort(-evidence, kind="stable")[:most]
    places = np.arange(1, order.size + 1)
    passed = np.flatnonzero(evidence[order] >= evidence.size / (0.5 * places))
    flagged = np.zeros(evidence.size, dtype=bool)
    flagged[order[: passed.max(initial=-1) + 1]] = True
    return flagged


def measured(flagged, is_rare):
    """Return the length of a list, the share of common items on it, and what it finds."""
    n, found = flagged.sum(), (flagged & is_rare).sum()
    return n, (n - found) / max(n, 1), found / is_rare.sum() if is_rare.any() else np.nan


if __name__ == "__main__":
    main()
