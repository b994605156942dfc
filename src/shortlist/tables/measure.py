"""What a model finds on labelled rows: by its rule and by others, at its capacity and at others."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from .._core.arrays import Doubles
from .._core.intervals import Interval, proportion_interval
from .._core.ranking import lift
from .._core.validation import check_number
from ..capacity import Capacity, exact
from ..exceptions import TableError
from ..metrics import CapacityCurve, NeededCapacity
from ..metrics.counted import CountedRows, count_rows
from ._source import ReadOptions, note
from .cases import CaseReader, Columns, RowsRead
from .groups import Floor, GroupCodes, GroupResult, by_group, price_of_floor
from .learned_rows import SeenRows
from .model import RuleResult, TableModel, labels_of
from .monitor import Finding
from .rules import (
    BY_DEFAULT,
    RANDOM,
    Money,
    measure_counted,
    money_of,
    random_of,
    share_paid,
    weighed_columns,
)
from .schema import TableSchema, WorkColumns

_MOST_POINTS = 100
#: Other capacities to compare with, as multiples of the model's own.
_FACTORS = ("0.25", "0.5", "0.75", "1", "1.25", "1.5", "2", "3", "4")


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
class Evaluation:
    """What a model did on labelled rows; `capacity_fraction` is the capacity on these rows.

    `curve` has lists of all lengths, and `capacities` those of a quarter to four times the
    capacity: rows of a :class:`~shortlist.CapacityCurve`, as dicts. `needed` is what it takes to
    find a share that was asked for. `seen` tells how many of the rows trained or calibrated the
    model; None if that is not known. `money` is what is found in values, if the rows have any.
    `groups` are what the rule finds in each group, with the `floor` that was asked for. `findings`
    tell what does not fit the model card.
    """

    n_items: int
    n_rare: int
    capacity_fraction: float
    flag_rate: float
    flag_rate_interval: Interval
    rules: list[RuleResult]
    curve: list[dict[str, float]]
    capacities: list[dict[str, float]]
    next_reviewer: NextReviewer
    needed: NeededCapacity | None = None
    seen: SeenRows | None = None
    money: Money | None = None
    groups: list[GroupResult] = field(default_factory=list)
    floor: Floor | None = None
    findings: list[Finding] = field(default_factory=list)

    @property
    def model(self) -> RuleResult:
        """The result of the model's own rule, which is the first."""
        return self.rules[0]


def evaluate_table(
    model: TableModel,
    path: Any,
    *,
    target: str | None = None,
    load: int = 1,
    find: float | None = None,
    segment: str | None = None,
    reading: ReadOptions | None = None,
    work: WorkColumns | None = None,
    on_progress: RowsRead | None = None,
) -> Evaluation:
    """Measure the calibrated rule of a model on labelled rows that it has not seen.

    Parameters
    ----------
    model : TableModel
        Fitted.
    path : Path, str or data frame
        A labelled table, or a folder of them. Beyond a million rows, scores and labels go to
        temporary files, about 30 bytes a row, and memory is bounded.
    target : str, default=None
        The column with the labels; `None` takes the target of the fit.
    load : int, default=1
        How many rows one more reviewer handles.
    find : float, default=None
        A share of the rare cases to find, such as 0.9; says how many reviews that takes, and with
        `segment`, what it costs to find that share in every group.
    segment : str, default=None
        A column with groups, to measure the rule in each; all have the same threshold.
    reading : ReadOptions, default=None
        What to know about this file; `None` reads it as the table of the fit.
    work : WorkColumns, default=None
        Columns with values and efforts, and a budget for these rows, to measure value; `None` takes
        those of the fit.
    on_progress : callable, default=None
        Called with the number of rows that were read so far.

    Returns
    -------
    Evaluation
        M, flag rate and precision of the rule with exact intervals, the capacity curve, and what
        other capacities find. The intervals of a detection are for as large a share of new rows,
        as in reports.
    """
    check_find(find)
    target = model.schema.target if target is None else target
    work = work or WorkColumns()
    model = model.reading_work(work)
    options: dict[str, Any] = {"target": target, "segment": segment, "on_progress": on_progress}
    read = CaseReader(model, path, reading=reading, **options)
    known, codes = model.fingerprints, GroupCodes() if segment else None
    with Columns() as found:
        for rows in read:
            found.add(
                is_rare=labels_of(rows),
                flagged=model.decide(rows, worth=work.worth).flagged,
                by_default=model.predict(rows.X),
                lifted=lift(model.list_scores(rows)),  # as lists have them
                key=model.tie_keys(rows.X, rows.ids),
                hashes=known.hashes_of(rows),
                group=None if codes is None else codes.of(np.asarray(rows.segments)),
                **weighed_columns(model, rows),
            )
        rules = {"flagged": "this model", "by_default": BY_DEFAULT}
        capacity, efforts = model.limit_for(found.get("efforts"))
        counted = count_rows(found.summaries, rules)
        check_counts(counted.n_rare, counted.n_items, model.schema, target)
        paid = shares_paid({rule: found[rule] for rule in rules}, capacity, efforts)
        evaluation = evaluation_of(
            counted, model.flag_capacity, rules, paid=paid, load=load, find=find
        )
        money = money_of(model, found, budget=work.budget, worth=work.worth)
        seen = known.seen_in(found)
        allowed = model.flag_capacity.max_flags(counted.n_items, counted.share)
        groups = {} if codes is None else _by_group(codes, found, find, allowed)
    findings = read.monitor.findings()
    return replace(evaluation, seen=seen, money=money, findings=findings, **groups)


def check_find(find: Any) -> None:
    """Raise an error unless `find` is a share of the rare cases, or None."""
    if find is not None and not 0 < float(check_number("find", find)) <= 1:
        raise TableError(f"find=... is a share of the rare cases, such as 0.9; got {find!r}.")


def _by_group(
    codes: GroupCodes, found: Columns, find: float | None, allowed: int
) -> dict[str, Any]:
    """Measure the rule in each group, and what it costs to find a share in every group."""
    names, own = codes.largest(found["group"])
    is_rare, flagged = found["is_rare"].astype(bool), found["flagged"].astype(bool)
    groups, floor = by_group(names, own, is_rare, flagged), None
    if find is not None:
        order = np.lexsort((found["key"], -found["lifted"]))
        floor = price_of_floor(names, own, is_rare, order, detection=find, allowed=allowed)
    return {"groups": groups, "floor": floor}


def evaluation_of(
    counted: CountedRows,
    capacity: Capacity,
    rules: dict[str, str],
    *,
    paid: dict[str, float] | None = None,
    load: int = 1,
    find: float | None = None,
) -> Evaluation:
    """Measure rules, by their columns with names, and lists of all lengths.

    With a budget of work, `paid` is the share of the flags of each rule that it pays for.
    """
    n_items, n_rare = counted.n_items, counted.n_rare
    share = counted.share
    spread, others = spread_capacities(n_items), _scaled(capacity, share)
    more = Capacity.count(capacity.max_flags(n_items, share) + load)
    curve = counted.curve([*spread, *others, capacity, more])
    n_flagged, _ = counted.flags(next(iter(rules)))
    now, then = curve.at(capacity), curve.at(more)
    found = int(then["n_found"] - now["n_found"])
    return Evaluation(
        n_items=n_items,
        n_rare=n_rare,
        capacity_fraction=capacity.as_fraction(share),
        flag_rate=n_flagged / n_items,
        flag_rate_interval=proportion_interval(n_flagged, n_items),
        rules=measure_rules(counted, capacity, rules, paid or {}),
        curve=rows_at(curve, spread),
        capacities=rows_at(curve, others),
        next_reviewer=NextReviewer(load, found, load * now["marginal"]),
        needed=None if find is None else curve.needed_for(find),
    )


def shares_paid(
    flags: dict[str, Any], capacity: Capacity, efforts: Doubles | None
) -> dict[str, float]:
    """Return the share of the flags of each rule that a budget of work pays for; {} without one."""
    if efforts is None:
        return {}
    every = flags | {RANDOM: np.ones(efforts.size, bool)}
    return {rule: share_paid(flagged, capacity, efforts) for rule, flagged in every.items()}


def measure_rules(
    counted: CountedRows, capacity: Capacity, rules: dict[str, str], paid: dict[str, float]
) -> list[RuleResult]:
    """Measure rules, by their columns with names, and a random choice."""
    return [
        *(
            measure_counted(counted, rule, name, capacity, paid.get(rule))
            for rule, name in rules.items()
        ),
        random_of(counted.n_items, counted.n_rare, capacity, paid.get(RANDOM)),
    ]


def check_counts(n_rare: int, n_items: int, schema: TableSchema, target: str) -> None:
    """Raise an error if there is nothing to find, or nothing else; warn if that is not rare."""
    if not n_rare:
        raise TableError(
            f"The column {target!r} has no row with the rare label {schema.rare_label!r}, so there "
            "is nothing to find. Check the target, or use a table with rare cases."
        )
    if n_rare == n_items:
        raise TableError(
            f"The column {target!r} has only one class, {schema.rare_label!r}. Evaluation needs "
            "the other cases as well."
        )
    if 2 * n_rare > n_items:
        note(
            f"The rare label {schema.rare_label!r} is in {n_rare:,} of {n_items:,} rows of "
            f"{target!r}: it is not rare here. Check that the labels mean what they meant in the "
            "fit, and that the table does not hold selected cases only."
        )


# --- the capacity curve ---


def rows_at(curve: CapacityCurve, capacities: list[Capacity]) -> list[dict[str, float]]:
    """Read the curve at the largest cuts within the given capacities, each cut once."""
    rows = [curve.at(capacity) for capacity in capacities]
    for row in rows:
        del row["thresholds"]  # which counts do not know
    return [*{row["n_flagged"]: row for row in rows}.values()]


def spread_capacities(n_items: int) -> list[Capacity]:
    """Return capacities from one row to all rows, evenly spaced on a logarithmic scale."""
    spread = np.geomspace(1, n_items, min(n_items, _MOST_POINTS))
    return [Capacity.count(count) for count in np.unique(spread.round().astype(int)).tolist()]


def _scaled(capacity: Capacity, prevalence: Fraction) -> list[Capacity]:
    """Return multiples of a capacity in its own unit, up to all rows."""
    factors = [exact(factor) for factor in _FACTORS]
    most = [factor for factor in factors if factor * capacity.as_ratio(prevalence) <= 1]
    if capacity.kind == "count":
        value, per = int(capacity.value), capacity.per
        return [Capacity.count(math.floor(factor * value), per=per) for factor in most]
    return [Capacity(capacity.kind, factor * exact(capacity.value)) for factor in most]
