"""How to write your own controller: the interface and its checks come for free.

This one flags every score above a threshold that never moves. What it learns lives in two arrays:
`state_floats` with the threshold and the rate, and `state_ints`, which it does not need.
"""

import numpy as np
import pytest
from numba import njit

from shortlist import Capacity
from shortlist.online import Controller
from shortlist.online.decisions import ABOVE_THRESHOLD, BELOW_THRESHOLD
from tests.online.checks import CHECKS

THRESHOLD, RATE = range(2)


# First, the decision about one item, and the loop over many. Both are compiled.


@njit
def step(score, at, deciding, work, number, floats, ints):
    """Return why the item is flagged or not, the threshold, and the probability of a flag."""
    threshold = floats[THRESHOLD] if floats[RATE] > 0 else np.inf
    flag = score > threshold
    return (ABOVE_THRESHOLD, threshold, 1.0) if flag else (BELOW_THRESHOLD, threshold, 0.0)


@njit
def loop(items, deciding, answers, floats, ints):
    """Decide about items in order."""
    scores, times, works, numbers = items
    codes, thresholds, probabilities = answers
    for i in range(scores.size):
        codes[i], thresholds[i], probabilities[i] = step(
            scores[i], times[i], deciding, works[i], numbers[i], floats, ints
        )


# Then, what a capacity and a model mean for the two arrays.


class FixedController(Controller):
    """Keep the quantile of the calibration scores, whatever happens."""

    compiled_step = staticmethod(step)
    compiled_loop = staticmethod(loop)

    def __init__(self, capacity, *, calibration_scores, clock=None, remember=100):
        super().__init__(
            capacity, calibration_scores=calibration_scores, clock=clock, remember=remember
        )
        threshold = np.quantile(calibration_scores, 1 - capacity.as_fraction())
        self.state_floats = np.array([threshold, 0.0])
        self.state_ints = np.zeros(0, dtype=np.int64)
        self.apply_capacity(capacity)

    def check_capacity(self, capacity):
        """Accept every capacity that is a rate; others raise an error here."""
        capacity.as_fraction()

    def apply_capacity(self, capacity, *, since=None):
        """Set the rate; called at the start and whenever the capacity changes."""
        self.state_floats[RATE] = capacity.as_fraction()

    def change_scale(self, old, new):
        """Translate the threshold to the scores of another model."""
        self.state_floats[:1] = old.translate(self.state_floats[:1], to=new)


# Last, the checks. They cover batches, ids, clocks, restarts, invalid input and more.


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_thirty_lines_are_a_controller(check):
    """Two compiled functions, a constructor and three short methods pass every check."""
    scores = np.random.default_rng(0).normal(size=500)
    check(lambda: FixedController(Capacity.fraction(0.1), calibration_scores=scores))


def test_a_controller_without_its_methods_says_so():
    """The base class cannot decide anything by itself."""
    with pytest.raises(NotImplementedError):
        Controller(Capacity.fraction(0.1), calibration_scores=[0.0]).set_capacity(
            Capacity.count(1, per=9)
        )
