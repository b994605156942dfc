"""Each correction that a promise rests on, against a few lines that compute it another way.

These tests are quick and exact. `tools/mutants.py` breaks the code in one place after the other and
expects one of them to fail.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import skops.io
from numpy.testing import assert_array_equal
from scipy import stats
from sklearn.linear_model import LogisticRegression

from shortlist import Capacity, CapacityClassifier
from shortlist._core.ids import hash_ids, lots_of
from shortlist._core.intervals import (
    clopper_pearson_lower,
    clopper_pearson_upper,
    proportion_interval,
)
from shortlist._core.ranking import Cut, cut_after, flag_above, flag_exactly, lift
from shortlist.exceptions import InsufficientCalibrationWarning, ModelFileError
from shortlist.models.files import load_estimator
from shortlist.multiclass import _capacities, _rule
from shortlist.online import BudgetController, QuantileTracker
from shortlist.online.periods import period_of
from shortlist.tables.drift import judge_shifts
from shortlist.thresholds import guarantees
from shortlist.thresholds.samples import CalibrationSample, RowFacts, SegmentCapacities
from shortlist.thresholds.terms import Terms

TENTH = Fraction(1, 10)


def confident_k(found, error):
    """Return how many of its calibration scores a threshold for a fifth may surely flag."""
    return guarantees.confident_place(found.n_calibration, Fraction(1, 5), error=error).k


def binomial_cdf(k, n, p):
    """Return the distribution function of a binomial, exactly."""
    return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))


# --- rounding ---------------------------------------------------------------------------------


def test_capacities_are_rounded_down_exactly():
    """In the decimal number that was written, not in its binary neighbour."""
    assert Capacity.fraction(0.29).max_flags(100) == 29
    assert Capacity.fraction(0.299).max_flags(100) == 29
    assert Capacity.count(2, per=3).max_flags(5) == 3
    assert Capacity.count(7).max_flags(5) == 5
    assert Capacity.multiple(1.5).max_flags(100, Fraction(1, 3)) == 50


# --- tails ------------------------------------------------------------------------------------


def test_expected_rule():
    """The largest k with (k + 1) / (n + 1) at most c."""
    for n in range(40):
        allowed = [k for k in range(-1, n) if Fraction(k + 1, n + 1) <= TENTH]
        assert guarantees.expected_place(n, TENTH).k == max(allowed)
    assert guarantees.plug_in_k(100, Fraction(29, 100)) == 29
    assert guarantees.plug_in_k(100, Fraction(0)) == -1


@pytest.mark.parametrize("error", [0.05, 0.5, float(binomial_cdf(2, 30, TENTH)) * (1 + 1e-9)])
def test_confident_rule(error):
    """The largest k with P(Binomial(n, c) <= k) at most the error, or -1."""
    for n in (5, 28, 29, 30, 60):
        chances = [float(binomial_cdf(k, n, TENTH)) for k in range(n)]
        allowed = [k for k, chance in enumerate(chances) if chance <= error]
        assert guarantees.confident_place(n, TENTH, error=error).k == max(allowed, default=-1)


def test_next_batch_rule():
    """The largest k for which too many of the next items lie above with at most the error."""
    for n, most, batch in [(10, 2, 8), (40, 3, 20), (40, 19, 20), (60, 1, 10)]:
        overrun = [
            sum(
                math.comb(k + j, j) * math.comb(n - k - 1 + batch - j, batch - j)
                for j in range(most + 1, batch + 1)
            )
            / math.comb(n + batch, batch)
            for k in range(n)
        ]
        allowed = [k for k, chance in enumerate(overrun) if chance <= 0.05]
        found = guarantees.next_batch_place(n, most, batch, error=0.05).k
        assert found == max(allowed, default=-1)


def chance_above(coefficients, c):
    """Return P(sum of a_i D_i > c) for spacings D of uniform numbers, exactly, with unequal a_i.

    Each a_i above c adds (a_i - c)^n over the product of its differences from all others.
    """
    total = Fraction(0)
    for i, a in enumerate(coefficients):
        others = [a - b for j, b in enumerate(coefficients) if j != i]
        total += max(a - c, 0) ** len(others) / math.prod(others)
    return total


@pytest.mark.parametrize(("n", "k"), [(1, -1), (1, 0), (2, 0)])
def test_the_law_of_a_rate_between_two_places(n, k):
    """The rate is a sum of spacings: those above place k + 1 count 1, the next s, the rest 0."""
    for share, c in [(Fraction(1, 3), Fraction(1, 5)), (Fraction(2, 3), Fraction(3, 4))]:
        spacings = [*[Fraction(1)] * (k + 1), share, *[Fraction(0)] * (n - k - 1)]
        exact = chance_above(spacings, c)
        place = guarantees.Place(k, float(share))
        assert guarantees.exceedance(place, n, c) == pytest.approx(float(exact), abs=1e-12)


def test_a_share_between_two_places_spends_what_is_left():
    """Expected: all of c on average. Confident: all of the error, and with more share too much.

    Without the correction for the new item, c n places instead of c (n + 1) - 1, c is exceeded.
    """
    for n in (0, 1, 2, 5, 9, 40):
        for c in (Fraction(1, 100), TENTH, Fraction(3, 10), Fraction(99, 100)):
            k, share = guarantees.expected_place(n, c)
            rate = (k + 1 + Fraction(share)) / (n + 1)
            assert c - Fraction(1, 2**53) <= rate <= c
            assert (c * n + 1) / (n + 1) > c  # a threshold at place c n + 1, as in the paper
            place = guarantees.confident_place(n, c, error=0.05)
            found = guarantees.exceedance(place, n, c)
            assert found <= 0.05
            if n:
                more = guarantees.Place(place.k, place.share + 0.01)
                assert found > 0.05 - 1e-6
                assert guarantees.exceedance(more, n, c) > 0.05


def test_lots_do_not_depend_on_the_order_of_keys():
    """One calibration item and one new item, tied: half a place, so a quarter is to be flagged.

    If the key itself were the lot, it would be three eighths: of items with small keys, which come
    first in their tied block, more are drawn. 40,000 pairs: four standard errors are 0.009.
    """
    keys, new = hash_ids(np.arange(40_000)), hash_ids(np.arange(40_000, 80_000))
    is_first, share = new < keys, guarantees.expected_place(1, Fraction(1, 4)).share
    assert share == 0.5
    assert abs(np.mean(is_first & (lots_of(new) < share)) - 0.25) < 0.009
    assert abs(np.mean(is_first & (new < share)) - 0.375) < 0.01


def test_a_new_item_can_tie_with_one_that_ties_with_no_other():
    """Over all scores and orders of three calibration items and a new one, a quarter is flagged.

    An item whose score is unique among three has a key, too. If a new item that ties with it always
    came after it, less than the capacity would be used.
    """
    facts, flags = RowFacts(np.zeros((3, 1))), []
    for scores in itertools.product([0.0, 1.0], repeat=4):
        known, new = np.array(scores[:3]), lift(np.array(scores[3:]))
        for order in itertools.permutations([0.2, 0.4, 0.6, 0.8]):
            keys = np.array(order)
            sample = CalibrationSample.of(known, np.arange(3), facts, tie_keys=keys.__getitem__)
            (found,) = Terms().thresholds([sample], Capacity.fraction(0.25))
            flags.append(bool(found.flag_with_keys(new, lambda _: keys[3:])[0]))  # noqa: B023
    assert sum(flags) == len(flags) / 4


def test_thinned_work_is_that_of_the_items_themselves():
    """Each kept item counts the largest effort, as often as its own effort is part of it: exact.

    Over all worlds of two calibration items and a new one, the mean work per item is the budget,
    apart from what is lost where no item was kept. If efforts were ignored, it would be too much.
    """
    efforts, most, c = np.array([1.0, 2.0, 4.0]), 4.0, Fraction(1, 4)
    spent = {"thinned": 0.0, "ignored": 0.0}
    for new in range(3):
        rest = [i for i in range(3) if i != new]
        for kept in itertools.product([False, True], repeat=2):
            chance = math.prod(
                efforts[i] / most if keep else 1 - efforts[i] / most
                for i, keep in zip(rest, kept, strict=True)
            )
            scores = [float(i) if keep else -np.inf for i, keep in zip(rest, kept, strict=True)]
            for name, ratio, own in [
                ("thinned", c / 4, scores),
                ("ignored", c / Fraction(7, 3), [float(i) for i in rest]),
            ]:
                k, share = guarantees.expected_place(2, ratio)
                upper, lower = (cut_after(np.array(own), place).value for place in (k, k + 1))
                flag = 1.0 if new > upper else share * (new > lower)
                spent[name] += chance * flag * efforts[new] / 3
    assert spent["thinned"] <= float(c) + 1e-12
    assert spent["ignored"] > float(c)


def test_exact_bounds_of_a_proportion():
    """The tail beyond each bound has exactly the error."""
    low = clopper_pearson_lower(3, 20, error=0.05)
    high = clopper_pearson_upper(3, 20, error=0.05)
    assert stats.binom.sf(2, 20, low) == pytest.approx(0.05)
    assert stats.binom.cdf(3, 20, high) == pytest.approx(0.05)
    both = proportion_interval(3, 20, error=0.1)
    assert both == pytest.approx((low, high))
    assert proportion_interval(0, 20).low == 0
    assert proportion_interval(20, 20).high == 1


# --- ties -------------------------------------------------------------------------------------


def test_ties_at_the_cut():
    """Without keys a tied block stays out; with keys, those below the key of the cut are in."""
    scores = np.array([3.0, 2.0, 2.0, 2.0, 1.0])
    keys = np.array([0.5, 0.9, 0.1, 0.4, 0.2])
    assert cut_after(scores, 2) == Cut(2.0, 0.0)
    assert_array_equal(flag_above(scores, Cut(2.0)), [1, 0, 0, 0, 0])
    cut = cut_after(scores, 2, keys.__getitem__)
    assert cut == Cut(2.0, 0.4)
    assert_array_equal(flag_above(scores, cut, keys.__getitem__), [1, 0, 1, 0, 0])
    assert_array_equal(flag_exactly(scores, 2, keys.__getitem__), [1, 0, 1, 0, 0])
    assert cut_after(scores, -1).value == np.inf
    assert cut_after(scores, 5).value == -np.inf


def test_a_threshold_in_double_precision_flags_no_single_score_that_equals_it():
    """It is rounded up for scores in single precision."""
    for value in (0.1, 0.7):  # rounded to the nearest, the one is above and the other below
        above = np.float32(value)
        if float(above) < value:
            above = np.nextafter(above, np.float32(1))
        assert not flag_above(np.array([above]), Cut(value)).any()
        assert flag_above(np.nextafter(np.array([above]), np.float32(1)), Cut(value)).all()


def test_lifted_scores_are_on_the_same_side_of_grid_points():
    """No score is lifted below itself, and neighbours within the noise are equal."""
    scores = np.array([0.3, 0.3 * (1 + 1e-14), -0.3, 0.0, np.inf, -np.inf])
    lifted = lift(scores)
    assert (lifted >= scores).all()
    assert lifted[0] == lifted[1]
    assert_array_equal(lift(lifted), lifted)


def test_keys_of_texts_and_gaps():
    """Texts depend on the seed and are apart; everything missing shares one key."""
    assert hash_ids(["a"], seed=1)[0] != hash_ids(["a"], seed=2)[0]
    assert hash_ids(["a", "b"])[0] != hash_ids(["a", "b"])[1]
    assert len(set(hash_ids([None, float("nan"), np.datetime64("NaT", "s")]))) == 1
    assert hash_ids(np.array(["NaT"], dtype="M8[s]"))[0] == hash_ids([None])[0]
    assert hash_ids(np.array([np.nan]))[0] == hash_ids([None])[0]


# --- corrections for several limits -------------------------------------------------------------


@pytest.mark.parametrize("overall", [Capacity.fraction(0.2), None])
def test_segments_share_the_error(overall):
    """Each threshold of a confident rule gets an equal part of the allowed error."""
    rng = np.random.default_rng(0)
    X, segments = rng.normal(size=(3_000, 2)), np.repeat(["a", "b", "c"], 1_000)
    y = rng.random(3_000) < 1 / (1 + np.exp(2 - X[:, 0]))
    model = CapacityClassifier(
        LogisticRegression(),
        capacity=overall,
        segment_capacities={name: Capacity.fraction(0.2) for name in "abc"},
        guarantee="confident",
        confidence=0.9,
        cv=0.5,
        random_state=0,
    ).fit(X, y, segments=segments)
    n_limits = 3 + (overall is not None)
    for found in model.rule_.segment_calibrations.values():
        exact = guarantees.confident_place(
            found.n_calibration, Fraction(1, 5), error=0.1 / n_limits
        ).k
        assert found.k == exact
        assert found.k < confident_k(found, 0.1)
    if overall is not None:
        (found,) = model.rule_.calibrations
        exact = guarantees.confident_place(
            found.n_calibration, Fraction(1, 5), error=0.1 / n_limits
        ).k
        assert found.k == exact


def joint_rule(n, classes, **limits):
    """Return a confident rule for n items that class 0 is best for, at an error of 0.2."""
    sample = _rule.JointSample(
        np.column_stack([np.arange(1.0, n + 1), np.full((n, len(classes) - 1), -1.0)]),
        np.zeros(n, dtype=np.intp),
    )
    counts = {**dict.fromkeys(classes, n // 10), "fine": n}
    joint = _capacities.JointCapacities(classes, counts, **limits)
    return _rule.JointRule.calibrate(sample, joint, guarantee="confident", confidence=0.8)


def test_several_classes_share_the_error():
    """Each of four limits gets a quarter; those of nothing need none."""
    tenth, segments = Capacity.fraction(0.1), SegmentCapacities({"a": Capacity.fraction(0.1)}, None)
    classes = {"a": tenth, "b": tenth, "c": None, "d": Capacity.fraction(0)}
    rule = joint_rule(800, classes, total=tenth, segments=segments)
    (of_segment,) = rule.overall.segment_calibrations.values()
    k = guarantees.confident_place(400, TENTH, error=0.05).k
    assert [rule.classes[0].calibrations[0].k, rule.overall.calibrations[0].k] == [k, k]
    assert of_segment.k == k < guarantees.confident_place(400, TENTH, error=0.2).k


@pytest.mark.parametrize("limit", ["class", "total", "segment"])
def test_places_of_several_classes_are_fractional(limit):
    """Over all orders of five items, of which four calibrate, the last one is flagged at c.

    Two items are new to the prices, and three tenths are less than one of their three places.
    """
    most, of_class = Capacity.fraction(0.3), limit == "class"
    joint = _capacities.JointCapacities(
        {"a": most if of_class else None, "b": None},
        {"a": 1, "b": 1, "fine": 8},
        most if limit == "total" else None,
        SegmentCapacities({"north": most}, None) if limit == "segment" else None,
    )
    chances = []
    for order in itertools.permutations(range(5)):
        items = np.array(order)
        gains, keys = np.column_stack([1.0 + items, -np.ones(5)]), hash_ids(items)
        sample = _rule.JointSample(gains, np.zeros(5, dtype=np.intp), keys, True)
        calibrated, new = sample.take(np.arange(4)), sample.take(np.array([4]))
        with pytest.warns(InsufficientCalibrationWarning, match="drawn by lot"):
            rule = _rule.JointRule.calibrate(calibrated, joint)
        (found,) = (rule.classes[0] if of_class else rule.overall).calibrations
        if limit == "segment":
            found = rule.overall.segment_calibrations["north"]
        _, lead, surplus = rule._margins(new)
        scores = np.where(lead > 0, lead if of_class else surplus, -np.inf)
        above, between = found.cuts.divide(scores, keys[4:].__getitem__)
        drawn = between & (lots_of(keys[4:]) < found.share)
        assert_array_equal(rule.decide(new)[0] == 1, above | drawn)
        chances.append(float(above[0] + found.share * between[0]))
    assert np.mean(chances) == pytest.approx(0.3, abs=1e-12)


def test_half_of_the_error_pays_for_unknown_prevalences():
    """The other half is left for the thresholds; the bounds share theirs."""
    rule = joint_rule(800, {"a": Capacity.multiple(1), "b": Capacity.multiple(2)})
    found = rule.classes[0].calibrations[0]
    bound = clopper_pearson_lower(80, 960, error=0.05)
    assert found.capacity_fraction == pytest.approx(bound)
    assert found.k == guarantees.confident_place(400, Fraction(float(bound)), error=0.05).k


def test_holm():
    """The smallest p-value counts as often as there are tests, the next one time less, ...

    None comes out smaller than the one before it.
    """
    compared = [{"p_value": p, "psi": 1.0} for p in (0.025, 0.001, 0.02, 0.6)]
    judge_shifts(compared)
    adjusted = [each["adjusted_p_value"] for each in compared]
    assert adjusted == pytest.approx([0.06, 0.004, 0.06, 0.6])


@pytest.mark.parametrize("b", [Fraction(1, 2), Fraction(1), Fraction(3)])
def test_an_unknown_prevalence_is_tested_at_the_error(b):
    """False alarms beside misses, after hits were turned by lot into the one or the other."""
    n_rare, lots = 40, np.random.default_rng(0).uniform(size=40)
    for found in range(0, 41, 5):
        turned = sum(lot < max(1 - b, 1 - 1 / b) for lot in lots[:found])
        for alarms in range(0, 90, 3):
            ours = guarantees.keeps_multiple(
                np.array([found]), np.array([alarms]), n_rare, b, error=0.05, lots=lots
            )
            both = (alarms, n_rare - found + turned) if b > 1 else (alarms + turned, n_rare - found)
            assert ours[0] == (stats.binom.cdf(both[0], sum(both), float(b / (1 + b))) <= 0.05)


# --- controllers --------------------------------------------------------------------------------


def test_a_tracker_moves_by_its_step():
    """Up by step times (1 - rate) after a flag, down by step times rate otherwise; ties are out."""
    tracker = QuantileTracker(
        Capacity.fraction(0.1), calibration_scores=np.arange(1_000.0), step=0.5
    )
    start = tracker.state_floats[0]
    first = tracker.decide(1e9)
    assert first.flag
    assert tracker.state_floats[0] == pytest.approx(start + 0.5 * 0.9)
    assert not tracker.decide(-1.0).flag
    assert tracker.state_floats[0] == pytest.approx(start + 0.5 * 0.9 - 0.5 * 0.1)
    threshold = QuantileTracker.from_state(tracker.state()).decide(-1.0).threshold
    assert not tracker.decide(threshold).flag


def test_a_bucket_never_gives_what_it_has_not():
    """Burst first, then one flag per three items, with parts of tokens rounded down."""
    bucket = QuantileTracker(Capacity.count(1, per=3), calibration_scores=np.arange(100.0), burst=2)
    flags = [bucket.decide(1e9 + i).flag for i in range(11)]
    # Three times the rounded-down third is a little less than a whole token.
    assert flags == [1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1]
    assert bucket.state_ints[0] == 10 * ((1 << 40) // 3) - 3 * (1 << 40)


def test_a_budget_counts_its_flags_and_its_periods():
    """Two flags in a period, however high the scores; the next period has two again."""
    budget = BudgetController(
        Capacity.count(2), calibration_scores=np.arange(100.0), period=10.0, expected_arrivals=10
    )
    moments = [0.0, 1.0, 2.0, 9.99, 10.0, 9.0, 19.0, 19.5]
    flags = [budget.decide(1e9 * (i + 1), at=at).flag for i, at in enumerate(moments)]
    assert sum(flags[:4]) == 2
    assert sum(flags[4:]) == 2
    assert budget.remaining == 0


@pytest.mark.parametrize(("at", "period"), [(0.0, 0), (9.999, 0), (10.0, 1), (-0.001, -1)])
def test_periods_contain_their_start_and_not_their_end(at, period):
    """Whatever the quotient rounds to."""
    assert period_of(at, 0.0, 10.0) == period
    for number in range(200):
        start = 0.3 + number * 0.1
        assert period_of(start, 0.3, 0.1) == number
        assert period_of(np.nextafter(start, -1), 0.3, 0.1) == number - 1


def test_time_never_goes_back():
    """A late item counts as of the latest moment."""
    budget = BudgetController(
        Capacity.count(1), calibration_scores=np.arange(9.0), period=10.0, expected_arrivals=5
    )
    assert budget.decide(1e9, at=25.0).flag
    assert not budget.decide(1e10, at=15.0).flag
    assert budget.now == 25.0


def test_the_oldest_answer_is_forgotten_first():
    """And a repeated id is not decided again."""
    tracker = QuantileTracker(Capacity.fraction(0.1), calibration_scores=range(9), remember=2)
    tracker.decide_many([1.0, 2.0, 3.0], ids=["a", "b", "c"])
    assert list(tracker._answers) == ["b", "c"]
    reasons = tracker.decide_many([9.0] * 5, ids=["d", "a", "a", "b", "d"]).reasons
    assert (reasons == "seen before").tolist() == [False, False, True, False, False]


# --- files --------------------------------------------------------------------------------------


class Stranger:
    """A type that a model of shortlist does not need."""


def test_foreign_types_are_named_and_not_loaded(monkeypatch):
    """The check comes before anything is constructed."""
    payload = skops.io.dumps(Stranger())
    constructed = []
    monkeypatch.setattr(Stranger, "__new__", lambda cls: constructed.append(cls))
    with pytest.raises(ModelFileError, match=r"contains types .*Stranger"):
        load_estimator(payload, "file")
    assert not constructed
