"""Single learners on the confirming tables: defaults of the field, our presets, aware learners.

    python -m studies.detection.families --jobs 2

For each family its usual default (scikit-learn's, or LightGBM's), the preset "recommended" of
`make_learner`, and the learner that knows the capacity, for which the preset is the post-hoc twin.
Nothing here was chosen on these tables. All learn from one half, and the exact top of the other is
judged at b = 1/2, 1, 2, 3, 5 and at 20 % of all rows; an aware learner is fitted for each of them.

`families.csv` has mean detections, and differences from the default (of a preset) or the preset (of
an aware learner), paired, with standard errors over tables. Tables of more than `MOST_ROWS` rows
are left out: some learners take minutes there.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from shortlist import Capacity, aware
from shortlist.learners import make_learner
from shortlist.metrics import detection_at_capacity
from studies.detection.tables import CONFIRMING, Source, load_table
from studies.harness import markdown, run_stored, single_threaded, study_parser
from studies.tables import Table, mean_and_error, read_table, write_table

HERE = Path(__file__).parent
MOST_ROWS = 1_000
CAPACITIES = {
    **{f"b = {b}": Capacity.multiple(b) for b in (0.5, 1, 2, 3, 5)},
    "20 % of all": Capacity.fraction(0.2),
}
DEFAULTS: dict[str, Any] = {
    "logistic": lambda seed: LogisticRegression(max_iter=1_000),
    "forest": lambda seed: RandomForestClassifier(random_state=seed),
    "boosting": lambda seed: LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1),
    "svm": lambda seed: SVC(),
    "knn": lambda seed: KNeighborsClassifier(),
    "network": lambda seed: MLPClassifier(random_state=seed),
}
AWARE: dict[str, Any] = {
    "logistic": aware.CapacityAwareLinearClassifier,
    "forest": aware.CapacityAwareForestClassifier,
    "boosting": aware.CapacityAwareBoostingClassifier,
    "svm": aware.CapacityAwareSVC,
    "network": aware.CapacityAwareNetworkClassifier,
}


@dataclass(frozen=True)
class Run:
    """A family on one half of a table."""

    table: Source
    family: str
    kind: str


def run_family(config: Run) -> Table:
    """Fit to one half, rank the other, and count what each capacity finds."""
    warnings.simplefilter("ignore")
    X, is_rare = load_table(config.table)
    if is_rare.size > MOST_ROWS:
        return []
    learn, test = train_test_split(
        np.arange(is_rare.size), test_size=0.5, stratify=is_rare, random_state=0
    )
    columns = _scaled().fit(X.iloc[learn])
    halves = [columns.transform(X.iloc[rows]) for rows in (learn, test)]
    return [
        {
            "table": config.table.name,
            "family": config.family,
            "kind": config.kind,
            "capacity": name,
            "detection": detection_at_capacity(is_rare[test], scores, capacity),
        }
        for name, capacity in CAPACITIES.items()
        for scores in [_scores(config, capacity, is_rare[learn], *halves)]
    ]


def _scaled() -> Any:
    """Return a preparation of columns for every learner: scaled numbers, categories by columns."""
    from sklearn.compose import ColumnTransformer, make_column_selector
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers, texts = (make_column_selector(dtype_include=kind) for kind in (float, object))
    fill = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return ColumnTransformer([("numbers", fill, numbers), ("texts", encode, texts)])


_kept: dict[Any, Any] = {}


def _scores(config: Run, capacity: Capacity, is_rare: Any, X: Any, X_test: Any) -> Any:
    """Return scores of the test half; models that know no capacity are fitted once."""
    key = (config, capacity if config.kind == "aware" else None)
    if key not in _kept:
        _kept.clear()
        if config.kind == "aware":
            learner = AWARE[config.family](capacity, rare_label=True, random_state=0)
            _kept[key] = learner.fit(X, is_rare).score_samples(X_test)
        else:
            learner = (
                DEFAULTS[config.family](0)
                if config.kind == "default"
                else single_threaded(make_learner(config.family, random_state=0))
            )
            fitted = learner.fit(X, is_rare)
            has_chances = hasattr(fitted, "predict_proba")
            _kept[key] = (
                fitted.predict_proba(X_test)[:, 1]
                if has_chances
                else fitted.decision_function(X_test)
            )
    return _kept[key]


def summarise(rows: Table) -> Table:
    """Return mean detections, and paired differences from what each is compared with."""
    found = {(r["family"], r["kind"], r["capacity"], r["table"]): r["detection"] for r in rows}
    against = {"recommended": "default", "aware": "recommended"}
    summary = []
    for family, kind, capacity in dict.fromkeys(key[:3] for key in found):
        tables = [table for *names, table in found if names == [family, kind, capacity]]
        own = [found[family, kind, capacity, table] for table in tables]
        row = {"family": family, "kind": kind, "capacity": capacity, "tables": len(tables)}
        row["detection"] = round(float(np.mean(own)), 4)
        if kind in against:
            other = [found.get((family, against[kind], capacity, table)) for table in tables]
            pairs = [a - b for a, b in zip(own, other, strict=True) if b is not None]
            compared = mean_and_error(pairs) if pairs else {"mean": np.nan, "error": np.nan}
            row |= {"against": against[kind]}
            row |= {name: round(compared[name], 4) for name in ("mean", "error")}
        else:
            row |= {"against": "", "mean": "", "error": ""}
        summary.append(row)
    return summary


def main() -> None:
    """Run, save and print."""
    parser = study_parser(__doc__, HERE, reps=1)
    options = parser.parse_args()
    file = options.out / "families.csv"
    if not options.table:
        runs = [
            Run(table, family, kind)
            for kind, families in (
                ("default", DEFAULTS),
                ("recommended", DEFAULTS),
                ("aware", AWARE),
            )
            for family in families
            for table in CONFIRMING
        ]
        rows = run_stored("detection_families", run_family, runs, n_jobs=options.jobs)
        write_table(summarise(rows), file)
    summary = read_table(file)
    print(markdown(list(summary[0]), [[str(value) for value in row.values()] for row in summary]))


if __name__ == "__main__":
    main()
