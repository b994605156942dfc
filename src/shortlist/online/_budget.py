"""A hard number of flags per period, spent where the scores are highest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.arrays import Floats
from .._core.timestamps import to_seconds
from .._core.validation import check_count, check_number, check_option
from ..capacity import Capacity
from ..exceptions import CapacityError
from ._budget_ledger import (
    CAPACITY,
    LENGTH,
    LISTED,
    ORIGIN,
    PINNED,
    SINCE,
    SIZE,
    STRIDE,
    USED,
    first_ledger,
    is_valid_ledger,
    open_ledger,
    stride_for,
)
from ._budget_pacing import PATTERN, RECENT, pacing_loop, pacing_step
from ._clock import Clock
from ._controller import Controller
from ._inputs import check_flag_count, check_optional_positive, check_period
from ._scale import TailScale

__all__ = ["PACES", "BudgetController"]

#: How a budget may be spread over its period; see :class:`BudgetController`.
PACES = ("auto", "recent", "pattern")
_RULES = {"auto": None, "recent": RECENT, "pattern": PATTERN}
_OUT_OF_DATE = 1 << 40  # so many arrivals since the thresholds were computed


class BudgetController(Controller):
    """Never flag more than a number of items per period, and choose them well.

    This is the default for counts. The limit holds in every period, for any scores, after restarts
    and changes of the capacity, with clocks that run backwards and with repeated ids. Within a
    period, the flags left are paced over the arrivals still to come: the threshold is the score
    that as many of those are expected to exceed as there are flags left.

    Parameters
    ----------
    capacity : Capacity
        ``Capacity.count(k)`` with `period`, or ``Capacity.count(k, per=n)`` for every n items.
    calibration_scores : array-like of shape (n_items,)
        Recent scores of the model. They stand in for the periods before the first.
    period : float or str, default=None
        Length of a period in seconds, or a period of a calendar as in :class:`CalendarPeriod`.
        `None` counts items instead, by the capacity's `per`.
    expected_arrivals : int, default=None
        Items in a period, as a first estimate. The number and its pattern over the period are then
        learned. Required with `period`.
    pace : {"auto", "recent", "pattern"}, default="auto"
        Which scores set the threshold:

        - ``"recent"``: the latest scores, over the length of one period. Reacts quickly to changes.
        - ``"pattern"``: the same hours of the last six periods, of which the richer half decides.
          For strong patterns within the day, such as scores that rise through it, and for bursts.
        - ``"auto"``: both rules run, and the one that would have flagged the larger share of the
          highest scores of earlier periods leads.
    starts_at : float or datetime, default=0
        A moment at which a period starts: the start of the first one or of any other, such as a
        local midnight.
    clock, remember
        As for :class:`Controller`.

    Notes
    -----
    If the capacity is lowered below the number of flags already used, nothing more is flagged in
    that period. An item from an earlier period counts in the latest period seen.

    The quantile is solved again after every flag. Therefore the regret against a choice with
    hindsight grows like log T rather than the square root of T (Arlotto and Gurvich, arXiv
    1710.07719).

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

    compiled_step = staticmethod(pacing_step)
    compiled_loop = staticmethod(pacing_loop)

    def __init__(
        self,
        capacity: Capacity,
        *,
        calibration_scores: ArrayLike,
        period: float | str | None = None,
        expected_arrivals: int | None = None,
        pace: str = "auto",
        starts_at: Any = 0.0,
        clock: Clock | None = None,
        remember: int = 10_000,
    ) -> None:
        if period is not None and expected_arrivals is None:
            raise ValueError(
                "expected_arrivals is required with period=...: pass the usual number of items in "
                "a period. A rough number is enough, because it is learned."
            )
        super().__init__(
            capacity,
            calibration_scores=calibration_scores,
            clock=clock,
            remember=remember,
            period=None if period is None else check_period(period),
            expected_arrivals=check_optional_positive("expected_arrivals", expected_arrivals),
            pace=check_option("pace", pace, PACES),
            starts_at=float(check_number("starts_at", to_seconds(starts_at))),
        )

    @property
    def remaining(self) -> int:
        """Flags left in the period of the latest item."""
        return max(int(self.state_ints[CAPACITY] - self.state_ints[USED]), 0)

    def check_capacity(self, capacity: Capacity) -> None:
        """Accept a count per period, or a count per so many items."""
        if capacity.kind != "count":
            raise CapacityError(
                f"A budget is a whole number of flags; got {capacity!r}. Use Capacity.count(k) "
                "with period=..., or QuantileTracker for a rate."
            )
        check_flag_count(capacity)
        if self.is_timed and capacity.per is not None:
            raise CapacityError(
                f"{capacity!r} refers to {capacity.per} items, but period= refers to time. Use "
                f"Capacity.count({capacity.value}), or leave the period out."
            )
        if not self.is_timed and (capacity.per is None or capacity.per != self.capacity.per):
            raise CapacityError(
                f"Without period=..., a budget is Capacity.count(k, per=n), with the same n "
                f"throughout; got {capacity!r}."
            )

    def count_flags(self, n: int) -> None:
        """Count flags that were given elsewhere to items observed in the present period."""
        with self._lock:
            self.state_ints[USED] += check_count("n", n, at_least=0)
            self.state_ints[SINCE] = _OUT_OF_DATE

    def _length(self) -> float:
        return self.period_length if self.is_timed else float(self.capacity.per or 1)

    def _origin(self) -> float:
        on_a_clock = self.is_timed and self.calendar is None
        return float(self.options["starts_at"]) if on_a_clock else 0.0

    def initial_state(self, calibration_scores: Floats) -> tuple[Floats, NDArray[np.int64]]:
        """Start with periods made up from the calibration scores."""
        return first_ledger(
            calibration_scores,
            capacity=int(self.capacity.value),
            length=self._length(),
            origin=self._origin(),
            expected=self.options["expected_arrivals"] or self._length(),
            rule=_RULES[self.options["pace"]],
        )

    def apply_capacity(self, capacity: Capacity, *, since: float | None = None) -> None:
        """Set the number of flags, and thin out today's list if it has become too short for it."""
        ints, today = self.state_ints, open_ledger(self.state_floats, self.state_ints).today
        ints[CAPACITY] = int(capacity.value)
        stride = stride_for(int(capacity.value), int(ints[SIZE]))
        while ints[STRIDE] < stride:
            kept = today[:, : ints[LISTED] : 2]
            today[:, : kept.shape[1]] = kept.copy()
            ints[LISTED], ints[STRIDE] = kept.shape[1], 2 * ints[STRIDE]
        ints[SINCE] = _OUT_OF_DATE

    def change_scale(self, old: TailScale, new: TailScale) -> None:
        """Translate all listed scores."""
        ledger = open_ledger(self.state_floats, self.state_ints)
        for scores in (ledger.today[0], ledger.past[:, 0], ledger.caught):
            scores[...] = old.translate(scores, to=new)
        self.state_ints[SINCE] = _OUT_OF_DATE

    def is_consistent(self) -> bool:
        """Check the ledger, and that it belongs to the capacity and the options."""
        floats, ints = self.state_floats, self.state_ints
        return (
            is_valid_ledger(floats, ints)
            and floats[LENGTH] == self._length()
            and floats[ORIGIN] == self._origin()
            and ints[CAPACITY] == int(self.capacity.value)
            and ints[PINNED] == (self.options["pace"] != "auto")
        )
