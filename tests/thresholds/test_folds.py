"""Thresholds of several folds: what they spend together, and what their mixture keeps."""

import re
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shortlist import Capacity
from shortlist._core.ranking import Cut, flag_above, flag_above_lifted, lift
from shortlist.exceptions import InsufficientCalibrationWarning
from shortlist.thresholds._folds import Ladder, mixed_interval, spend
from shortlist.thresholds.guarantees import tail_mean
from shortlist.thresholds.rules import Rule
from shortlist.thresholds.segments import SegmentCapacities
from shortlist.thresholds.terms import CalibrationSample, Terms

quiet = pytest.mark.filterwarnings("ignore::shortlist.exceptions.InsufficientCalibrationWarning")


def samples_of(sizes, seed=0, **details):
    """Return calibration samples of these sizes, without ties."""
    rng = np.random.default_rng(seed)
    return [CalibrationSample(lift(rng.normal(size=size)), **details) for size in sizes]


def expected_rate(calibrations):
    """Return the expected rate of the mixture: a new item takes each place of a fold as often."""
    return sum(Fraction(c.k + 1, c.n_calibration + 1) for c in calibrations) / len(calibrations)


@quiet
@given(
    sizes=st.lists(st.integers(1, 40), min_size=2, max_size=6),
    percent=st.integers(1, 99),
)
def test_what_folds_spend_together_is_at_most_the_capacity(sizes, percent):
    """Exactly, and no fold could have one place more."""
    c = Fraction(percent, 100)
    found = Rule(samples_of(sizes), Capacity.fraction(c), Terms()).calibrations
    assert expected_rate(found) <= c
    left = c * len(sizes) - expected_rate(found) * len(sizes)
    base = [int(c * (size + 1)) for size in sizes]
    for calibration, size, own in zip(found, sizes, base, strict=True):
        assert own <= calibration.k + 1 <= own + 1
        if calibration.k + 1 == own and own <= size:
            assert Fraction(1, size + 1) > left


@quiet
@pytest.mark.parametrize("ties", [False, True])
def test_a_new_item_is_flagged_no_more_than_the_capacity(ties):
    """Let each of some exchangeable items be the new one in turn, in every fold: exact.

    Of four items, three calibrate a fold and one is new. Over all choices of the new one in each
    of three folds, and all folds that the hash may pick, the mean of the flags is at most c.
    """
    rng = np.random.default_rng(0)
    for percent in (5, 10, 20, 30, 45, 60, 90):
        c, flags = Fraction(percent, 100), []
        worlds = rng.integers(4, size=(3, 4)) if ties else rng.permutation(12).reshape(3, 4)
        for new in product(range(4), repeat=3):
            kept = [np.delete(world, i).astype(float) for world, i in zip(worlds, new, strict=True)]
            rule = Rule(
                [CalibrationSample(scores) for scores in kept], Capacity.fraction(c), Terms()
            )
            flags += [
                calibration.flag([worlds[fold][new[fold]]])[0]
                for fold, calibration in enumerate(rule.calibrations)
            ]
        assert Fraction(int(np.sum(flags)), len(flags)) <= c
        if not ties and percent >= 10:
            assert np.sum(flags) > 0


def test_small_capacities_are_not_rounded_away():
    """Ten folds of a hundred scores have half a place each at 0.5 %, and five together."""
    found = Rule(samples_of([100] * 10), Capacity.fraction(0.005), Terms()).calibrations
    assert sorted(calibration.k for calibration in found) == [-1] * 5 + [0] * 5
    with pytest.warns(InsufficientCalibrationWarning, match="least 111 .* got 1000 in 10 folds"):
        Rule(samples_of([100] * 10), Capacity.fraction(0.0009), Terms())


@pytest.mark.parametrize("guarantee", ["expected", "confident"])
def test_the_warning_says_how_many_scores_a_fold_needs(guarantee):
    """With one score less, nothing is flagged; with as many, something is."""
    capacity, terms = Capacity.fraction(0.002), Terms(guarantee=guarantee)
    with pytest.warns(InsufficientCalibrationWarning) as caught:
        Rule(samples_of([5] * 10), capacity, terms)
    needed = int(
        re.search(r"at least (\d+) calibration scores in a fold", str(caught[0].message))[1]
    )
    with pytest.warns(InsufficientCalibrationWarning, match=f"at least {needed} "):
        Rule(samples_of([needed - 1] * 10), capacity, terms)
    found = Rule(samples_of([needed] * 10), capacity, terms).calibrations
    assert max(calibration.k for calibration in found) == 0


def test_segments_spend_over_folds_by_themselves():
    """Each segment keeps its own capacity over all folds, and none is needed in every fold."""
    rng = np.random.default_rng(1)
    segments = [rng.choice(2, size=size, p=[0.9, 0.1]) for size in (50, 50, 50)]
    segments[1][:] = 0
    samples = [CalibrationSample(lift(rng.normal(size=own.size)), segments=own) for own in segments]
    limits = SegmentCapacities({"a": Capacity.fraction(0.1), "b": Capacity.fraction(0.2)}, None)
    rule = Rule(samples, Capacity.fraction(0.15), Terms(), segments=limits)
    assert expected_rate(rule.calibrations) <= Fraction(3, 20)
    for name, c in (("a", Fraction(1, 10)), ("b", Fraction(1, 5))):
        found = rule.segment_calibrations[name]
        assert 0 < expected_rate(found) <= c
        assert len(rule.segment_thresholds[name]) == 3
    assert rule.segment_calibrations["b"][1].k == -1


def test_the_mean_of_the_worst_calibrations():
    """As integrated numerically; more than the quantile, and at least what is exceeded then."""
    for k, n in [(0, 50), (3, 200), (40, 60)]:
        rate = stats.beta(k + 1, n - k)
        worst = rate.isf(0.05)
        grid = np.linspace(0.95, 1, 200_001)
        integrated = rate.ppf((grid[1:] + grid[:-1]) / 2).mean()
        assert tail_mean(k, n, error=0.05) == pytest.approx(integrated, rel=1e-5)
        assert tail_mean(k, n, error=0.05) > worst
    assert tail_mean(-1, 10, error=0.05) == 0
    assert tail_mean(10, 10, error=0.05) == 1


def test_confident_folds_hold_however_they_depend():
    """The mean over folds of their worst cases is at most c, with little left over."""
    terms = Terms("confident", 0.95)
    found = Rule(samples_of([300, 300, 301, 310]), Capacity.fraction(0.1), terms).calibrations
    tails = [tail_mean(c.k, c.n_calibration, error=0.05) for c in found]
    assert 0.099 < np.mean(tails) <= 0.1
    # Folds that move together are the worst case: all rates have the same rank.
    rates = [stats.beta(c.k + 1, c.n_calibration - c.k) for c in found]
    ranks = np.linspace(0, 1, 10_001)[1:-1]
    assert np.mean(np.mean([rate.ppf(ranks) for rate in rates], axis=0) > 0.1) <= 0.05


def test_a_ladder_may_have_unequal_steps():
    """Whole rungs first, then the largest remainders, never more than the mean allows."""
    ladders = [
        Ladder(3, [Fraction(0), Fraction(1, 2), Fraction(3, 4), Fraction(1)].__getitem__, Cut),
        Ladder(1, [Fraction(0), Fraction(3, 5)].__getitem__, Cut),
    ]
    assert spend(ladders, Fraction(1, 2)) == [2, 0]
    assert spend(ladders, Fraction(11, 20)) == [1, 1]
    assert spend(ladders, Fraction(0)) == [0, 0]


def test_promises_that_folds_cannot_keep_are_refused():
    """A batch, or every capacity at once, needs one threshold."""
    for guarantee in ("next-batch", "simultaneous"):
        with pytest.raises(ValueError, match="one model with one threshold"):
            Rule(samples_of([50, 50]), Capacity.count(1, per=10), Terms(guarantee))


def test_the_interval_of_a_mixture_covers():
    """The mean rate of four folds, independent or the same, lies inside in at least 95 %."""
    rng = np.random.default_rng(2)
    calibrations = Rule(samples_of([200] * 4), Capacity.fraction(0.1), Terms()).calibrations
    low, high = mixed_interval(calibrations, error=0.05)
    assert 0 < low < 0.1 < high < 0.2
    for shape in ((2_000, 4), (2_000, 1)):
        covered = []
        for uniform in rng.random(shape):
            rates = [
                stats.beta(c.k + 1, c.n_calibration - c.k).ppf(u)
                for c, u in zip(calibrations, np.broadcast_to(uniform, 4), strict=True)
            ]
            covered.append(low <= np.mean(rates) <= high)
            if len(covered) == 100:
                break
        assert np.mean(covered) >= 0.95


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
def test_only_scores_next_to_the_cut_are_lifted(scores, place, key, dtype):
    """The flags are those of all lifted scores."""
    scores = np.array(scores, dtype=dtype)
    keys = np.linspace(0, 1, scores.size, endpoint=False)
    cut = Cut(float(lift(scores)[place % scores.size]), key)
    for given_keys in (keys.__getitem__, None):
        flagged = flag_above_lifted(scores, cut, given_keys)
        assert flagged.tolist() == flag_above(lift(scores), cut, given_keys).tolist()
