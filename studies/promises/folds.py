"""Row by row with the models of ten folds: does the capacity hold? And what do the folds measure?

    python -m studies.promises.folds     # ten minutes; writes folds.csv and out_of_fold.csv

`folds.csv`: each row is a learner and a capacity. In every trial a table is drawn and the
classifier is fitted with ten folds; `rate` is the mean share of 5,000 new items that it flags, as a
share of the capacity (promised at most 1 by "expected"), with its standard error, and `over` how
often it is over capacity (promised at most 5 % by "confident"). The learners tie: trees, small
forests and neighbours give few different scores.

`out_of_fold.csv`: on the same tables, what `out_of_fold_detection` says about the models of the
folds, beside the truth, which is the mean detection of these models on the new items: the mean of
the differences with its standard error, and how often the interval covers the truth.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from shortlist import Capacity, CapacityClassifier
from shortlist.metrics import detection_at_capacity, out_of_fold_detection

LEARNERS = {
    "logistic regression": LogisticRegression(),
    "tree of 8 leaves": DecisionTreeClassifier(max_leaf_nodes=8, random_state=0),
    "forest of 10 trees": RandomForestClassifier(10, min_samples_leaf=3, random_state=0),
    "5 neighbours": KNeighborsClassifier(5),
}
SETTINGS = [("expected", 0.05), ("expected", 0.008), ("confident", 0.1)]
N_ITEMS, N_NEW = 500, 5_000


def main() -> None:
    """Write both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=400)
    trials = parser.parse_args().trials
    rates, measured = [], []
    for name, learner in LEARNERS.items():
        for guarantee, c in SETTINGS:
            found = [trial(learner, guarantee, c, seed) for seed in range(trials)]
            rates.append([name, guarantee, c, trials, *summary([each[0] for each in found], c)])
            print(*rates[-1], flush=True)
            if guarantee == "expected" and c == 0.05:
                measured.append([name, c, trials, *compared([each[1:] for each in found])])
                print(*measured[-1], flush=True)
    here = Path(__file__).parent
    columns = ["learner", "guarantee", "capacity", "trials", "rate", "error", "over"]
    write(here / "folds.csv", columns, rates)
    columns = ["learner", "capacity", "trials", "truth", "difference", "error", "covers", "width"]
    write(here / "out_of_fold.csv", columns, measured)


def trial(learner, guarantee, c, seed):
    """Fit once; return the rate on new items, the truth and the measure out of fold."""
    X, y = draw(N_ITEMS, seed)
    new, labels = draw(N_NEW, 10_000 + seed)
    options = {"capacity": Capacity.fraction(c), "guarantee": guarantee, "cv": 10}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CapacityClassifier(learner, random_state=seed, **options).fit(X, y)
    rate = model.flag(new, ids=None).mean()
    if guarantee != "expected" or c != 0.05:
        return rate, None, None
    limit = Capacity.fraction(c)
    truth = np.mean(
        [
            detection_at_capacity(labels, each.predict_proba(new)[:, 1], limit)
            for each in model.estimators_
        ]
    )
    return rate, truth, out_of_fold_detection(y, model.out_of_fold_scores_, model.folds_, limit)


def draw(n, seed):
    """Draw items with a prevalence of about 10 %, in four columns, one of them coarse."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.1
    X = rng.normal(size=(n, 4)) + 0.8 * y[:, np.newaxis]
    X[:, 3] = np.round(X[:, 3])
    return X, y


def summary(rates, c):
    """Return the mean use, its standard error and the share of rates above the capacity."""
    use = np.array(rates) / c
    return (float(use.mean()), float(use.std(ddof=1) / np.sqrt(use.size)), float(np.mean(use > 1)))


def compared(found):
    """Return the mean truth, the mean difference with its error, coverage and mean width."""
    truth = np.array([each[0] for each in found])
    said = np.array([[each[1].detection, each[1].low, each[1].high] for each in found]).T
    difference = said[0] - truth
    return (
        float(truth.mean()),
        float(difference.mean()),
        float(difference.std(ddof=1) / np.sqrt(truth.size)),
        float(np.mean((said[1] <= truth) & (truth <= said[2]))),
        float(np.mean(said[2] - said[1])),
    )


def write(path, columns, rows):
    """Write a small table."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in rows:
            writer.writerow([f"{cell:.4g}" if isinstance(cell, float) else cell for cell in row])


if __name__ == "__main__":
    main()
