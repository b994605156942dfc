"""Data frames, and paths as texts, in place of files."""

import io

import numpy as np
import pandas as pd
import pytest

from shortlist import Capacity
from shortlist.exceptions import TableError
from shortlist.report import make_report
from shortlist.tables import (
    check_table,
    evaluate_table,
    fit_table,
    flag_rows,
    load_model,
    recalibrate_table,
    save_model,
    select_rows,
)

TENTH = Capacity.fraction(0.1)


def frames(path):
    """Return a table as frames of pandas, with texts and times of its own types, and of polars."""
    polars = pytest.importorskip("polars")
    plain = pd.read_csv(path)
    typed = plain.assign(
        case=plain["case"].astype("string"),
        country=plain["country"].astype("category"),
        opened=pd.to_datetime(plain["opened"]),
    )
    return {
        "pandas": plain,
        "typed": typed,
        "index": plain.set_index("case"),
        "arrow": plain.convert_dtypes(dtype_backend="pyarrow"),
        "polars": polars.read_csv(path),
        "lazy": polars.scan_csv(path).collect().to_arrow(),
    }


@pytest.mark.parametrize("kind", ["pandas", "typed", "index", "arrow", "polars", "lazy"])
def test_a_frame_is_as_good_as_a_file(kind, table_fit, cases, new_cases):
    """The same model, flags, lists, numbers and pages, whoever holds the table."""
    old, new = frames(cases)[kind], frames(new_cases)[kind]
    options = {"target": "fraud", "capacity": TENTH, "id": "case", "learner": "logistic"}
    model, by_file = (fit_table(each, **options).model for each in (old, cases))
    assert model.classifier.calibrations_ == by_file.classifier.calibrations_
    files = [io.BytesIO(), io.BytesIO()]
    for own, data, file in zip((model, by_file), (new, new_cases), files, strict=True):
        flag_rows(own, data, file)
    assert files[0].getvalue() == files[1].getvalue()
    named = [select_rows(model, each, count=5).columns["case"] for each in (new, new_cases)]
    assert named[0] == named[1]
    assert evaluate_table(model, new).rules == evaluate_table(model, new_cases).rules
    assert check_table(model, new).score == check_table(model, new_cases).score
    assert recalibrate_table(model, new).n_rows == len(pd.read_csv(new_cases))
    page = make_report(model, new)
    assert page["data"]["name"] == "data frame"
    assert page["comparison"] == make_report(model, new_cases)["comparison"]


def test_a_path_may_be_a_text(table_fit, new_cases, tmp_path):
    """Everywhere, that of a model too."""
    save_model(table_fit.model, str(tmp_path / "a.model"))
    model, path = load_model(str(tmp_path / "a.model")), str(new_cases)
    listed = select_rows(model, path, count=5, exclude=path)
    assert len(listed) == 0
    assert evaluate_table(model, path).rules == evaluate_table(model, new_cases).rules
    assert make_report(model, path)["data"]["name"] == new_cases.name
    with pytest.raises(TableError, match=r"There is no file nowhere\.csv"):
        fit_table("nowhere.csv", target="fraud", capacity=TENTH)


def test_known_rows_of_a_frame_are_not_shown(table_fit, cases):
    """The frame has a name, as a file has."""
    known = r"^\S+ of \S+ rows of the data frame trained or calibrated this model\."
    with pytest.raises(TableError, match=known):
        recalibrate_table(table_fit.model, pd.read_csv(cases))


def test_what_is_wrong_with_a_frame_is_said(table_fit, new_cases):
    """By the names of columns, as for a file; a column of mixed values is read as a file's."""
    frame = pd.read_csv(new_cases)
    with pytest.raises(TableError, match=r"The data frame has no column 'amount', which the model"):
        flag_rows(table_fit.model, frame.drop(columns="amount"), io.BytesIO())
    with pytest.raises(TableError, match="The data frame has no rows"):
        check_table(table_fit.model, frame.head(0))
    with pytest.raises(TableError, match=r"needs a file, .* or a data frame.*; got list"):
        check_table(table_fit.model, [1, 2])
    for twins in (
        frame.assign(**{"1": 0}).rename(columns={"1": 1}).assign(**{"1": 0}),
        pd.concat([frame, frame[["amount"]]], axis=1),
        frame.set_index(frame["case"]),
    ):
        with pytest.raises(TableError, match="The data frame has more than one column named"):
            check_table(table_fit.model, twins)
    mixed = frame.astype({"amount": object})
    mixed.loc[::7, "amount"] = [f"{value:.2f} " for value in frame["amount"][::7]]
    mixed["amount"] = mixed["amount"].replace("nan ", np.nan)
    got = select_rows(table_fit.model, mixed, count=20).columns["case"]
    assert got == select_rows(table_fit.model, new_cases, count=20).columns["case"]
