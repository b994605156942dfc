"""The base class of all controllers: decide, observe, change the capacity, save and load."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.arrays import Floats, Ints
from .._core.timestamps import check_moments, to_seconds
from .._core.validation import check_count, check_id, check_ids
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError
from ._clock import ArrivalLog, Clock, JumpGuard, Schedule
from ._decisions import (
    ABOVE_THRESHOLD,
    MOMENT_REFUSED,
    REASONS,
    SEEN_BEFORE,
    AnswerMemory,
    Decision,
    DecisionBatch,
)
from ._inputs import (
    WORK_UNITS,
    Arrivals,
    check_calibration_scores,
    check_score,
    check_score_array,
    count_work,
)
from ._periods import CalendarPeriod, read_period
from ._scale import TailScale
from ._state import load_controller, save_controller

__all__ = ["Controller"]

_MOST_IDS = 1 << 40


class Controller:
    """Decides about one item at a time, and keeps a capacity over time.

    This is the base class. Use one of the controllers of this package, or write your own; both
    share decisions, ids, the clock, scheduled changes and saved state, which live here. A lock
    lets threads share a controller: it decides about their items one after the other.

    **Writing your own controller.** Everything it learns lives in two arrays, `state_floats` and
    `state_ints`, which compiled functions read and change. A subclass provides

    - `compiled_step` and `compiled_loop`, compiled by numba, as static methods (see below);
    - :meth:`check_capacity`: which capacities it accepts;
    - :meth:`initial_state`: the two arrays, given calibration scores;
    - :meth:`apply_capacity`: what a capacity means for the arrays;
    - :meth:`change_scale`: how the arrays move to the scores of another model;
    - :meth:`is_consistent`: whether loaded arrays can be trusted;
    - a constructor that passes its own arguments on to this one as options, by the same names.

    The controller calls these methods itself; you never do. Run
    :func:`~shortlist.online.checks.check_controller` on the result.

    Parameters
    ----------
    capacity : Capacity
        What :meth:`check_capacity` accepts.
    calibration_scores : array-like of shape (n_items,)
        Recent scores of the model. No labels are needed.
    clock : callable, default=None
        Returns the present moment for items without `at`.
    remember : int, default=10000
        How many ids are remembered with their answers.
    **options
        The subclass's own arguments, as plain JSON; saved with the state. An option called
        `period` that is not None means that the controller keeps time: in seconds, or in periods of
        a calendar (:class:`CalendarPeriod`), which the compiled functions see as 1 long.

    Attributes
    ----------
    now : float
        The latest moment seen, in seconds; minus infinity before the first.
    n_items : int
        How many items have been decided or observed. A repeated id does not count.
    is_timed : bool
        Whether the capacity refers to a period of time. If so, every item needs a moment.
    calendar : CalendarPeriod or None
        The calendar, if the period is one of a calendar.
    state_floats : ndarray of float
        What the controller has learned; only compiled functions and the methods above change it.
    state_ints : ndarray of int
        The same for whole numbers.
    scale : TailScale
        The scale of the present model.
    options : dict
        The constructor's options and `remember`.
    """

    #: ``step(score, at, deciding, floats, ints)`` decides about one item and returns the code of
    #: the reason and the threshold. `at` is in seconds, or the item's number without a period. If
    #: `deciding` is false, the item is only observed, and no flag is used up.
    compiled_step: ClassVar[Any]
    #: ``loop(scores, times, deciding, codes, thresholds, floats, ints)`` does the same for arrays.
    compiled_loop: ClassVar[Any]
    #: The same two for a controller that keeps a budget of work, with the work of each item (in
    #: millionths, as whole numbers) as one more argument at the end; None if it keeps none.
    compiled_work_step: ClassVar[Any] = None
    compiled_work_loop: ClassVar[Any] = None
    #: Whether :meth:`apply_capacity` makes up for announcements that come late. If so, the
    #: controller records when items arrived.
    corrects_late_changes: ClassVar[bool] = False

    def __init__(
        self,
        capacity: Capacity,
        *,
        calibration_scores: ArrayLike,
        clock: Clock | None = None,
        remember: int = 10_000,
        **options: Any,
    ) -> None:
        self.options = {"remember": check_count("remember", remember, at_most=_MOST_IDS), **options}
        # Without a period, time is the number of items.
        period = options.get("period")
        self.is_timed = period is not None
        self.calendar: CalendarPeriod | None = None
        if self.is_timed:
            described = read_period(period)
            self.calendar = described if isinstance(described, CalendarPeriod) else None
            period = described.longest
        self._clock = clock
        self._lock = threading.RLock()
        self._capacity = check_capacity(capacity)
        self.now, self.n_items = -math.inf, 0
        self._schedule = Schedule()
        self._guard = JumpGuard(period)
        self._answers = AnswerMemory(self.options["remember"])
        self._arrivals = ArrivalLog() if self.corrects_late_changes else None
        scores = check_calibration_scores(calibration_scores)
        self.scale = TailScale.from_scores(scores)
        self.check_capacity(capacity)
        self.state_floats, self.state_ints = self.initial_state(scores)
        self.apply_capacity(capacity)

    @property
    def capacity(self) -> Capacity:
        """The capacity in force; :meth:`set_capacity` changes it."""
        return self._capacity

    @property
    def farthest_jump(self) -> float:
        """How many seconds the next moment may lie ahead: 31 periods, and at least a week.

        Moments beyond are refused until five in a row agree. Infinite without a period.
        """
        return self._guard.farthest

    def __repr__(self) -> str:
        return f"{type(self).__name__}(capacity={self._capacity!r})"

    @property
    def period_length(self) -> float:
        """The length of a period as compiled functions see it: 1 for a calendar, else seconds."""
        return 1.0 if self.calendar is not None else float(self.options["period"])

    # --- for subclasses ------------------------------------------------------------------------

    def check_capacity(self, capacity: Capacity) -> None:
        """Raise an error if :meth:`apply_capacity` could not take this capacity."""
        raise NotImplementedError

    def initial_state(self, calibration_scores: Floats) -> tuple[Floats, NDArray[np.int64]]:
        """Return `state_floats` and `state_ints` to start with."""
        raise NotImplementedError

    def apply_capacity(self, capacity: Capacity, *, since: float | None = None) -> None:
        """Set the numbers that follow from a capacity; `since` is when it began, if earlier."""
        raise NotImplementedError

    def change_scale(self, old: TailScale, new: TailScale) -> None:
        """Translate all scores in the arrays from the old model to the new one."""
        raise NotImplementedError

    def is_consistent(self) -> bool:
        """Whether arrays that were loaded fit the capacity and the options.

        Compiled code does not check bounds. Therefore this must rule out every array that could
        read beyond its end or flag more than the capacity.
        """
        raise NotImplementedError

    def items_since(self, moment: float) -> int:
        """Return about how many items arrived since a moment, or since the last change.

        Only for controllers with `corrects_late_changes`; exact to within sixteen items.
        """
        return 0 if self._arrivals is None else self._arrivals.items_since(moment, self.n_items)

    # --- decisions -----------------------------------------------------------------------------

    @property
    def counts_work(self) -> bool:
        """Whether the capacity is a budget of work: every item then needs its effort."""
        return self._capacity.kind == "effort"

    def decide(
        self,
        score: float,
        *,
        at: Any = None,
        id: str | int | None = None,
        effort: float | None = None,
    ) -> Decision:
        """Decide whether to follow up one item.

        Parameters
        ----------
        score : float
            Higher is more suspicious. NaN and infinite scores raise an error.
        at : float or datetime, default=None
            When the item arrived, in seconds or as a datetime (UTC if it has no time zone). `None`
            asks the clock, if there is one. An item from the past counts as of the latest moment
            seen. Therefore a clock that runs backwards never opens a budget twice. An item more
            than :attr:`farthest_jump` ahead is not decided (``"moment refused"``) and changes
            nothing, because one moment in milliseconds would move the clock for good. The fifth
            such item in a row moves it.
        id : str or int, default=None
            An id that was seen before gets its first answer again, whatever its score is now, and
            changes nothing. The last `remember` ids are known.
        effort : float, default=None
            How much work the item takes, if the capacity is a ``Capacity.effort(...)``. The score
            is then what it is worth per unit of work: value * probability / effort.

        Returns
        -------
        Decision
            With `flag`, `threshold` and `reason`.
        """
        with self._lock:
            id = None if id is None else check_id(id)
            if id is not None and (known := self._answers.get(id)) is not None:
                return Decision(known[0], known[1], REASONS[SEEN_BEFORE])
            score, moment = check_score(score), self._moment(at)
            work = None
            if effort is not None or self.counts_work:
                work = self._check_work(None if effort is None else [effort], 1)
            if self._is_refused(moment):
                return Decision(False, math.inf, REASONS[MOMENT_REFUSED])
            arguments = score, self._advance(moment), True, self.state_floats, self.state_ints
            if work is None:
                code, threshold = self.compiled_step(*arguments)
            else:
                code, threshold = self.compiled_work_step(*arguments, int(work[0]))
            flag = code == ABOVE_THRESHOLD
            if id is not None:
                self._answers.keep(id, flag, threshold)
            return Decision(flag, threshold, REASONS[code])

    def decide_many(
        self,
        scores: ArrayLike,
        *,
        at: Any = None,
        ids: ArrayLike | None = None,
        efforts: ArrayLike | None = None,
    ) -> DecisionBatch:
        """Decide about many items in order. The decisions are those of :meth:`decide`, but faster.

        Everything is checked before the first decision. An error therefore changes nothing.

        Parameters
        ----------
        scores : array-like of shape (n_items,)
            Scores.
        at : array-like of shape (n_items,), float or datetime, default=None
            A moment for each item, or one for all.
        ids : array-like of shape (n_items,), default=None
            Their ids.
        efforts : array-like of shape (n_items,), default=None
            How much work each item takes, if the capacity is a ``Capacity.effort(...)``.

        Returns
        -------
        DecisionBatch
            With `flagged`, `thresholds` and `reasons`.
        """
        checked = check_score_array(scores)
        values = Arrivals(checked, self._check_work(efforts, checked.size))
        keys = None if ids is None else _check_each_id(ids, values.size)
        with self._lock:
            moments = self._moments(at, values.size)
            if self._guard.count_safe(moments, self.now) == values.size:
                return self._decide_safe(values, moments, keys)
            return self._decide_guarded(values, moments, keys)

    def observe(
        self, scores: ArrayLike, *, at: Any = None, efforts: ArrayLike | None = None
    ) -> Self:
        """Learn from items without deciding about them. No flag is used up.

        Parameters
        ----------
        scores : float or array-like of shape (n_items,)
            Scores of items that were decided elsewhere, or not at all.
        at : float, datetime or array-like of them, default=None
            When they arrived.
        efforts : float or array-like of shape (n_items,), default=None
            How much work they take, if the capacity is a ``Capacity.effort(...)``; none when
            absent. A :class:`QuantileTracker` counts it, as if they had been decided.
        """
        checked = check_score_array(np.atleast_1d(np.asarray(scores)))
        if efforts is None and self.counts_work:
            work: Ints | None = np.zeros(checked.size, np.int64)
        else:
            given = None if efforts is None else np.atleast_1d(np.asarray(efforts))
            work = self._check_work(given, checked.size)
        values = Arrivals(checked, work)
        with self._lock:
            moments = self._moments(at, values.size)
            for part, safe in self._parts(moments):
                if safe or not self._is_refused(moments[part.start]):
                    self._run(values[part], moments[part], deciding=False)
        return self

    # --- changes -------------------------------------------------------------------------------

    def set_capacity(self, capacity: Capacity, *, at: Any = None) -> Self:
        """Change the capacity: now, from a later moment on, or as of an earlier one.

        Parameters
        ----------
        capacity : Capacity
            The new capacity.
        at : float or datetime, default=None
            When it begins. `None` means now: the moment of the clock, or of the latest item if
            there is no clock. A change in the future waits until then. A change in the past is an
            announcement that came late; controllers of a rate make up for it.
        """
        self.check_capacity(check_capacity(capacity))
        with self._lock:
            now = self.now if self._clock is None else max(self.now, to_seconds(self._clock()))
            moment = now if at is None else to_seconds(at)
            self._make_due_changes(until=now)
            self.now = now
            if moment > now:
                self._schedule.add(moment, capacity)
            else:
                self._change_capacity(capacity, since=None if at is None else moment)
        return self

    def swap_model(self, calibration_scores: ArrayLike) -> Self:
        """Switch to another model without a jump in the flag rate.

        Parameters
        ----------
        calibration_scores : array-like of shape (n_items,)
            Scores of the new model for recent items, comparable to those that the old scale was
            made from.
        """
        new = TailScale.from_scores(check_calibration_scores(calibration_scores))
        with self._lock:
            self.change_scale(self.scale, new)
            self.scale = new
        return self

    # --- saved state ---------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return everything that later decisions depend on, as plain JSON.

        Returns
        -------
        dict
            For :meth:`from_state`. The clock is not part of it.
        """
        with self._lock:
            return save_controller(self)

    @classmethod
    def from_state(cls, state: dict[str, Any], *, clock: Clock | None = None) -> Self:
        """Return the controller that :meth:`state` was called on.

        Parameters
        ----------
        state : dict
            What `state` returned, directly or through JSON. A state that contradicts itself
            raises an error.
        clock : callable, default=None
            As for the constructor.

        Returns
        -------
        Controller
            Of the class that is named in the state.
        """
        controller: Self = load_controller(cls, state, clock)
        return controller

    def __getstate__(self) -> dict[str, Any]:
        """Leave the lock out of copies."""
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """Give each copy its own lock."""
        self.__dict__.update(saved)
        self._lock = threading.RLock()

    # --- time ----------------------------------------------------------------------------------

    def _moment(self, at: Any) -> float:
        """Return a moment in seconds: the one given, the clock's, or the latest."""
        if at is not None or self._clock is not None:
            moment = to_seconds(at if at is not None or self._clock is None else self._clock())
            if self.calendar is not None:
                self.calendar.check(moment)
            return moment
        if self.is_timed:
            raise ValueError(
                f"{type(self).__name__} keeps a number per period and must know when an item "
                "arrived. Pass at=..., or give the controller a clock=..."
            )
        return self.now

    def _moments(self, at: Any, n: int) -> Floats:
        moments = check_moments(at, n) if at is not None else np.full(n, self._moment(None))
        if self.calendar is not None and n:
            self.calendar.check(float(moments.min()), float(moments.max()))
        return moments

    def _is_refused(self, moment: float) -> bool:
        """Whether a moment is a jump to be refused; most are not, and cost one comparison."""
        guard = self._guard
        return (moment > self.now + guard.farthest or guard.suspect is not None) and guard.refuses(
            moment, self.now
        )

    def _advance(self, moment: float) -> float:
        """Move on to the next item, make the changes that are due, and return the item's time."""
        if moment > self.now:
            if self._schedule.changes:
                self._make_due_changes(until=moment)
            self.now = moment
        number = self.n_items
        if self._arrivals is not None and number % ArrivalLog.EVERY == 0:
            self._arrivals.note((self.now,), number)
        self.n_items = number + 1
        if self.calendar is not None:
            return float(self.calendar.progress(np.array([self.now]))[0])
        return self.now if self.is_timed else float(number)

    def _make_due_changes(self, *, until: float) -> None:
        """Change the capacity as announced, each time at its own moment."""
        while self._schedule.next_moment <= until:
            self.now, capacity = self._schedule.pop()
            self._change_capacity(capacity)

    def _change_capacity(self, capacity: Capacity, *, since: float | None = None) -> None:
        self.apply_capacity(capacity, since=since)
        self._capacity = capacity
        if self._arrivals is not None:
            self._arrivals.last_change = self.now

    # --- many items ----------------------------------------------------------------------------

    def _check_work(self, efforts: Any, n_items: int) -> Ints | None:
        """Return the work of items in whole units; None if the capacity is no budget of work."""
        if not self.counts_work:
            if efforts is not None:
                raise CapacityError(
                    f"effort was given, but {self._capacity!r} limits the number of flags. Use a "
                    "BudgetController with Capacity.effort(...)."
                )
            return None
        if efforts is None:
            raise CapacityError(
                f"{self._capacity!r} is a budget of work: every item needs its effort. Pass "
                "effort=... to decide, and efforts=... to decide_many."
            )
        return count_work(efforts, n_items)

    def _decide_safe(
        self, scores: Arrivals, moments: Floats, ids: list[Any] | None
    ) -> DecisionBatch:
        """Decide about items of which no moment is refused."""
        if ids is not None:
            return self._decide_with_ids(scores, moments, ids)
        codes, thresholds = self._run(scores, moments, deciding=True)
        return DecisionBatch(codes == ABOVE_THRESHOLD, thresholds, codes)

    def _decide_guarded(
        self, scores: Arrivals, moments: Floats, ids: list[Any] | None
    ) -> DecisionBatch:
        """Decide in parts between jumps, and about each item at a jump alone."""
        codes, thresholds = np.empty(scores.size, np.int8), np.empty(scores.size)
        flagged = np.zeros(scores.size, dtype=bool)
        for part, safe in self._parts(moments):
            keys = None if ids is None else ids[part]
            if safe:
                decided = self._decide_safe(scores[part], moments[part], keys)
                flagged[part], thresholds[part], codes[part] = decided
            else:
                one = self._decide_alone(scores[part], float(moments[part][0]), keys)
                flagged[part], thresholds[part] = one.flag, one.threshold
                codes[part] = REASONS.index(one.reason)
        return DecisionBatch(flagged, thresholds, codes)

    def _decide_alone(self, item: Arrivals, at: float, keys: list[Any] | None) -> Decision:
        """Decide about the only item of a part."""
        effort = None if item.work is None else int(item.work[0]) / WORK_UNITS
        id = None if keys is None else keys[0]
        return self.decide(float(item.scores[0]), at=at, id=id, effort=effort)

    def _parts(self, moments: Floats) -> Iterator[tuple[slice, bool]]:
        """Yield parts without a jump, and single items that may be one."""
        start = 0
        while start < moments.size:
            safe = self._guard.count_safe(moments[start:], self.now)
            part = slice(start, start + max(safe, 1))
            yield part, safe > 0
            start = part.stop

    def _run(
        self, scores: Arrivals, moments: Floats, *, deciding: bool
    ) -> tuple[NDArray[np.int8], Floats]:
        """Run the compiled loop over checked items, in parts between changes of capacity."""
        codes, thresholds = np.empty(scores.size, np.int8), np.empty(scores.size)
        moments = np.maximum.accumulate(np.maximum(moments, self.now))
        start = 0
        while start < scores.size:
            self._make_due_changes(until=moments[start])
            stop = start + int(np.searchsorted(moments[start:], self._schedule.next_moment))
            part = slice(start, stop)
            times = moments[part]
            if self._arrivals is not None:
                self._arrivals.note(times, self.n_items)
            if not self.is_timed:
                times = np.arange(self.n_items, self.n_items + stop - start, dtype=np.float64)
            elif self.calendar is not None:
                times = self.calendar.progress(times)
            items, outputs = scores[part], (codes[part], thresholds[part])
            state = self.state_floats, self.state_ints
            if items.work is None:
                self.compiled_loop(items.scores, times, deciding, *outputs, *state)
            else:
                self.compiled_work_loop(items.scores, times, deciding, *outputs, *state, items.work)
            self.n_items += stop - start
            self.now = float(moments[stop - 1])
            start = stop
        return codes, thresholds

    def _decide_with_ids(self, scores: Arrivals, moments: Floats, ids: list[Any]) -> DecisionBatch:
        """Decide about each new id once; repeated ids get the answer of the first."""
        sources = np.array(self._answers.find_sources(ids), dtype=np.intp)
        new = np.flatnonzero(sources == np.arange(sources.size))
        codes = np.full(scores.size, SEEN_BEFORE, dtype=np.int8)
        flagged, thresholds = np.zeros(scores.size, dtype=bool), np.empty(scores.size)
        for i in np.flatnonzero(sources < 0).tolist():
            flagged[i], thresholds[i] = self._answers.get(ids[i]) or (False, np.inf)
        # A repeated id changes nothing: not even its moment counts.
        codes[new], thresholds[new] = self._run(scores[new], moments[new], deciding=True)
        flagged[new] = codes[new] == ABOVE_THRESHOLD
        repeated = np.flatnonzero((sources >= 0) & (codes == SEEN_BEFORE))
        flagged[repeated] = flagged[sources[repeated]]
        thresholds[repeated] = thresholds[sources[repeated]]
        for i in new.tolist():
            self._answers.keep(ids[i], bool(flagged[i]), float(thresholds[i]))
        return DecisionBatch(flagged, thresholds, codes)


def _check_each_id(ids: ArrayLike, n: int) -> list[Any]:
    checked = check_ids(ids, n)
    return [] if checked is None else [check_id(id) for id in checked.tolist()]
