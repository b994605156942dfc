"""What rules find on labelled rows: M, flag rate, precision and the capacity curve."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._core.arrays import Doubles, Mask, Rows
from .._core.binomial import Interval, proportion_interval
from .._core.labels import rare_share
from .._core.ranking import lift, rank
from ..capacity import Capacity
from ..exceptions import TableError
from ..metrics import (
    CapacityCurve,
    adjusted_detection_interval,
    adjusted_detection_score,
    capacity_curve,
)
from ._fingerprints import SeenRows
from ._intervals import curve_of, interval_of_rule
from ._model import RuleResult, TableModel
from ._money import Money, money_of, weighed_columns
from ._passing import Columns, Passing, RowsRead
from ._reading import Reading
from ._schema import TableRows, TableSchema
from ._work import WorkColumns

__all__ = [
    "CurvePoint",
    "Evaluation",
    "check_both_classes",
    "check_has_both_classes",
    "default_name",
    "evaluate_table",
    "labels_of",
    "measure_default",
    "measure_list",
    "measure_random",
    "measure_rule",
    "points_at",
    "read_labelled",
    "spread_capacities",
]

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
        A labelled table, or a folder of them. Of each row, its score and its label are kept: ten
        million rows take some 400 MB. :func:`shortlist.distributed.evaluate` keeps less.
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
    found, model = Columns(), model.reading_work(work)
    passing = Passing(model, path, target=target, reading=reading, on_progress=on_progress)
    for rows in passing:
        found.add(
            is_rare=labels_of(rows),
            flagged=model.decide(rows, worth=None if work is None else work.worth).flagged,
            scores=model.list_scores(rows),  # of all models, as lists have them
            by_default=model.predict(rows.X),
            tie_keys=model.tie_keys(rows.X, rows.ids),
            **weighed_columns(model, rows),
        )
    is_rare, flagged = found["is_rare"], found["flagged"]
    capacity, efforts = model.limit_for(found.get("efforts"))
    check_both_classes(is_rare, model.schema, target)
    n_flagged = int(flagged.sum())
    curve = capacity_curve(is_rare, found["scores"], rare_label=True)
    order = rank(lift(found["scores"]), found["tie_keys"].__getitem__)[0]
    measured = partial(
        measure_rule, is_rare=is_rare, capacity=capacity, order=order, efforts=efforts
    )
    return Evaluation(
        n_items=is_rare.size,
        n_rare=int(is_rare.sum()),
        capacity_fraction=model.flag_capacity.as_fraction(rare_share(is_rare)),
        flag_rate=n_flagged / is_rare.size,
        flag_rate_interval=proportion_interval(n_flagged, is_rare.size),
        rules=[
            measured("this model", flagged=flagged),
            measured(default_name(model), flagged=found["by_default"]),
            measure_random(is_rare, capacity, efforts),
        ],
        curve=points_at(curve, spread_capacities(is_rare.size)),
        seen=passing.seen,
        money=money_of(model, found, budget=None if work is None else work.budget),
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
    if not is_rare.any():
        raise TableError(
            f"The column {target!r} has no row with the rare label {schema.rare_label!r}, so there "
            "is nothing to find. Check the target, or use a table with rare cases."
        )
    if is_rare.all():
        raise TableError(
            f"The column {target!r} has only one class, {schema.rare_label!r}. Evaluation needs "
            "the other cases as well."
        )


def labels_of(rows: TableRows) -> Mask:
    """Return the labels of rows that were read with labels."""
    assert rows.is_rare is not None
    return rows.is_rare


# --- one rule ---


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
    >>> from shortlist.tables import measure_rule
    >>> is_rare, flagged = np.arange(100) < 8, np.arange(100) >= 6
    >>> flagged &= np.arange(100) < 10
    >>> result = measure_rule("by hand", is_rare, flagged, Capacity.count(4))
    >>> result.found, result.precision, result.detection
    (2, 0.5, 0.25)
    """
    options: dict[str, Any] = {"capacity": capacity, "rare_label": True, "efforts": efforts}
    n_flagged, n_found = int(flagged.sum()), int((flagged & is_rare).sum())
    detection = adjusted_detection_score(is_rare, flagged, **options)
    if order is None:
        interval = adjusted_detection_interval(is_rare, flagged, **options)
    else:
        low, high = interval_of_rule(is_rare, order, flagged, capacity)
        followed_up = detection * int(is_rare.sum()) / n_found if n_found else 1.0
        interval = Interval(followed_up * low, followed_up * high)
    return RuleResult(
        rule,
        n_flagged,
        n_found,
        detection,
        interval,
        n_found / n_flagged if n_flagged else float("nan"),
        proportion_interval(n_found, n_flagged),
    )


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
    >>> from shortlist.tables import measure_list
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
    share = rare_share(is_rare)
    if efforts is None:
        n_flagged: float = capacity.max_flags(is_rare.size, share)
    else:
        budget = float(capacity.max_effort(is_rare.size))
        n_flagged = is_rare.size * min(1.0, budget / float(efforts.sum()))
    detection = n_flagged / is_rare.size
    found = detection * int(is_rare.sum())
    return RuleResult("random", n_flagged, found, detection, None, float(share), None)


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
