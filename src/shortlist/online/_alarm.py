"""An alarm for a flag rate that has left its capacity: no labels, and looking is free."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from .._core.validation import check_number, check_option
from ..capacity import Capacity, check_capacity
from ._state import VERSION, check_state, pack, pack_capacity, read_numbers, unpack_capacity

__all__ = ["SIDES", "RateAlarm"]

#: In which direction a rate may leave its capacity.
SIDES = ("above", "below", "either")

LOG_EVIDENCE, MOST, FLAGS, ALLOWED, RATE = range(5)
# The estimate of the rate starts as if this many flags had been allowed, and more of them given, or
# fewer: what one side listens for.
_PRIOR = 5.0
_LEAN = np.array([1.6, 1 / 1.6, 1.0])


@njit(cache=True)
def _bet(flag: bool, side: int, real: Any) -> None:
    """Bet on the next flag at the odds of the capacity, going by the flags so far."""
    rate = real[RATE]
    factor = (_PRIOR * _LEAN[side] + real[FLAGS]) / (_PRIOR + real[ALLOWED])
    if side == 0:
        factor = max(factor, 1.0)
    elif side == 1:
        factor = min(factor, 1.0)
    guess = min(factor * rate, 0.5 * (1.0 + rate))
    if 0.0 < rate < 1.0:
        real[LOG_EVIDENCE] += (
            np.log(guess / rate) if flag else np.log1p((rate - guess) / (1 - rate))
        )
    elif rate == 0.0 and flag and side != 1:
        real[LOG_EVIDENCE] = np.inf
    real[FLAGS] += flag
    real[ALLOWED] += rate
    real[MOST] = max(real[MOST], real[LOG_EVIDENCE])


@njit(cache=True)
def _bet_many(flags: Any, side: int, evidence: Any, real: Any) -> None:
    for i in range(flags.size):
        _bet(flags[i], side, real)
        evidence[i] = real[MOST]


class RateAlarm:
    r"""Raise an alarm when the flag rate has left its capacity.

    It may be asked after every item for as long as one likes: as long as the rate keeps its
    capacity, the probability of *ever* raising a false alarm is at most `error`. Meant for
    thresholds that stay as they are; a controller corrects its rate before an alarm is due.

    Parameters
    ----------
    capacity : Capacity
        A fraction, a count with `per`, or a multiple together with `prevalence`.
    side : {"above", "below", "either"}, default="above"
        Which departures count. ``"either"`` takes the rate to be the capacity exactly.
    error : float, default=0.01
        Probability of a false alarm, ever.
    prevalence : number, default=None
        Share of rare items, for a multiple.

    Notes
    -----
    The evidence is the wealth of a gambler who bets on the next flag at the odds of the capacity,
    with a guess of the rate from the flags so far (a Beta mixture when the capacity is constant).
    If the rate keeps its capacity, nobody can expect to win; by Ville's inequality the wealth
    exceeds 1 / error with probability at most `error`.

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
        if not 0 < float(check_number("error", error)) < 1:
            raise ValueError(f"error must lie strictly between 0 and 1; got {error!r}.")
        self._side = check_option("side", side, SIDES)
        self._error = float(error)
        self._prevalence = None if prevalence is None else float(prevalence)
        self._real = np.zeros(5)
        self.set_capacity(capacity)

    @property
    def raised(self) -> bool:
        """Whether the evidence has ever reached 1 / error."""
        return bool(self._real[MOST] >= -math.log(self._error))

    @property
    def evidence(self) -> float:
        """The wealth of the gambler: 1 is none, and 1 / error is enough for an alarm."""
        return math.exp(min(float(self._real[LOG_EVIDENCE]), 700.0))

    def set_capacity(self, capacity: Capacity) -> Self:
        """Go on with another capacity.

        Parameters
        ----------
        capacity : Capacity
            From the next item on.

        Returns
        -------
        self
        """
        self._real[RATE] = check_capacity(capacity).as_fraction(self._prevalence)
        self._capacity = capacity
        return self

    def update(self, flags: ArrayLike) -> Self:
        """Take in one flag or many.

        Parameters
        ----------
        flags : bool or array-like of bool, shape (n_items,)
            Whether items were flagged, in order.

        Returns
        -------
        self
        """
        self.track(flags)
        return self

    def track(self, flags: ArrayLike) -> NDArray[np.float64]:
        """Take in flags, and return the largest evidence so far after each, as a logarithm.

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
        _bet_many(checked, SIDES.index(self._side), evidence, self._real)
        return evidence

    def state(self) -> dict[str, Any]:
        """Return everything that matters as plain JSON.

        Returns
        -------
        dict
            For :meth:`from_state`.
        """
        return {
            "format": "shortlist.online",
            "version": VERSION,
            "controller": "RateAlarm",
            "capacity": pack_capacity(self._capacity),
            "options": [self._side, self._error, self._prevalence],
            "real": pack(self._real.tolist()),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the alarm that :meth:`state` was called on.

        Parameters
        ----------
        state : dict
            What `state` returned.

        Returns
        -------
        RateAlarm
        """
        check_state(state, ["RateAlarm"], {"capacity", "options", "real"})
        try:
            side, error, prevalence = state["options"]
            capacity = unpack_capacity(state["capacity"])
            made = cls(capacity, side=side, error=error, prevalence=prevalence)
            rate, made._real = made._real[RATE], read_numbers(state["real"], float)
        except (TypeError, ValueError, KeyError) as problem:
            raise ValueError(f"state cannot be read: {problem}") from problem
        real = made._real
        if real.shape != (5,) or real[RATE] != rate or min(real[FLAGS], real[ALLOWED]) < 0:
            raise ValueError("state contradicts itself: load it as state() returned it.")
        return made
