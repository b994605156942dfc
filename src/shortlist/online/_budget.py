"""A hard number of flags per period, spent where the scores are highest."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_number, check_option
from ..capacity import Capacity
from ..exceptions import CapacityError
from . import _pace as pacing
from ._base import Clock, Controller
from ._tail import map_scores
from ._time import seconds
from ._tracker import check_positive

__all__ = ["PACES", "BudgetController"]

#: How a budget may be spread over its period; see :class:`BudgetController`.
PACES = ("auto", "recent", "pattern")

_MEMORY = 6  # periods
_SHORTEST_LIST, _LONGEST_LIST = 64, 1_024
_BLOCKS = 48  # of a period, for the pattern of its arrivals
_GOLDEN = 0.6180339887498949


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
        - ``"pattern"``: the same hours of the last six periods. For strong patterns within the day,
          such as scores that rise through it.
        - ``"auto"``: both, and the same hours of the last two periods, each judged after every
          period by the share of its highest scores that it would have flagged.
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

    _step = staticmethod(pacing.pace_step)
    _many = staticmethod(pacing.pace_many)
    _ARRAYS: ClassVar[dict[str, Any]] = {
        "whole": np.int64,
        "real": np.float64,
        "today": np.float64,
        "past": np.float64,
        "sizes": np.float64,
        "ahead": np.float64,
        "profile": np.float64,
        "caught": np.float64,
    }

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
            period=None if period is None else check_positive("period", period),
            expected_arrivals=None
            if expected_arrivals is None
            else check_positive("expected_arrivals", expected_arrivals),
            pace=check_option("pace", pace, PACES),
            starts_at=float(check_number("starts_at", seconds(starts_at))),
        )

    @property
    def remaining(self) -> int:
        """Flags left in the period of the latest item."""
        whole = self._array("whole")
        return max(int(whole[pacing.CAPACITY] - whole[pacing.USED]), 0)

    def _check(self, capacity: Capacity) -> None:
        if capacity.kind != "count":
            raise CapacityError(
                f"A budget is a whole number of flags; got {capacity!r}. Use Capacity.count(k) "
                "with period=..., or QuantileTracker for a rate."
            )
        if self._timed and capacity.per is not None:
            raise CapacityError(
                f"{capacity!r} refers to {capacity.per} items, and period= to time. Use "
                f"Capacity.count({capacity.value}), or leave the period out."
            )
        if not self._timed and capacity.per != self._options.get("per", capacity.per or 0):
            raise CapacityError(
                f"Without period=..., a budget is Capacity.count(k, per=n), with the same n "
                f"throughout; got {capacity!r}."
            )

    def _first_arrays(self, calibration: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        self._check(self._capacity)
        if not self._timed:
            self._options["per"] = self._capacity.per
        length = self._options["period"] or float(self._options["per"])
        expected = self._options["expected_arrivals"] or length
        k = int(self._capacity.value)
        size = min(max(pacing.LISTED_PER_FLAG * k, _SHORTEST_LIST), _LONGEST_LIST)
        stride = pacing.stride_for(k, size)
        whole, real = np.zeros(pacing.WHOLE_SIZE, np.int64), np.zeros(pacing.REAL_SIZE)
        whole[pacing.STRIDE] = stride
        whole[pacing.PINNED] = self._options["pace"] != "auto"
        whole[pacing.LEADER] = pacing.N_RULES - 1 if self._options["pace"] == "pattern" else 0
        real[pacing.LENGTH], real[pacing.EXPECTED] = length, expected
        real[pacing.ORIGIN] = self._options["starts_at"] if self._timed else 0.0
        past, sizes = _earlier_periods(calibration, expected, size, stride)
        profile = np.zeros((2, _BLOCKS))
        profile[0] = 1 / _BLOCKS
        return {
            "whole": whole,
            "real": real,
            "today": np.zeros((2, size)),
            "past": past,
            "sizes": sizes,
            "ahead": np.zeros((3, _MEMORY * size)),
            "profile": profile,
            "caught": np.zeros((pacing.N_RULES, size)),
        }

    def _use(self, capacity: Capacity, *, since: float | None = None) -> None:
        whole, today = self._array("whole"), self._array("today")
        whole[pacing.CAPACITY] = int(capacity.value)
        # Every stride-th arrival is listed: a larger capacity thins out what is there.
        stride = pacing.stride_for(int(capacity.value), today.shape[1])
        while whole[pacing.STRIDE] < stride:
            kept = today[:, 1 : whole[pacing.LISTED] : 2]
            today[:, : kept.shape[1]] = kept.copy()
            whole[pacing.LISTED], whole[pacing.STRIDE] = kept.shape[1], 2 * whole[pacing.STRIDE]
        whole[pacing.SINCE] = 1 << 40  # the thresholds are out of date

    def _swap(self, old: NDArray[np.float64], new: NDArray[np.float64]) -> None:
        for name in ("today", "past", "ahead"):
            scores = self._array(name)[..., 0, :]
            scores[:] = map_scores(scores.ravel(), old, new).reshape(scores.shape)
        caught = self._array("caught")
        caught[:] = map_scores(caught.ravel(), old, new).reshape(caught.shape)
        self._array("whole")[pacing.SINCE] = 1 << 40


def _earlier_periods(
    calibration: NDArray[np.float64], expected: float, size: int, stride: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Make up periods whose highest scores are those to be expected, spread evenly over them."""
    n = int(min(size, max(expected // stride, 1)))
    ranks = np.arange(n)
    past, sizes = np.zeros((_MEMORY, 2, size)), np.zeros((3, _MEMORY))
    shares = np.clip(1 - (ranks + 0.5) * stride / expected, 0, 1)
    for age in range(_MEMORY):
        past[age, 0, :n] = np.quantile(calibration, shares)
        past[age, 1, :n] = ((ranks + 1) * _GOLDEN + age * _GOLDEN**2) % 1
        sizes[:, age] = n, stride / expected, expected
    return past, sizes
