"""Items that belong together: what is promised about an item of a new group, and how it is kept."""

from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import norm

from shortlist import Capacity, calibrate_threshold
from shortlist._core.ids import hash_ids, lots_of, number_groups
from shortlist._core.labels import ReferencePrevalence
from shortlist._core.ranking import flag_above
from shortlist.exceptions import InsufficientCalibrationWarning
from shortlist.thresholds import terms
from shortlist.thresholds.samples import CalibrationSample
from shortlist.thresholds.terms import Terms

TENTH = Capacity.fraction(0.1)
quiet = pytest.mark.filterwarnings("ignore::shortlist.exceptions.InsufficientCalibrationWarning")


@quiet
@pytest.mark.parametrize("percent", [10, 25, 40, 55, 80])
@pytest.mark.parametrize("seed", range(4))
def test_a_new_group_is_flagged_no_more_than_the_capacity(percent, seed, monkeypatch):
    """Let each of some groups be the new one in turn, and each item be drawn in its group: exact.

    The mean chance that a random item of the new group is flagged is at most c.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, size=4)
    of, n = np.repeat(np.arange(4), sizes), int(sizes.sum())
    scores, keys = rng.integers(6, size=n).astype(float), rng.random(n)
    shares = []
    for new in range(4):
        rest, own = np.flatnonzero(of != new), np.flatnonzero(of == new)
        sample = CalibrationSample(scores[rest], keys[rest], groups=of[rest])
        members = [np.flatnonzero(of[rest] == group) for group in range(4) if group != new]
        for drawn in product(*members):
            rows = np.array(drawn)
            monkeypatch.setattr(
                CalibrationSample,
                "one_of_each_group",
                lambda self, seed, rows=rows: replace(self.take(rows), groups=None),
            )
            upper, lower, share = (
                Terms().thresholds([sample], Capacity.fraction(percent / 100))[0].cuts
            )
            surely, perhaps = (
                flag_above(scores[own], cut, keys[own].__getitem__) for cut in (upper, lower)
            )
            chance = np.where(surely, 1.0, share * perhaps).mean()
            shares.append((new, chance))
    by_group = [np.mean([chance for each, chance in shares if each == new]) for new in range(4)]
    assert np.mean(by_group) <= percent / 100 + 1e-12


def test_the_law_fails_without_groups():
    """A group of high scores, and many others: every other rule flags all of the new one."""
    of, scores = np.repeat(np.arange(10), 10), np.repeat(np.arange(10.0), 10)
    flagged = [
        calibrate_threshold(scores[of != new], Capacity.fraction(0.05)).flag(scores[of == new])
        for new in range(10)
    ]
    assert np.mean(flagged) == 0.1


LARGE = np.concatenate([np.arange(900), np.repeat(np.arange(900, 1_000), 10)])


def test_the_sample_itself_is_within_capacity():
    """Under "plug-in", large groups of high scores do not use up more than c n flags."""
    scores = np.random.default_rng(1).normal(size=LARGE.size) + 3 * (LARGE >= 900)
    threshold = calibrate_threshold(scores, TENTH, guarantee="plug-in", groups=LARGE)
    assert 0 < threshold.flag(scores).sum() <= 190


@quiet
@pytest.mark.parametrize("n_groups", [150, 400])
def test_all_items_are_within_capacity_on_average_if_large_groups_score_higher(n_groups):
    """Every tenth group has ten items, which lie one standard deviation higher.

    Without a lower level, 2.4 times the capacity of all items would be flagged; with the capacity
    of the calibration items as a limit, 1.1 times at 150 groups.
    """
    rates, c = [], 0.05
    for seed in range(600):
        rng = np.random.default_rng(seed)
        sizes = np.where(rng.random(n_groups) < 0.1, 10, 1)
        of = np.arange(n_groups).repeat(sizes)
        alike = rng.normal(size=n_groups).repeat(sizes) + rng.normal(size=of.size)
        scores = alike / np.sqrt(2) + (sizes[of] == 10)
        known = {"groups": of, "ids": np.arange(of.size), "random_state": seed}
        found = calibrate_threshold(scores, Capacity.fraction(c), **known)
        ends = np.array([found.value, found.lower_value])
        upper, lower = (0.9 * norm.sf(ends) + norm.sf(ends - 1)) / 1.9
        rates.append((1 - found.share) * upper + found.share * lower)
    assert 0.85 * c < np.mean(rates) <= c + 2 * np.std(rates) / np.sqrt(600)


def test_copies_that_would_fill_the_capacity_are_not_flagged_with_it():
    """Fifty equal rows of one case lie across the capacity: all of them, or none, are above it."""
    scores = np.concatenate([np.arange(1_000.0), np.full(50, 994.5)])
    of = np.concatenate([np.arange(1_000), np.full(50, 1_000)])
    found = calibrate_threshold(scores, Capacity.fraction(0.02), groups=of)
    assert found.flag(scores).sum() <= 21


def test_groups_of_different_sizes_use_nine_tenths_of_the_capacity():
    """Sizes from 1 to 7 that have nothing to do with scores, at the smaller capacity of the aim."""
    rates, of = [], np.arange(150).repeat(np.arange(150) % 7 + 1)
    for seed in range(600):
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=150)[of] + rng.normal(size=of.size)
        known = {"groups": of, "ids": np.arange(of.size), "random_state": seed}
        found = calibrate_threshold(scores, Capacity.fraction(0.02), **known)
        upper, lower = norm.sf([found.value, found.lower_value], scale=np.sqrt(2))
        rates.append((1 - found.share) * upper + found.share * lower)
    assert 0.9 * 0.02 <= np.mean(rates) <= 0.02


@pytest.mark.parametrize(
    ("scores", "part"),
    [([9, 8, 0, 1, 2, 3], 1 / 2), ([9, 0, 1, 8, 2, 3], 1), ([0, 1, 2, 9, 8, 3], 1)],
    ids=["both of the large group", "one of it", "none of it"],
)
def test_the_part_of_the_capacity_that_large_groups_leave(scores, part):
    """Two of six items are above the capacity; the first three of them are one group."""
    sample = CalibrationSample(np.array(scores, float), groups=np.array([0, 0, 0, 1, 2, 3]))
    (found,) = Terms()._calibrations([sample], Capacity.fraction(Fraction(1, 3)))
    assert float(found._part_of_capacity()) == pytest.approx(part)


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


@pytest.mark.parametrize("guarantee", ["expected", "confident", "simultaneous"])
@pytest.mark.parametrize("sizes_differ", [False, True])
def test_one_item_of_each_group_sets_the_threshold(guarantee, sizes_differ):
    """What is drawn by lot are independent items, for which the rule of single items is exact.

    If sizes differ, with the part of the capacity that large groups leave.
    """
    rng = np.random.default_rng(3)
    scores, of, ids = rng.normal(size=2_000), np.repeat(np.arange(500), 4), np.arange(2_000)
    of[-1] = 0 if sizes_differ else of[-1]
    drawn = one_of_each(scores, of, ids)
    assert_array_equal(np.sort(of[drawn]), np.arange(500))
    options = {"capacity": TENTH, "guarantee": guarantee}
    grouped = calibrate_threshold(scores, **options, groups=of, ids=ids)
    above = scores >= np.sort(scores)[-200]
    part = min((np.bincount(of, above) / np.bincount(of)).mean() / above.mean(), 1)
    kept = Capacity.fraction(part / 10 if sizes_differ else 0.1)
    alone = calibrate_threshold(scores[drawn], kept, guarantee=guarantee, ids=ids[drawn])
    assert grouped.value == alone.value
    assert grouped.share == pytest.approx(alone.share, abs=1e-6)
    shuffled = rng.permutation(2_000)
    again = calibrate_threshold(scores[shuffled], **options, groups=of[shuffled], ids=ids[shuffled])
    assert again == grouped


def test_groups_of_one_size_use_the_whole_capacity():
    """An item of a new group is flagged at 5 % on average: the standard error is 0.7 % of that."""
    rates, of = [], np.arange(150).repeat(4)
    for seed in range(1_500):
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=150).repeat(4) + rng.normal(size=600)
        known = {"groups": of, "ids": np.arange(600), "random_state": seed}
        found = calibrate_threshold(scores, Capacity.fraction(0.05), **known)
        upper, lower = norm.sf([found.value, found.lower_value], scale=np.sqrt(2))
        rates.append((1 - found.share) * upper + found.share * lower)
    assert abs(np.mean(rates) / 0.05 - 1) <= 4 * np.std(rates) / 0.05 / np.sqrt(1_500)


def one_of_each(scores, groups, ids):
    """Return the positions of the drawn items."""
    sample = CalibrationSample(np.arange(scores.size) * 1.0, hash_ids(ids), groups=groups)
    return sample.one_of_each_group(0).scores.astype(int)


def test_every_item_of_a_group_is_drawn_as_often():
    """Over 3,000 samples, each of three items is drawn within four standard errors of a third."""
    of, counts = np.repeat(np.arange(30), 3), np.zeros(3)
    for trial in range(100):
        drawn = one_of_each(of, of, np.arange(90) + 90 * trial)
        counts += np.bincount(drawn % 3, minlength=3)
    assert np.all(np.abs(counts / 3_000 - 1 / 3) < 4 * np.sqrt(2 / 9 / 3_000))


def test_too_few_groups_are_named():
    """The sample size is counted in groups: 60 items of six groups are six."""
    scores, of = np.arange(60.0), np.repeat(np.arange(6), 10)
    for guarantee in ("expected", "plug-in", "confident"):
        with pytest.warns(InsufficientCalibrationWarning, match="calibration groups than 6"):
            threshold = calibrate_threshold(scores, TENTH, guarantee=guarantee, groups=of)
        assert threshold.value == np.inf
        assert threshold.k == -1


def test_what_is_not_possible_with_groups():
    """Batches, missing groups and wrong numbers of them are refused with the reason."""
    scores, of = np.arange(60.0), np.repeat(np.arange(30), 2)
    with pytest.raises(ValueError, match="next-batch' and groups cannot be combined"):
        calibrate_threshold(scores, Capacity.count(1, per=10), guarantee="next-batch", groups=of)
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
        ids = np.arange(2_000)
        grouped = calibrate_threshold(scores, **options, groups=of, ids=ids)
        drawn = one_of_each(scores, of, ids)
        options["y"] = is_rare[drawn]
        alone = calibrate_threshold(scores[drawn], **options, ids=ids[drawn])
        assert (grouped.value, grouped.tie_key) == (alone.value, alone.tie_key)


@quiet
def test_the_lots_of_a_walk_are_others_than_those_that_drew_its_items(monkeypatch):
    """The drawn item of a group has the lowest lot; hits turned by that lot would be too many.

    Uniform lots of 500 hits have a mean of 0.5, with a standard error of 0.013.
    """
    seen = []
    monkeypatch.setattr(
        terms, "confident_k_by_walking", lambda *_, lots, **__: seen.append(lots) or 0
    )
    calibrate_threshold(
        np.arange(4_000.0), Capacity.multiple(3), y=np.arange(4_000) % 8 < 4, rare_label=True,
        guarantee="confident", groups=np.arange(4_000) // 4, ids=np.arange(4_000),
    )  # fmt: skip
    assert seen[0].size == 500
    assert abs(seen[0].mean() - 0.5) < 0.06


def test_segments_keep_their_groups():
    """A group that lies in two segments is a smaller group in each of them."""
    sample = CalibrationSample(
        np.arange(6.0), segments=np.array([0, 0, 1, 1, 1, 0]), groups=np.array([0, 0, 0, 1, 1, 2])
    )
    assert_array_equal(sample.within(0).groups, [0, 0, 2])


def test_one_id_for_all_items_of_a_group_draws_no_certain_place():
    """Lots are equal then. In tables in the order of scores, the first rows are the lowest."""
    of, places = np.repeat(np.arange(2_000), 4), np.tile(np.arange(4.0), 2_000)
    sample = CalibrationSample(places, hash_ids(of), groups=of)
    drawn = sample.one_of_each_group(seed=0).scores
    assert_array_equal(np.bincount(drawn.astype(int)) > 400, np.ones(4, dtype=bool))


def test_lots_have_nothing_to_do_with_rows_that_come_back():
    """Rows without ids, from a small world: the lots of a calibration go by position.

    Each group is one of five pairs of rows, a high and a low one. Under the worst of 200 seeds, the
    hash of the low row comes first in every pair. If it drew the item of a group, it would be the
    low one in every calibration. All calibrations, in all orders of the rows, are counted: the
    share in which the rate exceeds the capacity is exact.
    """
    highs, lows = np.arange(5, 10), np.arange(5)
    firsts = [
        np.count_nonzero(lots_of(hash_ids(lows, seed=s)) < lots_of(hash_ids(highs, seed=s)))
        for s in range(200)
    ]
    seed, c, error = int(np.argmax(firsts)), Capacity.fraction(0.5), 0.25
    assert max(firsts) == 5
    every, exceeded = np.arange(10.0), []
    for pairs in product(range(5), repeat=2):
        rows = np.array([row for pair in pairs for row in (highs[pair], lows[pair])])
        for order in permutations(range(4)):
            here = np.array(order)
            keys, groups = hash_ids(rows[here], seed=seed), np.array([0, 0, 1, 1])[here]
            sample = CalibrationSample(rows[here] * 1.0, keys, groups=groups, keyed_by_ids=False)
            (found,) = Terms("confident", 1 - error, seed=seed).thresholds([sample], c)
            rate = found.flag_with_keys(every, hash_ids(every, seed=seed).__getitem__).mean()
            exceeded.append(rate > 0.5)
    assert 0 < np.mean(exceeded) <= error
