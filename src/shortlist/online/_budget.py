"""A hard number of flags per period, spent where the scores are highest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.validation import check_number, check_option
from ..capacity import Capacity
from ..exceptions import CapacityError
from ._base import Controller
from ._book import (
    CAPACITY,
    LENGTH,
    LISTED,
    ORIGIN,
    PINNED,
    SINCE,
    SIZE,
    STRIDE,
    USED,
    first_book,
    is_sound,
    open_book,
    stride_for,
)
from ._input import check_count, check_period, check_positive
from ._pace import PATTERN, RECENT, pace_many, pace_step
from ._tail import map_scores
from ._time import seconds
from ._timeline import Arrays, Clock

__all__ = ["PACES", "BudgetController"]

#: How a budget may be spread over its period; see :class:`BudgetController`.
PACES = ("auto", "recent", "pattern")
_RULES = {"auto": None, "recent": RECENT, "pattern": PATTERN}
_OUT_OF_DATE = 1 << 40


class BudgetController(Controller):
    """Flag at most so many items per period, and choose them well: the default for counts.

    The number holds in every period, for any scores, after restarts, changes of the capacity,
    clocks that run backwards and repeated ids. Within a period, the flags left are paced over the
    arrivals still to come: the threshold is the score that just as many of those should exceed.

    Parameters
    ----------
    capacity : Capacity
        ``Capacity.count(k)`` with `period`, or ``Capacity.count(k, per=n)`` for every n items.
    calibration_scores : array-like of shape (n_items,)
        Recent scores of the model; they stand for the periods before the first.
    period : float, default=None
        Length of a period in seconds; `None` counts items, by the capacity's `per`.
    expected_arrivals : int, default=None
        Items in a period, to begin with; then learned, with their pattern over the period. Needed
        with `period`.
    pace : {"auto", "recent", "pattern"}, default="auto"
        What the threshold goes by:

        - ``"recent"``: the last period's length of scores. Quick after a change.
        - ``"pattern"``: the same hours of the last six periods, of which the richer half decides.
          For strong patterns within the day, such as scores that rise through it, and for bursts.
        - ``"auto"``: both, judged after every period by the share of its highest scores that each
          would have flagged.
    starts_at : float or datetime, default=0
        A moment at which a period starts: the first one's, or any other, such as a local midnight.
    clock : callable, default=None
        Returns the present moment for items without `at`.
    remember : int, default=10000
        How many ids are known again.

    Notes
    -----
    A capacity that is lowered below what has been used flags nothing more in that period. An item
    from an earlier period than the latest one seen is counted in the latest.

    Resolving the quantile after every flag is what makes the regret against a clairvoyant choice
    grow like log T rather than the square root of T (Arlotto and Gurvich, arXiv 1710.07719).

    Examples
    --------
    >>> import numpy as np
    >>> from shortlist import Capacity
    >>> from shortlist.online import BudgetController
    >>> rng = np.random.default_rng(0)
    >>> budget = BudgetController(
    ...     Capacity.count(50),
    ...     period=86_400,
    ...     expected_arrivals=5_000,
    ...     calibration_scores=rng.normal(size=5_000),
    ... )
    >>> times = np.sort(rng.uniform(0, 3 * 86_400, size=15_000))
    >>> flagged = budget.decide_many(rng.normal(size=15_000), at=times).flagged
    >>> np.bincount((times[flagged] // 86_400).astype(int)).tolist()
    [50, 50, 50]
    >>> budget.remaining
    0
    """

    _step = staticmethod(pace_step)
    _many = staticmethod(pace_many)

    def __init__(
        self,
        capacity: Capacity,
        *,
        calibration_scores: ArrayLike,
        period: float | None = None,
        expected_arrivals: int | None = None,
        pace: str = "auto",
        starts_at: Any = 0.0,
        clock: Clock | None = None,
        remember: int = 10_000,
    ) -> None:
        if period is not None and expected_arrivals is None:
            raise ValueError(
                "expected_arrivals is needed with period=...: say how many items usually come in "
                "one. A rough number will do; it is learned."
            )
        super().__init__(
            capacity,
            calibration_scores=calibration_scores,
            clock=clock,
            remember=remember,
            period=None if period is None else check_period(period),
            expected_arrivals=None
            if expected_arrivals is None
            else check_positive("expected_arrivals", expected_arrivals),
            pace=check_option("pace", pace, PACES),
            starts_at=float(check_number("starts_at", seconds(starts_at))),
        )

    @property
    def remaining(self) -> int:
        """Flags left in the period of the latest item."""
        return max(int(self._whole[CAPACITY] - self._whole[USED]), 0)

    def _check(self, capacity: Capacity) -> None:
        if capacity.kind != "count":
            raise CapacityError(
                f"A budget is a whole number of flags; got {capacity!r}. Use Capacity.count(k) "
                "with period=..., or QuantileTracker for a rate."
            )
        check_count(capacity)
        if self._timed and capacity.per is not None:
            raise CapacityError(
                f"{capacity!r} refers to {capacity.per} items, and period= to time. Use "
                f"Capacity.count({capacity.value}), or leave the period out."
            )
        if not self._timed and (capacity.per is None or capacity.per != self._capacity.per):
            raise CapacityError(
                f"Without period=..., a budget is Capacity.count(k, per=n), with the same n "
                f"throughout; got {capacity!r}."
            )

    def _length(self) -> float:
        return float(self._options["period"] or self._capacity.per or 1)

    def _first_arrays(self, calibration: NDArray[np.float64]) -> Arrays:
        return first_book(
            calibration,
            capacity=int(self._capacity.value),
            length=self._length(),
            origin=self._options["starts_at"] if self._timed else 0.0,
            expected=self._options["expected_arrivals"] or self._length(),
            rule=_RULES[self._options["pace"]],
        )

    def _use(self, capacity: Capacity, *, since: float | None = None) -> None:
        whole, today = self._whole, open_book(self._real, self._whole).today
        whole[CAPACITY] = int(capacity.value)
        # Every stride-th arrival is listed: a larger capacity thins out what is there.
        stride = stride_for(int(capacity.value), int(whole[SIZE]))
        while whole[STRIDE] < stride:
            kept = today[:, : whole[LISTED] : 2]
            today[:, : kept.shape[1]] = kept.copy()
            whole[LISTED], whole[STRIDE] = kept.shape[1], 2 * whole[STRIDE]
        whole[SINCE] = _OUT_OF_DATE

    def _swap(self, old: NDArray[np.float64], new: NDArray[np.float64]) -> None:
        book = open_book(self._real, self._whole)
        for scores in (book.today[0], book.past[:, 0], book.caught):
            scores[...] = map_scores(scores.ravel(), old, new).reshape(scores.shape)
        self._whole[SINCE] = _OUT_OF_DATE

    def _sound(self) -> bool:
        real, whole = self._real, self._whole
        return (
            is_sound(real, whole)
            and real[LENGTH] == self._length()
            and real[ORIGIN] == (self._options["starts_at"] if self._timed else 0.0)
            and whole[CAPACITY] == int(self._capacity.value)
            and whole[PINNED] == (self._options["pace"] != "auto")
        )
