"""One group: the next entries of the log, decided by a controller and counted by the database."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from .._core.arrays import Floats
from ..online.decisions import MOMENT_REFUSED, is_flag
from ._replica import REFUSED_BY_COUNT, Items, Replica
from .settings import units_of
from .store import DECISION, OBSERVATION, Entry, Group, QueueRow

__all__ = ["GroupMaker"]

_SNAPSHOT_EVERY = 5_000


class GroupMaker:
    """Builds a group: the next entries of the log, and the row of the queue after them."""

    def __init__(self, fork: Replica, row: QueueRow, total: Any, at: float) -> None:
        self._fork, self._row, self._total, self._at = fork, row, total, at
        self._period = fork.settings.periods.number(at)
        self.entries: list[Entry] = []
        self._total_slots: list[tuple[int, int]] = []
        self._budgets: list[tuple[int, int, int, int]] = []  # of periods that have ended
        same = row.period == self._period
        self._used, self._seen = (row.used, row.seen) if same else (0, 0)
        self._spent = row.spent if same else 0
        self._total_used = total[2] if total is not None and total[1] == self._period else 0
        self._has_cases = False

    def add_change(self, kind: int, body: dict[str, Any], key_id: str | None) -> Entry | None:
        """Append an event and make its change; None if its scores are of an earlier model."""
        if kind == OBSERVATION and body["model"] != self._fork.model:
            return None
        # A change cannot begin in the past: what was decided was decided.
        body = {**body, "from": max(self._at, body.get("from") or self._at)}
        event = Entry(
            self._row.id, self._next(), kind, self._fork.build, self._at, self._period,
            model=self._fork.model or None, key_id=key_id, body=json.dumps(body),
        )  # fmt: skip
        self._fork.apply(event)
        self.entries.append(event)
        return event

    def add_cases(self, cases: list[Any], items: Items) -> None:
        """Decide about new cases; the counts of the database have the last word.

        A case has a `case_id`, an `effort`, a `digest`, a `key_id` and `fields`, which are kept of
        flagged cases.
        """
        self._has_cases = True
        fork, decided = self._fork, self._fork.decide(items)
        counted, numbers = self._moments(items, decided.codes)
        allowed = fork.settings.allowed_by(fork.controller.capacity)
        inclusions: list[Any] = decided.inclusions or [None] * len(cases)
        columns = (
            items.scores.tolist(),
            decided.codes,
            decided.thresholds,
            inclusions,
            counted,
            numbers,
        )
        for place, (case, *row) in enumerate(zip(cases, *columns, strict=True)):
            score, code, threshold, inclusion, at, number = row
            if code == MOMENT_REFUSED:
                self._refuse(score, threshold, code, inclusion, float(items.at[place]))
                continue
            if number != self._period:
                self._end_period(number)
            self._at, self._seen = at, self._seen + 1
            slot, work = None, units_of(case.effort) if fork.settings.of_work else None
            if is_flag(code):
                slot = self._slot(allowed, work)
                code = code if slot is not None else REFUSED_BY_COUNT
            self.entries.append(
                Entry(
                    self._row.id,
                    self._next(),
                    DECISION,
                    fork.build,
                    at,
                    number,
                    case.case_id,
                    case.digest,
                    score,
                    threshold,
                    code,
                    slot,
                    fork.model or None,
                    case.key_id,
                    None if slot is None or case.fields is None else _as_text(case.fields),
                    case.effort,
                    work,
                    None if work is None or slot is None else self._spent,
                    inclusion,
                )
            )

    def _moments(self, items: Items, codes: list[int]) -> tuple[list[float], list[int]]:
        """Return when each case counts, and in which period: time never runs backwards."""
        moments: Floats = np.where(np.array(codes) == MOMENT_REFUSED, -np.inf, items.at)
        counted = np.maximum.accumulate(np.maximum(moments, self._at))
        return counted.tolist(), self._fork.settings.periods.numbers(counted).tolist()

    def _refuse(
        self, score: float, threshold: float, code: int, inclusion: float | None, moment: float
    ) -> None:
        """Note that the controller has seen a case and refused its moment; it has no answer."""
        self.entries.append(
            Entry(
                self._row.id, self._next(), DECISION, self._fork.build, self._at, self._period,
                score=score, threshold=threshold, code=code, model=self._fork.model or None,
                body=json.dumps(moment), inclusion=inclusion,
            )
        )  # fmt: skip

    def _end_period(self, number: int) -> None:
        if self._seen:
            self._budgets.append((self._period, self._used, self._seen, self._spent))
        self._period, self._used, self._seen, self._spent = number, 0, 0, 0

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
        return int(self._row.last_seq) + len(self.entries) + 1

    def group(self) -> Group:
        """Return what is to be written."""
        last = self._next() - 1
        row = self._row._replace(last_seq=last, high_water=self._at)
        if self._has_cases:
            row = row._replace(
                capacity=self._fork.settings.allowed_by(self._fork.controller.capacity),
                period=self._period,
                used=self._used,
                seen=self._seen,
                spent=self._spent,
            )
        snapshot = None
        if last // _SNAPSHOT_EVERY > self._row.last_seq // _SNAPSHOT_EVERY:
            snapshot = self._fork.build, self._fork.state()
        total_used = self._total_used if self._total is not None and self._has_cases else None
        return Group(row, self.entries, total_used, self._total_slots, snapshot, self._budgets)


def _as_text(fields: dict[str, Any]) -> str:
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
