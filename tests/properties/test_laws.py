"""Laws that hold for scores nobody has imagined."""

import warnings

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from shortlist import Capacity, calibrate_threshold, select
from shortlist.exceptions import InsufficientCalibrationWarning
from shortlist.thresholds import GUARANTEES

# Few different values, so that ties are the rule; infinities among them.
coarse = st.sampled_from([-np.inf, -2.5, -0.0, 0.0, 1e-300, 0.5, 1.0, 3.0, np.inf])
fine = st.floats(allow_nan=False)
score_arrays = hnp.arrays(np.float64, st.integers(1, 60), elements=coarse | fine)
fractions = st.integers(0, 100).map(lambda percent: percent / 100)
guarantees = st.sampled_from([name for name in GUARANTEES if name != "next-batch"])


def calibrate(scores, capacity, **options):
    """Calibrate without the warning that small samples deserve."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsufficientCalibrationWarning)
        return calibrate_threshold(scores, capacity, **options)


@given(score_arrays, st.integers(0, 70))
def test_a_list_is_exactly_as_long_as_allowed(scores, k):
    """However the scores tie."""
    assert select(scores, Capacity.count(k)).sum() == min(k, scores.size)


@given(score_arrays, fractions)
def test_nobody_on_the_list_is_less_suspicious_than_anyone_off_it(scores, c):
    """The list is a top of the ranking."""
    flagged = select(scores, Capacity.fraction(c))
    if flagged.any() and not flagged.all():
        assert scores[flagged].min() >= scores[~flagged].max()


@given(score_arrays, st.integers(0, 60), st.integers(0, 60))
def test_lists_are_nested(scores, k, more):
    """A larger capacity only adds items."""
    small = select(scores, Capacity.count(k))
    large = select(scores, Capacity.count(k + more))
    assert large[small].all()


@given(score_arrays, fractions, st.randoms(use_true_random=False))
def test_the_row_order_does_not_matter(scores, c, random):
    """With ids, shuffling the rows shuffles the answer; without, up to tied rows."""
    order = np.array(random.sample(range(scores.size), scores.size))
    ids = np.arange(scores.size)
    flagged = select(scores, Capacity.fraction(c), ids=ids)
    assert_array_equal(select(scores[order], Capacity.fraction(c), ids=ids[order]), flagged[order])
    cut, shuffled = (
        calibrate(values, Capacity.fraction(c), ties="hash", ids=names)
        for values, names in ((scores, ids), (scores[order], ids[order]))
    )
    assert cut == shuffled


@given(score_arrays, fractions, guarantees, st.sampled_from(["exclude", "hash"]))
def test_calibration_flags_at_most_its_capacity(scores, c, guarantee, ties):
    """On the calibration items themselves, whatever the rule for ties, on average over the lots.

    One item, in place k + 1, is flagged by lot.
    """
    threshold = calibrate(scores, Capacity.fraction(c), guarantee=guarantee, ties=ties)
    flagged = threshold.flag(scores, ids=np.arange(scores.size))
    assert threshold.flagged_fraction <= c + 1e-9
    surely = round(threshold.flagged_fraction * scores.size - threshold.share)
    assert max(surely, 0) <= flagged.sum() <= max(surely, 0) + (threshold.share > 0)
    assert flagged.sum() <= max(threshold.k, 0) + (threshold.share > 0)
    low, high = threshold.interval
    assert 0 <= low <= high <= 1


@given(score_arrays, fractions, st.sampled_from(["exclude", "hash"]))
def test_stronger_promises_flag_less(scores, c, ties):
    """Confident within expected within plug-in, which draws nothing by lot."""
    kept = [
        calibrate(scores, Capacity.fraction(c), guarantee=guarantee, ties=ties)
        for guarantee in ("confident", "expected", "plug-in")
    ]
    ids = np.arange(scores.size)
    confident, expected, plug_in = (threshold.flag(scores, ids=ids) for threshold in kept)
    places = [(threshold.k, threshold.share) for threshold in kept]
    if places[0] <= places[1]:  # at confidence 0.95, all but the tiniest samples
        assert expected[confident].all()
    assert sum(places[1]) <= c * scores.size
    assert plug_in[expected].all() or places[1][0] == places[2][0]


@given(score_arrays, fractions, fractions, guarantees)
def test_more_capacity_never_flags_less(scores, c, d, guarantee):
    """Thresholds are monotone in the capacity, and flags nested."""
    small, large = sorted((c, d))
    few = calibrate(scores, Capacity.fraction(small), guarantee=guarantee)
    many = calibrate(scores, Capacity.fraction(large), guarantee=guarantee)
    assert few.value >= many.value
    assert many.flag(scores)[few.flag(scores)].all()


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=40), fractions, guarantees)
def test_only_the_order_of_the_scores_matters(values, c, guarantee):
    """An increasing transformation changes no flag."""
    scores = np.array(values, dtype=float)
    for transformed in (np.exp(scores / 4), scores**3, 5 * scores - 3, np.arctan(scores)):
        assert_array_equal(
            select(transformed, Capacity.fraction(c)), select(scores, Capacity.fraction(c))
        )
        before = calibrate(scores, Capacity.fraction(c), guarantee=guarantee)
        after = calibrate(transformed, Capacity.fraction(c), guarantee=guarantee)
        assert_array_equal(after.flag(transformed), before.flag(scores))


@given(score_arrays, fractions, st.sampled_from(["exclude", "hash"]))
def test_one_item_at_a_time_is_the_same_as_a_batch(scores, c, ties):
    """A threshold judges each item on its own."""
    threshold = calibrate(scores, Capacity.fraction(c), ties=ties)
    ids = np.arange(scores.size)
    batch = threshold.flag(scores, ids=ids)
    alone = [threshold.flag(scores[[i]], ids=ids[[i]])[0] for i in range(scores.size)]
    assert_array_equal(batch, alone)


@given(score_arrays, fractions)
def test_a_constant_score_flags_nothing_or_its_share(scores, c):
    """Strict ties flag nothing unless everything is allowed; hashed ties fill the capacity."""
    constant = np.full(scores.size, scores[0])
    capacity = Capacity.fraction(c)
    strict = calibrate(constant, capacity).flag(constant)
    assert strict.sum() in (0, scores.size if c == 1 else 0)
    ids = np.arange(scores.size)
    filled = calibrate(constant, capacity, ties="hash", guarantee="plug-in").flag(constant, ids=ids)
    assert filled.sum() == capacity.max_flags(scores.size)


@given(fractions, guarantees)
def test_a_single_score(c, guarantee):
    """One calibration score promises little, and flags accordingly."""
    threshold = calibrate([0.5], Capacity.fraction(c), guarantee=guarantee)
    assert threshold.flag([0.5]).sum() <= Capacity.fraction(c).max_flags(1)


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 9)), min_size=4, max_size=80).filter(
        lambda rows: 0 < sum(rare for rare, _ in rows) < len(rows)
    ),
    st.sampled_from([0.5, 1, 2, 3]),
    st.sampled_from(["exclude", "hash"]),
)
def test_an_unknown_prevalence_never_flags_more_than_the_plug_in(rows, b, ties):
    """The walk stops within b times the rare items of the sample."""
    y, scores = np.array([r for r, _ in rows]), np.array([float(s) for _, s in rows])
    if b * y.mean() > 1:
        return
    threshold = calibrate(
        scores, Capacity.multiple(b), y=y, rare_label=True, guarantee="confident", ties=ties
    )
    assert threshold.flag(scores, ids=np.arange(y.size)).sum() <= b * y.sum()


@given(score_arrays, fractions, guarantees)
def test_rounding_scores_to_single_precision_flags_nobody_new(scores, c, guarantee):
    """A score that was equal to the threshold never comes to lie above it."""
    threshold = calibrate(scores, Capacity.fraction(c), guarantee=guarantee)
    with np.errstate(over="ignore"):
        rounded = scores.astype(np.float32)
    assert not (threshold.flag(rounded) & ~threshold.flag(scores)).any()
