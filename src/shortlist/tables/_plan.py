"""What other capacities would find, and what the next reviewer is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from ..capacity import Capacity, exact
from ..metrics import CapacityCurve
from ._evaluate import CurvePoint, labelled_curve, points_at
from ._model import TableModel
from ._read import open_source
from ._schema import Rows, all_rows

__all__ = ["ExpectedFlags", "NextReviewer", "Plan", "plan_capacity"]

#: Capacities to look at, in units of the model's own.
FACTORS = ("0.25", "0.5", "0.75", "1", "1.25", "1.5", "2", "3", "4")


@dataclass(frozen=True)
class ExpectedFlags:
    """How many rows the rule would flag under another capacity; this needs no labels."""

    fraction: float
    room: int
    flagged: int


@dataclass(frozen=True)
class NextReviewer:
    """What the next reviewer, who handles `load` rows, adds to the rare cases found.

    `found` is counted in these rows; `expected` is the load times what one more flag finds on the
    smoothed curve, which suffers less from the luck of the rows next in line.
    """

    load: int
    found: int
    expected: float


@dataclass(frozen=True)
class Plan:
    """Detection for a range of capacities; without labels, only the flags to expect."""

    n_items: int
    n_rare: int | None
    capacity_fraction: float
    points: list[CurvePoint] | None
    expected_flags: list[ExpectedFlags] | None
    next_reviewer: NextReviewer | None


def plan_capacity(
    model: TableModel, path: Path, *, target: str | None = None, load: int = 1
) -> Plan:
    """Look at capacities from a quarter to four times the model's own.

    Without labels, the plan says only how many rows each capacity would flag.

    Parameters
    ----------
    model : TableModel
        Fitted.
    path : Path
        A table with the columns that the model needs.
    target : str, default=None
        The column with the labels; `None` takes the model's own target where the table has it.
    load : int, default=1
        How many rows one reviewer handles.

    Returns
    -------
    Plan
        Points of the curve, and what the next reviewer adds.
    """
    with open_source(path) as source:
        own = model.schema.target if model.schema.target in source.columns else None
        labels = own if target is None else target
        rows = all_rows(model.schema, source, target=labels)
    capacity = model.classifier.capacity
    if labels is None:
        return _without_labels(model, rows)
    curve = labelled_curve(model, rows, labels)
    prevalence = Fraction(curve.n_rare, curve.n_items)
    return Plan(
        n_items=curve.n_items,
        n_rare=curve.n_rare,
        capacity_fraction=capacity.as_fraction(prevalence),
        points=points_at(curve, _scaled(capacity, prevalence)),
        expected_flags=None,
        next_reviewer=_next_reviewer(curve, capacity, load),
    )


def _without_labels(model: TableModel, rows: Rows) -> Plan:
    classifier, n_items = model.classifier, len(rows.X)
    prevalence = classifier.prevalence_
    expected = []
    for capacity in _scaled(classifier.capacity, exact(prevalence)):
        flagged = classifier.with_capacity(capacity).flag(rows.X, ids=rows.ids)
        room = capacity.max_flags(n_items, prevalence)
        fraction = capacity.as_fraction(prevalence)
        expected.append(ExpectedFlags(fraction, room, int(flagged.sum())))
    return Plan(n_items, None, classifier.capacity_fraction_, None, expected, None)


def _scaled(capacity: Capacity, prevalence: Fraction) -> list[Capacity]:
    """Return multiples of a capacity in its own unit, as far as there are rows to flag."""
    factors = [exact(factor) for factor in FACTORS]
    most = [factor for factor in factors if factor * capacity.as_ratio(prevalence) <= 1]
    if capacity.kind == "count":
        value, per = int(capacity.value), capacity.per
        return [Capacity.count(math.floor(factor * value), per=per) for factor in most]
    return [Capacity(capacity.kind, factor * exact(capacity.value)) for factor in most]


def _next_reviewer(curve: CapacityCurve, capacity: Capacity, load: int) -> NextReviewer:
    now = curve.at(capacity)
    prevalence = Fraction(curve.n_rare, curve.n_items)
    room = capacity.max_flags(curve.n_items, prevalence)
    then = curve.at(Capacity.count(room + load))
    return NextReviewer(load, int(then["n_found"] - now["n_found"]), load * now["marginal"])
