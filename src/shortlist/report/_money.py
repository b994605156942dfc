"""The value that flags find, and whether they kept a budget of work."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.betting import mean_lower
from ..tables import TableModel
from ..tables.money import money_of, weighed_columns
from ..tables.schema import TableRows
from ._cases import Cases
from ._words import number, percent

__all__ = ["judge_work", "value_found"]

_UNLIKELY = 0.05


def value_found(
    model: TableModel, cases: Cases, *, budget: float | None = None
) -> dict[str, Any] | None:
    """Measure rules in money; None without labels, or without values and efforts."""
    if cases.is_rare is None:
        return None
    rows = TableRows(cases.X, values=cases.values, efforts=cases.efforts)
    known = {"is_rare": cases.is_rare, "flagged": cases.flagged}
    columns = known | weighed_columns(model, rows)
    money = money_of(model, columns, budget=budget)
    if money is None:
        return None
    own = money.rules[0]
    in_words = (
        f"The flags take {number(own.effort)} {money.unit}, and {number(money.allowed)} are "
        f"allowed; they find {number(own.value)}, {percent(own.value_share)} of the value of all "
        f"rare cases. {money.plan.one_more_in_words}"
    )
    return {**vars(money), "in_words": in_words}


def judge_work(model: TableModel, cases: Cases) -> tuple[str, str] | None:
    """Compare the work of the flags with a budget; return the verdict and why; None without one.

    If it is exceeded, bets against "the mean work is within the budget" tell whether chance can
    explain that. They are exact for every law of the work, because it is bounded.
    """
    classifier = model.classifier
    _, efforts = model.weighed_by(TableRows(cases.X, efforts=cases.efforts))
    if efforts is None or classifier.capacity.kind != "effort":
        return None
    unit = "units" if model.schema.work is None else model.schema.work.unit
    costs = np.where(cases.flagged, efforts, 0.0)
    spent, allowed = float(costs.sum()), float(classifier.capacity.max_effort(cases.n_items))
    said = (
        f"The rule flagged {cases.n_flagged:,} of {cases.n_items:,} cases, which take "
        f"{number(spent)} {unit}. The capacity allows {number(allowed)}."
    )
    if spent <= allowed:
        return "kept", said
    most = float(classifier.max_effort or efforts.max())
    surely = most * mean_lower(np.minimum(costs / most, 1.0), error=_UNLIKELY)
    if surely <= allowed / cases.n_items:
        return "chance", f"{said} The difference is no more than chance can explain."
    return "broken", (
        f"{said} If these cases were like the calibration cases, so much more would have a "
        f"probability below {percent(_UNLIKELY)}. They have probably changed: see the section on "
        "drift, and recalibrate the threshold on recent cases."
    )
