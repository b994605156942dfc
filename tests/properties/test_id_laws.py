"""An id has one key: alone and in a batch, in every container that can hold it."""

import datetime
from decimal import Decimal
from fractions import Fraction

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

UTC = datetime.UTC


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
            "Decimal": lambda: [Decimal(id) for id in ids],
            "Fraction": lambda: [Fraction(id) for id in ids],
        }
    )


@given(st.lists(st.none() | INT64, min_size=1, max_size=8))
def test_whole_numbers_with_gaps(ids):
    """A gap changes no other id; the gap itself is a missing id."""
    filled = [0 if id is None else id for id in ids]
    mask = [id is None for id in ids]
    check_alike(
        {
            "list": lambda: ids,
            "NA": lambda: [pd.NA if id is None else id for id in ids],
            "NaN": lambda: [float("nan") if id is None else id for id in ids],
            "nullable": lambda: pd.Series(ids, dtype="Int64"),
            "pandas Arrow": lambda: pd.Series(ids, dtype="int64[pyarrow]"),
            "polars": lambda: pl.Series(ids, dtype=pl.Int64),
            "Arrow": lambda: pa.array(ids, type=pa.int64()),
            "masked": lambda: np.ma.masked_array(np.array(filled, dtype=np.int64), mask),
        }
    )


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
def test_moments(ids):
    """A moment is the same id in any unit, in any time zone, and as any type."""
    aware = [None if id is None else id.replace(tzinfo=UTC) for id in ids]
    there = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    check_alike(
        {
            "datetime": lambda: ids,
            "in UTC": lambda: aware,
            "elsewhere": lambda: [None if id is None else id.astimezone(there) for id in aware],
            "Timestamp": lambda: [pd.Timestamp(id) for id in ids],
            "datetime64": lambda: [np.datetime64(id, "us") for id in ids],
            "us": lambda: np.array(ids, dtype="M8[us]"),
            "ns": lambda: np.array(ids, dtype="M8[us]").astype("M8[ns]"),
            "objects": lambda: np.array([*ids, 0], dtype=object)[:-1],
            "pandas us": lambda: pd.Series(np.array(ids, dtype="M8[us]")),
            "pandas ns": lambda: pd.Series(np.array(ids, dtype="M8[us]").astype("M8[ns]")),
            "pandas with a zone": lambda: (
                pd.Series(np.array(ids, dtype="M8[us]").astype("M8[ns]"))
                .dt.tz_localize("UTC")
                .dt.tz_convert("Asia/Tokyo")
            ),
            "index with a zone": lambda: pd.DatetimeIndex(np.array(ids, dtype="M8[us]"), tz="UTC"),
            "pandas Arrow": lambda: pd.Series(ids, dtype="timestamp[us][pyarrow]"),
            "polars": lambda: pl.Series(ids, dtype=pl.Datetime("us")),
            "polars ns": lambda: pl.Series(ids, dtype=pl.Datetime("ns")),
            "polars with a zone": lambda: pl.Series(aware, dtype=pl.Datetime("us", "UTC")),
            "Arrow": lambda: pa.array(ids, type=pa.timestamp("us")),
        }
    )


@given(st.lists(st.none() | st.dates(), min_size=1, max_size=6))
def test_days(ids):
    """A day is its midnight, even in the year 9999, which nanoseconds do not reach."""
    check_alike(
        {
            "date": lambda: ids,
            "datetime": lambda: [
                None if id is None else datetime.datetime(id.year, id.month, id.day) for id in ids
            ],
            "D": lambda: np.array(ids, dtype="M8[D]"),
            "s": lambda: np.array(ids, dtype="M8[s]"),
            "polars": lambda: pl.Series(ids, dtype=pl.Date),
            "Arrow": lambda: pa.array(ids, type=pa.date32()),
        }
    )


MANY_DAYS = datetime.timedelta(days=100_000_000)  # more nanoseconds than 64 bits hold


@given(st.lists(st.timedeltas(-MANY_DAYS, MANY_DAYS), min_size=1, max_size=6))
def test_lengths_of_time(ids):
    """Python, NumPy and polars agree."""
    check_alike(
        {
            "timedelta": lambda: ids,
            "us": lambda: np.array(ids, dtype="m8[us]"),
            "polars": lambda: pl.Series(ids, dtype=pl.Duration("us")),
        }
    )


@given(st.lists(st.booleans(), min_size=1, max_size=6))
def test_truths(ids):
    """True is 1 and False is 0, as in Python."""
    check_alike(
        {
            "bool": lambda: ids,
            "int": lambda: [int(id) for id in ids],
            "NumPy": lambda: np.array(ids),
            "NumPy truths": lambda: [np.bool_(id) for id in ids],
            "boolean": lambda: pd.Series(ids, dtype="boolean"),
            "polars": lambda: pl.Series(ids),
        }
    )


@given(st.lists(st.decimals(-1000, 1000, places=2), min_size=1, max_size=6))
def test_decimal_numbers(ids):
    """Decimals are hashed by their values in every container."""
    check_alike(
        {
            "Decimal": lambda: ids,
            "polars": lambda: pl.Series(ids, dtype=pl.Decimal(10, 2)),
            "Arrow": lambda: pa.array(ids, type=pa.decimal128(10, 2)),
            "float": lambda: [float(id) for id in ids],
            "float64": lambda: np.array(ids, dtype=np.float64),
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


def test_which_ids_are_the_same():
    """Equal numbers are one id; a text is another id than the number it shows."""
    same = [7, 7.0, np.int8(7), np.float32(7), Decimal("7"), Decimal("7.00"), Fraction(7)]
    assert len(set(keys_of(same))) == 1
    assert keys_of(["7"])[0] == keys_of([b"7"])[0]
    different = [7, "7", "7.0", 7.5, -7, 2**64 + 7, "Decimal('7')", None, (7,)]
    assert len(set(keys_of(different))) == len(different)
    assert keys_of([(7, "a")])[0] == keys_of([(np.int64(7), np.str_("a"))])[0]


def test_keys_stay_as_they_are():
    """Saved models compare keys with those of calibration."""
    for ids, exact in {
        (7, -1, 2**40): [0.7519681629775763, 0.3477350768887928, 0.46964033949829465],
        ("7", "case 17"): [0.09370286907038383, 0.014692658909840506],
        (0.5, -2.25): [0.13493010071346623, 0.8603540752451918],
        (np.datetime64("2024-01-01", "s"),): [0.18475035271970996],
    }.items():
        assert hash_ids(ids, seed=3).tolist() == exact
        assert hash_ids(np.array(ids), seed=3).tolist() == exact


@pytest.mark.parametrize(
    "ids",
    [
        pd.Series([2**53 + 1, None]),
        pd.Series([1.0, -(2.0**53)]),
        np.array([2.0**60]),
        [1, 2.0**53],
        np.array([2**24 + 1], dtype=np.float32),
        np.array([np.inf]),
        np.array([2.0**60], dtype=object),
    ],
)
def test_whole_numbers_that_have_become_floats_are_refused(ids):
    """They may have been rounded, and the error says how to read them."""
    with pytest.raises(ValueError, match=r"rounded.*read ids as texts"):
        check_ids(ids, len(ids))


def test_decisions_agree_over_containers():
    """The same moments select the same items from an index, a Series, a list and polars."""
    days = pd.date_range("2024-01-01", periods=1_000, freq="h")
    containers = [days, pd.Series(days), list(days), pl.Series(list(days)), days.to_numpy()]
    flags = [select(np.zeros(1_000), Capacity.count(400), ids=ids) for ids in containers]
    assert [int((flags[0] != other).sum()) for other in flags] == [0] * 5


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
