"""The p-values behind the drift of a report, against exact enumeration."""

from itertools import product

import numpy as np
import pytest
from scipy.special import comb

from shortlist.tables.drift import _bound_of_bins, _homogeneity, _permutation_p_value, judge_shifts

TABLES = [
    ([7, 2, 1, 0], [2, 1, 2, 1]),
    ([20, 0, 0], [3, 1, 1]),
    ([5, 5], [0, 4]),
    ([30, 10, 1, 1], [4, 4, 0, 1]),
]


def divisions(before, after):
    """Return all counts after with the same totals, and their exact probabilities."""
    totals, n_after = np.add(before, after), sum(after)
    every = [
        counts
        for counts in product(*(range(total + 1) for total in totals))
        if sum(counts) == n_after
    ]
    ways = np.array([np.prod([comb(t, c) for t, c in zip(totals, a, strict=True)]) for a in every])
    return np.array(every), ways / comb(totals.sum(), n_after)


def chi_squared(totals, after):
    """Return the statistic of the table with these totals, as in a textbook."""
    after = np.asarray(after, dtype=float)
    shares = totals / totals.sum()
    n_after = after.sum(axis=-1, keepdims=True)
    n_before = totals.sum() - n_after
    expected, others = n_after * shares, n_before * shares
    return np.sum((after - expected) ** 2 * (1 / expected + 1 / others), axis=-1)


@pytest.mark.parametrize(("before", "after"), TABLES)
def test_random_divisions_give_the_exact_p_value(before, after):
    """Of all divisions with the same totals, as large a share shifts as much."""
    every, probabilities = divisions(before, after)
    totals = np.add(before, after)
    as_far = chi_squared(totals, every) >= chi_squared(totals, after) - 1e-9
    exact = probabilities[as_far].sum()
    found = [
        _permutation_p_value(np.array([before, after]), 999, np.random.default_rng(seed))
        for seed in range(100)
    ]
    # The standard error of one p-value is at most exact / sqrt(20), or sqrt(exact / 1000); of the
    # mean of a hundred it is a tenth. The estimate h / l is too large by at most 1 / 20.
    error = max(exact / np.sqrt(20), np.sqrt(exact / 1_000)) / 10
    assert exact - 4 * error <= np.mean(found) <= 1.05 * exact + 1 / 1_000 + 4 * error


@pytest.mark.parametrize(("before", "after"), TABLES)
@pytest.mark.parametrize("level", [0.01, 0.05, 0.2])
def test_the_bound_of_single_bins_is_valid(before, after, level):
    """Over all divisions, it is at most x with probability at most x."""
    every, probabilities = divisions(before, after)
    totals = np.add(before, after)
    bounds = np.array([_bound_of_bins(np.array([totals - a, a])) for a in every])
    assert probabilities[bounds <= level].sum() <= level + 1e-12


@pytest.mark.parametrize(("before", "after"), TABLES[:3])
@pytest.mark.parametrize("level", [0.01, 0.05, 0.2])
def test_the_p_value_is_valid_in_small_tables(before, after, level):
    """Over all divisions and random draws, it is at most x with probability at most x."""
    every, probabilities = divisions(before, after)
    totals = np.add(before, after)
    rng = np.random.default_rng(0)
    runs = 40
    at_most = np.array(
        [
            np.mean([_homogeneity(totals - a, a, 199, rng) <= level for _ in range(runs)])
            for a in every
        ]
    )
    # The draws add four standard errors of a mean over the divisions, each from 40 runs.
    error = np.sqrt(np.sum(probabilities**2 * at_most * (1 - at_most)) / runs)
    assert probabilities @ at_most <= level + 4 * error


def test_the_observed_division_counts_as_one():
    """No random division shifts as much as a certain shift, and the p-value is not zero."""
    counts = np.array([[12, 0], [0, 12]])
    assert _permutation_p_value(counts, 99, np.random.default_rng(0)) == 1 / 100
    # Two of 24 choose 12 divisions are this far: the bound of the bins is exact here, up to 2 x 2.
    assert _bound_of_bins(counts) == pytest.approx(4 / comb(24, 12))
    assert _homogeneity([12, 0], [0, 12], 99, np.random.default_rng(0)) == pytest.approx(
        1e-6 + 1 / 100
    )
    assert _homogeneity([40, 0], [0, 40], 99, np.random.default_rng(0)) == pytest.approx(
        4 / comb(80, 40)
    )


def test_columns_that_cannot_differ_have_a_p_value_of_one():
    """One bin only, or no rows on one side."""
    rng = np.random.default_rng(0)
    assert _homogeneity([5, 0], [7, 0], 99, rng) == 1
    assert _homogeneity([5, 3], [0, 0], 99, rng) == 1


def judged(*p_values):
    """Return which of several large shifts are named, and their adjusted p-values."""
    compared = [{"p_value": p, "psi": 1.0} for p in p_values]
    judge_shifts(compared)
    shifts = [each["shift"] != "none seen" for each in compared]
    return shifts, [each["adjusted_p_value"] for each in compared]


def test_many_tests_are_corrected_step_by_step():
    """The smallest p-value counts three times, the next twice, and none less than one before it."""
    shifts, adjusted = judged(0.0045, 0.003, 0.9)
    assert adjusted == pytest.approx([0.009, 0.009, 0.9])
    assert shifts == [True, True, False]
    shifts, adjusted = judged(0.004, 0.0045, 0.009)
    assert adjusted == pytest.approx([0.012, 0.012, 0.012])
    assert shifts == [False, False, False]
