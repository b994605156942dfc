"""What a rule of ten folds finds row by row, beside a list, and which parts the gap has.

    python -m studies.detection.rows
    python -m studies.detection.rows --data "credit data" --reps 10
    python -m studies.detection.rows --folds 5 --label "five folds"

Each table is halved at random: forests learn from one half in ten folds, and the other half is
judged row by row (`M`, and `use`: flags divided by the capacity) and as lists. Results are added to
`rows.csv`. The gap between the list of the mean of ten models and the rows is the sum of three
parts, each the difference of two detections:

- `one model`: the list of the mean of all models, less the list of one of them, on average;
- `ranks`: that list, less a list in which each row is ranked by the model that decides about it,
  among the rows of the fold that this model has not seen;
- `flags`: that list, less M of the rule itself. Its number of flags varies from half to half, while
  a list has the right length. M forgives no flag above the capacity.

`whole` is the list of one forest that learned from all rows: what tenths of the rows cost is its
difference to `one`, the list of one of ten.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from shortlist import Capacity, CapacityClassifier, adjusted_detection_score, select
from shortlist.thresholds.samples import RowFacts
from studies.credit_data import clients
from studies.detection.tables import CHOOSING, load_table
from studies.paper.credit_protocol import draw_split

FILE = Path(__file__).with_name("rows.csv")
COLUMNS = ["rule", "data", "b", "draws", "M", "use", "list", "whole", "one"]
PARTS = ("gap", "one model", "ranks", "flags")
COLUMNS += [name for part in PARTS for name in (part, f"error of {part}")]


def halves(repetitions):
    """Yield the halves of every choosing table, for each repetition, if both have rare rows."""
    for source in CHOOSING:
        X, is_rare = load_table(source)
        texts = [name for name in X if X[name].dtype.kind not in "iufb"]
        as_codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        encoded = make_column_transformer(
            (as_codes, texts), (SimpleImputer(), [name for name in X if name not in texts])
        ).fit_transform(X.astype(dict.fromkeys(texts, str)))
        for repetition in range(repetitions):
            rng = np.random.default_rng([16, repetition])
            first, second = np.array_split(rng.permutation(is_rare.size), 2)
            if min(is_rare[first].sum(), is_rare[second].sum()) >= 10:
                yield encoded[first], is_rare[first], encoded[second], is_rare[second]


def credit(repetitions):
    """Yield samples of the credit data, drawn as in the paper, at a prevalence of 2 %."""
    for repetition in range(repetitions):
        split = draw_split(*clients(), prevalence=0.02, rng=np.random.default_rng([17, repetition]))
        yield split.X_train, split.y_train == 1, split.X_test, split.y_test == 1


DATA = {"choosing tables": halves, "credit data": credit}


def measured(X, y, X_new, y_new, seed, n_folds):
    """Return for each b the M of the rows, the use of the capacity, and detections of lists."""
    forest = make_pipeline(RandomForestClassifier(100, min_samples_leaf=3, random_state=seed))
    options = {"rare_label": True, "cv": n_folds, "random_state": seed}
    model = CapacityClassifier(forest, capacity=Capacity.fraction(0.5), **options).fit(X, y)
    whole = clone(forest).fit(X, y).predict_proba(X_new)[:, 1]
    scores = np.array([each.predict_proba(X_new)[:, 1] for each in model.estimators_])
    fold_of, every = model.rule_.fold_of(RowFacts(X_new)), np.arange(len(X_new))
    ranks = np.empty(every.size)
    for fold, sample in enumerate(model.rule_.samples):
        own = fold_of == fold
        beyond = sample.scores.size - np.searchsorted(np.sort(sample.scores), scores[fold, own])
        ranks[own] = -(beyond + 1) / (sample.scores.size + 1)
    for b in (1, 2, 3):
        capacity = Capacity.fraction(round(min(b * y.mean(), 0.5), 6))

        def found(order, capacity=capacity):
            return select(order, capacity, ids=every)[y_new].mean()

        flagged = model.with_capacity(capacity).flag(X_new)
        rows = adjusted_detection_score(y_new, flagged, capacity=capacity, rare_label=True)
        one = np.mean([found(each) for each in scores])
        by_mean = found(scores.mean(axis=0))
        use = flagged.mean() / float(capacity.value)
        yield rows, use, by_mean, found(whole), one, found(ranks + 1e-9 * scores[fold_of, every])


def parts(row):
    """Return the gap between the list of the mean and the rows, and its three parts."""
    rows, _, by_mean, _, one, mixed = row
    return by_mean - rows, by_mean - one, one - mixed, mixed - rows


def main():
    """Measure, and add to the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--label", default="ten folds", help="what to call this run")
    parser.add_argument("--reps", type=int, default=2, help="halves of each table, or draws")
    parser.add_argument("--folds", type=int, default=10, help="number of folds")
    parser.add_argument("--data", choices=DATA, default="choosing tables", help="what is measured")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    drawn = DATA[options.data](options.reps)
    found = np.array(
        [list(measured(*draw, seed, options.folds)) for seed, draw in enumerate(drawn)]
    )
    gaps = np.array([[parts(row) for row in draw] for draw in found])
    errors = gaps.std(axis=0, ddof=1) / len(gaps) ** 0.5
    is_new = not FILE.exists()
    with FILE.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS] * is_new)
        for place, b in enumerate((1, 2, 3)):
            pairs = zip(gaps.mean(axis=0)[place], errors[place], strict=True)
            numbers = [*found.mean(axis=0)[place, :5], *(each for pair in pairs for each in pair)]
            row = [options.label, options.data, b, len(gaps), *(f"{each:.3f}" for each in numbers)]
            writer.writerow(row)
            print(*row, flush=True)


if __name__ == "__main__":
    main()
