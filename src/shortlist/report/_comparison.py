"""The model beside other rules, on the same cases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._core.arrays import Mask, Rows
from .._core.labels import rare_share
from .._core.scoring import rare_scores
from ..tables import RuleResult, TableModel, measure_list, measure_random, measure_rule
from ._cases import Cases

__all__ = ["compare_rules"]

_NO_TWIN = (
    "Not available: the model file contains no SMOTE model. To compare, install shortlist[smote] "
    "and fit again."
)
_KNOWS_CAPACITY = (
    "Not compared: this learner was trained for the capacity and has its own threshold, which "
    "SMOTE would not move."
)


def compare_rules(model: TableModel, cases: Cases) -> dict[str, Any]:
    """Measure the calibrated rule, exact lists, default thresholds, SMOTE and random choice.

    As in `evaluate`, a multiple refers to the share of rare cases here, not in the fit.
    """
    share = rare_share(cases.is_rare)
    room = model.classifier.capacity.max_flags(cases.is_rare.size, share)
    default = "Its own threshold" if model.knows_capacity else "Default threshold"

    def by_threshold(name: str, flagged: Mask) -> RuleResult:
        return measure_rule(name, cases.is_rare, flagged, model.classifier.capacity)

    def by_list(name: str, order: Rows) -> RuleResult:
        return measure_list(name, cases.is_rare, order, model.classifier.capacity)

    measured = [
        ("own", by_threshold("This model, case by case", cases.flagged)),
        ("list", by_list(f"This model, a list of {room:,}", cases.order)),
        ("default", by_threshold(default, model.predict_alone(cases.X))),
    ]
    if model.twin is not None:
        predicted = _predicted(model.twin, cases)
        measured += [
            ("smote", by_threshold("SMOTE, default threshold", predicted)),
            ("smote list", by_list(f"SMOTE, a list of {room:,}", _order(model, cases))),
        ]
    chance = measure_random(cases.is_rare, model.classifier.capacity)
    measured.append(("random", replace(chance, rule="Random choice")))
    rules = [
        {"kind": kind, **rule.to_json(), "over_capacity": bool(rule.flagged > room)}
        for kind, rule in measured
    ]
    missing = _KNOWS_CAPACITY if model.knows_capacity else _NO_TWIN
    return {"room": room, "rules": rules, "smote": None if model.twin is not None else missing}


def _order(model: TableModel, cases: Cases) -> Rows:
    """Return the ranking by the scores of the SMOTE model."""
    scores = np.asarray(rare_scores(model.twin, cases.X, rare_label=True), dtype=np.float64)
    return model.rank(cases.X, cases.ids, scores)


def _predicted(estimator: Any, cases: Cases) -> Mask:
    return np.asarray(estimator.predict(cases.X), dtype=bool)
