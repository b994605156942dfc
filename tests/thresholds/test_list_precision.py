"""Lists with a promised precision: the share of common items is small enough on average."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from shortlist import Capacity, CapacityClassifier, Worth, select
from shortlist._core.ranking import lift
from shortlist.thresholds.precision import CommonScores


def our_list(batch, common, most, precision):
    """Return how many items are listed: the first ones, since the batch is sorted."""
    found = select(
        batch, Capacity.count(most), worth=Worth.precision(precision), common_scores=common
    )
    return int(found.sum())


def cut_afterwards(batch, common, most, precision):
    """Ignore the capacity while looking, and cut the list then."""
    return min(our_list(batch, common, len(batch), precision), most)


def without_one(batch, common, most, precision):
    """Count the common scores alone, without the item itself."""
    above = (common[:, np.newaxis] >= batch).sum(axis=0)
    passed = above / len(common) <= (1 - precision) * np.arange(1, len(batch) + 1) / len(batch)
    return int(np.flatnonzero(passed[:most]).max(initial=-1)) + 1


def common_share(rule, *, n_calibration, n_common, rare, most, precision):
    """Return the exact mean share of common items on a list, over all orders of common scores.

    Common scores are 1, 2, ..., each as likely to be in the batch as in calibration; `rare` are the
    scores of the rare items of the batch.
    """
    n_scores = n_calibration + n_common
    total, n_worlds = Fraction(0), 0
    for in_batch in combinations(range(1, n_scores + 1), n_common):
        common = np.setdiff1d(np.arange(1, n_scores + 1), in_batch) * 1.0
        batch = np.sort(np.concatenate([in_batch, rare]))[::-1]
        listed = batch[: rule(batch, common, most, precision)]
        total += Fraction(int(np.isin(listed, in_batch).sum()), max(len(listed), 1))
        n_worlds += 1
    return total / n_worlds


WORLDS = [
    {"n_calibration": m, "n_common": n, "rare": rare, "most": most, "precision": q}
    for m, n in ((3, 3), (7, 2), (5, 4), (9, 3))
    for rare in ((), (99.5,), (99.5, 98.5), (4.5, 99.5, 6.5))
    for most in (1, 2, 5)
    for q in (0.2, 0.5, 0.6, 0.8)
]
# Twenty rare items just below the highest scores make a long list, of which the first is common.
WORLDS += [
    {"n_calibration": 7, "n_common": 4, "rare": (9.5,) * 20, "most": most, "precision": 0.5}
    for most in (1, 2)
]


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_the_share_of_common_items_is_small_enough_on_average(world):
    """In every world, over all orders; and so small as only the common items of a batch matter."""
    n_items = world["n_common"] + len(world["rare"])
    allowed = (1 - Fraction(str(world["precision"]))) * Fraction(world["n_common"], n_items)
    assert common_share(our_list, **world) <= allowed


@pytest.mark.parametrize("wrong", [cut_afterwards, without_one])
def test_each_correction_is_needed(wrong):
    """A list that is cut afterwards, or an item that is not counted itself, breaks the promise."""
    assert any(
        common_share(wrong, **world) > 1 - Fraction(str(world["precision"]))
        for world in reversed(WORLDS)
    )


def test_the_promise_can_be_used_up():
    """Where all items are common, half of all batches may have a list, and do."""
    world = {"n_calibration": 7, "n_common": 2, "rare": (), "most": 2, "precision": 0.5}
    assert common_share(our_list, **world) == Fraction(1, 2)


SCORES = st.lists(st.integers(0, 9), max_size=30).map(lambda s: np.array(s, dtype=float))


@given(SCORES, SCORES, st.integers(0, 12), st.integers(0, 20), st.integers(0, 2**32))
def test_a_precise_list_is_the_beginning_of_the_full_one(batch, common, most, level, seed):
    """However scores tie: never longer than the capacity, in the same order, by the rule."""
    capacity, precision = Capacity.count(most), level / 20
    worth = Worth.precision(precision)
    options = {"random_state": seed, "return_details": True}
    found = select(batch, capacity, worth=worth, common_scores=common, **options)
    k, n = int(found.flagged.sum()), batch.size
    assert k <= most
    assert_array_equal(found.flagged, select(batch, Capacity.count(k), random_state=seed))
    above = (common[:, np.newaxis] >= np.sort(batch)[::-1]).sum(axis=0)
    share = 1 - Fraction(level, 20)
    passed = [
        i for i in range(1, min(most, n) + 1)
        if Fraction(1 + int(above[i - 1]), common.size + 1) <= share * i / n
    ]  # fmt: skip
    assert k == max(passed, default=0)
    assert (found.reason == "not precise") == (k < min(most, n))


def test_a_quiet_day_says_why_its_list_is_short():
    """The capacity allows three, and only two are suspicious enough."""
    common, day = np.linspace(0, 0.5, 99), [0.9, 0.8, 0.1, 0.2]
    half = {"worth": Worth.precision(0.5), "common_scores": common}
    found = select(day, Capacity.count(3), **half, return_details=True)
    assert str(found).startswith("2 flags: 2 of 3 used, 1 left (not precise)")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, r"needs common_scores=.* use worth=0\.5"),
        ({"common_scores": [0.1], "values": [1, 2]}, "no values or efforts"),
        ({"common_scores": [0.1], "probe": 0.5}, "cannot be combined"),
        ({"common_scores": [np.nan]}, "common_scores must not be NaN"),
    ],
)
def test_what_a_precision_needs(options, match):
    """Common scores, and a list of single flags without probes."""
    with pytest.raises(ValueError, match=match):
        select([0.9, 0.2], Capacity.count(2), worth=Worth.precision(0.5), **options)


# --- models -----------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
MODEL = FrozenEstimator(LogisticRegression().fit([[0.0], [1.0]], [0, 1]))
TENTH = Capacity.fraction(0.1)


def items(n, n_rare, *, decimals=6):
    """Draw items of which some are rare, and higher."""
    is_rare = np.arange(n) < n_rare
    return np.round(RNG.normal(size=(n, 1)) + 2.5 * is_rare[:, np.newaxis], decimals), is_rare


@pytest.mark.parametrize("decimals", [6, 0])
def test_a_classifier_takes_the_common_items_that_it_held_back(decimals):
    """Half of a list of 20 is promised; ties are broken by ids, in calibration and in the batch."""
    shares, n_listed = [], 0
    for _ in range(150):
        X, y = items(400, 20, decimals=decimals)
        model = CapacityClassifier(MODEL, capacity=TENTH, rare_label=True)
        model.fit(X, y, ids=np.arange(400))
        new, is_rare = items(300, 9, decimals=decimals)
        found = model.select(
            new, Capacity.count(20), np.arange(400, 700), worth=Worth.precision(0.5)
        )
        shares.append((~is_rare[found]).mean() if found.any() else 0.0)
        n_listed += found.sum()
    assert np.mean(shares) <= 0.5 + 3 * np.std(shares) / np.sqrt(len(shares))
    assert 3 < n_listed / 150 < 18  # some, and fewer than the capacity


def test_keys_of_another_kind_break_no_ties():
    """With ids in calibration only, tied calibration items count against a new one."""
    X, y = items(400, 20, decimals=0)
    model = CapacityClassifier(MODEL, capacity=TENTH, rare_label=True)
    model.fit(X, y, ids=np.arange(400))
    with_ids, without = (model.rule_.common_scores(by_ids=each) for each in (True, False))
    assert_array_equal(with_ids.scores, without.scores)
    assert with_ids.keys.max() > 0
    assert not without.keys.any()
    tied = np.full(3, with_ids.scores[0])
    assert (without.n_before(tied, np.full(3, 0.5)) >= (with_ids.scores >= tied[0]).sum()).all()


def test_rows_that_are_alike_share_their_keys_and_are_no_evidence():
    """Without ids a row of the batch may equal a calibration row in score and key: a tie."""
    X, y = np.r_[np.zeros((99, 1)), np.ones((9, 1))], np.arange(108) >= 99
    model = CapacityClassifier(MODEL, capacity=TENTH, rare_label=True).fit(X, y)
    assert not model.select(np.zeros((20, 1)), worth=Worth.precision(0.5)).any()


def test_a_group_of_common_items_counts_once():
    """Copies of an item are no further evidence."""
    X, y = items(100, 10)
    model = CapacityClassifier(MODEL, capacity=TENTH, rare_label=True)
    model.fit(np.tile(X, (4, 1)), np.tile(y, 4), groups=np.tile(np.arange(100), 4))
    assert model.rule_.common_scores(by_ids=False).scores.size == 90


def test_models_of_folds_have_seen_the_items_that_lists_need():
    """They say what to do; new items with labels mend it, and items without labels do not."""
    X, y = items(400, 40)
    model = CapacityClassifier(LogisticRegression(), capacity=TENTH, rare_label=True, cv=3)
    model.fit(X, y)
    half = {"worth": Worth.precision(0.5)}
    with pytest.raises(ValueError, match=r"Hold items out .*or recalibrate with labels"):
        model.select(X, **half)
    new, is_rare = items(400, 40)
    with pytest.raises(ValueError, match="or recalibrate with labels"):
        model.recalibrate(new).select(X, **half)
    found = model.recalibrate(new, is_rare).select(X, **half, return_details=True)
    assert 0 < found.used <= found.allowed == 40


def test_segments_keep_their_limits_and_the_list_its_precision():
    """Each segment first, then the capacity for all, then the precision."""
    X, y = items(1_000, 50)
    team = np.arange(1_000) % 2
    limits = {0: Capacity.fraction(0.01), 1: Capacity.fraction(0.2)}
    model = CapacityClassifier(MODEL, capacity=TENTH, segment_capacities=limits, rare_label=True)
    model.fit(X, y, segments=team)
    full = model.select(X, segments=team)
    precise = model.select(X, segments=team, worth=Worth.precision(0.8))
    assert not (precise & ~full).any()
    assert 0 < precise.sum() < full.sum()
    scores = model.score_samples(X)
    assert scores[precise].min() > scores[full & ~precise].max()


def test_how_many_common_items_a_list_needs():
    """The least p-value of m items is 1 / (m + 1); 20 of 1,000 need 99 for a half."""
    few = CommonScores(np.zeros(98), np.zeros(98))
    assert few.fewest(20, 1_000, 0.5) == 99
    top = np.arange(20, 0, -1.0)
    lengths = [
        CommonScores(np.zeros(m), np.zeros(m)).length(top, np.zeros(20), 1_000, 0.5)
        for m in (98, 99)
    ]
    assert lengths == [0, 20]


# --- scores of two precisions -----------------------------------------------------------------


@pytest.mark.parametrize("types", [("f4", "f8"), ("f8", "f4")])
@pytest.mark.parametrize("score", [0.1, 0.3, 0.7])
def test_ties_count_against_new_items_in_any_precision(types, score):
    """All 99 common items have the score of the new one, whichever of them was rounded."""
    own, known = types
    batch, common = np.array([score] + [0.0] * 9, own), np.full(99, score, known)
    assert our_list(batch, common, 1, 0.5) == 0


def test_every_listed_item_passes_where_calibration_ties_more_items():
    """Ten common items: half of all lists may have one of them, although each has only these.

    Scores in single precision share a few cells, and the list is ordered by more digits.
    """
    rng, n_listed = np.random.default_rng(0), 0
    for _ in range(400):
        scores = (0.9999 + 1e-5 * rng.random(109)).astype(np.float32)
        keys, order = rng.random(109), np.argsort(-scores[:10].astype(float))
        common = CommonScores(lift(scores[10:]), keys[10:])
        n_listed += common.length(scores[order].astype(float), keys[order], 10, 0.5) > 0
    assert n_listed <= 200


def test_common_scores_that_would_not_be_used():
    """Without a promise they say nothing."""
    with pytest.raises(ValueError, match="would not be used"):
        select([0.9, 0.2], Capacity.count(1), common_scores=[0.1])
