"""What kind a column is, and its values as a model takes them."""

import datetime

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from shortlist.exceptions import TableError
from shortlist.tables._column_guesses import guess_column
from shortlist.tables._labels import as_ids, as_labels
from shortlist.tables.column_format import ColumnFormat
from shortlist.tables.columns import (
    MISSING_CATEGORY,
    Feature,
)

DAY = datetime.date(1970, 1, 3)


def column(values):
    """Return values as a column of a table."""
    return pa.chunked_array([values if isinstance(values, pa.Array) else pa.array(values)])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", " 2.5 ", None, "1e3"], "numeric"),
        ([None, None], "numeric"),
        (["1", "2", "three"], "categorical"),
        (["TRUE", "false", None], "boolean"),
        (["2024-05-31", "2024-05-31T12:00:00", None], "date"),
        (["2024-05-31", "yesterday"], "categorical"),
        (["31.05.2024", "01.06.2024 10:00", None], "date"),
        (["2024/05/31"], "date"),
        (["05/06/2024"], "categorical"),
        ([True, None], "boolean"),
        ([1, 2], "numeric"),
        ([DAY], "date"),
    ],
)
def test_kinds_are_told_from_all_values(values, kind):
    """One word among numbers makes a category; gaps say nothing."""
    assert guess_column(column(values), "x").kind == kind


def test_values_are_the_same_from_text_and_from_types():
    """A model fitted on CSV files can be used on Parquet files, and the other way round."""
    pairs = [
        ("numeric", ["1", None], [1, None], [1.0, np.nan]),
        ("boolean", ["true", None], [True, None], [1.0, np.nan]),
        ("date", ["1970-01-03", None], [DAY, None], [2.0, np.nan]),
    ]
    for kind, text, typed, expected in pairs:
        for values in (text, typed):
            assert_array_equal(Feature("x", kind).values(column(values)), expected)


def test_a_missing_category_is_a_category():
    """Being absent often says something."""
    values = Feature("x", "categorical").values(column(pa.array(["a", None]).dictionary_encode()))
    assert_array_equal(values, ["a", MISSING_CATEGORY])


def test_spaces_around_texts_are_no_part_of_them():
    """In categories and labels; an id is given back as it came."""
    padded = column([" a", "a ", "  "])
    assert_array_equal(Feature("x", "categorical").values(padded), ["a", "a", MISSING_CATEGORY])
    assert as_labels(column([" yes", "yes "]), "y").tolist() == ["yes", "yes"]
    assert as_ids(column([" 7"]), "id").tolist() == [" 7"]
    assert as_ids(column(["7.0", "-7.00", "7.10", "v7.0"]), "id").tolist() == [
        "7",
        "-7",
        "7.10",
        "v7.0",
    ]


def test_dates_in_other_writings():
    """As long as day and month can be told apart."""
    for text in ("1970-01-03", "1970/01/03", "03.01.1970", " 03.01.1970 00:00"):
        assert_array_equal(Feature("x", "date").values(column([text])), [2.0])


def test_moments_of_a_day_and_time_zones_count():
    """Noon is half a day later; two o'clock in Paris is noon in Greenwich in summer."""
    texts = pa.array(["1970-01-02T12:00:00", "1970-01-02T14:00:00+02:00"])
    assert_array_equal(Feature("x", "date").values(column(texts)), [1.5, 1.5])


@pytest.mark.parametrize(
    ("values", "kind", "wanted"),
    [
        (["ten"], "numeric", "must be a finite number"),
        ([DAY], "numeric", "must be a finite number"),
        ([7], "categorical", "must be a string"),
        (["soon"], "date", "must be a date"),
        (["2024-13-01"], "date", "must be a date"),
        (["maybe"], "boolean", "must be true or false"),
    ],
)
def test_a_changed_type_is_named(values, kind, wanted):
    """With the column, what it was, and an example of what it is."""
    with pytest.raises(TableError, match=f"'x' {wanted}.* holds "):
        Feature("x", kind).values(column(values))


def test_infinite_values_are_refused():
    """They would otherwise reach the model as if they were measurements."""
    with pytest.raises(TableError, match=r"'x' must be a finite number.*na='-inf'"):
        Feature("x", "numeric").values(column([1.0, -np.inf]))
    said = Feature("x", "numeric", ColumnFormat(missing=("-inf",)))
    assert_array_equal(said.values(column([1.0, -np.inf])), [1.0, np.nan])


def test_labels_and_ids_are_texts():
    """1, 1.0 and "1" are one label, whatever the file says about types."""
    for values in (["1", "0"], [1, 0], [1.0, 0.0], pa.array(["1", "0"]).dictionary_encode()):
        assert as_labels(column(values), "y").tolist() == ["1", "0"]
    for values in (["1", None], [1.0, np.nan]):
        with pytest.raises(TableError, match="empty in 1 of 2 rows"):
            as_labels(column(values), "y")
