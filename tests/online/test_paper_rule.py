"""What can be proved about the paper's rule for streams, with a sliding window of flags."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from shortlist import Capacity
from shortlist.online import EmaController, QuantileTracker

LN2 = math.log(2)


@given(
    scores=st.lists(st.floats(0, 1), min_size=1, max_size=300),
    window=st.integers(1, 40),
    rate=st.fractions(min_value="1/100", max_value="9/10"),
    step=st.floats(0.01, 0.5),
)
@settings(max_examples=200, deadline=None)
def test_the_recent_rate_is_above_the_capacity_half_of_the_time(scores, window, rate, step):
    """Whatever arrives: rises and falls differ by a constant, since the threshold stays near."""
    ema = EmaController(
        Capacity.fraction(rate), calibration_scores=[0.0, 0.5, 1.0], window=window, step=step
    )
    start, *_ = ema.state_floats
    ema.decide_many(np.array(scores))
    end, *_ = ema.state_floats
    most = 1 / step + window * (1 + rate) + 3
    assert abs(end - start) / step <= most


@given(window=st.integers(1, 400), rate=st.floats(0.001, 0.999), p=st.floats(0.001, 0.999))
def test_where_it_rests_the_flag_rate_is_near_the_capacity(window, rate, p):
    """By the distance of mean and median: ln 2 flags in a window of independent items."""
    is_above = binom.sf(math.floor(rate * window), window, p)
    assume(abs(is_above - 0.5) > 1e-9)
    if is_above < 0.5:
        assert p <= rate + LN2 / window + 1e-9
    else:
        assert p >= rate - LN2 / window - 1e-9


@pytest.mark.parametrize("options", [{"alpha": 0.002}, {"window": 500}])
def test_no_bound_on_the_flag_rate_follows(options):
    """Where high and low scores alternate in long runs, it flags nearly all of the high ones."""
    capacity, known = Capacity.fraction(0.02), np.full(10, 0.5)
    runs = np.repeat([1.0, 0.0] * 20, [10_000, 11_000 if "window" in options else 14_000] * 20)
    ema = EmaController(capacity, calibration_scores=known, step=1e-6, **options)
    assert ema.decide_many(runs).flagged.mean() > 0.4
    tracker = QuantileTracker(capacity, calibration_scores=np.linspace(0, 1, 100))
    assert tracker.decide_many(runs).flagged.mean() < 0.025


@pytest.mark.parametrize("options", [{"alpha": 0.002}, {"alpha": 0.2}, {"window": 50}])
@pytest.mark.parametrize("step", [0.003, 0.1])
def test_its_loss_grows_in_proportion_to_the_stream(options, step):
    """The threshold moves with every item, so every other one is half a step from the best."""
    rng, rate, n = np.random.default_rng(0), 0.1, 20_000
    ema = EmaController(
        Capacity.fraction(rate), calibration_scores=rng.random(1_000), step=step, **options
    )
    thresholds = ema.decide_many(rng.random(n)).thresholds
    assert np.allclose(np.abs(np.diff(thresholds)), step)
    # Uniform scores that are probabilities: the best threshold is 1 - rate, one flag is worth as
    # much as the item there, and what a threshold loses is half its squared distance.
    distance = thresholds - (1 - rate)
    assert np.all(np.maximum(np.abs(distance[1:]), np.abs(distance[:-1])) >= step / 2 - 1e-12)
    assert (distance**2 / 2).sum() >= (n // 2) * step**2 / 8
