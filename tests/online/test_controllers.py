"""All checks on trackers and budgets, and those of its own steps on every controller."""

import numpy as np
import pytest

from shortlist import Capacity
from shortlist.online import (
    BudgetController,
    EmaController,
    QuantileTracker,
    WindowController,
)
from tests.online.checks import (
    CHECKS,
    check_flags_are_above_their_threshold,
    check_foreign_states_are_refused,
    check_memory_is_bounded,
    check_no_capacity_flags_nothing,
    check_observing_flags_nothing,
    check_one_by_one_equals_many,
    check_probabilities_belong_to_the_answers,
    check_state_goes_through_json,
    check_swapping_the_model_keeps_the_flags,
)

SCORES = np.random.default_rng(0).normal(size=500)
RATE = Capacity.fraction(0.1)
TIMED = {"period": 60.0, "expected_arrivals": 60}
MAKERS = {
    "ema": lambda: EmaController(RATE, calibration_scores=SCORES),
    "window": lambda: WindowController(RATE, calibration_scores=SCORES, window=100),
    "tracker": lambda: QuantileTracker(RATE, calibration_scores=SCORES),
    "tracker, few scores": lambda: QuantileTracker(
        Capacity.count(1, per=200), calibration_scores=[0.0, 0.0, 1.0], step=0.5
    ),
    "bucket": lambda: QuantileTracker(RATE, calibration_scores=SCORES, burst=2),
    "budget": lambda: BudgetController(Capacity.count(5), calibration_scores=SCORES, **TIMED),
    "budget of items, few ids": lambda: BudgetController(
        Capacity.count(3, per=50), calibration_scores=SCORES, remember=40
    ),
    "large budget": lambda: BudgetController(
        Capacity.count(400), calibration_scores=SCORES, period=300.0, expected_arrivals=900
    ),
    "budget with probes": lambda: BudgetController(
        Capacity.count(10), calibration_scores=SCORES, probe=0.3, probe_key="a", **TIMED
    ),
    "budget of items with probes": lambda: BudgetController(
        Capacity.count(9, per=50), calibration_scores=SCORES, probe=0.5, probe_key="b", remember=40
    ),
}


# What the base class does alike for every controller is checked on those that most rely on it.
IN_FULL = ("tracker", "budget", "budget of items, few ids", "budget with probes")
ITS_OWN = (
    check_one_by_one_equals_many,
    check_state_goes_through_json,
    check_foreign_states_are_refused,
    check_flags_are_above_their_threshold,
    check_probabilities_belong_to_the_answers,
    check_no_capacity_flags_nothing,
    check_observing_flags_nothing,
    check_swapping_the_model_keeps_the_flags,
    check_memory_is_bounded,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", IN_FULL)
def test_trackers_and_budgets_pass_every_check(name, check):
    """The checks define the interface."""
    check(MAKERS[name])


@pytest.mark.parametrize("check", ITS_OWN, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", [name for name in MAKERS if name not in IN_FULL])
def test_every_controller_passes_the_checks_of_its_own_steps(name, check):
    """Its two compiled functions agree, and its arrays are saved, refused and translated."""
    check(MAKERS[name])


def test_a_window_of_flags_by_hand():
    """The threshold rises while more than the capacity of the last five items is flagged."""
    ema = EmaController(
        Capacity.fraction(0.4), calibration_scores=np.arange(10.0), window=5, step=0.5
    )
    flags, threshold = [0, 0, 1, 0, 1], 5.0
    for score in np.random.default_rng(0).uniform(0, 10, 200):
        decision = ema.decide(score)
        assert (decision.threshold, decision.flag) == (threshold, score > threshold)
        flags = [*flags[1:], decision.flag]
        threshold += 0.5 if sum(flags) > 2 else -0.5


@pytest.mark.parametrize("place", [0, 1, 4])
def test_a_window_of_flags_that_was_tampered_with(place):
    """Its count, its place and its flags belong together."""
    ema = EmaController(Capacity.fraction(0.4), calibration_scores=np.arange(10.0), window=5)
    assert EmaController.from_state(ema.state()).decide(9.0).flag
    n_floats, n_ints = ema.state_floats.size, ema.state_ints.size
    ema.state_ints[place] += 7
    assert not ema.is_sound(n_floats, n_ints)
