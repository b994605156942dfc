"""What other capacities would find, and what one more reviewer adds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from .._core.labels import EstimatedShare
from ..capacity import Capacity, exact
from ..exceptions import TableError
from ..metrics import CapacityCurve
from ..metrics.counted import count_rows
from ._passing import Columns, RowsRead, RowStream
from .fingerprints import SeenRows
from .measure import CurvePoint, check_counts, places_of, points_at
from .model import TableModel
from .money import MoneyPlan, planned_money, weighed_columns
from .monitor import Finding
from .options import ReadOptions
from .schema import TableRows
from .work import WorkColumns

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
    `findings` tell what does not fit the model card.
    """

    n_items: int
    n_rare: int | None
    capacity_fraction: float
    points: list[CurvePoint] | None
    expected_flags: list[ExpectedFlags] | None
    next_reviewer: NextReviewer | None
    seen: SeenRows | None = None
    money: MoneyPlan | None = None
    findings: list[Finding] = field(default_factory=list)


def plan_capacity(
    model: TableModel,
    path: Path,
    *,
    target: str | None = None,
    load: int = 1,
    reading: ReadOptions | None = None,
    work: WorkColumns | None = None,
    on_progress: RowsRead | None = None,
) -> Plan:
    """Compare capacities from a quarter to four times the model's own.

    Without labels, the plan contains only how many rows each capacity would flag.
    """
    work = work or WorkColumns()
    if model.classifier.capacity.kind != "effort":
        work.check_pair()
    model = model.reading_work(work)
    passing = RowStream(
        model,
        path,
        target=target or (lambda columns: _own_target(model, columns, work)),
        reading=reading,
        on_progress=on_progress,
    )
    flags, capacity = None, model.flag_capacity
    with Columns() as found:
        for rows in passing:
            if rows.is_rare is None:
                flags = flags or _ExpectedFlags(model)
                flags.add(rows)
            else:
                found.add(is_rare=rows.is_rare, **places_of(model, rows))
                found.add(**weighed_columns(model, rows))
        if flags is not None:
            return flags.plan(passing)
        counted = count_rows(found.summaries)
        n_items, n_rare = counted.n_items, counted.n_rare
        check_counts(n_rare, n_items, model.schema, str(passing.target))
        prevalence = EstimatedShare(n_rare, n_items)
        scaled = _scaled(capacity, prevalence)
        more = Capacity.count(capacity.max_flags(n_items, prevalence) + load)
        curve = counted.curve([*scaled, capacity, more])
        money = planned_money(model, found, budget=work.budget, worth=work.worth)
    return Plan(
        n_items=n_items,
        n_rare=n_rare,
        capacity_fraction=capacity.as_fraction(prevalence),
        points=points_at(curve, scaled),
        expected_flags=None,
        next_reviewer=_next_reviewer(curve, capacity, more, load),
        seen=passing.seen,
        money=money,
        findings=passing.monitor.findings(),
    )


def _own_target(model: TableModel, columns: list[str], work: WorkColumns) -> str | None:
    """Return the target of the fit, if the table has it."""
    if model.schema.target in columns:
        return model.schema.target
    if work.is_given:
        raise TableError(
            "value=... and effort=... need labels: the value found is counted in them."
        )
    return None


class _ExpectedFlags:
    """Counts what the rule would flag with other capacities."""

    def __init__(self, model: TableModel) -> None:
        if model.classifier.capacity.kind == "effort":
            raise TableError(
                "The capacity of this model is a budget of work, and a plan for it needs labels: "
                "pass a table with the target."
            )
        self._classifier = model.classifier
        self._prevalence = EstimatedShare(exact(model.classifier.prevalence_))
        self._capacities = _scaled(model.classifier.capacity, self._prevalence)
        self._changed = [
            replace(model, classifier=model.classifier.with_capacity(each))
            for each in self._capacities
        ]
        self._counts = [0] * len(self._changed)

    def add(self, rows: TableRows) -> None:
        for place, changed in enumerate(self._changed):
            self._counts[place] += int(changed.decide(rows).flagged.sum())

    def plan(self, passing: RowStream) -> Plan:
        n_items = passing.n_rows
        expected = [
            ExpectedFlags(
                capacity.as_fraction(self._prevalence),
                capacity.max_flags(n_items, self._prevalence),
                count,
            )
            for capacity, count in zip(self._capacities, self._counts, strict=True)
        ]
        return Plan(
            n_items=n_items,
            n_rare=None,
            capacity_fraction=self._classifier.capacity_fraction_,
            points=None,
            expected_flags=expected,
            next_reviewer=None,
            seen=passing.seen,
            findings=passing.monitor.findings(),
        )


def _scaled(capacity: Capacity, prevalence: Fraction) -> list[Capacity]:
    """Return multiples of a capacity in its own unit, up to all rows."""
    factors = [exact(factor) for factor in _FACTORS]
    most = [factor for factor in factors if factor * capacity.as_ratio(prevalence) <= 1]
    if capacity.kind == "count":
        value, per = int(capacity.value), capacity.per
        return [Capacity.count(math.floor(factor * value), per=per) for factor in most]
    return [Capacity(capacity.kind, factor * exact(capacity.value)) for factor in most]


def _next_reviewer(
    curve: CapacityCurve, capacity: Capacity, more: Capacity, load: int
) -> NextReviewer:
    now, then = curve.at(capacity), curve.at(more)
    return NextReviewer(load, int(then["n_found"] - now["n_found"]), load * now["marginal"])
