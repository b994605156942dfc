"""What other capacities would find, and what one more reviewer adds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from .._core.labels import EstimatedShare, rare_share
from ..capacity import Capacity, exact
from ..exceptions import TableError
from ..metrics import CapacityCurve, capacity_curve
from ._evaluate import CurvePoint, check_has_both_classes, labels_of, points_at
from ._fingerprints import SeenRows
from ._model import TableModel
from ._money import MoneyPlan, allowed_on, plan_money, probabilities_of
from ._reading import Reading
from ._schema import TableRows
from ._work import WorkColumns

__all__ = ["ExpectedFlags", "NextReviewer", "Plan", "plan_capacity"]

#: The capacities of a plan, as multiples of the model's own.
_FACTORS = ("0.25", "0.5", "0.75", "1", "1.25", "1.5", "2", "3", "4")


@dataclass(frozen=True)
class ExpectedFlags:
    """How many rows the rule would flag with another capacity; this needs no labels."""

    fraction: float
    room: int
    flagged: int


@dataclass(frozen=True)
class NextReviewer:
    """How many more rare cases are found by one more reviewer, who handles `load` rows.

    `found` is counted in these rows. `expected` is the load times the slope of the smoothed curve;
    it depends less on the few rows that happen to come next.
    """

    load: int
    found: int
    expected: float


@dataclass(frozen=True)
class Plan:
    """Detection for a range of capacities; without labels, only the expected number of flags.

    `seen` tells how many of the rows trained or calibrated the model; None if that is not known.
    """

    n_items: int
    n_rare: int | None
    capacity_fraction: float
    points: list[CurvePoint] | None
    expected_flags: list[ExpectedFlags] | None
    next_reviewer: NextReviewer | None
    seen: SeenRows | None = None
    money: MoneyPlan | None = None


def plan_capacity(
    model: TableModel,
    path: Path,
    *,
    target: str | None = None,
    load: int = 1,
    reading: Reading | None = None,
    work: WorkColumns | None = None,
) -> Plan:
    """Compare capacities from a quarter to four times the model's own.

    Without labels, the plan contains only how many rows each capacity would flag.

    Parameters
    ----------
    model : TableModel
        Fitted.
    path : Path
        A table with the columns that the model needs.
    target : str, default=None
        The column with the labels; `None` takes the target of the fit if the table has it.
    load : int, default=1
        How many rows one reviewer handles.
    reading : Reading, default=None
        What to know about this file; `None` reads it as the table of the fit.
    work : WorkColumns, default=None
        Columns with values and efforts, and a budget: what it and other budgets would find. This
        needs labels.

    Returns
    -------
    Plan
        Points of the capacity curve with an interval for each capacity, and what one more
        reviewer adds.
    """
    work, of_work = work or WorkColumns(), model.classifier.capacity.kind == "effort"
    if not of_work:
        work.check_pair()
    model = model.reading_work(work)
    with model.schema.open(path, reading=reading) as source:
        own = model.schema.target if model.schema.target in source.columns else None
        labels = own if target is None else target
        rows = model.schema.read(source, target=labels)
    capacity = model.flag_capacity
    if labels is None:
        if work.is_given:
            raise TableError(
                "--value and --effort need labels: the value found is counted in them."
            )
        return _without_labels(model, rows)
    check_has_both_classes(rows, model.schema, labels)
    scores = model.list_scores(rows)
    curve = capacity_curve(labels_of(rows), scores, rare_label=True)
    prevalence = EstimatedShare(curve.n_rare, curve.n_items)
    return Plan(
        n_items=curve.n_items,
        n_rare=curve.n_rare,
        capacity_fraction=capacity.as_fraction(prevalence),
        points=points_at(curve, _scaled(capacity, prevalence)),
        expected_flags=None,
        next_reviewer=_next_reviewer(curve, capacity, load),
        seen=model.seen_in(rows),
        money=_money(model, rows, work.budget),
    )


def _money(model: TableModel, rows: TableRows, budget: float | None) -> MoneyPlan | None:
    work, is_rare = model.schema.work, labels_of(rows)
    if work is None:
        return None
    if budget is None:
        budget = allowed_on(model, rows.efforts, is_rare.size, rare_share(is_rare))
    unit = work.unit if rows.efforts is not None else "cases"
    p = probabilities_of(model, rows)
    return plan_money(is_rare, p, rows.values, rows.efforts, budget=budget, unit=unit)


def _without_labels(model: TableModel, rows: TableRows) -> Plan:
    classifier, n_items = model.classifier, len(rows.X)
    if classifier.capacity.kind == "effort":
        raise TableError(
            "The capacity of this model is a budget of work, and a plan for it needs labels: pass "
            "a table with the target."
        )
    prevalence = EstimatedShare(exact(classifier.prevalence_))
    expected = []
    for capacity in _scaled(classifier.capacity, prevalence):
        other = replace(model, classifier=classifier.with_capacity(capacity))
        flagged = other.decide(rows).flagged
        room = capacity.max_flags(n_items, prevalence)
        fraction = capacity.as_fraction(prevalence)
        expected.append(ExpectedFlags(fraction, room, int(flagged.sum())))
    seen = model.seen_in(rows)
    return Plan(n_items, None, classifier.capacity_fraction_, None, expected, None, seen)


def _scaled(capacity: Capacity, prevalence: Fraction) -> list[Capacity]:
    """Return multiples of a capacity in its own unit, up to all rows."""
    factors = [exact(factor) for factor in _FACTORS]
    most = [factor for factor in factors if factor * capacity.as_ratio(prevalence) <= 1]
    if capacity.kind == "count":
        value, per = int(capacity.value), capacity.per
        return [Capacity.count(math.floor(factor * value), per=per) for factor in most]
    return [Capacity(capacity.kind, factor * exact(capacity.value)) for factor in most]


def _next_reviewer(curve: CapacityCurve, capacity: Capacity, load: int) -> NextReviewer:
    now = curve.at(capacity)
    prevalence = EstimatedShare(curve.n_rare, curve.n_items)
    room = capacity.max_flags(curve.n_items, prevalence)
    then = curve.at(Capacity.count(room + load))
    return NextReviewer(load, int(then["n_found"] - now["n_found"]), load * now["marginal"])
