"""A table of reviews is read as any other table is."""

import pandas as pd
import pytest

from shortlist.exceptions import TableError, TableNote
from shortlist.tables.reviews import missed_in_table


@pytest.fixture
def reviews(tmp_path):
    """Return a function that writes reviews, with changed columns, and returns the path."""

    def write(**changed):
        table = pd.DataFrame(
            {
                "case": [f"c{i}" for i in range(40)],
                "selected_by": ["score"] * 10 + ["probe"] * 30,
                "inclusion": [1.0] * 10 + [0.25] * 30,
                "fraud": ["yes" if i % 5 == 0 else "no" for i in range(40)],
            }
        ).assign(**changed)
        table.to_csv(tmp_path / "reviews.csv", index=False)
        return tmp_path / "reviews.csv"

    return write


@pytest.mark.parametrize("written", ["0,25", "25%", "25 %", " 0.25 "])
def test_probabilities_may_be_written_in_any_way(table_fit, reviews, written):
    """A spreadsheet may have changed them."""
    plain = missed_in_table(table_fit.model, reviews())
    one = "100%" if "%" in written else "1"
    again = reviews(inclusion=[one] * 10 + [written] * 30)
    assert str(missed_in_table(table_fit.model, again).estimate) == str(plain.estimate)


def test_words_are_no_probabilities(table_fit, reviews):
    """The error names the column."""
    with pytest.raises(TableError, match="'inclusion' must hold numbers; it holds 'often'"):
        missed_in_table(table_fit.model, reviews(inclusion="often"))


def test_reviews_that_come_twice_are_noted(table_fit, reviews):
    """They would make the answer look surer than it is."""
    with pytest.warns(TableNote, match="20 rows repeat an id"):
        missed_in_table(table_fit.model, reviews(case=[f"c{i % 20}" for i in range(40)]))


def test_without_probes_nothing_is_known(table_fit, reviews):
    """A note says so, and the answer has no numbers that mean nothing."""
    with pytest.warns(TableNote, match="without probes"):
        result = missed_in_table(table_fit.model, reviews(selected_by="score"))
    assert str(result.estimate) == "There are no probes: what is missed is unknown."
