"""All checks, on every controller in several settings."""

import numpy as np
import pytest

from shortlist import Capacity
from shortlist.online import (
    BudgetController,
    EmaController,
    QuantileTracker,
    TokenBucketController,
    WindowController,
)
from tests.online.checks import CHECKS

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
    "bucket": lambda: TokenBucketController(RATE, calibration_scores=SCORES, burst=2),
    "bucket in time": lambda: TokenBucketController(
        Capacity.count(5), calibration_scores=SCORES, burst=1, **TIMED
    ),
    "budget": lambda: BudgetController(Capacity.count(5), calibration_scores=SCORES, **TIMED),
    "budget by pattern": lambda: BudgetController(
        Capacity.count(5), calibration_scores=SCORES, pace="pattern", **TIMED
    ),
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


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_every_controller_passes_every_check(make, check):
    """The checks define the interface."""
    check(make)
