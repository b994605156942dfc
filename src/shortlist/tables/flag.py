"""Flagging row by row with the calibrated rule, in constant memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from .._core.arrays import Doubles, Mask
from .._core.formatting import counted, number, stated_percent
from .._core.work import count_in_units
from ..capacity import exact
from ..exceptions import TooManyFlagsError
from ._source import ReadOptions
from .cases import CaseReader
from .columns import RepeatedIds
from .model import TableModel
from .monitor import Finding
from .reasons import reasons_for, reasons_in_words
from .schema import TableRows
from .write import TableWriter

if TYPE_CHECKING:
    from ..online import EntityCases

_DECIDED = {"score": "double", "flagged": "int8"}


@dataclass(frozen=True)
class FlagSummary:
    """How many rows were read and flagged, and what share of rows the capacity allows.

    `notes` are sentences about the table, and `findings` tell what does not fit the model card. If
    the model weighs values or efforts, `value` is the expected value of the flags; and if its
    capacity is a budget, `effort` is the work that they take, and `allowed` what the budget allows.
    """

    n_items: int
    n_flagged: int
    capacity_fraction: float
    guarantee: str
    notes: list[str]
    findings: list[Finding]
    value: float | None = None
    effort: float | None = None
    allowed: float | None = None
    unit: str = "cases"


def flag_rows(
    model: TableModel,
    path: Any,
    file: BinaryIO,
    *,
    format: str = "csv",
    keep: Collection[str] = (),
    id: str | None = None,
    entity: str | None = None,
    time: str | None = None,
    rule: EntityCases | None = None,
    reasons: bool = False,
    exclude: Any = None,
    at_most: int | None = None,
    budget: float | None = None,
    worth: float | None = None,
    act: float | None = None,
    reading: ReadOptions | None = None,
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
    path : Path, str or data frame
        A table with the columns that the model needs, of any length.
    file : binary file
        Where to write the decisions.
    format : {"csv", "xlsx", "parquet", "jsonl"}, default="csv"
        The format of the decisions.
    keep : collection of str, default=()
        Columns of the table to carry along; ``["all"]`` takes all of them.
    id : str, default=None
        The column that names a case; `None` takes the id of the model.
    entity : str, default=None
        A column that says whose event a row is, such as a customer. A flag begins a case of its
        entity, which later rows join: they are not flagged, and a column `joined` names the row
        that was.
    time : str, default=None
        A column with the moments of the rows, in their order: dates, or seconds. Without it a case
        lasts until the end of the table.
    rule : EntityCases, default=None
        How long a case lasts, and what is raised again; `None` has a window of a day. It keeps the
        cases, for the next table.
    reasons : bool, default=False
        Whether to write the columns that raised the score of each flagged row.
    exclude : Path, str or data frame, default=None
        A table with the ids of cases to leave out, such as those that were reviewed before; see
        :func:`select_rows`.
    at_most : int, default=None
        If more rows than this are flagged, a TooManyFlagsError is raised before they are written.
    budget : float, default=None
        The same for their work, for a model that was fitted with efforts.
    worth : float, default=None
        Leave out flags of less expected value per unit of effort.
    act : float, default=None
        Write a column `tier` as well: "act" for rows to act on at once, of which at least this
        share is rare, such as 0.9, with the confidence of the model; "review" for other flags; and
        "pass". It needs calibration rows with labels, as those of a fit.
    reading : ReadOptions, default=None
        What to know about this file; `None` reads it as the table of the fit.
    on_progress : callable, default=None
        Called with the number of rows decided so far.

    Returns
    -------
    FlagSummary
        How many rows were read and flagged, with notes and findings.
    """
    model.check_budget(budget)
    cases = CaseReader(
        model,
        path,
        keep=keep,
        id=id,
        exclude=exclude,
        entity=entity,
        time=time,
        given_rule=rule,
        taken=("row", *_DECIDED, "joined", "tier", "reasons"),
        reading=reading,
        on_progress=on_progress,
    )
    job = _Job(model, cases, reasons, at_most, budget, worth, act)
    decided = (job.decide(some) for some in cases if len(some))
    first = list(islice(decided, 1))  # now the types of the columns are known
    with TableWriter(file, format, job.types()) as output:
        for columns in chain(first, decided):
            output.write(columns)
    return job.summary(output)


@dataclass
class _Job:
    """The decisions about a table, and what is counted on the way."""

    model: TableModel
    cases: CaseReader
    reasons: bool
    at_most: int | None
    budget: float | None
    worth: float | None
    act: float | None

    def __post_init__(self) -> None:
        self._n: Counter[str] = Counter()
        self._effort, self._value, self._now = Fraction(0), 0.0, -np.inf
        self._flagged_ids = RepeatedIds()

    def types(self) -> dict[str, str]:
        """Return the columns of the output, and their types."""
        first = {"row": "int64"} if self.cases.id is None else {self.cases.id: "string"}
        last = {} if self.cases.entity is None else {"joined": "string"}
        last |= {"tier": "string"} if self.act is not None else {}
        last |= {"reasons": "string"} if self.reasons else {}
        return {**first, **_DECIDED, **last, **self.cases.types}

    def decide(self, cases: TableRows) -> dict[str, Any]:
        """Return the decisions about some cases as columns."""
        decided = self.model.decide(cases, act=self.act)
        self.cases.monitor.add_flags(decided.flagged)
        flagged, scores = decided.flagged, np.asarray(decided.scores, dtype=np.float64)
        if self.worth is not None:
            flagged = flagged & self.model.are_worth(decided, self.worth)
        self._n["not worth"] += int((decided.flagged & ~flagged).sum())
        self._n["too large"] += int(self.model.too_large(cases).sum())
        joined = {}
        if cases.entities is not None:
            flagged, joined["joined"] = self._begin_cases(cases, flagged, scores)
        self._count(cases, flagged, scores)
        tiered = {}
        if self.act is not None:
            tiered["tier"] = replace(decided, flagged=flagged).tiers.tolist()
            self._n.update(tiered["tier"])
        id = self.cases.id
        return {
            **({"row": cases.numbers + 1} if id is None else {id: cases.names}),
            "score": scores,
            "flagged": flagged.astype(np.int8),
            **joined,
            **tiered,
            **({"reasons": self._reasons_for(cases, flagged)} if self.reasons else {}),
            **cases.carried(),
        }

    def _begin_cases(self, cases: TableRows, flagged: Mask, scores: Doubles) -> tuple[Mask, Any]:
        """Return flags of which each begins a case, and the case that any other row joins."""
        rule, entities, names = self.cases.rule, np.asarray(cases.entities), cases.names
        keys = cases.numbers + 1 if names is None else names
        moments = np.zeros(len(cases)) if cases.moments is None else cases.moments
        begins, joined = np.zeros(len(cases), dtype=bool), np.full(len(cases), None, dtype=object)
        events = zip(entities.tolist(), scores.tolist(), moments.tolist(), strict=True)
        for row, (entity, score, at) in enumerate(events):
            self._now = max(self._now, at)  # a row that comes late is of now
            is_free = rule.settle(entity, score, self._now) is None
            if is_free and flagged[row]:
                begins[row] = True
                rule.begin(entity, str(keys[row]), score, self._now)
            else:
                joined[row] = rule.join(entity, score, self._now)
        self._n["joined"] += int((flagged & ~begins).sum())
        return begins, joined

    def _count(self, cases: TableRows, flagged: Mask, scores: Doubles) -> None:
        """Add up flags, work and value; too many flags, and too much work, raise an error."""
        self._n["flagged"] += int(flagged.sum())
        if cases.names is not None:
            self._flagged_ids.add(cases.names[flagged])
        _, efforts = self.model.weighed_by(cases)
        worth = scores[flagged]
        if efforts is not None:
            worth, units = worth * efforts[flagged], count_in_units(efforts[flagged])
            self._effort += units.unit * int(units.efforts.sum())
        self._value += float(worth.sum())
        for spent, most, unit in (
            (self._n["flagged"], self.at_most, "places"),
            (self._effort, self.budget, self.model.unit),
        ):
            if most is not None and spent > exact(most):
                raise TooManyFlagsError(
                    f"The flags of {self.cases.path} would take more than {number(most, 12)} "
                    f"{unit}: {number(float(spent))} for the first {self.cases.n_read:,} rows. "
                    "Nothing was written. Look for the cause with: shortlist check. For a list of "
                    "a fixed length, or within a budget, use: shortlist select."
                )

    def _reasons_for(self, cases: TableRows, flagged: Mask) -> list[str | None]:
        reasons = iter(reasons_for(self.model, cases.X[flagged]))
        return [reasons_in_words(next(reasons)) if each else None for each in flagged]

    def summary(self, output: TableWriter) -> FlagSummary:
        """Return what was counted, in numbers and in words."""
        classifier, monitor = self.model.classifier, self.cases.monitor
        work: dict[str, Any] = {}
        if self.model.schema.work is not None:
            work["value"] = self._value
            if classifier.capacity.kind == "effort":
                allowed = float(classifier.capacity.max_effort(monitor.n_items))
                work |= {"effort": float(self._effort), "allowed": allowed, "unit": self.model.unit}
        return FlagSummary(
            monitor.n_items,
            self._n["flagged"],
            classifier.capacity_fraction_,
            classifier.guarantee,
            [*output.notes, *self._notes()],
            monitor.findings(),
            **work,
        )

    def _notes(self) -> list[str]:
        again = "which is flagged as well. In a list of shortlist select, each id takes one place."
        notes = [*self.cases.notes, *self._flagged_ids.notes(self.cases.id, again)]
        if self.act is not None:
            notes.append(
                f"{counted(self._n['act'], 'case')} to act on at once, of which at least "
                f"{stated_percent(self.act)} are rare with "
                f"{stated_percent(self.model.classifier.confidence)} confidence, and "
                f"{self._n['review']:,} to review within the capacity."
            )
        if self._n["joined"]:
            notes.append(
                f"{counted(self._n['joined'], 'row')} above the threshold joined cases: no slot."
            )
        if self._n["not worth"]:
            notes.append(
                f"Cases above the threshold that do not reach worth={self.worth:.12g} are not "
                f"flagged: {self._n['not worth']:,} here."
            )
        if self._n["too large"]:
            notes.append(
                f"{counted(self._n['too large'], 'case takes', 'cases take')} more than "
                f"{number(self.model.classifier.max_effort, 12)} {self.model.unit}, the most that "
                "the model promises for: not flagged. To allow more, fit with "
                "max_effort=..."
            )
        return notes
