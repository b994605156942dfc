"""Which items are left out: drawn at random, so that they are like new ones."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom
from sklearn.linear_model import LogisticRegression

from shortlist import Capacity, CapacityClassifier, MulticlassCapacityClassifier
from shortlist._core.folds import random_parts
from shortlist.exceptions import InsufficientCalibrationWarning

repeated = pytest.mark.filterwarnings("ignore:The data were divided")


@st.composite
def worlds(draw):
    """Return strata, how to leave items out, and groups or None."""
    n = draw(st.integers(24, 60))
    n_strata = draw(st.integers(2, 3))
    rng = np.random.default_rng(draw(st.integers(0, 1_000)))
    strata = rng.permutation(np.arange(n) % n_strata)
    cv = draw(st.sampled_from([2, 3, 10, 0.25, 0.5]))
    groups = draw(st.sampled_from([None, 2]))
    return strata, cv, None if groups is None else rng.permutation(n) // groups


@repeated
@given(worlds(), st.integers(0, 1_000))
def test_every_part_learns_from_every_stratum(world, seed):
    """Nothing is learned from and left out, groups stay whole, folds leave each item out once."""
    strata, cv, groups = world
    parts = random_parts(strata, cv, np.random.default_rng(seed), groups)
    for learned_on, left_out in parts:
        assert sorted([*learned_on, *left_out]) == list(range(strata.size))
        assert set(strata[learned_on]) == set(strata)
        assert groups is None or not np.intersect1d(groups[learned_on], groups[left_out]).size
    n_units = strata.size if groups is None else groups.max() + 1
    sizes = [np.unique(left if groups is None else groups[left]).size for _, left in parts]
    if isinstance(cv, float):
        assert sizes == [round(cv * n_units)]
    else:
        assert sum(sizes) == n_units
        assert max(sizes) - min(sizes) <= 1


def test_all_subsets_are_equally_likely():
    """Of five items two are held out in ten ways, each in a tenth of the cases."""
    rng, n_draws = np.random.default_rng(0), 20_000
    held_out = np.stack([random_parts(np.zeros(5), 0.4, rng)[0][1] for _ in range(n_draws)])
    _, counts = np.unique(held_out, axis=0, return_counts=True)
    assert counts.size == 10
    # Chi-square with 9 degrees of freedom: above 33.7 with probability 1e-4.
    assert np.sum((counts - n_draws / 10) ** 2 / (n_draws / 10)) < 33.7


@repeated
def test_a_draw_that_leaves_nothing_to_learn_from_is_repeated_and_no_other():
    """Two rare items of six, in two folds: the twelve first folds with one of them, alike."""
    strata, rng = np.array([1, 1, 0, 0, 0, 0]), np.random.default_rng(0)
    drawn = [tuple(random_parts(strata, 2, rng)[0][1]) for _ in range(6_000)]
    allowed = [fold for fold in combinations(range(6), 3) if len({0, 1} & set(fold)) == 1]
    counts = np.array([drawn.count(fold) for fold in allowed])
    assert counts.sum() == len(drawn)
    # Chi-square with 11 degrees of freedom: above 37.4 with probability 1e-4.
    assert np.sum((counts - 6_000 / 12) ** 2 / (6_000 / 12)) < 37.4


SHARES = [(10, 2), (10, 3), (0.5, 3), (0.9, 6)]


@pytest.mark.filterwarnings("error:The data were divided")
@pytest.mark.parametrize(("cv", "n_rare"), SHARES)
def test_the_first_draw_is_like_any_other(cv, n_rare):
    """Where no warning says that it was repeated, as many rare items are left out as by chance.

    Held out at 0.9, three of ten would be left out too often otherwise: 0.79 of six instead of 0.9.
    """
    strata, rng = np.arange(60) < n_rare, np.random.default_rng(0)
    left_out, n_parts = [], 10 if cv == 10 else 1
    for _ in range(2_000):
        try:
            parts = random_parts(strata, cv, rng)
        except InsufficientCalibrationWarning:
            left_out += [[np.nan] * n_parts]
        else:
            assert len(parts) == n_parts
            left_out += [[strata[rows].sum() for _, rows in parts]]
    counts, size = np.array(left_out)[:, 0], 6 if cv == 10 else round(60 * cv)
    law = hypergeom(60, n_rare, size)
    for number in range(n_rare + 1):
        # Any draw that is not repeated has its own probability: four standard errors.
        share = np.mean(counts == number)
        assert share <= law.pmf(number) + 4 * (law.pmf(number) / 2_000) ** 0.5


def test_the_split_does_not_follow_items_drawn_from_the_same_seed():
    """Simulated items and the split often share the seed 0, and must not share their draws."""
    shuffled = np.random.default_rng(0).permutation(1_000)
    _, held_out = random_parts(np.zeros(1_000), 0.5, np.random.default_rng(0))[0]
    # Hypergeometric: 250 with a standard deviation of 7.9.
    assert abs(np.isin(held_out, shuffled[:500]).sum() - 250) < 5 * 7.9


@repeated
def test_a_stratum_that_nobody_belongs_to_is_passed_over():
    """Numbers of strata may have gaps."""
    ((kept, held_out),) = random_parts(np.array([0, 0, 2, 2]), 0.5, np.random.default_rng(0))
    assert (len(kept), len(held_out)) == (2, 2)


@repeated
def test_a_group_with_most_rare_items_can_be_left_out():
    """Groups count, not their items: the other one is enough to learn from."""
    groups = np.repeat(np.arange(10), [40, 1, 5, 5, 5, 5, 5, 5, 5, 5])
    parts = random_parts(groups < 2, 5, np.random.default_rng(0), groups)
    n_rare = sorted((groups[learned_on] < 2).sum() for learned_on, _ in parts)
    assert n_rare == [1, 40, 41, 41, 41]


def test_groups_that_cannot_be_divided_are_an_error():
    """All rare items belong to one group, which cannot be learned from and left out."""
    groups = np.repeat(np.arange(10), 3)
    with pytest.raises(ValueError, match="10 groups, which stay whole, cannot be divided so that"):
        random_parts(groups == 0, 5, np.random.default_rng(0), groups)


class CountsRare(LogisticRegression):
    """Learns as usual, and remembers how many rare items it has learned from."""

    def fit(self, X, y):
        """Fit, and count."""
        self.n_rare_ = y.sum()
        return super().fit(X, y)


TENTH = Capacity.fraction(0.1)
WRAPPED = [
    CapacityClassifier(CountsRare(), capacity=TENTH, cv=5),
    CapacityClassifier(CountsRare(), capacity=TENTH, cv=0.2),
    MulticlassCapacityClassifier(CountsRare(), capacities={1: TENTH}, cv=0.2),
]


@pytest.mark.parametrize("model", WRAPPED, ids=["folds", "share", "several classes"])
def test_the_number_of_rare_items_left_out_is_that_of_a_random_draw(model):
    """It varies as the hypergeometric law says; stratified parts would have six each time."""
    X = np.random.default_rng(0).normal(size=(100, 1))
    y = (np.arange(100) < 30).astype(int)
    counts = []
    for seed in range(300):
        fitted = model.set_params(random_state=seed).fit(X, y)
        first = fitted.estimators_[0] if model.cv == 5 else fitted.estimator_
        counts.append(30 - first.n_rare_)
    law = hypergeom(100, 30, 20)
    # Standard errors: of a mean 1.84 / sqrt(300) = 0.11, and of a variance about a twelfth of it.
    assert abs(np.mean(counts) - law.mean()) < 4 * 0.11
    assert abs(np.var(counts) / law.var() - 1) < 4 / 12
