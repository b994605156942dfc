"""Losses at the top of a ranking: their gradients, thresholds and shapes."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import expit

from shortlist.aware._linear import Lagrangian, detection_loss
from studies.aware.convex_losses import pat_mat_loss, top_push_loss

TOP_LOSSES = {"detection": detection_loss, "pat-mat": pat_mat_loss, "top-push": top_push_loss}


@pytest.fixture
def scores(rng):
    """Return 200 scores, a tenth of them rare and higher by one."""
    is_rare = np.arange(200) < 20
    return rng.normal(size=200) + is_rare, is_rare


@pytest.mark.parametrize("name", TOP_LOSSES)
@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.6])
def test_the_gradient_is_that_of_the_loss(scores, name, fraction):
    """The gradient includes the threshold, which moves with the scores."""
    values, is_rare = scores
    loss = TOP_LOSSES[name]
    error = check_grad(
        lambda s: loss(s, is_rare, fraction).value,
        lambda s: loss(s, is_rare, fraction).gradient,
        values,
    )
    assert error < 1e-6


@pytest.mark.parametrize("name", TOP_LOSSES)
def test_only_differences_of_scores_matter(scores, name):
    """Adding a constant only moves the threshold."""
    values, is_rare = scores
    here, there = (TOP_LOSSES[name](values + shift, is_rare, 0.1) for shift in (0, 7))
    assert there.value == pytest.approx(here.value)
    assert there.threshold == pytest.approx(here.threshold + 7)


def test_the_smooth_threshold_flags_the_capacity(scores):
    """The mean of the smooth flags is the fraction."""
    values, is_rare = scores
    threshold = detection_loss(values, is_rare, 0.07).threshold
    assert expit(1.5 * (values - threshold)).mean() == pytest.approx(0.07)


def test_sharp_scores_make_the_smooth_loss_the_share_missed():
    """With one of two rare items above the cut, half are missed."""
    scores = 1000.0 * np.array([4, 1, 3, 2, 0, 0])
    is_rare = np.array([1, 1, 0, 0, 0, 0]) == 1
    assert detection_loss(scores, is_rare, 0.34).value == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("loss", [pat_mat_loss, top_push_loss])
def test_the_thresholds_of_the_convex_losses_are_upper_bounds(scores, loss):
    """It lies above the quantile, or above the highest common score."""
    values, is_rare = scores
    exact = np.quantile(values, 0.9) if loss is pat_mat_loss else values[~is_rare].max()
    assert loss(values, is_rare, 0.1).threshold >= exact


@pytest.mark.parametrize("shift", [-1.0, -2.5, -6.0])
def test_the_gradient_of_the_lagrangian_is_that_of_its_value(scores, shift):
    """This holds with too many flags, too few, and hardly any."""
    values, is_rare = scores
    loss = Lagrangian(step=0.0)
    loss.gradient(values[np.newaxis] - 2, is_rare, 0.1)  # sets the price, which is the unit as well
    price = loss.prices[0]

    def value(s):
        flagged = expit(1.5 * s)
        pressure = max(0.0, price * flagged.mean() / 0.1)
        return (1 - flagged[is_rare]).mean() + (pressure**2 - price**2) / (2 * price)

    gradient = lambda s: loss.gradient(s[np.newaxis], is_rare, 0.1)[0]  # noqa: E731
    assert check_grad(value, gradient, values + shift) < 1e-6


def test_dual_ascent_ends_at_the_capacity_and_the_exact_price(scores):
    """Where only the intercept can move, it ends where the exact solution puts the threshold."""
    values, is_rare = scores
    exact = detection_loss(values, is_rare, 0.1).threshold
    loss, intercept = Lagrangian(), -exact + 0.7  # far too many flags
    loss.gradient(values[np.newaxis] - exact, is_rare, 0.1)
    first = loss.prices
    for _ in range(5_000):
        intercept -= 0.2 * loss.gradient(values[np.newaxis] + intercept, is_rare, 0.1).sum()
    assert intercept == pytest.approx(-exact, abs=1e-3)
    assert loss.prices == pytest.approx(first, rel=1e-2)


def test_the_price_is_never_negative(scores):
    """Without excess flags the price falls to 0."""
    values, is_rare = scores
    loss = Lagrangian(step=0.5)
    for _ in range(20):
        loss.gradient(values[np.newaxis] - 9, is_rare, 0.5)
    assert loss.prices == 0
