"""From lines to decisions: which controller decides, and read, score, decide, save, answer."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import select
import signal
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from .._core.files import flattened
from ..capacity import Capacity
from ..exceptions import CapacityError, TableNote
from ..online import BudgetController, Controller
from ..online.decisions import MOMENT_REFUSED, REASONS, SEEN_BEFORE, parse_moment, to_seconds
from ..tables import ReadOptions, TableModel
from ..tables.monitor import DriftMonitor, Finding
from ..tables.schema import TableRows
from ._models import Arrival, LoadedModel, expected_arrivals
from ._replica import NOT_WORTH, drawn_of, reason_of
from .store import Entry
from .stream_file import DurableController

_TOGETHER = 1_024  # lines that are decided in one transaction, if so many wait
_DAY = 86_400.0
_ENOUGH = 200  # lines that are compared with the model card
_UNITS = "Moments are seconds since 1970 or ISO 8601; milliseconds must be divided by 1,000."
LONGEST_LINE = 1 << 20
#: Stands for a line that was longer than that and was skipped.
TOO_LONG = b"\0too long"
_CHUNK = 1 << 16
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")  # what no database takes, or half a pair
_NO_IDS = "a case that comes again is decided again. Name the field with the ids with --id"
_NO_MOMENTS = "the moment of a line is now. Name the field with the moments with --time"


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
    worth: float | None = None
    probe: float = 0
    probe_key: str | None = None
    entity: dict[str, Any] | None = None

    def controller(self, model: TableModel) -> Controller:
        """Return a new controller that starts from the calibration scores of a model."""
        capacity = self._capacity_of(model)
        options: dict[str, Any] = {"remember": 1}  # the log knows ids
        if self.period is not None:
            of_work, amount = capacity.kind == "effort", float(capacity.value)
            options["period"] = self.period
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


# --- lines of JSON --------------------------------------------------------------------------------


def read_batches(descriptor: int, *, most: int) -> Iterator[list[bytes]]:
    """Yield lists of at most `most` lines.

    A list is yielded as soon as no more input is waiting. Therefore a slow stream is answered line
    by line, and a fast one in batches.
    """
    lines: list[bytes] = []
    rest, skipping, ended = b"", False, False
    while not ended:
        chunk = os.read(descriptor, _CHUNK)
        ended = not chunk
        *complete, rest = (rest + chunk + (b"\n" if ended and rest else b"")).split(b"\n")
        for line in complete:
            lines.append(TOO_LONG if skipping else line)
            skipping = False
        if len(rest) > LONGEST_LINE:
            rest, skipping = b"", True
        while len(lines) >= most or (lines and (ended or not _is_waiting(descriptor))):
            yield lines[:most]
            del lines[:most]
    if skipping:
        yield [TOO_LONG]


def _is_waiting(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


class LineReader:
    """Parses lines for a model: its columns by name, and the fields with the id and the moment."""

    def __init__(
        self, model: LoadedModel, *, id_field: str | None, time_field: str, entity: str | None
    ) -> None:
        self._model, self._time_field, self._entity = model, time_field, entity
        self._id_field = next(iter(model.id_fields), None) if id_field is None else id_field
        self._expected = {}
        if self._id_field is not None and self._id_field in (id_field, model.table.schema.id):
            self._expected[self._id_field] = _NO_IDS
        if time_field != "at":
            self._expected[time_field] = _NO_MOMENTS

    def read(self, number: int, line: bytes, now: float = 0.0) -> Arrival:
        """Parse a line, which counts as of now without a moment; or say what is wrong with it."""
        shown = None
        try:
            fields = _object(line)
            if self._expected:
                self._expected = {f: why for f, why in self._expected.items() if f not in fields}
            given = fields.get(self._id_field) if self._id_field is not None else None
            given = getattr(line, "place", None) if given is None else given
            shown = given if isinstance(given, (str, int)) else None
            id, at = _id(given, self._id_field), fields.get(self._time_field, now)
            at = parse_moment(at) if isinstance(at, str) else to_seconds(now if at is None else at)
            entity = _id(fields.get(self._entity), self._entity) if self._entity else None
            if self._entity and entity is None:
                raise ValueError(f"{self._entity!r} is missing: whose event is it?")
            item = self._model.read(fields)
            item.case_id, item.at, item.entity = id, at, entity
        except (TypeError, ValueError) as error:
            item = Arrival(error=" ".join(str(error).split()))
        item.line, item.shown = number, shown
        return item

    def notes(self) -> list[str]:
        """Return what it means that no line so far had the field with the id or the moment."""
        return [f"No line has the field {field!r}: {why}" for field, why in self._expected.items()]


def _object(line: bytes) -> dict[str, Any]:
    if line == TOO_LONG:
        raise ValueError(f"The line is longer than {LONGEST_LINE:,} bytes.")
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("The line is not JSON. Write one object per line.") from None
    if not isinstance(fields, dict):
        raise ValueError("The line must be a JSON object with the columns of the model.")
    return flattened(fields)


def _id(value: Any, field: str | None) -> str | None:
    if isinstance(value, str) and not value.strip():
        raise ValueError(f"{field!r} is empty. Leave it out, or write null, if a case has no id.")
    if isinstance(value, str) and _NOT_TEXT.search(value):
        raise ValueError(f"{field!r} has characters that no text may have.")
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # 1 and "1" are the same id, as in tables
    raise ValueError(f"{field!r} must be a string or a whole number; got {value!r:.80}.")


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
    source: Any,
    out: Any,
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
    source : int or Kafka
        File descriptor to read from, or a topic.
    out : binary file or Kafka
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
    monitor, tally, n_read = DriftMonitor(model), Counter[str](), 0
    is_topic = not isinstance(source, int)
    for lines in source.batches(batch) if is_topic else read_batches(source, most=batch):
        with _uninterrupted():
            now, numbered = clock(), enumerate(lines, n_read + 1)
            items = [reader.read(number, line, now) for number, line in numbered if line.strip()]
            n_read += len(lines)
            _check_moments(items, durable.controller, now)
            answers = list(
                _answer(durable, loaded.scored(items), source.position if is_topic else {})
            )
            out.write(b"".join([json.dumps(answer).encode() + b"\n" for answer in answers]))
            out.flush()
            tally.update(answer.get("reason", "error") for answer in answers)
            tally["flag"] += sum(answer.get("flag", False) for answer in answers)
            tally["lines"] += len(answers)
        valid = [item for item in items if item.error is None]
        if valid and monitor.n_items < _ENOUGH:
            monitor.add(TableRows(loaded.frame(valid)))
            if monitor.n_items >= _ENOUGH:
                _tell_findings(monitor, on_finding)
    if monitor.n_items < _ENOUGH:
        _tell_findings(monitor, on_finding)
    for note in reader.notes() if tally["lines"] > tally["error"] else ():
        warnings.warn(note, TableNote, stacklevel=2)
    counted = ("lines", "flag", REASONS[SEEN_BEFORE], "error", reason_of(NOT_WORTH))
    return StreamSummary(*(tally[name] for name in counted))


def _tell_findings(monitor: DriftMonitor, tell: Callable[[Finding], None] | None) -> None:
    for finding in monitor.findings():
        if tell is None:
            warnings.warn(finding.message, TableNote, stacklevel=3)
        else:
            tell(finding)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C and termination until every decision made has been written out."""
    delayed = {signal.SIGINT, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, delayed)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _check_moments(items: list[Arrival], controller: Controller, now: float) -> None:
    """Mark items as invalid whose moment lies far ahead."""
    latest, farthest = controller.now, controller.farthest_jump
    for item in items if controller.is_timed else ():
        if item.error is None:
            if item.at - max(latest, now) > farthest:  # of both the clock and the lines before
                days = f"{(item.at - now) / _DAY:,.0f} days in the future"
                item.error = f"The moment {item.at:.0f} lies {days}. {_UNITS}"
            elif latest == -math.inf or item.at - latest <= farthest:
                latest = max(latest, item.at)


def _answer(
    durable: DurableController, items: list[Arrival], answered: dict[str, int]
) -> Iterator[dict[str, Any]]:
    """Decide about the valid items, and yield the answers to all."""
    decided = iter(durable.decide([item for item in items if item.error is None], answered))
    for item in items:
        answer: dict[str, Any] = {"line": item.line, "id": item.shown}
        if item.error is None:
            answer |= _decision(item, *next(decided), durable.controller)
        yield answer if item.error is None else {**answer, "error": item.error}


def _decision(
    item: Arrival, entry: Entry, repeated: bool, controller: Controller
) -> dict[str, Any]:
    """Return what was decided; the last fields only with probes, and with a period."""
    if entry.code == MOMENT_REFUSED:
        days = f"more than {controller.farthest_jump / _DAY:,.0f} days after the lines before"
        again = "The clock follows once several lines in a row agree."
        item.error = f"The moment {item.at:.0f} lies {days}. {_UNITS} {again}"
        return {}
    assert entry.threshold is not None
    assert entry.code is not None
    is_shown = math.isfinite(entry.threshold) and entry.code != NOT_WORTH
    answer = {
        "score": item.score,
        "flag": entry.slot is not None,
        "threshold": entry.threshold if is_shown else None,
        "reason": REASONS[SEEN_BEFORE] if repeated else reason_of(entry.code),
    }
    if controller.has_probes:
        answer["selected_by"], answer["inclusion"] = drawn_of(entry)
    if controller.is_timed:
        # A line that is not worth a slot moves no clock; the log has it at the latest moment.
        counted = max(item.at, entry.at) if entry.code == NOT_WORTH else entry.at
        answer["at"] = None if repeated else counted
    return answer
