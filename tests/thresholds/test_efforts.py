"""Thresholds that keep a budget of effort: today's rules for equal efforts, and exact promises."""

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from shortlist import Capacity, Worth, calibrate_threshold
from shortlist.exceptions import CapacityError, InsufficientCalibrationWarning
from shortlist.thresholds.samples import CalibrationSample

GUARANTEES = ("expected", "confident", "next-batch", "simultaneous")


def quietly(*args, **options):
    """Calibrate without the warning of too few items."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsufficientCalibrationWarning)
        return calibrate_threshold(*args, **options)


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("effort", [1, 20, 0.1])
@pytest.mark.parametrize("n", [30, 1_000])
def test_equal_efforts_are_todays_rules(guarantee, effort, n):
    """With equal efforts, a budget is a number of flags, bit for bit."""
    rng = np.random.default_rng(n)
    p = np.round(rng.uniform(size=n), 2)
    ids = np.arange(n)
    expected = quietly(p, Capacity.count(60, per=1_000), guarantee=guarantee, ids=ids)
    budget = Capacity.effort(60 * Fraction(str(effort)), per=1_000)
    same = np.full(n, effort)
    found = quietly(p, budget, guarantee=guarantee, ids=ids, efforts=same, values=same)
    assert (found.k, found.tie_key) == (expected.k, expected.tie_key)
    assert found.value == pytest.approx(expected.value, rel=1e-9)
    if effort == 1:
        assert found.value == expected.value
    new = np.round(rng.uniform(size=500), 2)
    assert np.array_equal(
        found.flag(new, np.arange(500), values=np.full(500, effort), efforts=np.full(500, effort)),
        expected.flag(new, np.arange(500)),
    )


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_values_of_one_change_nothing(guarantee):
    """Values of 1 leave any scores as they are, also those that are no probabilities."""
    scores = np.random.default_rng(0).normal(size=300)
    capacity = Capacity.count(6, per=100)
    plain = quietly(scores, capacity, guarantee=guarantee)
    assert quietly(scores, capacity, guarantee=guarantee, values=np.ones(300)).value == plain.value


# A world of four kinds of items: probability, effort, and how often they come.
P = np.array([0.9, 0.6, 0.3, 0.1])
EFFORT = np.array([4.0, 1.0, 3.0, 1.0])
OFTEN = np.array([0.2, 0.2, 0.3, 0.3])


def every_sample(n):
    """Yield all samples of kinds, each with its probability."""
    for counts in itertools.product(range(n + 1), repeat=4):
        if sum(counts) == n:
            yield np.repeat(np.arange(4), counts), stats.multinomial.pmf(counts, n, OFTEN)


def true_cost(threshold):
    """Return the mean effort per item of a threshold without hashed ties."""
    return float((EFFORT * OFTEN)[threshold < P / EFFORT].sum())


@pytest.mark.parametrize("budget", [0.5, 0.9, 1.4, 2.0])
@pytest.mark.parametrize("n", [1, 3, 6])
def test_expected_effort_is_kept_in_every_small_world(budget, n):
    """Over all samples, the mean cost of the threshold is at most the budget."""
    capacity = Capacity.effort(budget, per=1)
    total = sum(
        chance * true_cost(quietly(P[kinds], capacity, efforts=EFFORT[kinds], max_effort=4).value)
        for kinds, chance in every_sample(n)
    )
    assert total <= budget + 1e-12


@pytest.mark.parametrize("budget", [0.9, 1.4, 1.9])
def test_confident_effort_is_kept_in_every_small_world(budget):
    """Over all samples, the cost exceeds the budget with at most the allowed probability."""
    capacity = Capacity.effort(budget, per=1)
    flagged, failed = 0.0, 0.0
    for kinds, chance in every_sample(14):
        found = quietly(
            P[kinds],
            capacity,
            efforts=EFFORT[kinds],
            max_effort=4,
            guarantee="confident",
            confidence=0.8,
        )
        failed += chance * (true_cost(found.value) > budget)
        flagged += chance * (found.k >= 0)
    assert failed <= 0.2
    assert flagged > 0.5


def test_a_batch_takes_every_flag_at_its_largest():
    """A flag counts with the largest effort, and the work can then not exceed the budget."""
    rng = np.random.default_rng(0)
    p, efforts = rng.uniform(size=2_000), rng.integers(1, 5, 2_000)
    found = calibrate_threshold(
        p, Capacity.effort(100, per=1_000), efforts=efforts, max_effort=4, guarantee="next-batch"
    )
    counted = calibrate_threshold(p, Capacity.count(25, per=1_000), guarantee="next-batch")
    assert found.k == counted.k


def test_efforts_without_a_bound_are_refused():
    """Efforts that differ need the largest effort that can ever come."""
    with pytest.raises(ValueError, match="need max_effort"):
        calibrate_threshold([0.1, 0.2], Capacity.effort(1, per=10), efforts=[1, 2])
    with pytest.raises(ValueError, match="at least the effort of every item; got 2 at row 1"):
        calibrate_threshold([0.1, 0.2], Capacity.effort(1, per=10), efforts=[1, 2], max_effort=1)


def test_a_future_effort_beyond_the_bound_is_an_error():
    """The promise does not cover it, so nothing is flagged silently."""
    p = np.linspace(0, 1, 100)
    found = calibrate_threshold(
        p, Capacity.effort(20, per=100), efforts=np.full(100, 1), max_effort=2
    )
    assert found.flag([0.99, 0.2], efforts=[2, 1]).tolist() == [False, False]
    with pytest.raises(ValueError, match="max_effort=2 must be at least"):
        found.flag([0.99], efforts=[3])
    with pytest.raises(ValueError, match="calibrated with efforts, and these items come without"):
        found.flag([0.99])


@pytest.mark.parametrize(
    ("capacity", "options", "message"),
    [
        (Capacity.effort(5, per=10), {}, "is a budget of work. Pass efforts"),
        (Capacity.effort(5), {"efforts": [1, 1]}, "budget for one batch, but a rate is needed"),
        (Capacity.fraction(0.5), {"efforts": [1, 2]}, "limits the number of flags, whatever"),
        (
            Capacity.effort(5, per=10),
            {"efforts": [1, 1], "guarantee": "plug-in"},
            "guarantee='plug-in' counts flags",
        ),
        (Capacity.fraction(0.5), {"max_effort": 2}, "max_effort belongs to Capacity.effort"),
    ],
)
def test_efforts_and_budgets_belong_together(capacity, options, message):
    """What does not fit together raises an error that says what to do."""
    with pytest.raises(CapacityError, match=message):
        calibrate_threshold([0.1, 0.2], capacity, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"values": [1, -2]}, "at least 0; got -2 at row 1"),
        ({"values": [np.inf, 2]}, "values must be finite"),
        ({"values": [np.nan, 2]}, "values must not be NaN"),
        ({"values": [1]}, "one number for each of the 2 items"),
        ({"efforts": [0, 2]}, "greater than 0; got 0 at row 0"),
        ({"efforts": ["a", "b"]}, "efforts must be numbers"),
        ({"worth": -1}, "must not be negative"),
        ({"worth": "much"}, "worth must be a number"),
        ({"worth": np.nan}, "must be finite"),
    ],
)
def test_bad_numbers_name_their_row(options, message):
    """Errors say which argument, what arrived and where."""
    with pytest.raises((ValueError, TypeError), match=message):
        calibrate_threshold([0.1, 0.2], Capacity.effort(1, per=2), **options)


def test_values_need_probabilities():
    """Scores that are no probabilities are refused with what to do."""
    with pytest.raises(ValueError, match="CalibratedClassifierCV"):
        calibrate_threshold([-1.0, 2.0], Capacity.fraction(0.5), values=[1, 2])


def test_below_its_worth_capacity_stays_empty():
    """The threshold is at least the worth, and says that it is."""
    p = np.linspace(0, 0.99, 100)
    half = Capacity.fraction(0.5)
    found = calibrate_threshold(p, half, worth=0.9)
    assert found.flag([0.89, 0.9, 0.95]).tolist() == [False, True, True]
    assert found.limited_by == "worth"
    assert calibrate_threshold(p, half, worth=0.1).limited_by == "capacity"
    precise = calibrate_threshold(p, half, worth=Worth.precision(0.9))
    assert precise.flag([0.89, 0.9]).tolist() == [False, True]
    with pytest.raises(ValueError, match="needs labels here: pass y"):
        calibrate_threshold(p, half, worth=Worth.precision(0.9), values=np.ones(100) * 7)


def test_precision_is_promised_on_unseen_items():
    """In at most the allowed share of calibrations, the precision is below its level."""
    rng = np.random.default_rng(0)
    failed, flagged = 0, 0
    for _ in range(400):
        p = rng.uniform(size=300)
        y = rng.uniform(size=300) < p
        found = quietly(
            p,
            Capacity.fraction(0.5),
            y=y,
            rare_label=True,
            guarantee="confident",
            confidence=0.8,
            worth=Worth.precision(0.75),
        )
        if found.k >= 0:
            flagged += 1
            failed += (1 + found.value) / 2 < 0.75  # the precision above a threshold
    assert failed / 400 <= 0.2 + 3 * np.sqrt(0.2 * 0.8 / 400)
    assert flagged > 300


@pytest.mark.parametrize(
    ("often", "rare"), [(0.9, (0.59, 0.3)), (0.5, (0.59, 0.59)), (0.4, (0.95, 0.35))]
)
def test_a_promised_precision_is_kept_in_every_small_world(often, rare):
    """Over all samples, the precision is below its level with at most the allowed probability."""
    level, n, often, rare = 0.6, 20, np.array([often, 1 - often]), np.array(rare)
    cells = np.concatenate([often * rare, often * (1 - rare)])
    true = {0.2: rare[0], -np.inf: float(often @ rare)}  # of each threshold
    failed = flagged = 0.0
    for counts in itertools.product(range(n + 1), repeat=3):
        counts = (*counts, n - sum(counts))
        if counts[-1] < 0 or not 0 < counts[0] + counts[1] < n:
            continue
        found = quietly(
            np.repeat([0.9, 0.2, 0.9, 0.2], counts),
            Capacity.fraction(1),
            y=np.repeat([True, True, False, False], counts),
            rare_label=True,
            guarantee="confident",
            confidence=0.5,
            worth=Worth.precision(level),
        )
        if found.flag([0.9])[0]:
            chance = stats.multinomial.pmf(counts, n, cells)
            flagged += chance
            failed += chance * (true[-np.inf if found.flag([0.2])[0] else 0.2] < level)
    assert flagged > 0.01
    assert failed <= 0.5


def test_the_largest_effort_of_the_sample_is_a_bound_if_larger_ones_are_never_flagged():
    """Over all samples, the expected cost of the next item is at most the budget."""
    for budget in (0.5, 0.9, 1.4):
        capacity, total = Capacity.effort(budget, per=1), 0.0
        for kinds, chance in every_sample(5):
            most = EFFORT[kinds].max()
            found = quietly(P[kinds], capacity, efforts=EFFORT[kinds], max_effort=most)
            flagged = (found.value < P / EFFORT) & (most >= EFFORT)
            total += chance * float((EFFORT * OFTEN)[flagged].sum())
        assert total <= budget + 1e-12


def test_plain_precision_is_that_of_the_calibration_items():
    """Without a promise, the flags of the calibration sample reach the level."""
    p = np.linspace(0.01, 1, 100)
    y = np.arange(100) % 10 < np.arange(100) // 10
    found = calibrate_threshold(
        p, Capacity.fraction(0.9), y=y, rare_label=True, worth=Worth.precision(0.8)
    )
    flagged = found.flag(p)
    assert y[flagged].mean() >= 0.8
    assert flagged.sum() == found.k > 10


def test_no_precise_threshold_flags_nothing_and_warns():
    """If no threshold is precise enough, nothing is flagged, and a warning says why."""
    p = np.linspace(0.01, 1, 100)
    with pytest.warns(InsufficientCalibrationWarning, match="has a precision of at least 0.9"):
        found = calibrate_threshold(
            p,
            Capacity.fraction(0.9),
            y=np.arange(100) < 5,
            rare_label=True,
            worth=Worth.precision(0.9),
        )
    assert found.value == np.inf


def test_items_with_one_id_are_kept_by_lots_of_their_own():
    """Each is kept with the probability of its effort, not all of them or none."""
    sample = CalibrationSample(np.zeros(4_000), np.full(4_000, 0.1), efforts=np.ones(4_000))
    kept = np.isfinite(sample.thinned(4.0, seed=0).scores)
    assert 900 < np.count_nonzero(kept) < 1_100
