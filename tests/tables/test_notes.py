"""What looks odd in a table."""

import numpy as np
import pandas as pd
import pytest

from shortlist.tables import Feature, TableRows, TableSchema
from shortlist.tables._profile import notes_on

N = 200
IS_RARE = np.arange(N) % 10 == 0


def notes(values, kind):
    """Return what is said about a column."""
    schema = TableSchema((Feature("x", kind),), "y", "yes")
    return notes_on(TableRows(pd.DataFrame({"x": values}), is_rare=IS_RARE), schema)


@pytest.mark.parametrize(
    ("values", "kind", "words"),
    [
        ([f"c{i}" for i in range(N)], "categorical", "looks like an id.*--id x"),
        (np.arange(N) + 1.0, "numeric", "looks like an id"),
        (["5/6/2024"] * N, "categorical", "day and month are ambiguous"),
        (np.where(IS_RARE, 2.0, 1.0), "numeric", "alone separates all rare rows"),
        (np.where(IS_RARE, "late", "paid"), "categorical", "alone separates all rare rows"),
    ],
)
def test_odd_columns_are_named(values, kind, words):
    """Ids, dates that are none, and what was known only afterwards."""
    assert len(notes(values, kind)) == 1
    assert pd.Series(notes(values, kind)).str.contains(words).all()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.random.default_rng(0).normal(size=N), "numeric"),
        (np.r_[np.nan, np.arange(N - 1.0)], "numeric"),
        (["a", "b", "c", "d"] * 50, "categorical"),
        (np.arange(N) / 7, "date"),
    ],
)
def test_usual_columns_are_not(values, kind):
    """A measurement, gaps, a few categories, days in order."""
    assert notes(values, kind) == []


def test_a_few_rows_say_little():
    """Everything is different in a small table."""
    schema = TableSchema((Feature("x", "categorical"),), "y", "yes")
    assert notes_on(TableRows(pd.DataFrame({"x": ["a", "b"]})), schema) == []
