"""What rules find on labelled rows: M, flag rate, precision and the capacity curve."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from .._core.arrays import Doubles, Mask, Rows
from .._core.binomial import Interval, proportion_interval
from .._core.labels import EstimatedShare, rare_share
from .._core.ranking import lift
from ..capacity import Capacity, exact
from ..exceptions import TableError, TableNote
from ..metrics import (
    CapacityCurve,
    CountedCurves,
    Ranking,
    adjusted_detection_of_counts,
    capacity_curve,
)
from ._passing import Columns, RowsRead, RowStream
from .fingerprints import SeenRows
from .model import RuleResult, TableModel, labels_of
from .money import Money, MoneyPlan, money_of, planned_money, weighed_columns
from .monitor import Finding
from .options import ReadOptions
from .schema import TableRows, TableSchema
from .work import WorkColumns


def curve_of(is_rare: Mask, order: Rows) -> CapacityCurve:
    """Return the capacity curve of a ranking, in which ties are broken already.

    Parameters
    ----------
    is_rare : ndarray of bool
        Which rows are rare.
    order : ndarray of int
        Positions of the rows, the most suspicious first.

    Returns
    -------
    CapacityCurve
    """
    return capacity_curve(is_rare[order], -np.arange(order.size, dtype=np.float64), rare_label=True)


def interval_of_flags(curve: CapacityCurve, n_flagged: int, capacity: Capacity) -> Interval:
    """Return the interval of the detection when as large a share of new cases is flagged.

    Parameters
    ----------
    curve : CapacityCurve
        Of a ranking.
    n_flagged : int
        Number of flags.
    capacity : Capacity
        Its unit counts: a multiple means as many flags for each rare case.

    Returns
    -------
    Interval
    """
    return curve.interval_at(as_filled(n_flagged, curve.n_rare, capacity))


def as_filled(n_flagged: int, n_rare: int, capacity: Capacity) -> Capacity:
    """Return the capacity that some flags fill, in the unit of another one."""
    if capacity.kind == "multiple" and n_flagged > 0:
        return Capacity.multiple(n_flagged / n_rare)
    return Capacity.count(n_flagged)


def interval_of_rule(is_rare: Mask, order: Rows, flagged: Mask, capacity: Capacity) -> Interval:
    """Return the interval of the detection of any rule, when it flags as large a share.

    What the rule flags comes first in the ranking. Such a ranking is a score, too, for which the
    interval holds.

    Parameters
    ----------
    is_rare, flagged : ndarray of bool
        Which rows are rare, and which the rule flagged.
    order : ndarray of int
        Positions of the rows, the most suspicious first.
    capacity : Capacity
        Its unit counts, as in :func:`interval_of_flags`.

    Returns
    -------
    Interval
    """
    flagged_first = order[np.argsort(~flagged[order], kind="stable")]
    return interval_of_flags(curve_of(is_rare, flagged_first), int(flagged.sum()), capacity)


#: A capacity that is never exceeded.
EVERYTHING = Capacity.fraction(1)


def measure_rule(
    rule: str,
    is_rare: Mask,
    flagged: Mask,
    capacity: Capacity,
    *,
    order: Rows | None = None,
    efforts: Doubles | None = None,
) -> RuleResult:
    """Count what a rule flagged and found.

    Parameters
    ----------
    rule : str
        Name of the rule.
    is_rare, flagged : ndarray of bool
        Which rows are rare, and which the rule flagged.
    capacity : Capacity
        How many rows can be followed up.
    order : ndarray of int, default=None
        Positions of the rows, the most suspicious first.
    efforts : ndarray of float, default=None
        The work of each row, if the capacity is a budget of it.

    Returns
    -------
    RuleResult
        The intervals are for the same rule on new rows: its threshold is fixed. With an `order`,
        that of M is for as large a share of new rows, whatever the threshold is then.

    Examples
    --------
    Two of four flags are rare, and there is room for four: all flags are followed up.

    >>> import numpy as np
    >>> from shortlist import Capacity
    >>> from shortlist.tables.measure import measure_rule
    >>> is_rare, flagged = np.arange(100) < 8, np.arange(100) >= 6
    >>> flagged &= np.arange(100) < 10
    >>> result = measure_rule("by hand", is_rare, flagged, Capacity.count(4))
    >>> result.found, result.precision, result.detection
    (2, 0.5, 0.25)
    """
    if efforts is not None:
        whole = measure_rule(rule, is_rare, flagged, EVERYTHING, order=order)
        return within(whole, share_paid(flagged, capacity, efforts))
    counts = (is_rare.size, *(int(each.sum()) for each in (is_rare, flagged, flagged & is_rare)))
    filled = None if order is None else interval_of_rule(is_rare, order, flagged, capacity)
    return rule_of_counts(rule, counts, capacity, filled)


def rule_of_counts(
    rule: str, counts: tuple[int, ...], capacity: Capacity, filled: Interval | None
) -> RuleResult:
    """Measure a rule by the numbers of items, rare items, flags and rare items among these.

    `filled` is the interval of the detection, when as large a share of new rows is flagged.
    """
    names = ("n_items", "n_rare", "n_flagged", "n_found")
    _, n_rare, n_flagged, n_found = counts
    detection, interval = adjusted_detection_of_counts(
        **dict(zip(names, counts, strict=True)), capacity=capacity
    )
    if filled is not None:
        followed_up = detection * n_rare / n_found if n_found else 1.0
        interval = Interval(followed_up * filled.low, followed_up * filled.high)
    precision = n_found / n_flagged if n_flagged else float("nan")
    of_flags = proportion_interval(n_found, n_flagged)
    return RuleResult(rule, n_flagged, n_found, detection, interval, precision, of_flags)


def measure_list(rule: str, is_rare: Mask, order: Rows, capacity: Capacity) -> RuleResult:
    """Count what a list of the highest scores finds, which is as long as the capacity allows.

    Parameters
    ----------
    rule : str
        Name of the rule.
    is_rare : ndarray of bool
        Which rows are rare.
    order : ndarray of int
        Positions of the rows, the most suspicious first.
    capacity : Capacity
        How many rows can be followed up.

    Returns
    -------
    RuleResult
        Its `detection_interval` is for lists of other rows with the same capacity, whatever the
        threshold is then.

    Examples
    --------
    >>> import numpy as np
    >>> from shortlist import Capacity
    >>> from shortlist.tables.measure import measure_list
    >>> is_rare = np.arange(100) < 8
    >>> result = measure_list("a list", is_rare, np.arange(100), Capacity.count(6))
    >>> result.flagged, result.found, result.detection
    (6, 6, 0.75)
    """
    room = capacity.max_flags(is_rare.size, rare_share(is_rare))
    listed = np.zeros(is_rare.size, dtype=bool)
    listed[order[:room]] = True
    curve = curve_of(is_rare, order)
    measured = measure_rule(rule, is_rare, listed, capacity)
    return replace(measured, detection_interval=curve.interval_at(capacity))


def measure_default(model: TableModel, X: Any, is_rare: Mask) -> RuleResult:
    """Count what the learner flags by its own prediction.

    Most learners predict the likelier label. A learner that knows the capacity has its own
    threshold.
    """
    return measure_rule(default_name(model), is_rare, model.predict(X), model.flag_capacity)


def default_name(model: TableModel) -> str:
    """Return the name of the rule that a learner has without calibration."""
    return "its own threshold" if model.knows_capacity else "default threshold"


def measure_random(is_rare: Mask, capacity: Capacity, efforts: Doubles | None = None) -> RuleResult:
    """Return what as many randomly chosen rows find on average; this is exact.

    Parameters
    ----------
    is_rare : ndarray of bool
        Which rows are rare.
    capacity : Capacity
        How many rows can be followed up.
    efforts : ndarray of float, default=None
        The work of each row, if the capacity is a budget of it.

    Returns
    -------
    RuleResult
        Without intervals.
    """
    if efforts is not None:
        share = share_paid(np.ones(is_rare.size, dtype=bool), capacity, efforts)
        capacity = Capacity.fraction(share)
    return random_of(is_rare.size, rare_share(is_rare), int(is_rare.sum()), capacity)


def random_of(n_items: int, share: Any, n_rare: int, capacity: Capacity) -> RuleResult:
    """Return what a random choice of as many rows as the capacity allows finds."""
    n_flagged = capacity.max_flags(n_items, share)
    detection = n_flagged / n_items
    return RuleResult("random", n_flagged, detection * n_rare, detection, None, float(share), None)


# --- a budget of work ---


def share_paid(flagged: Mask, budget: Capacity, efforts: Doubles) -> float:
    """Return which share of the work of flags a budget pays for."""
    work = float(efforts[flagged].sum())
    return min(1.0, float(budget.max_effort(flagged.size)) / work) if work else 1.0


def within(rule: RuleResult, share: float) -> RuleResult:
    """Return what a rule finds if a share of its flags is worked off, in a random order."""
    interval = rule.detection_interval
    if interval is not None:
        interval = Interval(share * interval.low, share * interval.high)
    return replace(rule, detection=share * rule.detection, detection_interval=interval)


_MOST_POINTS = 100


@dataclass(frozen=True)
class CurvePoint:
    """What the `flagged` highest scores find; `marginal` is the expected gain of one more flag.

    `detection_interval` is for the detection when this share of new rows is followed up, whatever
    the threshold is then. `at_threshold_interval` is for the threshold that flags these rows, if it
    is kept.
    """

    flagged: int
    fraction: float
    found: int
    detection: float
    detection_interval: Interval
    at_threshold_interval: Interval
    precision: float | None
    marginal: float


@dataclass(frozen=True)
class Evaluation:
    """What a model did on labelled rows; `capacity_fraction` is the capacity on these rows.

    `seen` tells how many of the rows trained or calibrated the model; None if that is not known.
    `money` is what is found in values, if the rows have any. `findings` tell what does not fit the
    model card.
    """

    n_items: int
    n_rare: int
    capacity_fraction: float
    flag_rate: float
    flag_rate_interval: Interval
    rules: list[RuleResult]
    curve: list[CurvePoint]
    seen: SeenRows | None = None
    money: Money | None = None
    findings: list[Finding] = field(default_factory=list)

    @property
    def model(self) -> RuleResult:
        """The result of the model's own rule, which is the first."""
        return self.rules[0]


def evaluate_table(
    model: TableModel,
    path: Path,
    *,
    target: str | None = None,
    reading: ReadOptions | None = None,
    work: WorkColumns | None = None,
    on_progress: RowsRead | None = None,
) -> Evaluation:
    """Measure the calibrated rule of a model on labelled rows that it has not seen.

    Parameters
    ----------
    model : TableModel
        Fitted.
    path : Path
        A labelled table, or a folder of them. Beyond a million rows, scores and labels go to
        temporary files, about 30 bytes a row, and memory is bounded.
    target : str, default=None
        The column with the labels; `None` takes the target of the fit.
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
        M, flag rate and precision of the rule with exact intervals, and the capacity curve. The
        intervals of a detection are for as large a share of new rows, as in reports.
    """
    target = model.schema.target if target is None else target
    model = model.reading_work(work)
    passing = RowStream(model, path, target=target, reading=reading, on_progress=on_progress)
    with Columns() as found:
        for rows in passing:
            scores = model.list_scores(rows)  # of all models, as lists have them
            found.add(
                is_rare=labels_of(rows),
                flagged=model.decide(rows, worth=None if work is None else work.worth).flagged,
                score=scores,
                lifted=lift(scores),
                by_default=model.predict(rows.X),
                key=model.tie_keys(rows.X, rows.ids),
                **weighed_columns(model, rows),
            )
        rules = {"flagged": "this model", "by_default": default_name(model)}
        capacity, efforts = model.limit_for(found.get("efforts"))
        evaluation = evaluation_of(
            found.summaries,
            model.flag_capacity if efforts is None else EVERYTHING,
            rules,
            check=lambda n_rare, n_items: check_counts(n_rare, n_items, model.schema, target),
        )
        if efforts is not None:
            flags = [found[rule] for rule in rules]
            evaluation = _paid_by(evaluation, model.flag_capacity, capacity, flags, efforts)
        money = money_of(model, found, budget=None if work is None else work.budget)
    findings = passing.monitor.findings()
    return replace(evaluation, seen=passing.seen, money=money, findings=findings)


def _paid_by(
    evaluation: Evaluation,
    flag_capacity: Capacity,
    budget: Capacity,
    flags: list[Mask],
    efforts: Doubles,
) -> Evaluation:
    """Return what a budget of work finds, given what the flags of all rules find."""
    n_items = evaluation.n_items
    everything = np.ones(n_items, dtype=bool)
    paid = [share_paid(flagged, budget, efforts) for flagged in (*flags, everything)]
    rules = [within(rule, share) for rule, share in zip(evaluation.rules, paid, strict=True)]
    rules[-1] = replace(rules[-1], flagged=paid[-1] * n_items, found=paid[-1] * evaluation.n_rare)
    share = EstimatedShare(evaluation.n_rare, n_items)
    return replace(evaluation, rules=rules, capacity_fraction=flag_capacity.as_fraction(share))


def evaluation_of(
    summaries: Callable[[Any], Iterable[Any]],
    capacity: Capacity,
    rules: dict[str, str],
    *,
    check: Callable[[int, int], None],
) -> Evaluation:
    """Measure rules on rows that pass in blocks, as often as it takes; the answer is exact.

    Parameters
    ----------
    summaries : callable
        Calls a function on the columns of every block, and returns the answers in the order of the
        blocks, if they have one. The columns are `score`, `lifted` (the scores that count as
        equal), `key`, `is_rare` and those of the rules.
    capacity : Capacity
        How many rows can be followed up.
    rules : dict from columns to names
        Columns with the flags of rules, and the names of the rules.
    check : callable
        Called with the number of rare rows and of all rows, before anything is measured.

    Returns
    -------
    Evaluation
    """
    rankings = {rule: Ranking("lifted", "key", rule) for rule in rules}
    counted = CountedCurves(summaries, {"": Ranking("score"), **rankings})
    n_items, n_rare = counted.n_items, counted.n_rare
    check(n_rare, n_items)
    flags = {rule: counted.first(rule) for rule in rules}
    spread = spread_capacities(n_items)
    asked = {rule: [as_filled(flags[rule][0], n_rare, capacity)] for rule in rules}
    curves = counted.settle({"": spread, **asked}, rows=[""])
    own = next(iter(rules))
    totals = (n_items, n_rare)
    return Evaluation(
        n_items=n_items,
        n_rare=n_rare,
        capacity_fraction=capacity.as_fraction(EstimatedShare(n_rare, n_items)),
        flag_rate=flags[own][0] / n_items,
        flag_rate_interval=proportion_interval(flags[own][0], n_items),
        rules=[
            *(
                rule_of_counts(
                    name, (*totals, *flags[rule]), capacity, curves[rule].interval_at(*asked[rule])
                )
                for rule, name in rules.items()
            ),
            random_of(n_items, EstimatedShare(n_rare, n_items), n_rare, capacity),
        ],
        curve=points_at(curves[""], spread),
    )


def read_labelled(
    model: TableModel, path: Path, *, target: str | None = None, reading: ReadOptions | None = None
) -> TableRows:
    """Read all rows of a labelled table, in the form that a model takes.

    Parameters
    ----------
    model : TableModel
        Fitted.
    path : Path
        A labelled table. A table without rare rows, or with rare rows only, raises a TableError.
    target : str, default=None
        The column with the labels; `None` takes the target of the fit.
    reading : ReadOptions, default=None
        What to know about this file; `None` reads it as the table of the fit.

    Returns
    -------
    TableRows
        With `is_rare`.
    """
    target = model.schema.target if target is None else target
    with model.schema.open(path, reading=reading) as source:
        rows = model.schema.read(source, target=target)
    check_has_both_classes(rows, model.schema, target)
    return rows


def check_has_both_classes(rows: TableRows, schema: TableSchema, target: str) -> None:
    """Raise an error if there is nothing to find, or nothing else.

    Parameters
    ----------
    rows : TableRows
        With `is_rare`.
    schema : TableSchema
        Names the rare label.
    target : str
        The column with the labels.
    """
    check_both_classes(labels_of(rows), schema, target)


def check_both_classes(is_rare: Mask, schema: TableSchema, target: str) -> None:
    """Do the same for the labels alone."""
    check_counts(int(is_rare.sum()), is_rare.size, schema, target)


def check_counts(n_rare: int, n_items: int, schema: TableSchema, target: str) -> None:
    """Do the same for the numbers of rare rows and of all rows."""
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
        warnings.warn(
            f"The rare label {schema.rare_label!r} is in {n_rare:,} of {n_items:,} rows of "
            f"{target!r}: it is not rare here. Check that the labels mean what they meant in the "
            "fit, and that the table does not hold selected cases only.",
            TableNote,
            stacklevel=2,
        )


# --- the capacity curve ---


def points_at(curve: CapacityCurve, capacities: list[Capacity]) -> list[CurvePoint]:
    """Read the curve at the largest cuts within the given capacities, each cut once.

    Parameters
    ----------
    curve : CapacityCurve
        All cuts.
    capacities : list of Capacity
        Where to read it.

    Returns
    -------
    list of CurvePoint
    """
    rows = [curve.at(capacity) for capacity in capacities]
    by_cut = {row["n_flagged"]: row for row in rows}
    return [
        CurvePoint(
            flagged=int(row["n_flagged"]),
            fraction=row["fraction"],
            found=int(row["n_found"]),
            detection=row["detection"],
            detection_interval=Interval(row["detection_low"], row["detection_high"]),
            at_threshold_interval=Interval(row["at_threshold_low"], row["at_threshold_high"]),
            precision=row["precision"] if row["n_flagged"] else None,
            marginal=row["marginal"],
        )
        for row in by_cut.values()
    ]


def spread_capacities(n_items: int) -> list[Capacity]:
    """Return capacities from one row to all rows, evenly spaced on a logarithmic scale.

    Parameters
    ----------
    n_items : int
        Number of rows.

    Returns
    -------
    list of Capacity
        At most 100.
    """
    spread = np.geomspace(1, n_items, min(n_items, _MOST_POINTS))
    return [Capacity.count(count) for count in np.unique(spread.round().astype(int)).tolist()]


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

    Parameters
    ----------
    model : TableModel
        Fitted.
    path : Path
        A table with the columns that the model needs, or a folder of them.
    target : str, default=None
        The column with the labels; `None` takes the target of the fit if the table has it.
    load : int, default=1
        How many rows one reviewer handles.
    reading : ReadOptions, default=None
        What to know about this file; `None` reads it as the table of the fit.
    work : WorkColumns, default=None
        Columns with values and efforts, and a budget: what it and other budgets would find. This
        needs labels.
    on_progress : callable, default=None
        Called with the number of rows that were read so far.

    Returns
    -------
    Plan
        Points of the capacity curve with an interval for each capacity, and what one more
        reviewer adds.
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
                found.add(is_rare=rows.is_rare, score=model.list_scores(rows))
                found.add(**weighed_columns(model, rows))
        if flags is not None:
            return flags.plan(passing)
        counted = CountedCurves(found.summaries, {"": Ranking("score")})
        n_items, n_rare = counted.n_items, counted.n_rare
        check_counts(n_rare, n_items, model.schema, str(passing.target))
        prevalence = EstimatedShare(n_rare, n_items)
        scaled = _scaled(capacity, prevalence)
        more = Capacity.count(capacity.max_flags(n_items, prevalence) + load)
        curve = counted.settle({"": [*scaled, capacity, more]})[""]
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
