"""The rules compared on simulated streams: ours, known ones, and those of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from shortlist import Capacity
from shortlist.online import (
    BudgetController,
    Controller,
    EmaController,
    QuantileTracker,
    WindowController,
)
from studies.online.streams import Stream

Rule = Callable[[Stream], np.ndarray]


def usual_arrivals(stream: Stream) -> int:
    """Return the items of an ordinary day: the calibration scores are those of four."""
    return stream.calibration_scores.size // 4


def days_of(stream: Stream) -> np.ndarray:
    """Return the day of each item."""
    return (stream.times // stream.period).astype(int)


def rates_of(stream: Stream) -> np.ndarray:
    """Return the rate that is announced for each item: the day's capacity over usual arrivals."""
    return stream.capacities[days_of(stream)] / usual_arrivals(stream)


def first_cut(stream: Stream) -> float:
    """Return the threshold that the calibration scores suggest."""
    return float(np.quantile(stream.calibration_scores, 1 - rates_of(stream)[0]))


def capped(flags: np.ndarray, stream: Stream) -> np.ndarray:
    """Stop each day when its capacity is used up; the rule itself is not informed."""
    days = days_of(stream)
    kept = np.zeros_like(flags)
    for day, capacity in enumerate(stream.capacities):
        kept[np.flatnonzero(flags & (days == day))[:capacity]] = True
    return kept


# --- ours --------------------------------------------------------------------------------------


def controlled(controller: Controller, stream: Stream, per: int | None) -> np.ndarray:
    """Announce each day's capacity as it begins, and decide."""
    for day, capacity in enumerate(stream.capacities.tolist()):
        if day == 0 or capacity != stream.capacities[day - 1]:
            controller.set_capacity(Capacity.count(capacity, per=per), at=day * stream.period)
    return controller.decide_many(stream.scores, at=stream.times).flagged


def _rate(kind: Any, **options: Any) -> Rule:
    def run(stream: Stream) -> np.ndarray:
        per = usual_arrivals(stream)
        first = Capacity.count(int(stream.capacities[0]), per=per)
        made = kind(first, calibration_scores=stream.calibration_scores, **options)
        return controlled(made, stream, per)

    return run


def _count(kind: Any, **options: Any) -> Rule:
    def run(stream: Stream) -> np.ndarray:
        made = kind(
            Capacity.count(int(stream.capacities[0])),
            calibration_scores=stream.calibration_scores,
            period=stream.period,
            expected_arrivals=usual_arrivals(stream),
            **options,
        )
        return controlled(made, stream, None)

    return run


# --- sketches ----------------------------------------------------------------------------------


def fixed(stream: Stream) -> np.ndarray:
    """Keep the threshold of the calibration scores."""
    return stream.scores > first_cut(stream)


@njit(cache=True)
def _proportional(scores, rates, threshold, alpha, gain):
    flags, average = np.zeros(scores.size, np.bool_), rates[0]
    for i in range(scores.size):
        flags[i] = scores[i] > threshold
        average += alpha * (flags[i] - average)
        threshold += gain * (average / rates[i] - 1)
    return flags


def ema_proportional(stream: Stream) -> np.ndarray:
    """Move the threshold in proportion to the error of the average, not by its sign."""
    return _proportional(stream.scores, rates_of(stream), first_cut(stream), 0.002, 0.001)


@njit(cache=True)
def _pid(scores, rates, threshold, step, gain, saturation):
    flags, total = np.zeros(scores.size, np.bool_), 0.0
    for i in range(scores.size):
        angle = total * np.log(i + 2.0) / ((i + 2.0) * saturation)
        bounded = min(max(angle, -1.5), 1.5)
        flags[i] = scores[i] > threshold + gain * np.tan(bounded)
        error = flags[i] - rates[i]
        threshold += step * error
        total += error
    return flags


def pid(stream: Stream) -> np.ndarray:
    """Quantile tracking with a saturated integral (Angelopoulos, Candes, Tibshirani 2023)."""
    return _pid(stream.scores, rates_of(stream), first_cut(stream), 0.05, 0.5, 0.02)


@njit(cache=True)
def _decaying(scores, rates, knots, levels, scale, power):
    flags, offset, top = np.zeros(scores.size, np.bool_), 0.0, levels[-1] + 1.0
    for i in range(scores.size):
        level = np.interp(scores[i], knots, levels) if scores[i] <= knots[-1] else top
        flags[i] = level > offset - np.log(rates[i])
        offset += scale / (i + 1.0) ** power * (flags[i] - rates[i])
    return flags


def decaying_tracker(stream: Stream) -> np.ndarray:
    """Quantile tracking on the tail scale with a step that falls (Angelopoulos et al. 2024)."""
    knots = np.unique(stream.calibration_scores)
    reached = knots.size - np.arange(knots.size)
    levels = -np.log(reached / (knots.size + 1))
    return _decaying(stream.scores, rates_of(stream), knots, levels, 3.0, 0.6)


@njit(cache=True)
def _histogram(scores, rates, calibration, low, width, decay):
    n_bins, growth, weight = 4_096, 1 / decay, 1.0
    mass, flags = np.zeros(n_bins), np.zeros(scores.size, np.bool_)
    for score in calibration:
        mass[min(max(int((score - low) / width), 0), n_bins - 1)] += weight
        weight *= growth
    cut, above, total = n_bins, 0.0, mass.sum()
    for i in range(scores.size):
        wanted = rates[i] * total
        while cut > 0 and above + mass[cut - 1] <= wanted:
            cut -= 1
            above += mass[cut]
        while above > wanted and cut < n_bins:
            above -= mass[cut]
            cut += 1
        place = min(max(int((scores[i] - low) / width), 0), n_bins - 1)
        flags[i] = place >= cut
        mass[place] += weight
        total += weight
        above += weight if place >= cut else 0.0
        weight *= growth
        if weight > 1e100:
            mass /= weight
            total, weight = mass.sum(), 1.0
            above = mass[cut:].sum()
    return flags


def decayed_histogram(stream: Stream) -> np.ndarray:
    """The quantile of a histogram whose older items fade, by half in 5,000."""
    spread = np.ptp(stream.calibration_scores)
    low = stream.calibration_scores.min() - spread
    return _histogram(
        stream.scores,
        rates_of(stream),
        stream.calibration_scores,
        low,
        3 * spread / 4_096,
        0.5 ** (1 / 5_000),
    )


@njit(cache=True)
def _wound_up(scores, rates, knots, levels, step, burst):
    flags, offset, tokens, top = np.zeros(scores.size, np.bool_), 0.0, burst, levels[-1] + 1.0
    for i in range(scores.size):
        tokens = min(tokens + rates[i], burst)
        level = np.interp(scores[i], knots, levels) if scores[i] <= knots[-1] else top
        flags[i] = level > offset - np.log(rates[i]) and tokens >= 1
        tokens -= flags[i]
        offset += step * (flags[i] - rates[i])
    return flags


def wound_up_bucket(stream: Stream) -> np.ndarray:
    """A tracker behind a bucket that treats a refusal as its own error."""
    knots = np.unique(stream.calibration_scores)
    levels = -np.log((knots.size - np.arange(knots.size)) / (knots.size + 1))
    return _wound_up(stream.scores, rates_of(stream), knots, levels, 0.03, 10.0)


@njit(cache=True)
def _pace_clock(scores, times, capacities, window, period, expected):
    flags, seen, used, day = np.zeros(scores.size, np.bool_), 0, 0, -1
    ring, place, threshold = window.copy(), 0, np.inf
    for i in range(scores.size):
        if int(times[i] // period) != day:
            day, seen, used = int(times[i] // period), 0, 0
        phase = times[i] / period - day
        if seen % 50 == 0 or flags[i - 1]:
            coming = (0.1 * expected + seen) / (0.1 + phase) * (1 - phase)
            share = (capacities[day] - used) / max(coming, 1.0)
            threshold = np.quantile(ring, 1 - share) if share < 1 else -np.inf
        flags[i] = used < capacities[day] and scores[i] > threshold
        used += flags[i]
        seen += 1
        ring[place], place = scores[i], (place + 1) % ring.size
    return flags


def pace_clock(stream: Stream) -> np.ndarray:
    """Spread what is left over the rest of the day, by the last day's length of scores."""
    usual = usual_arrivals(stream)
    window = stream.calibration_scores[-usual:]
    return _pace_clock(stream.scores, stream.times, stream.capacities, window, stream.period, usual)


# --- peers -------------------------------------------------------------------------------------


def river_quantile_filter(rate: float, calibration: np.ndarray) -> Callable[[float], bool]:
    """Return a function that decides and learns as river's QuantileFilter does."""
    from river import anomaly
    from river.base import Estimator

    class Given(Estimator):
        """A detector whose score is already in the item."""

        def score_one(self, x):
            return x["score"]

        def learn_one(self, x):
            return None

    rule = anomaly.QuantileFilter(Given(), q=1 - rate)
    for score in calibration.tolist():
        rule.learn_one({"score": score})

    def decide(score: float) -> bool:
        flag = rule.classify(score)
        rule.learn_one({"score": score})
        return flag

    return decide


def river_filter(stream: Stream) -> np.ndarray:
    """River's QuantileFilter, which keeps a P2 estimate; it cannot change its rate."""
    decide = river_quantile_filter(rates_of(stream)[0], stream.calibration_scores)
    return np.array([decide(score) for score in stream.scores.tolist()])


@njit(cache=True)
def _activeml_twin(scores, rates, history, tolerance):
    ring, kept, flags = history.copy(), np.sort(history), np.zeros(scores.size, np.bool_)
    used, n = 0, ring.size
    for i in range(scores.size):
        leaving = np.searchsorted(kept, ring[i % n])
        kept[leaving : n - 1] = kept[leaving + 1 :].copy()
        place = np.searchsorted(kept[: n - 1], scores[i])
        kept[place + 1 :] = kept[place : n - 1].copy()
        kept[place] = ring[i % n] = scores[i]
        position = (n - 1) * (1 - rates[i])
        low = int(position)
        theta = kept[low] + (position - low) * (kept[min(low + 1, n - 1)] - kept[low])
        left = rates[i] * (i + 1) - used
        flags[i] = scores[i] >= theta - (kept[n - 1] - kept[0]) * (left / tolerance)
        used += flags[i]
    return flags


def activeml_filter(stream: Stream) -> np.ndarray:
    """scikit-activeml's BalancedIncrementalQuantileFilter, a window of 1,000 scores.

    It cannot change its rate. It takes a tenth of a millisecond per item; a compiled twin runs
    instead, and must agree with it on the first items.
    """
    from skactiveml.stream.budgetmanager import BalancedIncrementalQuantileFilter

    rates = np.full(stream.scores.size, rates_of(stream)[0])
    history = stream.calibration_scores[-1_000:]
    flags = _activeml_twin(stream.scores, rates, history, 50.0)
    first = stream.scores[:2_000]
    rule = BalancedIncrementalQuantileFilter(w=1_000, w_tol=50, budget=float(rates[0]))
    rule.query_by_utility(np.zeros(1))
    rule.history_sorted_.extend(history.tolist())
    chosen = rule.query_by_utility(first)
    assert np.array_equal(np.flatnonzero(flags[: first.size]), chosen), "the twin differs"
    return flags


RATE_RULES: dict[str, Rule] = {
    "QuantileTracker": _rate(QuantileTracker),
    "QuantileTracker, step 0.1": _rate(QuantileTracker, step=0.1),
    "QuantileTracker, step 0.2": _rate(QuantileTracker, step=0.2),
    "tracker, falling step": decaying_tracker,
    "fixed threshold": fixed,
    "EmaController (the paper)": _rate(EmaController),
    "the paper, step 10 times as large": _rate(EmaController, step=0.01),
    "EMA, proportional": ema_proportional,
    "WindowController, 1,000": _rate(WindowController, window=1_000),
    "WindowController, 5,000": _rate(WindowController),
    "WindowController, 20,000": _rate(WindowController, window=20_000),
    "decayed histogram": decayed_histogram,
    "PID": pid,
    "river QuantileFilter (P²)": river_filter,
    "scikit-activeml BIQF": activeml_filter,
}
COUNT_RULES: dict[str, Rule] = {
    "BudgetController": _count(BudgetController),
    "pace by the clock": pace_clock,
}
BUCKET_RULES: dict[str, Rule] = {
    "QuantileTracker, burst 10": _rate(QuantileTracker, burst=10),
    "the same, wound up": wound_up_bucket,
}
