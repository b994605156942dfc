"""Results by segment and by time: counted by hand, and differences only where chance ends."""

import numpy as np
import pandas as pd
import pytest

from shortlist.exceptions import TableError
from shortlist.report import make_report, render_report
from shortlist.report._cases import read_cases
from shortlist.report._groups import _in_periods
from shortlist.tables.rules import measure_rule


@pytest.fixture(scope="module")
def frame(new_cases):
    """Return the new cases with a team of each."""
    frame = pd.read_csv(new_cases)
    frame["team"] = np.random.default_rng(0).choice(["north", "south", None], len(frame))
    return frame


@pytest.fixture(scope="module")
def path(frame, tmp_path_factory):
    """Return these cases in a file."""
    path = tmp_path_factory.mktemp("groups") / "teams.csv"
    frame.to_csv(path, index=False)
    return path


def test_segments_add_up(table_fit, frame, path):
    """Each case is counted in one segment, with the flags and labels that it has."""
    summary = make_report(table_fit.model, path, segment="team")
    (grouped,) = summary["groups"]
    cases = read_cases(table_fit.model, path)
    teams = frame["team"].fillna("(empty)").to_numpy()
    assert {group["name"] for group in grouped["groups"]} == {"north", "south", "(empty)"}
    for group in grouped["groups"]:
        own = teams == group["name"]
        assert group["n_items"] == own.sum()
        rule = measure_rule(
            "", cases.rare[own], cases.flagged[own], table_fit.model.classifier.capacity
        )
        assert (group["n_flagged"], group["found"]) == (rule.flagged, rule.found)
        assert group["detection"] == rule.found / group["n_rare"]
        assert group["precision_interval"] == pytest.approx([*rule.precision_interval])
        low, high = group["detection_interval"]
        assert low <= group["detection"] <= high
    assert (
        sum(group["found"] for group in grouped["groups"])
        == summary["comparison"]["rules"][0]["found"]
    )


def test_the_only_segment_has_the_interval_of_the_page(table_fit, frame, tmp_path):
    """One number has one interval, also here."""
    frame.assign(team="all of us").to_csv(tmp_path / "one.csv", index=False)
    summary = make_report(table_fit.model, tmp_path / "one.csv", segment="team")
    (group,) = summary["groups"][0]["groups"]
    own = summary["comparison"]["rules"][0]
    assert group["detection_interval"] == pytest.approx(own["detection_interval"])
    assert group["precision_interval"] == pytest.approx(own["precision_interval"])


def test_many_segments_become_twenty_and_the_others(table_fit, frame, tmp_path):
    """The largest ones are shown; a column may also be one that the model learns from."""
    frame.assign(branch=np.arange(len(frame)) // 5).to_csv(tmp_path / "many.csv", index=False)
    (grouped,) = make_report(table_fit.model, tmp_path / "many.csv", segment="branch")["groups"]
    assert grouped["n_groups"] == 160
    assert len(grouped["groups"]) == 21
    assert grouped["groups"][-1]["name"] == "(all others)"
    assert sum(group["n_items"] for group in grouped["groups"]) == len(frame)
    (by_vip,) = make_report(table_fit.model, tmp_path / "many.csv", segment="vip")["groups"]
    assert {group["name"] for group in by_vip["groups"]} == {"True", "False"}


def test_time_is_cut_into_periods(table_fit, path):
    """Three hundred days are ten months, the oldest first, each with its own room."""
    summary = make_report(table_fit.model, path, segment="team", time="opened")
    by_team, by_time = summary["groups"]
    assert (by_team["kind"], by_time["kind"], by_time["unit"]) == ("segment", "time", "month")
    names = [group["name"] for group in by_time["groups"]]
    assert names == sorted(names)
    assert names[0] == "2024-01"
    assert len(names) == 10
    for group in by_time["groups"]:
        assert group["room"] == group["n_items"] // 10
    page = render_report(summary)
    assert "By month of opened" in page
    assert page.count('<svg class="periods') == 2


def test_dates_that_the_model_does_not_know(table_fit, frame, tmp_path):
    """With gaps, times of day and zones; they need not be a column of the model."""
    days = ["2024-05-31T23:30:00-02:00", "2024-05-30", None, "2024-05-29 08:00"] * 200
    frame.assign(day=days).to_csv(tmp_path / "days.csv", index=False)
    (grouped,) = make_report(table_fit.model, tmp_path / "days.csv", time="day")["groups"]
    assert grouped["unit"] == "day"
    names = [group["name"] for group in grouped["groups"]]
    assert names == ["2024-05-29", "2024-05-30", "2024-06-01", "(empty)"]
    assert {group["n_items"] for group in grouped["groups"]} == {200}


@pytest.mark.parametrize(
    ("last", "unit", "name"),
    [
        ("2024-01-20", "day", "2024-01-03"),
        ("2024-05-20", "week", "2024-01-01"),
        ("2025-05-20", "month", "2024-01"),
        ("2029-05-20", "quarter", "2024 Q1"),
        ("2044-05-20", "year", "2024"),
    ],
)
def test_the_unit_suits_the_span(last, unit, name):
    """There are never more than 26 periods, but for a lifetime; weeks begin on Mondays."""
    moments = pd.to_datetime(pd.Series(["2024-01-03", last, None]))
    found, periods = _in_periods(moments)
    assert found == unit
    assert periods[0] == name
    assert periods[2] == "(empty)"


def test_columns_that_do_not_fit_are_refused(table_fit, path, frame, tmp_path):
    """With the option, the column, the row and what to write instead."""
    with pytest.raises(
        TableError, match=r"no column 'nothing', which segment=\.\.\. or time=\.\.\. names"
    ):
        make_report(table_fit.model, path, segment="nothing")
    with pytest.raises(
        TableError, match=r"time=\.\.\. names 'team', but '.*' in row \d+ is not a date"
    ):
        make_report(table_fit.model, path, time="team")
    with pytest.raises(TableError, match=r"time=\.\.\. names 'amount'.* is not a date.*segment="):
        make_report(table_fit.model, path, time="amount")
    frame.assign(day=["2024-05-31"] * 799 + ["soon"]).to_csv(tmp_path / "one.csv", index=False)
    with pytest.raises(TableError, match=r"'day', but 'soon' in row 800 is not a date"):
        make_report(table_fit.model, tmp_path / "one.csv", time="day")
    frame.assign(day="1001-01-01").to_csv(tmp_path / "old.csv", index=False)
    with pytest.raises(TableError, match="'1001-01-01' in row 1 is not a date, or not one of our"):
        make_report(table_fit.model, tmp_path / "old.csv", time="day")
    for column in ("case", "amount"):
        with pytest.raises(
            TableError, match=f"segment=... names '{column}', which has .* different"
        ):
            make_report(table_fit.model, path, segment=column)
    frame.assign(day="").to_csv(tmp_path / "empty.csv", index=False)
    with pytest.raises(TableError, match="'day', but this column is empty in every row"):
        make_report(table_fit.model, tmp_path / "empty.csv", time="day")


def test_a_group_without_rare_cases_or_flags_has_dashes(table_fit, frame, tmp_path):
    """Nothing can be said about what it finds."""
    small = frame.assign(team=np.where(frame.index < 3, "tiny", "others"), fraud=frame["fraud"])
    small.loc[small.index < 3, ["fraud", "amount"]] = ["no", 1.0]
    small.to_csv(tmp_path / "tiny.csv", index=False)
    summary = make_report(table_fit.model, tmp_path / "tiny.csv", segment="team")
    tiny = summary["groups"][0]["groups"][1]
    assert (tiny["name"], tiny["n_rare"], tiny["n_flagged"]) == ("tiny", 0, 0)
    assert tiny["detection"] is tiny["detection_interval"] is tiny["precision"] is None
    page = render_report(summary)
    assert "none to find" in page
    assert "nothing flagged" in page
