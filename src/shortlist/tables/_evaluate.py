"""What rules find on labelled rows: M, flag rate, precision and the capacity curve."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._core.arrays import Mask
from .._core.binomial import Interval, proportion_interval
from .._core.labels import EstimatedShare
from .._core.ranking import lift, rank
from ..capacity import Capacity
from ..exceptions import TableError
from ..metrics import (
    CapacityCurve,
    CountedCurves,
    Ranking,
    adjusted_detection_of_counts,
)
from ._fingerprints import SeenRows
from ._intervals import as_filled
from ._model import RuleResult, TableModel
from ._money import Money, money_of, weighed_columns
from ._passing import Columns, Passing, RowsRead
from ._reading import Reading
from ._rule_results import (
    default_name,
    measure_random,
    measure_rule,
    random_of_counts,
    rule_of_counts,
)
from ._schema import TableRows, TableSchema
from ._work import WorkColumns

__all__ = [
    "CurvePoint",
    "Evaluation",
    "check_both_classes",
    "check_counts",
    "check_has_both_classes",
    "evaluate_table",
    "evaluation_of",
    "labels_of",
    "points_at",
    "read_labelled",
    "spread_capacities",
]

_MOST_POINTS = 100
_COUNTS = ("n_items", "n_rare", "n_flagged", "n_found")


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
    `money` is what is found in values, if the rows have any.
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

    @property
    def model(self) -> RuleResult:
        """The result of the model's own rule, which is the first."""
        return self.rules[0]


def evaluate_table(
    model: TableModel,
    path: Path,
    *,
    target: str | None = None,
    reading: Reading | None = None,
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
    reading : Reading, default=None
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
    passing = Passing(model, path, target=target, reading=reading, on_progress=on_progress)
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
        evaluation = evaluation_of(
            found.summaries,
            model.flag_capacity,
            {"flagged": "this model", "by_default": default_name(model)},
            check=lambda n_rare, n_items: check_counts(n_rare, n_items, model.schema, target),
        )
        money = money_of(model, found, budget=None if work is None else work.budget)
        if model.classifier.capacity.kind == "effort" and "efforts" in found:
            evaluation = replace(evaluation, rules=_rules_in_work(model, found))
    return replace(evaluation, seen=passing.seen, money=money)


def _rules_in_work(model: TableModel, found: Columns) -> list[RuleResult]:
    """Measure the rules against a budget of work, with all rows in memory."""
    is_rare, (capacity, efforts) = found["is_rare"], model.limit_for(found["efforts"])
    order = rank(found["lifted"], found["key"].__getitem__)[0]
    measured = partial(
        measure_rule, is_rare=is_rare, capacity=capacity, order=order, efforts=efforts
    )
    return [
        measured("this model", flagged=found["flagged"]),
        measured(default_name(model), flagged=found["by_default"]),
        measure_random(is_rare, capacity, efforts),
    ]


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
    own, prevalence = next(iter(rules)), EstimatedShare(n_rare, n_items)

    def measured(rule: str) -> RuleResult:
        counts = dict(zip(_COUNTS, (n_items, n_rare, *flags[rule]), strict=True))
        detection, _ = adjusted_detection_of_counts(**counts, capacity=capacity)
        filled = curves[rule].interval_at(*asked[rule])
        return rule_of_counts(
            rules[rule], tuple(counts.values()), detection, filled, is_filled=True
        )

    return Evaluation(
        n_items=n_items,
        n_rare=n_rare,
        capacity_fraction=capacity.as_fraction(prevalence),
        flag_rate=flags[own][0] / n_items,
        flag_rate_interval=proportion_interval(flags[own][0], n_items),
        rules=[*map(measured, rules), random_of_counts(n_items, n_rare, prevalence, capacity)],
        curve=points_at(curves[""], spread),
    )


def read_labelled(
    model: TableModel, path: Path, *, target: str | None = None, reading: Reading | None = None
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
    reading : Reading, default=None
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


def labels_of(rows: TableRows) -> Mask:
    """Return the labels of rows that were read with labels."""
    assert rows.is_rare is not None
    return rows.is_rare


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
