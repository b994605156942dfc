"""How large should the leaves of a smooth forest be? The ensemble, with two settings of that form.

    python -m studies.detection.smooth_forest --jobs 2

One random half of each table, and draws of the credit data by the paper's protocol from two seeds:
the first one took part in the choice, and the second one was looked at before it was made. Single
ensembles of the default size without folds, for b = 2, which differ in the forest only; the exact
top of the other half, or of the test clients, is judged. `smooth_forest.csv` has the mean
detection, and differences from the first setting.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from shortlist import Capacity
from shortlist.learners import CapacityEnsembleClassifier, members
from studies.credit_data import clients
from studies.detection import thresholds
from studies.detection.credit import PREVALENCE
from studies.detection.weights import Half, all_halves, detections, split, summarise
from studies.harness import print_summary, run_stored, study_parser
from studies.paper.credit_protocol import draw_split
from studies.tables import Table, write_table

HERE = Path(__file__).parent
STORE = "detection_smooth_forest"
SEEDS = {"credit, choosing": 555, "credit, other draws": thresholds.SEED}
#: The share of the rows in a leaf, and of the columns at each split.
SETTINGS = {
    "1 % of the rows, half of the columns": (0.01, 0.5),
    "2 % of the rows, four fifths of the columns": (0.02, 0.8),
}


@dataclass(frozen=True)
class Draw:
    """One draw of clients, by the seed of a list."""

    list: str
    repetition: int


def run_half(config: Half) -> Table:
    """Fit to one half of a table, and judge the lists of the other."""
    X, is_rare, learn, test = split(config)
    rows = _compare(config.repetition, X.iloc[learn], is_rare[learn], X.iloc[test], is_rare[test])
    return [{"list": config.list, "table": config.table.name, **row} for row in rows]


def run_draw(config: Draw) -> Table:
    """Fit to a draw of clients, and judge the lists of the others."""
    rng = np.random.default_rng([SEEDS[config.list], config.repetition])
    drawn = draw_split(*clients(), prevalence=PREVALENCE, rng=rng)
    y, y_test = drawn.y_train == 1, drawn.y_test == 1
    rows = _compare(config.repetition, drawn.X_train, y, drawn.X_test, y_test)
    return [{"list": config.list, "table": config.repetition, **row} for row in rows]


def _compare(seed: int, X: Any, is_rare: Any, X_test: Any, is_rare_test: Any) -> Table:
    """Fit an ensemble with each setting of the forest, and return what its list detects."""
    warnings.simplefilter("ignore")
    rows: Table = []
    for name, setting in SETTINGS.items():
        with patch.dict(members.MEMBERS, forest=forest_with(*setting)):
            model = CapacityEnsembleClassifier(
                Capacity.multiple(2), rare_label=True, random_state=seed
            )
            ranking = model.fit(X, is_rare).decision_function(X_test)
        rows.append({"way": name, **detections(is_rare_test, ranking)})
    return rows


def forest_with(leaf: float, columns: float) -> Any:
    """Return the member "forest" with other leaves in its smooth form."""
    member = members.MEMBERS["forest"]

    def make(size: Any, n_rows: int, seed: int, n_jobs: int | None, smooth: bool) -> Any:
        forest = member.make(size, n_rows, seed, n_jobs, smooth)
        if smooth:
            rows = max(5, round(leaf * min(n_rows, size.tree_rows)))
            forest.set_params(min_samples_leaf=rows, max_features=columns)
        return forest

    return replace(member, make=make)


def main() -> None:
    """Run, save and print."""
    parser = study_parser(__doc__, HERE, reps=1)
    parser.add_argument("--draws", type=int, default=40, help="draws of each seed (default 40)")
    options = parser.parse_args()
    file = options.out / "smooth_forest.csv"
    if not options.table:
        draws = [Draw(name, draw) for name in SEEDS for draw in range(options.draws)]
        rows = [
            *run_stored(f"{STORE}_tables", run_half, all_halves(options.reps), n_jobs=options.jobs),
            *run_stored(f"{STORE}_credit", run_draw, draws, n_jobs=options.jobs),
        ]
        write_table(summarise(rows, next(iter(SETTINGS))), file)
    print_summary(file)


if __name__ == "__main__":
    main()
