"""Lists: exactly so many, each id once, quotas kept, and safe in spreadsheets."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_cases import make_cases
from shortlist import Capacity
from shortlist.exceptions import TableError, TooManyFlagsError
from shortlist.tables import flag_rows, select_rows
from shortlist.tables.write import TableWriter, spreadsheet_safe


@pytest.mark.parametrize("count", [0, 1, 7, 80, 799, 800])
def test_a_list_is_what_the_classifier_selects(table_fit, new_cases, count):
    """Ties included."""
    model = table_fit.model
    with model.schema.open(new_cases) as source:
        rows = model.schema.read(source)
    selected = model.classifier.select(rows.X, Capacity.count(count), ids=rows.ids)
    listed = select_rows(model, new_cases, count=count)
    assert {row["row"] - 1 for row in listed.rows} == set(np.flatnonzero(selected))
    assert [row["score"] for row in listed.rows] == sorted(
        (row["score"] for row in listed.rows), reverse=True
    )


def test_quotas_take_the_best_of_each_segment(table_fit, new_cases):
    """No segment gets more than its own, and the ranks are those of one list."""
    listed = select_rows(
        table_fit.model, new_cases, count={"ar": 4, "cl": 6}, segment="country", keep=["country"]
    )
    everyone = select_rows(table_fit.model, new_cases, count=800, keep=["country"])
    for name, most in {"ar": 4, "cl": 6}.items():
        best = [row["case"] for row in everyone.rows if row["country"] == name][:most]
        assert [row["case"] for row in listed.rows if row["country"] == name] == best
    assert [row["rank"] for row in listed.rows] == list(range(1, 11))


def test_a_repeated_id_takes_one_place(table_fit, tmp_path):
    """With its highest score."""
    frame = make_cases(50, seed=2)
    both = pd.concat([frame, frame.assign(amount=500.0)])
    both.to_csv(tmp_path / "t.csv", index=False)
    listed = select_rows(table_fit.model, tmp_path / "t.csv", count=50)
    assert len({row["case"] for row in listed.rows}) == len(listed) == 50
    assert all(row["row"] > 50 for row in listed.rows)
    assert "50 rows repeat an id" in listed.notes[0]


def test_flags_and_lists_have_the_same_id_name(table_fit, new_cases):
    """That of the table."""
    listed = select_rows(table_fit.model, new_cases, count=2)
    assert "case" in listed.types
    file = io.BytesIO()
    flag_rows(table_fit.model, new_cases, file, format="jsonl", keep=["all"])
    first = json.loads(file.getvalue().splitlines()[0])
    assert list(first)[:3] == ["case", "score", "flagged"]
    assert set(first) >= set(pd.read_csv(new_cases).columns)


def test_a_limit_stops_before_anything_is_written_of_the_chunk(table_fit, new_cases):
    """And the message says what to do."""
    file = io.BytesIO()
    with pytest.raises(TooManyFlagsError, match="shortlist check"):
        flag_rows(table_fit.model, new_cases, file, at_most=5)
    assert file.getvalue() == b""


def test_excluded_rows_do_not_change_the_others(table_fit, new_cases, tmp_path):
    """Each row is decided on its own."""
    frame = pd.read_csv(new_cases)
    frame[["case"]].head(300).to_csv(tmp_path / "done.csv", index=False)
    files = [io.BytesIO(), io.BytesIO()]
    flag_rows(table_fit.model, new_cases, files[0])
    summary = flag_rows(table_fit.model, new_cases, files[1], exclude=tmp_path / "done.csv")
    every, rest = (file.getvalue().splitlines() for file in files)
    assert rest[1:] == every[301:]
    assert summary.n_items == 500


def test_quotas_and_segments_belong_together(table_fit, new_cases):
    """One without the other is an error."""
    with pytest.raises(TableError, match="segment="):
        select_rows(table_fit.model, new_cases, count={"ar": 1})
    with pytest.raises(TableError, match="segment="):
        select_rows(table_fit.model, new_cases, count=3, segment="country")


@given(st.text(max_size=12))
def test_no_cell_begins_like_a_formula(text):
    """Unless it is a number; and the text can be had back."""
    safe = spreadsheet_safe(text)
    assert safe.removeprefix("'") == text or safe == text
    if safe[:1] in "=+-@\t\r\n" and safe:
        assert float(safe.replace(",", ".")) is not None


def test_headings_are_escaped_too():
    """A column name is a cell."""
    file = io.BytesIO()
    with TableWriter(file, "csv", {"=a": "string", "b": "int64"}) as listed:
        listed.write({"=a": ["@x", "-1", None], "b": [-1, 2, 3]})
    lines = file.getvalue().decode().splitlines()
    assert lines[0] == '"\'=a","b"'
    assert lines[1] == '"\'@x",-1'
    assert listed.n_escaped == 1
