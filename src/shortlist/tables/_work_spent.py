"""What flags take and bring, row by row: limits on the way, and sums at the end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from .._core.work import count_in_units
from ..capacity import exact
from ..exceptions import TableError, TooManyFlagsError
from ..thresholds import Decisions
from ._model import TableModel
from ._work import WorkColumns
from .schema import TableRows

__all__ = ["SpentWork", "WorkSpent"]


@dataclass(frozen=True)
class SpentWork:
    """The work of flags, what the capacity allows on as many rows, and their expected value.

    `effort` and `allowed` are None without efforts. `value` is the sum of value * probability; if
    efforts but no values were given, the expected number of rare cases.
    """

    unit: str
    effort: float | None
    allowed: float | None
    value: float


class WorkSpent:
    """Adds up the work and the expected value of flags; too much work raises an error.

    Parameters
    ----------
    model : TableModel
        Reads the columns of this table.
    work : WorkColumns
        With a budget for the whole table, and what a flag must be worth, if there is such.
    path : Path
        The table, for errors.
    """

    def __init__(self, model: TableModel, work: WorkColumns, path: Path) -> None:
        self._model, self._work, self._path = model, work, path
        self._effort, self._value = Fraction(0), 0.0
        self._n_not_worth = self._n_too_large = 0
        kept = model.schema.work
        if work.budget is not None and (kept is None or kept.effort is None):
            raise TableError(
                "--budget limits the work of the flags, and the model was fitted without --effort. "
                "Limit their number with --at-most, or fit with --effort and --budget."
            )

    def judge(self, rows: TableRows, decided: Decisions) -> Decisions:
        """Leave out flags that are not worth it, and count the others."""
        self._n_too_large += int(self._model.too_large(rows).sum())
        if self._work.worth is not None:
            enough = self._model.are_worth(decided, self._work.worth)
            self._n_not_worth += int((decided.flagged & ~enough).sum())
            decided = replace(decided, flagged=decided.flagged & enough)
        self._count(rows, decided)
        return decided

    def _count(self, rows: TableRows, decided: Decisions) -> None:
        _, efforts = self._model.weighed_by(rows)
        worth = np.asarray(decided.scores, dtype=np.float64)[decided.flagged]
        if efforts is None:
            self._value += float(worth.sum())
            return
        own = efforts[decided.flagged]
        self._value += float((worth * own).sum())
        units = count_in_units(own)
        self._effort += units.unit * int(units.efforts.sum())
        budget = self._work.budget
        if budget is not None and self._effort > exact(budget):
            raise TooManyFlagsError(
                f"The flags of {self._path} would take more than {budget:,.6g} {self._unit}. "
                "Nothing was written. For a list within a budget, use: shortlist select --budget."
            )

    @property
    def _unit(self) -> str:
        kept = self._model.schema.work
        return "units" if kept is None else kept.unit

    def summary(self, n_items: int) -> SpentWork | None:
        """Return the sums; None if the model weighs neither values nor efforts."""
        kept, capacity = self._model.schema.work, self._model.classifier.capacity
        if kept is None or not kept.columns:
            return None
        if capacity.kind != "effort":
            return SpentWork("cases", None, None, self._value)
        allowed = float(capacity.max_effort(n_items))
        return SpentWork(kept.unit, float(self._effort), allowed, self._value)

    def notes(self) -> list[str]:
        """Say what was left out, and why."""
        notes = []
        if self._n_not_worth:
            notes.append(
                f"Cases above the threshold that do not reach --worth {self._work.worth:g} are not "
                f"flagged: {self._n_not_worth:,} here."
            )
        if self._n_too_large:
            notes.append(
                f"Cases that take more than {self._model.classifier.max_effort:g} {self._unit}, "
                "the most that the promise of the model covers, are not flagged: "
                f"{self._n_too_large:,} here. To allow more, fit with --max-effort."
            )
        return notes
