"""Numbers, dates and truths as people write them."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist._core.files import to_plain
from shortlist.exceptions import TableError
from shortlist.tables import ReadOptions
from shortlist.tables._column_guesses import guess_column
from shortlist.tables.column_format import ColumnFormat, read_text, simple_numbers
from shortlist.tables.columns import Feature
from shortlist.tables.model_file import as_schema
from shortlist.tables.schema import TableSchema

FORMS = st.builds(
    ColumnFormat,
    decimal=st.sampled_from([".", ","]),
    percent=st.booleans(),
    unit=st.sampled_from(["", "kg"]),
    missing=st.sampled_from([(), ("-999",), ("refused", "-1,5"), ("0:30",)]),
    colons=st.sampled_from([0, 0, 1, 2]),
).flatmap(
    lambda format: st.sampled_from(
        [
            format,
            ColumnFormat(format.decimal, "," if format.decimal == "." else ".", format.percent),
        ]
    )
)
TEXTS = st.text(alphabet="0123456789.,:'+-−() %€$EURkgeinf\u00a0", max_size=9)

KNOWN = ["1.234,5", "(1,5)", "-999", "n/a", "12 %", "0.123", "1,23,456", "0:30", "-12:05:07.5"]


@given(st.lists(TEXTS | st.sampled_from(KNOWN)), FORMS)
def test_one_value_is_read_as_a_column_is(texts, format):
    """Numbers that are read quickly, many at once, are those that are read one by one."""
    values, is_left = simple_numbers(pa.array(texts, pa.string()), format)
    for text, value, left in zip(texts, values.tolist(), is_left.tolist(), strict=True):
        if not left and not np.isinf(value):
            np.testing.assert_equal(value, read_text(text, "numeric", format))


@given(st.lists(st.floats(-1e9, 1e9).map(lambda v: round(v, 2)), min_size=3, unique=True))
def test_a_german_column_has_the_numbers_of_the_clean_one(numbers):
    """With thousands and decimal commas, whatever the numbers are."""
    written = [f"{v:,.2f}".translate(str.maketrans(",.", ".,")) for v in numbers]
    guess = guess_column(pa.chunked_array([written]), "x")
    assert guess.kind == "numeric"
    assert Feature("x", "numeric", guess.format).values(pa.array(written)).tolist() == numbers


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"decimal": ";"}, "decimal must be"),
        ({"sep": "ab"}, "sep must be one sign"),
        ({"encoding": "rot13"}, "encoding='rot13' is unknown"),
        ({"date_format": ("soon",)}, "is not a date format"),
    ],
)
def test_impossible_options_are_refused(options, complaint):
    """When they are said, not when a file is read."""
    with pytest.raises(TableError, match=complaint):
        ReadOptions(**options)


def test_what_was_said_and_decided_survives_a_file():
    """A schema comes back from JSON as it was."""
    format = ColumnFormat(",", ".", True, "%d/%m/%Y", ("unknown",), "kg", True, True, "€", 2)
    features = (Feature("x", "numeric", format),)
    reading = ReadOptions(sep="|", na=("-999",), drop=("y",))
    schema = TableSchema(features, "y", "yes", "id", reading, ("yes", "no"))
    assert as_schema({"schema": to_plain(schema)}) == schema


def test_what_is_said_later_goes_first():
    """And what was said earlier is kept where nothing else is said."""
    earlier = ReadOptions(sep="|", encoding="cp1252", na=("x",), decimal=",")
    later = ReadOptions(encoding="utf-8", na=("y",)).after(earlier)
    assert (later.sep, later.encoding, later.na) == ("|", "utf-8", ("x", "y"))
    assert later.decimal is None  # the schema has it, column by column
