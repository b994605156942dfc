"""From lines to decisions: read, score, decide, save, answer."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np

from .._core.arrays import Floats
from .._core.ranking import lift
from ..online import REASONS, SEEN_BEFORE, DecisionBatch
from ..tables import TableModel
from ._durable import DurableController
from ._lines import Item, LineReader, read_batches

__all__ = ["StreamSummary", "run_stream"]


@dataclass(frozen=True)
class StreamSummary:
    """How many lines were read, flagged, repeated, and invalid."""

    n_lines: int = 0
    n_flagged: int = 0
    n_repeated: int = 0
    n_errors: int = 0


def run_stream(
    model: TableModel,
    durable: DurableController,
    source: int,
    out: BinaryIO,
    *,
    id_field: str | None = None,
    time_field: str = "at",
    batch: int = 1_024,
    clock: Callable[[], float] = time.time,
) -> StreamSummary:
    """Answer JSON lines until the input ends. Invalid lines are reported, counted and skipped.

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
    clock : callable, default=time.time
        Returns the moment of lines without one, if the controller needs it.

    Returns
    -------
    StreamSummary
    """
    reader = LineReader(model.schema, id_field=id_field, time_field=time_field)
    summary, n_read = StreamSummary(), 0
    for lines in read_batches(source, most=batch):
        with _uninterrupted():
            items = [
                reader.read(n_read + place, line)
                for place, line in enumerate(lines, 1)
                if line.strip()
            ]
            n_read += len(lines)
            answers, counts = _answer(model, durable, reader, items, clock)
            out.write(b"".join(answers))
            out.flush()
            summary = _sum(summary, counts)
    return summary


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
    model: TableModel,
    durable: DurableController,
    reader: LineReader,
    items: list[Item],
    clock: Callable[[], float],
) -> tuple[list[bytes], StreamSummary]:
    items, scores = _score_all(model, reader, items)
    valid = [item for item in items if item.error is None]
    decisions = iter(_decide(durable, scores, valid, clock) if valid else [])
    answers = [
        next(decisions)
        if item.error is None
        else {"line": item.line, "id": item.shown, "error": item.error}
        for item in items
    ]
    counts = StreamSummary(
        len(items),
        sum(answer.get("flag", False) for answer in answers),
        sum(answer.get("reason") == REASONS[SEEN_BEFORE] for answer in answers),
        len(items) - len(valid),
    )
    return [json.dumps(answer).encode() + b"\n" for answer in answers], counts


def _decide(
    durable: DurableController,
    scores: Floats,
    valid: list[Item],
    clock: Callable[[], float],
) -> list[dict[str, Any]]:
    at, before = None, durable.controller.now
    if durable.controller.is_timed:
        now = clock()
        at = np.array([now if item.at is None else item.at for item in valid])
    decided = durable.decide(scores, at=at, ids=[item.id for item in valid])
    counted = _counted_at(decided, at, before)
    finite = np.isfinite(decided.thresholds)
    return [
        {
            "line": item.line,
            "id": item.shown,
            "score": float(scores[place]),
            "flag": bool(decided.flagged[place]),
            "threshold": float(decided.thresholds[place]) if finite[place] else None,
            "reason": REASONS[int(decided.codes[place])],
            **({} if at is None else {"at": counted[place]}),
        }
        for place, item in enumerate(valid)
    ]


def _counted_at(decided: DecisionBatch, at: Floats | None, before: float) -> list[float | None]:
    """Return the moment at which each line counts: a late line counts as of the latest before."""
    counted: list[float | None] = [None] * decided.flagged.size
    if at is not None:
        new = np.flatnonzero(decided.codes != SEEN_BEFORE)
        latest = np.maximum.accumulate(np.maximum(at[new], before))
        for place, moment in zip(new.tolist(), latest.tolist(), strict=True):
            counted[place] = moment
    return counted


def _score_all(
    model: TableModel, reader: LineReader, items: list[Item]
) -> tuple[list[Item], Floats]:
    """Score all valid items together; if that fails, one by one, to find those at fault."""
    valid = [item for item in items if item.error is None]
    try:
        return items, _scores(model, reader, valid)
    except ValueError:
        pass
    checked, scores = [], []
    for item in items:
        if item.error is None:
            try:
                scores.append(_scores(model, reader, [item]))
            except ValueError as error:
                item = replace(item, error=" ".join(str(error).split()))
        checked.append(item)
    return checked, np.concatenate(scores) if scores else np.empty(0)


def _scores(model: TableModel, reader: LineReader, items: list[Item]) -> Floats:
    if not items:
        return np.empty(0)
    scores = np.asarray(model.classifier.score_samples(reader.frame(items)), dtype=np.float64)
    if not np.isfinite(scores).all():
        raise ValueError("The model returned a score that is not a finite number.")
    return np.asarray(lift(scores), dtype=np.float64)


def _sum(before: StreamSummary, more: StreamSummary) -> StreamSummary:
    return StreamSummary(
        *(a + b for a, b in zip(vars(before).values(), vars(more).values(), strict=True))
    )
