"""Laws of tables: what one value becomes depends on nothing around it."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from shortlist.tables import flag_rows, select_rows
from shortlist.tables._column_guesses import guess_column
from shortlist.tables.columns import Feature

texts = st.lists(
    st.one_of(
        st.none(),
        st.sampled_from(
            ["1", "2.5", "-3e2", "true", "False", "2024-05-31", "a", "(missing)", " 7"]
        ),
    ),
    min_size=1,
    max_size=30,
)


def column(values):
    """Return texts as a column of a table."""
    return pa.chunked_array([pa.array(values, pa.string())])


@given(values=texts, cut=st.integers(0, 30))
def test_a_column_is_the_sum_of_its_pieces(values, cut):
    """Converted whole or in two chunks, under the kind that the whole column has."""
    guess = guess_column(column(values), "x")
    pieces = [part for part in (values[:cut], values[cut:]) if part]
    feature = Feature("x", guess.kind, guess.format)
    converted = [feature.values(column(part)) for part in pieces]
    whole = feature.values(column(values))
    assert_array_equal(np.concatenate(converted), whole)


@given(values=texts, seed=st.integers(0, 99))
def test_the_kind_does_not_depend_on_the_order(values, seed):
    """Nor on how often a value occurs."""
    shuffled = np.random.default_rng(seed).permutation(np.array(values + values[:1], dtype=object))
    shuffled_guess = guess_column(column(shuffled.tolist()), "x")
    assert shuffled_guess.kind == guess_column(column(values), "x").kind


@settings(max_examples=20)
@given(rows=st.lists(st.integers(0, 799), min_size=1, max_size=40, unique=True))
def test_a_row_gets_the_same_flag_in_any_company(rows, table_fit, new_cases):
    """Alone, among others, in another order: the decision is the same."""
    frame = pd.read_csv(new_cases)
    whole = _flags(table_fit.model, new_cases)
    some = new_cases.with_name("some.csv")
    frame.iloc[rows].to_csv(some, index=False)
    assert_array_equal(_flags(table_fit.model, some), whole[rows])


@settings(max_examples=10)
@given(count=st.integers(0, 59))
def test_the_list_has_exactly_the_length_asked_for(count, table_fit, new_cases):
    """And a longer list only adds cases at its end."""
    longest = [row["case"] for row in select_rows(table_fit.model, new_cases, count=40).rows]
    listed = [row["case"] for row in select_rows(table_fit.model, new_cases, count=count).rows]
    assert len(listed) == count
    shorter = min(len(listed), len(longest))
    assert listed[:shorter] == longest[:shorter]


def _flags(model, path: Path):
    file = io.BytesIO()
    flag_rows(model, path, file)
    return pd.read_csv(io.BytesIO(file.getvalue()))["flagged"].to_numpy()
