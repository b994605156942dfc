"""From lines to decisions: which controller decides, and read, score, decide, save, answer."""

from __future__ import annotations

import contextlib
import json
import math
import signal
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, BinaryIO

from ..capacity import Capacity
from ..exceptions import CapacityError, TableNote
from ..online import BudgetController, Controller
from ..online.decisions import MOMENT_REFUSED, REASONS, SEEN_BEFORE
from ..tables import ReadOptions, TableModel
from ..tables.monitor import DriftMonitor, Finding
from ..tables.schema import TableRows
from ._lines import LineReader, read_batches
from ._models import Item, LoadedModel, expected_arrivals
from ._replica import NOT_WORTH, Arrival, drawn_of, reason_of
from .store import Entry
from .stream_file import DurableController

__all__ = [
    "StreamSettings",
    "StreamSummary",
    "run_stream",
]

_TOGETHER = 1_024  # lines that are decided in one transaction, if so many wait
_DAY = 86_400.0
_ENOUGH = 200  # lines that are compared with the model card
_UNITS = "Moments are seconds since 1970 or ISO 8601; milliseconds must be divided by 1,000."


# --- which controller decides --------------------------------------------------------------------


@dataclass(frozen=True)
class StreamSettings:
    """How a stream is decided.

    A number of flags or an amount of work, per period or per number of lines, gets a budget, which
    no period exceeds. A share of all lines gets a tracker.

    Attributes
    ----------
    capacity : Capacity or None
        None takes the capacity of the model.
    period : float, str or None
        The period of a count without `per`: in seconds, or of a calendar, such as
        ``"day Europe/Berlin"``.
    expected_arrivals : int or None
        Lines in a period, as a first estimate. None derives it from the count and the model's own
        flag rate.
    worth : float or None
        The least expected value per unit of effort for which a line is flagged.
    probe, probe_key : float, str or None
        For a budget: the share of the flags that is drawn below the threshold, and the key of the
        draw. None makes up a secret key, which the state keeps.
    entity : dict or None
        The field with the entity of a line, as `entity`, and `window`, `cooldown` and `rise` as for
        :class:`~shortlist.online.EntityCases`.
    """

    capacity: Capacity | None = None
    period: float | str | None = None
    expected_arrivals: int | None = None
    worth: float | None = None
    probe: float = 0
    probe_key: str | None = None
    entity: dict[str, Any] | None = None

    def controller(self, model: TableModel) -> Controller:
        """Return a new controller that starts from the calibration scores of a model."""
        capacity, options = (
            self._capacity_of(model),
            dict[str, Any](remember=1),
        )  # the log knows ids
        if self.period is not None:
            options["period"], options["expected_arrivals"] = self.period, self.expected_arrivals
            if self.expected_arrivals is None:
                of_work = capacity.kind == "effort"
                amount = float(capacity.value)
                options["expected_arrivals"] = expected_arrivals(model, amount, of_work=of_work)
        if self.probe:
            options.update(probe=self.probe, probe_key=self.probe_key)
        if capacity.kind == "count" and capacity.per is not None:
            calibration = model.classifier.calibration_scores_
            return BudgetController(capacity, calibration_scores=calibration, **options)
        return model.classifier.controller(capacity, **options)

    def _capacity_of(self, model: TableModel) -> Capacity:
        """Return the capacity, which must go with the period and the probes."""
        capacity = model.classifier.capacity if self.capacity is None else self.capacity
        is_number = capacity.kind in ("count", "effort") and capacity.per is None
        if is_number != (self.period is not None):
            raise CapacityError(
                f"A number of flags and a period belong together; got {capacity!r} and "
                f"period={self.period!r}. Fifty flags a day are Capacity.count(50) with "
                "period=86_400 (--count 50 --period day); a share has no period."
            )
        if self.probe and not is_number and capacity.kind != "count":
            raise CapacityError(
                f"Probes need a number of flags, and {capacity!r} is a share, which keeps none for "
                "them. Give a number, as in --count 50 --period day --probe 0.1."
            )
        return capacity

    def to_json(self, model: TableModel) -> dict[str, Any]:
        """Return what distinguishes this stream from another, as plain JSON."""
        key = None if self.probe_key is None else self.probe_key.encode()
        given = {
            "work": None if model.schema.work is None else model.schema.work.columns,
            "worth": self.worth,
            **(self.entity or {}),
            "probe": float(self.probe) or None,
            # It tells keys apart without giving them away.
            "probe_key": None if key is None else blake2b(key, digest_size=8).hexdigest(),
            # Two ways to score differ in last digits.
            "scorer": "bounded" if model.row_scorer.kind == "bounded" else None,
        }
        return {
            "capacity": self._capacity_of(model).to_json(),
            "period": self.period,
            **{name: value for name, value in given.items() if value is not None},
        }


# --- from lines to decisions ----------------------------------------------------------------------


@dataclass(frozen=True)
class StreamSummary:
    """How many lines were read, flagged, repeated, invalid, and not worth a slot."""

    n_lines: int = 0
    n_flagged: int = 0
    n_repeated: int = 0
    n_errors: int = 0
    n_not_worth: int = 0


def run_stream(
    model: TableModel,
    durable: DurableController,
    source: int,
    out: BinaryIO,
    *,
    id_field: str | None = None,
    time_field: str = "at",
    entity_field: str | None = None,
    batch: int = _TOGETHER,
    reading: ReadOptions | None = None,
    clock: Callable[[], float] = time.time,
    on_finding: Callable[[Finding], None] | None = None,
) -> StreamSummary:
    """Answer JSON lines until the input ends. Invalid lines are reported, counted and skipped.

    The first 200 lines, or all of fewer, are compared with the model card, as `flag` compares a
    table: amounts may come in another unit, or a column may be empty.

    With a period, a line is also invalid if its moment lies far ahead (``farthest_jump`` of the
    controller): of both the clock and the lines before, or of the lines before only, until five
    lines in a row agree. A moment in milliseconds therefore never moves the clock.

    Parameters
    ----------
    model : TableModel
        Scores the lines.
    durable : DurableController
        Decides; it must be open, in a ``with`` block.
    source : int
        File descriptor to read from.
    out : binary file
        Receives one JSON line per line read, in the same order. Blank lines are skipped.
    id_field, time_field, entity_field : str, str, str
        Fields with the id (None means the id column of the model, or "id"), the moment and the
        entity of a line.
    batch : int, default=1024
        The largest number of lines that are decided and saved together. If fewer are waiting, they
        are not held back.
    reading : ReadOptions, default=None
        What to know about the values in lines; `None` reads them as the table of the fit.
    clock : callable, default=time.time
        Returns the moment of lines without one, if the controller needs it.
    on_finding : callable, default=None
        Called with what does not fit the model card in the first 200 lines; `None` warns.

    Returns
    -------
    StreamSummary
    """
    loaded = LoadedModel(0, model, reading)
    reader = LineReader(loaded, id_field=id_field, time_field=time_field, entity=entity_field)
    monitor, tell = DriftMonitor(model), on_finding or _warn
    tally: Counter[str] = Counter()
    n_read = 0
    for lines in read_batches(source, most=batch):
        with _uninterrupted():
            now = clock()
            items = [
                reader.read(n_read + place, line, now)
                for place, line in enumerate(lines, 1)
                if line.strip()
            ]
            n_read += len(lines)
            items = loaded.scored(_checked(items, durable.controller, now))
            answers = _answer(durable, items)
            out.write(b"".join([json.dumps(answer).encode() + b"\n" for answer in answers]))
            out.flush()
            tally.update(answer.get("reason", "error") for answer in answers)
            tally["flag"] += sum(answer.get("flag", False) for answer in answers)
            tally["lines"] += len(answers)
        if monitor.n_items < _ENOUGH:
            if valid := [item for item in items if item.error is None]:
                monitor.add(TableRows(loaded.frame(valid)))
            if monitor.n_items >= _ENOUGH:
                _tell_findings(monitor, tell)
    if monitor.n_items < _ENOUGH:
        _tell_findings(monitor, tell)
    for note in reader.notes() if tally["lines"] > tally["error"] else ():
        warnings.warn(note, TableNote, stacklevel=2)
    counted = ("lines", "flag", REASONS[SEEN_BEFORE], "error", reason_of(NOT_WORTH))
    return StreamSummary(*(tally[name] for name in counted))


def _tell_findings(monitor: DriftMonitor, tell: Callable[[Finding], None]) -> None:
    for finding in monitor.findings():
        tell(finding)


def _warn(finding: Finding) -> None:
    warnings.warn(finding.message, TableNote, stacklevel=5)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C and termination until every decision made has been written out."""
    delayed = {signal.SIGINT, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, delayed)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _checked(items: list[Item], controller: Controller, now: float) -> list[Item]:
    """Mark items as invalid whose moment lies far ahead."""
    latest, farthest = controller.now, controller.farthest_jump
    checked = []
    for item in items:
        if item.error is None and item.at is not None and controller.is_timed:
            at = item.at
            if at - max(latest, now) > farthest:  # of both the clock and the lines before
                ahead = (at - now) / _DAY
                error = f"The moment {at:.0f} lies {ahead:,.0f} days in the future. {_UNITS}"
                item = item._replace(error=error)
            elif latest == -math.inf or at - latest <= farthest:
                latest = max(latest, at)
        checked.append(item)
    return checked


def _answer(durable: DurableController, items: list[Item]) -> list[dict[str, Any]]:
    """Decide about the valid items, and return the answers to all."""
    arrivals = [
        Arrival(item.score, item.id, item.at or 0.0, item.effort, entity=item.entity)
        for item in items
        if item.error is None
    ]
    decided = iter(durable.decide(arrivals))
    return [
        _invalid(item, item.error)
        if item.error is not None
        else _decision(item, *next(decided), durable.controller)
        for item in items
    ]


def _invalid(item: Item, error: str) -> dict[str, Any]:
    return {"line": item.line, "id": item.shown, "error": error}


def _decision(item: Item, entry: Entry, repeated: bool, controller: Controller) -> dict[str, Any]:
    """Return the answer to a line; the last fields only with probes, and with a period."""
    at = item.at or 0.0
    if entry.code == MOMENT_REFUSED:
        days = f"more than {controller.farthest_jump / _DAY:,.0f} days after the lines before"
        again = "The clock follows once several lines in a row agree."
        return _invalid(item, f"The moment {at:.0f} lies {days}. {_UNITS} {again}")
    assert entry.threshold is not None
    assert entry.code is not None
    is_shown = math.isfinite(entry.threshold) and entry.code != NOT_WORTH
    answer = {
        "line": item.line,
        "id": item.shown,
        "score": item.score,
        "flag": entry.slot is not None,
        "threshold": entry.threshold if is_shown else None,
        "reason": REASONS[SEEN_BEFORE] if repeated else reason_of(entry.code),
    }
    if controller.has_probes:
        answer["selected_by"], answer["inclusion"] = drawn_of(entry)
    if controller.is_timed:
        # A line that is not worth a slot moves no clock; the log has it at the latest moment.
        counted = max(at, entry.at) if entry.code == NOT_WORTH else entry.at
        answer["at"] = None if repeated else counted
    return answer
