"""Flagging row by row with the calibrated rule, in constant memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Mask
from .._core.work import count_in_units
from ..capacity import exact
from ..exceptions import TableError, TooManyFlagsError
from ..thresholds import Decisions
from .lists import CarriedColumns, Exclusions, ListFile, open_list, read_exclusions
from .model import TableModel
from .monitor import DriftMonitor, Finding
from .options import ReadOptions
from .reasons import reasons_for
from .schema import TableRows
from .work import WorkColumns


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
    """Adds up the work and the expected value of flags; too much work raises an error."""

    def __init__(self, model: TableModel, work: WorkColumns, path: Path) -> None:
        self._model, self._work, self._path = model, work, path
        self._effort, self._value = Fraction(0), 0.0
        self._n_not_worth = self._n_too_large = 0
        kept = model.schema.work
        if work.budget is not None and (kept is None or kept.effort is None):
            raise TableError(
                "budget=... limits the work of flags, and the model was fitted without effort=... "
                "Limit their number with at_most=..., or fit with effort=... and a budget."
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
                "Nothing was written. For a list within a budget, use: shortlist select."
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
                f"Cases above the threshold that do not reach worth={self._work.worth:g} are not "
                f"flagged: {self._n_not_worth:,} here."
            )
        if self._n_too_large:
            notes.append(
                f"Cases that take more than {self._model.classifier.max_effort:g} {self._unit}, "
                "the most that the promise of the model covers, are not flagged: "
                f"{self._n_too_large:,} here. To allow more, fit with max_effort=..."
            )
        return notes


_DECIDED = {"score": "double", "flagged": "int8"}


@dataclass(frozen=True)
class FlagSummary:
    """How many rows were read and flagged, and what share of rows the capacity allows.

    `notes` are sentences about the table, and `findings` tell what does not fit the model card.
    `work` is what the flags take and are expected to bring, if the model weighs that.
    """

    n_items: int
    n_flagged: int
    capacity_fraction: float
    guarantee: str
    notes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    work: SpentWork | None = None

    @property
    def flagged_fraction(self) -> float | None:
        """The share of flagged rows; None if there were no rows."""
        return self.n_flagged / self.n_items if self.n_items else None


def flag_rows(
    model: TableModel,
    path: Path,
    file: BinaryIO,
    *,
    format: str = "csv",
    keep: Collection[str] = (),
    id: str | None = None,
    reasons: bool = False,
    exclude: Path | None = None,
    at_most: int | None = None,
    reading: ReadOptions | None = None,
    work: WorkColumns | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> FlagSummary:
    """Decide for every row of a table whether to follow it up, and write the decisions.

    Each row is decided on its own, so the result does not depend on where chunks begin. A decision
    consists of the id of the row (or its number below the heading, counted from 1), its score, and
    1 if it is flagged or 0 if it is not.

    Parameters
    ----------
    model : TableModel
        Fitted.
    path : Path
        A table with the columns that the model needs, of any length.
    file : binary file
        Where to write the decisions.
    format : {"csv", "parquet", "feather", "jsonl"}, default="csv"
        The format of the decisions.
    keep : collection of str, default=()
        Columns of the table to carry along; ``["all"]`` takes all of them.
    id : str, default=None
        The column that names a case; `None` takes the id of the model.
    reasons : bool, default=False
        Whether to write the columns that raised the score of each flagged row.
    exclude : Path, default=None
        A table with the ids of cases to leave out, such as those that were reviewed before.
    at_most : int, default=None
        If more rows than this are flagged, a TooManyFlagsError is raised before they are written.
    reading : ReadOptions, default=None
        What to know about this file; `None` reads it as the table of the fit.
    work : WorkColumns, default=None
        Other names of the columns with values and efforts than in the fit; a budget: if the flags
        take more work, a TooManyFlagsError is raised before they are written; and what a flag must
        be worth.
    on_progress : callable, default=None
        Called with the number of rows decided so far.

    Returns
    -------
    FlagSummary
        How many rows were read and flagged, with notes and findings.
    """
    work = work or WorkColumns()
    model.check_weighs(work)
    model = model.reading_work(work)
    with model.schema.open(path, reading=reading) as source, contextlib.ExitStack() as stack:
        carried = CarriedColumns(
            source, model.schema, keep=keep, id=id, taken=("row", *_DECIDED, "reasons")
        )
        job = _Job(model, carried, reasons=reasons, at_most=at_most, path=path, work=work)
        if exclude is not None:
            job.excluded = read_exclusions(exclude, carried.id, source.reading)
        chunks = model.schema.rows(carried.source)
        output: ListFile | None = None
        for rows in chunks:
            decided = job.decide(rows)
            if output is None:  # now the types of the columns are known
                output = stack.enter_context(open_list(file, format, job.types))
            output.write(decided)
            if on_progress is not None:
                on_progress(job.n_read)
        if output is None:
            output = stack.enter_context(open_list(file, format, job.types))
    return job.summary(output)


class _Job:
    """The decisions about a table, and what is counted on the way."""

    def __init__(
        self,
        model: TableModel,
        carried: CarriedColumns,
        *,
        reasons: bool,
        at_most: int | None,
        path: Path,
        work: WorkColumns,
    ) -> None:
        self._model, self._carried, self._path = model, carried, path
        self._spent = WorkSpent(model, work, path)
        self._reasons, self._at_most = reasons, at_most
        self._monitor = DriftMonitor(model)
        self.excluded: Exclusions | None = None
        self.n_read = self.n_flagged = self._n_again = 0
        self._flagged_ids: set[str] = set()

    @property
    def types(self) -> dict[str, str]:
        first = "int64" if self._carried.id is None else "string"
        last = {"reasons": "string"} if self._reasons else {}
        return {self._first: first, **_DECIDED, **last, **self._carried.types()}

    @property
    def _first(self) -> str:
        return self._carried.id or "row"

    def decide(self, rows: TableRows) -> dict[str, Any]:
        """Return the decisions about a chunk as columns."""
        names, kept = self._carried.ids(), self._carried.columns()
        allowed = self._allowed(names, len(rows.X))
        numbers = np.arange(self.n_read + 1, self.n_read + len(rows.X) + 1)[allowed]
        self.n_read += len(rows.X)
        rows = rows.take(np.flatnonzero(allowed))
        if len(rows.X) == 0:
            return {name: [] for name in self.types}
        decided = _decide(self._model, rows)
        self._monitor.add(rows, decided.flagged)
        decided = self._spent.judge(rows, decided)
        self.n_flagged += int(decided.flagged.sum())
        self._check_limit()
        names = None if names is None else names[allowed]
        self._count_again(names, decided.flagged)
        return {
            self._first: numbers if names is None else names,
            "score": np.asarray(decided.scores, dtype=np.float64),
            "flagged": decided.flagged.astype(np.int8),
            **(self._reasons_of(rows, decided) if self._reasons else {}),
            **{
                name: [v for v, ok in zip(values, allowed, strict=True) if ok]
                for name, values in kept.items()
            },
        }

    def _allowed(self, names: NDArray[Any] | None, n_rows: int) -> Mask:
        if self.excluded is None or names is None:
            return np.ones(n_rows, dtype=bool)
        return ~self.excluded.found(names)

    def _check_limit(self) -> None:
        if self._at_most is not None and self.n_flagged > self._at_most:
            raise TooManyFlagsError(
                f"More than {self._at_most:,} rows of {self._path} would be flagged: "
                f"{self.n_flagged:,} of the first {self.n_read:,}. Nothing was written. "
                "Look for the cause with: shortlist check. For a list of a fixed length, use: "
                "shortlist select."
            )

    def _count_again(self, names: NDArray[Any] | None, flagged: Mask) -> None:
        for name in () if names is None else names[flagged].tolist():
            self._n_again += name in self._flagged_ids
            self._flagged_ids.add(name)

    def _reasons_of(self, rows: TableRows, decided: Any) -> dict[str, list[str | None]]:
        places = np.flatnonzero(decided.flagged)
        texts: list[str | None] = [None] * len(rows.X)
        if places.size:
            X = rows.X.iloc[places]
            scores = np.asarray(self._model.classifier.score_samples(X), dtype=np.float64)
            for place, reasons in zip(places, reasons_for(self._model, X, scores), strict=True):
                texts[place] = "; ".join(reason.in_words for reason in reasons)
        return {"reasons": texts}

    def summary(self, output: ListFile) -> FlagSummary:
        """Return what was counted, in numbers and in words."""
        notes = [] if output.note is None else [output.note]
        if self.n_read == 0:
            notes.append(f"{self._path} has a heading, but no rows. Nothing was decided.")
        elif self.excluded is not None:
            notes += self.excluded.in_words(self._path, self._carried.id)
        if self._n_again:
            notes.append(
                f"{self._n_again:,} flagged rows repeat the id ({self._carried.id!r}) of another "
                "flagged row. In a list of shortlist select, each id takes one place."
            )
        classifier = self._model.classifier
        return FlagSummary(
            self._monitor.n_items,
            self.n_flagged,
            classifier.capacity_fraction_,
            classifier.guarantee,
            [*notes, *self._spent.notes()],
            self._monitor.findings(),
            self._spent.summary(self._monitor.n_items),
        )


def _decide(model: TableModel, rows: TableRows) -> Any:
    return model.decide(rows)
