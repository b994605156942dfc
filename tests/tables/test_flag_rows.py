"""The calibrated rule, row by row."""

import io
import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal
from typer.testing import CliRunner

from shortlist import Capacity
from shortlist.cli._app import app
from shortlist.exceptions import TableError
from shortlist.tables import _records, fit_table, flag_rows, select_rows
from shortlist.tables import _text_files as text_files


def flag(model, path, format="csv"):
    """Return what is written, and the summary."""
    file = io.BytesIO()
    summary = flag_rows(model, path, file, format=format)
    return file.getvalue(), summary


@pytest.fixture(scope="module")
def coarse(cases, tmp_path_factory):
    """Return a model without ids whose scores tie often, and a table for it."""
    frame = pd.read_csv(cases)
    frame["amount"] = frame["amount"].round(-2).clip(upper=100)
    frame["copy"] = range(len(frame))
    frame["copy"] %= 40  # tells tied rows apart, and hardly moves the scores
    path = tmp_path_factory.mktemp("coarse") / "coarse.csv"
    frame[["amount", "fraud", "copy"]].to_csv(path, index=False)
    capacity = Capacity.fraction(0.1)
    return fit_table(path, target="fraud", capacity=capacity, learner="forest", folds=2).model, path


@pytest.mark.parametrize("size", [1_000, 3_000])
def test_chunks_change_nothing(table_fit, coarse, new_cases, monkeypatch, size):
    """Wherever chunks begin, with ids and without, and also among ties."""
    for model, path in ((table_fit.model, new_cases), coarse):
        whole, summary = flag(model, path)
        with monkeypatch.context() as patch:
            patch.setattr(text_files, "_BLOCK_BYTES", size)
            chunked, again = flag(model, path)
        whole, chunked = (pd.read_csv(io.BytesIO(written)) for written in (whole, chunked))
        # Sums of products may differ in their last bits with the size of a chunk; flags may not.
        pd.testing.assert_frame_equal(chunked, whole, rtol=1e-12)
        assert again == summary
        assert 0 < summary.n_flagged < 0.2 * summary.n_items


def test_files_of_every_kind_get_the_same_answers(table_fit, new_cases, tmp_path):
    """Types in the file or texts: the decisions are the same."""
    frame = pd.read_csv(new_cases, dtype={"vip": str})
    typed = frame.assign(opened=pd.to_datetime(frame["opened"]), vip=frame["vip"] == "true")
    typed.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    expected, _ = flag(table_fit.model, new_cases)
    for path in tmp_path.iterdir():
        assert flag(table_fit.model, path)[0] == expected, path


def test_the_answers_are_those_of_the_classifier(table_fit, new_cases):
    """In the order of the rows, under the name of the id."""
    written, summary = flag(table_fit.model, new_cases)
    decisions = pd.read_csv(io.BytesIO(written))
    from shortlist.tables.read import open_table

    with open_table(new_cases) as source:
        rows = table_fit.model.schema.read(source)
    flagged = table_fit.model.classifier.flag(rows.X, ids=rows.ids)
    assert_array_equal(decisions["flagged"], flagged)
    assert_array_equal(decisions["case"], rows.ids)
    assert summary.n_flagged == flagged.sum()
    assert summary.n_items == 800


def test_formats_agree(table_fit, new_cases):
    """CSV, Parquet and JSON lines hold the same rows."""
    csv = pd.read_csv(io.BytesIO(flag(table_fit.model, new_cases)[0]))
    parquet = pq.read_table(io.BytesIO(flag(table_fit.model, new_cases, "parquet")[0])).to_pandas()
    lines = pd.read_json(io.BytesIO(flag(table_fit.model, new_cases, "jsonl")[0]), lines=True)
    for other in (parquet, lines):
        pd.testing.assert_frame_equal(csv, other, check_dtype=False)


def test_a_day_without_cases(table_fit, new_cases, tmp_path):
    """A heading alone is answered as in every other function."""
    heading = new_cases.read_text().splitlines()[0]
    (tmp_path / "none.csv").write_text(heading + "\n")
    with pytest.raises(TableError, match="has no rows below its heading"):
        flag(table_fit.model, tmp_path / "none.csv")


def test_more_columns_in_another_order_do_no_harm(table_fit, new_cases, tmp_path):
    """Columns are known by their names."""
    frame = pd.read_csv(new_cases)
    reordered = frame.assign(note="x")[["note", *reversed(frame.columns)]]
    reordered.to_csv(tmp_path / "t.csv", index=False)
    assert flag(table_fit.model, tmp_path / "t.csv") == flag(table_fit.model, new_cases)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"amount": "much"}, "'amount' must be a finite number; row 1 of .* holds 'much'"),
        ({"amount": "inf"}, "'amount' must be a finite number.*na='inf'"),
        ({"opened": "soon"}, "'opened' must be a date"),
        ({"case": ""}, "'case' is empty in"),
    ],
)
def test_a_changed_column_is_named(table_fit, new_cases, tmp_path, change, complaint):
    """With its name, and what it was."""
    pd.read_csv(new_cases).assign(**change).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(TableError, match=complaint):
        flag(table_fit.model, tmp_path / "t.csv")


def test_a_missing_column_is_named(table_fit, new_cases, tmp_path):
    """A feature as well as the id."""
    for column in ("amount", "case"):
        pd.read_csv(new_cases).drop(columns=column).to_csv(tmp_path / "t.csv", index=False)
        with pytest.raises(TableError, match=f"has no column '{column}'"):
            flag(table_fit.model, tmp_path / "t.csv")


def lines_with(new_cases, path, values):
    """Write the new cases as JSON lines with a column of these values."""
    rows = pd.read_csv(new_cases, dtype=str).to_dict("records")
    lines = [{**row, "extra": values(place)} for place, row in enumerate(rows)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines).replace("NaN", "null"))
    return path


@pytest.mark.parametrize(
    "late",
    [lambda place: place + 0.5, lambda place: "word", lambda place: "007", lambda place: 2**60],
    ids=["parts", "words", "codes", "long"],
)
def test_values_carried_along_are_never_rounded(late, model_file, new_cases, tmp_path, monkeypatch):
    """Whole numbers in the first rows may be followed by something else."""
    monkeypatch.setattr(_records, "_CHUNK_LINES", 100)
    path = lines_with(new_cases, tmp_path / "n.jsonl", lambda n: n if n < 150 else late(n))
    out = tmp_path / "flags.csv"
    typed = ["flag", str(model_file), str(path), "--keep", "extra", "-o", str(out)]
    result = CliRunner().invoke(app, typed)
    assert result.exit_code == 2, result.output
    assert "'extra', which --keep names, holds values of another kind from row 101" in result.output
    assert not out.exists()


def test_values_carried_along_may_be_missing_at_first(model_file, new_cases, tmp_path, monkeypatch):
    """Their type is not known then, and they are written as texts."""
    monkeypatch.setattr(_records, "_CHUNK_LINES", 100)
    path = lines_with(new_cases, tmp_path / "n.jsonl", lambda n: None if n < 150 else n)
    out = tmp_path / "flags.csv"
    typed = ["flag", str(model_file), str(path), "--keep", "extra", "-o", str(out)]
    assert CliRunner().invoke(app, typed).exit_code == 0
    assert_array_equal(pd.read_csv(out)["extra"][150:], np.arange(150, 800))


def test_a_list_carries_numbers_of_all_kinds(table_fit, new_cases, tmp_path, monkeypatch):
    """Nothing is written before its end."""
    monkeypatch.setattr(_records, "_CHUNK_LINES", 100)
    for parts in (lambda n: n < 150, lambda n: n >= 150):
        path = lines_with(new_cases, tmp_path / "n.jsonl", lambda n, p=parts: n + 0.5 * p(n))
        listed = select_rows(table_fit.model, path, count=400, keep=["extra"])
        assert listed.types["extra"] == "double"
        assert [row["extra"] for row in listed.rows] == [
            row["row"] - 1 + 0.5 * parts(row["row"] - 1) for row in listed.rows
        ]
