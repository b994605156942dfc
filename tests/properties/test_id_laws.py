"""An id has one key: alone and in a batch, in every container that can hold it."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from shortlist import Capacity
from shortlist._core.ids import check_id, check_ids, hash_ids
from shortlist.online import QuantileTracker
from shortlist.thresholds import select


def keys_of(ids):
    """Return the keys of ids as users pass them."""
    return hash_ids(check_ids(ids, len(ids)))


def check_alike(containers):
    """Check that every container gives its ids the keys that they have alone."""
    expected = None
    for name, make in containers.items():
        ids = make()
        keys = keys_of(ids)
        expected = keys if expected is None else expected
        assert_array_equal(keys, expected, err_msg=name)
        rows = np.arange(len(ids))[::-1]
        assert_array_equal(keys_of(ids[::-1]), expected[rows], err_msg=f"{name}, reversed")
        alone = [keys_of(ids[i : i + 1])[0] for i in range(len(ids))]
        assert_array_equal(alone, expected, err_msg=f"{name}, alone")


INT64 = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(INT64, min_size=1, max_size=8))
def test_whole_numbers(ids):
    """Python, NumPy, pandas, polars and Arrow agree on whole numbers of 64 bits."""
    check_alike(
        {
            "list": lambda: ids,
            "tuple": lambda: tuple(ids),
            "NumPy numbers": lambda: [np.int64(id) for id in ids],
            "objects": lambda: np.array([*ids, None], dtype=object)[:-1],
            "int64": lambda: np.array(ids, dtype=np.int64),
            "pandas": lambda: pd.Series(ids, dtype="int64", index=range(5, 5 + len(ids))),
            "index": lambda: pd.Index(ids, dtype="int64"),
            "nullable": lambda: pd.Series(ids, dtype="Int64"),
            "array": lambda: pd.array(ids, dtype="Int64"),
            "pandas Arrow": lambda: pd.Series(ids, dtype="int64[pyarrow]"),
            "category": lambda: pd.Series(ids, dtype="int64").astype("category"),
            "polars": lambda: pl.Series(ids, dtype=pl.Int64),
            "Arrow": lambda: pa.array(ids, type=pa.int64()),
            "Arrow in chunks": lambda: pa.chunked_array([pa.array(ids, type=pa.int64())]),
            "masked": lambda: np.ma.masked_array(np.array(ids, dtype=np.int64)),
        }
    )


@given(st.lists(st.none() | INT64, min_size=1, max_size=8))
def test_gaps_among_whole_numbers_change_no_other_value(values):
    """Rows with a gap are hashed alike in every container; ids must not have one."""
    mask = [value is None for value in values]
    filled = np.array([0 if value is None else value for value in values], dtype=np.int64)
    containers = [
        values,
        [pd.NA if value is None else value for value in values],
        [float("nan") if value is None else value for value in values],
        pd.Series(values, dtype="Int64"),
        pd.Series(values, dtype="int64[pyarrow]"),
        pl.Series(values, dtype=pl.Int64),
        pa.array(values, type=pa.int64()),
        np.ma.masked_array(filled, mask),
    ]
    for container in containers:
        assert_array_equal(hash_ids(container), hash_ids(values))
        if any(mask):
            with pytest.raises(ValueError, match="ids must be whole numbers or texts"):
                check_ids(container, len(values))


@given(st.lists(st.text("ab7 é\U0001f600", max_size=6), min_size=1, max_size=8))
def test_texts(ids):
    """Texts of any length and script."""
    check_alike(
        {
            "list": lambda: ids,
            "objects": lambda: np.array(ids, dtype=object),
            "NumPy": lambda: np.array(ids),
            "NumPy texts": lambda: [np.str_(id) for id in ids],
            "StringDType": lambda: np.array(ids, dtype=np.dtypes.StringDType()),
            "pandas": lambda: pd.Series(ids, dtype=object),
            "string": lambda: pd.Series(ids, dtype="string"),
            "pandas Arrow": lambda: pd.Series(ids, dtype="string[pyarrow]"),
            "category": lambda: pd.Series(ids, dtype="category"),
            "polars": lambda: pl.Series(ids),
            "polars category": lambda: pl.Series(ids, dtype=pl.Categorical),
            "Arrow": lambda: pa.array(ids),
            "masked": lambda: np.ma.masked_array(np.array(ids)),
        }
    )


MOMENTS = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2250, 1, 1))


@given(st.lists(st.none() | MOMENTS, min_size=1, max_size=6))
def test_moments_in_rows(moments):
    """A column of moments is hashed alike in any unit."""
    expected = hash_ids(np.array(moments, dtype="M8[us]"))
    for container in (
        np.array(moments, dtype="M8[us]").astype("M8[ns]"),
        pd.Series(np.array(moments, dtype="M8[us]")),
        pd.Series(np.array(moments, dtype="M8[us]").astype("M8[ns]")),
        pl.Series(moments, dtype=pl.Datetime("us")),
        pl.Series(moments, dtype=pl.Datetime("ns")),
    ):
        assert_array_equal(hash_ids(container), expected)
    missing = [moment is None for moment in moments]
    assert_array_equal(expected == hash_ids([None]), missing)


@given(st.lists(st.booleans(), min_size=1, max_size=6))
def test_truths(ids):
    """True is 1 and False is 0, as in Python."""
    check_alike(
        {
            "bool": lambda: ids,
            "int": lambda: [int(id) for id in ids],
            "NumPy": lambda: np.array(ids),
            "boolean": lambda: pd.Series(ids, dtype="boolean"),
            "polars": lambda: pl.Series(ids),
        }
    )


@given(st.integers(2**63, 2**70) | st.integers(-(2**70), -(2**63) - 1))
def test_numbers_beyond_64_bits(number):
    """They are neither cut to 64 bits nor equal to a small number."""
    assert keys_of([number])[0] == keys_of(np.array([number], dtype=object))[0]
    cut = (number + 2**63) % 2**64 - 2**63
    assert keys_of([number])[0] != keys_of([cut])[0]
    if 0 <= number < 2**64:
        assert keys_of([number])[0] == keys_of(np.array([number], dtype=np.uint64))[0]
        assert keys_of([number])[0] == keys_of(pl.Series([number], dtype=pl.UInt64))[0]


def test_which_values_are_the_same():
    """Equal numbers are one value; a text is another one than the number it shows."""
    same = [7, 7.0, np.int8(7), np.float32(7), Decimal("7"), Decimal("7.00"), np.uint64(7)]
    assert len(set(hash_ids(same))) == 1
    assert keys_of(["7"])[0] == keys_of([b"7"])[0]
    different = [7, "7", "7.0", 7.5, -7, 2**64 + 7, "Decimal('7')", None, (7,), 10**400]
    assert len(set(hash_ids(different))) == len(different)


def test_keys_stay_as_they_are():
    """Saved models compare keys with those of calibration."""
    for ids, exact in {
        (7, -1, 2**40): [0.7519681629775763, 0.3477350768887928, 0.46964033949829465],
        ("7", "case 17"): [0.09370286907038383, 0.014692658909840506],
        (0.5, -2.25): [0.13493010071346623, 0.8603540752451918],
    }.items():
        assert hash_ids(ids, seed=3).tolist() == exact
        assert hash_ids(np.array(ids), seed=3).tolist() == exact


@pytest.mark.parametrize(
    "ids",
    [
        pd.Series([2**53 + 1, None]),
        pd.Series([1.0, 2.0]),
        np.array([7], dtype=np.float32),
        [1, 2.0],
        ["a", None],
        [Decimal(7)],
        [datetime.date(2024, 1, 1)],
        pd.Series(pd.date_range("2024-01-01", periods=2)),
        pl.Series([datetime.date(2024, 1, 1)]),
        [(1, "a")],
    ],
)
def test_ids_are_whole_numbers_or_texts(ids):
    """Floats may have been rounded, and other values differ between containers."""
    with pytest.raises(ValueError, match=r"whole numbers or texts; got .*read ids as texts"):
        select(np.zeros(len(ids)), Capacity.count(1), ids=ids)


@pytest.mark.parametrize("make", [np.int64, np.uint8, int])
def test_controllers_accept_numpy_ids(make):
    """1 and np.int64(1) are the same id, alone, in an array and in a saved state."""
    tracker = QuantileTracker(Capacity.fraction(0.1), calibration_scores=np.arange(100.0))
    first = tracker.decide(1e6, id=make(1))
    assert tracker.decide(0.0, id=1).reason == "seen before"
    again = tracker.decide_many([0.0, 0.0], ids=np.array([1, 1], dtype=np.int32))
    assert again.flagged.tolist() == [first.flag] * 2
    copy = type(tracker).from_state(tracker.state())
    assert copy.decide(0.0, id=make(1)).reason == "seen before"
    assert type(check_id(make(1))) is int
    assert type(check_id(np.str_("a"))) is str


@pytest.mark.parametrize("id", [True, np.bool_(True), 1.0, None, np.float64(1), b"a", np.ma.masked])
def test_controllers_refuse_other_ids(id):
    """JSON has no such ids, or could mix them up."""
    with pytest.raises(TypeError, match="string or an integer"):
        check_id(id)
