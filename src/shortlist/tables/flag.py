"""Flagging row by row with the calibrated rule, in constant memory."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .._core.arrays import Floats, Mask
from .._core.work import count_in_units
from ..capacity import exact
from ..exceptions import TooManyFlagsError
from ..thresholds import Decisions
from .cases import CaseReader, CaseRows
from .model import TableModel
from .monitor import DriftMonitor, Finding
from .options import ReadOptions
from .reasons import reasons_for
from .work import WorkColumns
from .write import TableWriter


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
    format : {"csv", "xlsx", "parquet", "jsonl"}, default="csv"
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
    job = _Job(model, path, work, reasons=reasons, at_most=at_most)
    with model.schema.open(path, reading=reading) as source:
        cases = CaseReader(
            model,
            source,
            keep=keep,
            id=id,
            exclude=exclude,
            taken=("row", *_DECIDED, "reasons"),
        )
        decided = (job.decide(some, cases) for some in cases if len(some))
        first = list(islice(decided, 1))  # now the types of the columns are known
        with TableWriter(file, format, job.types(cases)) as output:
            for columns in chain(first, decided):
                output.write(columns)
                if on_progress is not None:
                    on_progress(cases.n_read)
    return job.summary(cases, output)


class _Job:
    """The decisions about a table, and what is counted on the way."""

    def __init__(
        self,
        model: TableModel,
        path: Path,
        work: WorkColumns,
        *,
        reasons: bool,
        at_most: int | None,
    ) -> None:
        self._model, self._path, self._work = model, path, work
        self._kept = model.schema.work or WorkColumns()
        self._reasons, self._at_most = reasons, at_most
        self._monitor = DriftMonitor(model)
        self._n_flagged = self._n_again = self._n_not_worth = self._n_too_large = 0
        self._effort, self._value = Fraction(0), 0.0
        self._flagged_ids: set[str] = set()

    def types(self, cases: CaseReader) -> dict[str, str]:
        """Return the columns of the output, and their types."""
        first = {"row": "int64"} if cases.id is None else {cases.id: "string"}
        last = {"reasons": "string"} if self._reasons else {}
        return {**first, **_DECIDED, **last, **cases.types}

    def decide(self, cases: CaseRows, read: CaseReader) -> dict[str, Any]:
        """Return the decisions about some cases as columns."""
        decided = self._model.decide(cases)
        self._monitor.add(cases, decided.flagged)
        flagged = self._worth_it(cases, decided)
        self._count(cases, flagged, decided.scores, read.n_read)
        named = {"row": cases.numbers + 1} if read.id is None else {read.id: cases.names}
        return {
            **named,
            "score": np.asarray(decided.scores, dtype=np.float64),
            "flagged": flagged.astype(np.int8),
            **({"reasons": self._reasons_for(cases, flagged)} if self._reasons else {}),
            **cases.carried(),
        }

    def _worth_it(self, cases: CaseRows, decided: Decisions) -> Mask:
        """Leave out flags that are not worth it."""
        self._n_too_large += int(self._model.too_large(cases).sum())
        if self._work.worth is None:
            return decided.flagged
        enough = self._model.are_worth(decided, self._work.worth)
        self._n_not_worth += int((decided.flagged & ~enough).sum())
        return decided.flagged & enough

    def _count(self, cases: CaseRows, flagged: Mask, scores: Floats, n_read: int) -> None:
        """Add up flags, work and value; too many flags, and too much work, raise an error."""
        self._n_flagged += int(flagged.sum())
        if self._at_most is not None and self._n_flagged > self._at_most:
            raise TooManyFlagsError(
                f"More than {self._at_most:,} rows of {self._path} would be flagged: "
                f"{self._n_flagged:,} of the first {n_read:,}. Nothing was written. "
                "Look for the cause with: shortlist check. For a list of a fixed length, use: "
                "shortlist select."
            )
        for name in () if cases.names is None else cases.names[flagged].tolist():
            self._n_again += name in self._flagged_ids
            self._flagged_ids.add(name)
        _, efforts = self._model.weighed_by(cases)
        own = np.ones(int(flagged.sum())) if efforts is None else efforts[flagged]
        self._value += float((np.asarray(scores, dtype=np.float64)[flagged] * own).sum())
        units = count_in_units(own)
        self._effort += units.unit * int(units.efforts.sum())
        budget = self._work.budget
        if budget is not None and self._effort > exact(budget):
            raise TooManyFlagsError(
                f"The flags of {self._path} would take more than {budget:,.6g} {self._kept.unit}. "
                "Nothing was written. For a list within a budget, use: shortlist select."
            )

    def _reasons_for(self, cases: CaseRows, flagged: Mask) -> list[str | None]:
        places = np.flatnonzero(flagged)
        texts: list[str | None] = [None] * len(cases)
        if places.size:
            X = cases.X.iloc[places]
            scores = np.asarray(self._model.classifier.score_samples(X), dtype=np.float64)
            for place, reasons in zip(places, reasons_for(self._model, X, scores), strict=True):
                texts[place] = "; ".join(reason.in_words for reason in reasons)
        return texts

    def summary(self, cases: CaseReader, output: TableWriter) -> FlagSummary:
        """Return what was counted, in numbers and in words."""
        classifier, n_items = self._model.classifier, self._monitor.n_items
        work = None
        if self._kept.columns and classifier.capacity.kind != "effort":
            work = SpentWork("cases", None, None, self._value)
        elif self._kept.columns:
            allowed = float(classifier.capacity.max_effort(n_items))
            work = SpentWork(self._kept.unit, float(self._effort), allowed, self._value)
        return FlagSummary(
            n_items,
            self._n_flagged,
            classifier.capacity_fraction_,
            classifier.guarantee,
            [*output.notes, *self._notes(cases)],
            self._monitor.findings(),
            work,
        )

    def _notes(self, cases: CaseReader) -> list[str]:
        notes = cases.notes(self._path)
        if cases.n_read == 0:
            notes = [f"{self._path} has a heading, but no rows. Nothing was decided."]
        if self._n_again:
            notes.append(
                f"{self._n_again:,} flagged rows repeat the id ({cases.id!r}) of another "
                "flagged row. In a list of shortlist select, each id takes one place."
            )
        if self._n_not_worth:
            notes.append(
                f"Cases above the threshold that do not reach worth={self._work.worth:g} are not "
                f"flagged: {self._n_not_worth:,} here."
            )
        if self._n_too_large:
            notes.append(
                f"Cases that take more than {self._model.classifier.max_effort:g} "
                f"{self._kept.unit}, the most that the promise of the model covers, are not "
                f"flagged: {self._n_too_large:,} here. To allow more, fit with max_effort=..."
            )
        return notes
