"""Items that belong together: what is promised about an item of a new group, and how it is kept."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from shortlist import Capacity, calibrate_threshold
from shortlist._core.groups import number_groups
from shortlist.exceptions import InsufficientCalibrationWarning
from shortlist.thresholds._groups import draw_one_of_each, expected_k_in_groups
from shortlist.thresholds.terms import CalibrationSample, ReferencePrevalence, Terms

TENTH = Capacity.fraction(0.1)
quiet = pytest.mark.filterwarnings("ignore::shortlist.exceptions.InsufficientCalibrationWarning")


@quiet
@given(
    worlds=st.lists(
        st.lists(st.integers(0, 12), min_size=1, max_size=5), min_size=2, max_size=9
    ).filter(lambda world: max(map(len, world)) > 1),
    percent=st.integers(1, 99),
    ties=st.sampled_from(["exclude", "hash"]),
    guarantee=st.just("expected"),
)
def test_a_new_group_is_flagged_no_more_than_the_capacity(worlds, percent, ties, guarantee):
    """Let each of some groups be the new one in turn: its mean share of flags is at most c.

    These are all cases of exchangeable groups, given what the groups are, so the law is exact.
    """
    ids = np.arange(sum(map(len, worlds)))
    of = np.repeat(np.arange(len(worlds)), [len(world) for world in worlds])
    scores = np.concatenate(worlds).astype(float)
    shares = []
    for new in range(len(worlds)):
        rest, own = of != new, of == new
        threshold = calibrate_threshold(
            scores[rest],
            Capacity.fraction(Fraction(percent, 100)),
            guarantee=guarantee,
            ties=ties,
            ids=ids[rest],
            groups=of[rest],
        )
        flags = int(threshold.flag(scores[own], ids=ids[own]).sum())
        shares.append(Fraction(flags, int(own.sum())))
    assert sum(shares) / len(shares) <= Fraction(percent, 100)


def test_the_law_fails_without_groups():
    """A group of high scores, and many others: every other rule flags all of the new one."""
    of, scores = np.repeat(np.arange(10), 10), np.repeat(np.arange(10.0), 10)
    flagged = [
        calibrate_threshold(scores[of != new], Capacity.fraction(0.05)).flag(scores[of == new])
        for new in range(10)
    ]
    assert np.mean(flagged) == 0.1


def test_expected_rule_counts_shares_of_groups():
    """The largest k up to c n at which all shares of groups, plus one, are at most c (G + 1)."""
    rng = np.random.default_rng(0)
    for trial in range(50):
        groups = number_groups(rng.integers(12, size=40), 40)
        sizes = np.bincount(groups)
        c = Fraction(int(rng.integers(1, 100)), 100)
        sums = [
            sum((Fraction(1, int(sizes[g])) for g in groups[:k]), Fraction(1)) for k in range(41)
        ]
        allowed = [k for k, s in enumerate(sums) if s <= c * (sizes.size + 1) and k <= 40 * c]
        assert expected_k_in_groups(groups, np.arange(41), c) == max(allowed, default=-1), trial


@quiet
@pytest.mark.parametrize("guarantee", ["plug-in", "expected", "confident", "simultaneous"])
def test_the_sample_itself_is_within_capacity(guarantee):
    """Large groups that are more suspicious than small ones do not use up more than c n flags."""
    of = np.concatenate([np.arange(900), np.repeat(np.arange(900, 1_000), 10)])
    scores = np.random.default_rng(1).normal(size=of.size) + 3 * (of >= 900)
    options = {"capacity": TENTH, "guarantee": guarantee}
    threshold = calibrate_threshold(scores, **options, groups=of)
    assert 0 < threshold.flag(scores).sum() <= 190


@pytest.mark.parametrize(
    "options",
    [
        {"guarantee": "plug-in"},
        {"guarantee": "expected"},
        {"guarantee": "confident"},
        {"guarantee": "simultaneous"},
        {"capacity": Capacity.count(20, per=200), "guarantee": "next-batch"},
        {"capacity": Capacity.multiple(2), "guarantee": "confident"},
    ],
)
def test_groups_of_one_item_change_nothing(options):
    """The same threshold, bit for bit, with all that is known about it."""
    rng = np.random.default_rng(2)
    scores, y = np.round(rng.normal(size=500), 2), np.arange(500) % 10 == 0
    options = {"capacity": TENTH, "ids": np.arange(500), "y": y, "rare_label": True, **options}
    alone = calibrate_threshold(scores, **options, groups=[f"g{row}" for row in range(500)])
    assert alone == calibrate_threshold(scores, **options)


@pytest.mark.parametrize("guarantee", ["confident", "simultaneous"])
def test_one_item_of_each_group_sets_the_threshold(guarantee):
    """What is drawn by lot are independent items, for which the rule of single items is exact."""
    rng = np.random.default_rng(3)
    scores, of = rng.normal(size=2_000), np.repeat(np.arange(500), 4)
    drawn = draw_one_of_each(scores, of, None, seed=0)
    assert_array_equal(np.sort(of[drawn]), np.arange(500))
    grouped = calibrate_threshold(scores, TENTH, guarantee=guarantee, groups=of)
    assert grouped.value == calibrate_threshold(scores[drawn], TENTH, guarantee=guarantee).value
    shuffled = rng.permutation(2_000)
    again = calibrate_threshold(scores[shuffled], TENTH, guarantee=guarantee, groups=of[shuffled])
    assert again.value == grouped.value


def test_every_item_of_a_group_is_drawn_as_often():
    """Over 3,000 samples, each of three items is drawn within four standard errors of a third."""
    rng, counts = np.random.default_rng(4), np.zeros(3)
    for _ in range(100):
        scores = np.tile([1.0, 2.0, 3.0], 30) + 10 * rng.random()
        drawn = draw_one_of_each(scores, np.repeat(np.arange(30), 3), None, seed=0)
        counts += np.bincount(drawn % 3, minlength=3)
    assert np.all(np.abs(counts / 3_000 - 1 / 3) < 4 * np.sqrt(2 / 9 / 3_000))


def test_too_few_groups_are_named():
    """The sample size is counted in groups: 60 items of six groups are six."""
    scores, of = np.arange(60.0), np.repeat(np.arange(6), 10)
    for guarantee, needed in [("expected", 9), ("plug-in", 9), ("confident", 29)]:
        with pytest.warns(
            InsufficientCalibrationWarning, match=f"{needed} calibration groups; got 6"
        ):
            threshold = calibrate_threshold(scores, TENTH, guarantee=guarantee, groups=of)
        assert threshold.value == np.inf
        assert threshold.k == -1


def test_what_is_not_possible_with_groups():
    """Batches, weights, missing groups and wrong numbers of them are refused with the reason."""
    scores, of = np.arange(60.0), np.repeat(np.arange(30), 2)
    with pytest.raises(ValueError, match="how many items of one group it holds"):
        calibrate_threshold(scores, Capacity.count(1, per=10), guarantee="next-batch", groups=of)
    with pytest.raises(ValueError, match="sample_weight and groups cannot be combined"):
        calibrate_threshold(
            scores, TENTH, guarantee="plug-in", sample_weight=np.ones(60), groups=of
        )
    with pytest.raises(ValueError, match="groups must not be missing, as at row 1"):
        calibrate_threshold(scores, TENTH, groups=["a", None, *["b"] * 58])
    with pytest.raises(ValueError, match="one group for each of the 60 items; got shape"):
        calibrate_threshold(scores, TENTH, groups=of[:-1])


def test_groups_are_numbered_as_they_come():
    """By their first items, whatever holds them; if all are alone, there are none."""
    for groups in (["b", "a", "b"], np.array([7, 3, 7]), [7.0, 3, 7], [(1, 2), "x", (1, 2)]):
        assert_array_equal(number_groups(groups, 3), [0, 1, 0])
    assert number_groups(["b", "a", "c"], 3) is None
    assert number_groups(None, 3) is None


def test_a_prevalence_is_bounded_by_one_item_of_each_group():
    """Ten groups of a hundred equal labels are ten labels."""
    of, is_rare = np.repeat(np.arange(10), 100), np.repeat(np.arange(10) < 5, 100)
    grouped = ReferencePrevalence.of_labels(is_rare, of)
    assert grouped.share == Fraction(1, 2)
    alone = ReferencePrevalence.of_labels(np.arange(10) < 5)
    assert grouped.lower_bound(error=0.05) == alone.lower_bound(error=0.05)


@quiet
def test_a_multiple_after_looking_rests_on_drawn_labels():
    """With the prevalence unknown, "simultaneous" and "confident" take one label of each group."""
    rng = np.random.default_rng(5)
    of = np.repeat(np.arange(400), 5)
    is_rare = np.repeat(rng.random(400) < 0.2, 5)
    scores = rng.normal(size=2_000) + is_rare
    for guarantee in ("simultaneous", "confident"):
        options = {"capacity": Capacity.multiple(1), "y": is_rare, "guarantee": guarantee}
        grouped = calibrate_threshold(scores, **options, groups=of)
        drawn = draw_one_of_each(scores, of, None, seed=0)
        options["y"] = is_rare[drawn]
        assert grouped.value == calibrate_threshold(scores[drawn], **options).value


def test_segments_keep_their_groups():
    """A group that lies in two segments is a smaller group in each of them."""
    sample = CalibrationSample(
        np.arange(6.0), segments=np.array([0, 0, 1, 1, 1, 0]), groups=np.array([0, 0, 0, 1, 1, 2])
    )
    assert_array_equal(sample.within(0).groups, [0, 0, 2])
    threshold = Terms().threshold(sample.within(0), Capacity.fraction(0.5), 0.95)
    # Groups {0, 1} and {5}: flags above 1 are all of one of two groups, and 1 + 1 > 0.5 * 3.
    assert threshold.value == 5.0
