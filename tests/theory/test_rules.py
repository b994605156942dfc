"""The optimal rule against published figures, identities and bounds."""

import math

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from shortlist import Capacity
from shortlist.theory import BayesRule, OptimalRule, vc_dimension_bound

# Normal(0, 1) against Cauchy(mu, 1), prevalence 0.01, b = 2:
# gamma, modified prior, sensitivity, specificity, accuracy.
NORMAL_CAUCHY = {
    0: (1.519605, 0.396888, 0.030245, 0.980104, 0.970605),
    4: (20.260435, 0.047036, 0.369306, 0.983528, 0.977386),
    9: (32.635642, 0.029730, 0.860705, 0.988492, 0.987214),
}
# Shift below which the Bayes rule flags nothing, by prevalence.
CRITICAL_SHIFT = {0.005: 12.48215, 0.01: 8.72010, 0.02: 6.01619, 0.05: 3.52126}


def optimal(rare, common, *, prevalence=0.01, b=2.0):
    """Shorten the calls below."""
    return OptimalRule(rare, common, prevalence=prevalence, capacity=Capacity.multiple(b))


@pytest.mark.parametrize("mu", NORMAL_CAUCHY)
def test_the_worked_example(mu):
    """Every figure agrees to six decimals."""
    rule = optimal(stats.norm(), stats.cauchy(mu))
    found = (rule.gamma, rule.modified_prior, rule.sensitivity, rule.specificity, rule.accuracy)
    assert found == pytest.approx(NORMAL_CAUCHY[mu], abs=1e-6)
    assert rule.flagged_fraction == pytest.approx(0.02, abs=1e-12)


@pytest.mark.parametrize("b", [0.5, 1, 3])
def test_it_is_the_most_powerful_test_of_its_size(b):
    """The lemma of Neyman and Pearson: the test that rejects with its size above one level."""
    rule = optimal(stats.norm(2), stats.norm(), b=b)
    level = stats.norm.isf(1 - rule.specificity)
    assert rule.region == [(pytest.approx(level, abs=1e-9), math.inf)]
    assert rule.sensitivity == pytest.approx(stats.norm.sf(level - 2), abs=1e-9)


def test_a_region_of_two_intervals():
    """With equal centres the ratio peaks on both sides."""
    rule = optimal(stats.norm(), stats.cauchy(0))
    (a, b), (c, d) = rule.region
    assert (a, b, c, d) == pytest.approx((-1.031080, -0.968594, 0.968594, 1.031080), abs=1e-6)
    assert rule.predict([-1.0, 0.0, 1.0, 2.0]).tolist() == [True, False, True, False]


@pytest.mark.parametrize("prevalence", CRITICAL_SHIFT)
def test_the_rule_of_bayes_flags_nothing_below_the_critical_shift(prevalence):
    """The critical shift agrees to five decimals."""
    critical = CRITICAL_SHIFT[prevalence]
    below = BayesRule(stats.norm(), stats.cauchy(critical - 1e-5), prevalence=prevalence)
    above = BayesRule(stats.norm(), stats.cauchy(critical + 1e-5), prevalence=prevalence)
    assert below.region == []
    assert len(above.region) == 1
    assert below.sensitivity == 0 < above.sensitivity


def test_the_rule_of_bayes_in_the_worked_example():
    """At mu = 9 it flags half a per cent; the optimal rule flags two per cent."""
    bayes = BayesRule(stats.norm(), stats.cauchy(9), prevalence=0.01, capacity=Capacity.multiple(2))
    found = (bayes.sensitivity, bayes.specificity, bayes.accuracy)
    assert found == pytest.approx((0.264134, 0.997439, 0.990106), abs=1e-6)
    assert bayes.modified_prior == pytest.approx(0.01)
    assert bayes.adjusted_detection == bayes.sensitivity
    assert bayes.flagged_fraction < 0.02


def test_the_adjusted_detection_of_bayes_pays_for_capacity():
    """If the Bayes rule flags more than the capacity, M shrinks."""
    options = {"prevalence": 0.4, "capacity": Capacity.multiple(0.1)}
    bayes = BayesRule(stats.norm(3), stats.norm(), **options)
    expected = bayes.sensitivity * 0.04 / bayes.flagged_fraction
    assert bayes.adjusted_detection == pytest.approx(expected)
    free = BayesRule(stats.norm(3), stats.norm(), prevalence=0.4)
    assert free.adjusted_detection == free.sensitivity


# Solving for a rule takes a tenth of a second, too long for a search for the simplest example.
WITHOUT_SHRINKING = (Phase.explicit, Phase.generate)
FLAT = [(stats.laplace(1), stats.laplace())]
DISTRIBUTIONS = [
    *FLAT,
    (stats.norm(1.5), stats.norm()),
    (stats.norm(0, 3), stats.norm()),
    (stats.norm(0, 0.3), stats.norm()),
    (stats.norm(), stats.cauchy(2)),
    (stats.t(3, loc=1), stats.norm()),
    (stats.gamma(3), stats.gamma(2)),
    (stats.beta(2, 5), stats.uniform()),
    (stats.expon(), stats.norm()),
]


@pytest.mark.parametrize("pair", DISTRIBUTIONS)
@settings(max_examples=2, phases=WITHOUT_SHRINKING)
@given(prevalence=st.floats(0.005, 0.3), b=st.floats(0.05, 3))
def test_laws_of_the_optimal_rule(pair, prevalence, b):
    """Capacity, M = min(sensitivity, b * precision), accuracy bound and modified prior hold."""
    rule = optimal(*pair, prevalence=prevalence, b=b)
    c = b * prevalence
    assert rule.flagged_fraction <= c * (1 + 1e-9)
    if rule.flagged_fraction > 0:
        precision = prevalence * rule.sensitivity / rule.flagged_fraction
        # Equality up to the ratio's flat parts, where the rule stays below the capacity.
        assert rule.adjusted_detection <= b * precision * (1 + 1e-9)
    assert rule.adjusted_detection <= min(1, b) + 1e-9
    assert rule.accuracy >= 1 - prevalence - c * (1 - 2 * prevalence) - 1e-9
    prior = rule.modified_prior
    assert (1 - prior) / prior == pytest.approx(rule.gamma)
    if pair not in FLAT:  # there, rounding the prior may tip a set of positive probability
        twin = BayesRule(*pair, prevalence=prior)
        assert twin.sensitivity == pytest.approx(rule.sensitivity, abs=1e-6)


@pytest.mark.parametrize(("place", "pair"), [*enumerate(DISTRIBUTIONS, start=1)])
def test_no_interval_rule_within_capacity_finds_more(place, pair):
    """Of thousands of intervals that flag no more than the optimal rule, none detects more."""
    rare, common = pair
    prevalence, capacity = 0.02 * place, 0.04 * (10 - place)
    rule = optimal(rare, common, prevalence=prevalence, b=capacity / prevalence)
    levels = np.linspace(0, 1, 201)
    ends = np.unique(np.concatenate([rare.ppf(levels), common.ppf(levels)]))
    low, high = np.triu_indices(ends.size, 1)
    detected, false = (d.cdf(ends)[high] - d.cdf(ends)[low] for d in pair)
    flagged = prevalence * detected + (1 - prevalence) * false
    within = flagged <= rule.flagged_fraction
    assert within.sum() > 1_000
    assert rule.sensitivity >= detected[within].max() - 1e-9


def test_more_capacity_finds_more_and_raises_the_prior():
    """Sensitivity and modified prior rise with b, gamma falls."""
    rules = [optimal(stats.norm(2), stats.norm(), b=b) for b in (0.5, 1, 2, 5, 20)]
    assert np.all(np.diff([rule.sensitivity for rule in rules]) > 0)
    assert np.all(np.diff([rule.modified_prior for rule in rules]) > 0)
    assert np.all(np.diff([rule.gamma for rule in rules]) < 0)


def test_the_extremes_of_capacity():
    """Without capacity nothing is flagged, with full capacity everything."""
    nothing = optimal(stats.norm(2), stats.norm(), b=0)
    assert (nothing.gamma, nothing.region, nothing.accuracy) == (math.inf, [], 0.99)
    everything = optimal(stats.norm(2), stats.norm(), b=100)
    assert everything.region == [(-math.inf, math.inf)]
    assert everything.modified_prior == 1.0


def test_tiny_capacities_reach_into_the_tail():
    """With one in a million, the capacity is used to nine digits."""
    rule = OptimalRule(
        stats.norm(2), stats.norm(), prevalence=0.001, capacity=Capacity.fraction(1e-6)
    )
    assert rule.flagged_fraction == pytest.approx(1e-6, rel=1e-9)


def test_flat_ratios_stay_below_the_capacity():
    """A uniform inside another has a ratio of two values; a strict level cannot split them."""
    rule = OptimalRule(
        stats.uniform(0, 1), stats.uniform(0, 2), prevalence=0.1, capacity=Capacity.fraction(0.05)
    )
    assert rule.flagged_fraction == 0


@pytest.mark.parametrize(
    ("rare", "common"),
    [
        (stats.norm(60), stats.norm()),  # a ratio beyond the range of floating point
        (stats.norm(0, 3), stats.uniform(-1, 2)),  # rare items where no common one can be
        (stats.uniform(0, 1), stats.uniform(5, 1)),  # no overlap at all
    ],
)
def test_infinite_ratios_stay_within_the_capacity(rare, common):
    """The region with rare items only may exceed the capacity."""
    rule = optimal(rare, common, b=0.5)
    assert rule.flagged_fraction <= 0.005 * (1 + 1e-9)
    assert rule.adjusted_detection <= 0.5 + 1e-9
    generous = optimal(rare, common, b=3)
    assert 0.005 < generous.flagged_fraction <= 0.03 * (1 + 1e-9)


def test_sensitivity_agrees_with_integration():
    """The probability of the region is the integral of the density over it."""
    rule = optimal(stats.norm(0, 3), stats.norm(), prevalence=0.05)
    total = sum(integrate.quad(stats.norm(0, 3).pdf, low, high)[0] for low, high in rule.region)
    assert rule.sensitivity == pytest.approx(total, abs=1e-9)


def test_the_complexity_bound():
    """2 (kd + 2k + 1) log(e (kd + 2k + 1))."""
    assert vc_dimension_bound(1, 1) == pytest.approx(8 * math.log(4 * math.e))
    assert vc_dimension_bound(3, 4) < vc_dimension_bound(4, 4) < vc_dimension_bound(4, 5)
    with pytest.raises(ValueError, match="hidden_units"):
        vc_dimension_bound(0, 3)


@pytest.mark.parametrize("prevalence", [0, 1, -0.1, 1.5])
def test_the_prevalence_is_a_proper_share(prevalence):
    """Neither class may be absent."""
    with pytest.raises(ValueError, match="prevalence"):
        BayesRule(stats.norm(), stats.norm(1), prevalence=prevalence)


def test_the_price_is_the_precision_at_the_border():
    """The last item flagged is rare with probability lambda."""
    rule = optimal(stats.norm(2), stats.norm())
    border = rule.region[0][0]
    rare, common = 0.01 * stats.norm.pdf(border, 2), 0.99 * stats.norm.pdf(border)
    assert rule.price == pytest.approx(rare / (rare + common))
