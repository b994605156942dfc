"""From lines to decisions: which controller decides, and read, score, decide, save, answer."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from .._core.arrays import Floats
from .._core.validation import check_option
from .._core.work import reaches
from ..capacity import Capacity
from ..exceptions import CapacityError, StateFileError, TableNote
from ..online import (
    BudgetController,
    Controller,
    QuantileTracker,
    TokenBucketController,
)
from ..online.decisions import MOMENT_REFUSED, REASONS, SEEN_BEFORE
from ..tables import ReadOptions, TableModel, WorkColumns
from ..tables.monitor import Finding
from ._lines import FirstLines, Item, LineReader, read_batches
from ._models import expected_arrivals, score_items
from ._replica import drawn_of, reason_of
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
    "bucket": TokenBucketController,
}
#: Values of `--controller`; "auto" is a budget for a number per period, otherwise a tracker.
CONTROLLERS = ("auto", *_KINDS)
# The controller of a budget of work: for a rate, and for a period.
_OF_WORK = {False: "tracker", True: "budget"}
# The options of each controller besides its capacity.
_OPTIONS = {
    "tracker": ("prevalence",),
    "budget": ("period", "expected_arrivals", "starts_at", "probe", "probe_key"),
    "bucket": ("period", "expected_arrivals", "prevalence"),
}


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
        if capacity.kind == "effort" and self.controller not in ("auto", _OF_WORK[per_period]):
            raise CapacityError(
                f"The controller {self.controller!r} does not count work, which {capacity!r} is. "
                f"Use the controller {_OF_WORK[per_period]!r}, or leave it out."
            )
        if per_period and self.controller not in ("auto", "budget", "bucket"):
            raise CapacityError(
                f"The controller {self.controller!r} keeps a share of all cases, and cannot count "
                f"{capacity.value} flags in a period, as --count and --period ask. Use the "
                "controller 'budget', or give a share (--fraction) and no period."
            )

    def to_json(self) -> dict[str, Any]:
        """Return what distinguishes this stream from another, as plain JSON.

        Without probes it says nothing about them, as in states from before there were any.
        """
        drawn = {"probe": float(self.probe), "probe_key": _fingerprint(self.probe_key)}
        return {
            "controller": self.controller,
            "capacity": None if self.capacity is None else self.capacity.to_json(),
            "period": self.period,
            "starts_at": self.starts_at,
            **({} if self.work is None else {"work": self.work.columns}),
            **(drawn if self.probe else {}),
        }


def _fingerprint(key: str | None) -> str | None:
    """Return a text that tells keys apart without giving them away."""
    return None if key is None else hashlib.blake2b(key.encode(), digest_size=8).hexdigest()


def make_controller(model: TableModel, settings: StreamSettings) -> Controller:
    """Return a new controller that starts from the calibration scores of a model."""
    settings = settings.resolved(model)
    known = {
        "period": settings.period,
        "expected_arrivals": settings.expected_arrivals,
        "starts_at": settings.starts_at,
        "prevalence": model.classifier.reference_prevalence_,
        "remember": 1,  # the state knows all ids
        "probe": settings.probe or None,
        "probe_key": settings.probe_key,
    }
    names = (*_OPTIONS[settings.controller], "remember")
    options = {name: known[name] for name in names if known[name] is not None}
    assert settings.capacity is not None  # `resolved` has filled it in
    if settings.capacity.kind == "effort":
        kept = {name: given for name, given in options.items() if name != "prevalence"}
        return model.classifier.controller(settings.capacity, **kept)
    kind: Any = _KINDS[settings.controller]
    return kind(
        settings.capacity, calibration_scores=model.classifier.calibration_scores_, **options
    )


def adopt(
    controller: Controller, model: TableModel, settings: StreamSettings, old: dict[str, Any]
) -> None:
    """Move a controller from another model or capacity to a new one.

    What has been used up stays used up, and the threshold moves to the scores of the new model. The
    controller, its period and its options must be the same.

    Parameters
    ----------
    controller : Controller
        It is changed in place.
    model : TableModel
        The new model.
    settings : StreamSettings
        The new settings.
    old : dict
        The settings of the controller so far, as :meth:`StreamSettings.to_json` returned them.
    """
    new = settings.to_json()
    fixed = [key for key in new if key != "capacity" and old.get(key) != new[key]]
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
    worth: float | None = None,
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
    worth : float, default=None
        The least expected value per unit of effort for which a line is flagged. A line of less
        uses no slot, and the controller does not see it.
    clock : callable, default=time.time
        Returns the moment of lines without one, if the controller needs it.
    on_finding : callable, default=None
        Called with what does not fit the model card in the first 200 lines; `None` warns.

    Returns
    -------
    StreamSummary
    """
    reader = LineReader(model.schema, id_field=id_field, time_field=time_field, reading=reading)
    scores_of = partial(score_items, model, reader.parser)
    first = FirstLines(model, reader.parser, on_finding or _warn)
    summary, n_read = StreamSummary(), 0
    for lines in read_batches(source, most=batch):
        with _uninterrupted():
            items = [
                reader.read(n_read + place, line)
                for place, line in enumerate(lines, 1)
                if line.strip()
            ]
            n_read += len(lines)
            items, answers, counts = _answer(scores_of, durable, items, clock, worth)
            out.write(b"".join(answers))
            out.flush()
            summary = _sum(summary, counts)
        first.add(items)
    first.compare()
    for note in reader.notes() if summary.n_lines > summary.n_errors else ():
        warnings.warn(note, TableNote, stacklevel=2)
    return summary


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


def _answer(
    scores_of: Callable[[list[Item]], Floats],
    durable: DurableController,
    items: list[Item],
    clock: Callable[[], float],
    worth: float | None,
) -> tuple[list[Item], list[bytes], StreamSummary]:
    """Decide about parsed lines; return them with their errors, the answers and their numbers."""
    now = clock()
    items = _without_future(items, durable.controller, now)
    items = _without_too_large(items, durable.controller)
    items, scores = _score_all(scores_of, items)
    enough = np.ones(scores.size, dtype=bool) if worth is None else reaches(scores, worth)
    valid = [item for item in items if item.error is None]
    worthy = [item for item, is_enough in zip(valid, enough, strict=True) if is_enough]
    decisions = iter(_decide(durable, scores[enough], worthy, now) if worthy else [])
    judged = iter(zip(scores.tolist(), enough.tolist(), strict=True))
    answers = [
        _invalid(item, item.error)
        if item.error is not None
        else next(decisions)
        if (known := next(judged))[1]
        else _not_worth(item, known[0])
        for item in items
    ]
    counts = StreamSummary(
        len(items),
        sum(answer.get("flag", False) for answer in answers),
        sum(answer.get("reason") == REASONS[SEEN_BEFORE] for answer in answers),
        sum("error" in answer for answer in answers),
        int(np.count_nonzero(~enough)),
    )
    return items, [json.dumps(answer).encode() + b"\n" for answer in answers], counts


def _invalid(item: Item, error: str) -> dict[str, Any]:
    return {"line": item.line, "id": item.shown, "error": error}


def _not_worth(item: Item, score: float) -> dict[str, Any]:
    known = {"line": item.line, "id": item.shown, "score": score, "flag": False, "threshold": None}
    return {**known, "reason": "not worth a slot"}


def _without_too_large(items: list[Item], controller: Controller) -> list[Item]:
    """Mark items as invalid that take more work than the bound of the controller allows."""
    most = controller.options.get("max_effort")
    if most is None:
        return items
    return [
        item._replace(error=f"It takes {item.effort:g}, more than any case of the fit ({most:g}).")
        if item.error is None and item.effort is not None and item.effort > most
        else item
        for item in items
    ]


def _without_future(items: list[Item], controller: Controller, now: float) -> list[Item]:
    """Mark items as invalid that lie far ahead of both the clock and the lines before."""
    if not controller.is_timed:
        return items
    latest, farthest, checked = controller.now, controller.farthest_jump, []
    for item in items:
        at = now if item.error is not None or item.at is None else item.at
        if at - max(latest, now) > farthest:
            ahead = (at - now) / _DAY
            error = f"The moment {at:.0f} lies {ahead:,.0f} days in the future. {_UNITS}"
            item = item._replace(error=error)
        elif latest == -math.inf or at - latest <= farthest:
            latest = max(latest, at)
        checked.append(item)
    return checked


def _decide(
    durable: DurableController, scores: Floats, valid: list[Item], now: float
) -> list[dict[str, Any]]:
    controller = durable.controller
    at = np.array([now if item.at is None else item.at for item in valid])
    efforts = [item.effort for item in valid] if controller.counts_work else None
    decided = durable.decide(
        scores,
        at=at if controller.is_timed else None,
        ids=[item.id for item in valid],
        efforts=efforts,
    )
    return [
        _invalid(item, _describe_jump(moment, controller))
        if each.entry.code == MOMENT_REFUSED
        else _decision(item, score, each, controller)
        for item, score, each, moment in zip(
            valid, scores.tolist(), decided, at.tolist(), strict=True
        )
    ]


def _decision(item: Item, score: float, made: Decided, controller: Controller) -> dict[str, Any]:
    """Return the answer to a line; the last fields only with probes, and with a period."""
    entry = made.entry
    assert entry.threshold is not None
    assert entry.code is not None
    answer = {
        "line": item.line,
        "id": item.shown,
        "score": score,
        "flag": made.flag,
        "threshold": entry.threshold if math.isfinite(entry.threshold) else None,
        "reason": REASONS[SEEN_BEFORE] if made.repeated else reason_of(entry.code),
    }
    if controller.has_probes:
        answer["selected_by"], answer["inclusion"] = drawn_of(entry)
    if controller.is_timed:
        answer["at"] = None if made.repeated else entry.at
    return answer


def _describe_jump(at: float, controller: Controller) -> str:
    return (
        f"The moment {at:.0f} lies more than {controller.farthest_jump / _DAY:,.0f} days after "
        f"the lines before. {_UNITS} The clock follows once several lines in a row agree."
    )


def _score_all(
    scores_of: Callable[[list[Item]], Floats], items: list[Item]
) -> tuple[list[Item], Floats]:
    """Score all valid items together; if that fails, one by one, to find those at fault."""
    valid = [item for item in items if item.error is None]
    try:
        return items, scores_of(valid)
    except ValueError:
        pass
    checked, scores = [], []
    for item in items:
        if item.error is None:
            try:
                scores.append(scores_of([item]))
            except ValueError as error:
                item = item._replace(error=" ".join(str(error).split()))
        checked.append(item)
    return checked, np.concatenate(scores) if scores else np.empty(0)


def _sum(before: StreamSummary, more: StreamSummary) -> StreamSummary:
    return StreamSummary(
        *(a + b for a, b in zip(vars(before).values(), vars(more).values(), strict=True))
    )
