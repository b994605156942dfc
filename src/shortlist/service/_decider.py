"""Deciding in groups: one transaction for all cases that wait, and no answer before its commit.

One thread works for a queue. It locks the queue's row, then takes what waits by then, follows the
log, scores, decides, writes and commits. If anything is in doubt, it connects again, reads what the
log says, and repeats; the ids of the cases make that harmless.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import chain
from typing import Any

from ._group import GroupMaker, join_queue
from ._models import ModelCache
from ._replica import ReplayError, Replica
from ._requests import Problem
from ._waiting import Case, Change, Scorer, Ticket, Waiting, answer_of
from .settings import ClockError, ServiceConfig
from .store import MODEL, Entry, Group, PromiseError, QueueRow, Store, StoreError

__all__ = ["Decider"]

_log = logging.getLogger("shortlist.service")
MOST_IN_A_GROUP = 1_024  # the longest list is one group, if nothing else waits
_MANY = 64  # cases
_MOST_WAITING = 20_000
_ALARM_EVERY = 5.0  # seconds
_WITHOUT_IDS = ("clock", "replay", "database")  # what these say is not about a case
_GATHERING = 0.002  # seconds


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
        Called with a list of finished tickets, from another thread.
    """

    def __init__(
        self,
        queue: int,
        store: Store,
        models: ModelCache,
        config: ServiceConfig,
        deliver: Callable[[list[Ticket]], None],
    ) -> None:
        self.queue, self._store, self._models, self._config = queue, store, models, config
        self._deliver = deliver
        self._scorer = Scorer(models, store)
        self._cases: deque[Case] = deque()
        self._changes: deque[Change] = deque()
        self._finished: list[Ticket] = []
        self._wake = threading.Event()
        self._usual = 0.0  # cases in a group
        self._connected = self._closing = False
        self._failed = True  # until an attempt shows that cases can be decided
        #: The controller as this process knows it; others only read it.
        self.replica: Replica | None = None
        self.stopped: str | None = None
        self.id_fields: tuple[str, ...] = ("id",)
        self.ready = False
        self._alarmed: dict[str, float] = {}
        # Cases that this process has seen in the log are looked up. An older one is refused by the
        # database when it is inserted again; then all cases of the group are looked up.
        self._ask_about_all = False
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
        return len(self._cases)

    def submit(self, cases: list[Case]) -> bool:
        """Let cases wait for their answers; False if too many wait already."""
        if self.n_waiting > _MOST_WAITING or self._closing:
            return False
        self._cases.extend(cases)
        self._wake_up()
        return True

    def change(self, change: Change) -> None:
        """Let a change wait for its place in the log."""
        self._changes.append(change)
        self._wake_up()

    def _wake_up(self) -> None:
        """Wake the thread, unless it is awake: it looks for cases after it clears the event."""
        if not self._wake.is_set():
            self._wake.set()

    # --- deciding ------------------------------------------------------------------------------

    def _loop(self) -> None:
        while not (self._closing and not self._cases and not self._changes):
            self._gather()
            self._round()
            if self._finished:
                self._deliver(self._finished)
                self._finished = []
        self._store.close()

    def _gather(self) -> None:
        """Wait for a case; under load, let a few more arrive rather than write a small group."""
        if not (self._cases or self._changes):
            self._wake.wait(0.5 if self.ready else 0.05)
        if 0 < len(self._cases) < self._usual / 2 and not self._closing:
            time.sleep(_GATHERING)  # an event would wake this thread for every single case
        self._wake.clear()

    def _tell(self, waiting: Waiting, answer: Any) -> None:
        """Give an answer, once; a ticket is finished with its last one."""
        ticket = waiting.ticket
        if ticket.answers[waiting.place] is None:
            ticket.answers[waiting.place] = answer
            ticket.left -= 1
            if not ticket.left:
                self._finished.append(ticket)

    def _round(self) -> None:
        """Decide about one group, or find out why not."""
        batch: list[Case] = []
        changes: list[Change] = []
        try:
            replica = self._join()
            if not (self._cases or self._changes):
                if self._store.clock() is None:  # where the database has none, this one counts
                    self._config.clock.read()
                return
            # Others may have the lock while many cases are scored, or one case slowly.
            if not self._scorer.is_quick(replica.model) or len(self._cases) >= _MANY:
                self._take_scored(replica.model, batch)
            row, entries, total = self._store.begin(self.queue, replica.seq)
            if row.last_seq < replica.seq:
                raise StoreError("The database has lost entries since they were read.")
            replica.follow(entries)
            changes += _take(self._changes, MOST_IN_A_GROUP)
            if self._scorer.is_quick(replica.model):
                self._take_scored(replica.model, batch)
            # Scores may be of a model that is no longer in force by now.
            self._put_back(batch, [case for case in batch if case.model != replica.model])
            self._decide(replica, row, total, batch, changes)
        except Exception as error:  # a thread that ends would leave every case without an answer
            self._recover(error, batch, changes)

    def _join(self) -> Replica:
        """Return the controller of the queue, after connecting and reading if need be."""
        if self.stopped is not None:
            raise StoreError(f"This process has stopped deciding. {self.stopped}")
        if not self._connected:
            self._store.connect()
            self._connected = True
        if self.replica is None:
            self.replica = join_queue(self._store, self.queue, self._config.build)
        if self._failed:
            self._try(self.replica)
        if not self.ready:
            self._models.get(self.replica.model, self._store)  # loaded while nobody waits
            self.id_fields = self.replica.settings.id_fields
            self.ready = True
        return self.replica

    def _try(self, replica: Replica) -> None:
        """Find out whether cases can be decided again: the clock is right, the disk has room."""
        row, entries, _ = self._store.begin(self.queue, replica.seq)
        replica.follow(entries)
        self._moment(row, replica)
        self._store.commit(Group(row, []))
        # Whoever raised it may have ended; a process whose clock is still wrong raises it again.
        self._store.clear_alarm(str(self.queue), "clock")
        self._alarmed.pop("clock", None)
        self._failed = False

    def _take_scored(self, model: int, batch: list[Case]) -> None:
        """Add what waits to a batch, as far as it fits into a group, and score it."""
        taken = _take(self._cases, MOST_IN_A_GROUP - len(batch))
        failed = self._scorer.score(taken, model)
        for case, problem in failed:
            self._tell(case, problem)
        batch += taken if not failed else [case for case in taken if case.model == model]

    def _put_back(self, batch: list[Case], cases: list[Case]) -> None:
        """Let cases of a batch wait for the next one, in front of all others."""
        self._cases.extendleft(reversed(cases))
        if cases:
            chosen = set(map(id, cases))
            batch[:] = [case for case in batch if id(case) not in chosen]

    def _decide(
        self, replica: Replica, row: QueueRow, total: Any, batch: list[Case], changes: list[Change]
    ) -> None:
        asked = [
            case.case_id for case in batch if self._ask_about_all or case.case_id in replica.recent
        ]
        known = self._store.find_cases(self.queue, asked) if asked else []
        entries = {str(entry.case_id): entry for entry in known}
        fresh = {case.case_id: case for case in reversed(batch) if case.case_id not in entries}
        new = [case for case in batch if fresh.get(case.case_id) is case]
        decided: list[tuple[Case, Entry]] = []
        if new or changes:
            decided = self._write(replica, row, total, new, changes, batch)
        else:
            self._store.rollback()
            self._store.settle()  # what is known may not be on the disk yet
        self._ask_about_all = False
        for case, entry in decided:
            entries[case.case_id] = entry
            self._tell(case, answer_of(entry, repeated=False))
        if len(batch) > len(decided):
            for case in batch:  # who has an answer keeps it
                self._tell(case, _repeated(case, entries[case.case_id]))

    def _write(
        self,
        replica: Replica,
        row: QueueRow,
        total: Any,
        new: list[Case],
        changes: list[Change],
        batch: list[Case],
    ) -> list[tuple[Case, Entry]]:
        """Write a group and commit; return the cases that were decided, and their entries."""
        at, fork = self._moment(row, replica), replica.fork()
        maker = GroupMaker(fork, row, total, at)
        events = [maker.add_change(each.kind, each.body, each.key_id) for each in changes]
        if any(change.kind == MODEL for change in changes):  # the scores are of the old model
            self._put_back(batch, list(batch))
            new = []
        if new:
            maker.add_cases([each.arrival(at) for each in new])
        group = maker.group()
        self._store.commit(group)
        self.replica, fork.seq = fork, group.row.last_seq
        fork.remember([case.case_id for case in new])
        if new:
            fork.watch([case.score for case in new])
        self._usual += (len(new) - self._usual) / 8
        for change, event in zip(changes, events, strict=True):
            where = {"stale": True} if event is None else {"seq": event.seq, "at": event.at}
            self._tell(change, where)
        decided = group.entries[len(group.entries) - len(new) :]  # changes come before cases
        return list(zip(new, decided, strict=True))

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

    def _recover(self, error: Exception, batch: list[Case], changes: list[Change]) -> None:
        """Do what an error asks for: look cases up, refuse, stop, or connect again and repeat."""
        if isinstance(error, ClockError):
            self._store.rollback()
            self._alarm("clock", str(error))
            self._failed, self.ready = True, False
            late = (_take(queue, len(queue)) for queue in (self._cases, self._changes))
            for each in chain(batch, changes, *late):
                self._tell(each, Problem(503, "clock", str(error)))
            return
        self._cases.extendleft(reversed(batch))
        self._changes.extendleft(reversed(changes))
        if isinstance(error, ReplayError):
            self._store.rollback()
            self.stopped, self.replica, self.ready = str(error), None, False
            self._alarm("replay", str(error))
            return
        if isinstance(error, PromiseError) and not self._ask_about_all and batch:
            self._store.rollback()
            self._ask_about_all = True  # one of the cases may be known from long ago
            return
        if isinstance(error, PromiseError):
            self._alarm("promise", f"The database refused a write: {error}")
        elif not isinstance(error, StoreError):
            self._alarm("error", f"{type(error).__name__}: {' '.join(str(error).split())}")
        self._doubt(str(error))

    def _doubt(self, why: str) -> None:
        """Forget what was followed, connect again, and repeat until the cases' time is up."""
        if self._failed and not self._closing:  # again, and no session that was merely lost
            self._log("database", why)
        self._store.close()
        self._connected, self.ready, self._failed = False, False, True
        self.replica = None  # a database that crashed may have lost what nobody was told of
        problem = Problem(503, "unavailable", _public(why))
        for queue in (self._cases, self._changes):
            kept = []
            for each in _take(queue, len(queue)):
                if each.ticket.deadline <= time.monotonic() or self._closing or self.stopped:
                    self._tell(each, problem)
                else:
                    kept.append(each)
            queue.extendleft(reversed(kept))
        time.sleep(0.05)

    def _log(self, kind: str, message: str) -> bool:
        """Write an error to the program's log, unless that was done a moment ago."""
        if time.monotonic() - self._alarmed.get(kind, -math.inf) < _ALARM_EVERY:
            return False
        self._alarmed[kind] = time.monotonic()
        shown = message if kind in _WITHOUT_IDS else "see the alarms of the queue."
        _log.error("Queue %d is not decided (%s): %s", self.queue, kind, shown)
        return True

    def _alarm(self, kind: str, message: str) -> None:
        if not self._log(kind, message):
            return
        try:
            if not self._connected:
                self._store.connect()
            self._store.rollback()
            self._store.raise_alarm(str(self.queue), kind, message, time.time())
        except (StoreError, PromiseError):
            pass  # the alarm is lost with the database, but nothing is decided either


def _repeated(case: Case, entry: Entry) -> Any:
    """Return the first answer to a case, unless it came with other columns now."""
    if entry.digest == case.digest:
        return answer_of(entry, repeated=True)
    detail = f"The case {case.case_id!r:.100} was decided with other columns."
    return Problem(422, "conflict", detail)


def _take(queue: deque[Any], most: int) -> list[Any]:
    return [queue.popleft() for _ in range(min(most, len(queue)))]


def _public(why: str) -> str:
    """Return why nothing could be decided, without what a database says about itself."""
    return why if why.startswith("This process") else "The database cannot be reached."
