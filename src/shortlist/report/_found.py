"""What was found: at every cut, by segment, beside other rules, in money; and what was missed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles, Floats, Mask, Rows
from .._core.files import to_plain
from .._core.formatting import number, percent
from .._core.intervals import proportion_interval
from .._core.labels import rare_share
from .._core.ranking import lift
from ..capacity import Capacity
from ..exceptions import TableError
from ..metrics import capacity_curve
from ..metrics.counted import CountedRows, count_rows
from ..tables import ReadOptions, TableModel
from ..tables.cases import as_texts
from ..tables.column_format import MISSING_CATEGORY
from ..tables.groups import GroupCodes, by_group
from ..tables.learned_rows import SeenRows
from ..tables.measure import check_counts, measure_rules, shares_paid
from ..tables.model import labels_of
from ..tables.read import read_whole
from ..tables.reviews import missed_in_table
from ..tables.rules import as_filled, money_of, weighed_columns
from ..tables.schema import TableRows, TableSchema

_EMPTY = "(empty)"  # the segment of cases without one
# A column with more different values than this share of the rows, and than a few, has no groups.
_MOST_DIFFERENT, _FEW = 0.5, 20
_LONGEST_ID = 80


def short(text: str, length: int = 30) -> str:
    """Cut a long text short; in a sentence, for instance, of a name that the card has whole."""
    return text if len(text) <= length else text[: length - 1] + "…"


def _segments(table: Any, column: str) -> NDArray[Any]:
    """Return a column of segments as texts."""
    texts = as_texts(table[column], column)
    n_different = len(set(texts))
    if n_different > max(_MOST_DIFFERENT * texts.size, _FEW):
        raise TableError(
            f"segment=... names {column!r}, which has {n_different:,} different values in "
            f"{texts.size:,} rows. It looks like an id or a measurement. Name a column with groups "
            "of rows, such as a team or a country."
        )
    texts[texts == MISSING_CATEGORY] = _EMPTY
    return texts


@dataclass(frozen=True)
class Cases:
    """Cases with their scores and flags; all arrays are in the order of the file.

    Attributes
    ----------
    rows : TableRows
        The cases themselves, with what is known about them.
    target : str or None
        The column with the labels; None if there are none.
    scores, flagged : ndarray
        Scores, and the decisions of the calibrated rule.
    decided_scores : ndarray
        The scores that the rule compared with its thresholds. They differ from `scores` where one
        model of several decides about a case, and `scores` is that of lists.
    keys : ndarray
        What orders cases with equal scores.
    seen : SeenRows or None
        How many of the cases trained or calibrated the model; None if that is not known.
    segments : ndarray of str or None
        The segment of each case, if they were asked for.
    """

    rows: TableRows
    target: str | None
    scores: NDArray[np.float64]
    flagged: Mask
    decided_scores: NDArray[np.float64]
    keys: Floats
    seen: SeenRows | None = None
    segments: NDArray[Any] | None = None

    @cached_property
    def order(self) -> Rows:
        """The positions of the cases, the most suspicious first."""
        return np.lexsort((self.keys, -lift(self.scores)))

    def counted(self, flags: dict[str, Mask]) -> CountedRows:
        """Count the cases by rank, label and the flags of rules."""
        columns = {"is_rare": self.rare, "lifted": lift(self.scores), "key": self.keys, **flags}
        return count_rows(lambda kernel: [kernel(columns)], flags)

    @property
    def n_items(self) -> int:
        """Number of cases."""
        return self.scores.size

    @property
    def n_flagged(self) -> int:
        """Number of cases that the rule flagged."""
        return int(self.flagged.sum())

    @property
    def rare(self) -> Mask:
        """The labels; only for cases that have them."""
        return labels_of(self.rows)

    def first(self, count: int) -> Mask:
        """Return a mask of the `count` most suspicious cases."""
        mask = np.zeros(self.n_items, dtype=bool)
        mask[self.order[:count]] = True
        return mask

    def room(self, model: TableModel, prevalence: Any) -> int:
        """Return how many cases the capacity allows to follow up.

        A budget of work allows the highest of the ranking, as many as it pays for.
        """
        capacity, efforts = model.limit_for(self.rows.efforts)
        if efforts is None:
            return capacity.max_flags(self.n_items, prevalence)
        work = np.cumsum(efforts[self.order])
        return int(np.searchsorted(work, float(capacity.max_effort(self.n_items)), side="right"))

    def work(self, model: TableModel) -> Doubles | None:
        """Return what the flags take, and 0 for other cases; None without a budget of work."""
        _, efforts = model.limit_for(model.weighed_by(self.rows)[1])
        return None if efforts is None else np.where(self.flagged, efforts, 0.0)

    def name(self, place: int) -> str:
        """Return the id of a case, or its row below the heading; long ids are cut short."""
        ids = self.rows.ids
        return f"row {place + 1}" if ids is None else short(str(ids[place]), _LONGEST_ID)


def read_cases(
    model: TableModel,
    path: Path,
    target: str | None = None,
    *,
    reading: ReadOptions | None = None,
    segment: str | None = None,
) -> Cases:
    """Read, score, decide and rank all rows of a table.

    Without `target`, the target of the fit has the labels, if the table has it and it is not empty
    in every row.
    """
    schema = model.schema
    with schema.open(path, reading=reading) as source:
        if segment is not None:
            source.require([segment], "which segment=... names")
        table = read_whole(source)
        if target is None and schema.target in source.columns:
            is_empty = table[schema.target].null_count == table.num_rows
            target = None if is_empty else schema.target
        whole = replace(source, chunks=lambda wanted: iter([table]))
        rows = schema.read(whole, target=target)
    if target is not None:
        _check_both_classes(rows, schema, target)
    decided = model.decide(rows)
    decided_scores = scores = np.asarray(decided.scores, dtype=np.float64)
    if len(model.classifier.calibrations_) > 1:
        scores = np.asarray(model.list_scores(rows), dtype=np.float64)
    return Cases(
        rows=rows,
        target=target,
        scores=scores,
        flagged=decided.flagged,
        decided_scores=decided_scores,
        keys=model.tie_keys(rows.X, rows.ids),
        seen=model.fingerprints.compare(rows),
        segments=None if segment is None else _segments(table, segment),
    )


def _check_both_classes(rows: TableRows, schema: TableSchema, target: str) -> None:
    try:
        check_counts(int(labels_of(rows).sum()), len(rows.X), schema, target)
    except TableError as error:
        raise TableError(
            f"{error} Without that column in the table, the report is one without labels."
        ) from None


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
