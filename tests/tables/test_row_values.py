"""Single rows are converted as whole columns are."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.exceptions import TableError
from shortlist.tables.column_format import ColumnFormat
from shortlist.tables.row_values import RowValues
from shortlist.tables.schema import Feature, TableSchema

KINDS = {"n": "numeric", "b": "boolean", "c": "categorical", "d": "date"}
TYPES = {"n": pa.float64(), "b": pa.bool_(), "c": pa.string(), "d": pa.string()}
SCHEMA = TableSchema(tuple(Feature(*pair) for pair in KINDS.items()), "y", "yes")
VALUES = RowValues(SCHEMA)

dates = st.one_of(
    st.dates(min_value=np.datetime64("1678-01-01").item()).map(str),
    st.datetimes(min_value=np.datetime64("1678-01-01T00").item()).map(str),
    st.datetimes(
        min_value=np.datetime64("1700-01-01T00").item(),
        max_value=np.datetime64("2250-01-01T00").item(),
        timezones=st.timezones(),
    ).map(lambda moment: moment.replace(microsecond=0).isoformat()),
    st.sampled_from(["31.05.2024", "2024/05/31 10:20", " 2024-05-31 ", "2024-05-31T10:20:30Z"]),
)
rows = st.tuples(
    st.none() | st.floats(allow_infinity=False, allow_nan=False),
    st.none() | st.booleans(),
    st.none() | st.text(max_size=8) | st.sampled_from([" a", "\u2003", "(missing)"]),
    st.none() | dates,
)


def by_columns(row):
    """Convert a row as a table of one row."""
    columns = {name: pa.array([v], TYPES[name]) for name, v in zip(KINDS, row, strict=True)}
    return SCHEMA.convert(pa.table(columns)).X.iloc[0].tolist()


@given(row=rows)
def test_a_row_is_converted_as_a_table(row):
    """Bit for bit, whatever way a value takes; what raises an error there raises it here."""
    try:
        expected = by_columns(row)
    except ValueError:  # years that pandas cannot hold, and numbers that no learner can take
        with pytest.raises(ValueError, match=r"date|bounds|beyond"):
            VALUES(row)
        return
    for ours, theirs in zip(VALUES(row), expected, strict=True):
        assert ours == theirs or (math.isnan(ours) and math.isnan(theirs))


def test_a_date_that_is_none_is_an_error():
    """It has the form of a date, but there is no such day."""
    with pytest.raises(TableError, match="'d'"):
        VALUES((1.0, True, "a", "2024-02-30"))


def test_each_value_needs_its_column():
    """A row with too few values is refused."""
    with pytest.raises(ValueError, match="shorter"):
        VALUES((1.0, True))


def test_words_for_missing_take_the_way_of_columns():
    """A schema may know that -999 and "keine" mean missing; such values are not converted here."""
    format = ColumnFormat(decimal=",", thousands=".", missing=("-999", "1.000,5", "keine"))
    features = (Feature("n", "numeric", format), Feature("c", "categorical", format))
    values = RowValues(TableSchema(features, "y", "yes"))
    assert values((-998.0, "eine")) == [-998.0, "eine"]
    for number in (-999.0, 1000.5):
        missing, text = values((number, "Keine"))
        assert (math.isnan(missing), text) == (True, "(missing)")
