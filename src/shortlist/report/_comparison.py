"""The model beside other rules, on the same cases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._core.arrays import Mask, Rows
from .._core.labels import rare_share
from ..tables import TableModel
from ..tables.rules import measure_random, measure_rule
from ._cases import Cases

__all__ = ["compare_rules"]


def compare_rules(model: TableModel, cases: Cases) -> dict[str, Any]:
    """Measure the calibrated rule, exact lists, the default threshold and random choice.

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
    chance = measure_random(cases.rare, capacity, efforts)
    rules.append(
        {
            "kind": "random",
            **replace(chance, rule="Random choice").to_json(),
            "over_capacity": False,
        }
    )
    return {"room": room, "rules": rules}


def _predicted(estimators: Any, cases: Cases) -> Mask:
    """Return what most of the models flag by their own predictions."""
    votes = np.mean([np.asarray(each.predict(cases.X), dtype=bool) for each in estimators], axis=0)
    return votes > 0.5
