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

`chance` is the part of `flags` that no rule for single rows can save: what a threshold loses whose
flag rate is exactly the capacity, because the number of rows above it is binomial. `least` is what
any rule must lose that lets one of several models decide by a threshold from as many rows as are
judged: `one model`, and sqrt(2) times `chance`. The rate of such a threshold varies as much as the
number of rows above it does; with m rows per row to judge it would be sqrt(1 + 1 / m) times.

Two other rules are tried with the same models, over eight draws of the folds of new rows, and
compared with the rule itself in M: `pooled` is one place among the scores of all folds, which
promises nothing exactly, because every other model has learned from the rows of a fold; `by labels`
gives folds with more rare rows more places.

`whole` is the list of one forest that learned from all rows: what tenths of the rows cost is its
difference to `one`, the list of one of ten.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import binom
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from shortlist import Capacity, CapacityClassifier, adjusted_detection_score, select
from shortlist._core.ranking import lift
from shortlist.thresholds.samples import RowFacts
from studies.credit_data import clients
from studies.detection.tables import CHOOSING, load_table
from studies.paper.credit_protocol import draw_split

FILE = Path(__file__).with_name("rows.csv")
COLUMNS = ["rule", "data", "b", "draws", "M", "use", "list", "whole", "one"]
TRIED = ("pooled", "by labels")
PARTS = ("gap", "one model", "ranks", "flags", "chance")
COLUMNS += [name for part in PARTS for name in (part, f"error of {part}")] + ["least"]
COLUMNS += [name for part in TRIED for name in (part, f"error of {part}")]


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
    capacities = {b: Capacity.fraction(round(min(b * y.mean(), 0.5), 6)) for b in (1, 2, 3)}
    others = tried(model, X_new, y, y_new, capacities, np.random.default_rng(seed))
    for b, capacity in capacities.items():

        def found(order, capacity=capacity):
            return select(order, capacity, ids=every)[y_new].mean()

        flagged = model.with_capacity(capacity).flag(X_new)
        rows = adjusted_detection_score(y_new, flagged, capacity=capacity, rare_label=True)
        one = np.mean([found(each) for each in scores])
        by_mean = found(scores.mean(axis=0))
        use = flagged.mean() / float(capacity.value)
        order = ranks + 1e-9 * scores[fold_of, every]
        chance = found(order) - at_a_known_threshold(y_new[np.argsort(-order)], capacity)
        yield rows, use, by_mean, found(whole), one, found(order), chance, *others[b]


def at_a_known_threshold(is_rare, capacity):
    """Return the mean M of ranked rows if each of all rows is above a threshold with chance c."""
    n, c = is_rare.size, float(capacity.value)
    numbers = np.arange(1, n + 1)
    found = np.cumsum(is_rare) / is_rare.sum() * np.minimum(1, c * n / numbers)
    return binom.pmf(numbers, n, c) @ found


def tried(model, X_new, y, y_new, capacities, rng):
    """Return for each capacity what other places of the thresholds add to M."""

    def jittered(scores):
        return scores + 1e-9 * rng.random(scores.shape)

    samples = model.rule_.samples
    known = [jittered(sample.scores) for sample in samples]
    new = np.array([lift(each.predict_proba(X_new)[:, 1]) for each in model.estimators_])
    new, pooled, n_folds = jittered(new), np.concatenate(known), len(samples)
    n_rare = np.array([y[model.folds_ == fold].sum() for fold in range(n_folds)])
    gains = {}
    for b, capacity in capacities.items():
        c, found = float(capacity.value), []
        by_labels = c * (pooled.size + n_folds) * (n_rare + 0.5) / (n_rare.sum() + 0.5 * n_folds)
        for _ in range(8):
            fold_of = rng.integers(0, n_folds, size=y_new.size)
            flagged = np.zeros((3, y_new.size), dtype=bool)
            for fold, own in enumerate(known):
                rows = fold_of == fold
                places = c * (own.size + 1), min(by_labels[fold], own.size), c * (pooled.size + 1)
                for rule, scores in enumerate((own, own, pooled)):
                    flagged[rule, rows] = above(new[fold, rows], scores, places[rule], rng)
            options = {"capacity": capacity, "rare_label": True}
            found.append([adjusted_detection_score(y_new, each, **options) for each in flagged])
        own, labelled, of_all = np.mean(found, axis=0)
        gains[b] = of_all - own, labelled - own
    return gains


def above(scores, known, places, rng):
    """Return which scores lie above a number of known ones; a part of a place is drawn by lot."""
    whole, ranked = int(places + 1e-12), np.append(np.sort(known)[::-1], -np.inf)
    flagged = scores > (ranked[whole - 1] if whole else np.inf)
    drawn = rng.random(scores.size) < places - whole
    return flagged | ((scores > ranked[min(whole, known.size)]) & drawn)


def parts(row):
    """Return the gap between list and rows, its three parts, the chance, and what was tried."""
    rows, _, by_mean, _, one, mixed, *others = row
    return by_mean - rows, by_mean - one, one - mixed, mixed - rows, *others


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
            least = numbers[7] + 2**0.5 * numbers[13]  # one model, and chance
            row = [options.label, options.data, b, len(gaps), *(f"{n:.3f}" for n in numbers[:-4])]
            row += [f"{least:.3f}", *(f"{each:.4f}" for each in numbers[-4:])]
            writer.writerow(row)
            print(*row, flush=True)


if __name__ == "__main__":
    main()
