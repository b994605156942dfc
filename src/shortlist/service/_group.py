"""What is written to a queue: the next entries of its log, decided by a controller and counted."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import msgspec

from ..online import Controller, EntityCases, WaitingCase
from ..online.decisions import ABOVE_THRESHOLD, ALLOWED, ASKED, MOMENT_REFUSED, PROBE, WAITS
from . import store as log
from ._chain import is_erased, link, new_salt
from ._models import Arrival
from ._replica import NOT_WORTH, REFUSED_BY_COUNT, Replica, Verdict
from .settings import QueueSettings, build_name, units_of
from .store import Entry, Group, QueueRow, Store

_SNAPSHOT_EVERY = 5_000


class GroupMaker:
    """Builds a group: the next entries of the log, and the row of the queue after them."""

    def __init__(self, replica: Replica, row: QueueRow, total: int | None, at: float) -> None:
        self._replica, self.row, self._total = replica, row, total
        self._total_used: int | None = None  # in the period, as far as that was asked
        self._at, self._period = row.high_water, row.period
        self._used, self._seen, self._spent = row.used, row.seen, row.spent
        self._capacity = row.capacity
        self._ended: dict[int, tuple[int, int, int, int]] = {}
        self.saves = False  # the state, whether or not that is due
        self.entries: list[Entry] = []
        self._n_free = 0  # cases with slots, for those who ask
        if replica.settings.within is not None:
            self._add_due(at)
        self._advance(at, row.capacity)

    def _add_due(self, at: float) -> None:
        """Write the slots of cases whose time has ended, by the capacities in force at the time."""
        replica, announced = self._replica, self._replica.controller.announced()
        for case in replica.flag_waiting(at):
            capacity = [each for begins, each in announced if begins <= case.flagged_at][-1]
            allowed = replica.settings.allowed_by(capacity)
            self._add_slot(case, ABOVE_THRESHOLD, None, allowed)
            self._n_free += self.entries[-1].slot is not None
            group = self.group()
            self.row, self.entries = group.row._replace(capacity=allowed), []
            # A state that is due is saved at the end: this one has had all slots of the moment.
            self.saves = self.saves or group.snapshot is not None
            replica.store.insert(group._replace(row=self.row, snapshot=None))

    def add_start(self) -> None:
        """Append the state from which all processes of this version go on."""
        self.saves = True
        self.add_event(log.BUILD, self._replica.state(), log.COMMAND)

    def add_change(self, kind: int, body: dict[str, Any], key_id: str | None) -> dict[str, Any]:
        """Append an event and make its change, or hand out a case; return where the log stands."""
        if kind == log.PULLED:
            self._hand_out(key_id, body.get("segments"))
            return {"seq": self.last_seq, "at": self._at}
        entity = body.get("entity")  # a column of its own, which can be erased
        body = {name: value for name, value in body.items() if name != "entity"}
        if kind == log.CLOCK:
            self._at = body["from"]
            self._enter(self._replica.settings.periods.number(self._at))
        # A change cannot begin in the past: what was decided was decided.
        body = {**body, "from": max(self._at, body.get("from") or self._at)}
        event = self.add_event(kind, json.dumps(body), key_id, entity)
        self._replica.apply(event)
        return {"seq": event.seq, "at": event.at}

    def add_event(
        self, kind: int, body: str, key_id: str | None, entity: str | None = None
    ) -> Entry:
        """Append an event."""
        event = Entry(
            self.row.id, self.last_seq + 1, kind, self._replica.build, self._at, self._period or 0,
            model=self._replica.model or None, key_id=key_id, body=body, entity=entity,
            seal=None if entity is None else new_salt(),
        )  # fmt: skip
        self.entries.append(event)
        return event

    def _hand_out(self, key_id: str | None, segments: list[str] | None) -> None:
        """Append the slot of the case that is worth it most, unless one with a slot is free."""
        replica = self._replica
        allowed = replica.settings.allowed_by(replica.controller.capacity)
        self._n_free -= 1
        if self._n_free < 0 and self._has_room(allowed, None):
            known = replica.settings.segment_of
            among = None if segments is None else lambda id: known(self._entry(id).body) in segments
            case = replica.controller.next(at=self._at, among=among)
            if case is not None:
                self._add_slot(case, ASKED, key_id, allowed)

    def _entry(self, seq: int) -> Entry:
        """Return the entry with which a case began to wait."""
        return self._replica.store.entries_where("queue = ? AND seq = ?", self.row.id, seq)[0]

    def _add_slot(self, case: WaitingCase, code: int, key_id: str | None, allowed: int) -> None:
        """Append the slot of a case that waits; an erased one gets none, and is gone."""
        replica = self._replica
        self._advance(case.flagged_at or self._at, allowed)
        entry = self._entry(case.id)
        slot = None if is_erased(entry.seal) else self._slot(allowed, None)
        score = entry.score
        if slot is not None and entry.entity is not None:
            self._read_entities([entry.entity])
            score = self._highest(entry.seq, entry.score or 0.0)
            self._cases.begin(entry.entity, entry.seq, score, self._at)
        self.entries.append(
            entry._replace(
                seq=self.last_seq + 1, kind=log.PULLED, build=replica.build, at=self._at,
                period=self._period or 0, code=REFUSED_BY_COUNT if slot is None else code,
                slot=slot, total_slot=None if slot is None else self._total_used, key_id=key_id,
                joined=entry.seq, seal=new_salt(), score=score,
            )
        )  # fmt: skip

    def add_cases(self, arrivals: list[Arrival]) -> None:
        """Decide about new cases, those of an entity that is known one after the other."""
        if self._replica.settings.entity is None:
            self._decide(arrivals)
            return
        together: dict[Any, Arrival] = {}
        self._read_entities(sorted({each.entity or "" for each in arrivals}))
        for each in arrivals:
            if each.entity in together or each.entity in self._cases:
                self._decide(list(together.values()))
                together = {}
            code = self._cases.settle(each.entity, each.score, max(each.at, self._at))
            if code is None:
                together[each.entity] = each
            else:
                self._add([each], [self._replica.pass_over(code, each.at)])
                self._replica.lift(self.entries[-1])
        self._decide(list(together.values()))

    @cached_property
    def _cases(self) -> EntityCases:
        """What is known about the cases of entities."""
        return self._replica.settings.entity_cases()

    def _read_entities(self, names: list[str]) -> None:
        """Read from the log what is known about entities, unless this group knows it."""
        store, settings, cases = self._replica.store, self._replica.settings, self._cases
        oldest = self._at - max(settings.window + settings.cooldown, settings.within or 0.0) - 1
        new = json.dumps([name for name in names if name not in cases])
        for entity, key, at, slot, score, body in store.known_entities(
            self.row.id, new, self._at, oldest
        ):
            if score is None:
                cases.allow(entity, json.loads(body)["until"])
            elif slot is not None:
                cases.begin(entity, key, self._highest(key, score), at)
            elif self._replica.controller.waits(key):
                cases.wait(entity, key, score)

    def _highest(self, key: int, score: float) -> float:
        """Return the highest score of a case: of its first event, or of one that joined it."""
        joined = "SELECT coalesce(max(score), ?) FROM log WHERE queue = ? AND joined = ?"
        [(highest,)] = self._replica.store.query(joined, score, self.row.id, key)
        return max(highest, score)

    def _decide(self, arrivals: list[Arrival]) -> None:
        for seq, each in enumerate(arrivals, self.last_seq + 1):
            each.seq = seq
        if arrivals:
            self._add(arrivals, self._replica.decide(arrivals))

    def _add(self, arrivals: list[Arrival], verdicts: list[Verdict]) -> None:
        """Append decisions; the counts of the database have the last word."""
        replica, of_work = self._replica, self._replica.settings.of_work
        allowed = replica.settings.allowed_by(replica.controller.capacity)
        queue, build, model = self.row.id, replica.build, replica.model or None
        for each, (code, threshold, inclusion) in zip(arrivals, verdicts, strict=True):
            if code == MOMENT_REFUSED:  # the controller has seen it, but it gets no answer
                each = Arrival(each.score, None, each.at, each.effort, fields=each.at)
            else:
                if each.at != self._at and code != NOT_WORTH:  # others move no clock
                    self._advance(each.at, allowed)
                self._seen += 1
            slot, work = None, units_of(each.effort or 0.0) if of_work else None
            if code in (ABOVE_THRESHOLD, PROBE):
                slot = self._slot(allowed, work)
                code = REFUSED_BY_COUNT if slot is None else code
            joined = self._attach(each, code, slot)
            of_case = slot is not None or joined is not None
            kept = each.fields is not None and (of_case or code in (MOMENT_REFUSED, WAITS))
            spent = self._spent if of_work and slot is not None else None
            body = msgspec.json.encode(each.fields).decode() if kept else None
            self.entries.append(
                Entry(
                    queue, self.last_seq + 1, log.DECISION, build, self._at, self._period or 0,
                    each.case_id, each.digest, each.score, threshold, code, slot, model,
                    each.key_id, body, each.effort, work, spent,
                    inclusion, None if slot is None else self._total_used, each.shadow,
                    each.entity, joined, new_salt(),
                )
            )  # fmt: skip

    def _attach(self, each: Arrival, code: int, slot: int | None) -> Any:
        """Let a flag begin a case; return the entry whose case another event of it joins."""
        if each.entity is None or code == ALLOWED:
            return None
        if slot is not None:
            self._cases.begin(each.entity, self.last_seq + 1, each.score, self._at)
        elif code == WAITS:
            self._cases.wait(each.entity, self.last_seq + 1, each.score)
        else:
            return self._cases.join(each.entity, each.score, self._at)
        return None

    def _advance(self, at: float, allowed: int) -> None:
        """Let time pass, which never runs backwards; a period that ends leaves its numbers."""
        self._at = max(at, self._at)
        self._enter(self._replica.settings.periods.number(self._at))
        self._capacity = allowed

    def _enter(self, number: int) -> None:
        """Begin a period, or go on with one that was left when a clock was wrong."""
        if number != self._period:
            if (self._seen or self._used) and self._period is not None:
                counts = self._used, self._seen, self._spent
                self._ended[self._period] = (self._capacity, *counts)
            self._period, self._total_used = number, None
            left = "SELECT capacity, used, seen, spent FROM ended WHERE queue = ? AND period = ?"
            rows = self._replica.store.query(left, self.row.id, number) or [(0, 0, 0, 0)]
            _, self._used, self._seen, self._spent = self._ended.get(number, rows[0])

    def _slot(self, allowed: int, work: int | None) -> int | None:
        """Return the next slot, or None if the counts of the database leave no room."""
        if not self._has_room(allowed, work):
            return None
        if self._total_used is not None:
            self._total_used += 1
        self._used += 1
        self._spent += work or 0
        return self._used

    def _has_room(self, allowed: int, work: int | None) -> bool:
        if (self._used >= allowed) if work is None else (self._spent + work > allowed):
            return False
        if self._total is not None:
            if self._total_used is None:
                [(self._total_used,)] = self._replica.store.query(
                    "SELECT coalesce(max(total_slot), 0) FROM log WHERE period = ? AND "
                    "total_slot > 0",
                    self._period,
                )
            return bool(self._total_used < self._total)
        return True

    @property
    def last_seq(self) -> int:
        """The number of the last entry."""
        return self.row.last_seq + len(self.entries)

    def commit(self) -> None:
        """Write the group and commit it."""
        self._replica.store.commit(self.group())
        self._replica.seq = self.last_seq

    def group(self) -> Group:
        """Return what is to be written."""
        replica, last, head = self._replica, self.last_seq, self.row.head
        is_due = last // _SNAPSHOT_EVERY > self.row.last_seq // _SNAPSHOT_EVERY
        snapshot = (replica.build, replica.state()) if is_due or self.saves else None
        if not self.entries:  # slots that were due have been written, as of earlier moments
            return Group(self.row, [], snapshot if self._at == self.row.high_water else None)
        for place, entry in enumerate(self.entries):
            head = link(head, entry._asdict())
            self.entries[place] = entry._replace(hash=head)
        row = self.row._replace(
            capacity=replica.settings.allowed_by(replica.controller.capacity), last_seq=last,
            high_water=self._at, period=self._period, used=self._used, seen=self._seen,
            spent=self._spent, head=head,
        )  # fmt: skip
        return Group(row, self.entries, snapshot, self._ended)


# --- how a queue begins, and how a process joins it -----------------------------------------------


def make_queue(
    store: Store,
    name: str,
    settings: QueueSettings,
    controller: Controller,
    *,
    at: float,
    model: int = 0,
    total: str | None = None,
    identity: Any = None,
) -> Replica | None:
    """Make a queue and return its controller; None if the queue exists.

    Its log begins with its capacity, its model and the state of its controller.
    """
    if settings.entity is not None:
        settings.entity_cases()  # which refuses a rule that makes no sense
    capacity = settings.allowed_by(controller.capacity)
    is_limited = int(settings.of_work and settings.is_capped)
    state = {"model": model, "controller": controller, "identity": identity}
    with store.write():
        if store.query("SELECT id FROM queue WHERE name = ?", name):
            return None
        values: dict[str, Any] = {
            "name": name, "settings": settings.to_json(), "total": total, "capacity": capacity,
            "of_work": is_limited, "high_water": at,
        }  # fmt: skip
        id = store.insert_next("queue", "id", {**values, "head": b""})
        build = store.find_build(build_name())
        replica = Replica(store, settings, build, seq=0, state=state, queue=id)
        row = QueueRow(id, name, values["settings"], total, capacity, 0, at)
        row = row._replace(head=row.first_head())
        maker = GroupMaker(replica, row, None, at)
        amount = {settings.unit: controller.capacity.to_json()["value"], "from": at}
        maker.add_event(log.CAPACITY, json.dumps(amount), log.COMMAND)
        if model:
            maker.add_event(log.MODEL, json.dumps({"model": model}), log.COMMAND)
        maker.add_start()
        group = maker.group()
        store.insert(group)
        replica.seq = group.row.last_seq
        return replica


def join_queue(store: Store, queue: int, build: str) -> Replica:
    """Return the controller of a queue as of some entry; the caller follows the log from there.

    A version of the program whose state is not the latest first writes its own into the log.
    """
    replica = Replica.saved(store, queue, store.find_build(build))
    if not replica.is_own:
        with writing(replica) as maker:
            if not replica.is_own:  # another process may have been faster
                maker.add_start()
        replica.is_own = True
    return replica


@contextlib.contextmanager
def writing(replica: Replica, at: float | None = None) -> Iterator[GroupMaker]:
    """Lock a queue, follow its log, and commit what is added; after an error, nothing is.

    Without a moment no time passes, because nobody has checked the clock.
    """
    store = replica.store
    row, entries, total = store.begin(replica.queue, replica.seq)
    try:
        replica.follow(entries)
        maker = GroupMaker(replica, row, total, row.high_water if at is None else at)
        yield maker
        maker.commit()
    except BaseException:
        store.rollback()
        raise


def find_known(
    store: Store, queue: int, cases: list[Arrival]
) -> tuple[dict[str | None, Entry], list[Arrival]]:
    """Return the decisions about cases that are known, and the new ones: each id once."""
    asked = [case.case_id for case in cases if case.case_id is not None]
    known = {entry.case_id: entry for entry in store.find_cases(queue, asked)} if asked else {}
    new, ids = [], set[str | None](known)
    for case in cases:
        if case.case_id is None or case.case_id not in ids:
            new.append(case)
            ids.add(case.case_id)
    return known, new
