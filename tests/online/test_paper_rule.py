"""What can be proved about the paper's rule for streams: with an average, and with a window."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter
from scipy.stats import binom

from shortlist import Capacity
from shortlist.online import EmaController, QuantileTracker

LN2 = math.log(2)


def constants(rate, step, *, alpha=None, window=None):
    """Return B, which bounds rises less falls, and E, flags less the sum of recent rates.

    Scores lie between 0 and 1. Above them nothing is flagged, and the recent rate is at the
    capacity after `down` items; below them everything is, and it is above the capacity after `up`.
    """
    if window is not None:
        up, down = math.floor(rate * window) + 1, window - math.floor(rate * window)
        edge = (window - 1) / 2
    else:
        shrink = math.log1p(-alpha)
        up, down = math.floor(math.log1p(-rate) / shrink) + 1, math.ceil(math.log(rate) / shrink)
        edge = 1 / alpha - 1
    return 1 / step + up + down, edge


RULES = st.one_of(
    st.builds(dict, window=st.integers(1, 40)), st.builds(dict, alpha=st.floats(0.02, 0.9))
)


@given(
    # Long runs of high and of low scores, and others: what hurts a rule that feels its way.
    runs=st.lists(
        st.tuples(st.sampled_from([0.0, 0.3, 0.7, 1.0]), st.integers(1, 60)),
        min_size=1,
        max_size=30,
    ),
    options=RULES,
    rate=st.fractions(min_value="1/100", max_value="9/10"),
    step=st.floats(0.01, 0.5),
    cut=st.floats(0, 1),
)
@settings(max_examples=200, deadline=None)
def test_over_any_stretch_of_any_stream(runs, options, rate, step, cut):
    """Rises and falls differ by B at most, and flags are as many as that allows."""
    scores = np.repeat(*map(np.array, zip(*runs, strict=True)))
    known = [0.0, 0.5, 1.0]
    ema = EmaController(Capacity.fraction(rate), calibration_scores=known, step=step, **options)
    ema.decide_many(scores[: int(cut * scores.size)])
    start, stretch = ema.state_floats[0], scores[int(cut * scores.size) :]
    flags = int(ema.decide_many(stretch).flagged.sum())
    c, n = float(rate), stretch.size
    balance, edge = constants(c, step, **options)
    assert abs(ema.state_floats[0] - start) / step <= balance + 1e-6
    assert flags >= c * (n - balance) / 2 - edge - 1e-6
    assert flags <= (1 + c) * n / 2 + (1 - c) * balance / 2 + edge + 1e-6


@pytest.mark.parametrize("options", [{"alpha": 0.05}, {"window": 50}])
def test_half_the_capacity_is_what_an_adversary_can_leave(options):
    """Low scores for as long as the threshold falls, then just enough high ones for it to rise."""
    c, step, rises = 0.1, 1e-4, 4_000
    ema = EmaController(
        Capacity.fraction(c), calibration_scores=np.full(10, 0.9), step=step, **options
    )
    flags = 0
    for _ in range(3):
        flags += ema.decide_many(np.zeros(rises)).flagged.sum()
        for _ in range(rises):
            average = ema.state_floats[1]
            if "alpha" in options:
                unflagged = (1 - options["alpha"]) * average
            else:
                ring, oldest = ema.state_ints[2:], ema.state_ints[1]
                unflagged = average - ring[oldest] / ring.size
            flags += ema.decide(0.0 if unflagged > c + 1e-9 else 1.0).flag
    share = flags / (6 * rises)
    assert c / 2 - 0.001 < share < 0.6 * c + 0.01


@given(window=st.integers(1, 400), rate=st.floats(0.001, 0.999), p=st.floats(0.001, 0.999))
def test_where_it_rests_the_flag_rate_is_near_the_capacity(window, rate, p):
    """By the distance of mean and median: ln 2 flags in a window of independent items."""
    is_above = binom.sf(math.floor(rate * window), window, p)
    assume(abs(is_above - 0.5) > 1e-9)
    if is_above < 0.5:
        assert p <= rate + LN2 / window + 1e-9
    else:
        assert p >= rate - LN2 / window - 1e-9


@pytest.mark.parametrize("alpha", [0.001, 0.01, 0.1])
@pytest.mark.parametrize("p", [0.01, 0.1, 0.5])
def test_the_median_of_the_average_is_within_a_standard_deviation(alpha, p):
    """So an average that rests with its median at c has a rate p this near to it."""
    rng, n, burn = np.random.default_rng(0), 200_000, 20_000
    flags = (rng.random(n) < p) * alpha
    average = lfilter([1.0], [1.0, alpha - 1.0], flags)[burn:]
    deviation = math.sqrt(p * (1 - p) * alpha / (2 - alpha))
    assert average.std() == pytest.approx(deviation, rel=0.1)
    assert abs(np.median(average) - p) <= deviation


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
