"""Deciding in groups: one transaction for all cases that wait, and no answer before its commit.

One thread works for a queue. It locks the queue's row, then takes what waits by then, follows the
log, scores, decides, writes and commits. If anything is in doubt, it connects again, reads what the
log says, and repeats; the ids of the cases make that harmless.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from ._group import GroupMaker, join_queue
from ._models import ModelCache
from ._replica import Items, ReplayError, Replica
from ._waiting import Change, Failure, Scorer, Ticket, Waiting, answer_all, sort_out
from .config import ClockError, SteadyClock
from .store import MODEL, Entry, PromiseError, QueueRow, Store, StoreError

__all__ = ["Decider"]

MOST_IN_A_GROUP = 1_024  # the longest list is one group, if nothing else waits
_MANY = 64  # cases
_MOST_WAITING = 20_000
_ALARM_EVERY = 5.0  # seconds
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
    build : str
        This version of the program, see :func:`build_name`.
    deliver : callable
        Called with a list of finished tickets, from another thread.
    clock : SteadyClock
        When cases arrive.
    accept_clock : bool, default=False
        Whether the clock may be far ahead of the last decision.
    patience : float, default=5
        Seconds after which a case that cannot be decided is told so.
    """

    def __init__(
        self,
        queue: int,
        store: Store,
        models: ModelCache,
        *,
        build: str,
        deliver: Callable[[list[Ticket]], None],
        clock: SteadyClock,
        accept_clock: bool = False,
        patience: float = 5.0,
    ) -> None:
        self.queue, self._store, self._models, self._build_name = queue, store, models, build
        self._deliver, self._clock, self._accept = deliver, clock, accept_clock
        self.patience = patience
        self._scorer = Scorer(models)
        self._cases: deque[Waiting] = deque()
        self._changes: deque[Change] = deque()
        self._wake = threading.Event()
        self._usual = 0.0  # cases in a group
        self._replica: Replica | None = None
        self._settled = 0  # the last entry of the log that is surely on the disk
        self._connected = self._closing = False
        self.stopped: str | None = None
        self.id_fields: tuple[str, ...] = ("id",)
        self.ready = False
        self.groups = self.decided = self.doubts = 0
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
        self._thread.join(self.patience)

    @property
    def n_waiting(self) -> int:
        """How many cases wait."""
        return len(self._cases)

    @property
    def replica(self) -> Replica | None:
        """The controller as this process knows it, for reading only."""
        return self._replica

    def submit(self, cases: list[Waiting]) -> bool:
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
            finished: list[Ticket] = []
            self._round(finished)
            if finished:
                self._deliver(finished)
        self._store.close()

    def _gather(self) -> None:
        """Wait for a case; under load, let a few more arrive rather than write a small group."""
        if not (self._cases or self._changes):
            self._wake.wait(0.5 if self.ready else 0.05)
        if 0 < len(self._cases) < self._usual / 2 and not self._closing:
            time.sleep(_GATHERING)  # an event would wake this thread for every single case
        self._wake.clear()

    def _round(self, finished: list[Ticket]) -> None:
        """Decide about one group, or find out why not."""
        batch: list[Waiting] = []
        changes: list[Change] = []
        try:
            replica = self._join()
            if not (self._cases or self._changes):
                return
            # Others may have the lock while many cases are scored, or one case slowly.
            if not self._scorer.is_quick or len(self._cases) >= _MANY:
                batch = self._scored(replica.model, finished)
            row, entries, total = self._store.begin(self.queue, replica.seq)
            if row.last_seq < replica.seq:
                raise StoreError("The database has lost entries since they were read.")
            replica.follow(entries)
            changes = _take(self._changes, MOST_IN_A_GROUP)
            if self._scorer.is_quick:
                batch += self._scored(replica.model, finished, beside=len(batch))
            batch = self._still_scored(batch, replica.model)
            self._decide(replica, row, total, batch, changes, finished)
        except StoreError as error:
            self._in_doubt(str(error), batch, changes, finished)
        except PromiseError as error:
            self._refused(str(error), batch, changes, finished)
        except ClockError as error:
            self._store.rollback()
            self._alarm("clock", str(error))
            waiting = [*batch, *changes, *_take(self._cases, len(self._cases))]
            _fail(waiting, Failure(503, "clock", str(error)), finished)
        except ReplayError as error:
            self._store.rollback()
            self._cases.extendleft(reversed(batch))
            self.stopped, self._replica, self.ready = str(error), None, False
            self._alarm("replay", str(error))
        except Exception as error:  # a thread that ends would leave every case without an answer
            self._replica = None
            self._alarm("error", f"{type(error).__name__}: {' '.join(str(error).split())}")
            self._in_doubt(str(error), batch, changes, finished)

    def _refused(
        self, why: str, batch: list[Waiting], changes: list[Change], finished: list[Ticket]
    ) -> None:
        """Ask the database about all cases: one of them may be known from long ago."""
        if not self._ask_about_all and batch:
            self._store.rollback()
            self._ask_about_all = True
            self._cases.extendleft(reversed(batch))
            self._changes.extendleft(reversed(changes))
            return
        self._replica = None
        self._alarm("promise", f"The database refused a write: {why}")
        self._in_doubt(why, batch, changes, finished)

    def _join(self) -> Replica:
        """Return the controller of the queue, after connecting and reading if need be."""
        if self.stopped is not None:
            raise StoreError(f"This process has stopped deciding. {self.stopped}")
        if not self._connected:
            self._store.connect()
            self._connected = True
        if self._replica is None:
            self._replica = join_queue(self._store, self.queue, self._build_name, self._clock)
        if not self.ready:
            self.id_fields = self._models.get(self._replica.model).id_fields
            self.ready = True
        return self._replica

    def _scored(self, model: int, finished: list[Ticket], *, beside: int = 0) -> list[Waiting]:
        """Take what waits, as far as it fits into a group beside others, and score it."""
        return self._scorer.score(_take(self._cases, MOST_IN_A_GROUP - beside), model, finished)

    def _still_scored(self, batch: list[Waiting], model: int) -> list[Waiting]:
        """Put cases back whose scores are of a model that is no longer in force."""
        self._cases.extendleft(reversed([case for case in batch if case.model != model]))
        return [case for case in batch if case.model == model]

    def _decide(
        self,
        replica: Replica,
        row: QueueRow,
        total: Any,
        batch: list[Waiting],
        changes: list[Change],
        finished: list[Ticket],
    ) -> None:
        asked = [
            case.case_id for case in batch if self._ask_about_all or case.case_id in replica.recent
        ]
        known = self._store.find_cases(self.queue, asked) if asked else []
        batch = self._postpone(batch, known)
        fresh, repeats = sort_out(batch, {str(entry.case_id): entry for entry in known}, finished)
        if not fresh and not changes:
            self._store.rollback()
            self._ask_about_all = False
            if self._cases and not self._store.settles_at_once:
                self._store.settle()
                self._settled = row.last_seq
            return
        at = self._moment(row, replica)
        fork = replica.fork()
        maker = GroupMaker(fork, row, total, at)
        events = [maker.add_change(each.kind, each.body, each.key_id) for each in changes]
        if any(change.kind == MODEL for change in changes):  # the scores are of the old model
            self._cases.extendleft(reversed([*fresh, *repeats]))
            fresh, repeats = [], []
        if fresh:
            maker.add_cases(fresh, self._items(fresh, at, replica))
        group = maker.group()
        self._store.commit(group)
        self._settled = group.row.last_seq
        fork.seq, self._ask_about_all = group.row.last_seq, False
        fork.remember(case.case_id for case in fresh)
        self._replica = fork
        if fresh:
            fork.watch([case.score for case in fresh])
        self._usual += (len(fresh) - self._usual) / 8
        self.groups, self.decided = self.groups + 1, self.decided + len(fresh)
        answer_all(group, fresh, repeats, finished)
        for change, event in zip(changes, events, strict=True):
            stale = {"stale": True}
            change.answer(stale if event is None else {"seq": event.seq, "at": event.at}, finished)

    def _items(self, fresh: list[Waiting], at: float, replica: Replica) -> Items:
        return Items(
            [case.score for case in fresh],
            [case.case_id for case in fresh],
            [at] * len(fresh),
            [case.effort for case in fresh],
        )

    def _postpone(self, batch: list[Waiting], known: list[Entry]) -> list[Waiting]:
        """Put cases back that were decided, but in a group that may not be on the disk yet."""
        if self._store.settles_at_once:
            return batch
        early = {entry.case_id for entry in known if entry.seq > self._settled}
        self._cases.extendleft(reversed([case for case in batch if case.case_id in early]))
        return [case for case in batch if case.case_id not in early] if early else batch

    def _moment(self, row: QueueRow, replica: Replica) -> float:
        now = self._clock.read(witness=self._store.clock())
        ahead, farthest = now - row.high_water, replica.controller.farthest_jump
        if ahead > farthest and not self._accept:
            raise ClockError(
                f"The clock is {ahead / 86_400:,.1f} days ahead of the last decision, more than "
                f"{farthest / 86_400:,.0f}. If the pause was real, start with --accept-clock."
            )
        return max(now, row.high_water)

    # --- what goes wrong -----------------------------------------------------------------------

    def _in_doubt(
        self, why: str, batch: list[Waiting], changes: list[Change], finished: list[Ticket]
    ) -> None:
        """Forget what was followed, connect again, and repeat until the cases' time is up."""
        self._store.close()
        self._connected = self.ready = False
        self._replica = None  # a database that crashed may have lost what nobody was told of
        self.doubts += 1
        self._cases.extendleft(reversed(batch))
        self._changes.extendleft(reversed(changes))
        for queue in (self._cases, self._changes):
            kept = []
            for case in _take(queue, len(queue)):
                if case.deadline <= time.monotonic() or self._closing or self.stopped:
                    case.answer(Failure(503, "unavailable", _public(why)), finished)
                else:
                    kept.append(case)
            queue.extendleft(reversed(kept))
        time.sleep(0.05)

    def _alarm(self, kind: str, message: str) -> None:
        if time.monotonic() - self._alarmed.get(kind, -math.inf) < _ALARM_EVERY:
            return
        self._alarmed[kind] = time.monotonic()
        try:
            if not self._connected:
                self._store.connect()
            self._store.rollback()
            self._store.raise_alarm(str(self.queue), kind, message, time.time())
        except (StoreError, PromiseError):
            pass  # the alarm is lost with the database, but nothing is decided either


def _fail(waiting: list[Any], failure: Failure, finished: list[Ticket]) -> None:
    for each in waiting:
        each.answer(failure, finished)


def _take(queue: deque[Any], most: int) -> list[Any]:
    return [queue.popleft() for _ in range(min(most, len(queue)))]


def _public(why: str) -> str:
    """Return why nothing could be decided, without what a database says about itself."""
    return why if why.startswith("This process") else "The database cannot be reached."
