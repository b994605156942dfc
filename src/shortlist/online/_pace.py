"""Compiled pacing of a hard budget: how high must a score be to deserve one of the flags left?

Three rules answer that question at any moment of a period, from the highest scores of this period
and of the periods before. One follows the last period's length of scores, whatever the hour; two
look at the same hours of two or of all remembered periods. Each rule also plays on its own in the
shadow, with its own budget; after each period the rule whose flags caught the largest share of that
period's top scores, on a fading average, leads the next one. No labels are needed for that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ._decision import ABOVE, BELOW, FULL

__all__ = ["pace_many", "pace_step", "stride_for"]

# --- where things are kept ---------------------------------------------------------------------
# whole: capacity, flags used, index of the period, arrivals seen in it, entries of today's list,
# every how many arrivals is listed, arrivals since the thresholds were computed, the leading rule,
# entries of the ahead list, whether a period has begun, whether it was joined midway, and whether
# the rule is pinned; then, from `SHADOW` on, flags used and flags noted by each shadow.
CAPACITY, USED, PERIOD, SEEN, LISTED, STRIDE, SINCE, LEADER, AHEAD, BEGUN, JOINED, PINNED = range(
    12
)
SHADOW = 12
N_RULES = 3
WHOLE_SIZE = SHADOW + 2 * N_RULES
# real: length and start of periods, expected arrivals, phase at which the thresholds were computed,
# the threshold in force; then thresholds of the shadows and fading averages of their catches.
LENGTH, ORIGIN, EXPECTED, PHASE, THRESHOLD = range(5)
SHADOW_THRESHOLD = 5
CATCH = SHADOW_THRESHOLD + N_RULES
REAL_SIZE = CATCH + N_RULES

RECENT = 0
LISTED_PER_FLAG = 4
_RULE_MEMORY = np.array([1, 2, 99])  # periods that each rule looks back on
_FADE = 0.75  # of the averages of catches, per period
_LEARN = 0.3  # of the daily profile and the expected arrivals, per period
_TRUST = 0.1  # of the expected arrivals, as a share of a period already seen
_REFRESHES = 256  # per period, at least; and after every flag


@njit(cache=True)
def stride_for(capacity: int, size: int) -> int:
    """Return every how many arrivals is listed, so that a list reaches well past the capacity."""
    stride = 1
    while LISTED_PER_FLAG * capacity > stride * size:
        stride *= 2
    return stride


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
def _insert(table: Any, n: int, score: float, phase: float) -> int:
    """Put a score into a list in falling order, and return the list's new length."""
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
def _look_ahead(whole: Any, past: Any, sizes: Any, ahead: Any) -> None:
    """Merge the lists of all remembered periods into one, in falling order of scores."""
    n = 0
    for age in range(past.shape[0]):
        for i in range(int(sizes[0, age])):
            ahead[0, n], ahead[1, n], ahead[2, n] = past[age, 0, i], past[age, 1, i], age
            n += 1
    order = np.argsort(-ahead[0, :n], kind="mergesort")
    for row in range(3):
        ahead[row, :n] = ahead[row, :n][order]
    whole[AHEAD] = n


@njit(cache=True)
def _drop_passed(whole: Any, ahead: Any, phase: float) -> None:
    """Forget what earlier periods had before this phase."""
    n = 0
    for i in range(whole[AHEAD]):
        if ahead[1, i] > phase:
            for row in range(3):
                ahead[row, n] = ahead[row, i]
            n += 1
    whole[AHEAD] = n


@njit(cache=True)
def _by_pattern(
    target: float, memory: int, phase: float, whole: Any, sizes: Any, ahead: Any
) -> float:
    """Find the score that so many arrivals ahead exceed, going by earlier periods' later hours."""
    memory = min(memory, sizes.shape[1])
    heap, last = 0.0, -np.inf
    for i in range(whole[AHEAD]):
        age = int(ahead[2, i])
        if age < memory and ahead[1, i] > phase:
            last = ahead[0, i]
            heap += sizes[1, age] / memory
            if heap > target:
                return last
    return last


@njit(cache=True)
def _by_recent(
    target: float, phase: float, whole: Any, today: Any, sizes: Any, ahead: Any
) -> float:
    """Find the score that this share of the last period's length of arrivals exceeded."""
    i, j, heap, last = 0, 0, 0.0, -np.inf
    weight = float(whole[STRIDE])
    per_past = sizes[1, 0] * sizes[2, 0]  # what one entry of the last period stands for
    while True:
        while j < whole[AHEAD] and (ahead[2, j] != 0 or ahead[1, j] <= phase):
            j += 1
        from_today = i < whole[LISTED]
        from_past = j < whole[AHEAD]
        if not from_today and not from_past:
            return last
        if from_today and (not from_past or today[0, i] >= ahead[0, j]):
            last = today[0, i]
            heap += weight
            i += 1
        else:
            last = ahead[0, j]
            heap += per_past
            j += 1
        if heap > target:
            return last


@njit(cache=True)
def _threshold(
    rule: int,
    left: int,
    phase: float,
    whole: Any,
    real: Any,
    today: Any,
    sizes: Any,
    ahead: Any,
    profile: Any,
) -> float:
    """Return the threshold of a rule with so many flags left."""
    if left <= 0:
        return np.inf
    share = _expected_share(phase, profile)
    volume = (_TRUST * real[EXPECTED] + whole[SEEN]) / (_TRUST + share)
    still_to_come = volume * (1.0 - share)
    if left >= still_to_come:
        return -np.inf
    if rule == RECENT:
        window = whole[SEEN] + sizes[2, 0] * (1.0 - share)
        target = left * window / still_to_come
        return _by_recent(target, phase, whole, today, sizes, ahead)
    target = left / volume
    return _by_pattern(target, _RULE_MEMORY[rule], phase, whole, sizes, ahead)


@njit(cache=True)
def _refresh(
    phase: float, whole: Any, real: Any, today: Any, sizes: Any, ahead: Any, profile: Any
) -> None:
    """Compute all thresholds anew."""
    if int(phase * 48) > int(real[PHASE] * 48):
        _drop_passed(whole, ahead, phase)
    real[PHASE], whole[SINCE] = phase, 0
    left = whole[CAPACITY] - whole[USED]
    real[THRESHOLD] = _threshold(
        whole[LEADER], left, phase, whole, real, today, sizes, ahead, profile
    )
    if whole[PINNED]:
        return
    for rule in range(N_RULES):
        left = whole[CAPACITY] - whole[SHADOW + rule]
        real[SHADOW_THRESHOLD + rule] = _threshold(
            rule, left, phase, whole, real, today, sizes, ahead, profile
        )


@njit(cache=True)
def _judge(whole: Any, real: Any, today: Any, caught: Any) -> None:
    """Let the rule lead that caught most of the period's highest scores."""
    stride = whole[STRIDE]
    place = min(whole[CAPACITY] // stride, whole[LISTED])
    if place == 0 or whole[PINNED]:
        return
    worst_of_best = today[0, place - 1]
    best = 0
    for rule in range(N_RULES):
        n = 0
        for i in range(whole[SHADOW + N_RULES + rule]):
            if caught[rule, i] >= worst_of_best:
                n += 1
        share = min(n / place, 1.0)
        real[CATCH + rule] = _FADE * real[CATCH + rule] + (1 - _FADE) * share
        if real[CATCH + rule] > real[CATCH + best]:
            best = rule
    whole[LEADER] = best


@njit(cache=True)
def _remember(whole: Any, real: Any, today: Any, past: Any, sizes: Any, profile: Any) -> None:
    """Move this period into the past, and learn its arrivals."""
    for age in range(past.shape[0] - 1, 0, -1):
        past[age] = past[age - 1]
        for row in range(3):
            sizes[row, age] = sizes[row, age - 1]
    past[0] = today
    seen = whole[SEEN]
    sizes[0, 0], sizes[1, 0], sizes[2, 0] = whole[LISTED], whole[STRIDE] / seen, seen
    real[EXPECTED] += _LEARN * (seen - real[EXPECTED])
    for block in range(profile.shape[1]):
        profile[0, block] += _LEARN * (profile[1, block] / seen - profile[0, block])


@njit(cache=True)
def _begin(
    period: int,
    phase: float,
    whole: Any,
    real: Any,
    today: Any,
    past: Any,
    sizes: Any,
    ahead: Any,
    profile: Any,
    caught: Any,
) -> None:
    """Close the period that has ended, and open the next with a full budget."""
    if whole[BEGUN] and whole[SEEN] > 0 and not whole[JOINED]:
        _judge(whole, real, today, caught)
        _remember(whole, real, today, past, sizes, profile)
    whole[JOINED] = (not whole[BEGUN]) and phase > 0.1
    whole[BEGUN], whole[PERIOD] = 1, period
    whole[USED], whole[SEEN], whole[LISTED] = 0, 0, 0
    whole[SHADOW:] = 0
    whole[STRIDE] = stride_for(whole[CAPACITY], today.shape[1])
    profile[1, :] = 0
    real[PHASE] = 0.0
    _look_ahead(whole, past, sizes, ahead)
    _drop_passed(whole, ahead, phase)
    _refresh(phase, whole, real, today, sizes, ahead, profile)


@njit(cache=True)
def _watch(score: float, phase: float, whole: Any, real: Any, today: Any, profile: Any) -> None:
    """Count an arrival, and list its score if it is among the highest."""
    block = min(int(phase * profile.shape[1]), profile.shape[1] - 1)
    profile[1, block] += 1
    if whole[SEEN] % whole[STRIDE] == 0:
        whole[LISTED] = _insert(today, whole[LISTED], score, phase)
    whole[SEEN] += 1
    whole[SINCE] += 1


@njit(cache=True)
def _play_shadows(score: float, whole: Any, real: Any, caught: Any) -> bool:
    """Let each rule spend its own budget; return whether one did."""
    spent = False
    listed = (whole[SEEN] - 1) % whole[STRIDE] == 0
    for rule in range(N_RULES):
        if score > real[SHADOW_THRESHOLD + rule] and whole[SHADOW + rule] < whole[CAPACITY]:
            whole[SHADOW + rule] += 1
            spent = True
            noted = whole[SHADOW + N_RULES + rule]
            if listed and noted < caught.shape[1]:
                caught[rule, noted] = score
                whole[SHADOW + N_RULES + rule] = noted + 1
    return spent


@njit(cache=True)
def pace_step(
    score: float,
    at: float,
    deciding: bool,
    whole: Any,
    real: Any,
    today: Any,
    past: Any,
    sizes: Any,
    ahead: Any,
    profile: Any,
    caught: Any,
) -> tuple[int, float]:
    """Decide one item, or only watch it; return the code of the reason and the threshold."""
    # Beyond 2**53 a float knows no fractions, and a whole number no room.
    moment = min(max((at - real[ORIGIN]) / real[LENGTH], -9e15), 9e15)
    period = int(np.floor(moment))
    phase = moment - period
    if not whole[BEGUN] or period > whole[PERIOD]:
        _begin(period, phase, whole, real, today, past, sizes, ahead, profile, caught)
    stale = whole[SINCE] * _REFRESHES >= real[EXPECTED] or (phase - real[PHASE]) * _REFRESHES >= 1
    if stale:
        _refresh(phase, whole, real, today, sizes, ahead, profile)
    threshold = real[THRESHOLD]
    full = whole[USED] >= whole[CAPACITY]
    _watch(score, phase, whole, real, today, profile)
    spent = not whole[PINNED] and _play_shadows(score, whole, real, caught)
    code = BELOW
    if deciding:
        if full:
            code = FULL
        elif score > threshold:
            whole[USED] += 1
            code, spent = ABOVE, True
    if spent:
        _refresh(phase, whole, real, today, sizes, ahead, profile)
    return code, threshold


@njit(cache=True)
def pace_many(
    scores: Any,
    times: Any,
    deciding: bool,
    codes: Any,
    thresholds: Any,
    whole: Any,
    real: Any,
    today: Any,
    past: Any,
    sizes: Any,
    ahead: Any,
    profile: Any,
    caught: Any,
) -> None:
    """Decide many items in order."""
    for i in range(scores.size):
        codes[i], thresholds[i] = pace_step(
            scores[i],
            times[i],
            deciding,
            whole,
            real,
            today,
            past,
            sizes,
            ahead,
            profile,
            caught,
        )
