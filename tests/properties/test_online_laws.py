"""The guarantees of controllers, for arbitrary scores, clocks and restarts."""

import json
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist import Capacity
from shortlist.online import (
    BudgetController,
    Controller,
    EmaController,
    QuantileTracker,
    WindowController,
)
from tests.online.checks import decision_of

coarse = st.sampled_from([-1e300, -2.5, 0.0, 0.5, 1.0, 3.0, 1e300])
fine = st.floats(-10, 10)
finite = coarse | fine
streams = st.lists(finite, min_size=1, max_size=120)
calibrations = st.lists(finite, min_size=1, max_size=40)
rates = st.integers(1, 19).map(lambda twentieths: twentieths / 20)


def restarted(controller):
    """Return the controller, saved to JSON and loaded again."""
    return type(controller).from_state(json.loads(json.dumps(controller.state(), allow_nan=False)))


RATE, COUNT = Capacity.fraction(0.2), Capacity.count(2)
TIMED = {"period": 40.0, "expected_arrivals": 10}
KINDS = {
    "ema": lambda scores: EmaController(RATE, calibration_scores=scores, remember=4),
    "window": lambda scores: WindowController(RATE, calibration_scores=scores, window=7),
    "tracker": lambda scores: QuantileTracker(RATE, calibration_scores=scores, step=1.0),
    "bucket": lambda scores: QuantileTracker(RATE, calibration_scores=scores, burst=2),
    "budget": lambda scores: BudgetController(COUNT, calibration_scores=scores, **TIMED),
    "budget of items": lambda scores: BudgetController(
        Capacity.count(2, per=9), calibration_scores=scores, remember=3
    ),
}
far = st.sampled_from([604_700.0, 604_801.0, 1e6, 1.2e6, 1e9, 1e12])
visits = st.lists(
    st.tuples(finite, st.floats(-100, 400) | far, st.integers(0, 12)), min_size=1, max_size=60
)


@given(st.sampled_from(sorted(KINDS)), calibrations, visits, st.integers(0, 60), st.booleans())
@settings(max_examples=200)
def test_batches_and_restarts_change_no_decision(kind, calibration, visits, split, with_ids):
    """One by one, in two batches, or saved and loaded in between: the answers are the same."""
    alone, batched = KINDS[kind](calibration), KINDS[kind](calibration)
    expected = [
        alone.decide(score, at=at, id=key if with_ids else None) for score, at, key in visits
    ]
    decided = []
    for part in (visits[:split], visits[split:]):
        scores, times, ids = ([row[i] for row in part] for i in range(3))
        batch = batched.decide_many(
            np.array(scores), at=np.array(times), ids=ids if with_ids else None
        )
        decided += [decision_of(batch, i) for i in range(len(part))]
        batched = restarted(batched)
    assert decided == expected
    assert batched.state() == alone.state()


# --- the tracker -------------------------------------------------------------------------------

moves = st.lists(st.one_of(finite, st.sampled_from(["above", "below"])), min_size=1, max_size=250)


def against(threshold, move):
    """Return the score of an adversary who knows the threshold."""
    if not isinstance(move, str):
        return move
    level = float(np.clip(threshold, -1e300, 1e300))
    return float(np.nextafter(level, np.inf)) if move == "above" else level


pushes = st.sampled_from(["above"] * 5 + ["below"] * 5) | finite
shares = st.sampled_from([0.0, 0.001, 0.01, 0.05, 0.2, 0.5, 0.95])
tracked = st.one_of(
    st.tuples(st.just("items"), st.tuples(pushes, st.integers(1, 60))),
    st.tuples(st.just("capacity"), shares),
    st.tuples(st.just("pause"), shares),
    st.tuples(st.just("swap"), st.sampled_from([1, 3, 40, 3_000])),
    st.tuples(st.just("restart"), st.none()),
)


@given(
    st.sampled_from([1, 20, 5_000]),
    st.lists(tracked, min_size=1, max_size=40),
    shares,
    st.sampled_from([0.03, 0.5, 2.0, 80.0]),
)
@settings(max_examples=200)
def test_the_tracker_keeps_its_bound_on_every_interval(n, history, first, step):
    """Against an adversary who sees the threshold, through pauses at zero, swaps and restarts."""
    tracker = QuantileTracker(
        Capacity.fraction(first), calibration_scores=np.arange(float(n)), step=step
    )
    errors, rate, threshold = [0.0], first, 0.0
    for kind, value in history * 3:
        if kind == "items":
            for _ in range(value[1]):
                decision = tracker.decide(against(threshold, value[0]))
                errors.append(errors[-1] + decision.flag - rate)
                threshold = decision.threshold
        elif kind == "capacity":
            rate = value
            tracker.set_capacity(Capacity.fraction(rate))
        elif kind == "pause":
            tracker.set_capacity(Capacity.fraction(0))
            assert not tracker.decide(1e300).flag
            rate = value
            tracker.set_capacity(Capacity.fraction(rate))
        elif kind == "swap":
            tracker.swap_model(np.arange(float(value)))
        else:
            tracker = restarted(tracker)
    # The error of an interval is a difference of two prefix sums.
    assert max(errors) - min(errors) <= tracker.interval_bound() + 1e-6


@given(calibrations, streams, rates, st.sampled_from([0.03, 1.0]))
def test_the_tracker_is_four_lines_of_arithmetic(calibration, scores, rate, step):
    """The compiled code agrees with the rule as written in the notes."""
    tracker = QuantileTracker(Capacity.fraction(rate), calibration_scores=calibration, step=step)
    offset = tracker.state_floats[0]
    for score in scores:
        flag = tracker.decide(score).flag
        offset += step * (flag - rate)
    assert np.isclose(tracker.state_floats[0], offset)


# --- the window and the rule of the paper ------------------------------------------------------


@given(calibrations, streams, rates, st.integers(1, 30), rates)
def test_the_window_is_an_exact_quantile(calibration, scores, rate, size, later):
    """The threshold is the (k + 1)-th largest of the last scores, even after a change."""
    window = WindowController(Capacity.fraction(rate), calibration_scores=calibration, window=size)
    kept = np.resize(calibration[-size:], size).tolist()
    for i, score in enumerate(scores):
        if i == 10:
            rate = later
            window.set_capacity(Capacity.fraction(rate))
        k = Capacity.fraction(rate).max_flags(size)
        expected = sorted(kept, reverse=True)[k] if k else np.inf
        assert window.decide(score).threshold == expected
        kept = [*kept[1:], score]


@given(calibrations, streams, rates, st.sampled_from([0.01, 0.5]))
def test_the_rule_of_the_paper_is_as_printed(calibration, scores, rate, alpha):
    """The average of the flags moves the threshold by its sign."""
    ema = EmaController(
        Capacity.fraction(rate), calibration_scores=calibration, alpha=alpha, step=0.25
    )
    k = Capacity.fraction(rate).max_flags(len(calibration))
    threshold, average = sorted(calibration, reverse=True)[k], rate
    for score in scores:
        decision = ema.decide(score)
        assert decision.threshold == threshold
        assert decision.flag == (score > threshold)
        average = (1 - alpha) * average + alpha * decision.flag
        threshold += 0.25 if average > rate else -0.25


# --- budgets -----------------------------------------------------------------------------------

gaps = st.floats(-30, 60)
item = st.tuples(st.just("item"), finite, gaps, st.none() | st.integers(0, 15))
jump = st.tuples(
    st.just("jump"), finite, st.sampled_from([7e5, 1e6, 1e9]), st.none() | st.integers(0, 15)
)
change = st.tuples(
    st.just("capacity"), st.integers(0, 6), st.none() | st.floats(-50, 500), st.just(None)
)
restart = st.tuples(st.just("restart"), st.just(0), st.just(0), st.just(None))
watch = st.tuples(st.just("watch"), finite, gaps, st.just(None))
histories = st.lists(st.one_of(item, item, item, change, restart, watch, jump), max_size=120)


@given(histories, calibrations, st.integers(0, 5))
@settings(max_examples=200)
def test_a_budget_is_never_exceeded(history, calibration, k):
    """It holds through restarts, new capacities, clocks that run back or jump, and repeated ids."""
    period = 40.0
    budget: Controller = BudgetController(
        Capacity.count(k),
        calibration_scores=calibration,
        period=period,
        expected_arrivals=8,
        remember=8,
    )
    now, used = -np.inf, {}
    clock = 0.0
    for kind, value, at, key in history:
        if kind == "restart":
            budget = restarted(budget)
        elif kind == "capacity":
            budget.set_capacity(Capacity.count(value), at=at)
        elif kind == "watch":
            clock += at
            budget.observe(value, at=clock)
            now = budget.now
        else:
            moment = clock + at  # may step back
            clock = clock if kind == "jump" else moment
            decision = budget.decide(value, at=moment, id=key)
            if decision.reason == "moment refused":
                assert moment - now > budget.farthest_jump
                assert not decision.flag
            elif decision.reason != "seen before":
                now = max(now, moment)
            assert budget.now >= now
            if decision.flag and decision.reason != "seen before":
                day = np.floor(now / period)
                used[day] = used.get(day, 0) + 1
                assert used[day] <= budget.capacity.value


@given(histories, st.integers(0, 3), st.integers(1, 12))
@settings(max_examples=60)
def test_a_budget_of_items_is_never_exceeded(history, k, per):
    """Every `per` items, not counting repeated ids, contain at most k flags."""
    k = min(k, per)
    budget = BudgetController(Capacity.count(k, per=per), calibration_scores=[0.0, 1.0])
    n, used = 0, {}
    for kind, value, _, key in history:
        if kind == "restart":
            budget = restarted(budget)
        elif kind == "item":
            decision = budget.decide(value, id=key)
            if decision.reason != "seen before":
                used[n // per] = used.get(n // per, 0) + decision.flag
                n += 1
    assert all(flags <= k for flags in used.values())


@given(st.integers(1, 40), st.integers(1, 60))
def test_all_of_a_budget_can_be_used(k, per):
    """If every score is higher than all before, the whole budget is used."""
    k = min(k, per)
    budget = BudgetController(Capacity.count(k, per=per), calibration_scores=[0.0])
    flagged = budget.decide_many(np.arange(1.0, per + 1)).flagged
    assert flagged.sum() == k


# --- buckets -----------------------------------------------------------------------------------


def fullest(flags, allowance):
    """Return the most flags beyond the allowance, over all stretches of items."""
    worst, most = Fraction(0), Fraction(0)
    for flag, allowed in zip(flags, allowance, strict=True):
        most = max(most, Fraction(0)) + int(flag) - allowed
        worst = max(worst, most)
    return worst


@given(streams, st.integers(1, 4), st.lists(rates, min_size=1, max_size=3), st.integers(1, 50))
def test_a_bucket_never_overflows(scores, burst, rates, pause):
    """Every stretch has at most `burst` flags beyond the capacity, through restarts, too."""
    bucket = QuantileTracker(
        Capacity.fraction(rates[0]), calibration_scores=[0.0, 1.0], burst=burst, step=3.0
    )
    flags, allowance = [], []
    for i, score in enumerate(scores):
        rate = rates[i % len(rates)]
        bucket.set_capacity(Capacity.fraction(rate))
        if i % pause == 0:
            bucket = restarted(bucket)
        flags.append(bucket.decide(score).flag)
        allowance.append(Fraction(str(rate)))
    assert fullest(flags, allowance) <= burst


# --- time --------------------------------------------------------------------------------------


@given(
    st.integers(1, 10**6),
    st.integers(-(10**6), 10**9),
    st.lists(st.tuples(st.integers(0, 4), st.integers(-2, 2)), min_size=1, max_size=30),
    st.integers(1, 3),
)
@settings(max_examples=200)
def test_a_boundary_is_where_exact_arithmetic_says(length, first, steps, k):
    """One float before a period begins, its budget is still closed, however large the moment."""
    budget = BudgetController(
        Capacity.count(k), calibration_scores=[0.0], period=float(length), expected_arrivals=5
    )
    used, period, latest = {}, first, -np.inf
    for i, (periods, floats) in enumerate(steps):
        period += periods
        at = float(period * length)
        for _ in range(abs(floats)):
            at = float(np.nextafter(at, np.sign(floats) * np.inf))
        latest = max(latest, at)
        flag = budget.decide(1.0 + i, at=at).flag
        true_period = Fraction(latest) // length
        used[true_period] = used.get(true_period, 0) + flag
        assert used[true_period] <= k


@given(
    calibrations,
    st.lists(st.tuples(moves, rates, st.integers(0, 40)), min_size=1, max_size=4),
    st.sampled_from([0.5, 2.0]),
)
@settings(max_examples=60)
def test_a_late_announcement_adds_no_more_than_it_corrects(calibration, blocks, step):
    """The error exceeds the bound by at most the difference of rates for the late items."""
    tracker = QuantileTracker(
        Capacity.fraction(blocks[0][1]), calibration_scores=calibration, step=step
    )
    extra, now, rate = 0.0, 0.0, blocks[0][1]
    errors, threshold = [0.0], 0.0
    for moves_, later, late in blocks:
        for move in moves_:
            now += 1.0
            decision = tracker.decide(against(threshold, move), at=now)
            errors.append(errors[-1] + decision.flag - rate)
            threshold = decision.threshold
        tracker.set_capacity(Capacity.fraction(later), at=now - late)
        extra += abs(later - rate) * (late + 1)
        rate = later
    assert max(errors) - min(errors) <= tracker.interval_bound() + extra + 1e-9
