"""A controller that follows the log of a queue: every process that reads the log decides alike.

Entries of the same version of the program (its *kernel*) are decided again and compared, bit for
bit. Another version may compute differently in the last digit. Its decisions are taken as they are:
their scores are observed and their flags are counted. A version begins with an entry that holds its
state, so that all its processes, and an audit years later, start from the same numbers.
"""

from __future__ import annotations

import copy
import json
import math
import platform
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

import numpy as np

from .. import __version__
from .._core.arrays import Floats
from ..capacity import Capacity
from ..online import (
    ABOVE_THRESHOLD,
    REASONS,
    USED_UP_ELSEWHERE,
    BudgetController,
    CalendarPeriod,
    Controller,
    DecisionBatch,
    DriftAlarm,
    FixedPeriod,
    ProbedBatch,
    read_period,
)
from ._store import CAPACITY, DECISION, KERNEL, MODEL, Entry

__all__ = [
    "REFUSED_BY_COUNT",
    "Follower",
    "QueueSettings",
    "ReplayError",
    "first_controller",
    "kernel_name",
    "reason_of",
]

#: The code of an item that the controller would flag, but that the counts in the database do not
#: allow: a shared total is used up, or another version has used the last flag.
REFUSED_BY_COUNT = USED_UP_ELSEWHERE
_MOST_RECENT = 200_000
_JUMPS = 4  # moments that a controller refuses before it believes them

Calibration = Callable[[int], Floats]


class ReplayError(Exception):
    """The log contains a decision that its own version of the program would not have made."""


class QueueSettings(NamedTuple):
    """How a queue decides; fixed when it is made, except for the capacity and the model."""

    period: float | str
    expected_arrivals: float
    starts_at: float = 0.0
    pace: str = "auto"

    @staticmethod
    @lru_cache(maxsize=64)
    def from_json(text: str) -> QueueSettings:
        """Read what :meth:`to_json` wrote."""
        return QueueSettings(**json.loads(text))

    def to_json(self) -> str:
        """Return the settings as text."""
        return json.dumps(self._asdict())

    @property
    def periods(self) -> FixedPeriod | CalendarPeriod:
        """The periods of the queue."""
        return _periods(self.period, self.starts_at)


@lru_cache(maxsize=64)
def _periods(period: float | str, starts_at: float) -> FixedPeriod | CalendarPeriod:
    return read_period(period, starts_at=starts_at)


def kernel_name() -> str:
    """Return what decisions of this program depend on: versions, and the kind of machine."""
    import numba

    versions = f"NumPy {np.__version__}, numba {numba.__version__}"
    return f"shortlist {__version__}, {versions}, {platform.machine()}"


def reason_of(code: int) -> str:
    """Return the reason for a decision in words."""
    return "capacity used up" if code == REFUSED_BY_COUNT else REASONS[code]


def first_controller(
    settings: QueueSettings, capacity: int, calibration: Floats
) -> BudgetController:
    """Return the controller with which a queue begins."""
    return BudgetController(
        Capacity.count(capacity),
        calibration_scores=calibration,
        period=settings.period,
        expected_arrivals=max(1, round(settings.expected_arrivals)),
        pace=settings.pace,
        starts_at=settings.starts_at,
        remember=1,
    )


class Follower:
    """The controller of a queue after an entry of its log.

    Parameters
    ----------
    kernel : int
        The number of this version of the program.
    controller : BudgetController
        Its state after entry `seq`.
    seq : int
        The last entry that the controller knows.
    model : int
        The model in force.
    calibration_of : callable
        Returns the calibration scores of a model.
    """

    def __init__(
        self,
        kernel: int,
        controller: BudgetController,
        *,
        seq: int,
        model: int,
        calibration_of: Calibration,
    ) -> None:
        self.kernel, self.controller, self.seq, self.model = kernel, controller, seq, model
        self._calibration_of = calibration_of
        self.drift = DriftAlarm(calibration_of(model))
        #: The latest cases of the log, the oldest first; whoever is missing may be older.
        self.recent: dict[str, None] = {}

    def fork(self) -> Follower:
        """Return a copy that may be thrown away: a rewind is to keep the original."""
        other, mine = copy.copy(self), self.controller
        unchanging = (mine.options, mine.capacity, mine.scale, mine.calendar)
        other.controller = copy.deepcopy(mine, {id(each): each for each in unchanging})
        return other

    def state(self) -> str:
        """Return the state of the controller as text, with the model in force."""
        return json.dumps({"model": self.model, "controller": self.controller.state()})

    @classmethod
    def from_state(cls, kernel: int, seq: int, state: str, calibration_of: Calibration) -> Follower:
        """Read what :meth:`state` returned."""
        saved = json.loads(state)
        controller = Controller.from_state(saved["controller"])
        assert isinstance(controller, BudgetController)
        return cls(kernel, controller, seq=seq, model=saved["model"], calibration_of=calibration_of)

    # --- following -----------------------------------------------------------------------------

    def follow(self, entries: list[Entry]) -> None:
        """Go through entries of the log; raise an error if they are not the next ones or differ."""
        for run in _runs(entries):
            first = run[0]
            if first.seq != self.seq + 1:
                raise ReplayError(f"The log jumps from entry {self.seq} to entry {first.seq}.")
            self.remember(entry.case_id for entry in run)
            if first.kind != DECISION:
                self.apply(first)
            elif first.kernel == self.kernel:
                self._decide_again(run)
            else:
                self._take_over(run)
            self.seq = run[-1].seq

    def remember(self, cases: Iterable[str | None]) -> None:
        """Remember that cases are in the log."""
        self.recent.update(dict.fromkeys(case for case in cases if case is not None))
        while len(self.recent) > _MOST_RECENT:
            del self.recent[next(iter(self.recent))]

    def apply(self, event: Entry) -> None:
        """Make the change that an event records."""
        if event.kind == KERNEL:
            return
        body = json.loads(event.body or "{}")
        if event.kind == CAPACITY:
            self.controller.set_capacity(Capacity.count(body["count"]), at=body["from"])
        elif event.kind == MODEL:
            calibration = self._calibration_of(body["model"])
            self.controller.swap_model(calibration)
            self.model, self.drift = body["model"], DriftAlarm(calibration)

    def decide(self, scores: Floats, at: float) -> DecisionBatch | ProbedBatch:
        """Decide about new items that arrived at one moment."""
        return _decide(self.controller, scores, np.full(scores.size, at))

    def _decide_again(self, run: list[Entry]) -> None:
        scores, at = _columns(run)
        decided = _decide(self.controller, scores, at)
        flagged = [entry.code in (ABOVE_THRESHOLD, REFUSED_BY_COUNT) for entry in run]
        thresholds = [entry.threshold for entry in run]
        if decided.flagged.tolist() != flagged or decided.thresholds.tolist() != thresholds:
            raise ReplayError(
                f"Entries {run[0].seq} to {run[-1].seq} of the log differ from what this version "
                "of the program decides from the same scores."
            )
        self.drift.update(scores)

    def _take_over(self, run: list[Entry]) -> None:
        scores, at = _columns(run)
        _believe(self.controller, float(scores[0]), float(at[0]))
        self.controller.observe(scores, at=at)
        self.controller.count_flags(sum(entry.slot is not None for entry in run))
        self.drift.update(scores)


def _runs(entries: list[Entry]) -> Iterator[list[Entry]]:
    """Split entries into single events, and decisions of one version in one period."""
    for (kind, *_), run in groupby(entries, key=lambda each: (each.kind, each.kernel, each.period)):
        members = list(run)
        if kind == DECISION:
            yield members
        else:
            yield from ([event] for event in members)


def _columns(run: list[Entry]) -> tuple[Floats, Floats]:
    scores = np.array([entry.score for entry in run], dtype=np.float64)
    return scores, np.array([entry.at for entry in run])


def _decide(controller: Controller, scores: Floats, at: Floats) -> DecisionBatch | ProbedBatch:
    """Decide about items of one period; only the first of them can be a jump in time."""
    _believe(controller, float(scores[0]), float(at[0]))
    return controller.decide_many(scores, at=at)


def _believe(controller: Controller, score: float, at: float) -> None:
    """Let the clock follow a long pause: whoever wrote the moment has checked it."""
    if math.inf > at - controller.now > controller.farthest_jump:
        for _ in range(_JUMPS):
            controller.decide(score, at=at)
