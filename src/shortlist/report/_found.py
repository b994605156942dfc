"""What was found: at every cut, by segment, beside other rules, in money; and what was missed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .._core.arrays import Rows
from .._core.files import to_plain
from .._core.formatting import number, percent
from .._core.intervals import proportion_interval
from .._core.labels import rare_share
from ..capacity import Capacity
from ..metrics import capacity_curve
from ..tables import TableModel
from ..tables.groups import GroupCodes, by_group
from ..tables.measure import measure_rules, shares_paid
from ..tables.reviews import missed_in_table
from ..tables.rules import as_filled, money_of, weighed_columns
from ._cases import Cases, short

# Up to this number of flags, every cut can be chosen; with more flags, only some of them.
_MOST_CUTS = 1_000
_SPREAD_CUTS = 400
_REACH = 4  # times the capacity
_FEWEST = 20


def spread_cuts(n_items: int, *, room: int, n_flagged: int) -> Rows:
    """Return the numbers of flags to choose from: up to four times the room, or more."""
    most = min(n_items, max(_REACH * room, n_flagged + n_flagged // 4, _FEWEST))
    if most <= _MOST_CUTS:
        return np.arange(most + 1)
    spread = np.linspace(0, most, _SPREAD_CUTS).round().astype(np.intp)
    return np.unique([*spread, min(room, most), n_flagged])


def cut_table(cases: Cases, cuts: Rows, capacity: Capacity) -> dict[str, list[Any]]:
    """Measure each cut; return columns."""
    places = -np.arange(cases.n_items, dtype=np.float64)  # the order is known, and has no ties
    curve = capacity_curve(cases.rare[cases.order], places, rare_label=True)
    filled = [as_filled(cut, curve.n_rare, capacity) for cut in cuts.tolist()]
    detection = [curve.interval_at(each) for each in filled]
    precision = [proportion_interval(int(curve.n_found[cut]), cut) for cut in cuts.tolist()]
    return {
        "flags": cuts.tolist(),
        "found": curve.n_found[cuts].tolist(),
        "detection": curve.detection[cuts].tolist(),
        "detection_low": [interval.low for interval in detection],
        "detection_high": [interval.high for interval in detection],
        "precision": curve.precision[cuts].tolist(),
        "precision_low": [interval.low for interval in precision],
        "precision_high": [interval.high for interval in precision],
        "one_more_finds": curve.marginal[cuts].tolist(),
    }


def compare_rules(model: TableModel, cases: Cases) -> dict[str, Any]:
    """Measure the calibrated rule, exact lists, the default threshold and random choice.

    As in `evaluate`, a multiple refers to the share of rare cases here, not in the fit.
    """
    capacity, efforts = model.limit_for(cases.rows.efforts)
    room = cases.room(model, rare_share(cases.rare))
    length = f" of {room:,}" if efforts is None else " within the budget"
    names = {
        "own": "This model, case by case",
        "list": f"This model, a list{length}",
        "default": "Default threshold",
    }
    flags = {
        "own": cases.flagged,
        "list": cases.first(room),
        "default": model.predict(cases.rows.X),
    }
    paid = shares_paid(flags, capacity, efforts)
    counted = cases.counted(flags)
    found = measure_rules(counted, model.flag_capacity, names, paid)
    found[-1] = replace(found[-1], rule="Random choice")
    rules = [
        {
            "kind": kind,
            **to_plain(rule),
            "over_capacity": kind in flags
            and (rule.flagged > room if efforts is None else paid[kind] != 1),
        }
        for kind, rule in zip([*flags, "random"], found, strict=True)
    ]
    return {
        "room": room,
        "rules": rules,
        "in_words": detection_in_words(rules[0], n_rare=counted.n_rare),
        "rule_is_a_list": bool(np.array_equal(cases.first(cases.n_flagged), cases.flagged)),
    }


def detection_in_words(rule: dict[str, Any], *, n_rare: int) -> str:
    """Say what the adjusted detection score M of a rule means, with its own numbers."""
    found = f"{number(rule['found'])} of {number(n_rare)} rare cases are among the flags"
    m = f"So the capacity finds {percent(rule['detection'])} of the rare cases."
    if not rule["over_capacity"]:
        return f"{found}, and there is room to follow up every flag. {m}"
    return (
        f"{found}, but there is not enough room to follow up all {number(rule['flagged'])} flags. "
        f"Followed up in a random order, they find {number(rule['detection'] * n_rare)} rare cases "
        f"on average. {m}"
    )


def by_segment(cases: Cases, column: str) -> dict[str, Any]:
    """Measure the rule in each segment: the twenty largest, and all others together."""
    codes = GroupCodes()
    names, own = codes.largest(codes.of(np.asarray(cases.segments)))
    is_rare = np.zeros(cases.n_items, bool) if cases.rows.is_rare is None else cases.rare
    return {
        "column": column,
        "n_groups": len(set(np.asarray(cases.segments).tolist())),
        "groups": by_group([short(name, 80) for name in names], own, is_rare, cases.flagged),
    }


def value_found(model: TableModel, cases: Cases) -> dict[str, Any] | None:
    """Measure rules in money; None without labels, or without values and efforts."""
    if cases.rows.is_rare is None:
        return None
    known = {"is_rare": cases.rows.is_rare, "flagged": cases.flagged}
    money = money_of(model, known | weighed_columns(model, cases.rows))
    if money is None:
        return None
    own = money.rules[0]
    in_words = (
        f"The flags take {number(own['effort'])} {money.unit}, and {number(money.allowed)} are "
        f"allowed; they find {number(own['value'])}, {percent(own['value_share'])} of the value of "
        f"all rare cases. {money.one_more_in_words}"
    )
    return {**vars(money), "in_words": in_words}


def judge_reviews(
    model: TableModel, reviews: Path | None, *, period: str | None = None
) -> dict[str, Any] | None:
    """Estimate what is missed from a table of reviews, in all and by period; None without one."""
    if reviews is None:
        return None
    result = missed_in_table(model, reviews, period=period)
    estimate = result.estimate
    rows = [*estimate.by_period.items(), ("all", estimate)]
    return {
        "file": reviews.name,
        "in_words": str(estimate),
        "verdict": result.verdict,
        "confidence": estimate.confidence,
        "is_enough": estimate.is_enough,
        "has_fallen": result.has_fallen,
        "expected_detection": result.expected_detection,
        "periods": [{"period": str(name), **vars(each), "by_period": None} for name, each in rows],
    }
