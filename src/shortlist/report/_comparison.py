"""The model beside other rules, on the same cases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._core.arrays import Mask, Rows
from .._core.labels import rare_share
from .._core.scoring import rare_scores
from ..tables import TableModel, measure_random, measure_rule
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
    capacity, efforts = cases.limit(model)
    room = cases.room(model, rare_share(cases.rare))
    default = "Its own threshold" if model.knows_capacity else "Default threshold"

    def measured(kind: str, name: str, flagged: Mask, order: Rows = cases.order) -> dict[str, Any]:
        rule = measure_rule(name, cases.rare, flagged, capacity, order=order, efforts=efforts)
        over = cases.is_over(model, flagged, room)
        return {"kind": kind, **rule.to_json(), "over_capacity": over}

    def listed(order: Rows) -> Mask:
        return replace(cases, order=order).fitting(model, room)

    length = f" of {room:,}" if efforts is None else " within the budget"
    rules = [
        measured("own", "This model, case by case", cases.flagged),
        measured("list", f"This model, a list{length}", listed(cases.order)),
        measured("default", default, _predicted(model.classifier.estimators_, cases)),
    ]
    if model.twin is not None:
        order = _order(model, cases)
        rules += [
            measured("smote", "SMOTE, default threshold", _predicted([model.twin], cases), order),
            measured("smote list", f"SMOTE, a list{length}", listed(order), order),
        ]
    chance = measure_random(cases.rare, capacity, efforts)
    rules.append(
        {
            "kind": "random",
            **replace(chance, rule="Random choice").to_json(),
            "over_capacity": False,
        }
    )
    missing = _KNOWS_CAPACITY if model.knows_capacity else _NO_TWIN
    return {"room": room, "rules": rules, "smote": None if model.twin is not None else missing}


def _order(model: TableModel, cases: Cases) -> Rows:
    """Return the ranking by the scores of the SMOTE model."""
    scores = np.asarray(rare_scores(model.twin, cases.X, rare_label=True), dtype=np.float64)
    return model.rank(cases.X, cases.ids, scores)


def _predicted(estimators: Any, cases: Cases) -> Mask:
    """Return what most of the models flag by their own predictions."""
    votes = np.mean([np.asarray(each.predict(cases.X), dtype=bool) for each in estimators], axis=0)
    return votes > 0.5
