"""Compiled pacing of a hard budget: how high must a score be to deserve one of the flags left?

The answer comes from what a budget remembers: the highest scores of this period and of the periods
before, each with its hour. The threshold is the score that as many of the arrivals still to come
should exceed as there are flags left, going by the same hours of the remembered periods.

Some of the flags may go to probes: items below the threshold whose number, a keyed hash of the id,
lies below a rate. The rate is fixed at the start of a period from earlier arrivals: in a period as
busy as the busiest one remembered, the share of the flags is drawn on average. Each item is drawn
with exactly this probability, whatever happened before it. The number of draws varies. Flags are
kept for those still to come, with a margin that shrinks towards the end of the period; scores get
all others. A limit that 999 of 1,000 such periods keep protects the scores from a flood of
arrivals. Whatever is drawn beyond it is not flagged, and says so: it is a probe whose outcome stays
unknown, not an item that nobody drew.

Everything lies in one array of floats and one of ints, because a compiled call pays for every array
that it receives. :class:`Ledger` holds views of their parts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from . import decisions
from .periods import period_of

# The ints: the flags to be expected, the budget used by scores, the number of the period, arrivals
# seen in it, entries in today's list, every how many arrivals one is listed, arrivals since the
# threshold was computed, whether a period has begun, whether it was joined midway, and the room in
# a list; the whole budget, in flags or in units of work, and what of it is not for scores at
# present; the most probes in a period, and the probes drawn.
CAPACITY, USED, PERIOD, SEEN, LISTED, STRIDE, SINCE, BEGUN, JOINED, SIZE = range(10)
TOTAL, KEPT, ALLOWED, DRAWN = range(10, 14)
N_INTS = 14
# The first floats: length and start of periods, expected arrivals, the phase at which the threshold
# was computed, the threshold, the share of the period that had passed unseen when the stream began,
# the usual work of a flag (1 in a budget of flags), the draws to be expected in a period, and the
# rate of draws.
LENGTH, ORIGIN, EXPECTED, PHASE, THRESHOLD, UNSEEN, USUAL_WORK, MEAN_DRAWS, RATE = range(9)
N_HEAD_FLOATS = 9

MEMORY = 6  # periods
BLOCKS = 48  # parts of a period, for the pattern of its arrivals
LEAST_PER_FLAG = 2  # entries of a list; if it holds fewer, not every arrival is listed
_LEARN = 0.3  # how fast the profile and the expected arrivals are learned, per period
_TRUST = 0.1  # weight of the expected arrivals, as if this share of a period had been seen
_LARGEST_GAP = 3.0  # arrivals: one gap in twenty is larger
_REFRESHES = 256  # per period, at least; besides one after every flag
_REFRESHES_PER_REST = 32  # per rest of a period
_LEARN_WORK = 0.02  # how fast the usual work of a flag is learned, per flag
# Probes: how many standard deviations of the draws still to come are kept, how the last flag is
# rounded (it is kept until fewer than about 0.01 draws are to come), and the highest rate. Rates
# are powers of two to the eighth part: steady arrivals keep the same one.
_MARGIN, _ROUND_UP, _HIGHEST_RATE, _STEPS = 3.1, 0.7, 0.5, 8


class Ledger(NamedTuple):
    """Views of the two arrays.

    `today` and each entry of `past` are lists of the highest scores in falling order, with the
    phase of the period at which each arrived. `sizes` holds for each earlier period the number of
    entries, the share of arrivals that an entry stands for, and the number of arrivals. `profile`
    holds the usual share of arrivals in each part of a period, and the counts of this period.
    """

    ints: Any
    floats: Any
    today: Any
    past: Any
    sizes: Any
    profile: Any


@njit(cache=True)
def open_ledger(floats: Any, ints: Any) -> Any:
    """Return the views."""
    size = ints[SIZE]
    today = N_HEAD_FLOATS
    past = today + 2 * size
    sizes = past + MEMORY * 2 * size
    profile = sizes + 3 * MEMORY
    return Ledger(
        ints,
        floats,
        floats[today:past].reshape(2, size),
        floats[past:sizes].reshape(MEMORY, 2, size),
        floats[sizes:profile].reshape(3, MEMORY),
        floats[profile:].reshape(2, BLOCKS),
    )


@njit(cache=True)
def stride_for(capacity: int, size: int) -> int:
    """Return every how many arrivals one is listed, for lists that reach well past the capacity."""
    stride = 1
    while LEAST_PER_FLAG * capacity > stride * size:
        stride *= 2
    return stride


@njit(cache=True)
def _insert(table: Any, n: int, score: float, phase: float) -> int:
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
def _later_threshold(target: float, phase: float, ledger: Any) -> float:
    """Return the score that this share of a period's arrivals exceeded in its later hours.

    Earlier periods differ. A flag that is saved for the rest of the day and not needed there costs
    an item near the threshold. A flag that is missing there costs an item from the top. Therefore
    the richer half of the earlier periods decides.
    """
    found = np.empty(MEMORY)
    for age in range(MEMORY):
        found[age] = _threshold_of(target, phase, age, ledger)
    found.sort()
    return found[MEMORY // 2 :].mean()


@njit(cache=True)
def _threshold_of(target: float, phase: float, age: int, ledger: Any) -> float:
    past, listed = ledger.past[age], int(ledger.sizes[0, age])
    total = 0.0
    for i in range(listed):
        if past[1, i] > phase:
            total += ledger.sizes[1, age]
            if total > target:
                return past[0, i]
    return past[0, listed - 1]


@njit(cache=True)
def _expected_share(phase: float, profile: Any) -> float:
    """Return the usual share of a period's arrivals that come before `phase`."""
    blocks = profile.shape[1]
    place = min(phase, 1.0) * blocks
    block = min(int(place), blocks - 1)
    share = profile[0, :block].sum()
    return min(share + (place - block) * profile[0, block], 1.0)


@njit(cache=True)
def _unseen_share(phase: float, ledger: Any) -> float:
    """Return the share of a period's arrivals before the first one; 0 if that is just a gap."""
    share = _expected_share(phase, ledger.profile)
    return share if share * ledger.floats[EXPECTED] > _LARGEST_GAP else 0.0


@njit(cache=True)
def _volume(phase: float, ledger: Any) -> tuple[float, float]:
    """Return the share of arrivals that should have come by now, and all that this period has."""
    unseen = ledger.floats[UNSEEN]
    share = _expected_share(phase, ledger.profile)
    seen = ledger.ints[SEEN]
    volume = (_TRUST * ledger.floats[EXPECTED] + seen) / (_TRUST + max(share - unseen, 0.0))
    return share, volume


@njit(cache=True)
def _set_threshold(phase: float, ledger: Any) -> None:
    """Set the threshold for what is left of the budget."""
    ledger.floats[THRESHOLD] = _threshold_for(_left(ledger), phase, ledger)


@njit(cache=True)
def _left(ledger: Any) -> float:
    """Return how many flags are left for scores; work is as many flags as it usually makes."""
    ints = ledger.ints
    return (ints[TOTAL] - ints[KEPT] - ints[USED]) / ledger.floats[USUAL_WORK]


@njit(cache=True)
def _threshold_for(left: float, phase: float, ledger: Any) -> float:
    """Return the score that as many of the arrivals still to come should exceed as flags are left.

    In a period that began before the stream, its unseen part is taken to have been as usual: its
    share of the arrivals came, and its share of the flags was used. A part that was not observed
    does not mean a quiet day. If that part is large, few scores are known for the rest of the
    hours; all calibration scores then count, whatever their hour.
    """
    ints, floats = ledger.ints, ledger.floats
    to_use = left - floats[UNSEEN] * ints[CAPACITY]
    if to_use <= 0:
        return np.inf
    share, volume = _volume(phase, ledger)
    still_to_come = volume * (1.0 - share)
    if to_use < 1.0:
        # A part of a flag is left, and towards the end of the period it must not go to any item.
        usual_rate = ints[CAPACITY] / floats[EXPECTED]
        still_to_come = max(still_to_come, to_use / usual_rate)
    if to_use >= still_to_come:
        return -np.inf
    if ints[JOINED]:
        return _later_threshold(to_use / still_to_come, -1.0, ledger)
    return _later_threshold(to_use / volume, phase, ledger)


@njit(cache=True)
def _refresh(phase: float, ledger: Any) -> None:
    """Compute the threshold again, and how many flags are kept for probes."""
    ledger.floats[PHASE], ledger.ints[SINCE] = phase, 0
    if ledger.floats[RATE] > 0.0:
        share, volume = _volume(phase, ledger)
        _keep_for_probes(volume * (1.0 - share), ledger)
    _set_threshold(phase, ledger)


@njit(cache=True)
def _is_stale(phase: float, ledger: Any) -> bool:
    """Whether the threshold is so old that the expected rest of the period has changed."""
    if ledger.ints[SINCE] * _REFRESHES >= ledger.floats[EXPECTED]:
        return True
    # Towards the end of a period, its rest shrinks faster and faster.
    since = phase - ledger.floats[PHASE]
    return since * _REFRESHES >= 1 or since * _REFRESHES_PER_REST >= 1 - phase


@njit(cache=True)
def _remember(ledger: Any) -> None:
    """Move this period into the past, and learn its arrivals."""
    past, sizes, profile = ledger.past, ledger.sizes, ledger.profile
    past[1:], sizes[:, 1:] = past[:-1].copy(), sizes[:, :-1].copy()
    seen = ledger.ints[SEEN]
    past[0] = ledger.today
    sizes[0, 0], sizes[1, 0], sizes[2, 0] = ledger.ints[LISTED], ledger.ints[STRIDE] / seen, seen
    ledger.floats[EXPECTED] += _LEARN * (seen - ledger.floats[EXPECTED])
    profile[0] += _LEARN * (profile[1] / seen - profile[0])


@njit(cache=True)
def _begin(period: int, phase: float, ledger: Any) -> None:
    """Close the period that has ended, and begin the next one with a full budget."""
    ints = ledger.ints
    if ints[BEGUN] and ints[SEEN] > 0 and not ints[JOINED]:
        _remember(ledger)
    ints[JOINED] = (not ints[BEGUN]) and phase > 0.1
    ledger.floats[UNSEEN] = 0.0 if ints[BEGUN] else _unseen_share(phase, ledger)
    ints[BEGUN], ints[PERIOD] = 1, period
    ints[USED], ints[SEEN], ints[LISTED] = 0, 0, 0
    ints[DRAWN] = 0
    keep(0, ledger)
    set_rate(ledger)
    ints[STRIDE] = stride_for(ints[CAPACITY], ints[SIZE])
    ledger.profile[1, :] = 0
    ledger.floats[PHASE] = 0.0
    _refresh(phase, ledger)


@njit(cache=True)
def _observe(score: float, phase: float, ledger: Any) -> None:
    """Count an arrival, and list its score if it is among the highest."""
    ints, blocks = ledger.ints, ledger.profile.shape[1]
    ledger.profile[1, min(int(phase * blocks), blocks - 1)] += 1
    if ints[SEEN] % ints[STRIDE] == 0:
        ints[LISTED] = _insert(ledger.today, ints[LISTED], score, phase)
    ints[SEEN] += 1
    ints[SINCE] += 1


@njit(cache=True)
def _phase(at: float, period: int, floats: Any) -> float:
    """Return the share of a period that has passed."""
    return min(max((at - floats[ORIGIN]) / floats[LENGTH] - period, 0.0), 1.0)


@njit(cache=True)
def usual_flags(allowed: int, usual_work: float) -> int:
    """Return how many flags a budget of work usually makes, at least one unless it is empty."""
    return 0 if allowed <= 0 else max(1, int(min(allowed / usual_work, 2.0**40)))


@njit(cache=True)
def keep(kept: int, ledger: Any) -> None:
    """Keep some of the budget from scores; the rest is as many flags as it usually makes."""
    ints, usual = ledger.ints, ledger.floats[USUAL_WORK]
    ints[KEPT], ints[CAPACITY] = kept, usual_flags(ints[TOTAL] - kept, usual)


@njit(cache=True)
def set_rate(ledger: Any) -> None:
    """Fix the rate of draws for arrivals as in the busiest remembered period."""
    floats = ledger.floats
    arrivals = max(floats[EXPECTED], ledger.sizes[2].max())
    below = max(arrivals - (ledger.ints[TOTAL] - floats[MEAN_DRAWS]), 1.0)
    rate = min(floats[MEAN_DRAWS] / below, _HIGHEST_RATE)
    floats[RATE] = 0.0 if rate <= 0 else 2.0 ** (np.floor(_STEPS * np.log2(rate)) / _STEPS)


@njit(cache=True)
def _keep_for_probes(still_to_come: float, ledger: Any) -> None:
    """Leave to scores the flags that neither drawn items have used nor later ones will need."""
    ints = ledger.ints
    mean = ledger.floats[RATE] * still_to_come
    needed = int(min(mean + _MARGIN * np.sqrt(mean) + _ROUND_UP, 1e15))
    left = max(ints[ALLOWED] - ints[DRAWN], 0)
    keep(ints[DRAWN] + min(needed, left), ledger)


@njit(cache=True)
def _draw(code: int, number: float, ledger: Any) -> tuple[int, float]:
    """Draw an item unless it was flagged; return the reason's code and the probability."""
    if code == decisions.ABOVE_THRESHOLD:
        return code, 1.0
    ints, rate = ledger.ints, ledger.floats[RATE]
    if number >= rate:
        return code, rate
    drawn = ints[DRAWN]
    if drawn < ints[ALLOWED] and ints[USED] + drawn < ints[TOTAL]:
        ints[DRAWN] += 1
        keep(max(ints[KEPT], drawn + 1), ledger)
        return decisions.PROBE, rate
    return decisions.PROBE_WITHOUT_SLOT, rate


@njit(cache=True)
def _move_to(at: float, ledger: Any) -> float:
    """Begin a new period if one is due, keep the threshold fresh, and return the phase."""
    ints, floats = ledger.ints, ledger.floats
    period = period_of(at, floats[ORIGIN], floats[LENGTH])
    if not ints[BEGUN] or period > ints[PERIOD]:
        _begin(period, _phase(at, period, floats), ledger)
    phase = _phase(at, ints[PERIOD], floats)
    if _is_stale(phase, ledger):
        _refresh(phase, ledger)
    return phase


@njit(cache=True)
def take_flag(score: float, n_ahead: int, at: float, floats: Any, ints: Any) -> bool:
    """Take a flag for an item that was seen before, if it is worth one of those left.

    So many others that wait come before it: it must be worth one of the flags that these leave. If
    they leave none, the threshold is infinite.
    """
    ledger = open_ledger(floats, ints)
    phase = _move_to(at, ledger)
    if score <= _threshold_for(_left(ledger) - n_ahead, phase, ledger):
        return False
    ints[USED] += 1
    _set_threshold(phase, ledger)
    return True


@njit(cache=True)
def _decide(score: float, at: float, deciding: bool, work: int, ledger: Any) -> tuple[int, float]:
    """Decide about one item, or only observe it; return the reason's code and the threshold."""
    ints, floats = ledger.ints, ledger.floats
    phase = _move_to(at, ledger)
    threshold = floats[THRESHOLD]
    _observe(score, phase, ledger)
    if not deciding:
        return decisions.BELOW_THRESHOLD, threshold
    if work > ints[TOTAL] - ints[KEPT] - ints[USED]:
        return decisions.CAPACITY_USED_UP, threshold  # a smaller one may still fit
    if score > threshold:
        ints[USED] += work
        floats[USUAL_WORK] += _LEARN_WORK * (work - floats[USUAL_WORK])
        _set_threshold(phase, ledger)
        return decisions.ABOVE_THRESHOLD, threshold
    return decisions.BELOW_THRESHOLD, threshold


@njit(cache=True)
def pacing_step(
    score: float, at: float, deciding: bool, work: int, number: float, floats: Any, ints: Any
) -> tuple[int, float, float]:
    """Decide about one item."""
    ledger = open_ledger(floats, ints)
    code, threshold = _decide(score, at, deciding, work, ledger)
    code, probability = _draw(code, number, ledger)
    return code, threshold, probability


@njit(cache=True)
def pacing_loop(items: Any, deciding: bool, answers: Any, floats: Any, ints: Any) -> None:
    """Decide about many items in order."""
    ledger = open_ledger(floats, ints)
    scores, times, works, numbers = items
    codes, thresholds, probabilities = answers
    for i in range(scores.size):
        code, thresholds[i] = _decide(scores[i], times[i], deciding, works[i], ledger)
        codes[i], probabilities[i] = _draw(code, numbers[i], ledger)
