"""The model beside other rules, on the same cases."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.labels import rare_share
from .._core.scoring import rare_scores
from ..tables import RuleResult, TableModel
from ..tables._measure import measure_random, measure_rule
from ..tables._select import rank_rows
from ..tables._smote import knows_capacity
from ._cases import Cases

__all__ = ["compare_rules"]

_NO_TWIN = (
    "Not available: the model file holds no SMOTE model. Install shortlist[smote] and fit again "
    "to compare."
)
_KNOWS_CAPACITY = (
    "Not compared: this learner was trained for the capacity, and has a threshold of its own "
    "instead of one that SMOTE would move."
)


def compare_rules(model: TableModel, cases: Cases) -> dict[str, Any]:
    """Measure the calibrated rule, exact lists, default thresholds, SMOTE and random choice.

    As in `evaluate`, a multiple refers to the share of rare cases here, not to that in `fit`.
    """
    share = rare_share(cases.is_rare)
    room = model.classifier.capacity.max_flags(cases.is_rare.size, share)
    inside = model.classifier.estimator_
    aware = knows_capacity(inside)
    default = "Its own threshold" if aware else "Default threshold"
    flags = {
        ("own", "This model, case by case"): cases.flagged,
        ("list", f"This model, a list of {room:,}"): cases.first(room),
        ("default", default): _predicted(inside, cases),
    }
    if model.twin is not None:
        flags["smote", "SMOTE, default threshold"] = _predicted(model.twin, cases)
        flags["smote list", f"SMOTE, a list of {room:,}"] = _listed(model, cases, room)
    rules = [
        {"kind": kind, **_measured(model, cases, name, flagged)}
        for (kind, name), flagged in flags.items()
    ]
    rules.append({"kind": "random", **_random(model, cases)})
    for rule in rules:
        rule["over_capacity"] = bool(rule["flagged"] > room)
    missing = _KNOWS_CAPACITY if aware else _NO_TWIN
    return {"room": room, "rules": rules, "smote": None if model.twin is not None else missing}


def _listed(model: TableModel, cases: Cases, room: int) -> NDArray[np.bool_]:
    """Return the list that the twin's scores would make."""
    scores = np.asarray(rare_scores(model.twin, cases.X, rare_label=True), dtype=np.float64)
    listed = np.zeros(scores.size, dtype=bool)
    listed[rank_rows(model, cases.X, cases.ids, scores)[:room]] = True
    return listed


def _predicted(estimator: Any, cases: Cases) -> NDArray[np.bool_]:
    return np.asarray(estimator.predict(cases.X), dtype=bool)


def _measured(model: TableModel, cases: Cases, name: str, flagged: Any) -> dict[str, Any]:
    return _plain(measure_rule(name, cases.is_rare, flagged, model.classifier.capacity))


def _random(model: TableModel, cases: Cases) -> dict[str, Any]:
    chance = measure_random(cases.is_rare, model.classifier.capacity)
    return _plain(replace(chance, rule="Random choice"))


def _plain(result: RuleResult) -> dict[str, Any]:
    return asdict(result) | {"precision": None if result.flagged == 0 else result.precision}
