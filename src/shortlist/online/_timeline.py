"""One sequence of items: the clock, changes of capacity that are due, and the compiled kernel."""

from __future__ import annotations

import bisect
import math
import threading
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..capacity import Capacity, check_capacity
from ._answers import Answers
from ._input import check_calibration, check_whole
from ._marks import EVERY, Marks
from ._tail import tail_scale
from ._time import check_times, seconds

__all__ = ["Clock", "Timeline"]

Clock = Callable[[], Any]
Arrays = tuple[NDArray[np.float64], NDArray[np.int64]]


class Timeline:
    """Items in order, each of them given to a kernel once, under the capacity of its moment.

    What a kernel knows lies in one array of floats and one of whole numbers: a compiled call pays
    for every array that it is handed.
    """

    #: Compiled: ``step(score, at, deciding, real, whole)`` gives a code and a threshold.
    _step: ClassVar[Any]
    #: The loop over it: ``many(scores, times, deciding, codes, thresholds, real, whole)``.
    _many: ClassVar[Any]
    #: Whether `_use` makes up for announcements that come late.
    _CORRECTS: ClassVar[bool] = False

    def __init__(
        self,
        capacity: Capacity,
        *,
        calibration_scores: ArrayLike,
        clock: Clock | None = None,
        remember: int = 10_000,
        **options: Any,
    ) -> None:
        self._options = {"remember": check_whole("remember", remember, "ids"), **options}
        # Without a period, time is the number of items.
        self._timed = options.get("period") is not None
        self._clock = clock
        self._lock = threading.RLock()
        self._capacity = check_capacity(capacity)
        self._now, self._n_items = -math.inf, 0
        self._pending: list[tuple[float, Capacity]] = []
        self._answers = Answers(self._options["remember"])
        self._marks = Marks() if self._CORRECTS else None
        scores = check_calibration(calibration_scores)
        self._scale = tail_scale(scores)
        self._check(capacity)
        self._real, self._whole = self._first_arrays(scores)
        self._use(capacity)

    # --- for subclasses ------------------------------------------------------------------------

    def _check(self, capacity: Capacity) -> None:
        """Raise if `_use` could not take this capacity."""
        raise NotImplementedError

    def _first_arrays(self, calibration: NDArray[np.float64]) -> Arrays:
        """Return the floats and the whole numbers that the kernel starts with."""
        raise NotImplementedError

    def _use(self, capacity: Capacity, *, since: float | None = None) -> None:
        """Set the numbers of the arrays for a capacity, which may hold since an earlier moment."""
        raise NotImplementedError

    def _swap(self, old: NDArray[np.float64], new: NDArray[np.float64]) -> None:
        """Carry the arrays over to the scores of another model, given both tail scales."""
        raise NotImplementedError

    def _sound(self) -> bool:
        """Whether the arrays, as they were loaded, belong to the capacity and the options."""
        raise NotImplementedError

    # --- time ----------------------------------------------------------------------------------

    def _moment(self, at: Any) -> float:
        """Return a moment in seconds, or ask the clock, or stay where we are."""
        if at is not None:
            return seconds(at)
        if self._clock is not None:
            return seconds(self._clock())
        if self._timed:
            raise ValueError(
                f"{type(self).__name__} keeps a number per period, so it must know when an item "
                "came. Pass at=..., or give the controller a clock=..."
            )
        return self._now

    def _moments(self, at: Any, n: int) -> NDArray[np.float64]:
        return check_times(at, n) if at is not None else np.full(n, self._moment(None))

    def _advance(self, at: Any) -> float:
        """Move the clock to an item, carry out what is due, and return the kernel's time."""
        moment = self._moment(at)
        if moment > self._now:
            if self._pending:
                self._carry_out(until=moment)
            self._now = moment
        number = self._n_items
        if self._marks is not None and number % EVERY == 0:
            self._marks.note((self._now,), number)
        self._n_items = number + 1
        return self._now if self._timed else float(number)

    # --- changes of capacity -------------------------------------------------------------------

    def _announce(self, capacity: Capacity, at: Any) -> None:
        """Change the capacity, or note that it will change."""
        now = self._now if self._clock is None else max(self._now, seconds(self._clock()))
        moment = now if at is None else seconds(at)
        self._carry_out(until=now)
        self._now = now
        if moment > now:
            self._pending = [change for change in self._pending if change[0] != moment]
            bisect.insort(self._pending, (moment, capacity), key=lambda change: change[0])
        else:
            self._change(capacity, since=None if at is None else moment)

    def _carry_out(self, *, until: float) -> None:
        """Make the changes that are due, each at its own moment."""
        while self._pending and self._pending[0][0] <= until:
            self._now, capacity = self._pending.pop(0)
            self._change(capacity)

    def _change(self, capacity: Capacity, *, since: float | None = None) -> None:
        self._use(capacity, since=since)
        self._capacity = capacity
        if self._marks is not None:
            self._marks.changed = self._now

    # --- many items ----------------------------------------------------------------------------

    def _run(
        self, scores: NDArray[np.float64], moments: NDArray[np.float64], *, deciding: bool
    ) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
        """Run the kernel over checked items, stopping where the capacity changes."""
        codes, thresholds = np.empty(scores.size, np.int8), np.empty(scores.size)
        moments = np.maximum.accumulate(np.maximum(moments, self._now))
        start = 0
        while start < scores.size:
            self._carry_out(until=moments[start])
            due = self._pending[0][0] if self._pending else math.inf
            stop = start + int(np.searchsorted(moments[start:], due))
            part = slice(start, stop)
            times = moments[part]
            if self._marks is not None:
                self._marks.note(times, self._n_items)
            if not self._timed:
                times = np.arange(self._n_items, self._n_items + stop - start, dtype=np.float64)
            self._many(
                scores[part],
                times,
                deciding,
                codes[part],
                thresholds[part],
                self._real,
                self._whole,
            )
            self._n_items += stop - start
            self._now = float(moments[stop - 1])
            start = stop
        return codes, thresholds

    # --- copies --------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Leave the lock out of copies."""
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """Give a copy a lock of its own."""
        self.__dict__.update(saved)
        self._lock = threading.RLock()
