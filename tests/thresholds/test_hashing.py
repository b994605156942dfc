"""Tie keys belong to the item: not to its row, its batch or its container."""

import datetime
import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse, stats

from shortlist._core.ids import columns_of, hash_ids, hash_rows


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
def test_a_row_has_the_same_key_alone_and_in_a_batch(container):
    """In every container."""
    table = np.random.default_rng(0).integers(0, 3, size=(20, 4)).astype(float)
    keys = hash_rows(container(table))
    assert len(set(keys)) > 10
    assert_array_equal(keys[5:6], hash_rows(container(table[5:6])))


def test_sparse_and_dense_rows_agree():
    """Stored zeros or none, any format."""
    table = np.random.default_rng(0).integers(0, 3, size=(50, 7)).astype(float)
    stored_zero = sparse.csr_array(table)
    stored_zero.data[:5] = 0
    once = sparse.csr_array(table)
    halves, columns = (np.repeat(each, 2) for each in (once.data / 2, once.indices))
    stored_twice = sparse.csr_array((halves, columns, 2 * once.indptr), table.shape)
    for matrix in (once, sparse.coo_matrix(table), stored_zero, stored_twice):
        assert_array_equal(hash_rows(matrix), hash_rows(matrix.toarray()))
    assert stored_twice.nnz == 2 * once.nnz  # it is left as it is


def test_wide_sparse_rows_are_not_made_dense():
    """Ten million columns would not fit otherwise."""
    wide = sparse.random_array((1000, 10_000_000), density=1e-6, rng=0, format="csr")
    assert len(set(hash_rows(wide))) > 900


def test_columns_are_known_by_name():
    """Frames with their columns in another order hold the same rows."""
    frame = pd.DataFrame({"a": [1, 2], "b": [3.5, 4.5], "c": ["x", "y"]})
    assert_array_equal(hash_rows(frame), hash_rows(frame[["c", "a", "b"]]))
    assert_array_equal(hash_rows(frame), hash_rows(pl.from_pandas(frame)))


@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame, np.asarray, sparse.csr_array])
def test_rows_are_hashed_as_those_that_were_learned_from(container):
    """An array gets the names of the frame, and a frame gets numbers like the array."""
    table = np.random.default_rng(0).integers(0, 3, size=(50, 3)).astype(float)
    frame = pd.DataFrame(table, columns=["a", "b", "c"])
    named = {"schema": ["a", "b", "c"]} if container is pl.DataFrame else {}
    named = {"columns": ["a", "b", "c"]} if container is pd.DataFrame else named
    rows = container(table, **named)
    for learned in (frame, table):
        assert_array_equal(hash_rows(rows, columns=columns_of(learned)), hash_rows(learned))


@pytest.mark.parametrize("make", [lambda v: pd.array(v, dtype="Int64"), pl.Series])
def test_large_integers_survive_a_missing_neighbour(make):
    """2**53 + 1 does not fit a float."""
    numbers = [2**53 + 1, 2**53, None]
    frame = pd.DataFrame if make is not pl.Series else pl.DataFrame
    keys = hash_rows(frame({"id": make(numbers)}))
    assert len(set(keys)) == 3
    assert keys[0] == hash_rows(frame({"id": make(numbers[:1])}))[0]


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
    cells = np.empty(2, dtype=object)
    cells[:] = [np.arange(3), np.arange(4)]
    assert len(set(hash_ids(cells))) == 2
    mixed = [3, "three", datetime.date(2024, 1, 3), 3.5, None]
    assert len(set(hash_ids(np.array(mixed, dtype=object)))) == 5


def test_column_order_matters():
    """Swapping two values makes another row, also if they are the columns' numbers."""
    assert hash_rows([[1, 2]])[0] != hash_rows([[2, 1]])[0]
    rows = np.array(list(itertools.product(range(3), repeat=3)))
    for table in (rows, sparse.csr_array(rows), pd.DataFrame(rows)):
        assert np.unique(hash_rows(table)).size == len(rows)


def test_texts_can_be_rows():
    """A list of documents is a table with one column."""
    assert hash_rows(["spam", "ham", "spam"])[0] == hash_rows(["spam"])[0]


def test_texts_that_are_no_text_have_keys():
    """Half of a pair of surrogates, as undecodable bytes become, has no other encoding."""
    halves = hash_ids(["\ud800", "\ud801"])
    assert np.unique(halves).size == 2
