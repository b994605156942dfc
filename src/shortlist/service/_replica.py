"""A controller that follows the log of a queue: every process that reads the log decides alike.

Entries of the same version of the program (its *build*) are decided again and compared, bit for
bit. Another version may compute differently in the last digit. Its decisions are taken as they are:
their scores are observed and their flags are counted. A version begins with an entry that holds its
state, so that all its processes, and an audit years later, start from the same numbers.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby, pairwise
from typing import Any, NamedTuple

import numpy as np

from .._core import probing
from .._core.arrays import Floats
from .._core.work import reaches
from ..online import BudgetController, Controller, DriftAlarm
from ..online.decisions import (
    MOMENT_REFUSED,
    PROBE,
    PROBE_WITHOUT_SLOT,
    REASONS,
    USED_UP_ELSEWHERE,
    is_flag,
)
from ._models import calibration_of
from .config import SteadyClock
from .settings import QueueSettings, build_name, first_controller
from .store import (
    BUILD,
    CAPACITY,
    COMMAND,
    DECISION,
    MODEL,
    OBSERVATION,
    Entry,
    Group,
    QueueRow,
    Store,
)

__all__ = [
    "NOT_WORTH",
    "REFUSED_BY_COUNT",
    "Decided",
    "Items",
    "ReplayError",
    "Replica",
    "drawn_of",
    "join_queue",
    "make_queue",
    "reason_of",
]

#: The code of an item that the controller would flag, but that the counts in the database do not
#: allow: a shared total is used up, or another version has used the last flag.
REFUSED_BY_COUNT = USED_UP_ELSEWHERE
#: The code of an item that is worth less than a slot; the controller does not see it.
NOT_WORTH = 100
_MOST_RECENT = 200_000
_LARGE, _WATCHED_TOGETHER = 16, 256  # scores
_JUMPS = 4  # moments that a controller refuses before it believes them

Calibration = Callable[[int], Floats]


class ReplayError(Exception):
    """The log contains a decision that its own version of the program would not have made."""


def reason_of(code: int) -> str:
    """Return the reason for a decision in words."""
    if code == NOT_WORTH:
        return "not worth a slot"
    return "capacity used up" if code == REFUSED_BY_COUNT else REASONS[code]


def drawn_of(entry: Entry) -> tuple[str, float | None]:
    """Return how a case was selected, and with which probability; only with probes."""
    if entry.slot is not None:
        return (probing.PROBE if entry.code == PROBE else probing.BY_SCORE), entry.inclusion
    is_left_out = entry.code == PROBE_WITHOUT_SLOT
    return (probing.PROBE_WITHOUT_SLOT if is_left_out else probing.NOT_SELECTED), entry.inclusion


class Items(NamedTuple):
    """Items in order: their scores, ids and moments, and their efforts if they are counted."""

    scores: Floats
    ids: list[Any]
    at: Floats
    efforts: Floats | None

    @classmethod
    def of(cls, run: list[Entry], *, with_efforts: bool) -> Items:
        """Return the items of decisions in the log."""
        scores = np.array([entry.score for entry in run], dtype=np.float64)
        efforts = np.array([e.effort for e in run], dtype=np.float64) if with_efforts else None
        moments = [float(e.body or 0) if e.code == MOMENT_REFUSED else e.at for e in run]
        return cls(scores, [e.case_id for e in run], np.array(moments), efforts)

    def between(self, start: int, stop: int) -> Items:
        """Return neighbouring items."""
        part = slice(start, stop)
        efforts = None if self.efforts is None else self.efforts[part]
        return Items(self.scores[part], self.ids[part], self.at[part], efforts)

    def where(self, chosen: Any) -> Items:
        """Return some of the items."""
        ids = [id for id, is_chosen in zip(self.ids, chosen.tolist(), strict=True) if is_chosen]
        efforts = None if self.efforts is None else self.efforts[chosen]
        return Items(self.scores[chosen], ids, self.at[chosen], efforts)


class Decided(NamedTuple):
    """What a controller says about items: codes of reasons, thresholds, chances of a flag."""

    codes: list[int]
    thresholds: list[float]
    inclusions: list[float] | None


class Replica:
    """The controller of a queue after an entry of its log.

    Parameters
    ----------
    build : int
        The number of this version of the program.
    controller : BudgetController
        Its state after entry `seq`.
    seq : int
        The last entry that the controller knows.
    model : int
        The model in force; 0 in a stream, which has no model in the database.
    calibration_of : callable
        Returns the calibration scores of a model.
    settings : QueueSettings
        How the queue decides.
    """

    def __init__(
        self,
        build: int,
        controller: Controller,
        *,
        seq: int,
        model: int,
        calibration_of: Calibration,
        settings: QueueSettings,
    ) -> None:
        self.settings = settings
        self.build, self.controller, self.seq, self.model = build, controller, seq, model
        self._calibration_of = calibration_of
        self.drift = None if not model else DriftAlarm(calibration_of(model))
        self._unwatched: list[float] = []
        #: The latest cases of the log, the oldest first; whoever is missing may be older.
        self.recent: dict[str, None] = {}

    def fork(self) -> Replica:
        """Return a copy that may be thrown away: a rewind is to keep the original."""
        other = copy.copy(self)
        other.controller = self.controller.copy()
        return other

    def state(self) -> str:
        """Return the state of the controller as text, with the model in force."""
        return json.dumps({"model": self.model, "controller": self.controller.state()})

    @classmethod
    def from_state(
        cls,
        build: int,
        seq: int,
        state: str,
        calibration_of: Calibration,
        settings: QueueSettings,
    ) -> Replica:
        """Read what :meth:`state` returned."""
        saved = json.loads(state)
        return cls(
            build,
            Controller.from_state(saved["controller"]),
            seq=seq,
            model=saved["model"],
            calibration_of=calibration_of,
            settings=settings,
        )

    # --- following -----------------------------------------------------------------------------

    def follow(self, entries: list[Entry]) -> None:
        """Go through entries of the log; raise an error if they are not the next ones or differ."""
        for run in _runs(entries):
            first = run[0]
            if first.seq != self.seq + 1:
                raise ReplayError(f"The log jumps from entry {self.seq} to entry {first.seq}.")
            self.remember([entry.case_id for entry in run if entry.case_id is not None])
            if first.kind != DECISION:
                self.apply(first)
            elif first.build == self.build or self.settings.is_guarded:
                self._decide_again(run)
            else:
                self._take_over(run)
            self.seq = run[-1].seq

    def remember(self, cases: Iterable[str]) -> None:
        """Remember that cases are in the log."""
        self.recent.update(dict.fromkeys(cases))
        while len(self.recent) > _MOST_RECENT:
            del self.recent[next(iter(self.recent))]

    def watch(self, scores: list[float]) -> None:
        """Let the alarm see scores; those of large groups together, because that is faster."""
        if self.drift is None:
            return
        self._unwatched = [*self._unwatched, *scores]
        if len(scores) < _LARGE or len(self._unwatched) >= _WATCHED_TOGETHER:
            self.drift.update(self._unwatched)
            self._unwatched = []

    def apply(self, event: Entry) -> None:
        """Make the change that an event records."""
        if event.kind == BUILD:
            return
        body = json.loads(event.body or "{}")
        if event.kind == CAPACITY:
            self.controller.set_capacity(self.settings.capacity(body), at=body["from"])
        elif event.kind == MODEL:
            calibration = self._calibration_of(body["model"])
            self.controller.swap_model(calibration)
            self.model, self.drift = body["model"], DriftAlarm(calibration)
            self._unwatched = []
        elif event.kind == OBSERVATION:
            scores = np.array(body["scores"], dtype=np.float64)
            _believe(self.controller, float(scores[0]), event.at)
            self.controller.observe(scores, at=event.at)

    def decide(self, items: Items) -> Decided:
        """Decide about items of one period; only the first of them can be a jump in time."""
        if self.settings.worth is None:
            return self._decide(items)
        enough = reaches(items.scores, self.settings.worth)
        if enough.all():
            return self._decide(items)
        n, judged = items.scores.size, self._decide(items.where(enough)) if enough.any() else None
        columns = [np.full(n, NOT_WORTH), np.full(n, self.settings.worth), np.zeros(n)]
        for column, known in zip(columns, judged or (), strict=False):
            if known is not None:
                column[enough] = known
        codes, thresholds, inclusions = (column.tolist() for column in columns)
        return Decided(codes, thresholds, inclusions if self.controller.has_probes else None)

    def _decide(self, items: Items) -> Decided:
        if not self.settings.is_guarded:
            _believe(self.controller, float(items.scores[0]), float(items.at[0]))
        if not self.controller.has_probes:
            return self._decide_part(items, None)
        # A controller that draws takes ids for all of its items, or for none.
        named = np.array([id is not None for id in items.ids], dtype=bool)
        borders = [0, *(np.flatnonzero(np.diff(named)) + 1).tolist(), named.size]
        parts = [items.between(*both) for both in pairwise(borders)]
        decided = [self._decide_part(p, None if p.ids[0] is None else p.ids) for p in parts]
        return Decided(
            *(list(chain.from_iterable(column)) for column in zip(*decided, strict=True))
        )

    def _decide_part(self, items: Items, ids: list[Any] | None) -> Decided:
        at = items.at if self.controller.is_timed else None
        decided = self.controller.decide_many(items.scores, at=at, ids=ids, efforts=items.efforts)
        inclusions = decided.probabilities.tolist() if self.controller.has_probes else None
        return Decided(decided.codes.tolist(), decided.thresholds.tolist(), inclusions)

    def _items(self, run: list[Entry]) -> Items:
        return Items.of(run, with_efforts=self.settings.of_work)

    def _decide_again(self, run: list[Entry]) -> None:
        items = self._items(run)
        decided = self.decide(items)
        same_codes = [entry.code for entry in run] == decided.codes or all(
            map(_agrees, run, decided.codes)
        )
        if not same_codes or [entry.threshold for entry in run] != decided.thresholds:
            raise ReplayError(
                f"Entries {run[0].seq} to {run[-1].seq} of the log differ from what this version "
                "of the program decides from the same scores."
            )
        self.watch(items.scores.tolist())

    def _take_over(self, run: list[Entry]) -> None:
        """Observe what another version decided, and count its flags."""
        self.watch(self._items(run).scores.tolist())
        seen = [entry for entry in run if entry.code != NOT_WORTH]
        if not seen:
            return
        items, flagged = self._items(seen), [entry for entry in seen if entry.slot is not None]
        assert isinstance(self.controller, BudgetController)  # streams decide again
        _believe(self.controller, float(items.scores[0]), float(items.at[0]))
        self.controller.observe(items.scores, at=items.at)
        if self.settings.of_work:
            self.controller.count_work(np.array([entry.effort for entry in flagged], np.float64))
            return
        drawn = sum(entry.code == PROBE for entry in flagged)
        self.controller.count_flags(len(flagged) - drawn, probes=drawn)


def _agrees(entry: Entry, code: int) -> bool:
    """Whether an entry is what a controller says; the counts of the database may have refused."""
    return entry.code == code or (entry.code == REFUSED_BY_COUNT and bool(is_flag(code)))


def _runs(entries: list[Entry]) -> Iterator[list[Entry]]:
    """Split entries into single events, and decisions of one version in one period."""
    for (kind, *_), run in groupby(entries, key=lambda each: (each.kind, each.build, each.period)):
        members = list(run)
        if kind == DECISION:
            yield members
        else:
            yield from ([event] for event in members)


def _believe(controller: Controller, score: float, at: float) -> None:
    """Let the clock follow a long pause: whoever wrote the moment has checked it."""
    if math.inf > at - controller.now > controller.farthest_jump:
        for _ in range(_JUMPS):
            controller.observe(score, at=at)


_LONGEST_HISTORY = 20_000


def make_queue(
    store: Store,
    name: str,
    settings: QueueSettings,
    controller: Controller,
    *,
    at: float,
    model: int = 0,
    total: str | None = None,
    build: str | None = None,
    **more: Any,
) -> int:
    """Make a queue, unless it is there; return its number.

    Its log begins with its capacity, its model and the state of its controller, and `more` that is
    kept beside the state.
    """
    number = store.find_build(build or build_name())
    state = json.dumps({"model": model, "controller": controller.state(), **more})
    capacity = {settings.unit: controller.capacity.to_json()["value"], "from": at}
    bodies = [(CAPACITY, json.dumps(capacity)), (BUILD, state)]
    if model:
        bodies.insert(1, (MODEL, json.dumps({"model": model})))
    with store.write():
        there = store.query("SELECT id FROM queue WHERE name = ?", name)
        if there:
            return int(there[0][0])
        [(last,)] = store.query("SELECT coalesce(max(id), 0) FROM queue")
        store.query(
            "INSERT INTO queue (id, name, settings, total, capacity, of_work, last_seq, "
            "high_water) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            last + 1, name, settings.to_json(), total, settings.allowed_by(controller.capacity),
            int(settings.of_work and settings.is_capped), len(bodies), at,
        )  # fmt: skip
        for place, (kind, body) in enumerate(bodies, 1):
            store.query(
                "INSERT INTO log (queue, seq, kind, build, at, period, model, key_id, body) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                last + 1, place, kind, number, at, settings.periods.number(at), model or None,
                COMMAND, body,
            )  # fmt: skip
        store.query(
            "INSERT INTO snapshot (queue, build, seq, state) VALUES (?, ?, ?, ?)",
            last + 1, number, len(bodies), state,
        )  # fmt: skip
        return int(last) + 1


def join_queue(store: Store, queue: int, build: str, clock: SteadyClock) -> Replica:
    """Return the controller of a queue as of some entry; the caller follows the log from there.

    A version of the program that is new to the queue first writes its state into the log.
    """
    number = store.find_build(build)
    if (saved := _saved(store, queue, number)) is not None:
        return saved
    row, entries, _ = store.begin(queue, 0)
    try:
        if (saved := _saved(store, queue, number)) is not None:  # another process was faster
            store.rollback()
            return saved
        replica = _first(store, number, row, entries)
        at = max(clock.read(witness=store.clock()), row.high_water)
        seq, state = row.last_seq + 1, replica.state()
        period = QueueSettings.from_json(row.settings).periods.number(at)
        event = Entry(queue, seq, BUILD, number, at, period, model=replica.model, body=state)
        after = row._replace(last_seq=seq, high_water=at)
        store.commit(Group(after, [event], snapshot=(number, state)))
    except BaseException:
        store.rollback()
        raise
    return _loaded(store, row.settings, number, seq, state)


def _saved(store: Store, queue: int, build: int) -> Replica | None:
    saved = store.query(
        "SELECT queue.settings, snapshot.build, snapshot.seq, snapshot.state FROM snapshot "
        "JOIN queue ON queue.id = snapshot.queue WHERE snapshot.queue = ? AND build = ?",
        queue,
        build,
    )
    return _loaded(store, *saved[0]) if saved else None


def _loaded(store: Store, settings: str, build: int, seq: int, state: str) -> Replica:
    return Replica.from_state(
        build, seq, state, lambda id: calibration_of(store, id), QueueSettings.from_json(settings)
    )


def _first(store: Store, build: int, row: QueueRow, entries: list[Entry]) -> Replica:
    """Continue from the latest state of another version, or from the latest part of the log."""
    others = store.query("SELECT seq, state FROM snapshot WHERE queue = ? ORDER BY seq", row.id)
    replica = None
    for seq, state in reversed(others):
        try:
            replica = _loaded(store, row.settings, build, seq, state)
            break
        except (ValueError, KeyError, AssertionError):
            continue  # a state of a version that this one cannot read
    if replica is None:
        replica = _from_history(store, build, row, entries)
    replica.follow([entry for entry in entries if entry.seq > replica.seq])
    return replica


def _from_history(store: Store, build: int, row: QueueRow, entries: list[Entry]) -> Replica:
    start = max(0, len(entries) - _LONGEST_HISTORY)
    before = entries[:start] or entries[:2]
    model = max((e.seq, json.loads(e.body or "{}")["model"]) for e in before if e.kind == MODEL)[1]
    settings = QueueSettings.from_json(row.settings)
    changes = [(e.seq, json.loads(e.body or "{}")) for e in before if e.kind == CAPACITY]
    amount = max(changes, key=lambda change: change[0])[1][settings.unit]
    controller = first_controller(settings, amount, calibration_of(store, model))
    return Replica(
        build, controller, seq=before[-1].seq, model=model, settings=settings,
        calibration_of=lambda id: calibration_of(store, id),
    )  # fmt: skip
