"""Deciding in groups: one transaction for all cases that wait, and no answer before its commit.

One thread works for a queue. It locks the queue's row, then takes what waits by then, follows the
log, scores, decides, writes and commits. If anything is in doubt, it connects again, reads what the
log says, and repeats; the ids of the cases make that harmless.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import msgspec

from ..online import Controller
from . import store as log
from ._api import Answer, Problem
from ._group import GroupMaker, find_known, join_queue, writing
from ._models import Arrival, ModelCache
from ._replica import ReplayError, Replica, drawn_of, reason_of
from .settings import ClockError, ServiceConfig, entity_of
from .store import Entry, PromiseError, QueueRow, Store, StoreError

_log = logging.getLogger("shortlist.service")
_MOST_IN_A_GROUP = 4_096  # cases, after which no other request joins a group
_MANY = 64  # cases
#: What somebody is told whose request the database does not take.
AWAY = "The database cannot be reached or written to."
# More cases are refused: so many, or what takes this share of the patience at the present pace.
_MOST_WAITING, _LONGEST_WAIT = 20_000, 0.3
_ALARM_EVERY = 5.0  # seconds
_DATABASE = "database"
_KINDS = {ClockError: "clock", ReplayError: "replay", PromiseError: "promise"}
_KINDS[StoreError] = _DATABASE
_WITHOUT_IDS = ("clock", "replay", _DATABASE)  # what these say is not about a case
_QUICK, _GATHERING = 0.005, 0.002  # seconds


class Request(msgspec.Struct, eq=False):
    """What waits for its answers, until a deadline: cases, or a change that all workers follow."""

    cases: list[Arrival] = []
    kind: int = log.DECISION
    change: dict[str, Any] = {}
    key_id: str | None = None
    models: tuple[int, int] = (0, 0)  # by which its cases are scored; the second decides nothing
    after: int | None = None  # the latest capacity when this one was made: none may come between
    deadline: float = 0.0
    future: Any = None
    answers: list[Any] = []


class Decider:
    """Decides about the cases of one queue in this process.

    Parameters
    ----------
    queue : int
        The number of the queue.
    store : Store
        For the deciding thread only; it connects by itself.
    models : ModelCache
        The models.
    config : ServiceConfig
        The settings of the service.
    deliver : callable
        Called with a list of finished requests, from another thread.
    """

    def __init__(
        self,
        queue: int,
        store: Store,
        models: ModelCache,
        config: ServiceConfig,
        deliver: Callable[[list[Request]], None],
    ) -> None:
        self.queue, self._store, self._models, self._config = queue, store, models, config
        self._deliver = deliver
        self._waiting: deque[Request] = deque()
        self._finished: list[Request] = []
        self._n_submitted = self._n_taken = 0  # cases; each counted by one thread
        self._wake = threading.Event()
        # How many cases a group usually has, and the seconds for a case of a large one.
        self._usual = self._pace = 0.0
        self._was_quick = self._closing = self._failing = False
        #: The controller as this process knows it; others only read it.
        self.replica: Replica | None = None
        self.stopped: str | None = None
        self.id_fields: tuple[str, ...] = ("id",)
        self.ready = False  # until an attempt shows that cases can be decided
        self._alarmed: dict[str, float] = {}
        self._thread = threading.Thread(target=self._loop, name=f"decide {queue}", daemon=True)

    # --- for the event loop --------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Finish what waits, and end the thread."""
        self._closing = True
        self._wake.set()
        self._thread.join(self._config.patience)

    @property
    def n_waiting(self) -> int:
        """How many cases wait."""
        return self._n_submitted - self._n_taken

    def check_room(self) -> None:
        """Raise a problem if those who come now would probably wait in vain."""
        is_long = self.n_waiting * self._pace > _LONGEST_WAIT * self._config.patience
        if is_long or self.n_waiting > _MOST_WAITING or self._closing:
            raise Problem(503, "unavailable", "Too many cases are waiting.")

    def submit(self, request: Request) -> None:
        """Let a request wait for its answers."""
        self._n_submitted += len(request.cases)
        self._waiting.append(request)
        if not self._wake.is_set():  # else it is awake: it looks for requests after it clears this
            self._wake.set()

    # --- deciding ------------------------------------------------------------------------------

    def _loop(self) -> None:
        while self._waiting or not self._closing:
            if not self._waiting:
                self._wake.wait(0.5 if self.ready else 0.05)
            # Under load, a few more arrive soon: a small group would cost as much as a large one.
            if 0 < self.n_waiting < self._usual / 2 and not self._closing:
                time.sleep(_GATHERING)  # an event would wake this thread for every single case
            self._wake.clear()
            self._round()
            if self._finished:
                self._deliver(self._finished)
                self._finished = []
        self._store.close()

    def _round(self) -> None:
        """Decide about one group, or find out why not."""
        batch: list[Request] = []
        started = time.monotonic()
        try:
            replica = self._join()
            if not self._waiting:  # to read a whole night later would keep the lock for long
                replica.follow(self._store.follow(self.queue, replica.seq))
                if self._store.clock() is None:  # where the database has none, this one counts
                    self._config.clock.read()
                return
            # Others may have the lock while many cases are scored or followed, or one case slowly.
            is_long = not self._is_quick(replica.model) or self.n_waiting >= _MANY
            self._take_scored(replica, batch)
            if is_long:
                replica.follow(self._store.follow(self.queue, replica.seq))
            ids = [case.case_id for each in batch for case in each.cases if case.case_id]
            row, entries, total = self._store.begin(self.queue, replica.seq, ids)
            if row.last_seq < replica.seq:
                raise StoreError("The database has lost entries since they were read.")
            replica.follow(entries)
            if self._is_quick(replica.model):
                self._take_scored(replica, batch)
            self._decide(replica, row, total, batch)
            self._failing = False
            n_cases = sum(len(request.cases) for request in batch)
            self._usual += (n_cases - self._usual) / 8
            if n_cases >= _MANY:
                self._pace += ((time.monotonic() - started) / n_cases - self._pace) / 2
        except Exception as error:  # a thread that ends would leave every case without an answer
            self._recover(error, batch)

    def _join(self) -> Replica:
        """Return the controller of the queue, after connecting and reading if need be."""
        if self.stopped is not None:
            raise ReplayError(self.stopped)
        if self._store.link is None:
            self._store.connect()
        if self.replica is None:
            self.replica = join_queue(self._store, self.queue, self._config.build)
        if not self.ready:
            self._try(self.replica)
            self._models.get(self.replica.model, self._store)  # loaded while nobody waits
            if self.replica.shadow:
                with contextlib.suppress(ValueError, ImportError):  # it decides nothing
                    self._models.get(self.replica.shadow, self._store)
            self.ready = True
        return self.replica

    def _try(self, replica: Replica) -> None:
        """Find out whether cases can be decided again: the clock is right, the disk has room."""
        with writing(replica) as maker:
            maker.saves = self._failing  # a disk that is full may have room for less
            self._moment(maker.row, replica)
        # Whoever raised an alarm may have ended; who still cannot decide raises it again.
        for kind in ("error", *_KINDS.values()):
            self._store.clear_alarm(str(self.queue), kind)
        self._alarmed.clear()

    def _is_quick(self, model: int) -> bool:
        """Whether a model is loaded, and has scored the last batch within a few milliseconds.

        Such models score when the lock has been taken, all cases at once; other cases would wait
        for slower ones.
        """
        return self._was_quick and model in self._models.loaded

    def _take_scored(self, replica: Replica, batch: list[Request]) -> None:
        """Add what waits to a batch, as far as it fits into a group, and score it."""
        room = _MOST_IN_A_GROUP - sum(len(request.cases) for request in batch)
        while self._waiting and room > 0:
            batch.append(self._waiting.popleft())
            self._n_taken += len(batch[-1].cases)
            room -= len(batch[-1].cases)
        stale = [request for request in batch if request.models != (replica.model, replica.shadow)]
        cases = [case for request in stale for case in request.cases]
        started = time.monotonic()
        if cases:
            self._score(cases, replica)
            self._score_besides(cases, replica.shadow)
            self._was_quick = time.monotonic() - started < _QUICK
        for request in stale:
            request.models = replica.model, replica.shadow

    def _score(self, cases: list[Arrival], replica: Replica) -> None:
        """Give cases the scores of a model, or else a problem as their answer."""
        try:
            items = self._scored(cases, replica.model)
        except (ValueError, ImportError) as error:
            for case in cases:
                case.answer = Problem(503, "no-model", str(error))
            return
        for case, item in zip(cases, items, strict=True):
            case.score, case.effort = item.score, item.effort
            case.answer = None if item.error is None else Problem(422, "invalid-case", item.error)
            try:
                case.entity = entity_of(case.fields, replica.settings.entity)
            except Problem as problem:
                case.answer = case.answer or problem

    def _score_besides(self, cases: list[Arrival], shadow: int) -> None:
        """Give cases the scores of a model that decides nothing, if it is loaded and has some."""
        items = self._scored(cases, shadow) if shadow in self._models.loaded else []
        for case, item in zip_longest(cases, items):
            case.shadow = None if item is None or item.error is not None else item.score

    def _scored(self, cases: list[Arrival], id: int) -> list[Arrival]:
        model = self._models.get(id, self._store)
        return model.scored([model.read(case.fields) for case in cases])

    def _put_back(self, requests: list[Request]) -> None:
        """Let requests wait for the next group, in front of all others."""
        self._waiting.extendleft(reversed(requests))
        self._n_taken -= sum(len(request.cases) for request in requests)

    def _decide(self, replica: Replica, row: QueueRow, total: Any, batch: list[Request]) -> None:
        # Scores must be of the model that is in force after the changes of this group.
        swaps = any(request.kind in (log.MODEL, log.SHADOW) for request in batch)
        models = replica.model, replica.shadow
        later = [each for each in batch if each.cases and (swaps or each.models != models)]
        batch[:] = [request for request in batch if request not in later]
        self._put_back(later)
        decided = [request for request in batch if request.kind == log.DECISION]
        cases = [case for each in decided for case in each.cases if case.answer is None]
        others = [request for request in batch if request.kind != log.DECISION]
        changes = [each for each in others if not any(case.answer for case in each.cases)]
        changes = [each for each in changes if not self._is_outdated(each)]
        # What somebody sets comes last, and whoever asks gets what that leaves.
        changes.sort(key=lambda each: (each.kind == log.PULLED, each.after is None))
        known, new = find_known(self._store, self.queue, cases)
        first = {case.case_id: case for case in new}
        if new or changes:
            known |= self._write(replica, row, total, new, changes)
        else:
            self._store.rollback()
            self._store.settle()  # what is known may not be on the disk yet
        for case in cases:
            repeated = first.get(case.case_id) is not case
            case.answer = _answer_to(case, known[case.case_id], repeated)
        for request in batch:
            request.answers = request.answers or [case.answer for case in request.cases]
        self._finished += batch

    def _is_outdated(self, request: Request) -> bool:
        """Whether the capacity has changed since a change of it was worked out."""
        later = "SELECT seq FROM log WHERE queue = ? AND kind = ? AND seq > ? LIMIT 1"
        return request.after is not None and bool(
            self._store.query(later, self.queue, log.CAPACITY, request.after)
        )

    def _write(
        self, replica: Replica, row: QueueRow, total: Any, new: list[Any], changes: list[Request]
    ) -> dict[str | None, Entry]:
        """Write a group and commit; return the entries of the cases that were decided."""
        at, asks = self._moment(row, replica), any(each.kind == log.PULLED for each in changes)
        before = replica.controller.state() if asks else {}
        maker = GroupMaker(replica, row, total, at)
        for each in changes:
            if each.kind == log.OBSERVATION:
                scores = [case.score for case in each.cases]
                each.change = {"model": replica.model, "scores": scores}
        places = [maker.add_change(each.kind, each.change, each.key_id) for each in changes]
        for case in new:
            case.at = at
        maker.add_cases(new)
        if new:
            replica.watch([case.score for case in new])  # which a state that is saved knows
        if maker.last_seq > row.last_seq:
            maker.commit()
            if not maker.entries:  # slots that were due; no entry has the present moment
                self.replica = join_queue(self._store, self.queue, self._config.build)
        else:
            # Nobody got a case: it is as if nobody had asked.
            replica.controller = Controller.from_state(before)
            self._store.rollback()
        for change, place in zip(changes, places, strict=True):
            change.answers = [place]
        decided = maker.entries[len(maker.entries) - len(new) :]  # changes come before cases
        return {entry.case_id: entry for entry in decided}

    def _moment(self, row: QueueRow, replica: Replica) -> float:
        now = self._config.clock.read(witness=self._store.clock())
        ahead, farthest = now - row.high_water, replica.controller.farthest_jump
        if ahead > farthest and not self._config.accept_clock:
            raise ClockError(
                f"The clock is {ahead / 86_400:,.1f} days ahead of the last decision, more than "
                f"{farthest / 86_400:,.0f}. If the pause was real, start with --accept-clock."
            )
        return max(now, row.high_water)

    # --- what goes wrong -----------------------------------------------------------------------

    def _recover(self, error: Exception, batch: list[Request]) -> None:
        """Raise an alarm, then connect again and repeat, or refuse what waits."""
        self._put_back(batch)
        kind = next((_KINDS[each] for each in _KINDS if isinstance(error, each)), "error")
        # A session that was merely lost is not worth an alarm.
        if kind != _DATABASE or self._failing or not (self.ready or self._closing):
            self._alarm(kind, error)
        self.ready, self._failing = False, True
        if kind == "replay":
            self.stopped = self.stopped or f"This process has stopped deciding. {error}"
        if kind == "clock":
            self._store.rollback()
            self._refuse(Problem(503, "clock", str(error)), math.inf)
            return
        self._store.close()
        self.replica = None  # a database that crashed may have lost what nobody was told of
        problem = Problem(503, "unavailable", self.stopped or AWAY)
        self._refuse(problem, math.inf if self._closing or self.stopped else time.monotonic())
        time.sleep(0.05)

    def _refuse(self, problem: Problem, until: float) -> None:
        """Answer what waits with a problem, if its deadline is not after a moment."""
        waiting = [self._waiting.popleft() for _ in range(len(self._waiting))]
        self._put_back([request for request in waiting if request.deadline > until])
        for request in waiting:
            self._n_taken += len(request.cases)
            if request.deadline <= until:
                request.answers = [problem]
                self._finished.append(request)

    def _alarm(self, kind: str, error: Exception) -> None:
        """Log an error and raise an alarm, unless that was done a moment ago."""
        if time.monotonic() - self._alarmed.get(kind, -math.inf) < _ALARM_EVERY:
            return
        self._alarmed[kind] = time.monotonic()
        name = "" if kind in _KINDS.values() else f"{type(error).__name__}: "
        message = name + " ".join(str(error).split())
        shown = message if kind in _WITHOUT_IDS else "see the alarms of the queue."
        _log.error("Queue %d is not decided (%s): %s", self.queue, kind, shown)
        if kind == _DATABASE:
            return
        # Without the database the alarm is lost, but nothing is decided either.
        with contextlib.suppress(StoreError, PromiseError):
            self._store.connect()  # what was open is undone
            self._store.raise_alarm(str(self.queue), kind, message, time.time())


def _answer_to(case: Arrival, entry: Entry, repeated: bool) -> Any:
    """Return the first answer to a case, unless it came with other columns now."""
    if entry.digest == case.digest:
        return answer_of(entry, repeated=repeated)
    detail = f"The case {case.case_id!r:.100} was decided with other columns."
    return Problem(422, "conflict", detail)


def answer_of(entry: Entry, *, repeated: bool) -> Answer:
    """Return the answer that an entry of the log records."""
    finite = entry.threshold is not None and math.isfinite(entry.threshold)
    return Answer(
        str(entry.case_id), entry.slot is not None, entry.score or 0.0,
        entry.threshold if finite else None, reason_of(entry.code or 0), repeated, entry.at,
        entry.model or 0, entry.effort, *(() if entry.inclusion is None else drawn_of(entry)),
    )  # fmt: skip
