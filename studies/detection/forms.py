"""Do forms and slopes of members pay on the confirming tables, beside a plain average?

    python -m studies.detection.forms

One half of each table, single fits without folds: the ensemble as it is, with forms, slopes and
greedy weights for b = 2, and the plain average of the same members in their flexible forms. The
exact top of the other half is judged. `forms.csv` has one row for each table; "smooth" is the part
of the weights that smooth forms have.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from shortlist import Capacity
from shortlist.learners import CapacityEnsembleClassifier
from shortlist.learners._ensemble_fitting import combined_scores, fit_member
from shortlist.metrics import detection_at_capacity
from shortlist.reproduce.tables import Table, mean_and_error, read_table, write_table
from studies.detection.tables import CONFIRMING, CONFIRMING_EVERYDAY, Source, load_table
from studies.harness import run_stored, study_parser

HERE = Path(__file__).parent
MULTIPLES = (1, 2, 3)


@dataclass(frozen=True)
class Half:
    """One table."""

    table: Source


def run_half(config: Half) -> Table:
    """Fit to one half, and count what both rankings find in the other."""
    warnings.simplefilter("ignore")
    X, is_rare = load_table(config.table)
    learn, test = train_test_split(
        np.arange(is_rare.size), test_size=0.5, stratify=is_rare, random_state=0
    )
    model = CapacityEnsembleClassifier(Capacity.multiple(2), rare_label=True, random_state=0)
    model.fit(X.iloc[learn], is_rare[learn])
    codes, flexible = is_rare[learn].astype(np.intp), []
    for seed, (name, view) in enumerate(model.views_.items()):
        known, unknown = (model.columns_[view].transform(X.iloc[rows]) for rows in (learn, test))
        fitted = fit_member(name, seed, ("flexible",), "default", known, codes, None, 1)
        flexible.append(combined_scores([fitted.models["flexible"]], unknown, 1))
    rankings = {
        "chosen": model.decision_function(X.iloc[test]),
        "plain": np.mean(flexible, axis=0),
    }
    row = {
        "list": "everyday" if config.table in CONFIRMING_EVERYDAY else "KEEL",
        "table": config.table.name,
        "rows": learn.size,
        "rare": int(is_rare[learn].sum()),
        "smooth": round(sum(of.get("smooth", 0.0) for of in model.weights_.values()), 2),
    }
    for name, scores in rankings.items():
        for b in MULTIPLES:
            found = detection_at_capacity(is_rare[test], scores, Capacity.multiple(b))
            row[f"{name}, b = {b}"] = round(found, 5)
    return [row]


def main() -> None:
    """Run, save and print means."""
    options = study_parser(__doc__, HERE, reps=1).parse_args()
    file = options.out / "forms.csv"
    if not options.table:
        halves = [Half(table) for table in (*CONFIRMING, *CONFIRMING_EVERYDAY)]
        write_table(run_stored("detection_forms", run_half, halves, n_jobs=options.jobs), file)
    rows = read_table(file)
    for name in dict.fromkeys(row["list"] for row in rows):
        for b in MULTIPLES:
            print(f"{name}, b = {b}: {_compared([r for r in rows if r['list'] == name], b)}")


def _compared(rows: Table, b: int) -> str:
    chosen, plain = (
        np.array([row[f"{name}, b = {b}"] for row in rows]) for name in ("chosen", "plain")
    )
    gain = mean_and_error((chosen - plain).tolist())
    means = f"{chosen.mean():.3f} beside {plain.mean():.3f}"
    return f"{means}, {gain['mean']:+.4f} ± {gain['error']:.4f}"


if __name__ == "__main__":
    main()
