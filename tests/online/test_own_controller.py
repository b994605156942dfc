"""A controller of one's own gets the interface and its checks for free."""

import numpy as np
import pytest
from numba import njit

from shortlist import Capacity
from shortlist.online import Controller
from shortlist.online._tail import map_scores
from shortlist.online.checks import CHECKS


@njit
def step(score, at, deciding, real, whole):
    """Flag above a threshold that stays, while there is any capacity."""
    threshold = real[0] if real[1] > 0 else np.inf
    return (1 if score > threshold else 0), threshold


@njit
def many(scores, times, deciding, codes, thresholds, real, whole):
    """Loop over the step."""
    for i in range(scores.size):
        codes[i], thresholds[i] = step(scores[i], times[i], deciding, real, whole)


class Unmoved(Controller):
    """The quantile of the calibration scores, come what may."""

    _step = staticmethod(step)
    _many = staticmethod(many)

    def __init__(self, capacity, *, calibration_scores, clock=None, remember=100):
        super().__init__(
            capacity, calibration_scores=calibration_scores, clock=clock, remember=remember
        )

    def _check(self, capacity):
        capacity.as_fraction()

    def _first_arrays(self, calibration):
        cut = np.quantile(calibration, 1 - self._capacity.as_fraction())
        return np.array([cut, 0.0]), np.zeros(0, dtype=np.int64)

    def _use(self, capacity, *, since=None):
        self._real[1] = capacity.as_fraction()

    def _swap(self, old, new):
        self._real[:1] = map_scores(self._real[:1], old, new)

    def _sound(self):
        return self._real.shape == (2,) and self._whole.shape == (0,)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_thirty_lines_are_a_controller(check):
    """Two compiled functions and five short methods pass the whole catalogue."""
    scores = np.random.default_rng(0).normal(size=500)
    check(lambda: Unmoved(Capacity.fraction(0.1), calibration_scores=scores))
