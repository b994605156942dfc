"""What was found: at every cut, beside other rules, in money; and what reviews say was missed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .._core.arrays import Mask, Rows
from .._core.binomial import proportion_interval
from .._core.labels import rare_share
from ..capacity import Capacity
from ..feedback import MissedEstimate
from ..tables import TableModel
from ..tables.money import money_of, weighed_columns
from ..tables.reviews import missed_in_table
from ..tables.rules import curve_of, interval_of_flags, measure_random, measure_rule
from ..tables.schema import TableRows
from ._cases import Cases
from ._words import number, percent

#: Number of cases that are named on either side of a cut.
NEAR = 8
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
    near = np.arange(-NEAR, NEAR + 1)
    spread = np.linspace(0, most, _SPREAD_CUTS).round().astype(np.intp)
    every = np.concatenate([spread, room + near, n_flagged + near])
    return np.unique(every[(every >= 0) & (every <= most)])


def cut_table(cases: Cases, cuts: Rows, capacity: Capacity) -> dict[str, list[Any]]:
    """Measure each cut; return columns."""
    curve = curve_of(cases.rare, cases.order)
    places, scores = cuts.tolist(), cases.scores[cases.order]
    detection = [interval_of_flags(curve, cut, capacity) for cut in places]
    precision = [proportion_interval(int(curve.n_found[cut]), cut) for cut in places]
    return {
        "flags": places,
        "found": curve.n_found[cuts].tolist(),
        "detection": curve.detection[cuts].tolist(),
        "detection_low": [interval.low for interval in detection],
        "detection_high": [interval.high for interval in detection],
        "precision": [None if cut == 0 else curve.precision[cut].item() for cut in places],
        "precision_low": [interval.low for interval in precision],
        "precision_high": [interval.high for interval in precision],
        "one_more_finds": curve.marginal[cuts].tolist(),
        "lowest_score": [None if cut == 0 else scores[cut - 1].item() for cut in places],
    }


def neighbours(cases: Cases, cuts: Rows) -> dict[str, list[Any]]:
    """List the cases on either side of each cut; return columns, by rank from 1."""
    near = (cuts[:, np.newaxis] + np.arange(-NEAR, NEAR)).ravel()
    ranks = np.unique(near[(near >= 0) & (near < cases.order.size)])
    chosen = cases.order[ranks]
    return {
        "rank": (ranks + 1).tolist(),
        "name": [cases.name(place) for place in chosen.tolist()],
        "score": cases.scores[chosen].tolist(),
        "rare": cases.rare[chosen].tolist(),
    }


def compare_rules(model: TableModel, cases: Cases) -> dict[str, Any]:
    """Measure the calibrated rule, exact lists, the default threshold and random choice.

    As in `evaluate`, a multiple refers to the share of rare cases here, not in the fit.
    """
    capacity, efforts = cases.limit(model)
    room = cases.room(model, rare_share(cases.rare))

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
        measured("default", "Default threshold", _predicted(model.classifier.estimators_, cases)),
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
        f"rare cases. {money.one_more_in_words}"
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
        "periods": [{"period": str(period), **_numbers(each)} for period, each in rows],
    }


def _numbers(estimate: MissedEstimate) -> dict[str, Any]:
    found = ("n_probes", "n_hits", "n_unknown", "found", "missed", "detection")
    return {
        **{name: getattr(estimate, name) for name in found},
        "missed_interval": [estimate.missed_low, estimate.missed_high],
        "detection_interval": [estimate.detection_low, estimate.detection_high],
    }
