"""Compiled pacing of a hard budget: how high must a score be to deserve one of the flags left?

Two rules answer that question at any moment of a period, from the highest scores of this period and
of the periods before. One follows the last period's length of scores, whatever the hour; the other
looks at the same hours of all remembered periods. Each rule also plays on its own in the shadow,
with its own budget; after each period the rule whose flags caught the larger share of that period's
top scores, on a fading average, leads the next one. No labels are needed for that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ._book import (
    BEGUN,
    CAPACITY,
    CATCH,
    EXPECTED,
    JOINED,
    LEADER,
    LENGTH,
    LISTED,
    N_RULES,
    NOTED,
    ORIGIN,
    PERIOD,
    PHASE,
    PINNED,
    SEEN,
    SHADOW,
    SHADOW_THRESHOLD,
    SINCE,
    SIZE,
    STRIDE,
    THRESHOLD,
    USED,
    open_book,
    stride_for,
)
from ._decision import ABOVE, BELOW, FULL
from ._lists import by_pattern, by_recent, insert
from ._time import period_of

__all__ = ["PATTERN", "RECENT", "pace_many", "pace_step"]

RECENT, PATTERN = range(N_RULES)
_FADE = 0.75  # of the averages of catches, per period
_LEARN = 0.3  # of the daily profile and the expected arrivals, per period
_TRUST = 0.1  # of the expected arrivals, as a share of a period already seen
_REFRESHES = 256  # per period, at least; and after every flag
_REFRESHES_PER_REST = 32  # per period that is left


@njit(cache=True)
def _expected_share(phase: float, profile: Any) -> float:
    """Return the share of a period's arrivals that usually come before `phase`."""
    blocks = profile.shape[1]
    place = min(phase, 1.0) * blocks
    block = min(int(place), blocks - 1)
    share = 0.0
    for i in range(block):
        share += profile[0, i]
    return share + (place - block) * profile[0, block]


@njit(cache=True)
def _threshold(rule: int, left: int, phase: float, book: Any) -> float:
    """Return the threshold of a rule with so many flags left."""
    if left <= 0:
        return np.inf
    seen = book.whole[SEEN]
    share = _expected_share(phase, book.profile)
    volume = (_TRUST * book.real[EXPECTED] + seen) / (_TRUST + share)
    still_to_come = volume * (1.0 - share)
    if left >= still_to_come:
        return -np.inf
    if rule == RECENT:
        window = seen + book.sizes[2, 0] * (1.0 - share)
        return by_recent(left * window / still_to_come, phase, book)
    return by_pattern(left / volume, phase, book)


@njit(cache=True)
def _refresh(phase: float, book: Any) -> None:
    """Compute all thresholds anew."""
    whole, real = book.whole, book.real
    real[PHASE], whole[SINCE] = phase, 0
    if not whole[PINNED]:
        for rule in range(N_RULES):
            _refresh_shadow(rule, phase, book)
    _refresh_leader(phase, book)


@njit(cache=True)
def _refresh_shadow(rule: int, phase: float, book: Any) -> None:
    left = book.whole[CAPACITY] - book.whole[SHADOW + rule]
    book.real[SHADOW_THRESHOLD + rule] = _threshold(rule, left, phase, book)


@njit(cache=True)
def _refresh_leader(phase: float, book: Any) -> None:
    whole, real, rule = book.whole, book.real, book.whole[LEADER]
    if not whole[PINNED] and whole[USED] == whole[SHADOW + rule]:
        real[THRESHOLD] = real[SHADOW_THRESHOLD + rule]  # nothing was watched without deciding
    else:
        real[THRESHOLD] = _threshold(rule, whole[CAPACITY] - whole[USED], phase, book)


@njit(cache=True)
def _is_stale(phase: float, book: Any) -> bool:
    """Whether the thresholds are from so long ago that what is to come has changed."""
    if book.whole[SINCE] * _REFRESHES >= book.real[EXPECTED]:
        return True
    # Towards the end of a period, what is to come shrinks faster and faster.
    since = phase - book.real[PHASE]
    return since * _REFRESHES >= 1 or since * _REFRESHES_PER_REST >= 1 - phase


@njit(cache=True)
def _judge(book: Any) -> None:
    """Let the rule lead that caught most of the period's highest scores."""
    whole, real = book.whole, book.real
    place = min(whole[CAPACITY] // whole[STRIDE], whole[LISTED])
    if place == 0 or whole[PINNED]:
        return
    worst_of_best = book.today[0, place - 1]
    best = 0
    for rule in range(N_RULES):
        n = 0
        for i in range(whole[NOTED + rule]):
            if book.caught[rule, i] >= worst_of_best:
                n += 1
        share = min(n / place, 1.0)
        real[CATCH + rule] = _FADE * real[CATCH + rule] + (1 - _FADE) * share
        if real[CATCH + rule] > real[CATCH + best]:
            best = rule
    whole[LEADER] = best


@njit(cache=True)
def _remember(book: Any) -> None:
    """Move this period into the past, and learn its arrivals."""
    past, sizes, profile = book.past, book.sizes, book.profile
    for age in range(past.shape[0] - 1, 0, -1):
        past[age] = past[age - 1]
        for row in range(3):
            sizes[row, age] = sizes[row, age - 1]
    past[0] = book.today
    seen = book.whole[SEEN]
    sizes[0, 0], sizes[1, 0], sizes[2, 0] = book.whole[LISTED], book.whole[STRIDE] / seen, seen
    book.real[EXPECTED] += _LEARN * (seen - book.real[EXPECTED])
    for block in range(profile.shape[1]):
        profile[0, block] += _LEARN * (profile[1, block] / seen - profile[0, block])


@njit(cache=True)
def _begin(period: int, phase: float, book: Any) -> None:
    """Close the period that has ended, and open the next with a full budget."""
    whole = book.whole
    if whole[BEGUN] and whole[SEEN] > 0 and not whole[JOINED]:
        _judge(book)
        _remember(book)
    whole[JOINED] = (not whole[BEGUN]) and phase > 0.1
    whole[BEGUN], whole[PERIOD] = 1, period
    whole[USED], whole[SEEN], whole[LISTED] = 0, 0, 0
    whole[SHADOW:] = 0
    whole[STRIDE] = stride_for(whole[CAPACITY], whole[SIZE])
    book.profile[1, :] = 0
    book.real[PHASE] = 0.0
    _refresh(phase, book)


@njit(cache=True)
def _watch(score: float, phase: float, book: Any) -> None:
    """Count an arrival, and list its score if it is among the highest."""
    whole, blocks = book.whole, book.profile.shape[1]
    book.profile[1, min(int(phase * blocks), blocks - 1)] += 1
    if whole[SEEN] % whole[STRIDE] == 0:
        whole[LISTED] = insert(book.today, whole[LISTED], score, phase)
    whole[SEEN] += 1
    whole[SINCE] += 1


@njit(cache=True)
def _play_shadows(score: float, phase: float, book: Any) -> None:
    """Let each rule spend its own budget."""
    whole = book.whole
    listed = (whole[SEEN] - 1) % whole[STRIDE] == 0
    for rule in range(N_RULES):
        if score > book.real[SHADOW_THRESHOLD + rule] and whole[SHADOW + rule] < whole[CAPACITY]:
            whole[SHADOW + rule] += 1
            noted = whole[NOTED + rule]
            if listed and noted < whole[SIZE]:
                book.caught[rule, noted] = score
                whole[NOTED + rule] = noted + 1
            _refresh_shadow(rule, phase, book)


@njit(cache=True)
def _phase(at: float, period: int, real: Any) -> float:
    """Return how much of a period has gone by."""
    return min(max((at - real[ORIGIN]) / real[LENGTH] - period, 0.0), 1.0)


@njit(cache=True)
def _decide(score: float, at: float, deciding: bool, book: Any) -> tuple[int, float]:
    """Decide one item, or only watch it; return the code of the reason and the threshold."""
    whole, real = book.whole, book.real
    period = period_of(at, real[ORIGIN], real[LENGTH])
    if not whole[BEGUN] or period > whole[PERIOD]:
        _begin(period, _phase(at, period, real), book)
    phase = _phase(at, whole[PERIOD], real)
    if _is_stale(phase, book):
        _refresh(phase, book)
    threshold = real[THRESHOLD]
    _watch(score, phase, book)
    if not whole[PINNED]:
        _play_shadows(score, phase, book)
    if not deciding:
        return BELOW, threshold
    if whole[USED] >= whole[CAPACITY]:
        return FULL, threshold
    if score > threshold:
        whole[USED] += 1
        _refresh_leader(phase, book)
        return ABOVE, threshold
    return BELOW, threshold


@njit(cache=True)
def pace_step(score: float, at: float, deciding: bool, real: Any, whole: Any) -> tuple[int, float]:
    """Decide one item."""
    return _decide(score, at, deciding, open_book(real, whole))


@njit(cache=True)
def pace_many(
    scores: Any, times: Any, deciding: bool, codes: Any, thresholds: Any, real: Any, whole: Any
) -> None:
    """Decide many items in order."""
    book = open_book(real, whole)
    for i in range(scores.size):
        codes[i], thresholds[i] = _decide(scores[i], times[i], deciding, book)
