"""One group: the next entries of the log, decided by a controller and counted by the database."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np

from .._core import probing
from ..online.decisions import PROBE, PROBE_WITHOUT_SLOT, is_flag
from ._replica import REFUSED_BY_COUNT, Items, Replica, reason_of
from ._waiting import Answer, Change, Failure, Ticket, Waiting
from .settings import allowed_by, units_of
from .store import DECISION, OBSERVATION, Entry, Group, QueueRow

__all__ = ["GroupMaker", "answer_all", "answer_of", "sort_out"]

_SNAPSHOT_EVERY = 5_000


class GroupMaker:
    """Builds a group: the next entries of the log, and the row of the queue after them."""

    def __init__(self, fork: Replica, row: QueueRow, total: Any, at: float) -> None:
        self._fork, self._row, self._total, self._at = fork, row, total, at
        self._period = fork.settings.periods.number(at)
        self._entries: list[Entry] = []
        self._places: list[int | None] = []  # where the changes are among the entries
        self._total_slots: list[tuple[int, int]] = []
        same = row.period == self._period
        self._used, self._seen = (row.used, row.seen) if same else (0, 0)
        self._spent = row.spent if same else 0
        self._total_used = total[2] if total is not None and total[1] == self._period else 0
        self._has_cases = False

    def add_change(self, change: Change) -> None:
        """Append an event, and make its change."""
        if change.kind == OBSERVATION and change.body["model"] != self._fork.model:
            self._places.append(None)  # scored by a model that is no longer in force
            return
        self._places.append(len(self._entries))
        # A change cannot begin in the past: what was decided was decided.
        body = {**change.body, "from": max(self._at, change.body.get("from") or self._at)}
        event = Entry(
            self._row.id, self._next(), change.kind, self._fork.build, self._at, self._period,
            model=self._fork.model, key_id=change.key_id, body=json.dumps(body),
        )  # fmt: skip
        self._fork.apply(event)
        self._entries.append(event)

    def add_cases(self, fresh: list[Waiting]) -> None:
        """Decide about new cases; the counts of the database have the last word."""
        self._has_cases = True
        fork, items = self._fork, self._items(fresh)
        decided = fork.decide(items)
        allowed = allowed_by(fork.controller.capacity)
        inclusions: list[Any] = decided.inclusions or [None] * len(fresh)
        columns = decided.codes, decided.thresholds, inclusions
        for case, code, threshold, inclusion in zip(fresh, *columns, strict=True):
            slot, work = None, None if items.efforts is None else units_of(case.effort or 0.0)
            if is_flag(code):
                slot = self._slot(allowed, work)
                code = code if slot is not None else REFUSED_BY_COUNT
            self._entries.append(
                Entry(
                    self._row.id,
                    self._next(),
                    DECISION,
                    fork.build,
                    self._at,
                    self._period,
                    case.case_id,
                    case.digest,
                    case.score,
                    threshold,
                    code,
                    slot,
                    fork.model,
                    case.key_id,
                    None if slot is None else _as_text(case.fields),
                    case.effort,
                    work,
                    None if work is None or slot is None else self._spent,
                    inclusion,
                )
            )
        self._seen += len(fresh)

    def _items(self, fresh: list[Waiting]) -> Items:
        of_work = self._fork.settings.of_work
        return Items(
            np.array([case.score for case in fresh]),
            [case.case_id for case in fresh],
            np.full(len(fresh), self._at),
            np.array([case.effort for case in fresh]) if of_work else None,
        )

    def _slot(self, allowed: int, work: int | None) -> int | None:
        """Return the next slot, or None if the counts of the database leave no room."""
        if (self._used >= allowed) if work is None else (self._spent + work > allowed):
            return None
        if self._total is not None:
            if self._total_used >= self._total[0]:
                return None
            self._total_used += 1
            self._total_slots.append((self._total_used, self._next()))
        self._used += 1
        self._spent += work or 0
        return self._used

    def _next(self) -> int:
        return int(self._row.last_seq) + len(self._entries) + 1

    def group(self) -> Group:
        """Return what is to be written."""
        last = self._next() - 1
        row = self._row._replace(last_seq=last, high_water=self._at)
        if self._has_cases:
            row = row._replace(
                capacity=allowed_by(self._fork.controller.capacity),
                period=self._period,
                used=self._used,
                seen=self._seen,
                spent=self._spent,
            )
        snapshot = None
        if last // _SNAPSHOT_EVERY > self._row.last_seq // _SNAPSHOT_EVERY:
            snapshot = self._fork.build, self._fork.state()
        total_used = self._total_used if self._total is not None and self._has_cases else None
        return Group(row, self._entries, total_used, self._total_slots, snapshot)

    def answer_changes(self, changes: list[Change], finished: list[Ticket]) -> None:
        """Say where the changes stand in the log, after the commit."""
        for change, place in zip(changes, self._places, strict=True):
            if place is None:
                change.answer({"stale": True}, finished)
            else:
                event = self._entries[place]
                change.answer({"seq": event.seq, "at": event.at}, finished)


def answer_of(entry: Entry, *, repeated: bool) -> Answer:
    """Return the answer that an entry of the log records."""
    assert entry.score is not None
    assert entry.threshold is not None
    assert entry.code is not None
    finite = abs(entry.threshold) != float("inf")
    return Answer(
        str(entry.case_id), entry.slot is not None, entry.score,
        entry.threshold if finite else None, reason_of(entry.code), repeated, entry.at,
        entry.model or 0, entry.effort, *(() if entry.inclusion is None else _drawn(entry)),
    )  # fmt: skip


def _drawn(entry: Entry) -> tuple[str, float | None]:
    """Return how a case was selected, and with which probability; only with probes."""
    if entry.slot is not None:
        return (probing.PROBE if entry.code == PROBE else probing.BY_SCORE), entry.inclusion
    is_left_out = entry.code == PROBE_WITHOUT_SLOT
    return (probing.PROBE_WITHOUT_SLOT if is_left_out else probing.NOT_SELECTED), entry.inclusion


def answer_all(
    group: Group,
    fresh: list[Waiting],
    repeats: list[Waiting],
    finished: list[Ticket],
) -> None:
    """Answer what a group has decided, after its commit."""
    decided = group.entries[len(group.entries) - len(fresh) :]  # changes come before cases
    for case, entry in zip(fresh, decided, strict=True):
        case.answer(answer_of(entry, repeated=False), finished)
    known = {entry.case_id: entry for entry in decided} if repeats else {}
    for case in repeats:
        _repeat(case, known[case.case_id], finished)


def sort_out(
    batch: list[Waiting], known: dict[str, Entry], finished: list[Ticket]
) -> tuple[list[Waiting], list[Waiting]]:
    """Answer known cases; return new ones, and repetitions of new ones."""
    fresh: dict[str, Waiting] = {}
    repeats = []
    for case in batch:
        entry = known.get(case.case_id)
        if entry is not None:
            _repeat(case, entry, finished)
        elif case.case_id in fresh:
            repeats.append(case)
        else:
            fresh[case.case_id] = case
    return list(fresh.values()), repeats


def _repeat(case: Waiting, entry: Entry, finished: list[Ticket]) -> None:
    if entry.digest == case.digest:
        case.answer(answer_of(entry, repeated=True), finished)
    else:
        detail = f"The case {case.case_id!r:.100} was decided with other columns."
        case.answer(Failure(422, "conflict", detail), finished)


def _as_text(fields: dict[str, Any]) -> str:
    return str(msgspec.json.encode(fields).decode())
