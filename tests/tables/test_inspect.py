"""How a table would be read, before any fit."""

import pandas as pd

from shortlist.tables import ReadOptions, inspect
from shortlist.tables.inspect import inspect_table


def test_columns_are_shown_as_a_fit_would_read_them(tmp_path):
    """With their kinds, formats, examples and missing values, and a note on what is debatable."""
    rows = [f"{i};{i},5 €;{'' if i < 3 else 'x'};0{i}" for i in range(100)]
    (tmp_path / "t.csv").write_text("\n".join(["case;amount;shop;code", *rows]) + "\n")
    view = inspect_table(tmp_path / "t.csv")
    assert (view["n_rows"], view["is_whole"]) == (100, True)
    by_name = {column["name"]: column for column in view["columns"]}
    assert [c["kind"] for c in view["columns"]] == [
        "numeric",
        "numeric",
        "categorical",
        "categorical",
    ]
    assert by_name["amount"]["format"] == "decimal comma, thousands with a point, in €"
    assert by_name["amount"]["examples"] == ["0,5 €", "1,5 €", "2,5 €"]
    assert [column["n_missing"] for column in view["columns"]] == [0, 0, 3, 0]
    assert any("'amount' is read as numbers (decimal comma" in note for note in view["notes"])
    assert any("numeric='code'" in note for note in view["notes"])


def test_what_is_left_out_is_shown(tmp_path):
    """A column that the user drops has no kind."""
    pd.DataFrame({"a": range(9), "b": range(9)}).to_csv(tmp_path / "t.csv", index=False)
    view = inspect_table(tmp_path / "t.csv", reading=ReadOptions(drop=("b",)))
    assert {column["name"]: column["kind"] for column in view["columns"]} == {
        "a": "numeric",
        "b": None,
    }


def test_a_long_table_is_read_in_part(tmp_path, monkeypatch):
    """And says so."""
    monkeypatch.setattr(inspect, "_MOST_ROWS", 10)
    pd.DataFrame({"a": range(25)}).to_csv(tmp_path / "t.csv", index=False)
    view = inspect_table(tmp_path / "t.csv")
    assert (view["n_rows"], view["is_whole"]) == (10, False)
