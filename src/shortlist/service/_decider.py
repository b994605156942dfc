"""Deciding in groups: one transaction for all cases that wait, and no answer before its commit.

Two threads work for a queue. One scores what waits, in batches. The other locks the queue's row,
then takes what has been scored by then, follows the log, decides, writes and commits. If anything
is in doubt, it keeps its old state, connects again, reads what the log says, and repeats; the ids
of the cases make that harmless.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from ._clock import ClockError, SteadyClock
from ._follower import Follower, QueueSettings, ReplayError
from ._group import GroupMaker, answer_all, sort_out
from ._joining import join_queue
from ._models import ModelShelf
from ._store import MODEL, PromiseError, QueueRow, Store, StoreError
from ._waiting import Change, Failure, Ticket, Waiting

__all__ = ["Decider"]

MOST_IN_A_GROUP = 512
_MOST_WAITING = 20_000
_ALARM_EVERY = 5.0  # seconds


class Decider:
    """Decides about the cases of one queue in this process.

    Parameters
    ----------
    queue : int
        The number of the queue.
    store : Store
        For the deciding thread only; it connects by itself.
    shelf : ModelShelf
        The models.
    kernel : str
        This version of the program, see :func:`kernel_name`.
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
        shelf: ModelShelf,
        *,
        kernel: str,
        deliver: Callable[[list[Ticket]], None],
        clock: SteadyClock,
        accept_clock: bool = False,
        patience: float = 5.0,
    ) -> None:
        self.queue, self._store, self._shelf, self._kernel_name = queue, store, shelf, kernel
        self._deliver, self._clock, self._accept = deliver, clock, accept_clock
        self.patience = patience
        self._unscored: deque[Waiting] = deque()
        self._scored: deque[Waiting] = deque()
        self._changes: deque[Change] = deque()
        self._wake_scorer, self._wake_decider = threading.Event(), threading.Event()
        self._follower: Follower | None = None
        self._wanted_model = 0
        self._connected = self._closing = False
        self.stopped: str | None = None
        self.id_fields: tuple[str, ...] = ("id",)
        self.ready = False
        self.groups = self.decided = self.doubts = 0
        self._alarmed: dict[str, float] = {}
        # Cases that this process has seen in the log are looked up. An older one is refused by the
        # database when it is inserted again; then all cases of the group are looked up.
        self._ask_about_all = False
        self._threads = [
            threading.Thread(target=self._score_loop, name=f"score {queue}", daemon=True),
            threading.Thread(target=self._decide_loop, name=f"decide {queue}", daemon=True),
        ]

    # --- for the event loop --------------------------------------------------------------------

    def start(self) -> None:
        """Start both threads."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Finish what waits, and end both threads."""
        self._closing = True
        self._wake_scorer.set()
        self._wake_decider.set()
        for thread in self._threads:
            thread.join(self.patience)

    @property
    def n_waiting(self) -> int:
        """How many cases wait."""
        return len(self._unscored) + len(self._scored)

    @property
    def follower(self) -> Follower | None:
        """The controller as this process knows it, for reading only."""
        return self._follower

    def submit(self, cases: list[Waiting]) -> bool:
        """Let cases wait for their answers; False if too many wait already."""
        if self.n_waiting > _MOST_WAITING or self._closing:
            return False
        self._unscored.extend(cases)
        self._wake_scorer.set()
        return True

    def change(self, change: Change) -> None:
        """Let a change wait for its place in the log."""
        self._changes.append(change)
        self._wake_decider.set()

    # --- scoring -------------------------------------------------------------------------------

    def _score_loop(self) -> None:
        while not (self._closing and not self._unscored):
            self._wake_scorer.wait(0.5)
            self._wake_scorer.clear()
            while self._unscored:
                batch = _take(self._unscored, MOST_IN_A_GROUP)
                finished: list[Ticket] = []
                if not self._wanted_model:  # nothing is known about the queue yet
                    self._expire(batch, finished)
                    self._unscored.extendleft(reversed(batch))
                    time.sleep(0.01)
                else:
                    self._scored.extend(self._score(batch, finished))
                self._wake_decider.set()
                if finished:
                    self._deliver(finished)

    def _score(self, batch: list[Waiting], finished: list[Ticket]) -> list[Waiting]:
        """Return the cases that have a score now; others are told what is wrong."""
        try:
            model = self._shelf.get(self._wanted_model)
        except (ValueError, StoreError, PromiseError, ImportError) as error:
            for case in batch:
                case.answer(Failure(503, "no-model", str(error)), finished)
            return []
        self.id_fields = model.id_fields
        valid = []
        for case in batch:
            case.model, case.columns = model.id, model.read(case.fields)
            if case.columns.error is None:
                valid.append(case)
            else:
                case.answer(Failure(422, "invalid-case", case.columns.error), finished)
        return self._score_valid(model, valid, finished)

    def _score_valid(self, model: Any, valid: list[Waiting], finished: list[Ticket]) -> list[Any]:
        try:
            scores = model.score([case.columns.item for case in valid]) if valid else []
        except Exception as error:
            if len(valid) == 1:
                detail = " ".join(str(error).split()) or type(error).__name__
                valid[0].answer(Failure(422, "invalid-case", detail), finished)
                return []
            # One case may be at fault: find it.
            alone = [self._score_valid(model, [case], finished) for case in valid]
            return [case for part in alone for case in part]
        for case, score in zip(valid, scores, strict=True):
            case.score = float(score)
        return valid

    # --- deciding ------------------------------------------------------------------------------

    def _decide_loop(self) -> None:
        while not (self._closing and not self.n_waiting and not self._changes):
            if not (self._scored or self._changes):
                self._wake_decider.wait(0.5 if self.ready else 0.05)
            self._wake_decider.clear()
            finished: list[Ticket] = []
            self._round(finished)
            if finished:
                self._deliver(finished)
        self._store.close()

    def _round(self, finished: list[Ticket]) -> None:
        """Decide about one group, or find out why not."""
        batch: list[Waiting] = []
        changes: list[Change] = []
        try:
            follower = self._join()
            if not (self._scored or self._changes):
                return
            row, entries, total = self._store.begin(self.queue, follower.seq)
            follower.follow(entries)
            self._wanted_model = follower.model
            changes = _take(self._changes, MOST_IN_A_GROUP)
            batch = self._drain(follower)
            self._decide(follower, row, total, batch, changes, finished)
        except StoreError as error:
            self._in_doubt(str(error), batch, changes, finished)
        except PromiseError as error:
            self._refused(str(error), batch, changes, finished)
        except ClockError as error:
            self._store.rollback()
            self._alarm("clock", str(error))
            waiting = [*batch, *changes, *_take(self._scored, len(self._scored))]
            _fail(waiting, Failure(503, "clock", str(error)), finished)
        except ReplayError as error:
            self._store.rollback()
            self.stopped, self._follower, self.ready = str(error), None, False
            self._alarm("replay", str(error))

    def _refused(
        self, why: str, batch: list[Waiting], changes: list[Change], finished: list[Ticket]
    ) -> None:
        """Ask the database about all cases: one of them may be known from long ago."""
        if not self._ask_about_all and batch:
            self._store.rollback()
            self._ask_about_all = True
            self._scored.extendleft(reversed(batch))
            self._changes.extendleft(reversed(changes))
            return
        self._follower = None
        self._alarm("promise", f"The database refused a write: {why}")
        self._in_doubt(why, batch, changes, finished)

    def _join(self) -> Follower:
        """Return the controller of the queue, after connecting and reading if need be."""
        if self.stopped is not None:
            raise StoreError(f"This process has stopped deciding. {self.stopped}")
        if not self._connected:
            self._store.connect()
            self._connected = True
        if self._follower is None:
            self._follower = join_queue(self._store, self.queue, self._kernel_name, self._clock)
            self._wanted_model = self._follower.model
        if not self.ready:
            self.id_fields = self._shelf.get(self._follower.model).id_fields
            self.ready = True
        return self._follower

    def _drain(self, follower: Follower) -> list[Waiting]:
        """Take what has been scored; cases with a score of another model are scored again."""
        batch = _take(self._scored, MOST_IN_A_GROUP)
        again = [case for case in batch if case.model != follower.model]
        if again:
            self._unscored.extendleft(reversed(again))
            self._wake_scorer.set()
            return [case for case in batch if case.model == follower.model]
        return batch

    def _decide(
        self,
        follower: Follower,
        row: QueueRow,
        total: Any,
        batch: list[Waiting],
        changes: list[Change],
        finished: list[Ticket],
    ) -> None:
        asked = [
            case.case_id for case in batch if self._ask_about_all or case.case_id in follower.recent
        ]
        known = self._store.find_cases(self.queue, asked) if asked else []
        fresh, repeats = sort_out(batch, {str(entry.case_id): entry for entry in known}, finished)
        if not fresh and not changes:
            self._store.rollback()
            self._ask_about_all = False
            return
        at = self._moment(row, follower)
        fork = follower.fork()
        maker = GroupMaker(fork, row, total, at, QueueSettings.from_json(row.settings))
        for change in changes:
            maker.add_change(change)
        if any(change.kind == MODEL for change in changes):  # the scores are of the old model
            self._unscored.extendleft(reversed([*fresh, *repeats]))
            fresh, repeats = [], []
        if fresh:
            maker.add_cases(fresh)
        group = maker.group()
        self._store.commit(group)
        fork.seq, self._ask_about_all = group.row.last_seq, False
        fork.remember(case.case_id for case in fresh)
        self._follower, self._wanted_model = fork, fork.model
        if fresh:
            fork.drift.update([case.score for case in fresh])
        self.groups, self.decided = self.groups + 1, self.decided + len(fresh)
        answer_all(group, fresh, repeats, changes, finished)

    def _moment(self, row: QueueRow, follower: Follower) -> float:
        now = self._clock.read(witness=self._store.clock())
        ahead, farthest = now - row.high_water, follower.controller.farthest_jump
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
        """Keep the old state, connect again, and repeat until the cases' time is up."""
        self._store.close()
        self._connected = self.ready = False
        self.doubts += 1
        self._scored.extendleft(reversed(batch))
        self._changes.extendleft(reversed(changes))
        for queue in (self._unscored, self._scored, self._changes):
            kept = []
            for case in _take(queue, len(queue)):
                if case.deadline <= time.monotonic() or self._closing or self.stopped:
                    case.answer(Failure(503, "unavailable", _public(why)), finished)
                else:
                    kept.append(case)
            queue.extendleft(reversed(kept))
        time.sleep(0.05)

    def _expire(self, batch: list[Waiting], finished: list[Ticket]) -> None:
        for case in [each for each in batch if each.deadline <= time.monotonic()]:
            case.answer(Failure(503, "unavailable", "The service is not ready."), finished)
            batch.remove(case)

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
