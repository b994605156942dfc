"""An alarm for a flag rate that has left its capacity; it needs no labels."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from .._core.arrays import Floats
from .._core.validation import check_number, check_option
from ..capacity import Capacity, check_capacity

#: The directions in which a rate may leave its capacity.
SIDES = ("above", "below", "either")

LOG_EVIDENCE, LARGEST, FLAGS, ALLOWED, RATE = range(5)
# The estimate of the rate starts as if this many flags had been allowed, and this factor more or
# fewer had been given, depending on the side.
_PRIOR_FLAGS = 5.0
_PRIOR_FACTOR = np.array([1.6, 1 / 1.6, 1.0])


@njit(cache=True)
def _bet(flag: bool, side: int, floats: Any) -> None:
    """Bet on the next flag at the odds of the capacity, based on the flags so far."""
    rate = floats[RATE]
    factor = (_PRIOR_FLAGS * _PRIOR_FACTOR[side] + floats[FLAGS]) / (_PRIOR_FLAGS + floats[ALLOWED])
    if side == 0:
        factor = max(factor, 1.0)
    elif side == 1:
        factor = min(factor, 1.0)
    estimate = min(factor * rate, 0.5 * (1.0 + rate))
    if 0.0 < rate < 1.0:
        floats[LOG_EVIDENCE] += (
            np.log(estimate / rate) if flag else np.log1p((rate - estimate) / (1 - rate))
        )
    elif rate == 0.0 and flag and side != 1:
        floats[LOG_EVIDENCE] = np.inf
    floats[FLAGS] += flag
    floats[ALLOWED] += rate
    floats[LARGEST] = max(floats[LARGEST], floats[LOG_EVIDENCE])


@njit(cache=True)
def _bet_many(flags: Any, side: int, evidence: Any, floats: Any) -> None:
    for i in range(flags.size):
        _bet(flags[i], side, floats)
        evidence[i] = floats[LARGEST]


def check_error(error: Any) -> float:
    """Return the probability of a false alarm as a float, strictly between 0 and 1."""
    if not 0 < float(check_number("error", error)) < 1:
        raise ValueError(f"error must lie strictly between 0 and 1; got {error!r}.")
    return float(error)


class Alarm:
    """What alarms share: the wealth of gamblers, in `_floats`, and the error they may make.

    An alarm can be pickled, and goes on from there.
    """

    _floats: Floats
    _error: float

    @property
    def raised(self) -> bool:
        """Whether the evidence has ever reached 1 / error."""
        return bool(self._floats[LARGEST] >= -math.log(self._error))

    @property
    def evidence(self) -> float:
        """The wealth of the gamblers: 1 means no evidence, and 1 / error raises the alarm."""
        return math.exp(min(float(self._floats[LOG_EVIDENCE]), 700.0))

    def track(self, items: ArrayLike, /) -> Floats:
        """Add items, and return the logarithm of the largest evidence so far after each."""
        raise NotImplementedError

    def update(self, items: ArrayLike, /) -> Self:
        """Add one item or many, as :meth:`track` does."""
        self.track(items)
        return self


class RateAlarm(Alarm):
    r"""Raise an alarm when the flag rate has left its capacity.

    You may check it after every item, for as long as you like. While the rate keeps its capacity,
    the probability of *ever* raising a false alarm is at most `error`. It is meant for thresholds
    that do not change; a controller corrects its rate before an alarm is due.

    Parameters
    ----------
    capacity : Capacity
        A fraction, a count with `per`, or a multiple together with `prevalence`.
    side : {"above", "below", "either"}, default="above"
        Which departures count. ``"either"`` assumes that the rate equals the capacity.
    error : float, default=0.01
        Probability of ever raising a false alarm.
    prevalence : number, default=None
        Share of rare items, for a multiple.

    Notes
    -----
    The evidence is the wealth of a gambler who bets on the next flag at the odds of the capacity,
    with an estimate of the rate from the flags so far (a Beta mixture when the capacity is
    constant). If the rate keeps its capacity, the gambler cannot expect to win. By Ville's
    inequality, the wealth exceeds 1 / error with probability at most `error`.

    Examples
    --------
    >>> import numpy as np
    >>> from shortlist import Capacity
    >>> from shortlist.online import RateAlarm
    >>> alarm = RateAlarm(Capacity.fraction(0.01))
    >>> rng = np.random.default_rng(0)
    >>> alarm.update(rng.random(10_000) < 0.01).raised
    False
    >>> alarm.update(rng.random(10_000) < 0.03).raised
    True
    """

    def __init__(
        self,
        capacity: Capacity,
        *,
        side: str = "above",
        error: float = 0.01,
        prevalence: Any = None,
    ) -> None:
        self._error = check_error(error)
        self._side = check_option("side", side, SIDES)
        self._prevalence = None if prevalence is None else float(prevalence)
        self._floats = np.zeros(5)
        self.set_capacity(capacity)

    def set_capacity(self, capacity: Capacity) -> Self:
        """Change the capacity.

        Parameters
        ----------
        capacity : Capacity
            From the next item on.
        """
        self._floats[RATE] = check_capacity(capacity).as_fraction(self._prevalence)
        return self

    def track(self, flags: ArrayLike, /) -> Floats:
        """Add flags, and return the logarithm of the largest evidence so far after each.

        Parameters
        ----------
        flags : array-like of bool, shape (n_items,)
            Whether items were flagged, in order.

        Returns
        -------
        ndarray of float, shape (n_items,)
            At least ``-log(error)`` from the alarm on.
        """
        checked = np.atleast_1d(np.asarray(flags))
        if checked.dtype != np.bool_ or checked.ndim != 1:
            raise ValueError(
                f"flags must be True or False for each item; got {checked.dtype} of shape "
                f"{checked.shape}. A Decision has its flag in .flag, a DecisionBatch in .flagged."
            )
        evidence = np.empty(checked.size)
        _bet_many(checked, SIDES.index(self._side), evidence, self._floats)
        return evidence
