"""What out-of-sample scores detect at a capacity, and whether one score clearly detects more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._core.arrays import Doubles, Mask
from .._core.ranking import cut_after

__all__ = ["WIDER", "detected", "detected_within", "preferred", "wider_limits"]

#: Multiples of the capacity at which scores are compared: at one alone, few items would decide.
WIDER = (1, 2, 4, 8)

_CLEAR = 2.0  # standard errors


def detected(scores: Doubles, is_rare: Mask, max_flags: int) -> Doubles:
    """Return each rare item's chance of being among the `max_flags` highest scores.

    Items that tie for the last places share them.

    Examples
    --------
    >>> detected(np.array([0.9, 0.5, 0.5, 0.1]), np.array([True, True, False, True]), 2)
    array([1. , 0.5, 0. ])
    """
    cut = cut_after(scores, max_flags).value
    n_above, n_tied = np.count_nonzero(scores > cut), np.count_nonzero(scores == cut)
    share = (max_flags - n_above) / n_tied if n_tied else 0.0
    rare = scores[is_rare]
    return (rare > cut) + share * (rare == cut)


def wider_limits(max_flags: int, n_items: int, factors: Sequence[int] = WIDER) -> list[int]:
    """Return the capacity and wider ones, at most the number of items."""
    return [min(factor * max_flags, n_items) for factor in factors]


def detected_within(scores: Doubles, is_rare: Mask, limits: Sequence[int]) -> Doubles:
    """Return each rare item's chance of being detected, on average over several capacities.

    Examples
    --------
    >>> scores, is_rare = np.array([0.9, 0.5, 0.4, 0.1]), np.array([True, False, True, False])
    >>> detected_within(scores, is_rare, wider_limits(1, n_items=4))
    array([1. , 0.5])
    """
    return np.mean([detected(scores, is_rare, limit) for limit in limits], axis=0)


def preferred(found: Sequence[Doubles], *, n_errors: float = _CLEAR) -> int:
    """Return the first place, in order of preference, that the best one does not clearly beat.

    The best one clearly beats another if it detects more, item by item, by over `n_errors` standard
    errors of the difference. One standard error is enough to compare two candidates; among several
    equal ones, the luckiest would exceed it too often.

    Examples
    --------
    >>> rare, chance = np.arange(100), np.random.default_rng(0).random(100)
    >>> preferred([1.0 * (chance < 0.30), 1.0 * (chance < 0.31), 1.0 * (rare % 2)])
    2
    """
    best = max(found, key=np.mean)
    return next(
        place for place, these in enumerate(found) if not _clearly_more(best, these, n_errors)
    )


def _clearly_more(these: Doubles, those: Doubles, n_errors: float) -> bool:
    gains = these - those
    if gains.size < 2:
        return False
    return bool(gains.mean() > n_errors * gains.std(ddof=1) / np.sqrt(gains.size))
