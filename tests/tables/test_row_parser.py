"""Single rows are parsed as whole columns are."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from shortlist.exceptions import TableError
from shortlist.tables.column_format import ColumnFormat
from shortlist.tables.columns import Feature
from shortlist.tables.schema import RowParser, TableSchema

KINDS = {"n": "numeric", "b": "boolean", "c": "categorical", "d": "date"}
TYPES = {"n": pa.float64(), "b": pa.bool_(), "c": pa.string(), "d": pa.string()}
SCHEMA = TableSchema(tuple(Feature(*pair) for pair in KINDS.items()), "y", "yes")
PARSER = RowParser(SCHEMA)

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


def parsed(row, parser=PARSER):
    """Parse a row as a line of JSON."""
    return parser.values(dict(zip(KINDS, row, strict=True)))


@given(row=rows)
def test_a_row_is_parsed_as_a_table_is(row):
    """Bit for bit, whatever way a value takes; what raises an error there raises it here."""
    try:
        expected = by_columns(row)
    except ValueError:  # years that pandas cannot hold, and numbers that no learner can take
        with pytest.raises(ValueError, match=r"must be a (date|finite number)"):
            parsed(row)
        return
    for ours, theirs in zip(parsed(row), expected, strict=True):
        assert ours == theirs or (math.isnan(ours) and math.isnan(theirs))


@pytest.mark.filterwarnings("ignore:'n' h(olds|ad no currency):UserWarning")
@given(text=st.sampled_from(["1.234,5", "12 %", "-7", "(3)", "$ 5", "n/a", "1:30", "1e3", "x", ""]))
@pytest.mark.parametrize("format", [ColumnFormat(), ColumnFormat(decimal=",", thousands=".")])
def test_a_text_is_the_number_of_a_column(text, format):
    """Or an error in both."""
    parser = RowParser(TableSchema((Feature("n", "numeric", format),), "y", "yes"))
    try:
        expected = Feature("n", "numeric", format).values(pa.array([text]))[0]
    except TableError:
        with pytest.raises(ValueError, match="finite number"):
            parser.values({"n": text})
        return
    assert_array_equal(parser.values({"n": text}), [expected])


def test_a_date_that_is_none_is_an_error():
    """It has the form of a date, but there is no such day."""
    with pytest.raises(ValueError, match="'d' must be a date"):
        parsed((1.0, True, "a", "2024-02-30"))


def test_each_column_must_be_there():
    """A row without one of them is refused."""
    with pytest.raises(ValueError, match="'c' is missing"):
        PARSER.values({"n": 1.0, "b": True})


def test_words_for_missing_are_those_of_the_column():
    """A schema may know that -999, a date and "keine" mean missing."""
    format = ColumnFormat(decimal=",", thousands=".", missing=("-999", "1.000,5", "keine"))
    dates = ColumnFormat(missing=("1900-01-01",))
    kinds = (("n", "numeric", format), ("c", "categorical", format), ("d", "date", dates))
    schema = TableSchema(tuple(Feature(*each) for each in kinds), "y", "yes")
    parser = RowParser(schema)
    assert parser.values({"n": -998, "c": "eine", "d": "1900-01-02"}) == (-998.0, "eine", -25566.0)
    for number in (-999, 1000.5, "1.000,5"):
        missing, text, day = parser.values({"n": number, "c": "Keine", "d": "1900-01-01"})
        assert (math.isnan(missing), text, math.isnan(day)) == (True, "(missing)", True)
    table = pa.table({"n": ["-999"], "c": ["Keine"], "d": ["1900-01-01"]})
    assert_array_equal(schema.convert(table).X[["n", "d"]].to_numpy(), [[math.nan, math.nan]])
