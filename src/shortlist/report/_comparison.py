"""The model beside other rules, on the same cases."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from .._labels import rare_share
from .._sklearn import rare_scores
from ..tables import RuleResult, TableModel
from ..tables._measure import measure_random, measure_rule
from ..tables._select import rank_rows
from ._cases import Cases

__all__ = ["compare_rules"]

_NO_TWIN = (
    "Not available: the model file holds no SMOTE model. Install shortlist[smote] and fit again "
    "to compare."
)


def compare_rules(model: TableModel, cases: Cases) -> dict[str, Any]:
    """Measure the calibrated rule, exact lists, default thresholds, SMOTE and random choice.

    As in `evaluate`, a multiple refers to the share of rare cases here, not to that in `fit`.
    """
    capacity, share = model.classifier.capacity, rare_share(cases.is_rare)
    room = capacity.max_flags(cases.is_rare.size, share)
    rules = [
        _measured(model, cases, "This model, case by case", cases.flagged),
        _measured(model, cases, f"This model, a list of {room:,}", cases.first(room)),
        _measured(
            model, cases, "Default threshold", _predicted(model.classifier.estimator_, cases)
        ),
        *_smote(model, cases, room),
        _random(model, cases),
    ]
    for rule in rules:
        rule["over_capacity"] = bool(rule["flagged"] > room)
    return {"room": room, "rules": rules, "smote": None if model.twin is not None else _NO_TWIN}


def _smote(model: TableModel, cases: Cases, room: int) -> list[dict[str, Any]]:
    if model.twin is None:
        return []
    scores = np.asarray(rare_scores(model.twin, cases.X, rare_label=True), dtype=np.float64)
    listed = np.zeros(scores.size, dtype=bool)
    listed[rank_rows(model, cases.X, cases.ids, scores)[:room]] = True
    return [
        _measured(model, cases, "SMOTE, default threshold", _predicted(model.twin, cases)),
        _measured(model, cases, f"SMOTE, a list of {room:,}", listed),
    ]


def _predicted(estimator: Any, cases: Cases) -> Any:
    return np.asarray(estimator.predict(cases.X), dtype=bool)


def _measured(model: TableModel, cases: Cases, name: str, flagged: Any) -> dict[str, Any]:
    return _plain(measure_rule(name, cases.is_rare, flagged, model.classifier.capacity))


def _random(model: TableModel, cases: Cases) -> dict[str, Any]:
    chance = measure_random(cases.is_rare, model.classifier.capacity)
    return _plain(replace(chance, rule="Random choice"))


def _plain(result: RuleResult) -> dict[str, Any]:
    return asdict(result) | {"precision": None if result.flagged == 0 else result.precision}
