"""Compiled pacing of a hard budget: how high must a score be to deserve one of the flags left?

Two rules answer that question at any moment of a period, from the highest scores of this period and
of the periods before. The first looks back over the length of one period, whatever the hour. The
second looks at the same hours of all remembered periods. Each rule also runs in the shadow with its
own budget. After each period, the rule that caught the larger share of the highest scores, on a
fading average, leads the next one. This needs no labels.

Some of the flags may go to probes: items below the threshold whose number, a keyed hash of the id,
lies below a rate. The rate is fixed at the start of a period from earlier arrivals: in a period as
busy as the busiest one remembered, the share of the flags is drawn on average. Each item is drawn
with exactly this probability, whatever happened before it. The number of draws varies. Flags are
kept for those still to come, with a margin that shrinks towards the end of the period; scores get
all others. A limit that 999 of 1,000 such periods keep protects the scores from a flood of
arrivals. Whatever is drawn beyond it is not flagged, and says so: it is a probe whose outcome stays
unknown, not an item that nobody drew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from scipy.stats import poisson

from . import _ledger as book
from ._ledger import insert, open_ledger, pattern_threshold, recent_threshold, stride_for
from .decisions import (
    ABOVE_THRESHOLD,
    BELOW_THRESHOLD,
    CAPACITY_USED_UP,
    PROBE,
    PROBE_WITHOUT_SLOT,
)
from .periods import period_of

RECENT, PATTERN = range(book.N_RULES)
_FADE = 0.75  # how much of the average catch is kept from period to period
_LEARN = 0.3  # how fast the profile and the expected arrivals are learned, per period
_TRUST = 0.1  # weight of the expected arrivals, as if this share of a period had been seen
_LARGEST_GAP = 3.0  # arrivals: one gap in twenty is larger
_REFRESHES = 256  # per period, at least; besides one after every flag
_REFRESHES_PER_REST = 32  # per rest of a period
_LEARN_WORK = 0.02  # how fast the usual work of a flag is learned, per flag
# Probes: how often the limit suffices, how many standard deviations of the draws still to come are
# kept, how the last flag is rounded (it is kept until fewer than about 0.01 draws are to come), and
# the highest rate. Rates are powers of two to the eighth part: steady arrivals keep the same one.
_SUFFICES, _MARGIN, _ROUND_UP, _HIGHEST_RATE, _STEPS = 0.999, 3.1, 0.7, 0.5, 8


@njit(cache=True)
def _expected_share(phase: float, profile: Any) -> float:
    """Return the usual share of a period's arrivals that come before `phase`."""
    blocks = profile.shape[1]
    place = min(phase, 1.0) * blocks
    block = min(int(place), blocks - 1)
    share = 0.0
    for i in range(block):
        share += profile[0, i]
    return min(share + (place - block) * profile[0, block], 1.0)


@njit(cache=True)
def _unseen_share(phase: float, ledger: Any) -> float:
    """Return the share of a period's arrivals before the first one; 0 if that is just a gap."""
    share = _expected_share(phase, ledger.profile)
    return share if share * ledger.floats[book.EXPECTED] > _LARGEST_GAP else 0.0


@njit(cache=True)
def _volume(phase: float, ledger: Any) -> tuple[float, float]:
    """Return the share of arrivals that should have come by now, and all that this period has."""
    unseen = ledger.floats[book.UNSEEN]
    share = _expected_share(phase, ledger.profile)
    seen = ledger.ints[book.SEEN]
    volume = (_TRUST * ledger.floats[book.EXPECTED] + seen) / (_TRUST + max(share - unseen, 0.0))
    return share, volume


@njit(cache=True)
def _threshold(rule: int, left: float, phase: float, ledger: Any) -> float:
    """Return the threshold of a rule that has `left` flags left.

    In a period that began before the stream, its unseen part is taken to have been as usual: its
    share of the arrivals came, and its share of the flags was used. A part that was not observed
    does not mean a quiet day. If that part is large, few scores are known for the rest of the
    hours; all calibration scores then count, whatever their hour.
    """
    unseen = ledger.floats[book.UNSEEN]
    to_use = left - unseen * ledger.ints[book.CAPACITY]
    if to_use <= 0:
        return np.inf
    seen = ledger.ints[book.SEEN]
    share, volume = _volume(phase, ledger)
    still_to_come = volume * (1.0 - share)
    if to_use < 1.0:
        # A part of a flag is left, and towards the end of the period it must not go to any item.
        usual_rate = ledger.ints[book.CAPACITY] / ledger.floats[book.EXPECTED]
        still_to_come = max(still_to_come, to_use / usual_rate)
    if to_use >= still_to_come:
        return -np.inf
    if ledger.ints[book.JOINED]:
        phase, share, volume = -1.0, 0.0, still_to_come
    if rule == RECENT:
        window = seen + ledger.sizes[2, 0] * (1.0 - share)
        return recent_threshold(to_use * window / still_to_come, phase, ledger)
    return pattern_threshold(to_use / volume, phase, ledger)


@njit(cache=True)
def _refresh(phase: float, ledger: Any) -> None:
    """Compute all thresholds again."""
    ints, floats = ledger.ints, ledger.floats
    floats[book.PHASE], ints[book.SINCE] = phase, 0
    if floats[book.RATE] > 0.0:
        share, volume = _volume(phase, ledger)
        _keep_for_probes(volume * (1.0 - share), ledger)
    if not ints[book.PINNED]:
        for rule in range(book.N_RULES):
            _refresh_shadow(rule, phase, ledger)
    _refresh_leader(phase, ledger)


@njit(cache=True)
def _refresh_shadow(rule: int, phase: float, ledger: Any) -> None:
    left = float(ledger.ints[book.CAPACITY] - ledger.ints[book.SHADOW_USED + rule])
    ledger.floats[book.SHADOW_THRESHOLD + rule] = _threshold(rule, left, phase, ledger)


@njit(cache=True)
def _refresh_leader(phase: float, ledger: Any) -> None:
    ints, floats, rule = ledger.ints, ledger.floats, ledger.ints[book.LEADER]
    # Work that is left is as many flags as it usually makes.
    left = (ints[book.TOTAL] - ints[book.KEPT] - ints[book.USED]) / floats[book.USUAL_WORK]
    if not ints[book.PINNED] and left == ints[book.CAPACITY] - ints[book.SHADOW_USED + rule]:
        floats[book.THRESHOLD] = floats[book.SHADOW_THRESHOLD + rule]
    else:
        floats[book.THRESHOLD] = _threshold(rule, left, phase, ledger)


@njit(cache=True)
def _is_stale(phase: float, ledger: Any) -> bool:
    """Whether the thresholds are so old that the expected rest of the period has changed."""
    if ledger.ints[book.SINCE] * _REFRESHES >= ledger.floats[book.EXPECTED]:
        return True
    # Towards the end of a period, its rest shrinks faster and faster.
    since = phase - ledger.floats[book.PHASE]
    return since * _REFRESHES >= 1 or since * _REFRESHES_PER_REST >= 1 - phase


@njit(cache=True)
def _judge(ledger: Any) -> None:
    """Choose the rule that caught most of the highest scores to lead the next period."""
    ints, floats = ledger.ints, ledger.floats
    place = min(ints[book.CAPACITY] // ints[book.STRIDE], ints[book.LISTED])
    if place == 0 or ints[book.PINNED]:
        return
    worst_of_best = ledger.today[0, place - 1]
    best = 0
    for rule in range(book.N_RULES):
        n = 0
        for i in range(ints[book.SHADOW_NOTED + rule]):
            if ledger.caught[rule, i] >= worst_of_best:
                n += 1
        share = min(n / place, 1.0)
        floats[book.SHADOW_CATCH + rule] = (
            _FADE * floats[book.SHADOW_CATCH + rule] + (1 - _FADE) * share
        )
        if floats[book.SHADOW_CATCH + rule] > floats[book.SHADOW_CATCH + best]:
            best = rule
    ints[book.LEADER] = best


@njit(cache=True)
def _remember(ledger: Any) -> None:
    """Move this period into the past, and learn its arrivals."""
    past, sizes, profile = ledger.past, ledger.sizes, ledger.profile
    for age in range(past.shape[0] - 1, 0, -1):
        past[age] = past[age - 1]
        for row in range(3):
            sizes[row, age] = sizes[row, age - 1]
    past[0] = ledger.today
    seen = ledger.ints[book.SEEN]
    sizes[0, 0], sizes[1, 0], sizes[2, 0] = (
        ledger.ints[book.LISTED],
        ledger.ints[book.STRIDE] / seen,
        seen,
    )
    ledger.floats[book.EXPECTED] += _LEARN * (seen - ledger.floats[book.EXPECTED])
    for block in range(profile.shape[1]):
        profile[0, block] += _LEARN * (profile[1, block] / seen - profile[0, block])


@njit(cache=True)
def _begin(period: int, phase: float, ledger: Any) -> None:
    """Close the period that has ended, and begin the next one with a full budget."""
    ints = ledger.ints
    if ints[book.BEGUN] and ints[book.SEEN] > 0 and not ints[book.JOINED]:
        _judge(ledger)
        _remember(ledger)
    ints[book.JOINED] = (not ints[book.BEGUN]) and phase > 0.1
    ledger.floats[book.UNSEEN] = 0.0 if ints[book.BEGUN] else _unseen_share(phase, ledger)
    ints[book.BEGUN], ints[book.PERIOD] = 1, period
    ints[book.USED], ints[book.SEEN], ints[book.LISTED] = 0, 0, 0
    ints[book.SHADOW_USED : book.SHADOW_NOTED + book.N_RULES] = 0
    ints[book.DRAWN] = 0
    keep(0, ledger)
    set_rate(ledger)
    ints[book.STRIDE] = stride_for(ints[book.CAPACITY], ints[book.SIZE])
    ledger.profile[1, :] = 0
    ledger.floats[book.PHASE] = 0.0
    _refresh(phase, ledger)


@njit(cache=True)
def _observe(score: float, phase: float, ledger: Any) -> None:
    """Count an arrival, and list its score if it is among the highest."""
    ints, blocks = ledger.ints, ledger.profile.shape[1]
    ledger.profile[1, min(int(phase * blocks), blocks - 1)] += 1
    if ints[book.SEEN] % ints[book.STRIDE] == 0:
        ints[book.LISTED] = insert(ledger.today, ints[book.LISTED], score, phase)
    ints[book.SEEN] += 1
    ints[book.SINCE] += 1


@njit(cache=True)
def _play_shadows(score: float, phase: float, ledger: Any) -> None:
    """Let each rule in the shadow spend its own budget."""
    ints = ledger.ints
    listed = (ints[book.SEEN] - 1) % ints[book.STRIDE] == 0
    for rule in range(book.N_RULES):
        if (
            score > ledger.floats[book.SHADOW_THRESHOLD + rule]
            and ints[book.SHADOW_USED + rule] < ints[book.CAPACITY]
        ):
            ints[book.SHADOW_USED + rule] += 1
            noted = ints[book.SHADOW_NOTED + rule]
            if listed and noted < ints[book.SIZE]:
                ledger.caught[rule, noted] = score
                ints[book.SHADOW_NOTED + rule] = noted + 1
            _refresh_shadow(rule, phase, ledger)


@njit(cache=True)
def _phase(at: float, period: int, floats: Any) -> float:
    """Return the share of a period that has passed."""
    return min(max((at - floats[book.ORIGIN]) / floats[book.LENGTH] - period, 0.0), 1.0)


@njit(cache=True)
def usual_flags(allowed: int, usual_work: float) -> int:
    """Return how many flags a budget of work usually makes, at least one unless it is empty."""
    return 0 if allowed <= 0 else max(1, int(min(allowed / usual_work, 2.0**40)))


@njit(cache=True)
def keep(kept: int, ledger: Any) -> None:
    """Keep some of the budget from scores; the rest is as many flags as it usually makes."""
    ints, usual = ledger.ints, ledger.floats[book.USUAL_WORK]
    ints[book.KEPT], ints[book.CAPACITY] = kept, usual_flags(ints[book.TOTAL] - kept, usual)


def most_probes(mean: float, n_flags: int) -> int:
    """Return the most draws that get a flag in a period with so many on average."""
    return min(int(poisson.ppf(_SUFFICES, mean)) if mean > 0 else 0, n_flags)


@njit(cache=True)
def set_rate(ledger: Any) -> None:
    """Fix the rate of draws for arrivals as in the busiest remembered period."""
    floats = ledger.floats
    arrivals = max(floats[book.EXPECTED], ledger.sizes[2].max())
    below = max(arrivals - (ledger.ints[book.TOTAL] - floats[book.MEAN_DRAWS]), 1.0)
    rate = min(floats[book.MEAN_DRAWS] / below, _HIGHEST_RATE)
    floats[book.RATE] = 0.0 if rate <= 0 else 2.0 ** (np.floor(_STEPS * np.log2(rate)) / _STEPS)


@njit(cache=True)
def _keep_for_probes(still_to_come: float, ledger: Any) -> None:
    """Leave to scores the flags that neither drawn items have used nor later ones will need."""
    ints = ledger.ints
    mean = ledger.floats[book.RATE] * still_to_come
    needed = int(min(mean + _MARGIN * np.sqrt(mean) + _ROUND_UP, 1e15))
    left = max(ints[book.ALLOWED] - ints[book.DRAWN], 0)
    keep(ints[book.DRAWN] + min(needed, left), ledger)


@njit(cache=True)
def _draw(code: int, number: float, ledger: Any) -> tuple[int, float]:
    """Draw an item unless it was flagged; return the reason's code and the probability."""
    if code == ABOVE_THRESHOLD:
        return code, 1.0
    ints, rate = ledger.ints, ledger.floats[book.RATE]
    if number >= rate:
        return code, rate
    drawn = ints[book.DRAWN]
    if drawn < ints[book.ALLOWED] and ints[book.USED] + drawn < ints[book.TOTAL]:
        ints[book.DRAWN] += 1
        keep(max(ints[book.KEPT], drawn + 1), ledger)
        return PROBE, rate
    return PROBE_WITHOUT_SLOT, rate


@njit(cache=True)
def _decide(score: float, at: float, deciding: bool, work: int, ledger: Any) -> tuple[int, float]:
    """Decide about one item, or only observe it; return the reason's code and the threshold."""
    ints, floats = ledger.ints, ledger.floats
    period = period_of(at, floats[book.ORIGIN], floats[book.LENGTH])
    if not ints[book.BEGUN] or period > ints[book.PERIOD]:
        _begin(period, _phase(at, period, floats), ledger)
    phase = _phase(at, ints[book.PERIOD], floats)
    if _is_stale(phase, ledger):
        _refresh(phase, ledger)
    threshold = floats[book.THRESHOLD]
    _observe(score, phase, ledger)
    if not ints[book.PINNED]:
        _play_shadows(score, phase, ledger)
    if not deciding:
        return BELOW_THRESHOLD, threshold
    if work > ints[book.TOTAL] - ints[book.KEPT] - ints[book.USED]:
        return CAPACITY_USED_UP, threshold  # a smaller one may still fit
    if score > threshold:
        ints[book.USED] += work
        floats[book.USUAL_WORK] += _LEARN_WORK * (work - floats[book.USUAL_WORK])
        _refresh_leader(phase, ledger)
        return ABOVE_THRESHOLD, threshold
    return BELOW_THRESHOLD, threshold


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
