"""What is missed in values: estimates by inclusion, and intervals that hold for any values."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist import Capacity, select
from shortlist._core.intervals import total_lower, total_upper
from shortlist._core.probing import draw_probes
from shortlist.feedback import MissedValue, estimate_missed

weights = st.lists(st.floats(0, 1), min_size=1, max_size=6).map(np.array)


@settings(max_examples=40)
@given(weights, st.sampled_from([0.1, 0.5, 0.9]), st.sampled_from([0.05, 0.3]))
def test_bets_hold_for_independent_draws(numbers, share, error):
    """By enumeration of all draws: neither end fails more often than the error."""
    mean, failed = share * numbers.sum(), [0.0, 0.0]
    for drawn in itertools.product([0, 1], repeat=numbers.size):
        mask = np.array(drawn, dtype=bool)
        chance = share ** mask.sum() * (1 - share) ** (~mask).sum()
        failed[0] += chance * (total_upper(numbers[mask], error=error) < mean - 1e-9)
        failed[1] += chance * (total_lower(numbers[mask], error=error) > mean + 1e-9)
    assert max(failed) <= error + 1e-9


@given(weights, st.integers(1, 8), st.sampled_from([0.05, 0.3]))
def test_bets_hold_for_draws_without_replacement(numbers, n_drawn, error):
    """By enumeration of all samples of a size."""
    n_drawn = min(n_drawn, numbers.size)
    mean = n_drawn * numbers.mean()
    samples = [np.array(each) for each in itertools.combinations(numbers.tolist(), n_drawn)]
    above = np.mean([total_upper(each, error=error) < mean - 1e-9 for each in samples])
    below = np.mean([total_lower(each, error=error) > mean + 1e-9 for each in samples])
    assert max(above, below) <= error + 1e-9


def test_many_coins_of_one_size_are_close_to_poisson():
    """Two hundred hits: the exact ends are 173.2 and 229.7, and bets lose less than a tenth."""
    numbers = np.ones(200)
    assert 155 <= total_lower(numbers, error=0.025) <= 173.2
    assert 229.7 <= total_upper(numbers, error=0.025) <= 1.1 * 229.7
    assert total_upper(np.empty(0), error=0.025) >= math.log(40)
    assert total_lower(np.empty(0), error=0.025) == 0


@pytest.mark.parametrize("values", [[100, 5, 4, 3], [4, 4, 4, 4], [50, 40, 0, 1]])
@pytest.mark.parametrize("all_listed", [True, False])
def test_every_small_world_is_covered(values, all_listed):
    """By enumeration of rare cases and draws at one half: at most a fifth of the intervals fail.

    If all cases are listed, the largest values are not left to the draw.
    """
    values = np.array(values, dtype=float)
    for rare in itertools.product([False, True], repeat=4):
        failed, is_rare = 0, np.array(rare)
        for draw in itertools.product([False, True], repeat=4):
            drawn = np.array(draw)
            listed = drawn | all_listed
            if not listed.any():
                continue
            answer = estimate_missed(
                np.where(drawn, is_rare, None)[listed],
                np.where(drawn, "probe", "not selected")[listed],
                np.full(4, 0.5)[listed],
                values=values[listed],
                max_value=values.max(),
                confidence=0.8,
            ).value
            truth = values[is_rare & ~drawn].sum()
            failed += not answer.missed_low - 1e-9 <= truth <= answer.missed_high + 1e-9
        assert failed <= 0.2 * 16


def world(rng, *, n=4_000, probe=0.5):
    """Return a list with probes, truths and values of few large ones."""
    is_rare = rng.random(n) < 0.05
    values = np.minimum(rng.lognormal(3, 1, size=n), 400.0)
    scores = rng.normal(size=n) + is_rare
    picked = select(scores, Capacity.count(800), probe=probe, return_details=True)
    return picked, is_rare, values


def test_the_missed_value_is_covered():
    """In 150 worlds, each interval fails at most in its 5 %: four standard errors are 0.071."""
    rng, failed, errors = np.random.default_rng(11), np.zeros(2), []
    for _ in range(150):
        picked, is_rare, values = world(rng)
        outcomes = np.where(picked.flagged, is_rare, None)
        answer = estimate_missed(
            outcomes, picked.reasons, picked.probabilities, values=values
        ).value
        truth = values[is_rare & ~picked.flagged].sum()
        share = values[is_rare & picked.flagged].sum() / values[is_rare].sum()
        failed[0] += not answer.missed_low <= truth <= answer.missed_high
        failed[1] += not answer.share_low <= share <= answer.share_high
        errors.append((answer.missed - truth) / truth)
    assert (failed / 150 <= 0.05 + 0.071).all()
    # Unbiased: the standard error of the mean error is about 0.02.
    assert abs(np.mean(errors)) <= 4 * np.std(errors) / math.sqrt(150)


def reviews():
    """Return three found cases, four probes at two chances, and two cases that were not drawn."""
    outcomes = [True, True, False, True, False, True, False, None, None]
    reasons = ["score"] * 3 + ["probe"] * 4 + ["not selected"] * 2
    chances = [1, 1, 1, 0.5, 0.5, 0.25, 0.25, 0.5, 0.25]
    values = [10, 20, 30, 4, 5, 6, 7, 8, 9]
    return outcomes, reasons, chances, values


def test_values_are_weighed_by_hand():
    """A hit of 4 at one half and one of 6 at a quarter stand for 8 and 24, less themselves."""
    *columns, values = reviews()
    answer = estimate_missed(*columns, values=values).value
    assert isinstance(answer, MissedValue)
    assert (answer.found, answer.missed, answer.max_value) == (30, 22, 30)
    assert answer.share == pytest.approx(40 / 62)
    # All cases are listed: no more can be missed than is in those that nobody reviewed.
    assert answer.missed_high == 17
    assert "In value: 30 found by score, 22 missed" in str(answer)
    plain = estimate_missed(*columns)
    assert plain.value is None
    ones = estimate_missed(*columns, values=np.ones(9))
    assert ones.value.missed == pytest.approx(ones.missed)
    assert ones.missed == plain.missed


def test_unknown_outcomes_and_larger_values_widen_the_interval():
    """They may be rare, and unseen cases may be worth more than those at hand."""
    outcomes, reasons, chances, values = ([*each[:7]] for each in reviews())
    known = estimate_missed(outcomes, reasons, chances, values=values).value
    late = [*outcomes[:6], None]
    unknown = estimate_missed(late, reasons, chances, values=values).value
    assert unknown.missed_high > known.missed_high
    larger = estimate_missed(outcomes, reasons, chances, values=values, max_value=300).value
    assert larger.missed_high > 5 * known.missed_high
    assert larger.max_value == 300


def test_periods_and_empty_reviews():
    """Each period has its own value; without probes nothing is known."""
    *columns, values = reviews()
    answer = estimate_missed(*columns, values=values, periods=list("aaabbbbbb"))
    assert answer.by_period["a"].value.found == 30
    assert math.isnan(answer.by_period["a"].value.missed)
    assert answer.by_period["b"].value.missed == 22
    alone = estimate_missed([True], ["score"], [1.0], values=[5]).value
    assert (alone.missed_high, alone.share_low) == (math.inf, 0)


def test_bad_values_are_refused():
    """Negative ones, missing ones, and a bound below the largest."""
    *columns, values = reviews()
    with pytest.raises(ValueError, match="values must be finite and at least 0"):
        estimate_missed(*columns, values=[-1, *values[1:]])
    with pytest.raises(ValueError, match="values must not be NaN"):
        estimate_missed(*columns, values=[math.nan, *values[1:]])
    with pytest.raises(ValueError, match=r"max_value=20 must be at least .* got 30"):
        estimate_missed(*columns, values=values, max_value=20)


# --- probes by expected loss ---


def draws_by_loss(losses, n_probes):
    """Yield every draw of probes below the cut once for each order of the cases' numbers.

    All slots go to probes; the list itself would be the first cases.
    """
    losses = np.array(losses, dtype=float)
    flagged = np.arange(losses.size) < n_probes
    tie_keys = np.linspace(0, 0.9, losses.size).__getitem__
    for order in itertools.permutations(range(losses.size)):
        numbers = np.array(order) / losses.size
        yield draw_probes(
            flagged, losses, tie_keys, numbers.__getitem__, Fraction(1), losses=losses
        )


LOSSES = [[100, 9, 5, 2, 1, 1], [4, 4, 4, 4, 4, 4], [50, 40, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize("losses", LOSSES, ids=str)
@pytest.mark.parametrize("n_probes", [1, 2, 3, 5])
def test_probes_by_loss_are_drawn_as_often_as_they_say(losses, n_probes):
    """Over all orders, every case has exactly its probability, and so estimates are unbiased."""
    draws = list(draws_by_loss(losses, n_probes))
    assert {int(each.flagged.sum()) for each in draws} == {n_probes}
    (probabilities,) = {tuple(each.probabilities) for each in draws}
    assert np.mean([each.is_probe for each in draws], axis=0) == pytest.approx(probabilities)
    assert min(probabilities) > 0
    values = np.array([7, 5, 3, 2, 0, 1.0])
    estimates = [(values / probabilities)[each.is_probe].sum() for each in draws]
    assert np.mean(estimates) == pytest.approx(values.sum())
    # No case is drawn less than a fourth as often as if all were alike.
    assert min(probabilities) >= n_probes / 6 / 4 or n_probes < 4


def test_probes_go_where_more_is_at_stake():
    """One case is half of the loss, and sure to be drawn; the others share three probes."""
    draw = next(draws_by_loss([100, 9, 5, 2, 1, 1, 1, 1], 4))
    assert draw.probabilities[0] == 1
    assert np.all(np.diff(draw.probabilities) <= 0)


@pytest.mark.parametrize("all_listed", [True, False])
def test_values_by_loss_are_covered_in_every_small_world(all_listed):
    """By enumeration of rare cases and draws: at most a fifth of the intervals fail."""
    values = np.array([100, 30, 9, 5, 4, 1.0])
    draws = Counter(tuple(each.is_probe) for each in draws_by_loss(values, 3))
    probabilities = next(draws_by_loss(values, 3)).probabilities
    for rare in itertools.product([False, True], repeat=6):
        failed, is_rare = 0, np.array(rare)
        for draw, times in draws.items():
            drawn = np.array(draw)
            listed = drawn | all_listed
            answer = estimate_missed(
                np.where(drawn, is_rare, None)[listed],
                np.where(drawn, "probe", "not selected")[listed],
                probabilities[listed],
                values=values[listed],
                max_value=100,
                confidence=0.8,
            ).value
            truth = values[is_rare & ~drawn].sum()
            failed += times * (not answer.missed_low - 1e-9 <= truth <= answer.missed_high + 1e-9)
        assert failed <= 0.2 * draws.total()


def test_a_list_with_values_draws_by_expected_loss_in_any_order_of_rows():
    """Its length stays, and shuffled rows have the same probes and probabilities."""
    rng = np.random.default_rng(0)
    p, values = rng.beta(1, 30, size=2_000), rng.lognormal(3, 1, size=2_000).round(1)
    ids, shuffled = np.arange(2_000), rng.permutation(2_000)
    options = {"capacity": Capacity.count(100), "probe": 0.3, "return_details": True}
    picked = select(p, ids=ids, values=values, **options)
    again = select(p[shuffled], ids=ids[shuffled], values=values[shuffled], **options)
    assert (picked.flagged.sum(), picked.is_probe.sum()) == (100, 30)
    np.testing.assert_array_equal(again.is_probe, picked.is_probe[shuffled])
    np.testing.assert_array_equal(again.probabilities, picked.probabilities[shuffled])
    below = picked.probabilities < 1
    assert np.corrcoef((p * values)[below], picked.probabilities[below])[0, 1] > 0.5
    assert picked.probabilities[below].sum() == pytest.approx(30)


@pytest.mark.parametrize("large", [1_000, 30, 1])
@pytest.mark.parametrize("is_given", [True, False])
def test_values_are_covered_without_the_probabilities_of_other_cases(large, is_given):
    """By enumeration of all pairs of probes: one case of 20 is rare, and may be worth much."""
    places = np.arange(20)
    values = np.where(places == 0, large, 1.0)
    covered = []
    for pair in itertools.combinations(range(20), 2):
        drawn = np.isin(places, pair)
        answer = estimate_missed(
            np.where(drawn, places == 0, None),
            np.where(drawn, "probe", "not selected"),
            np.where(drawn | is_given, 0.1, None),
            values=values,
        ).value
        missed = 0 if drawn[0] else large
        covered.append(answer.missed_low <= missed <= answer.missed_high)
    assert np.mean(covered) >= 0.95


def test_cases_that_could_not_be_drawn_may_all_be_rare():
    """Half of the cases had no probe: 50 rare ones among them, worth 500, are within the ends."""
    reasons = ["probe"] * 10 + ["not selected"] * 190
    chances = [0.1] * 100 + [0.0] * 100
    outcomes = [False] * 10 + [None] * 190
    answer = estimate_missed(outcomes, reasons, chances, values=[10] * 200, challenger=[True] * 200)
    assert answer.missed == answer.missed_low == 0
    assert answer.missed_high >= 100
    assert answer.value.missed_high >= 1_000
    assert answer.challenger.gained_high >= 100
    drawable = estimate_missed(outcomes[:100], reasons[:100], chances[:100], values=[10] * 100)
    assert answer.missed_high == drawable.missed_high + 100
