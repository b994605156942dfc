"""What looks odd in a table."""

import numpy as np
import pandas as pd
import pytest

from shortlist.tables.columns import Feature
from shortlist.tables.inspect import notes_on
from shortlist.tables.schema import TableRows, TableSchema

N = 200
IS_RARE = np.arange(N) % 10 == 0


def notes(values, kind):
    """Return what is said about a column."""
    schema = TableSchema((Feature("x", kind),), "y", "yes")
    return notes_on(TableRows(pd.DataFrame({"x": values}), is_rare=IS_RARE), schema)


@pytest.mark.parametrize(
    ("values", "kind", "words"),
    [
        ([f"c{i}" for i in range(N)], "categorical", "looks like an id.*id='x'"),
        (np.arange(N) + 1.0, "numeric", "looks like an id"),
        ([f"a b c d {i}" for i in range(N)], "categorical", "free text.*drop='x'"),
        ([f"shop {i % 99}" for i in range(N)], "categorical", "different texts"),
        (np.where(IS_RARE, 2.0, 1.0), "numeric", "alone separates all rare rows.*drop='x'"),
        (np.where(IS_RARE, "late", "paid"), "categorical", "alone separates all rare rows"),
        (np.where(IS_RARE, 5.0, np.nan), "numeric", "filled only for rare rows"),
        (np.where(IS_RARE, np.nan, 1.0), "date", "empty only for rare rows"),
        (np.where(IS_RARE | (np.arange(N) == 1), 5.0, np.nan), "date", "nearly only for rare"),
        (np.where(IS_RARE, "closed", "(missing)"), "categorical", "filled only for rare rows"),
        (
            np.where(IS_RARE, 9 + np.arange(N) / 1e4, np.arange(N) / N * 9.05),
            "numeric",
            "separates nearly all",
        ),
        (np.where(np.arange(N) == 5, "b", np.where(IS_RARE, "b", "a")), "categorical", "nearly"),
    ],
)
def test_odd_columns_are_named(values, kind, words):
    """Ids, free text, and what was known only afterwards."""
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


def test_repeated_rows_and_ids_are_counted():
    """A case that trains and tests a model makes it look too good."""
    values = np.random.default_rng(0).normal(size=N)
    schema = TableSchema((Feature("x", "numeric"),), "y", "yes")
    twice = pd.DataFrame({"x": np.r_[values[:150], values[:50]]})
    said = notes_on(TableRows(twice, is_rare=np.tile(IS_RARE[:50], 4)), schema)
    assert "50 of 200 rows are copies" in said[0]
    assert "Equal rows count as one case" in said[0]
    mixed = TableRows(twice, is_rare=np.arange(N) >= 150)
    assert not any("copies" in note for note in notes_on(mixed, schema))
    assert notes_on(TableRows(pd.DataFrame({"x": values}), is_rare=IS_RARE), schema) == []
    ids = np.array([str(i // 2) for i in range(N)], dtype=object)
    named = TableSchema((Feature("x", "numeric"),), "y", "yes", "case")
    said = notes_on(TableRows(pd.DataFrame({"x": values}), ids, IS_RARE), named)
    assert "'case' is not unique: 100 of 200 rows" in said[0]
    ids = np.array(["1.23E+12", *map(str, range(N - 1))], dtype=object)
    said = notes_on(TableRows(pd.DataFrame({"x": values}), ids, IS_RARE), named)
    assert "A spreadsheet has shortened them" in said[0]
