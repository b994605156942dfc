"""How large should the leaves of a smooth forest be? The ensemble, with two settings of that form.

    python -m studies.detection.smooth_forest --jobs 2

One random half of each table, and draws of the credit data by the paper's protocol from two seeds:
the first one took part in the choice. Single ensembles of the default size without folds, for
b = 2, which differ in the forest only; the exact top of the other half, or of the test clients, is
judged. `smooth_forest.csv` has the mean detection, and differences from the first setting.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.model_selection import train_test_split

from shortlist import Capacity
from shortlist.learners import CapacityEnsembleClassifier, _ensemble_members
from shortlist.metrics import detection_at_capacity
from shortlist.reproduce.credit_protocol import draw_split
from shortlist.reproduce.tables import Table, write_table
from studies.detection.tables import load_table
from studies.detection.weights import LISTS, MULTIPLES, summarise
from studies.harness import clients, print_summary, run_stored, study_parser

HERE = Path(__file__).parent
PREVALENCE = 0.02
SEEDS = {"credit, choosing": 555, "credit, other draws": 777}
#: The share of the rows in a leaf, and of the columns at each split.
SETTINGS = {
    "1 % of the rows, half of the columns": (0.01, 0.5),
    "2 % of the rows, four fifths of the columns": (0.02, 0.8),
}


@dataclass(frozen=True)
class Sample:
    """A half of a table, or a draw of clients if there is no table."""

    list: str
    table: Any
    repetition: int


def run_sample(config: Sample) -> Table:
    """Fit an ensemble with each setting to a sample, and judge its list of the other rows."""
    warnings.simplefilter("ignore")
    X, is_rare, X_test, is_rare_test = _halves(config) if config.table else _draw(config)
    rows: Table = []
    for name, setting in SETTINGS.items():
        with patch.dict(_ensemble_members.MEMBERS, forest=forest_with(*setting)):
            model = CapacityEnsembleClassifier(
                Capacity.multiple(2), rare_label=True, random_state=config.repetition
            )
            ranking = model.fit(X, is_rare).decision_function(X_test)
        found = {
            f"b = {b}": detection_at_capacity(is_rare_test, ranking, Capacity.multiple(b))
            for b in MULTIPLES
        }
        table = config.table.name if config.table else config.repetition
        rows.append({"list": config.list, "table": table, "way": name, **found})
    return rows


def forest_with(leaf: float, columns: float) -> Any:
    """Return the member "forest" with other leaves in its smooth form."""
    member = _ensemble_members.MEMBERS["forest"]

    def make(size: Any, n_rows: int, seed: int, n_jobs: int | None, smooth: bool) -> Any:
        forest = member.make(size, n_rows, seed, n_jobs, smooth)
        if smooth:
            rows = max(5, round(leaf * min(n_rows, size.tree_rows)))
            forest.set_params(min_samples_leaf=rows, max_features=columns)
        return forest

    return replace(member, make=make)


def _halves(config: Sample) -> tuple[Any, Any, Any, Any]:
    X, is_rare = load_table(config.table)
    learn, test = train_test_split(
        np.arange(is_rare.size), test_size=0.5, stratify=is_rare, random_state=config.repetition
    )
    return X.iloc[learn], is_rare[learn], X.iloc[test], is_rare[test]


def _draw(config: Sample) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng([SEEDS[config.list], config.repetition])
    drawn = draw_split(*clients(), prevalence=PREVALENCE, rng=rng)
    return drawn.X_train, drawn.y_train == 1, drawn.X_test, drawn.y_test == 1


def main() -> None:
    """Run, save and print."""
    parser = study_parser(__doc__, HERE, reps=1)
    parser.add_argument("--draws", type=int, default=40, help="draws of each seed (default 40)")
    options = parser.parse_args()
    file = options.out / "smooth_forest.csv"
    if not options.table:
        samples = [
            Sample(name, table, repetition)
            for name, tables in LISTS.items()
            for table in tables
            for repetition in range(options.reps)
        ]
        samples += [Sample(name, None, draw) for name in SEEDS for draw in range(options.draws)]
        rows = run_stored("detection_smooth_forest", run_sample, samples, n_jobs=options.jobs)
        write_table(summarise(rows, next(iter(SETTINGS))), file)
    print_summary(file)


if __name__ == "__main__":
    main()
