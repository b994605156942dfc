"""From lines to decisions: read, score, decide, save, answer."""

from __future__ import annotations

import contextlib
import json
import math
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from .._core.arrays import Floats
from .._core.work import reaches
from ..exceptions import TableNote
from ..online import Controller
from ..online.decisions import MOMENT_REFUSED, REASONS, SEEN_BEFORE, DecisionBatch
from ..tables import ReadOptions, TableModel
from ..tables.monitor import Finding
from ._durable import DurableController
from ._first_lines import FirstLines
from ._lines import Item, LineReader, read_batches
from ._scores import ItemScorer

__all__ = ["StreamSummary", "run_stream"]

_DAY = 86_400.0
_UNITS = "Moments are seconds since 1970 or ISO 8601; milliseconds must be divided by 1,000."


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
    batch: int = 1_024,
    reading: ReadOptions | None = None,
    scorer: str = "auto",
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
    scorer : {"auto", "model"}, default="auto"
        How lines are scored: by compiled functions where that is possible, or by the model itself,
        which takes milliseconds for a line. See :class:`ItemScorer`.
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
    scores = ItemScorer(model, reader.parser, scorer=scorer).scores
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
            items, answers, counts = _answer(scores, durable, items, clock, worth)
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
    at, before = None, durable.controller.now
    if durable.controller.is_timed:
        at = np.array([now if item.at is None else item.at for item in valid])
    efforts = [item.effort for item in valid] if durable.controller.counts_work else None
    decided = durable.decide(scores, at=at, ids=[item.id for item in valid], efforts=efforts)
    counted = _counted_at(decided, at, before)
    finite = np.isfinite(decided.thresholds)
    drawn = _drawn_columns(decided) if durable.controller.has_probes else {}
    return [
        _invalid(item, _describe_jump(at[place], durable.controller))
        if at is not None and decided.codes[place] == MOMENT_REFUSED
        else {
            "line": item.line,
            "id": item.shown,
            "score": float(scores[place]),
            "flag": bool(decided.flagged[place]),
            "threshold": float(decided.thresholds[place]) if finite[place] else None,
            "reason": REASONS[int(decided.codes[place])],
            **{name: column[place] for name, column in drawn.items()},
            **({} if at is None else {"at": counted[place]}),
        }
        for place, item in enumerate(valid)
    ]


def _drawn_columns(decided: DecisionBatch) -> dict[str, list[Any]]:
    """Return what an estimate of what is missed needs to know about each line."""
    return {
        "selected_by": decided.selected_by.tolist(),
        "inclusion": decided.probabilities.tolist(),
    }


def _describe_jump(at: float, controller: Controller) -> str:
    return (
        f"The moment {at:.0f} lies more than {controller.farthest_jump / _DAY:,.0f} days after "
        f"the lines before. {_UNITS} The clock follows once several lines in a row agree."
    )


def _counted_at(decided: DecisionBatch, at: Floats | None, before: float) -> list[float | None]:
    """Return the moment at which each line counts: a late line counts as of the latest before."""
    counted: list[float | None] = [None] * decided.flagged.size
    if at is not None:
        latest = before
        for place, (code, moment) in enumerate(zip(decided.codes, at.tolist(), strict=True)):
            if code not in (SEEN_BEFORE, MOMENT_REFUSED):
                latest = counted[place] = max(latest, moment)
    return counted


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
