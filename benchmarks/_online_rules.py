"""The rules that are compared on simulated streams: ours, known ones, and those of peers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from river import anomaly
from river.base import Estimator
from skactiveml.stream.budgetmanager import BalancedIncrementalQuantileFilter

from shortlist import Capacity
from shortlist.online import (
    BudgetController,
    Controller,
    EmaController,
    QuantileTracker,
    Stream,
    TokenBucketController,
    WindowController,
)

ARRIVALS = 5_000
Rule = Callable[[Stream], np.ndarray]


def days_of(stream: Stream) -> np.ndarray:
    """Return the day of each item."""
    return (stream.times // stream.period).astype(int)


def rates_of(stream: Stream) -> np.ndarray:
    """Return the rate that is announced for each item: the day's capacity over usual arrivals."""
    return stream.capacities[days_of(stream)] / ARRIVALS


def capped(flags: np.ndarray, stream: Stream) -> np.ndarray:
    """Stop each day when its capacity is used up. The rule itself does not notice."""
    days = days_of(stream)
    kept = np.zeros_like(flags)
    for day, capacity in enumerate(stream.capacities):
        kept[np.flatnonzero(flags & (days == day))[:capacity]] = True
    return kept


# --- ours --------------------------------------------------------------------------------------


def controlled(controller: Controller, stream: Stream, *, counts: bool = False) -> np.ndarray:
    """Announce each day's capacity as it begins, and decide."""
    for day, capacity in enumerate(stream.capacities.tolist()):
        if day == 0 or capacity != stream.capacities[day - 1]:
            told = Capacity.count(capacity, per=None if counts else ARRIVALS)
            controller.set_capacity(told, at=day * stream.period)
    return controller.decide_many(stream.scores, at=stream.times).flagged


def _rate(kind: Any, **options: Any) -> Rule:
    def run(stream: Stream) -> np.ndarray:
        first = Capacity.count(int(stream.capacities[0]), per=ARRIVALS)
        made = kind(first, calibration_scores=stream.calibration_scores, **options)
        return controlled(made, stream)

    return run


def _count(kind: Any, **options: Any) -> Rule:
    def run(stream: Stream) -> np.ndarray:
        made = kind(
            Capacity.count(int(stream.capacities[0])),
            calibration_scores=stream.calibration_scores,
            period=stream.period,
            expected_arrivals=ARRIVALS,
            **options,
        )
        return controlled(made, stream, counts=True)

    return run


# --- sketches ----------------------------------------------------------------------------------


def fixed(stream: Stream) -> np.ndarray:
    """Keep the threshold of the calibration scores."""
    share = stream.capacities[0] / ARRIVALS
    return stream.scores > np.quantile(stream.calibration_scores, 1 - share)


@njit
def _proportional(scores, rates, threshold, alpha, gain):
    flags, average = np.zeros(scores.size, np.bool_), rates[0]
    for i in range(scores.size):
        flags[i] = scores[i] > threshold
        average += alpha * (flags[i] - average)
        threshold += gain * (average / rates[i] - 1)
    return flags


def ema_proportional(stream: Stream) -> np.ndarray:
    """Move the threshold in proportion to the error of the average, not by its sign."""
    share = stream.capacities[0] / ARRIVALS
    start = np.quantile(stream.calibration_scores, 1 - share)
    return _proportional(stream.scores, rates_of(stream), start, 0.002, 0.001)


@njit
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
    share = stream.capacities[0] / ARRIVALS
    start = np.quantile(stream.calibration_scores, 1 - share)
    return _pid(stream.scores, rates_of(stream), start, 0.05, 0.5, 0.02)


@njit
def _pace_clock(scores, times, capacities, window, period, expected):
    flags, seen, used, day = np.zeros(scores.size, np.bool_), 0, 0, -1
    ring, place, threshold = window.copy(), 0, np.inf
    for i in range(scores.size):
        if int(times[i] // period) != day:
            day, seen, used = int(times[i] // period), 0, 0
        phase = times[i] / period - day
        if seen % 20 == 0 or flags[i - 1]:
            coming = (0.1 * expected + seen) / (0.1 + phase) * (1 - phase)
            share = (capacities[day] - used) / max(coming, 1.0)
            threshold = np.quantile(ring, 1 - share) if share < 1 else -np.inf
        flags[i] = used < capacities[day] and scores[i] > threshold
        used += flags[i]
        seen += 1
        ring[place], place = scores[i], (place + 1) % ring.size
    return flags


def pace_clock(stream: Stream) -> np.ndarray:
    """Spread what is left over the rest of the day, by the last 5,000 scores."""
    window = stream.calibration_scores[-ARRIVALS:]
    return _pace_clock(
        stream.scores, stream.times, stream.capacities, window, stream.period, ARRIVALS
    )


# --- peers -------------------------------------------------------------------------------------


class _Given(Estimator):
    """A detector whose score is already in the item."""

    def score_one(self, x):
        return x["score"]

    def learn_one(self, x):
        return None


def river_filter(stream: Stream) -> np.ndarray:
    """River's QuantileFilter, which keeps a P2 estimate; it cannot change its rate."""
    rule = anomaly.QuantileFilter(_Given(), q=1 - stream.capacities[0] / ARRIVALS)
    for score in stream.calibration_scores.tolist():
        rule.learn_one({"score": score})
    flags = np.zeros(stream.scores.size, dtype=bool)
    for i, score in enumerate(stream.scores.tolist()):
        flags[i] = rule.classify(score)
        rule.learn_one({"score": score})
    return flags


@njit
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

    It cannot change its rate. It takes a tenth of a millisecond per item, so a compiled twin runs;
    on the first items the two must agree.
    """
    rates = np.full(stream.scores.size, rates_of(stream)[0])
    history = stream.calibration_scores[-1_000:]
    flags = _activeml_twin(stream.scores, rates, history, 50.0)
    first = stream.scores[:2_000]
    rule = BalancedIncrementalQuantileFilter(w=1_000, w_tol=50, budget=float(rates[0]))
    rule.query_by_utility(np.zeros(1))
    rule.history_sorted_.extend(history.tolist())
    chosen = rule.query_by_utility(first)
    assert np.array_equal(np.flatnonzero(flags[: first.size]), chosen), "the twin has left"
    return flags


RATE_RULES: dict[str, Rule] = {
    "**QuantileTracker**": _rate(QuantileTracker),
    "QuantileTracker, step 0.1": _rate(QuantileTracker, step=0.1),
    "QuantileTracker, step 0.2": _rate(QuantileTracker, step=0.2),
    "fixed threshold": fixed,
    "EmaController (the paper)": _rate(EmaController),
    "the same, step 10 times as large": _rate(EmaController, step=0.01),
    "EMA, proportional": ema_proportional,
    "WindowController, 1,000": _rate(WindowController, window=1_000),
    "WindowController, 5,000": _rate(WindowController),
    "WindowController, 20,000": _rate(WindowController, window=20_000),
    "PID": pid,
    "river QuantileFilter (P²)": river_filter,
    "scikit-activeml BIQF": activeml_filter,
}
COUNT_RULES: dict[str, Rule] = {
    "**BudgetController**": _count(BudgetController),
    'BudgetController, pace="recent"': _count(BudgetController, pace="recent"),
    'BudgetController, pace="pattern"': _count(BudgetController, pace="pattern"),
    "pace by the clock, last 5,000": pace_clock,
}
BUCKET_RULES: dict[str, Rule] = {
    "TokenBucketController, burst 10": _count(TokenBucketController),
}
