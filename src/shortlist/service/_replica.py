"""A controller that follows the log of a queue: every process that reads the log decides alike.

Entries of the same version of the program (its *build*) are decided again and compared, bit for
bit. Another version may compute differently in the last digit: its cases are decided again for what
they teach, and the counts in the database bound the flags of all versions together. A version
begins with an entry that holds its state, so that all its processes, and an audit years later,
start from the same numbers.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from typing import Any, NamedTuple

import numpy as np

from .._core import probing
from .._core.work import reaches
from ..online import Controller, DriftAlarm
from ..online.decisions import (
    MOMENT_REFUSED,
    PROBE,
    PROBE_WITHOUT_SLOT,
    REASONS,
    USED_UP_ELSEWHERE,
    is_flag,
)
from ._models import calibration_of
from .settings import QueueSettings
from .store import BUILD, CAPACITY, DECISION, MODEL, OBSERVATION, Entry, Store

__all__ = [
    "NOT_WORTH",
    "REFUSED_BY_COUNT",
    "Items",
    "ReplayError",
    "Replica",
    "drawn_of",
    "reason_of",
]

#: The code of an item that the controller would flag, but that the counts in the database do not
#: allow: a shared total is used up, or another version has used the last flag.
REFUSED_BY_COUNT = USED_UP_ELSEWHERE
#: The code of an item that is worth less than a slot; the controller does not see it.
NOT_WORTH = 100
_CODES = {reason: code for code, reason in enumerate(REASONS)}
_MOST_RECENT = 200_000
_LARGE, _WATCHED_TOGETHER = 16, 256  # scores
_JUMPS = 4  # moments that a controller refuses before it believes them


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

    scores: list[float]
    ids: list[Any]
    at: list[float]
    efforts: list[Any]

    @classmethod
    def of(cls, run: list[Entry]) -> Items:
        """Return the items of decisions in the log."""
        moments = [float(e.body or 0) if e.code == MOMENT_REFUSED else e.at for e in run]
        return cls(
            [e.score or 0.0 for e in run], [e.case_id for e in run], moments,
            [e.effort for e in run],
        )  # fmt: skip

    def where(self, chosen: list[bool]) -> Items:
        """Return some of the items."""
        return Items(
            *(
                [each for each, is_chosen in zip(column, chosen, strict=True) if is_chosen]
                for column in self
            )
        )


class Decided(NamedTuple):
    """What a controller says about items: codes of reasons, thresholds, chances of a flag."""

    codes: list[int]
    thresholds: list[float]
    inclusions: list[float | None]


class Replica:
    """The controller of a queue after an entry of its log.

    Parameters
    ----------
    store : Store
        Has the calibration scores of models.
    settings : QueueSettings
        How the queue decides.
    build : int
        The number of this version of the program.
    seq : int
        The last entry that the controller knows.
    state : dict
        What :meth:`state` returned after that entry.
    is_own : bool
        Whether the state was computed by this version of the program.

    Attributes
    ----------
    model : int
        The model in force; 0 in a stream, which has no model in the database.
    recent : dict
        The latest cases of the log, the oldest first; whoever is missing may be older.
    """

    def __init__(
        self,
        store: Store,
        settings: QueueSettings,
        build: int,
        *,
        seq: int,
        state: dict[str, Any],
        is_own: bool,
    ) -> None:
        self._store, self.settings, self.build, self.seq = store, settings, build, seq
        self.is_own, self.model = is_own, 0
        self.drift: DriftAlarm | None = None
        self._unwatched: list[float] = []
        self.recent: dict[str, None] = {}
        self._load(state)

    @classmethod
    def saved(cls, store: Store, queue: int, build: int) -> Replica:
        """Return the latest saved state of a queue; follow the log from there."""
        [(settings, maker, seq, state)] = store.query(
            "SELECT queue.settings, snapshot.build, snapshot.seq, snapshot.state FROM snapshot "
            "JOIN queue ON queue.id = snapshot.queue WHERE queue.id = ?",
            queue,
        )
        return cls(
            store, QueueSettings.from_json(settings), build, seq=seq, state=json.loads(state),
            is_own=maker == build,
        )  # fmt: skip

    def _load(self, state: dict[str, Any]) -> None:
        self.controller = Controller.from_state(state["controller"])
        self.identity: Any = state.get("identity")
        if state["model"] != self.model:
            self._change_model(state["model"])

    def state(self) -> str:
        """Return the state of the controller as text, with the model in force."""
        known = {"model": self.model, "controller": self.controller.state()}
        return json.dumps({**known, "identity": self.identity})

    def used_of_total(self, total: str | None, period: int) -> int:
        """Return how many flags of a shared total were given in a period."""
        [(used,)] = self._store.query(
            "SELECT coalesce(max(slot), 0) FROM total_slot WHERE total = ? AND period = ?",
            total,
            period,
        )
        return int(used)

    def fork(self) -> Replica:
        """Return a copy that may be thrown away: a rewind keeps the original."""
        other = copy.copy(self)
        other.controller = self.controller.copy()
        return other

    # --- following -----------------------------------------------------------------------------

    def follow(self, entries: list[Entry]) -> None:
        """Go through entries of the log; raise an error if they are not the next ones or differ."""
        for run in _runs(entries):
            first = run[0]
            if first.seq != self.seq + 1:
                raise ReplayError(f"The log jumps from entry {self.seq} to entry {first.seq}.")
            self.remember([entry.case_id for entry in run if entry.case_id is not None])
            if first.kind == DECISION:
                self._decide_again(run)
            else:
                self.apply(first)
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
        body = json.loads(event.body or "{}")
        if event.kind == BUILD and event.build == self.build:
            self._load(body)
            self.is_own = True
        elif event.kind == CAPACITY and self.settings.is_capped:  # otherwise a state follows it
            self.controller.set_capacity(self.settings.capacity(body), at=body["from"])
        elif event.kind == MODEL:
            self.controller.swap_model(self._change_model(body["model"]))
        elif event.kind == OBSERVATION:
            _believe(self.controller, body["scores"][0], event.at)
            self.controller.observe(body["scores"], at=event.at)

    def _change_model(self, model: int) -> Any:
        """Let the alarm compare with another model; return the model's calibration scores."""
        calibration = calibration_of(self._store, model)
        self.model, self.drift, self._unwatched = model, DriftAlarm(calibration), []
        return calibration

    def _decide_again(self, run: list[Entry]) -> None:
        """Decide as the log says; what this version has decided must come out the same."""
        items = Items.of(run)
        decided = self.decide(items)
        self.watch(items.scores)
        same_codes = [entry.code for entry in run] == decided.codes or all(
            map(_agrees, run, decided.codes)
        )
        differs = not same_codes or [entry.threshold for entry in run] != decided.thresholds
        is_mine = run[0].build == self.build and self.is_own
        if differs and (is_mine or self.settings.is_guarded):
            raise ReplayError(
                f"Entries {run[0].seq} to {run[-1].seq} of the log differ from what this version "
                "of the program decides from the same scores."
            )

    # --- deciding ------------------------------------------------------------------------------

    def decide(self, items: Items) -> Decided:
        """Decide about items of one period; only the first of them can be a jump in time."""
        worth = self.settings.worth
        if worth is None:
            return self._decide(items)
        enough = reaches(np.array(items.scores), worth).tolist()
        judged = self._decide(items.where(enough)) if any(enough) else Decided([], [], [])
        next_one = zip(*judged, strict=True)
        none: tuple[Any, ...] = NOT_WORTH, worth, 0.0 if self.controller.has_probes else None
        rows = [next(next_one) if is_enough else none for is_enough in enough]
        return Decided(*map(list, zip(*rows, strict=True)))

    def _decide(self, items: Items) -> Decided:
        if not self.settings.is_guarded:
            _believe(self.controller, items.scores[0], items.at[0])
        if not self.controller.has_probes:
            return self._decide_part(items, with_ids=False)
        # A controller that draws takes ids for all of its items, or for none.
        rows = groupby(zip(*items, strict=True), key=lambda row: row[1] is not None)
        parts = [(Items(*map(list, zip(*part, strict=True))), named) for named, part in rows]
        decided = [self._decide_part(part, with_ids=named) for part, named in parts]
        return Decided(*(list(chain(*columns)) for columns in zip(*decided, strict=True)))

    def _decide_part(self, items: Items, *, with_ids: bool) -> Decided:
        controller = self.controller
        is_timed, of_work, draws = (
            controller.is_timed, controller.counts_work, controller.has_probes
        )  # fmt: skip
        scores, ids, at, efforts = items
        if len(scores) == 1:  # much faster
            one = controller.decide(
                scores[0], at=at[0] if is_timed else None, id=ids[0] if with_ids else None,
                effort=efforts[0] if of_work else None,
            )  # fmt: skip
            chance = one.probability if draws else None
            return Decided([_CODES[one.reason]], [one.threshold], [chance])
        many = controller.decide_many(
            scores, at=at if is_timed else None, ids=ids if with_ids else None,
            efforts=efforts if of_work else None,
        )  # fmt: skip
        chances = many.probabilities.tolist() if draws else [None] * len(scores)
        return Decided(many.codes.tolist(), many.thresholds.tolist(), chances)


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
