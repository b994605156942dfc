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
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, BinaryIO

from .._core.validation import check_option
from ..capacity import Capacity
from ..exceptions import CapacityError, StateFileError, TableNote
from ..online import BudgetController, Controller, QuantileTracker
from ..online.decisions import MOMENT_REFUSED, REASONS, SEEN_BEFORE
from ..tables import ReadOptions, TableModel, WorkColumns
from ..tables.monitor import Finding
from ._lines import FirstLines, LineReader, read_batches
from ._models import Item, LoadedModel, expected_arrivals
from ._replica import NOT_WORTH, drawn_of, reason_of
from .durable import Decided, DurableController

__all__ = [
    "CONTROLLERS",
    "StreamSettings",
    "StreamSummary",
    "adopt",
    "make_controller",
    "run_stream",
    "scorer_identity",
]

_TOGETHER = 1_024  # lines that are decided in one transaction, if so many wait
_DAY = 86_400.0
_UNITS = "Moments are seconds since 1970 or ISO 8601; milliseconds must be divided by 1,000."
_KINDS: dict[str, type[Controller]] = {
    "tracker": QuantileTracker,
    "budget": BudgetController,
}
#: Values of `--controller`; "auto" is a budget for a number per period, otherwise a tracker.
CONTROLLERS = ("auto", *_KINDS)


# --- which controller decides --------------------------------------------------------------------


@dataclass(frozen=True)
class StreamSettings:
    """How a stream is decided.

    Attributes
    ----------
    controller : str
        One of :data:`CONTROLLERS`.
    capacity : Capacity or None
        None takes the capacity of the model.
    period : float, str or None
        The period of a count without `per`: in seconds, or of a calendar, such as
        ``"day Europe/Berlin"``.
    expected_arrivals : int or None
        Lines in a period, as a first estimate. None derives it from the count and the model's own
        flag rate.
    starts_at : float
        A moment at which a period starts.
    work : WorkColumns or None
        The columns with values and efforts, if the model weighs them.
    worth : float or None
        The least expected value per unit of effort for which a line is flagged.
    probe, probe_key : float, str or None
        For the controller "budget": the share of the flags that is drawn below the threshold, and
        the key of the draw. None makes up a secret key, which the state keeps.
    """

    controller: str = "auto"
    capacity: Capacity | None = None
    period: float | str | None = None
    expected_arrivals: int | None = None
    starts_at: float = 0.0
    work: WorkColumns | None = None
    worth: float | None = None
    probe: float = 0
    probe_key: str | None = None

    def resolved(self, model: TableModel) -> StreamSettings:
        """Return the settings with everything filled in that the model knows."""
        check_option("controller", self.controller, CONTROLLERS)
        capacity = model.classifier.capacity if self.capacity is None else self.capacity
        self._check(capacity)
        name, expected = self.controller, self.expected_arrivals
        if name == "auto":
            name = "tracker" if self.period is None else "budget"
        if self.probe and name != "budget":
            raise CapacityError(
                f"Probes need a number of flags per period, and the controller {name!r} keeps none "
                "for them. Use the controller 'budget', as in --count 50 --period day --probe 0.1."
            )
        if self.period is not None and expected is None:
            of_work = capacity.kind == "effort"
            expected = expected_arrivals(model, float(capacity.value), of_work=of_work)
        return replace(self, controller=name, capacity=capacity, expected_arrivals=expected)

    def _check(self, capacity: Capacity) -> None:
        per_period = capacity.kind in ("count", "effort") and capacity.per is None
        if per_period != (self.period is not None):
            raise CapacityError(
                f"A number of flags and a period belong together; got {capacity!r} and "
                f"period={self.period!r}. Fifty flags a day are Capacity.count(50) with "
                "period=86_400 (--count 50 --period day); a share has no period."
            )
        of_work = ("auto", "budget" if per_period else "tracker")
        if capacity.kind == "effort" and self.controller not in of_work:
            raise CapacityError(
                f"The controller {self.controller!r} does not count work, which {capacity!r} is. "
                f"Use the controller {of_work[1]!r}, or leave it out."
            )
        if per_period and self.controller == "tracker":
            raise CapacityError(
                f"The controller 'tracker' keeps a share of all cases, and cannot count "
                f"{capacity.value} flags in a period, as --count and --period ask. Use the "
                "controller 'budget', or give a share (--fraction) and no period."
            )

    def to_json(self) -> dict[str, Any]:
        """Return what distinguishes this stream from another, as plain JSON."""
        key = None if self.probe_key is None else self.probe_key.encode()
        given = {
            "work": None if self.work is None else self.work.columns,
            "worth": self.worth,
            "probe": float(self.probe) or None,
            # It tells keys apart without giving them away.
            "probe_key": None if key is None else blake2b(key, digest_size=8).hexdigest(),
        }
        return {
            "controller": self.controller,
            "capacity": None if self.capacity is None else self.capacity.to_json(),
            "period": self.period,
            "starts_at": self.starts_at,
            **{name: value for name, value in given.items() if value is not None},
        }


def make_controller(model: TableModel, settings: StreamSettings) -> Controller:
    """Return a new controller that starts from the calibration scores of a model."""
    settings = settings.resolved(model)
    classifier, capacity = model.classifier, settings.capacity
    assert capacity is not None  # `resolved` has filled it in
    timed = {"period": settings.period, "expected_arrivals": settings.expected_arrivals}
    drawn = {"probe": settings.probe or None, "probe_key": settings.probe_key}
    share = {"prevalence": classifier.reference_prevalence_}
    known: dict[str, dict[str, Any]] = {
        "tracker": share,
        "budget": {**timed, "starts_at": settings.starts_at, **drawn},
    }
    options = {name: v for name, v in known[settings.controller].items() if v is not None}
    options["remember"] = 1  # the state knows all ids
    if capacity.kind == "effort":
        options.pop("prevalence", None)
        return classifier.controller(capacity, **options)
    kind: Any = _KINDS[settings.controller]
    return kind(capacity, calibration_scores=classifier.calibration_scores_, **options)


def adopt(
    controller: Controller, model: TableModel, settings: StreamSettings, old: dict[str, Any]
) -> None:
    """Move a controller from another model or capacity to a new one.

    What has been used up stays used up, and the threshold moves to the scores of the new model. The
    controller, its period and its options must be the same; `old` is what
    :meth:`StreamSettings.to_json` returned for the controller so far.
    """
    new = settings.to_json()
    mine = {"model", "capacity", "scorer"}
    fixed = [key for key in {**old, **new} if key not in mine and old.get(key) != new.get(key)]
    if fixed:
        raise StateFileError(
            f"--adopt accepts another model or capacity, but not another {', '.join(fixed)}. "
            "Start the next period with another --state file."
        )
    controller.swap_model(model.classifier.calibration_scores_)
    if old.get("capacity") != new["capacity"] and settings.capacity is not None:
        controller.set_capacity(settings.capacity)


def scorer_identity(model: TableModel) -> dict[str, Any]:
    """Return what the state remembers about the scores of lines: two ways differ in last digits."""
    return {"scorer": "bounded"} if model.row_scorer.kind == "bounded" else {}


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
    id_field, time_field : str, str
        Fields with the id (None means the id column of the model, or "id") and the moment of a
        line.
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
    reader = LineReader(loaded, id_field=id_field, time_field=time_field)
    first = FirstLines(loaded, on_finding or _warn)
    tally: Counter[str] = Counter()
    n_read = 0
    for lines in read_batches(source, most=batch):
        with _uninterrupted():
            items = [
                reader.read(n_read + place, line)
                for place, line in enumerate(lines, 1)
                if line.strip()
            ]
            n_read, now = n_read + len(lines), clock()
            items = loaded.scored(_checked(items, durable.controller, now))
            answers = _answer(durable, items, now)
            out.write(b"".join([json.dumps(answer).encode() + b"\n" for answer in answers]))
            out.flush()
            tally.update(answer.get("reason", "error") for answer in answers)
            tally["flag"] += sum(answer.get("flag", False) for answer in answers)
            tally["lines"] += len(answers)
        first.add(items)
    first.compare()
    for note in reader.notes() if tally["lines"] > tally["error"] else ():
        warnings.warn(note, TableNote, stacklevel=2)
    counted = ("lines", "flag", REASONS[SEEN_BEFORE], "error", reason_of(NOT_WORTH))
    return StreamSummary(*(tally[name] for name in counted))


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
    """Mark items as invalid whose moment lies far ahead, or that take more work than any may."""
    most, latest, farthest = (
        controller.options.get("max_effort"), controller.now, controller.farthest_jump
    )  # fmt: skip
    checked = []
    for item in items:
        if item.error is None and most is not None and (item.effort or 0) > most:
            error = f"It takes {item.effort:g}, more than any case of the fit ({most:g})."
            item = item._replace(error=error)
        if item.error is None and controller.is_timed:
            at = now if item.at is None else item.at
            if at - max(latest, now) > farthest:  # of both the clock and the lines before
                ahead = (at - now) / _DAY
                error = f"The moment {at:.0f} lies {ahead:,.0f} days in the future. {_UNITS}"
                item = item._replace(error=error)
            elif latest == -math.inf or at - latest <= farthest:
                latest = max(latest, at)
        checked.append(item)
    return checked


def _answer(durable: DurableController, items: list[Item], now: float) -> list[dict[str, Any]]:
    """Decide about the valid items, and return the answers to all."""
    valid = [item for item in items if item.error is None]
    decided = iter(
        durable.decide(
            [item.score for item in valid],
            at=[now if item.at is None else item.at for item in valid],
            ids=[item.id for item in valid],
            efforts=[item.effort for item in valid] if durable.controller.counts_work else None,
        )
    )
    return [
        _invalid(item, item.error)
        if item.error is not None
        else _decision(item, now, next(decided), durable.controller)
        for item in items
    ]


def _invalid(item: Item, error: str) -> dict[str, Any]:
    return {"line": item.line, "id": item.shown, "error": error}


def _decision(item: Item, now: float, made: Decided, controller: Controller) -> dict[str, Any]:
    """Return the answer to a line; the last fields only with probes, and with a period."""
    entry, at = made.entry, now if item.at is None else item.at
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
        "flag": made.flag,
        "threshold": entry.threshold if is_shown else None,
        "reason": REASONS[SEEN_BEFORE] if made.repeated else reason_of(entry.code),
    }
    if controller.has_probes:
        answer["selected_by"], answer["inclusion"] = drawn_of(entry)
    if controller.is_timed:
        # A line that is not worth a slot moves no clock; the log has it at the latest moment.
        counted = max(at, entry.at) if entry.code == NOT_WORTH else entry.at
        answer["at"] = None if made.repeated else counted
    return answer
