"""How many cases to invite when not all of them come, or when the number of slots varies."""

from __future__ import annotations

from fractions import Fraction
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from .arrays import Doubles, Ints
from .intervals import clopper_pearson_upper, largest
from .validation import check_confidence

#: More than the relative error of computed probabilities.
_SLACK = 1 + 1e-9
_MOST_SLOTS, _MOST_INVITED = 10**12, 2**53


def count_invitations(
    slots: int | ArrayLike,
    *,
    rate: float | None = None,
    history: tuple[int, int] | None = None,
    chances: ArrayLike | None = None,
    confidence: float = 0.95,
) -> int:
    r"""Return how many cases to invite so that hardly ever more come than there are slots.

    Those who are invited come independently of each other. Say in one way how often.

    Parameters
    ----------
    slots : int or array-like of int
        The number of slots; or the numbers of comparable days in the past, if the next one is not
        known. Past days and the next one must be exchangeable: in any order equally likely.
    rate : float, default=None
        The probability that an invited case comes, if it is known.
    history : tuple of int, default=None
        How many came, and how many were invited, in the past.
    chances : array-like of shape (n_cases,), default=None
        The probability of each case, in the order of the list.
    confidence : float, default=0.95
        More cases come than there are slots with a probability of at most ``1 - confidence``.

    Returns
    -------
    int
        The largest such number; with `chances`, at most their number.

    Notes
    -----
    With :math:`X_m` of the first m cases coming, K slots and an error of :math:`\delta`, m is the
    largest number with :math:`P(X_m > K) \le \delta`. A history pays half of the error for an upper
    bound of the rate (Clopper and Pearson), and the binomial law with that rate gets the other
    half. For n past numbers of slots :math:`c_i`, m is the largest number with :math:`1 + \sum_i
    P(X_m > c_i) \le \delta (n + 1)`. This is conformal risk control (Angelopoulos et al., 2022),
    whose bound holds for every law of the slots; if everyone comes, it is the
    :math:`\lfloor \delta (n + 1) \rfloor`-th smallest number.

    Examples
    --------
    Fifty slots, and six of ten come:

    >>> from shortlist.thresholds import count_invitations
    >>> count_invitations(50, rate=0.6), count_invitations(50, history=(310, 520))
    (72, 67)

    Everyone comes, and there were 45 to 55 slots on the last 39 days:

    >>> import numpy as np
    >>> past = np.random.default_rng(0).integers(45, 56, size=39)
    >>> count_invitations(past, rate=1)
    45
    """
    values, n_new = _check_slots(slots)
    error = 1 - Fraction(str(check_confidence(confidence)))
    if sum(given is not None for given in (rate, history, chances)) != 1:
        raise ValueError(
            "Say in one way who comes: rate=0.6, history=(310, 520), or chances=[...], the "
            "probability of each case."
        )
    if history is not None:
        error /= 2
        rate = _highest_rate(history, error)
    limit = error * (values.size + n_new) - n_new
    if limit < 0:
        raise ValueError(
            f"slots has {values.size} past numbers; a confidence of {float(confidence):g} needs at "
            f"least {-int(-1 // error) - 1}. Give more of them, or a lower confidence."
        )
    if chances is not None:
        if np.ndim(chances) != 1:
            raise ValueError(f"chances must be a list of probabilities; got {chances!r}.")
        return _count_unequal(values, _check_chances(chances), limit)
    return _count_equal(values, _check_chances(rate).item(), limit)


def _count_equal(slots: Ints, rate: float, limit: Fraction) -> int:
    """Count cases that all come with the same probability."""
    if slots.max() + 1 >= 2**52 * rate:
        raise ValueError(
            f"rate={rate:g} is too small for {slots.max():,} slots: no one comes, however many are "
            "invited. Say how likely a case is to come, such as rate=0.6."
        )
    return largest(lambda m: _holds(binom.sf(slots, m, rate), limit), _MOST_INVITED)


def _count_unequal(slots: Ints, chances: Doubles, limit: Fraction) -> int:
    """Count cases down a list, with the law of how many of them come."""
    slots = np.minimum(slots, chances.size)  # more cannot come
    law = np.zeros(int(slots.max()) + 2)  # the last entry is for all larger numbers
    law[0] = 1.0
    for n_before, chance in enumerate(chances.tolist()):
        moved = chance * law
        law -= moved
        law[1:] += moved[:-1]
        law[-1] += moved[-1]
        if not _holds(np.cumsum(law[::-1])[::-1][slots + 1], limit):
            return n_before
    return chances.size


def _holds(overruns: Doubles, limit: Fraction) -> bool:
    """Tell whether probabilities to exceed the slots, of each day, are small enough together."""
    sure = overruns == 1  # these are exact
    return int(sure.sum()) + Fraction(float(overruns[~sure].sum()) * _SLACK) <= limit


def _check_slots(slots: Any) -> tuple[Ints, int]:
    """Return the numbers of slots, and 1 if the next one is not among them; otherwise 0."""
    values = np.atleast_1d(np.asarray(slots))
    is_whole = values.ndim == 1 and values.dtype.kind in "iu" and values.size
    if not is_whole or values.min() < 0 or values.max() > _MOST_SLOTS:
        raise ValueError(
            f"slots must be a whole number from 0 to {_MOST_SLOTS:,}, or a list of such numbers; "
            f"got {slots!r}."
        )
    return values.astype(np.int64), np.ndim(slots)


def _highest_rate(history: Any, error: Fraction) -> float:
    came, invited = history if np.shape(history) == (2,) else (0, 0)
    are_whole = all(isinstance(each, Integral) for each in (came, invited))
    if not are_whole or not 0 <= came <= invited or not invited:
        raise ValueError(
            f"history must be how many came and how many were invited, such as (310, 520); got "
            f"{history!r}."
        )
    return float(clopper_pearson_upper(came, invited, error=float(error)))


def _check_chances(chances: Any) -> Doubles:
    array = np.asarray(chances, dtype=np.float64)
    bad = np.flatnonzero(~((array >= 0) & (array <= 1)))
    if bad.size:
        raise ValueError(
            f"Probabilities to come must lie between 0 and 1; got {array.ravel()[bad[0]]:g} for "
            f"case {bad[0] + 1}."
        )
    return array
