"""The p-values behind the drift of a report, against exact enumeration."""

from itertools import product

import numpy as np
import pytest
from scipy.special import comb

from shortlist.tables.drift import homogeneity, judge_shifts

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


@pytest.mark.parametrize(("before", "after"), TABLES)
@pytest.mark.parametrize("level", [0.01, 0.05, 0.2])
def test_the_p_value_is_valid_in_small_tables(before, after, level):
    """Over all divisions, it is at most x with probability at most x."""
    every, probabilities = divisions(before, after)
    totals = np.add(before, after)
    p_values = np.array([homogeneity(totals - a, a) for a in every])
    assert probabilities[p_values <= level].sum() <= level + 1e-12


def test_a_certain_shift_by_hand():
    """Two of 24 choose 12 divisions are this far, and there are two bins and two sides."""
    assert homogeneity([12, 0], [0, 12]) == pytest.approx(4 / comb(24, 12))
    assert homogeneity([40, 0], [0, 40]) == pytest.approx(4 / comb(80, 40))


def test_columns_that_cannot_differ_have_a_p_value_of_one():
    """One bin only, or no rows on one side."""
    assert homogeneity([5, 0], [7, 0]) == 1
    assert homogeneity([5, 3], [0, 0]) == 1


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
