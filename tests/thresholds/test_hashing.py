"""Tie keys belong to the item: not to its row, its batch or its container."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse, stats

from shortlist._hashing import hash_ids, hash_rows


def test_keys_are_uniform():
    """Consecutive integers, and short texts, spread evenly over [0, 1)."""
    assert stats.kstest(hash_ids(np.arange(20_000)), "uniform").pvalue > 0.001
    assert stats.kstest(hash_ids([f"id{i}" for i in range(5_000)]), "uniform").pvalue > 0.001
    rows = np.random.default_rng(0).integers(0, 50, size=(20_000, 3))
    assert stats.kstest(hash_rows(np.unique(rows, axis=0)), "uniform").pvalue > 0.001


def test_keys_depend_on_the_seed():
    """Another seed gives unrelated keys."""
    one, two = hash_ids(np.arange(5_000), seed=1), hash_ids(np.arange(5_000), seed=2)
    assert abs(np.corrcoef(one, two)[0, 1]) < 4 / np.sqrt(5_000)


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame, pl.DataFrame, sparse.csr_array])
def test_a_row_has_one_key_in_every_container(container):
    """Arrays, frames and sparse matrices agree on numeric rows, in batches and alone."""
    table = np.random.default_rng(0).integers(0, 3, size=(20, 4)).astype(float)
    keys = hash_rows(container(table))
    assert_array_equal(keys, hash_rows(table))
    assert_array_equal(keys[5:6], hash_rows(table[5:6]))


def test_rows_of_any_type_can_be_hashed():
    """Strings, missing values, dates and nullable integers all count."""
    frame = pd.DataFrame(
        {
            "name": ["a", "b", "a", None],
            "day": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-01", None]),
            "count": pd.array([1, 2, 1, pd.NA], dtype="Int64"),
            "amount": [1.5, np.nan, 1.5, np.nan],
        }
    )
    keys = hash_rows(frame)
    assert keys[0] == keys[2]
    assert len(set(keys)) == 3
    assert_array_equal(keys[1:2], hash_rows(frame.iloc[1:2]))
    mixed = [3, "three", datetime.date(2024, 1, 3), 3.5, None]
    assert len(set(hash_ids(np.array(mixed, dtype=object)))) == 5


def test_column_order_matters():
    """Swapping two values makes another row."""
    assert hash_rows([[1, 2]])[0] != hash_rows([[2, 1]])[0]


def test_texts_can_be_rows():
    """A list of documents is a table with one column."""
    assert hash_rows(["spam", "ham", "spam"])[0] == hash_rows(["spam"])[0]
