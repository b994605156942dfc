"""What rules flag and find: counts, M and intervals, and value in money."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles, Floats, Mask, Rows
from .._core.formatting import number
from .._core.ids import tie_keys_of
from .._core.intervals import Interval, proportion_interval
from .._core.labels import EstimatedShare, rare_share
from .._core.ranking import expected_worth, keys_within, lift
from .._core.work import reaches
from ..capacity import Capacity
from ..exceptions import TableError
from ..metrics import (
    adjusted_detection_score,
    capacity_curve,
    out_of_fold_detection,
)
from ..metrics.counted import CountedRows
from ..metrics.detection import adjusted_detection_of_counts
from ..thresholds import select
from .model import RuleResult, TableModel, labels_of
from .schema import TableRows


def as_filled(n_flagged: int, n_rare: int, capacity: Capacity) -> Capacity:
    """Return the capacity that some flags fill, in the unit of another one."""
    if capacity.kind == "multiple" and n_flagged > 0:
        return Capacity.multiple(n_flagged / n_rare)
    return Capacity.count(n_flagged)


#: Names of rules: lists of the model, what its learner predicts itself, and a random choice.
AS_LIST, BY_DEFAULT, RANDOM = "this model, as a list", "default threshold", "random"


def measure_rule(rule: str, is_rare: Mask, flagged: Mask, capacity: Capacity) -> RuleResult:
    """Count what a rule flagged and found; the interval holds for this rule, if it is kept.

    Examples
    --------
    Two of four flags are rare, and there is room for four: all flags are followed up.

    >>> import numpy as np
    >>> from shortlist import Capacity
    >>> from shortlist.tables.rules import measure_rule
    >>> is_rare, flagged = np.arange(100) < 8, np.arange(100) >= 6
    >>> flagged &= np.arange(100) < 10
    >>> result = measure_rule("by hand", is_rare, flagged, Capacity.count(4))
    >>> result.found, result.precision, result.detection
    (2, 0.5, 0.25)
    """
    counts = (is_rare.size, *(int(each.sum()) for each in (is_rare, flagged, flagged & is_rare)))
    return _of_counts(rule, counts, capacity)


def measure_counted(
    counted: CountedRows, rule: str, name: str, capacity: Capacity, paid: float | None = None
) -> RuleResult:
    """Measure a rule by its column, for new rows of which it flags as large a share.

    What the rule flags comes first in the ranking. Such a ranking is a score, too, for which the
    interval holds. With a budget of work, it pays for a share of the flags, which are worked off in
    a random order.
    """
    n_flagged, n_found = counted.flags(rule)
    filled = as_filled(n_flagged, counted.n_rare, capacity)
    interval = counted.curve(first=rule).interval_at(filled)
    counts = (counted.n_items, counted.n_rare, n_flagged, n_found)
    return _of_counts(name, counts, capacity, interval, paid)


def _of_counts(
    rule: str,
    counts: tuple[int, ...],
    capacity: Capacity,
    filled: Interval | None = None,
    paid: float | None = None,
) -> RuleResult:
    """Measure a rule by the numbers of items, rare items, flags and rare items among these."""
    _, n_rare, n_flagged, n_found = counts
    limit = capacity if paid is None else Capacity.fraction(1)
    detection, interval = adjusted_detection_of_counts(*counts, capacity=limit)
    share = paid = 1.0 if paid is None else paid
    if filled is not None:
        share *= detection * n_rare / n_found if n_found else 1.0
        interval = filled
    interval = Interval(share * interval.low, share * interval.high)
    detection *= paid
    precision = n_found / n_flagged if n_flagged else None
    of_flags = proportion_interval(n_found, n_flagged)
    return RuleResult(rule, n_flagged, n_found, detection, interval, precision, of_flags)


def share_paid(flagged: Mask, budget: Capacity, efforts: Doubles) -> float:
    """Return which share of the work of flags a budget pays for."""
    work = float(efforts[flagged].sum())
    return min(1.0, float(budget.max_effort(flagged.size)) / work) if work else 1.0


def random_of(
    n_items: int, n_rare: int, capacity: Capacity, paid: float | None = None
) -> RuleResult:
    """Return what a random choice of as many rows as the capacity allows, or pays for, finds."""
    share = EstimatedShare(n_rare, n_items)
    n_flagged = capacity.max_flags(n_items, share) if paid is None else paid * n_items
    detection = n_flagged / n_items
    return RuleResult(RANDOM, n_flagged, detection * n_rare, detection, None, float(share), None)


# --- rows that a model has not seen ---


class Unseen(NamedTuple):
    """Rows that a model has not seen, with its flags, its probabilities, and what rules find."""

    rows: TableRows
    flagged: Mask
    probabilities: Doubles | None
    rules: list[RuleResult]


def measure_test_rows(model: TableModel, test: TableRows) -> Unseen:
    """Measure a finished model on rows that were kept aside."""
    flagged, by_default = model.decide(test).flagged, model.predict(test.X)
    order = _order(model, test, model.list_scores(test))
    one_list = np.zeros(order.size, dtype=np.intp)
    rules = _compared(model, labels_of(test), flagged, by_default, order, one_list)
    return Unseen(test, flagged, None, rules)


def measure_out_of_fold(model: TableModel, learned: TableRows) -> Unseen:
    """Measure the models of all folds, each on the rows of the fold that it has not seen.

    The threshold that judges a row has not seen it, either: it is that of the other rows.
    """
    classifier = model.classifier
    folds = [np.flatnonzero(classifier.folds_ == k) for k in range(len(classifier.estimators_))]
    places = np.concatenate(folds)
    unseen, rule = learned.take(places), classifier.rule_
    keys = tie_keys_of(learned.X, learned.ids, seed=rule.terms.seed)
    by_fold = [keys_within(keys, fold) for fold in folds]
    flagged = rule.terms.flags_without_own(rule.samples, classifier.capacity, by_fold)
    p = np.asarray(classifier.out_of_fold_scores_, dtype=np.float64)[places]
    by_default = p > 0.5
    if model.learner != "auto":  # others need not predict what is likelier
        by_model = zip(classifier.estimators_, folds, strict=True)
        predicted = [each.predict(learned.X.iloc[fold]) for each, fold in by_model]
        by_default = np.concatenate(predicted).astype(bool)
    order = _order(model, unseen, np.asarray(classifier.calibration_scores_))
    numbers = np.repeat(np.arange(len(folds)), [fold.size for fold in folds])
    together = [sample.groups for sample in rule.samples if sample.groups is not None]
    groups = np.concatenate(together) if together else None
    is_rare = labels_of(unseen)
    rules = _compared(model, is_rare, flagged, by_default, order, numbers, groups)
    return Unseen(unseen, flagged, p, rules)


def _order(model: TableModel, rows: TableRows, scores: Floats) -> Rows:
    """Return the rows by their scores, the most suspicious first; ties as the classifier's."""
    return np.lexsort((model.tie_keys(rows.X, rows.ids), -lift(scores)))


def _compared(
    model: TableModel,
    is_rare: Mask,
    flagged: Mask,
    by_default: Mask,
    order: Rows,
    folds: Rows,
    groups: NDArray[Any] | None = None,
) -> list[RuleResult]:
    """Measure the rule of a model, its lists of the rows of each fold, and other rules."""
    capacity = model.flag_capacity
    listed = out_of_fold_detection(is_rare, -np.argsort(order), folds, capacity, groups=groups)
    n_listed = capacity.max_flags(is_rare.size, rare_share(is_rare))
    n_found = listed.detection * int(is_rare.sum())
    as_list = RuleResult(
        AS_LIST,
        n_listed,
        n_found,
        listed.detection,
        Interval(listed.low, listed.high),
        n_found / n_listed if n_listed else None,
        proportion_interval(round(n_found), n_listed),
    )
    return [
        measure_rule("this model, row by row", is_rare, flagged, capacity),
        as_list,
        measure_rule(BY_DEFAULT, is_rare, by_default, capacity),
        random_of(is_rare.size, int(is_rare.sum()), capacity),
    ]


# --- value in money, and what other budgets would find ---


_FACTORS = (0.25, 0.5, 1.0, 1.5, 2.0, 4.0)
_SHOWN = ("n_flagged", "effort", "value", "value_share", "price")


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
    rules : list of dict
        The model's own rule, a list of the same budget, and a random choice: the number of flags,
        their work (without efforts, their number), and the value of the rare cases that are found
        within what may be spent, also as a share of all value. If the flags take more than that,
        they are worked off in a random order.
    points : list of dict
        What lists of budgets from a quarter to four times this one find: each `budget`, with
        columns of a :class:`~shortlist.CapacityCurve`.
    finds : str
        What is found: "of value", or "rare cases" without values.
    """

    unit: str
    allowed: float
    total_value: float
    rules: list[dict[str, Any]]
    points: list[dict[str, float]]
    finds: str = "of value"

    @property
    def one_more_in_words(self) -> str:
        """What one more hour, or one more unit, would find."""
        now = next(point for point in self.points if point["budget"] == self.allowed)
        one, price = self.unit.removesuffix("s"), now["price"]
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
    """Measure the rule of a model, and a list of the same budget, in money.

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
    listed = select(p, limit, values=values, efforts=e)
    lists = {"this model, row by row": flagged, f"list by {best}": listed}
    rules = [_measured(name, is_rare, mask, v, e, limit) for name, mask in lists.items()]
    total, work = float(v[is_rare].sum()), float(e.sum())
    share = min(1.0, budget / work)
    rules.append(_row("random", share * p.size, share * work, share, total))
    curve = capacity_curve(is_rare, p, rare_label=True, values=values, efforts=e)
    most = np.inf
    if worth is not None:  # lists are in the order of worth
        most = float(e[reaches(expected_worth(p, values, e), worth)].sum())
    points = [
        {"budget": each} | {name: row[name] for name in _SHOWN}
        for each in (factor * budget for factor in _FACTORS)
        for row in [curve.at(Capacity.effort(min(each, most)))]
    ]
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


def _measured(
    rule: str, is_rare: Mask, flagged: Mask, values: Doubles, efforts: Doubles, limit: Capacity
) -> dict[str, Any]:
    options: dict[str, Any] = {"capacity": limit, "rare_label": True, "values": values}
    share, total = 0.0, float(values[is_rare].sum())
    if total > 0:
        share = adjusted_detection_score(is_rare, flagged, efforts=efforts, **options)
    return _row(rule, int(flagged.sum()), float(efforts[flagged].sum()), share, total)


def _row(rule: str, flagged: float, effort: float, share: float, total: float) -> dict[str, Any]:
    found = {"value": share * total, "value_share": share}
    return {"rule": rule, "flagged": flagged, "effort": effort, **found}
