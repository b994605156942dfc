"""The cases of a report: read once, scored, decided and ranked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles, Floats, Mask, Rows
from .._core.ranking import lift
from ..exceptions import TableError
from ..metrics.counted import CountedRows, count_rows
from ..tables import ReadOptions, TableModel
from ..tables.cases import as_texts
from ..tables.column_format import MISSING_CATEGORY
from ..tables.learned_rows import SeenRows
from ..tables.measure import check_counts
from ..tables.model import labels_of
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
        table = source.read()
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
