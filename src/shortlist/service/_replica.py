"""A controller that follows the log of a queue: every process that reads the log decides alike.

Entries of the same version of the program (its *build*) are decided again and compared, bit for
bit. Another version may compute differently in the last digit: its cases are decided again for what
they teach, and the counts in the database bound the flags of all versions together. A version
begins with an entry that holds its state, so that all its processes, and an audit years later,
start from the same numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from .._core import probing
from .._core.work import reaches
from ..online import Controller, DriftAlarm, WaitingCase, decisions
from ._chain import is_erased
from ._models import Arrival, calibration_of, has_own_calibration
from .settings import QueueSettings, first_controller
from .store import BUILD, CAPACITY, CLOCK, DECISION, MODEL, OBSERVATION, PULLED, Entry, Store

#: The code of an item that the controller would flag, but that the counts in the database do not
#: allow: a shared total is used up, or another version has used the last flag.
REFUSED_BY_COUNT = decisions.USED_UP_ELSEWHERE
#: The code of an item that is worth less than a slot; the controller does not see it.
NOT_WORTH = 100
#: How a case was selected, by the code of its decision; others were selected by score, or not.
DRAWN = {decisions.PROBE: probing.PROBE, decisions.PROBE_WITHOUT_SLOT: probing.PROBE_WITHOUT_SLOT}
_N_FIRST = 500  # scores of a queue that later ones are compared with
_JUMPS = 4  # moments that a controller refuses before it believes them


class ReplayError(Exception):
    """The log contains a decision that its own version of the program would not have made."""


def reason_of(code: int) -> str:
    """Return the reason for a decision in words."""
    if code == NOT_WORTH:
        return "not worth a slot"
    return "capacity used up" if code == REFUSED_BY_COUNT else decisions.REASONS[code]


def drawn_of(entry: Entry) -> tuple[str, float | None]:
    """Return how a case was selected, and with which probability; only with probes."""
    others = probing.NOT_SELECTED if entry.slot is None else probing.BY_SCORE
    return DRAWN.get(entry.code or 0, others), entry.inclusion


def _logged(entry: Entry) -> Arrival:
    """Return the case that an entry of the log decides about."""
    at = float(entry.body or 0) if entry.code == decisions.MOMENT_REFUSED else entry.at
    return Arrival(entry.score or 0.0, entry.case_id, at, entry.effort, seq=entry.seq)


#: The code of the reason, the threshold, and the chance of a flag if the controller draws.
Verdict = tuple[int, float, float | None]


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
        What :meth:`state` returned after that entry; a controller need not be saved.
    is_own : bool
        Whether the state was computed by this version of the program.
    queue : int
        The number of the queue, to write to its log.

    Attributes
    ----------
    model : int
        The model in force; 0 in a stream, which has no model in the database.
    shadow : int
        A model that scores the same cases and decides nothing; 0 if there is none.
    """

    def __init__(
        self,
        store: Store,
        settings: QueueSettings,
        build: int,
        *,
        seq: int,
        state: dict[str, Any],
        is_own: bool = True,
        queue: int = 0,
    ) -> None:
        self.store, self.settings, self.build, self.seq = store, settings, build, seq
        self.queue = queue
        self.is_own, self.model = is_own, 0
        self.n_compared = 0  # decisions that this version has made again
        self._due: list[WaitingCase] = []  # with slots that the log gives them next
        self.drift: DriftAlarm | None = None
        self.first: tuple[float, ...] = ()
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
            is_own=maker == build, queue=queue,
        )  # fmt: skip

    def _load(self, state: dict[str, Any]) -> None:
        saved: Any = state.get("controller")
        self.controller: Any = Controller.from_state(saved) if type(saved) is dict else saved
        self.identity: Any = state.get("identity")
        self.shadow = int(state.get("shadow", 0))
        if state["model"] != self.model:
            self._change_model(state["model"])
        if self.model and self.drift is None:
            self.first = ()
            self._gather(state.get("first", ()))

    def state(self) -> str:
        """Return the state of the controller as text, with the model in force."""
        known = {"model": self.model, "shadow": self.shadow, "controller": self.controller.state()}
        return json.dumps({**known, "identity": self.identity, "first": self.first})

    # --- following -----------------------------------------------------------------------------

    def follow(self, entries: list[Entry]) -> None:
        """Go through entries of the log; raise an error if they are not the next ones or differ."""
        for (kind, *_), part in groupby(entries, key=lambda each: each[2:4] + each[5:6]):
            run = list(part)
            if run[-1].seq != self.seq + len(run):
                raise ReplayError(f"The log jumps from entry {self.seq} to entry {run[-1].seq}.")
            if kind == DECISION:  # by one version, in one period
                self._decide_again(run)
            else:
                for event in run:
                    (self._hand_out_again if kind == PULLED else self._apply_again)(event)
            self.seq = run[-1].seq

    def _apply_again(self, event: Entry) -> None:
        """Make a change after what was due before it."""
        self._settle_before(event)
        self.apply(event)

    def _settle_before(self, entry: Entry) -> None:
        """Settle what was due before an entry, as whoever has written it did."""
        lacks_slots = self.settings.within is not None and self.flag_waiting(entry.at)
        if lacks_slots and entry.build == self.build and self.is_own:
            raise ReplayError(f"Entry {entry.seq} of the log comes after slots that it lacks.")

    def watch(self, scores: list[float]) -> None:
        """Let the alarm see scores."""
        if self.drift is not None:
            self.drift.update(scores)
        elif self.model:
            self._gather(scores)

    def _gather(self, scores: Sequence[float]) -> None:
        """Let the first scores be what later ones are compared with; the rest of a group is not."""
        self.first = (*self.first, *scores)[:_N_FIRST]
        if len(self.first) == _N_FIRST:
            self.drift = DriftAlarm(self.first)

    def apply(self, event: Entry) -> None:
        """Make the change that an event records."""
        body = json.loads(event.body or "{}")
        self.shadow = body.get("shadow", self.shadow)
        if event.kind == BUILD and event.build == self.build:
            self._load(body)
            self.is_own = True
        elif event.kind == CAPACITY and self.settings.is_capped:  # otherwise a state follows it
            self.controller.set_capacity(self.settings.capacity(body), at=body["from"])
        elif event.kind == MODEL:
            self.controller.swap_model(self._change_model(body["model"]))
        elif event.kind == CLOCK:
            waiting = self.controller.own_state().get("waiting", ())
            self.start_again(body["capacity"], body["scheduled"])
            for id, score, *_ in waiting:
                self.controller.add(score, id=id, at=body["from"])
        elif event.kind == OBSERVATION:
            self._believe(event.at)
            self.controller.observe(body["scores"], at=event.at)

    def start_again(self, capacity: float, scheduled: Iterable[Any]) -> None:
        """Begin with a new controller: none runs backwards. The database has counted the flags."""
        settings, calibration = self.settings, calibration_of(self.store, self.model)
        self.controller = first_controller(settings, capacity, calibration)
        for begins, amount in scheduled:
            self.controller.set_capacity(settings.capacity({settings.unit: amount}), at=begins)

    def _change_model(self, model: int) -> Any:
        """Let the alarm compare with another model; return the model's calibration scores."""
        calibration = calibration_of(self.store, model)
        # Calibration scores of models of folds are not like those of the model that ranks lists.
        is_own = has_own_calibration(self.store, model)
        self.drift = DriftAlarm(calibration) if is_own else None
        self.model, self.first = model, ()
        return calibration

    def _decide_again(self, run: list[Entry]) -> None:
        """Decide as the log says; what this version has decided must come out the same."""
        self.watch([entry.score or 0.0 for entry in run])
        for is_passed, part in groupby(run, key=self._is_passed_over):
            if is_passed:
                for entry in part:
                    self._settle_before(entry)
                    self.pass_over(entry.code or 0, _logged(entry).at)
                    self.lift(entry)
            else:
                self._compare(list(part))

    def _is_passed_over(self, entry: Entry) -> bool:
        """Whether no controller has decided: which case an event joins is known from the log."""
        is_refused = entry.code == decisions.MOMENT_REFUSED and self.settings.entity is not None
        return is_refused or entry.code in (decisions.JOINED, decisions.ALLOWED)

    def _compare(self, run: list[Entry]) -> None:
        decided = self.decide(list(map(_logged, run)))
        if self.controller.has_probes and any(is_erased(entry.seal) for entry in run):
            self.is_own = False  # without its id, nobody can draw a case again; a state follows
            return
        differs = not all(map(_agrees, run, decided))
        is_mine = run[0].build == self.build and self.is_own
        self.n_compared += len(run) if is_mine else 0
        if differs and (is_mine or self.settings.is_guarded):
            raise ReplayError(
                f"Entries {run[0].seq} to {run[-1].seq} of the log differ from what this version "
                "of the program decides from the same scores."
            )

    def _hand_out_again(self, entry: Entry) -> None:
        """Give the slot that the log gives; this version must give it to the same case."""
        self._due += self.flag_waiting(entry.at)
        # Who is able to do which case is not in the log: then it must only be worth its slot.
        is_it = None if self.settings.segment is None else lambda id: id == entry.joined
        case = self._due.pop(0) if self._due else self.controller.next(at=entry.at, among=is_it)
        if case is None or case.id != entry.joined:
            if entry.build == self.build and self.is_own:
                raise ReplayError(f"Entry {entry.seq} of the log hands out another case.")
            self._due = []
            self.controller.drop(entry.joined or 0)

    # --- deciding ------------------------------------------------------------------------------

    def flag_waiting(self, at: float) -> list[WaitingCase]:
        """Return the cases that have a slot, because their time to wait or a period has ended."""
        self._believe(at)
        return self.controller.flagged(at=at)

    def decide(self, arrivals: list[Arrival]) -> list[Verdict]:
        """Decide about items of one period; only the first of them can be a jump in time."""
        worth = self.settings.worth
        if worth is None:
            return self._decide(arrivals)
        enough = reaches(np.array([each.score for each in arrivals]), worth).tolist()
        chosen = [each for each, is_enough in zip(arrivals, enough, strict=True) if is_enough]
        verdicts = iter(self._decide(chosen))
        none = NOT_WORTH, worth, 0.0 if self.controller.has_probes else None
        return [next(verdicts) if is_enough else none for is_enough in enough]

    def pass_over(self, code: int, at: float) -> Verdict:
        """Let time pass without deciding about an event; its moment may be refused."""
        if not self.settings.is_guarded:
            self._believe(at)
        decision = self.controller.pass_over(code, at=at)
        chance = 0.0 if self.controller.has_probes else None
        return decisions.REASONS.index(decision.reason), math.inf, chance

    def lift(self, entry: Entry) -> None:
        """Let a case that waits rank by the highest score of its events."""
        if self.settings.within is not None and entry.code == decisions.JOINED:
            self.controller.lift(entry.joined or 0, entry.score or 0.0)

    def _believe(self, at: float) -> None:
        """Let the clock follow a long pause: whoever wrote the moment has checked it."""
        if math.inf > at - self.controller.now > self.controller.farthest_jump:
            for _ in range(_JUMPS):
                self.controller.pass_over(decisions.MOMENT_REFUSED, at=at)

    def _decide(self, arrivals: list[Arrival]) -> list[Verdict]:
        if self.settings.within is not None:
            return [self._let_wait(each) for each in arrivals]
        if arrivals and not self.settings.is_guarded:
            self._believe(arrivals[0].at)
        # A controller that draws takes ids for all of its items, or for none.
        draws = self.controller.has_probes
        parts = groupby(arrivals, key=lambda each: draws and each.case_id is not None)
        return [
            verdict
            for with_ids, part in parts
            for verdict in self._decide_part(list(part), with_ids=with_ids)
        ]

    def _let_wait(self, case: Arrival) -> Verdict:
        lacks_slots = bool(self.flag_waiting(case.at))  # the log, which then differs
        self.controller.add(case.score, id=case.seq, at=case.at)
        return REFUSED_BY_COUNT if lacks_slots else decisions.WAITS, math.inf, None

    def _decide_part(self, part: list[Any], *, with_ids: bool) -> Iterable[Verdict]:
        controller = self.controller
        many = controller.decide_many(
            [each.score for each in part],
            at=[each.at for each in part] if controller.is_timed else None,
            ids=[each.case_id for each in part] if with_ids else None,
            efforts=[each.effort for each in part] if controller.counts_work else None,
        )
        chances = many.probabilities.tolist() if controller.has_probes else [None] * len(part)
        return zip(many.codes.tolist(), many.thresholds.tolist(), chances, strict=True)


def _agrees(entry: Entry, verdict: Verdict) -> bool:
    """Whether an entry is what a controller says; the counts of the database may have refused."""
    code, threshold, _ = verdict
    is_same = entry.code == code or (
        entry.code == REFUSED_BY_COUNT and bool(decisions.is_flag(code))
    )
    return is_same and entry.threshold == threshold
