"""With guarantee="simultaneous" the promise holds for every capacity at once."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import betaincinv

from shortlist import Capacity, calibrate_threshold
from shortlist.thresholds._bands import (
    bounded_places,
    crossing_probability,
    local_level,
    simultaneous_interval,
    simultaneous_place,
)
from shortlist.thresholds.guarantees import Place, confident_place


def first_passages(n, places, bounds):
    """Return the probability of a crossing from another recursion, for consecutive places.

    At the first bound that is crossed, exactly k uniform numbers lie below it. The probabilities
    p_k of being first satisfy, with a sum over all j < k,
    P(N(u_k) = k) = p_k + sum of p_j P(N(u_k) = k | N(u_j) = j).
    """
    first = np.zeros(places.size)
    for i, (k, u) in enumerate(zip(places, bounds, strict=True)):
        earlier = bounds[:i]
        again = stats.binom.pmf(k - places[:i], n - places[:i], (u - earlier) / (1 - earlier))
        first[i] = stats.binom.pmf(k, n, u) - first[:i] @ again
    return first.sum()


@pytest.mark.parametrize("n", [1, 2, 7, 40, 200])
@pytest.mark.parametrize("level", [0.001, 0.01, 0.2])
def test_the_crossing_probability_agrees_with_another_recursion(n, level):
    """Poisson convolutions and first passages, to ten digits."""
    places = np.arange(n)
    bounds = betaincinv(places + 1.0, n - places, 1 - level)
    expected = first_passages(n, places, bounds)
    assert crossing_probability(n, level, places) == pytest.approx(expected, abs=1e-10)


def test_two_scores_can_be_checked_by_hand():
    """P(U_(1) <= u and U_(2) <= v) = v^2 - (v - u)^2 for u < v."""
    u, v = betaincinv([1.0, 2.0], [2.0, 1.0], 0.9)
    by_hand = 1 - (v**2 - (v - u) ** 2)
    assert crossing_probability(2, 0.1, np.arange(2)) == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("n", [5, 100, 1_000])
def test_the_local_level_spends_the_error_and_no_more(n, mirrored):
    """The probability of any crossing is the allowed error, to four digits, and not above."""
    places = bounded_places(n, mirrored=mirrored)
    level = local_level(n, 0.05, mirrored=mirrored)
    crossing = crossing_probability(n, level, places)
    assert 0.05 * (1 - 1e-4) <= crossing <= 0.05


# k of the simultaneous and of the pointwise promise, at 95 %
SIMULTANEOUS_AND_POINTWISE = {
    (1_000, "0.01"): (2, 4),
    (1_000, "0.02"): (8, 12),
    (1_000, "0.06"): (39, 47),
    (4_000, "0.01"): (22, 29),
    (4_000, "0.02"): (55, 65),
    (4_000, "0.06"): (197, 215),
}


@pytest.mark.parametrize(("n", "c"), SIMULTANEOUS_AND_POINTWISE)
def test_looking_first_costs_a_few_places(n, c):
    """The price of choosing the capacity after looking."""
    c = Fraction(c)
    found = simultaneous_place(n, c, error=0.05).k, confident_place(n, c, error=0.05).k
    assert found == SIMULTANEOUS_AND_POINTWISE[n, str(float(c))]


@pytest.mark.parametrize("n", [3, 60, 1_000, 30_000])
def test_larger_capacities_never_flag_less_and_never_more_than_pointwise(n):
    """From nothing to everything, and below the promise for one capacity."""
    fractions = [Fraction(i, 200) for i in range(1, 201)]
    found = [simultaneous_place(n, c, error=0.05).k for c in fractions]
    assert found == sorted(found)
    pairs = zip(found, fractions, strict=True)
    assert all(k <= confident_place(n, c, error=0.05).k for k, c in pairs)
    assert found[-1] == n


def test_every_k_is_covered_by_a_bound_at_the_local_level():
    """The chosen k has its own bound, and the bound is within the capacity."""
    n = 30_000
    places, level = bounded_places(n), local_level(n, 0.05)
    for c in (0.001, 0.03, 0.4, 0.55, 0.99):
        k = simultaneous_place(n, Fraction(str(c)), error=0.05).k
        assert k in places
        assert betaincinv(k + 1, n - k, 1 - level) <= c


def test_the_share_is_interpolated_between_two_bounds():
    """The bounds of both places hold at once, and so does their mean."""
    n, c = 1_000, Fraction("0.05")
    place, level = simultaneous_place(n, c, error=0.05), local_level(1_000, 0.05)
    low, high = betaincinv([place.k + 1, place.k + 2], [n - place.k, n - place.k - 1], 1 - level)
    assert (1 - place.share) * low + place.share * high == pytest.approx(0.05, abs=1e-9)


@pytest.mark.filterwarnings("ignore::shortlist.exceptions.InsufficientCalibrationWarning")
@pytest.mark.parametrize("chances", [(0.6, 0.3, 0.1), (0.9, 0.05, 0.05), (0.2, 0.3, 0.5)])
def test_no_capacity_is_exceeded_with_ties(chances):
    """Exactly, for scores of three values: over all capacities at once, the error is 20 %."""
    n, chances = 12, np.array(chances)
    fractions = np.arange(1, 20) / 20
    over = 0.0
    for low, middle in product(range(n + 1), repeat=2):
        count = np.array([low, middle, n - low - middle])
        if count.min() < 0:
            continue
        scores = np.repeat([0.0, 1.0, 2.0], count)
        rates = [rate_of(scores, chances, c) for c in fractions]
        over += stats.multinomial(n, chances).pmf(count) * any(rates > fractions)
    assert over <= 0.2


def rate_of(scores, chances, c):
    """Return the true flag rate of the threshold for one capacity."""
    threshold = calibrate_threshold(
        scores, Capacity.fraction(c), guarantee="simultaneous", confidence=0.8
    )
    return chances[np.arange(3) > threshold.value].sum()


def test_a_multiple_of_an_estimated_prevalence_is_covered_for_half_of_the_error():
    """The other half goes to the band: the threshold is that of the lowest prevalence."""
    n = 4_000
    y = np.arange(n) >= n - 80
    found = calibrate_threshold(
        np.arange(n), Capacity.multiple(3), y=y, rare_label=True, guarantee="simultaneous"
    )
    lowest = stats.beta(80, n - 80 + 1).ppf(0.025)
    assert found.k == simultaneous_place(n, Fraction(3 * float(lowest)), error=0.025).k


def test_the_interval_is_wider_than_for_one_threshold():
    """It holds for all thresholds, at each end up to half of the error."""
    low, high = simultaneous_interval(Place(20), 20, 1_000, error=0.05)
    pointwise = calibrate_threshold(np.arange(1_000), Capacity.fraction(0.02)).interval
    assert low < pointwise.low < 0.02 < pointwise.high < high
    level = local_level(1_000, 0.025)
    assert high == pytest.approx(stats.beta(21, 980).isf(level))
    assert low == pytest.approx(
        stats.beta(20, 981).ppf(local_level(1_000, 0.025, mirrored=True)), rel=1e-6
    )
