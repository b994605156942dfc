"""Thresholds of several folds: each keeps the capacity, and so does their mixture."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shortlist import Capacity, calibrate_threshold
from shortlist._core.ranking import Cut, flag_above, lift
from shortlist.exceptions import InsufficientCalibrationWarning
from shortlist.thresholds.guarantees import Place, tail_mean
from shortlist.thresholds.rules import Rule, _compare
from shortlist.thresholds.samples import CalibrationSample, SegmentCapacities
from shortlist.thresholds.terms import Terms

quiet = pytest.mark.filterwarnings("ignore::shortlist.exceptions.InsufficientCalibrationWarning")


def samples_of(sizes, seed=0, **details):
    """Return calibration samples of these sizes, without ties, and with keys."""
    rng = np.random.default_rng(seed)
    return [
        CalibrationSample(lift(rng.normal(size=size)), rng.random(size), **details)
        for size in sizes
    ]


def expected_rate(calibration):
    """Return the expected rate: a new item takes each place as often."""
    return (calibration.k + 1 + calibration.share) / (calibration.n_calibration + 1)


def chance_of_a_flag(calibration, score, key):
    """Return the probability, over the lots, that an item is flagged."""
    upper, lower, share = calibration.cuts
    before = [
        flag_above(np.array([score]), cut, lambda _: np.array([key]))[0] for cut in (upper, lower)
    ]
    return 1.0 if before[0] else share * before[1]


@quiet
@given(
    sizes=st.lists(st.integers(1, 40), min_size=2, max_size=6),
    percent=st.integers(1, 99),
)
def test_every_fold_gets_the_whole_capacity(sizes, percent):
    """Exactly, whatever its size; without keys, no more than that."""
    c = percent / 100
    for found in Rule(samples_of(sizes), Capacity.fraction(c), Terms()).calibrations:
        assert expected_rate(found) == pytest.approx(c, abs=1e-14)
    strict = [CalibrationSample(sample.scores) for sample in samples_of(sizes)]
    for found in Rule(strict, Capacity.fraction(c), Terms()).calibrations:
        assert found.share == 0
        assert c - 1 / (found.n_calibration + 1) < expected_rate(found) <= c + 1e-14


@quiet
@pytest.mark.parametrize("ties", [False, True])
def test_a_new_item_is_flagged_as_often_as_the_capacity_allows(ties):
    """Let each of some exchangeable items be the new one in turn, in every fold: exact.

    Of four items, three calibrate a fold and one is new. Over all choices of the new one in each
    of three folds, and all folds that the hash may pick, the mean chance of a flag is c.
    """
    rng = np.random.default_rng(0)
    for percent in (5, 10, 20, 30, 45, 60, 90):
        worlds = rng.integers(3, size=(3, 4)) if ties else rng.permutation(12).reshape(3, 4)
        keys, chances = rng.random((3, 4)), []
        for new in product(range(4), repeat=3):
            samples = [
                CalibrationSample(np.delete(world, i).astype(float), np.delete(own, i))
                for world, own, i in zip(worlds, keys, new, strict=True)
            ]
            rule = Rule(samples, Capacity.fraction(percent / 100), Terms())
            chances += [
                chance_of_a_flag(found, float(worlds[fold][i]), keys[fold][i])
                for fold, (found, i) in enumerate(zip(rule.calibrations, new, strict=True))
            ]
        assert np.mean(chances) == pytest.approx(percent / 100, abs=1e-14)


def test_small_capacities_are_not_rounded_away():
    """Ten folds of a hundred scores have half a place each at 0.5 %, and five together."""
    found = Rule(samples_of([100] * 10), Capacity.fraction(0.005), Terms()).calibrations
    assert {(each.k, round(each.share, 3)) for each in found} == {(-1, 0.505)}
    with pytest.warns(InsufficientCalibrationWarning, match="than 1000. A share of 0.09"):
        Rule(samples_of([100] * 10), Capacity.fraction(0.0009), Terms())


def test_segments_are_calibrated_over_folds_by_themselves():
    """Each segment keeps its own capacity in every fold, also where a fold has no item of it."""
    rng = np.random.default_rng(1)
    segments = [rng.choice(2, size=size, p=[0.9, 0.1]) for size in (50, 50, 50)]
    segments[1][:] = 0
    samples = [
        CalibrationSample(lift(rng.normal(size=own.size)), rng.random(own.size), segments=own)
        for own in segments
    ]
    limits = SegmentCapacities({"a": Capacity.fraction(0.1), "b": Capacity.fraction(0.2)}, None)
    rule = Rule(samples, Capacity.fraction(0.15), Terms(), segments=limits)
    for name, c in ((None, 0.15), ("a", 0.1), ("b", 0.2)):
        found = rule.calibrations if name is None else rule.segment_calibrations[name]
        assert [expected_rate(each) for each in found] == pytest.approx([c] * 3)
    empty = rule.segment_calibrations["b"][1]
    assert (empty.k, empty.share) == (-1, pytest.approx(0.2))


def test_the_mean_of_the_worst_calibrations():
    """As integrated numerically; more than the quantile, and at least what is exceeded then."""
    for k, n in [(0, 50), (3, 200), (40, 60)]:
        rate = stats.beta(k + 1, n - k)
        worst = rate.isf(0.05)
        grid = np.linspace(0.95, 1, 200_001)
        integrated = rate.ppf((grid[1:] + grid[:-1]) / 2).mean()
        assert tail_mean(Place(k), n, error=0.05) == pytest.approx(integrated, rel=1e-5)
        assert tail_mean(Place(k), n, error=0.05) > worst
    assert tail_mean(Place(-1), 10, error=0.05) == 0
    assert tail_mean(Place(10), 10, error=0.05) == 1


def test_confident_folds_hold_however_they_depend():
    """The mean of the worst cases of each fold is c, and folds that move together keep c."""
    terms = Terms("confident", 0.95)
    found = Rule(samples_of([300, 300, 301, 310]), Capacity.fraction(0.1), terms).calibrations
    for each in found:
        tail = tail_mean(Place(each.k, each.share), each.n_calibration, error=0.05)
        assert tail == pytest.approx(0.1, abs=1e-8)
    # Folds that move together are the worst case: all have the same uniform numbers.
    uniform = np.sort(np.random.default_rng(0).random((4_000, 300)), axis=1)
    first = found[0]
    rates = (1 - first.share) * uniform[:, first.k] + first.share * uniform[:, first.k + 1]
    assert np.mean(rates > 0.1) <= 0.05


def test_promises_that_folds_cannot_keep_are_refused():
    """A batch, or every capacity at once, needs one threshold."""
    for guarantee in ("next-batch", "simultaneous"):
        with pytest.raises(ValueError, match="one model with one threshold"):
            Rule(samples_of([50, 50]), Capacity.count(1, per=10), Terms(guarantee))


def test_the_interval_of_a_mixture_covers():
    """The mean rate of four folds, independent or the same, lies inside in at least 95 %."""
    rng = np.random.default_rng(2)
    rule = Rule(samples_of([200] * 4), Capacity.fraction(0.1), Terms())
    low, high = rule.flag_rate_interval
    assert 0 < low < 0.1 < high < 0.2
    k, share = rule.calibrations[0].k, rule.calibrations[0].share
    for n_different in (4, 1):
        uniform = np.sort(rng.random((500, n_different, 200)), axis=2)
        rates = ((1 - share) * uniform[:, :, k] + share * uniform[:, :, k + 1]).mean(axis=1)
        assert np.mean((low <= rates) & (rates <= high)) >= 0.95


@given(
    scores=st.lists(
        st.one_of(
            st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, 1e-310]),
            st.floats(allow_nan=False, width=32),
        ),
        min_size=1,
        max_size=30,
    ),
    place=st.integers(0, 29),
    key=st.sampled_from([0.0, 0.3, 0.9]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_a_rule_flags_lifted_scores(scores, place, key, dtype):
    """Scores that differ in their last digits are tied with the cut alike."""
    scores = np.array(scores, dtype=dtype)
    keys = np.linspace(0, 1, scores.size, endpoint=False)
    cut = Cut(float(lift(scores)[place % scores.size]), key)
    for given_keys in (keys.__getitem__, None):
        threshold = replace(
            calibrate_threshold(scores, Capacity.fraction(1), ids=range(scores.size)),
            value=cut.value,
            lower_value=cut.value,
            tie_key=key,
            lower_tie_key=key,
            share=0,
        )
        flagged, _ = _compare(threshold, scores, given_keys)
        assert flagged.tolist() == flag_above(lift(scores), cut, given_keys).tolist()


@quiet
@pytest.mark.parametrize("guarantee", ["expected", "confident"])
@pytest.mark.parametrize("max_effort", [None, 2.0])
@pytest.mark.parametrize("per_item", [1, 5])
def test_a_fold_without_items_keeps_a_budget_of_work(guarantee, max_effort, per_item):
    """Nothing is known about its items: all fit into the budget, or a share of them is drawn."""
    budget = Capacity.effort(per_item * 10, per=10)
    full, empty = samples_of([30, 0])
    samples = [replace(full, efforts=np.full(30, 2.0)), replace(empty, efforts=np.empty(0))]
    terms = Terms(guarantee, max_effort=max_effort)
    found = terms.thresholds(samples, budget)[1]
    assert (found.effort_spent, found.max_effort) == (0, 2)
    most = min(per_item / 2, 1)
    assert chance_of_a_flag(found, 0.0, 0.5) <= most
    if per_item == 5:
        assert chance_of_a_flag(found, 0.0, 0.5) == 1


def test_efforts_that_differ_between_folds_need_a_bound():
    """Within each fold, they are equal."""
    samples = [
        replace(each, efforts=np.array([effort]))
        for each, effort in zip(samples_of([1, 1]), (1.0, 8.0), strict=True)
    ]
    with pytest.raises(ValueError, match="need max_effort"):
        Terms().thresholds(samples, Capacity.effort(10, per=10))
