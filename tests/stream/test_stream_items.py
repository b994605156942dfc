"""Parsing a line for a model, and what can be wrong with it."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from shortlist.service._models import LoadedModel
from shortlist.service.stream import LineReader
from shortlist.tables.read import open_table

GOOD = {"case": "c1", "amount": 12.5, "country": "ar", "opened": "2024-05-31", "vip": True}


@pytest.fixture
def reader(table_fit):
    """Return a reader for the model of the table."""
    return LineReader(LoadedModel(0, table_fit.model), id_field=None, time_field="at", entity=None)


def read(reader, **changed):
    """Read a valid line with some fields changed."""
    return reader.read(1, json.dumps(GOOD | changed).encode())


def test_rows_are_those_of_the_table(reader, table_fit, new_cases):
    """Each value is read as if it came from a file."""
    frame = pd.read_csv(new_cases).drop(columns="fraud")
    lines = frame.astype(object).where(frame.notna(), None).to_dict("records")
    items = [reader.read(i, json.dumps(line).encode()) for i, line in enumerate(lines)]
    assert [item.error for item in items if item.error] == []
    with open_table(new_cases) as source:
        rows = table_fit.model.schema.read(source)
    pd.testing.assert_frame_equal(reader._model.frame(items), rows.X)
    assert_array_equal([item.case_id for item in items], rows.ids)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"amount": "much"}, "'amount' must be a finite number; got 'much'."),
        ({"amount": "1.234,5"}, "or use decimal=',' if that is the decimal sign here"),
        ({"amount": True}, "'amount' must be a finite number"),
        ({"amount": 10**400}, "'amount' must be a finite number"),
        ({"amount": "1_000"}, "'amount' must be a finite number"),
        ({"amount": float("inf")}, "'amount' must be a finite number"),
        ({"amount": [1]}, "'amount' must be a finite number"),
        ({"vip": "perhaps"}, "'vip' must be true or false"),
        ({"vip": 3}, "'vip' must be true or false"),
        ({"opened": 17}, "'opened' must be a date"),
        ({"opened": "soon"}, "Use date_format='opened=...'"),
        ({"country": {}}, "'country' must be a string"),
        ({"country": "\ud800"}, "'country' must be a string"),
        ({"case": 1.5}, "'case' must be a string or a whole number"),
        ({"case": "\ud800"}, "'case' has characters that no text may have"),
        ({"case": "a\0"}, "'case' has characters that no text may have"),
        ({"case": " "}, "'case' is empty. Leave it out"),
        ({"case": True}, "'case' must be a string or a whole number"),
        ({"at": "yesterday"}, "is not a moment"),
        ({"at": True}, "at must be seconds"),
        ({"at": 1e300}, "at must be a moment within"),
    ],
)
def test_a_bad_value_is_named(reader, changed, message):
    """The error names the column, the value and what was expected."""
    assert message in read(reader, **changed).error


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"[1, 2]", b"7", b"null", b"\xff\xfe", b"[" * 100_000, b'{"case": "c1"}'],
    ids=["blank", "torn", "list", "number", "null", "not UTF-8", "deep", "nothing inside"],
)
def test_a_bad_line_is_an_error(reader, line):
    """An invalid line is reported in the item and raises nothing."""
    assert reader.read(1, line).error


def test_a_code_is_the_same_as_in_a_table(reader):
    """JSON has 7 and 7.0; both are the category that a text file has as 7."""
    assert {read(reader, country=code).values[1] for code in (7, 7.0, "7")} == {"7"}


def test_what_may_be_missing(reader):
    """Null is a missing value, as is NA in a number; the id is optional, and the moment is now."""
    gaps = GOOD | dict.fromkeys(("amount", "country", "opened", "vip", "case"))
    item = reader.read(1, json.dumps(gaps).encode(), 7.0)
    assert (item.error, item.case_id, item.at) == (None, None, 7.0)
    row = reader._model.frame([item]).iloc[0]
    assert np.isnan(row["amount"])
    assert row["country"] == "(missing)"
    assert np.isnan(read(reader, amount="NA").values[0])
    assert read(reader, amount=" 7 ").values[0] == 7
    assert "The column 'amount' is missing" in reader.read(1, b'{"case": "c1", "vip": true}').error


def test_ids_and_moments(reader, table_fit):
    """Numbers and strings are the same ids; moments are seconds or ISO 8601."""
    assert read(reader, case=17).case_id == read(reader, case="17").case_id == "17"
    assert read(reader, case=17).shown == 17
    assert read(reader, at=90).at == read(reader, at="1970-01-01T00:01:30Z").at == 90
    assert read(reader, at="1970-01-01T01:00:00+01:00").at == 0
    other = LineReader(
        LoadedModel(0, table_fit.model), id_field="key", time_field="when", entity=None
    )
    item = read(other, key="k", when=5)
    assert (item.case_id, item.at) == ("k", 5)
