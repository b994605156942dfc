"""Reports without labels, and on cases that the model knows."""

import io
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from made_cases import percent
from shortlist import CapacityClassifier
from shortlist.exceptions import TableError, TableNote
from shortlist.report import make_report, render_report
from shortlist.report._summary import judge_promise
from shortlist.tables import select_rows
from shortlist.tables.learned_rows import SeenRows


@pytest.fixture(scope="module")
def today(new_cases, tmp_path_factory):
    """Return the new cases without their labels."""
    path = tmp_path_factory.mktemp("today") / "today.csv"
    pd.read_csv(new_cases).drop(columns="fraud").to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def labelled(table_fit, new_cases):
    """Return the summary with labels."""
    return make_report(table_fit.model, new_cases)


@pytest.fixture(scope="module")
def unlabelled(table_fit, today):
    """Return the summary without labels."""
    return make_report(table_fit.model, today)


def test_flags_drift_and_list_need_no_labels(labelled, unlabelled):
    """They are the same numbers as with labels."""
    for name in ("promise", "calibration"):
        assert unlabelled[name] == labelled[name]
    assert unlabelled["drift"] == labelled["drift"]
    for ours, theirs in zip(unlabelled["list"], labelled["list"], strict=True):
        assert ours == theirs | {"rare": None}
    assert unlabelled["comparison"] is unlabelled["cuts"] is None
    assert unlabelled["data"]["n_rare"] is unlabelled["data"]["prevalence"] is None


def test_what_changes_when_labels_come(labelled, unlabelled, table_fit):
    """The same lines, filled in, beside what the fit measured."""
    own, fitted = labelled["comparison"]["rules"][0], table_fit.model.card.rules[0]
    title = "What changes when labels come"
    before = lines_of_section(render_report(unlabelled), title)
    after = lines_of_section(render_report(labelled), "What the fit expected, and what came")
    assert before.keys() == after.keys()
    rate, *needing_labels = before
    assert before[rate] == after[rate]
    for name in needing_labels:
        assert before[name][0] == "needs labels"
        assert before[name][1] == after[name][1]
    here, expected = after["Rare cases found within the capacity (M)"]
    assert here.startswith(percent(own["detection"]))
    assert expected.startswith(percent(fitted.detection))


def lines_of_section(page, title):
    """Return the cells of the first table of a section, by the first cell of each row."""
    section = page[page.index(f">{title}</h2>") :].partition("</section>")[0]
    rows = [re.findall(r"<t[hd].*?</t[hd]>", row) for row in section.split("<tr ")[2:]]
    texts = [[re.sub("<.*?>", "", cell) for cell in row] for row in rows]
    return {name: cells for name, *cells in texts}


def test_labels_can_be_absent_or_empty(unlabelled, table_fit, new_cases, tmp_path):
    """Both give the same page."""
    pd.read_csv(new_cases).assign(fraud="").to_csv(tmp_path / "today.csv", index=False)
    empty = make_report(table_fit.model, tmp_path / "today.csv")
    assert empty["promise"] == unlabelled["promise"]
    assert empty["comparison"] is None
    render_report(empty)


def test_labels_that_are_asked_for_must_be_there(table_fit, today, new_cases, tmp_path):
    """A named column that is missing or has gaps is an error."""
    with pytest.raises(TableError, match="no column 'fraud', the column with the labels"):
        make_report(table_fit.model, today, target="fraud")
    noted = pytest.warns(TableNote, match="'vip' holds 'false', 'true', which was not a label")
    with noted, pytest.raises(TableError, match="the report is one without labels"):
        make_report(table_fit.model, new_cases, target="vip")
    frame = pd.read_csv(new_cases)
    frame.loc[:9, "fraud"] = None
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    with pytest.raises(TableError, match="'fraud' is empty in 10 of 800 rows"):
        make_report(table_fit.model, tmp_path / "gaps.csv")


def test_standard_input_is_read_once(unlabelled, table_fit, today, monkeypatch):
    """Also with more columns than the model needs."""
    stream = io.TextIOWrapper(io.BytesIO(today.read_bytes()))
    monkeypatch.setattr(sys, "stdin", stream)
    summary = make_report(table_fit.model, Path("-"), segment="country")
    assert summary["promise"] == unlabelled["promise"]
    assert summary["groups"]["column"] == "country"


def test_the_list_is_that_of_select(labelled, table_fit, new_cases):
    """The same cases, scores and reasons, in the same order."""
    rows = select_rows(table_fit.model, new_cases, count=10).rows
    for ours, row in zip(labelled["list"], rows, strict=True):
        assert (ours["rank"], ours["name"]) == (row["rank"], row["case"])
        assert ours["score"] == pytest.approx(row["score"])
        columns = [(reason["column"], reason["effect"]) for reason in ours["reasons"]]
        assert columns == [(r.column, pytest.approx(r.effect)) for r in row["reasons"]]


def test_an_id_takes_one_place_of_the_list(table_fit, today, tmp_path):
    """As for select: a case that comes twice is reviewed once."""
    frame = pd.read_csv(today)
    pd.concat([frame, frame.head(400)]).to_csv(tmp_path / "twice.csv", index=False)
    listed = make_report(table_fit.model, tmp_path / "twice.csv")["list"]
    names = [case["name"] for case in listed]
    assert len(set(names)) == 10
    assert names == [
        row["case"] for row in select_rows(table_fit.model, tmp_path / "twice.csv", count=10).rows
    ]


# --- cases that the model knows ---


def test_cases_of_the_fit_get_no_tick(table_fit, cases):
    """The page says that the model knows them, and proposes others."""
    summary = make_report(table_fit.model, cases)
    assert summary["promise"]["verdict"] == "seen"
    assert "No verdict" in summary["promise"]["headline"]
    assert "trained or calibrated this model" in summary["promise"]["explanation"]
    page = render_report(summary)
    assert "✓" not in page
    assert "assume that the model has not seen" not in page


def test_a_few_rows_that_repeat_by_chance_change_nothing(table_fit):
    """But they are mentioned."""
    seen = SeenRows(800, 2, expected=1.5, is_surprising=False)
    promise = judge_promise(table_fit.model, 800, 70, room=80, seen=seen)
    assert promise["verdict"] == "kept"
    assert "would do so by chance" in promise["explanation"]


# --- several models ---


def test_a_model_of_several_folds_has_a_report(table_fit, cases, new_cases):
    """Its rule is not a list of the highest scores, and the page says so."""
    model = table_fit.model
    with model.schema.open(cases) as source:
        rows = model.schema.read(source, target=model.schema.target)
    folds = CapacityClassifier(
        model.classifier.estimator,
        capacity=model.classifier.capacity,
        cv=3,
        ties="hash",
        random_state=0,
    ).fit(rows.X, rows.is_rare, ids=rows.ids)
    summary = make_report(replace(model, classifier=folds), new_cases)
    assert len(summary["calibration"]["thresholds"]) == 3
    assert summary["promise"]["verdict"] in ("kept", "chance")
    assert summary["drift"]["score"]["shift"] == "none seen"
    assert not summary["comparison"]["rule_is_a_list"]
    assert "not exactly the highest" in render_report(summary)


def test_a_title(table_fit, today):
    """It is the heading of the page; without it the page has one of its own."""
    summary = make_report(table_fit.model, today, title="March <b>")
    page = render_report(summary)
    assert "<h1>March &lt;b&gt;</h1>" in page
    assert "<title>March &lt;b&gt;</title>" in page
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
