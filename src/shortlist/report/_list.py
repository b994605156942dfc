"""The top of the list, with the reasons for each case."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.arrays import Rows
from ..tables import TableModel
from ..tables.reasons import reasons_for
from ._cases import Cases

__all__ = ["top_of_list"]

_MOST_CASES = 10
_LONGEST_VALUE = 60


def top_of_list(model: TableModel, cases: Cases) -> list[dict[str, Any]]:
    """Return the most suspicious cases, and what raised the score of each.

    As on a list of `select`, each id takes one place.
    """
    chosen = _once_each(cases)[:_MOST_CASES]
    X, scores = cases.X.iloc[chosen], cases.scores[chosen]
    explained = np.asarray(model.classifier.score_samples(X), dtype=np.float64)
    return [
        {
            "rank": rank,
            "name": cases.name(place),
            "score": score,
            "flagged": bool(cases.flagged[place]),
            "rare": None if cases.is_rare is None else bool(cases.is_rare[place]),
            "reasons": [
                {
                    "column": reason.column,
                    "value": _shown(reason.value),
                    "effect": reason.effect,
                }
                for reason in reasons
            ],
        }
        for rank, (place, score, reasons) in enumerate(
            zip(chosen.tolist(), scores.tolist(), reasons_for(model, X, explained), strict=True), 1
        )
    ]


def _once_each(cases: Cases) -> Rows:
    """Return the first row of each id, the most suspicious first."""
    if cases.ids is None:
        return cases.order
    _, first = np.unique(cases.ids[cases.order].astype(str), return_index=True)
    return cases.order[np.sort(first)]


def _shown(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"
