"""The people behind a capacity: who is there, for how long and for what, and who gets which case.

Minutes are counted in whole thousandths: those of a case are rounded up, those of a person down.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from datetime import datetime
from itertools import accumulate
from typing import Annotated, Any, NamedTuple

import numpy as np
from msgspec import Meta, Struct
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from ..capacity import exact
from ..online.decisions import PROBE
from . import _reviews
from ._api import CaseId, Moment, Name, Problem, check_name
from ._decider import Request
from ._reviews import FREE, OPEN, FlaggedCase, ReviewCase, Seconds, find_flagged, select_flagged
from ._service import Call, Service
from ._status import Capacities, QueueView
from .settings import WORK_UNITS, QueueSettings
from .store import CAPACITY, PULLED, QueueRow, Store

_STAFF, _ASSIGNED = "staff", "assignment"  # who makes such changes, and what notes call them
_UNITS = 1_000  # in a minute
_TRIES, _PAGE = 5, 100
_YEAR = 31_536_000.0  # seconds
_LONGEST_SEARCH = 5.0  # seconds for the best assignment of cases that take different times


class ReviewerBody(Struct, forbid_unknown_fields=True):
    """The minutes that a person has in a period, the segments and queues they review, absence.

    Null means all segments, all queues, and nobody absent.
    """

    minutes: Annotated[float, Meta(ge=0, le=1e6)]
    segments: list[Annotated[str, Meta(max_length=200)]] | None = None
    queues: list[Name] | None = None
    absent_until: Moment | None = None


class Reviewer(Struct):
    """A person who reviews cases."""

    name: str
    minutes: float
    segments: list[str] | None
    queues: list[str] | None
    absent_until: float | None

    def is_there(self, queue: str, at: float) -> bool:
        """Whether the person reviews the cases of a queue at a moment."""
        return self.reviews(queue) and (self.absent_until or 0.0) <= at

    def reviews(self, queue: str) -> bool:
        """Whether the person reviews the cases of a queue when they are there."""
        return self.queues is None or queue in self.queues


class Reviewers(Struct):
    """All reviewers."""

    reviewers: list[Reviewer]


def read_reviewers(store: Store) -> list[Reviewer]:
    """Return all reviewers in the order of their names."""
    rows = store.query(
        "SELECT name, minutes, segments, queues, absent_until FROM reviewer ORDER BY name"
    )
    return [
        Reviewer(name, minutes, json.loads(segments), json.loads(queues), until)
        for name, minutes, segments, queues, until in rows
    ]


class Staff(NamedTuple):
    """Who is there for a queue, what time each has left, and what they have declined.

    With two that are equal, the same cases have the same best assignment.
    """

    settings: QueueSettings
    minutes: float  # that a flag, or a unit of effort, takes
    people: list[Reviewer]
    room: dict[str, int]
    declined: set[tuple[int, str]]

    @classmethod
    def read(cls, store: Store, row: QueueRow, at: float) -> Staff:
        """Return what the database says about a moment."""
        settings = QueueSettings.from_json(row.settings)
        people = [each for each in read_reviewers(store) if each.is_there(row.name, at)]
        room = {each.name: math.floor(exact(each.minutes) * _UNITS) for each in people}
        queues = store.queues()
        since = {each.name: _shifts(each, queues, at)[1] for each in people}
        for other in queues:
            for holder, closed, taken in _taken(store, other, min(since.values(), default=at)):
                if holder in room and (closed is None or closed >= since[holder]):
                    room[holder] = max(room[holder] - taken, 0)
        declined = store.query("SELECT seq, reviewer FROM declined WHERE queue = ?", row.id)
        minutes = Capacities(store, row.id).minutes
        return cls(settings, minutes, people, room, set(map(tuple, declined)))

    def time_of(self, case: FlaggedCase) -> int:
        """Return the thousandths of a minute that a case takes."""
        return _time(self.settings, self.minutes, case.entry.effort)

    def may_take(self, person: Reviewer, case: FlaggedCase) -> bool:
        """Whether a person has the skill and the time for a case, and has not declined it."""
        segments, columns = person.segments, case.entry.body
        is_able = segments is None or self.settings.segment_of(columns) in segments
        has_time = self.time_of(case) <= self.room[person.name]
        return is_able and has_time and (case.entry.seq, person.name) not in self.declined

    def assign(self, cases: list[FlaggedCase]) -> list[tuple[FlaggedCase, str]]:
        """Return who gets which case: the most worth that skills and time allow."""
        allowed = np.array([[self.may_take(each, case) for each in self.people] for case in cases])
        if not allowed.any():
            return []
        times = np.array([self.time_of(case) for case in cases])
        room = np.array([self.room[each.name] for each in self.people])
        columns = _pack(self._worth(cases), times, room, allowed)
        return [
            (case, self.people[column].name)
            for case, column in zip(cases, columns, strict=True)
            if column >= 0
        ]

    def _worth(self, cases: list[FlaggedCase]) -> Any:
        """Return what each case is worth: its score, times its effort if scores are per effort.

        Where scores can be negative, they count from the lowest one. A probe has the score of the
        flag before it: by its own it would be left over, which would give it away.
        """
        entries, of_work = [case.entry for case in cases], self.settings.of_work
        efforts = np.array([entry.effort if of_work else 1.0 for entry in entries], float)
        is_other = [entry.code != PROBE for entry in entries]
        others = [entry.score for entry, is_it in zip(entries, is_other, strict=True) if is_it]
        scores = [(others or [1.0])[max(n - 1, 0)] for n in accumulate(is_other)]
        worth = np.array(scores, float) * efforts
        worth -= min(worth.min(), 0.0)
        return worth + 1e-9 * max(worth.max(), 1.0)  # every case is worth a reviewer's time


def _time(settings: QueueSettings, minutes: float, effort: float | None) -> int:
    units = exact(effort or 0.0) if settings.of_work else 1
    return max(math.ceil(exact(minutes) * units * _UNITS), 1)


def _shifts(person: Reviewer, queues: list[QueueRow], at: float) -> Any:
    """Return the periods for each of which a person has their minutes, and when one began.

    Of the queues that they review, it is the one whose periods begin most often.
    """
    own = [QueueSettings.from_json(row.settings) for row in queues if person.reviews(row.name)]
    found = max((each.periods for each in own), key=lambda p: p.number(at + _YEAR) - p.number(at))
    return found, found.bounds(found.number(at))[0]


def _taken(store: Store, row: QueueRow, since: float) -> list[tuple[str, float | None, int]]:
    """Return who holds each open case, and each closed since a moment, when, and its time."""
    settings, minutes = QueueSettings.from_json(row.settings), Capacities(store, row.id).minutes
    held = f"claim.reviewer IS NOT NULL AND (({OPEN}) OR outcome.at >= ?)"
    rows = select_flagged(store, row.id, "claim.reviewer, outcome.at, log.effort", held, since)
    return [(holder, closed, _time(settings, minutes, effort)) for holder, closed, effort in rows]


def _pack(worth: Any, times: Any, room: Any, allowed: Any) -> Any:
    """Return the person of each case, or -1: the best that is found in time, exact as a rule.

    All numbers are whole; a case that only the tolerance of the solver finds time for is left.
    """
    # No more cases fit than these: of those alike in people and time, only the first best matter.
    most, order = int(room.sum() // times.min()), np.argsort(-worth, kind="stable")
    groups = np.unique(np.column_stack([allowed, times]), axis=0, return_inverse=True)[1].ravel()
    kept = np.concatenate([order[groups[order] == group][:most] for group in set(groups)])
    columns, n, m = np.full(len(worth), -1), len(kept), len(room)
    found = milp(
        -np.repeat(worth[kept] / worth.max(), m),
        integrality=np.ones(n * m),
        bounds=Bounds(0, allowed[kept].ravel().astype(float)),
        constraints=[
            LinearConstraint(sparse.kron(sparse.eye(n), np.ones((1, m))), ub=1),
            LinearConstraint(sparse.kron(times[np.newaxis, kept], sparse.eye(m)), ub=room),
        ],
        options={"time_limit": _LONGEST_SEARCH, "mip_rel_gap": 0},
    )
    chosen = np.zeros((n, m)) if found.x is None else np.round(found.x).reshape(n, m)
    columns[kept] = np.where(chosen.any(axis=1), chosen.argmax(axis=1), -1)
    for person in range(m):
        own = order[columns[order] == person]
        columns[own[np.cumsum(times[own]) > room[person]]] = -1
    return columns


# --- following who is there -----------------------------------------------------------------------


async def follow_staff(service: Service, *, as_leader: bool = False) -> None:
    """Let assignments and capacities follow who is there; what is done regularly, one does."""
    if as_leader and not await service.ask(service.roster.leads):
        return
    for _ in range(2):  # the second time for what has changed meanwhile
        for queue, change in await service.ask(_follow, service.store):
            with contextlib.suppress(Problem):  # it is tried again soon
                await service.decide(queue, change)


def _follow(store: Store) -> list[tuple[str, Request]]:
    """Assign what absent people hold, and all when a period begins; return what capacities need."""
    changes = []
    for row in store.queues():
        at, capacities = max(time.time(), row.high_water), Capacities(store, row.id)
        people = [each for each in read_reviewers(store) if each.is_there(row.name, at)]
        was_freed = _free_absent(store, row, at, {each.name for each in people})
        if was_freed or (people and _is_unassigned(store, row, people, at)):
            assign_cases(store, row, at)
        minutes = capacities.staff(at)
        if minutes is not None:
            amount = staff_amount(store, row, minutes, at)
            if amount != capacities.at(at):
                change = {QueueSettings.from_json(row.settings).unit: amount, "staff": minutes}
                request = Request([], CAPACITY, change, _STAFF, after=capacities.last_seq)
                changes.append((row.name, request))
    return changes


def staff_amount(store: Store, row: QueueRow, minutes: float, at: float) -> float:
    """Return the capacity of those who are there; who reviews several queues is shared out."""
    queues, settings = store.queues(), QueueSettings.from_json(row.settings)
    staffed = [
        other.name
        for other in queues
        if other.id == row.id or Capacities(store, other.id).staff(at) is not None
    ]
    begins, ends = settings.periods.bounds(settings.periods.number(at))
    total: Any = 0
    for each in read_reviewers(store):
        if each.is_there(row.name, at):
            shifts, _ = _shifts(each, queues, at)
            n_shifts = max(shifts.number(ends) - shifts.number(begins), 1)
            total += exact(each.minutes) * n_shifts / sum(map(each.reviews, staffed))
    units = int(total / exact(minutes) * (WORK_UNITS if settings.of_work else 1))
    return settings.amount(units, units)


def _free_absent(store: Store, row: QueueRow, at: float, present: set[str]) -> bool:
    """Take open cases back that were assigned to people who are not there; were there any?"""
    having = store.query("SELECT reviewer FROM claim WHERE queue = ? AND assigned = 1", row.id)
    if present.issuperset(name for (name,) in having):
        return False
    with store.write():
        held = find_flagged(store, row.id, "claim.assigned = 1")  # also of erased persons
        freed = [case for case in held if case.holder not in present]
        for case in freed:
            _reviews.let_go(store, case)
        vouch = [("claim", row.id, case.entry.seq) for case in freed]
        store.note(at, _STAFF, "release", row.name, {}, vouch=vouch)
    return True


def _is_unassigned(store: Store, row: QueueRow, people: list[Reviewer], at: float) -> bool:
    """Whether nothing was assigned since a shift began, or somebody came back.

    Whoever was only now told of does not count: others may follow, who would get nothing.
    """
    begins = max(_shifts(each, store.queues(), at)[1] for each in people)
    first = "SELECT number FROM note WHERE queue IS NULL AND action = 'reviewer' AND at < ? LIMIT 1"
    done = "SELECT number FROM note WHERE queue = ? AND action = ? AND at >= ? LIMIT 1"
    is_back = any(begins < (each.absent_until or 0.0) for each in people)
    is_due = is_back or store.query(first, begins)
    return bool(is_due) and not store.query(done, row.name, _ASSIGNED, begins)


def _free_cases(store: Store, row: QueueRow, settings: QueueSettings) -> list[FlaggedCase]:
    """Return the open cases that nobody holds, in working order."""
    order = _reviews.working_order(settings)
    return find_flagged(store, row.id, f"{FREE} ORDER BY {order}")


def assign_cases(
    store: Store, row: QueueRow, at: float, key_id: str = _STAFF
) -> list[tuple[FlaggedCase, str]]:
    """Assign the open cases that nobody holds; return who got which.

    The best assignment is found without the lock, and found again if anything has changed then.
    """
    for _ in range(_TRIES):
        staff = Staff.read(store, row, at)
        chosen = staff.assign(_free_cases(store, row, staff.settings))
        ids, is_it = json.dumps([case.id for case, _ in chosen]), store.is_listed
        still = f"{FREE} AND {is_it.replace('case_id', 'log.case_id')}"
        with store.write():
            [(n_free,)] = select_flagged(store, row.id, "count(*)", still, ids)
            if Staff.read(store, row, at) == staff and n_free == len(chosen):
                for case, name in chosen:
                    _reviews.hold(store, case, name, None, assigned=1)
                vouch = [("claim", row.id, case.entry.seq) for case, _ in chosen]
                store.note(at, key_id, _ASSIGNED, row.name, {}, vouch=vouch)
                return chosen
    raise Problem(503, "unavailable", "Cases change faster than they can be assigned. Ask again.")


# --- routes ---------------------------------------------------------------------------------------


class NextBody(Struct, forbid_unknown_fields=True):
    """Who asks for a case, and for how long."""

    reviewer: Name | None = None
    seconds: Seconds = 1_800


class Next(Struct):
    """The next case for a reviewer, or null."""

    case: ReviewCase | None


class ReleaseBody(Struct, forbid_unknown_fields=True):
    """A case to give back; one that was declined is not assigned to the same person again."""

    id: CaseId
    reviewer: Name | None = None
    decline: bool = False


class Assigned(Struct):
    """A case, and who holds it now."""

    id: str
    holder: str | None


class Assignments(Struct):
    """Which cases were assigned to whom, and how many open ones nobody holds."""

    assigned: list[Assigned]
    left: int


def list_reviewers(call: Call) -> Reviewers:
    """All reviewers."""
    return Reviewers(read_reviewers(call.store))


async def set_reviewer(call: Call, body: ReviewerBody) -> Reviewers:
    """Add a reviewer, or change their minutes, segments, queues or absence."""
    until = body.absent_until
    row = {
        "name": call.case,
        "minutes": body.minutes,
        "segments": json.dumps(body.segments),
        "queues": json.dumps(body.queues),
        "absent_until": until.timestamp() if isinstance(until, datetime) else until,
    }
    return await _change_reviewer(call, row)


async def drop_reviewer(call: Call) -> Reviewers:
    """Remove a reviewer; the cases that were assigned to them go to others."""
    return await _change_reviewer(call, None)


async def _change_reviewer(call: Call, row: dict[str, Any] | None) -> Reviewers:
    """Write or remove the row of a reviewer; assignments and capacities follow."""
    await call.service.ask(_write_reviewer, call, row)
    await follow_staff(call.service)
    return await call.service.ask(list_reviewers, call)


def _write_reviewer(call: Call, row: dict[str, Any] | None) -> None:
    store, name = call.store, call.case
    with store.write():
        if row is not None:
            check_name(name)
            store.put("reviewer", row, ("name",))
        elif not store.query("SELECT name FROM reviewer WHERE name = ?", name):
            raise Problem(404, "not-found", f"There is no reviewer {name!r:.100}.")
        else:
            store.query("DELETE FROM reviewer WHERE name = ?", name)
        call.note("reviewer", vouch=[("reviewer", name)])


def assign_now(call: Call) -> Assignments:
    """Assign all open cases that nobody holds: the most worth that skills and minutes allow."""
    view = QueueView(call, call.row)
    chosen = assign_cases(call.store, view.row, view.at, call.key.id)
    [(left,)] = select_flagged(call.store, view.row.id, "count(*)", FREE)
    return Assignments([Assigned(case.id, name) for case, name in chosen], left)


def release_case(call: Call, body: ReleaseBody) -> Assigned:
    """Give a case back, or decline it: then somebody else gets it, if there is time."""
    store, view = call.store, QueueView(call, call.row)
    with store.write():
        reviewer = None if call.key.role == "manage" else call.reviewer(body.reviewer)
        case = _reviews.find_held(call, body.id, reviewer)
        if case.outcome is not None or case.holder is None:
            raise Problem(409, "not-held", f"{case.id!r:.100} is closed, or nobody has it.")
        _reviews.let_go(store, case)
        key = view.row.id, case.entry.seq
        vouch: list[tuple[Any, ...]] = [("claim", *key)]
        if body.decline:
            declined = dict(zip(("queue", "seq", "reviewer"), (*key, case.holder), strict=True))
            store.put("declined", declined, tuple(declined))
            vouch.append(("declined", *key, case.holder))
        call.note("release", vouch=vouch)
    if body.decline:
        with contextlib.suppress(Problem):  # it was given back, whoever gets it
            assign_cases(store, view.row, view.at, call.key.id)
    [now] = find_flagged(store, view.row.id, "log.case_id = ?", body.id)
    return Assigned(now.id, now.holder)


async def next_case(call: Call, body: NextBody) -> Next:
    """Claim the next case in working order: one that the reviewer holds, or else a free one.

    A reviewer whose minutes are known gets no more than these, and only what they are able to do.
    In a queue where cases wait, the most worthwhile of these gets a slot if no case is free.
    """
    found, pull = await call.service.ask(_claim_next, call, body)
    if pull is not None:
        await call.change(pull)
        found, _ = await call.service.ask(_claim_next, call, body)
    return found


def _claim_next(call: Call, body: NextBody) -> tuple[Next, Request | None]:
    """Return the next case; if there is none but time, the request for one that waits."""
    store, reviewer, view = call.store, call.reviewer(body.reviewer), QueueView(call, call.row)
    with store.write():
        order, pull = _reviews.working_order(view.settings), None
        mine = f"{OPEN} AND claim.reviewer = ? ORDER BY {order} LIMIT 1"
        found = find_flagged(store, view.row.id, mine, reviewer)
        if not found:
            found, pull = _find_next(store, view, reviewer)
        for case in found[:1]:
            _reviews.take(call, case, reviewer, body.seconds)
            found = find_flagged(store, view.row.id, "log.seq = ?", case.entry.seq)
    return Next(next(iter(_reviews.to_review(call, view, found)), None)), pull


def _find_next(
    store: Store, view: QueueView, reviewer: str
) -> tuple[list[FlaggedCase], Request | None]:
    """Return free cases that a reviewer may take, or else the request for one that waits."""
    staff = Staff.read(store, view.row, view.at)
    if reviewer not in [each.name for each in read_reviewers(store)]:
        staff.people.append(Reviewer(reviewer, 0, None, None, None))
        staff.room[reviewer] = 1 << 40  # nobody has said how long they are there
    person = next((each for each in staff.people if each.name == reviewer), None)
    if person is None or staff.room[reviewer] < _time(view.settings, staff.minutes, None):
        return [], None
    # Others wait meanwhile: columns are read of a few at a time, until one fits.
    order = _reviews.working_order(view.settings)
    free = select_flagged(store, view.row.id, "log.seq", f"{FREE} ORDER BY {order}")
    for start in range(0, len(free), _PAGE):
        page = [seq for (seq,) in free[start : start + _PAGE]]
        # In no order: by its order, SQLite would find them among all that were ever flagged.
        found = find_flagged(store, view.row.id, f"log.seq IN ({', '.join(map(str, page))})")
        if able := [case for case in found if staff.may_take(person, case)]:
            return sorted(able, key=lambda case: page.index(case.entry.seq)), None
    asked = Request(kind=PULLED, change={"segments": person.segments})
    return [], asked if view.settings.within is not None else None
