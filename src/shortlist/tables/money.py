"""The value that rules find, in money and not only in shares, and what other budgets would find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.arrays import Doubles, Mask
from .._core.formatting import number
from .._core.labels import rare_share
from .._core.work import expected_worth, reaches
from ..capacity import Capacity
from ..exceptions import TableError
from ..metrics import CapacityCurve, adjusted_detection_score, capacity_curve
from ..thresholds import select
from .model import TableModel
from .schema import TableRows

_FACTORS = (0.25, 0.5, 1.0, 1.5, 2.0, 4.0)


@dataclass(frozen=True)
class MoneyPoint:
    """What a budget finds: flags, value, its share of all value, and the price of one more unit.

    `factor` is the budget as a multiple of the one that was asked for.
    """

    factor: float
    budget: float
    n_flagged: int
    effort: float
    value: float
    value_share: float
    price: float


@dataclass(frozen=True)
class MoneyRule:
    """What one rule costs and finds.

    Attributes
    ----------
    rule : str
        Name of the rule.
    flagged : float
        Number of flags.
    effort : float
        Their work; without efforts, their number.
    value : float
        Value of the rare cases that are found within what may be spent. If the flags take more
        than that, they are worked off in a random order.
    value_share : float
        The same as a share of the value of all rare cases.
    """

    rule: str
    flagged: float
    effort: float
    value: float
    value_share: float


@dataclass(frozen=True)
class Money:
    """What rules find in money, on labelled rows.

    Attributes
    ----------
    unit : str
        What efforts are counted in; "cases" without efforts.
    allowed : float
        How much may be spent on these rows.
    total_value : float
        The value of all rare rows; without values, each counts as 1.
    rules : list of MoneyRule
        The model's own rule, and lists of the same budget in other orders.
    points : list of MoneyPoint
        What lists of budgets from a quarter to four times this one find.
    finds : str
        What is found: "of value", or "rare cases" without values.
    """

    unit: str
    allowed: float
    total_value: float
    rules: list[MoneyRule]
    points: list[MoneyPoint]
    finds: str = "of value"

    @property
    def one_more_in_words(self) -> str:
        """What one more hour, or one more unit, would find."""
        now = next(point for point in self.points if point.factor == 1)
        one, price = self.unit.removesuffix("s"), now.price
        if self.unit == "minutes":
            one, price = "hour", 60 * price
        return f"One more {one} would find about {number(price)} more {self.finds}."


def weighed_columns(model: TableModel, rows: TableRows, p: Doubles | None = None) -> dict[str, Any]:
    """Return what money is measured with: probabilities, values and efforts; nothing without."""
    if rows.values is None and rows.efforts is None:
        return {}
    p = model.probabilities(rows.X) if p is None else p
    named = {"p": p, "values": rows.values, "efforts": rows.efforts}
    return {name: column for name, column in named.items() if column is not None}


def money_of(
    model: TableModel, columns: Any, *, budget: float | None = None, worth: float | None = None
) -> Money | None:
    """Measure the rule of a model, and lists of the same budget, in money.

    None if the rows have neither values nor efforts. With `worth`, lists spend nothing on cases of
    less expected value per unit of effort.
    """
    if budget is not None and "efforts" not in columns:
        raise TableError("budget=... is one of work: name its column with effort=...")
    if "p" not in columns:
        return None
    is_rare, p, flagged = (columns[name] for name in ("is_rare", "p", "flagged"))
    values, efforts = columns.get("values"), columns.get("efforts")
    if budget is None:
        budget = _allowed_on(model, efforts, is_rare)
    v, e = (np.ones(p.size) if each is None else each for each in (values, efforts))
    limit = Capacity.effort(budget)
    named = {"value * ": values, "p": p, " / effort": efforts}
    best = "".join(part for part, column in named.items() if column is not None)
    lists = {
        "this model, row by row": flagged,
        f"list by {best}": select(p, limit, values=values, efforts=e),
        "list by p": _fill_in_order(p, e, budget),
        **({} if values is None else {"list by value": _fill_in_order(v, e, budget)}),
    }
    rules = [_measured(name, is_rare, mask, v, e, limit) for name, mask in lists.items()]
    total, work = float(v[is_rare].sum()), float(e.sum())
    share = min(1.0, budget / work)
    rules.append(MoneyRule("random", share * p.size, share * work, share * total, share))
    curve = capacity_curve(is_rare, p, rare_label=True, values=values, efforts=e)
    most = np.inf
    if worth is not None:  # lists are in the order of worth
        most = float(e[reaches(expected_worth(p, values, e), worth)].sum())
    points = [_point(curve, factor, factor * budget, most) for factor in _FACTORS]
    unit = "cases" if efforts is None or model.schema.work is None else model.schema.work.unit
    finds = "rare cases" if values is None else "of value"
    return Money(unit, budget, total, rules, points, finds)


def _allowed_on(model: TableModel, efforts: Doubles | None, is_rare: Mask) -> float:
    """Return how much work, or how many flags, the capacity of a model allows on some rows."""
    capacity = model.classifier.capacity
    if capacity.kind == "effort":
        return float(capacity.max_effort(is_rare.size))
    if efforts is not None:
        raise TableError(
            "effort=... needs budget=... here: the capacity of the model is a number of flags. Use "
            "budget=480, say."
        )
    return float(capacity.max_flags(is_rare.size, rare_share(is_rare)))


def _point(curve: CapacityCurve, factor: float, budget: float, most: float) -> MoneyPoint:
    row = curve.at(Capacity.effort(min(budget, most)))
    found = [row[name] for name in ("effort", "value", "value_share", "price")]
    return MoneyPoint(factor, budget, int(row["n_flagged"]), *found)


def _measured(
    rule: str, is_rare: Mask, flagged: Mask, values: Doubles, efforts: Doubles, limit: Capacity
) -> MoneyRule:
    options: dict[str, Any] = {"capacity": limit, "rare_label": True, "values": values}
    share, total = 0.0, float(values[is_rare].sum())
    if total > 0:
        share = adjusted_detection_score(is_rare, flagged, efforts=efforts, **options)
    return MoneyRule(rule, int(flagged.sum()), float(efforts[flagged].sum()), share * total, share)


def _fill_in_order(scores: Doubles, efforts: Doubles, budget: float) -> Mask:
    """Work down a ranking, and leave out what does not fit."""
    left, flagged, least = budget, np.zeros(scores.size, dtype=bool), efforts.min()
    for item in np.argsort(-scores, kind="stable"):
        if left < least:
            break
        if efforts[item] <= left:
            flagged[item] = True
            left -= efforts[item]
    return flagged
