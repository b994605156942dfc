"""What a budget remembers: the highest scores of this period and of the periods before.

Everything lies in one array of floats and one of ints, because a compiled call pays for every array
that it receives. :class:`Ledger` holds views of their parts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from .._core.arrays import Floats

# The ints: the flags to be expected, the budget used by scores, the number of the period, arrivals
# seen in it, entries in today's list, every how many arrivals one is listed, arrivals since the
# thresholds were computed, the leading rule, whether a period has begun, whether it was joined
# midway, whether the rule is pinned, and the room in a list.
CAPACITY, USED, PERIOD, SEEN, LISTED, STRIDE, SINCE, LEADER, BEGUN, JOINED, PINNED, SIZE = range(12)
# The whole budget, in flags or in units of work, and what of it is not for scores at present; the
# most probes in a period, and the probes drawn.
TOTAL, KEPT, ALLOWED, DRAWN = range(12, 16)
# For each rule in the shadow, flags used and flags noted.
N_RULES = 2
SHADOW_USED = 16
SHADOW_NOTED = SHADOW_USED + N_RULES
_N_INTS = SHADOW_NOTED + N_RULES
# The first floats: length and start of periods, expected arrivals, the phase at which the
# thresholds were computed, the threshold in force, the share of the period that had passed unseen
# when the stream began, the usual work of a flag (1 in a budget of flags), the draws to be expected
# in a period, and the rate of draws; then, for each rule in the shadow, its threshold and the
# average share of the highest scores that it caught.
LENGTH, ORIGIN, EXPECTED, PHASE, THRESHOLD, UNSEEN, USUAL_WORK, MEAN_DRAWS, RATE = range(9)
SHADOW_THRESHOLD = 9
SHADOW_CATCH = SHADOW_THRESHOLD + N_RULES
_N_HEAD_FLOATS = SHADOW_CATCH + N_RULES

MEMORY = 6  # periods
# A list has room for four entries per flag, or for at least two if four would be too many. If it
# cannot hold two per flag, only every second, fourth, ... arrival is listed.
_PER_FLAG, _LEAST_PER_FLAG = 4, 2
_SHORTEST_LIST, _MODERATE_LIST, _LONGEST_LIST = 64, 2_048, 4_096
_BLOCKS = 48  # parts of a period, for the pattern of its arrivals
_GOLDEN = 0.6180339887498949


class Ledger(NamedTuple):
    """Views of the two arrays.

    `today` and each entry of `past` are lists of the highest scores in falling order, with the
    phase of the period at which each arrived. `sizes` holds for each earlier period the number of
    entries, the share of arrivals that an entry stands for, and the number of arrivals. `profile`
    holds the usual share of arrivals in each part of a period, and the counts of this period.
    `caught` lists the scores that each rule in the shadow has flagged.
    """

    ints: Any
    floats: Any
    today: Any
    past: Any
    sizes: Any
    profile: Any
    caught: Any


@njit(cache=True)
def open_ledger(floats: Any, ints: Any) -> Any:
    """Return the views."""
    size = ints[SIZE]
    today = _N_HEAD_FLOATS
    past = today + 2 * size
    sizes = past + MEMORY * 2 * size
    profile = sizes + 3 * MEMORY
    caught = profile + 2 * _BLOCKS
    return Ledger(
        ints,
        floats,
        floats[today:past].reshape(2, size),
        floats[past:sizes].reshape(MEMORY, 2, size),
        floats[sizes:profile].reshape(3, MEMORY),
        floats[profile:caught].reshape(2, _BLOCKS),
        floats[caught : caught + N_RULES * size].reshape(N_RULES, size),
    )


@njit(cache=True)
def stride_for(capacity: int, size: int) -> int:
    """Return every how many arrivals one is listed, for lists that reach well past the capacity."""
    stride = 1
    while _LEAST_PER_FLAG * capacity > stride * size:
        stride *= 2
    return stride


@njit(cache=True)
def insert(table: Any, n: int, score: float, phase: float) -> int:
    """Insert a score into a list in falling order, and return the new length of the list."""
    size = table.shape[1]
    if n == size and score <= table[0, n - 1]:
        return n
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if table[0, middle] >= score:
            low = middle + 1
        else:
            high = middle
    if n < size:
        n += 1
    for i in range(n - 1, low, -1):
        table[0, i] = table[0, i - 1]
        table[1, i] = table[1, i - 1]
    table[0, low], table[1, low] = score, phase
    return n


@njit(cache=True)
def recent_threshold(target: float, phase: float, ledger: Any) -> float:
    """Return the score that `target` arrivals exceeded within the length of the last period."""
    ints, today, past = ledger.ints, ledger.today, ledger.past[0]
    n_past = int(ledger.sizes[0, 0])
    i, j, total, last = 0, 0, 0.0, -np.inf
    weight = float(ints[STRIDE])
    per_past = ledger.sizes[1, 0] * ledger.sizes[2, 0]  # arrivals per entry of the last period
    while total <= target:
        while j < n_past and past[1, j] <= phase:
            j += 1
        from_past = j < n_past
        if i < ints[LISTED] and (not from_past or today[0, i] >= past[0, j]):
            last = today[0, i]
            total += weight
            i += 1
        elif from_past:
            last = past[0, j]
            total += per_past
            j += 1
        else:
            break
    return last


@njit(cache=True)
def pattern_threshold(target: float, phase: float, ledger: Any) -> float:
    """Return the score that this share of a period's arrivals exceeded in its later hours.

    Earlier periods differ. A flag that is saved for the rest of the day and not needed there costs
    an item near the threshold. A flag that is missing there costs an item from the top. Therefore
    the richer half of the earlier periods decides.
    """
    found = np.empty(MEMORY)
    for age in range(MEMORY):
        found[age] = _later_threshold(target, phase, age, ledger)
    found.sort()
    return found[MEMORY // 2 :].mean()


@njit(cache=True)
def _later_threshold(target: float, phase: float, age: int, ledger: Any) -> float:
    past, listed = ledger.past[age], int(ledger.sizes[0, age])
    total = 0.0
    for i in range(listed):
        if past[1, i] > phase:
            total += ledger.sizes[1, age]
            if total > target:
                return past[0, i]
    return past[0, listed - 1]


def first_ledger(
    calibration: Floats, *, capacity: int, expected: float, usual_work: float
) -> Ledger:
    """Return the ledger of a new budget; calibration scores stand in for the past."""
    size = _list_size(capacity)
    ints, floats = np.zeros(_N_INTS, np.int64), np.zeros(_n_floats(size))
    ints[[SIZE, STRIDE]] = size, stride_for(capacity, size)
    floats[[EXPECTED, USUAL_WORK]] = expected, usual_work
    ledger: Ledger = open_ledger(floats, ints)
    _fill_past(ledger, calibration)
    ledger.profile[0] = 1 / _BLOCKS
    return ledger


def is_sound(floats: Floats, ints: Any) -> bool:
    """Whether two arrays are a ledger whose numbers of entries fit into its lists."""
    if ints.size != _N_INTS or not 0 < ints[SIZE] <= _LONGEST_LIST:
        return False
    size = int(ints[SIZE])
    if floats.size != _n_floats(size) or not 0 <= ints[LEADER] < N_RULES:
        return False
    listed = np.array([ints[LISTED], *ints[SHADOW_NOTED:], *open_ledger(floats, ints).sizes[0]])
    is_timed = 0 < floats[LENGTH] < np.inf and np.isfinite(floats[ORIGIN])
    are_within = np.all((listed >= 0) & (listed <= size)) and ints[STRIDE] > 0
    return bool(is_timed and are_within and min(ints[CAPACITY], ints[SEEN]) >= 0)


def thin_out(ledger: Ledger) -> None:
    """Leave out every second entry of today's list until it reaches well past the capacity."""
    ints, today = ledger.ints, ledger.today
    stride = stride_for(int(ints[CAPACITY]), int(ints[SIZE]))
    while ints[STRIDE] < stride:
        kept = today[:, : ints[LISTED] : 2]
        today[:, : kept.shape[1]] = kept.copy()
        ints[LISTED], ints[STRIDE] = kept.shape[1], 2 * ints[STRIDE]


def _list_size(capacity: int) -> int:
    """Return how many entries a list has room for."""
    roomy = min(max(_PER_FLAG * capacity, _SHORTEST_LIST), _MODERATE_LIST)
    return min(max(roomy, _LEAST_PER_FLAG * capacity), _LONGEST_LIST)


def _n_floats(size: int) -> int:
    return _N_HEAD_FLOATS + (2 + 2 * MEMORY + N_RULES) * size + 3 * MEMORY + 2 * _BLOCKS


def _fill_past(ledger: Any, calibration: Floats) -> None:
    """Fill the past with the highest scores to be expected, spread evenly over each period."""
    size, stride, expected = ledger.ints[SIZE], ledger.ints[STRIDE], ledger.floats[EXPECTED]
    n = int(min(size, max(expected // stride, 1)))
    ranks = np.arange(n)
    shares = np.clip(1 - (ranks + 0.5) * stride / expected, 0, 1)
    for age in range(MEMORY):
        ledger.past[age, 0, :n] = np.quantile(calibration, shares)
        ledger.past[age, 1, :n] = ((ranks + 1) * _GOLDEN + age * _GOLDEN**2) % 1
        ledger.sizes[:, age] = n, stride / expected, expected
