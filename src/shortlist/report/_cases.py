"""The cases of a report: read once, scored, decided and ranked."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles, Mask, Rows
from ..capacity import Capacity
from ..exceptions import TableError
from ..tables import ReadOptions, TableModel
from ..tables.fingerprints import SeenRows
from ..tables.measure import check_counts
from ..tables.model import labels_of
from ..tables.money import fill_in_order
from ..tables.schema import Feature, TableRows, TableSchema

#: The name of the segment of cases without one.
EMPTY = "(empty)"
# A column with more different values than this share of the rows, and than a few, has no groups.
_MOST_DIFFERENT, _FEW = 0.5, 20
# Days since 1970 of the years 1678 to 2261; 9999-12-31 and 1001-01-01 stand for something else.
_FIRST_DAY, _LAST_DAY = -106_650, 106_650


class KeptTable:
    """The chunks of an open table, with more columns than the model needs.

    Parameters
    ----------
    source : OpenTable
        What `TableSchema.open` yields; it can be read only once.
    schema : TableSchema
        The columns that the model needs.
    target : str or None
        The column with the labels; None takes the target of the fit, if it is there and not empty.
    labels : bool
        Whether labels are wanted at all.
    others : collection of str or None
        Other columns to keep.

    Attributes
    ----------
    source : OpenTable
        The same table, which can be read again.
    target : str or None
        The column with the labels; None if there are none.
    """

    def __init__(
        self,
        source: Any,
        schema: TableSchema,
        target: str | None,
        *,
        labels: bool,
        others: Collection[str | None],
    ) -> None:
        self.source, self.target = replace(source, chunks=self._read_once), target
        self._schema, self._chunks, self._origin = schema, list[Any](), source
        self._more = [name for name in others if name is not None]
        source.require(self._more, "which segment=... or time=... names")
        is_there = labels and target is None and schema.target in source.columns
        self._more += [schema.target] if is_there else []
        next(schema.rows(self.source, target=target), None)  # checks the columns, and reads
        if is_there and not self._is_empty(schema.target):
            self.target = schema.target

    def _read_once(self, wanted: Collection[str]) -> Iterator[Any]:
        if not self._chunks:
            every = list(dict.fromkeys([*wanted, *self._more]))
            self._chunks.extend(self._origin.chunks(every))
        return iter(self._chunks)

    def _is_empty(self, column: str) -> bool:
        return all(chunk[column].null_count == chunk.num_rows for chunk in self._chunks)

    def texts(self, column: str) -> NDArray[np.str_]:
        """Return a column of segments as texts, in which whole numbers have no decimals."""
        values = (value for chunk in self._chunks for value in chunk[column].to_pylist())
        texts = np.array([_text(value) for value in values], dtype=str)
        n_different = np.unique(texts).size
        if n_different > max(_MOST_DIFFERENT * texts.size, _FEW):
            raise TableError(
                f"segment=... names {column!r}, which has {n_different:,} different values in "
                f"{texts.size:,} rows. It looks like an id or a measurement. Name a column with "
                "groups of rows, such as a team or a country."
            )
        return texts

    def days(self, column: str, rows: TableRows) -> NDArray[np.float64]:
        """Return a column as days since 1970, read as the dates of the model are."""
        known = {feature.name: feature.kind for feature in self._schema.features}
        is_known = known.get(column) == "date"
        days = rows.X[column].to_numpy() if is_known else self._converted(column)
        if np.isnan(days).all():
            raise TableError(f"time=... names {column!r}, but this column is empty in every row.")
        is_odd = (days < _FIRST_DAY) | (days >= _LAST_DAY + 1)
        if is_odd.any():
            raise TableError(_no_date(column, *self._value(column, int(is_odd.argmax()))))
        return days

    def _value(self, column: str, row: int) -> tuple[int, Any]:
        return row, [value for chunk in self._chunks for value in chunk[column].to_pylist()][row]

    def _converted(self, column: str) -> NDArray[np.float64]:
        schema = replace(self._schema, features=(Feature(column, "date"),), id=None)
        schema = schema.adapted(self._origin.reading)
        try:
            parts = [schema.convert(chunk).X[column] for chunk in self._chunks]
        except ValueError:
            raise TableError(_no_date(column, *self._first_other(column, schema))) from None
        return np.concatenate(parts)

    def _first_other(self, column: str, schema: TableSchema) -> tuple[int, Any]:
        """Return the first value that is not a date by itself, and its row from 0."""
        n_before = 0
        for chunk in self._chunks:
            for row in range(chunk.num_rows):
                try:
                    schema.convert(chunk.slice(row, 1))
                except ValueError:
                    return n_before + row, chunk[column][row].as_py()
            n_before += chunk.num_rows
        return 0, self._chunks[0][column][0].as_py()


def _no_date(column: str, row: int, value: Any) -> str:
    return (
        f"time=... names {column!r}, but {str(value)!r} in row {row + 1} is not a date, or not one "
        "of our times. Write dates as 2024-05-31, say how they are written with date_format=..., "
        "or use segment=... for other groups."
    )


def _text(value: Any) -> str:
    if value is None or value != value:
        return EMPTY
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip() or EMPTY


_LONGEST_ID = 80


@dataclass(frozen=True)
class Cases:
    """Cases with their scores and flags; all arrays are in the order of the file.

    Attributes
    ----------
    X : data frame
        Features.
    ids : ndarray or None
        Ids of the cases.
    target : str or None
        The column with the labels; None if there are none.
    is_rare : ndarray of bool or None
        Labels, if they are known.
    scores, flagged : ndarray
        Scores, and the decisions of the calibrated rule.
    decided_scores : ndarray
        The scores that the rule compared with its thresholds. They differ from `scores` where one
        model of several decides about a case, and `scores` is the mean of all of them.
    order : ndarray of int
        Positions, the most suspicious first.
    seen : SeenRows or None
        How many of the cases trained or calibrated the model; None if that is not known.
    segments : ndarray of str or None
        The segment of each case, if they were asked for.
    days : ndarray or None
        The moment of each case in days since 1970, if it was asked for; NaN where it is empty.
    values, efforts : ndarray or None
        What each case is worth if it is rare, and how much work it takes, if that is known.
    """

    X: Any
    ids: NDArray[Any] | None
    target: str | None
    is_rare: Mask | None
    scores: NDArray[np.float64]
    flagged: Mask
    decided_scores: NDArray[np.float64]
    order: Rows
    seen: SeenRows | None = None
    segments: NDArray[Any] | None = None
    days: NDArray[np.float64] | None = None
    values: Doubles | None = None
    efforts: Doubles | None = None

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
        assert self.is_rare is not None
        return self.is_rare

    @property
    def flags_the_first(self) -> bool:
        """Whether the rule flagged the first cases of the ranking, as a list would."""
        return bool(np.array_equal(self.first(self.n_flagged), self.flagged))

    def first(self, count: int) -> Mask:
        """Return a mask of the `count` most suspicious cases."""
        mask = np.zeros(self.n_items, dtype=bool)
        mask[self.order[:count]] = True
        return mask

    def limit(self, model: TableModel) -> tuple[Capacity, Doubles | None]:
        """Return what flags are counted against, and the work of each case if that is work."""
        return model.limit_for(self.efforts)

    def fitting(self, model: TableModel, room: int) -> Mask:
        """Return a mask of a list: the most suspicious cases that the capacity allows."""
        capacity, efforts = self.limit(model)
        if efforts is None:
            return self.first(room)
        ranks = np.empty(self.n_items)
        ranks[self.order] = np.arange(self.n_items, 0, -1)
        return fill_in_order(ranks, efforts, float(capacity.max_effort(self.n_items)))

    def is_over(self, model: TableModel, flagged: Mask, room: int) -> bool:
        """Return whether flags are more than the capacity allows."""
        capacity, efforts = self.limit(model)
        if efforts is None:
            return int(flagged.sum()) > room
        return float(efforts[flagged].sum()) > float(capacity.max_effort(self.n_items))

    def room(self, model: TableModel, prevalence: Any, own: Mask | None = None) -> int:
        """Return how many cases, or cases among some, the capacity allows to follow up.

        A budget of work allows the highest of the ranking, as many as it pays for.
        """
        capacity, efforts = self.limit(model)
        n_items = self.n_items if own is None else int(own.sum())
        if efforts is None:
            return capacity.max_flags(n_items, prevalence)
        order = self.order if own is None else self.order[own[self.order]]
        work = np.cumsum(efforts[order])
        return int(np.searchsorted(work, float(capacity.max_effort(n_items)), side="right"))

    def name(self, place: int) -> str:
        """Return the id of a case, or its row below the heading; long ids are cut short."""
        if self.ids is None:
            return f"row {place + 1}"
        name = str(self.ids[place])
        return name if len(name) <= _LONGEST_ID else name[: _LONGEST_ID - 1] + "…"


def read_cases(
    model: TableModel,
    path: Path,
    target: str | None = None,
    *,
    labels: bool = True,
    reading: ReadOptions | None = None,
    segment: str | None = None,
    time: str | None = None,
    worth: float | None = None,
) -> Cases:
    """Read, score, decide and rank all rows of a table.

    Without `target`, the target of the fit has the labels, if the table has it and it is not empty
    in every row. With `worth`, flags of less expected value per unit of effort are left out.
    """
    schema = model.schema
    with schema.open(path, reading=reading) as source:
        kept = KeptTable(source, schema, target, labels=labels, others=(segment, time))
        rows = schema.read(kept.source, target=kept.target)
    if kept.target is not None:
        _check_both_classes(rows, schema, kept.target)
    decided = model.decide(rows, worth=worth)
    decided_scores = scores = np.asarray(decided.scores, dtype=np.float64)
    if len(model.classifier.calibrations_) > 1:
        scores = np.asarray(model.list_scores(rows), dtype=np.float64)
    return Cases(
        X=rows.X,
        ids=rows.ids,
        target=kept.target,
        is_rare=rows.is_rare,
        scores=scores,
        flagged=decided.flagged,
        decided_scores=decided_scores,
        order=model.rank(rows.X, rows.ids, scores),
        seen=model.seen_in(rows),
        segments=None if segment is None else kept.texts(segment),
        days=None if time is None else kept.days(time, rows),
        values=rows.values,
        efforts=rows.efforts,
    )


def _check_both_classes(rows: TableRows, schema: TableSchema, target: str) -> None:
    try:
        check_counts(int(labels_of(rows).sum()), len(rows.X), schema, target)
    except TableError as error:
        raise TableError(f"{error} Or make the report without labels: labels=False.") from None
