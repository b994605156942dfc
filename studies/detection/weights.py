"""Do forms, slopes and weights of members pay, beside a plain average of the same models?

    python -m studies.detection.weights --jobs 2

Two random halves of each table, single fits without folds. All members are fitted in both forms,
and combined in several ways for b = 2; the exact top of the other half is judged. `weights.csv` has
the mean detection by list of tables and way, and differences from the plain average.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from shortlist import Capacity
from shortlist.learners import CapacityEnsembleClassifier
from shortlist.learners._fitting import (
    FEWEST_JUDGED,
    FEWEST_RARE,
    Fitted,
    Training,
    combined_scores,
    fit_line,
    fit_member,
    form_shares,
    greedy_weights,
    weighted_sum,
)
from shortlist.learners.members import FORMS
from shortlist.metrics import detection_at_capacity
from studies.detection.tables import (
    CHOOSING,
    CHOOSING_EVERYDAY,
    CONFIRMING,
    CONFIRMING_EVERYDAY,
    Source,
    load_table,
)
from studies.harness import print_summary, run_stored, study_parser
from studies.tables import Table, mean_and_error, write_table

HERE = Path(__file__).parent
MULTIPLES = (1, 2, 3)
PLAIN = "plain average, flexible"
LISTS = {
    "KEEL, choosing": CHOOSING,
    "everyday, choosing": CHOOSING_EVERYDAY,
    "KEEL, confirming": CONFIRMING,
    "everyday, confirming": CONFIRMING_EVERYDAY,
}


@dataclass(frozen=True)
class Half:
    """One half of a table."""

    list: str
    table: Source
    repetition: int


def run_half(config: Half) -> Table:
    """Fit to one half, and count what each way of combining finds in the other."""
    warnings.simplefilter("ignore")
    X, is_rare, learn, test = split(config)
    judged, scores = _fitted(X, is_rare, learn, test)
    names = {"list": config.list, "table": config.table.name}
    return [
        {**names, "way": way, **detections(is_rare[test], ranking)}
        for way, ranking in _ways(judged, scores, is_rare[learn]).items()
    ]


def all_halves(repetitions: int) -> list[Half]:
    """Return halves of all tables."""
    return [
        Half(name, table, repetition)
        for name, tables in LISTS.items()
        for table in tables
        for repetition in range(repetitions)
    ]


def split(config: Half) -> tuple[Any, Any, Any, Any]:
    """Return a table, where its rare rows are, and the rows to learn from and to test on."""
    X, is_rare = load_table(config.table)
    learn, test = train_test_split(
        np.arange(is_rare.size), test_size=0.5, stratify=is_rare, random_state=config.repetition
    )
    return X, is_rare, learn, test


def detections(is_rare: Any, ranking: Any) -> dict[str, float]:
    """Return what the top of a ranking detects at each capacity."""
    return {
        f"b = {b}": detection_at_capacity(is_rare, ranking, Capacity.multiple(b)) for b in MULTIPLES
    }


def _fitted(X: Any, is_rare: Any, learn: Any, test: Any) -> tuple[dict[str, Fitted], Any]:
    """Return every member in both forms, and the scores of the test rows by kind and form."""
    # It prepares the columns; its own members are not used.
    model = CapacityEnsembleClassifier(size="quick", random_state=0)
    model.fit(X.iloc[learn], is_rare[learn])
    codes = is_rare[learn].astype(np.intp)
    judged: dict[str, Fitted] = {}
    scores: dict[str, dict[str, Any]] = {}
    for seed, (name, view) in enumerate(model.views_.items()):
        known, unknown = (model.columns_[view].transform(X.iloc[rows]) for rows in (learn, test))
        parts = [
            fit_member(Training(name, seed, "default", known, codes), (form,), judges=True)
            for form in FORMS
        ]
        judged[name] = Fitted(
            {form: part.models[form] for form, part in zip(FORMS, parts, strict=True)},
            dict.fromkeys(FORMS, 1.0),
            {form: part.unseen[form] for form, part in zip(FORMS, parts, strict=True)},
        )
        scores[name] = {
            form: combined_scores([judged[name].models[form]], unknown) for form in FORMS
        }
    return judged, scores


def _ways(judged: dict[str, Fitted], scores: Any, is_rare: Any) -> dict[str, Any]:
    """Return the ranking of the test rows by each way to combine the members."""
    plain = np.mean([forms["flexible"] for forms in scores.values()], axis=0)
    if is_rare.sum() < FEWEST_JUDGED:  # nothing is judged then
        return dict.fromkeys((PLAIN, "one form", "both in doubt", "and by log-loss"), plain)
    lines = {
        name: {form: fit_line(part.unseen[form], is_rare) for form in FORMS}
        for name, part in judged.items()
    }
    shares = {name: form_shares(of) for name, of in lines.items()}
    better = {name: {max(of, key=of.__getitem__): 1.0} for name, of in shares.items()}
    found = {PLAIN: plain}
    for way, parts, evidence in (
        ("one form", better, False),
        ("both in doubt", shares, False),
        ("and by log-loss", shares, True),
    ):
        trust = {
            name: {form: share * lines[name][form].slope for form, share in of.items()}
            for name, of in parts.items()
        }
        unseen = {name: _sum(judged[name].unseen, trust[name]) for name in judged}
        weights = _weights(unseen, is_rare, evidence=evidence)
        found[way] = np.sum([weights[name] * _sum(scores[name], trust[name]) for name in judged], 0)
    return found


def _sum(scores: dict[str, Any], trust: dict[str, float]) -> Any:
    return weighted_sum({form: scores[form] for form in trust}, trust)


def _weights(unseen: dict[str, Any], is_rare: Any, *, evidence: bool) -> dict[str, float]:
    weights = dict.fromkeys(unseen, 1.0)
    if evidence:
        weights = evidence_for({name: fit_line(each, is_rare) for name, each in unseen.items()})
    if is_rare.sum() < FEWEST_RARE:
        return weights
    chosen = greedy_weights(unseen, is_rare, 2 * int(is_rare.sum()))
    return {name: weights[name] * chosen[name] for name in weights}


def evidence_for(lines: dict[str, Any]) -> dict[str, float]:
    """Return a factor for each member, e^(-z / 2) if its log-loss is z errors above the lowest."""
    best = min(lines.values(), key=lambda line: line.losses.sum())
    return {name: float(np.exp(-min(best.gain_over(of), 4) / 2)) for name, of in lines.items()}


def summarise(rows: Table, first: str = PLAIN) -> Table:
    """Return means over tables by list and way, and differences from the first way."""
    found: dict[tuple[str, str], dict[str, list[Any]]] = {}
    for row in rows:
        of = found.setdefault((row["list"], row["way"]), {}).setdefault(row["table"], [])
        of.append([row[f"b = {b}"] for b in MULTIPLES])
    means = {key: np.array([np.mean(each, 0) for each in of.values()]) for key, of in found.items()}
    summary = []
    for (name, way), of in means.items():
        gain = mean_and_error((of - means[name, first]).mean(axis=1).tolist())
        at = {f"b = {b}": round(float(of[:, k].mean()), 4) for k, b in enumerate(MULTIPLES)}
        less = {"difference": round(gain["mean"], 5), "error": round(gain["error"], 5)}
        summary.append({"list": name, "tables": len(of), "way": way, **at, **less})
    return summary


def main() -> None:
    """Run, save and print."""
    options = study_parser(__doc__, HERE, reps=2).parse_args()
    file = options.out / "weights.csv"
    if not options.table:
        halves = all_halves(options.reps)
        rows = run_stored("detection_weights", run_half, halves, n_jobs=options.jobs)
        write_table(summarise(rows), file)
    print_summary(file)


if __name__ == "__main__":
    main()
