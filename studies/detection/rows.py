"""What a rule of ten folds finds row by row, beside a list, on the choosing tables and credit data.

    python -m studies.detection.rows --label after
    python -m studies.detection.rows --label after --data "credit data" --reps 8

Each table is halved at random: a forest learns from one half in ten folds, and the other half is
judged row by row (`M`, and `use`: flags divided by the capacity) and as one list. To measure
another version of the package, put its `src` first into `PYTHONPATH` and name it by `--label`:
`before` is b8043b0, with stratified folds and whole places. Results are added to `rows.csv`. The
gap between the rows and the list has three parts: a rule that flags less than its capacity (`use`
below 1), one of ten models instead of their mean, and numbers of flags that vary from half to half,
while a list always has the right length.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from shortlist import Capacity, CapacityClassifier, adjusted_detection_score
from studies.detection.tables import CHOOSING, load_table
from studies.harness import clients
from studies.paper.credit_protocol import draw_split

FILE = Path(__file__).with_name("rows.csv")
COLUMNS = ["version", "data", "b", "draws", "M", "use", "list", "gap", "standard_error"]


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


def measured(X, y, X_new, y_new, b, seed):
    """Return the M of the rows, the use of the capacity, and the detection of the list."""
    capacity = Capacity.fraction(round(min(b * y.mean(), 0.5), 6))
    forest = make_pipeline(RandomForestClassifier(100, min_samples_leaf=3, random_state=seed))
    model = CapacityClassifier(
        forest, capacity=capacity, rare_label=True, cv=10, random_state=seed
    ).fit(X, y)
    flagged = model.flag(X_new)
    found = adjusted_detection_score(y_new, flagged, capacity=capacity, rare_label=True)
    listed = np.asarray(model.select(X_new)).astype(bool)
    return found, flagged.mean() / float(capacity.value), listed[y_new].mean()


def main():
    """Measure this version, and add it to the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--label", default="after", help="what to call this version")
    parser.add_argument("--reps", type=int, default=2, help="halves of each table, or draws")
    parser.add_argument("--data", choices=DATA, default="choosing tables", help="what is measured")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    drawn = list(DATA[options.data](options.reps))
    for b in (1, 2, 3):
        found = np.array([measured(*draw, b, seed) for seed, draw in enumerate(drawn)])
        gaps = found[:, 2] - found[:, 0]
        error = gaps.std(ddof=1) / len(gaps) ** 0.5
        named = [options.label, options.data, b, len(drawn)]
        rows.append([*named, *found.mean(axis=0), gaps.mean(), error])
        print(*rows[-1], flush=True)
    is_new = not FILE.exists()
    with FILE.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS] * is_new)
        for row in rows:
            writer.writerow([f"{cell:.3f}" if isinstance(cell, float) else cell for cell in row])


if __name__ == "__main__":
    main()
